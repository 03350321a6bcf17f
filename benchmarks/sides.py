"""Whom to ask, and about what: our estimator, and possibly another one that serves the same cluster."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.caller import Address
from benchmarks.cluster import PodSize, Scale, replicas_of
from benchmarks.load import Clients, Questions
from benchmarks.processes import (
    CLUSTER,
    Estimator,
    StartFailed,
    await_listening,
    running_api,
    starting_estimator,
)
from benchmarks.shapes import REPLICAS, answer_of, replicas_request

_SYNCS_WITHIN_S = 120.0

PROBE = PodSize(cpu_milli=3000, memory_gib=5)
"""The pod whose right number shows that an estimator knows the whole cluster."""

TARGET_NODES = 5000
"""The size that targets are about."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How to measure.

    ``seconds`` is the time for one measurement, of each side. ``target`` is an estimator of ours that runs
    already, ``against`` another one; both serve ``cluster``, which has ``sizes[0]`` nodes then.
    """

    seconds: float
    sizes: tuple[int, ...]
    clients: tuple[int, ...]
    sync_pods: int
    target: Address | None = None
    against: Address | None = None
    cluster: str = CLUSTER

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The clusters to ask about, with ten pods a node."""
        return tuple(Scale(size, 10 * size) for size in self.sizes)

    @property
    def main_scale(self) -> Scale:
        """The cluster for questions that are about one size: that of the targets where it is among them."""
        return next((scale for scale in self.scales if scale.nodes == TARGET_NODES), self.scales[-1])


@dataclass(frozen=True, slots=True)
class Sides:
    """The estimators to ask. ``own`` is ours if it was started here."""

    ours: Address
    other: Address | None
    own: Estimator | None


@contextmanager
def serving(setting: Setting, scale: Scale) -> Iterator[Sides]:
    """Estimators that know the cluster and answer. Raises StartFailed, CallFailed."""
    if setting.target is not None:
        yield Sides(setting.target, setting.against, None)
        return
    with running_api(scale) as api, starting_estimator(api.url) as own:
        await_right_answer(own, scale)
        yield Sides(own.address, None, own)


def await_right_answer(own: Estimator, scale: Scale) -> None:
    """Return once the estimator knows the cluster. Raises StartFailed, CallFailed."""
    await_listening(own)
    expected, question = replicas_of(scale, PROBE), Questions(REPLICAS, [replicas_request(CLUSTER, PROBE)])
    with Clients(own.address, 1) as client:
        while answer_of(client.ask_once(question)[0]) != expected:
            if time.perf_counter() - own.started_s > _SYNCS_WITHIN_S:
                raise StartFailed(
                    f"no right answer about {scale} after {_SYNCS_WITHIN_S:.0f} s, expected {expected}:\n"
                    f"{own.last_words()}"
                )
