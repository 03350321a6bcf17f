"""The fleet that a stream is for, as API objects: one cluster, one flavor, and queues in one tree or none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from benchmarks.queues.suite import Suite
from benchmarks.streams.drawn import GPUS

Json = dict[str, object]

CLUSTER: Final = "member"
FLAVOR: Final = "flavor"
NAMESPACE: Final = "team"
GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Quota:
    """A queue that work waits in, what it owns, and how much of others' it may use; None for all of it.

    ``parent``: name of a queue that owns nothing and shares out what its children leave.
    """

    queue: str
    nominal: int
    parent: str = ""
    borrowing: int | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """``capacity``: units of ``resource`` in the cluster. ``priorities``: by name of a ServiceClass."""

    resource: str
    capacity: int
    quotas: tuple[Quota, ...]
    priorities: Mapping[str, int] = field(default_factory=dict)

    @property
    def parents(self) -> tuple[str, ...]:
        """The queues that share."""
        return tuple(dict.fromkeys(quota.parent for quota in self.quotas if quota.parent))


@dataclass(frozen=True, slots=True)
class Choice:
    """How queues treat what does not fit: fields of a ClusterQueue's spec, the same for all of them."""

    label: str
    spec: Mapping[str, object]

    @property
    def strategy(self) -> str:
        """Its queueing strategy."""
        return str(self.spec["queueingStrategy"])


ONE_QUEUE: Final = Fleet(GPU, GPUS, (Quota("main", GPUS),))
COHORT: Final = Fleet(GPU, GPUS, (Quota("gangs", GPUS // 2, "company"), Quota("small", GPUS // 2, "company")))
"""Half of the fleet is owned by those who submit gangs, which are larger; small jobs are the others'."""


def of_suite(suite: Suite) -> Fleet:
    """As a suite of Kueue has it, in cores: no more there than there is quota of."""
    quotas = (
        Quota(queue, suite.nominal_cpu_per_queue, cohort, suite.borrowing_limit_cpu_per_queue)
        for queue, cohort in suite.queues()
    )
    priorities = {each.class_name: each.priority for each in suite.workload_sets}
    return Fleet("cpu", suite.total_cpu, tuple(quotas), priorities)


def cluster(fleet: Fleet) -> Json:
    """The only cluster."""
    status: Json = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "resourceSummary": {"allocatable": {fleet.resource: str(fleet.capacity)}},
    }
    return {"metadata": {"name": CLUSTER, "uid": CLUSTER}, "spec": {"syncMode": "Push"}, "status": status}


def flavor() -> Json:
    """The only flavor: all of the cluster."""
    return {"metadata": {"name": FLAVOR}, "spec": {"clusterNames": [CLUSTER]}}


def cluster_queues(fleet: Fleet, choice: Choice) -> Iterator[Json]:
    """All queues, with what is chosen for those that work waits in."""
    for parent in fleet.parents:
        yield {"metadata": {"name": parent}, "spec": {}}
    for quota in fleet.quotas:
        amount: Json = {"name": fleet.resource, "nominalQuota": str(quota.nominal)}
        if quota.borrowing is not None:
            amount["borrowingLimit"] = str(quota.borrowing)
        group = {
            "coveredResources": [fleet.resource],
            "flavors": [{"name": FLAVOR, "resources": [amount]}],
        }
        spec: Json = {"resourceGroups": [group], **choice.spec}
        if quota.parent:
            spec["parent"] = quota.parent
        yield {"metadata": {"name": quota.queue}, "spec": spec}


def local_queues(fleet: Fleet) -> Iterator[Json]:
    """One for each queue, named as it is."""
    for quota in fleet.quotas:
        metadata = {"name": quota.queue, "namespace": NAMESPACE}
        yield {"metadata": metadata, "spec": {"clusterQueue": quota.queue}}


def service_classes(fleet: Fleet) -> Iterator[Json]:
    """One for each priority."""
    for name, priority in fleet.priorities.items():
        yield {"metadata": {"name": name}, "spec": {"priority": priority}}
