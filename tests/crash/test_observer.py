"""Each thing that must not be is shown to the observer once, and has to be found."""

import asyncio
import json
from collections.abc import Callable

import pytest

from sandbox.fakeapi import FakeApi
from sandbox.fakeapi.store import Obj
from tests.crash.objects import binding, binding_path
from tests.crash.observer import Observer
from tests.crash.quota import Limits, Queue
from tests.crash.schedule import CLUSTERS, LOOSE, ROOT, Schedule, Workload
from tests.crash.views import ADMISSION, GPU, REQUEUE, bindings, view_of

EAST = CLUSTERS[0]
FIRST, SECOND, LARGE, MEMBER, OTHER = WORKLOADS = (
    Workload(LOOSE, "first", 1, 2, (EAST,), 0.0, 1.0),
    Workload(LOOSE, "second", 1, 2, (EAST,), 0.0, 1.0),
    Workload(LOOSE, "large", 1, 9, (EAST,), 0.0, 1.0),
    Workload(LOOSE, "member", 1, 1, (EAST,), 0.0, 1.0, group="gang", group_size=2),
    Workload(LOOSE, "other", 1, 1, (EAST,), 0.0, 1.0, group="gang", group_size=2),
)
QUEUES = (Queue(ROOT), Queue(LOOSE, ROOT, {EAST: Limits(8)}))
Step = Callable[[FakeApi], object]


def create(workload: Workload) -> Step:
    return lambda api: api.create(*binding(workload))


def edit(workload: Workload, change: Callable[[Obj], object]) -> Step:
    return lambda api: api.update(binding_path(workload.key), change)


def admit(workload: Workload, **wrong: object) -> Step:
    def admitted(obj: Obj) -> None:
        record: Obj = {
            "id": obj["metadata"]["uid"],
            "queue": LOOSE,
            "enqueuedAt": obj["metadata"]["creationTimestamp"],
            "requests": {GPU: obj["spec"]["replicas"] * workload.gpus},
            "flavors": {GPU: [EAST]},
            **({"group": workload.group} if workload.group else {}),
            **wrong,
        }
        obj["metadata"].setdefault("annotations", {})[ADMISSION] = json.dumps(record)
        obj["metadata"]["annotations"].pop(REQUEUE, None)
        obj["spec"]["suspension"]["scheduling"] = False

    return edit(workload, admitted)


def take_back(workload: Workload, count: int = 1) -> Step:
    def taken(obj: Obj) -> None:
        obj["metadata"]["annotations"] = {REQUEUE: json.dumps({"count": count})}
        obj["spec"]["suspension"]["scheduling"] = True

    return edit(workload, taken)


def displace(workload: Workload, by: Workload, **wrong: object) -> Step:
    def step(api: FakeApi) -> object:
        namespace, _, name = by.key.partition("/")
        uid = view_of(bindings(api.store).records[namespace, name]).uid

        def displaced(obj: Obj) -> None:
            requeue = {"count": 0, "cause": "Preempted", "by": uid, **wrong}
            obj["metadata"]["annotations"] = {REQUEUE: json.dumps(requeue)}
            obj["spec"]["suspension"]["scheduling"] = True
            obj["spec"]["clusters"] = []

        return api.update(binding_path(workload.key), displaced)

    return step


def place(workload: Workload) -> Step:
    def placed(obj: Obj) -> None:
        obj["spec"]["clusters"] = [{"name": EAST, "replicas": obj["spec"]["replicas"]}]

    return edit(workload, placed)


def finish(workload: Workload) -> Step:
    status = {"conditions": [{"type": "Complete", "status": "True"}]}

    def finished(obj: Obj) -> None:
        obj["status"] = {"aggregatedStatus": [{"clusterName": EAST, "status": status}]}

    return edit(workload, finished)


def flag(workload: Workload, held: bool) -> Step:
    return edit(workload, lambda obj: obj["spec"]["suspension"].update(scheduling=held))


def forget(workload: Workload) -> Step:
    return edit(workload, lambda obj: obj["metadata"].pop("annotations"))


def scale(workload: Workload, replicas: int) -> Step:
    return edit(workload, lambda obj: obj["spec"].update(replicas=replicas))


def observed(*steps: Step) -> Observer:
    """An observer that has seen these steps, after all workloads were created in their order."""

    async def run() -> Observer:
        api = FakeApi()
        observer = Observer(api, Schedule(0, QUEUES, {EAST: 12}, WORKLOADS))
        observing = asyncio.create_task(observer.run())
        await asyncio.sleep(0)
        for step in (*map(create, WORKLOADS), *steps):
            step(api)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        observing.cancel()
        await asyncio.wait((observing,))
        return observer

    return asyncio.run(run())


@pytest.mark.parametrize(
    "steps",
    [
        (admit(FIRST), place(FIRST), finish(FIRST)),
        (admit(FIRST), admit(SECOND)),
        (admit(FIRST), take_back(FIRST), admit(FIRST), place(FIRST)),
        (admit(FIRST), take_back(FIRST), admit(FIRST), take_back(FIRST, 2)),
        (admit(FIRST), place(FIRST), scale(FIRST, 2), flag(FIRST, held=True), admit(FIRST)),
        (admit(FIRST), flag(FIRST, held=True), flag(FIRST, held=False)),
        (admit(FIRST), place(FIRST), displace(FIRST, by=OTHER), admit(FIRST), place(FIRST)),
        (admit(FIRST), place(FIRST), finish(FIRST), admit(SECOND)),
    ],
)
def test_what_is_right_is_not_complained_about(steps: tuple[Step, ...]) -> None:
    assert observed(*steps).faults == []


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((admit(LARGE),), "more than its whole tree has"),
        ((admit(FIRST, requests={GPU: 1}),), "admitted with"),
        ((admit(FIRST, id="another"),), "its record is of another"),
        ((admit(FIRST, queue="alpha"),), "admitted to queue alpha"),
        ((admit(FIRST, group="gang"),), "in group 'gang'"),
        ((admit(SECOND),), "which is like it and came earlier"),
        ((flag(FIRST, held=False),), "released without a record"),
        ((flag(FIRST, held=False), admit(FIRST)), "its flag went from False to False"),
        ((admit(FIRST), forget(FIRST)), "was not taken back"),
        ((admit(FIRST), forget(FIRST), admit(FIRST)), "its flag went from False"),
        ((admit(FIRST), place(FIRST), take_back(FIRST)), "taken back while placed"),
        ((admit(FIRST), displace(FIRST, by=OTHER, count=1)), "being displaced counts as a try"),
        ((admit(FIRST), admit(SECOND), displace(FIRST, by=SECOND)), "which does not wait"),
        ((admit(FIRST), displace(FIRST, by=OTHER), place(FIRST), admit(FIRST)), "admitted while placed"),
        ((place(FIRST), admit(FIRST)), "admitted while placed"),
        ((admit(FIRST), admit(FIRST, enqueuedAt="earlier")), "its record's enqueuedAt became 'earlier'"),
        ((admit(FIRST), admit(FIRST, enqueuedAt="x-later")), "its record's enqueuedAt became 'x-later'"),
        ((admit(FIRST), admit(FIRST, enqueuedAt="", requests={GPU: 9})), "its record's enqueuedAt became ''"),
        ((admit(FIRST), admit(FIRST, admittedAt="later")), "rewritten for nothing"),
        ((admit(FIRST), admit(FIRST, requests={GPU: 3})), "it asks for"),
        ((admit(FIRST), place(FIRST), finish(FIRST), flag(FIRST, held=True)), "touched after it had"),
    ],
)
def test_what_must_not_be_is_found(steps: tuple[Step, ...], told: str) -> None:
    faults = observed(*steps).faults
    assert told in " ".join(faults)


def test_what_must_not_be_at_rest_is_found() -> None:
    half = observed(admit(MEMBER))
    assert list(half.wrong_at_rest()) == ["group beta/gang: half of it is admitted"]
    assert list(observed(admit(MEMBER), admit(OTHER)).wrong_at_rest()) == []
    del half.now[FIRST.key]
    assert f"{FIRST.key}: lost" in half.wrong_at_rest()


def test_who_was_displaced_in_vain_is_found() -> None:
    seen = observed(admit(FIRST), displace(FIRST, by=SECOND), admit(SECOND), place(SECOND))
    seen.displaced = {EAST: 2}
    assert (list(seen.wrong_at_rest()), list(seen.idle())) == ([], ["of 12 GPUs in east 2 are in use"])
    seen.displaced = {EAST: 1}
    assert list(seen.wrong_at_rest()) == ["2 GPUs in east were displaced, and 1 are enough"]


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ((), "pending"),
        ((admit(FIRST), place(FIRST)), "running"),
        ((admit(FIRST), place(FIRST), finish(FIRST)), "finished"),
        ((admit(FIRST), place(FIRST), scale(FIRST, 2), place(FIRST)), "running with a record of"),
        ((admit(FIRST),), "View("),
        ((admit(FIRST), take_back(FIRST)), "View("),
        ((admit(FIRST), place(FIRST), displace(FIRST, by=SECOND)), "displaced"),
        ((admit(FIRST), place(FIRST), flag(FIRST, held=True)), "View("),
    ],
)
def test_an_end_is_told_from_what_is_none(steps: tuple[Step, ...], end: str) -> None:
    assert observed(*steps).ending()[FIRST.key].startswith(end)
