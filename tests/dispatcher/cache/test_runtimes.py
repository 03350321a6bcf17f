"""For how long what waits runs at the latest, as its item says."""

from collections.abc import Mapping

import pytest

from fairway.names import ADMISSION
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.record import AdmissionRecord, write_record
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.runtime import in_steps
from tests.dispatcher.cache.test_laws import JOBS, NOW_MS, Feed, meta
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import GPU, Obj

MINUTE_MS = 60_000
LABEL = "fairway.dev/max-runtime"
PRESERVED: Obj = {"preserveResourcesOnDeletion": True}


class Line:
    """One queue with room for nothing, and what is submitted to it."""

    def __init__(self) -> None:
        self._feed = Feed()
        self._put(CLUSTERS.name, objects.cluster("m0", 0), "m0")
        self._put(RESOURCE_FLAVORS.name, objects.flavor("f0", "m0"), "f0")
        self._put(CLUSTER_QUEUES.name, objects.cluster_queue("q0", {"f0": 8}), "q0")
        self._put(LOCAL_QUEUES.name, objects.local_queue("main", "q0"), "main", "team")

    def _put(self, kind: str, obj: Obj, name: str, namespace: str = "") -> None:
        self._feed.put(kind, meta(obj, name, namespace, 1))

    def promise(self, **spec: object) -> None:
        """What the class of all workloads says."""
        made = objects.service_class("batch", 0, globalDefault=True, **spec)
        self._put(SERVICE_CLASSES.name, made, "batch")

    def submit(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        *,
        deadline_s: int | None = None,
        more: Obj | None = None,
        admitted: int = 0,
    ) -> None:
        """``admitted``: so many pods run already, of two that it wants now."""
        job = objects.job(name, {"fairway.dev/queue": "main", **(labels or {})})
        if deadline_s is not None:
            job["spec"]["activeDeadlineSeconds"] = deadline_s
        self._put(JOBS.name, job, name, "team")
        replicas = 2 if admitted else 1
        binding = meta(objects.binding(name, replicas=replicas, more=more), f"{name}-job", "team", 1)
        if admitted:
            binding["spec"]["clusters"] = [{"name": "m0", "replicas": admitted}]
            binding["metadata"]["annotations"][ADMISSION] = write_record(
                AdmissionRecord(
                    id=binding["metadata"]["uid"],
                    queue="q0",
                    local_queue="main",
                    service_class="",
                    priority=0,
                    enqueued_ms=1,
                    admitted_ms=NOW_MS - MINUTE_MS,
                    replicas=admitted,
                    copies=1,
                    requests=((GPU, admitted),),
                    flavors=((GPU, ("f0",)),),
                )
            )
        self._feed.put(RESOURCE_BINDINGS.name, binding)

    def items(self) -> list[Item]:
        """What stands in line, first in, first out."""
        cache = self._feed.cache
        cache.advance(Moment(NOW_MS))
        while not cache.settle(7):
            pass
        return sorted(cache.pending.queues["q0"], key=lambda item: (item.enqueued_ms, item.id))

    def runtimes(self) -> list[int | None]:
        return [item.runtime_ms for item in self.items()]


@pytest.mark.parametrize(
    ("promised", "labels", "deadline_s", "more", "minutes"),
    [
        ({}, {}, None, {}, None),
        ({"maxRuntime": "1h"}, {}, None, {}, 60),
        ({}, {LABEL: "30m"}, None, {}, 30),
        ({}, {"kueue.x-k8s.io/max-exec-time-seconds": "600"}, None, {}, 10),
        # Whoever sees to it, the least counts.
        ({"maxRuntime": "1h"}, {LABEL: "2h"}, 1200, {}, 20),
        ({"maxRuntime": "1h"}, {LABEL: "5m"}, 1200, {}, 5),
        ({"maxRuntime": "1h"}, {LABEL: "soon"}, None, {}, 60),
        # What is not stopped, as its pods would run on, has no end but Kubernetes' own.
        ({"maxRuntime": "1h"}, {LABEL: "5m"}, None, PRESERVED, None),
        ({"maxRuntime": "1h"}, {LABEL: "5m"}, 1200, PRESERVED, 20),
    ],
)
def test_the_least_of_all_counts_if_it_is_sure_to_end_it(
    promised: Obj, labels: Mapping[str, str], deadline_s: int | None, more: Obj, minutes: int | None
) -> None:
    line = Line()
    line.promise(**promised)
    line.submit("train", labels, deadline_s=deadline_s, more=more)
    assert line.runtimes() == [None if minutes is None else in_steps(minutes * MINUTE_MS)]


def test_what_waits_hears_of_another_promise() -> None:
    line = Line()
    line.submit("train")
    line.promise(maxRuntime="1h")
    assert line.runtimes() == [in_steps(60 * MINUTE_MS)]
    line.promise(maxRuntime="2h")
    assert line.runtimes() == [in_steps(120 * MINUTE_MS)]
    line.promise()
    assert line.runtimes() == [None]


@pytest.mark.parametrize(
    ("members", "minutes"),
    [(("10m", "30m", "20m"), 30), (("10m", "10m"), 10), (("10m", ""), None)],
)
def test_a_group_runs_for_as_long_as_its_longest_member(
    members: tuple[str, ...], minutes: int | None
) -> None:
    line = Line()
    for number, limit in enumerate(members):
        group = {"fairway.dev/group": "ring", "fairway.dev/group-size": str(len(members))}
        line.submit(f"w{number}", group | ({LABEL: limit} if limit else {}))
    (item,) = line.items()
    assert len(item.members) == len(members)
    assert item.runtime_ms == (None if minutes is None else in_steps(minutes * MINUTE_MS))


def test_growth_runs_no_longer_than_what_it_grows() -> None:
    line = Line()
    line.submit("train", {LABEL: "30m"}, admitted=1)
    (item,) = line.items()
    assert item.is_growth
    assert item.runtime_ms == in_steps(30 * MINUTE_MS)


def test_alike_workloads_of_nearly_the_same_time_are_one_class() -> None:
    line = Line()
    for name, limit in (("a", "3600s"), ("b", "3601s"), ("c", "7200s"), ("d", "3599s")):
        line.submit(name, {LABEL: limit})
    items = {item.name: item for item in line.items()}
    assert len({item.shape for item in items.values()}) == 1
    assert len({item.runtime_ms for item in items.values()}) == 2
