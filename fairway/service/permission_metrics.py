"""The metric of missing permissions, the same in every program."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

NAME: Final = "fairway_permission_denied"


@dataclass(frozen=True, slots=True)
class PermissionMetrics(Collector):
    """One line for each verb on a resource that an API server denies us.

    ``read`` answers, at each scrape: which API server (``karmada``, or a cluster's name), verb, resource.
    """

    read: Callable[[], Iterable[tuple[str, str, str]]]

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked before the first scrape."""
        return (_family(),)

    def collect(self) -> Iterator[Metric]:
        """What is denied now."""
        family = _family()
        for labels in sorted(set(self.read())):
            family.add_metric(labels, 1)
        yield family


def _family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        NAME,
        "1 for each verb on a resource that an API server does not allow",
        labels=["api", "verb", "resource"],
    )
