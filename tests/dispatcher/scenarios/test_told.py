"""What is told of workloads that are neither simply waiting nor simply running."""

from collections.abc import Callable

import msgspec
import pytest

from fairway.visibility import QueueView, WorkloadView
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.progress import Progress, let_go_by
from queue_dispatcher.bindings.reading import BindingReader
from queue_dispatcher.visibility.views import Views
from queue_dispatcher.workloads.reclaimable import Done
from queue_dispatcher.workloads.running import running_pods
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.scenarios.world import World, now_s, run


def told(world: World, name: str) -> WorkloadView:
    """The one workload of the name, as people are shown it."""
    controller = world.dispatcher.controller
    views = Views(world.dispatcher.cache, controller.view, int(now_s() * 1000))
    (found,) = views.workloads("team", name).workloads
    return found


async def one_queue(world: World) -> None:
    world.fleet(m1=8)
    world.queue("main", {"m1": 8})
    await world.start()


def reports(world: World, key: str, **status: object) -> None:
    item = {"clusterName": "m1", "applied": True, **({"status": status} if status else {})}
    world.edit(key, lambda obj: obj["status"].update(aggregatedStatus=[item]))


def test_what_is_skipped_and_held_is_not_in_any_queue() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        held = {"suspension": {"scheduling": True}}
        world.submit("mine", queue="", labels={"fairway.dev/skip": ""}, held=False, more=held)
        await world.passes(1)
        mine = told(world, "mine")
        assert mine.state == "Foreign"
        assert mine.waiting is not None
        assert mine.waiting.kind == "LeftAlone"
        assert "fairway.dev/skip" in mine.waiting.text
        assert "spec.suspension.scheduling" in mine.waiting.unblock

    run(scenario)


def test_a_cron_job_is_not_gated() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        world.bind("nightly", kind="CronJob", gpus=0, replicas=0, held=False, more={"replicas": 0})
        await world.passes(1)
        nightly = told(world, "nightly")
        assert (nightly.state, nightly.waiting) == ("NotGated", None)
        assert "made in the members, where no queue is asked" in nightly.note

    run(scenario)


def test_cpu_work_without_a_queue_is_told_to_be_left_alone() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        world.submit("web", queue="", gpus=0, held=False)
        await world.passes(1)
        web = told(world, "web")
        assert (web.state, web.waiting) == ("Foreign", None)
        assert "names no queue" in web.note

    run(scenario)


def test_a_label_that_changes_under_running_work_is_told() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        world.queue("second", {"m1": 8})
        key = world.submit("train")
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert told(world, "train").note == ""

        def relabel(obj: Obj) -> None:
            obj["metadata"]["labels"]["fairway.dev/queue"] = "second"

        world.api.update("/apis/batch/v1/namespaces/team/jobs/train", relabel)
        await world.passes(1)
        train = told(world, "train")
        assert train.cluster_queue == "main"
        assert "names queue second now" in train.note
        assert "counts in queue main, growth included, until it ends" in train.note

    run(scenario)


def test_what_a_policy_keeps_from_its_cluster_is_told_in_the_state() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        key = world.submit("train")
        await world.until(lambda: world.is_placed(key))
        world.edit(key, lambda obj: obj["spec"].update(suspension={"dispatching": True}))
        await world.passes(1)
        train = told(world, "train")
        assert train.state == "DispatchingSuspended"
        assert "nothing of it is sent to m1" in train.note

    run(scenario)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"active": 2, "ready": 2}, ""),
        ({"active": 2, "ready": 0}, "2 of its 2 pods do not run"),
        ({"active": 1, "ready": 1}, "1 of its 2 pods do not run"),
        ({"active": 1, "ready": 1, "succeeded": 1}, ""),
        ({}, "2 of its 2 pods do not run"),
    ],
)
def test_pods_that_wait_after_the_placement_are_told_once_they_are_late(status: Obj, says: str) -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        key = world.submit("train", replicas=2)
        await world.until(lambda: world.is_placed(key))
        reports(world, key, **status)
        await world.passes(1)
        assert told(world, "train").note == ""
        await world.passes(40)
        assert told(world, "train").note.startswith(says)

    run(scenario)


def queues(world: World) -> dict[str, QueueView]:
    controller = world.dispatcher.controller
    views = Views(world.dispatcher.cache, controller.view, int(now_s() * 1000))
    return {queue.name: queue for queue in views.queues(in_flight=0, window=1, is_leader=True).queues}


def test_what_a_deleted_queue_has_admitted_stays_visible() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        world.queue("misc", {"m1": 4})
        key = world.submit("train", queue="misc", gpus=2)
        await world.until(lambda: world.is_placed(key))
        world.api.delete(f"{objects.FAIRWAY}/clusterqueues/misc")
        await world.passes(1)
        misc = queues(world)["misc"]
        assert (misc.admitted, [one.used for one in misc.usage]) == (1, [2])
        assert misc.stopped.startswith("there is no ClusterQueue misc; what it has admitted runs on")
        world.karmada.finish([key])
        await world.passes(1)
        assert set(queues(world)) == {"main"}

    run(scenario)


def test_what_is_charged_and_does_not_run_is_told_of_its_queue_and_of_those_above() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.add(f"{objects.FAIRWAY}/clusterqueues", objects.cluster_queue("root", {"m1": 8}))
        world.queue("main", {"m1": 8}, parent="root")
        await world.start()
        keys = [world.submit(f"w{number}", gpus=2, replicas=2) for number in range(3)]
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(20)

        def idle() -> list[tuple[int, int, int]]:
            return [(q.usage[0].used, q.usage[0].not_running, q.behind_s) for q in queues(world).values()]

        (used, waits, behind_s), main = idle()
        assert (used, waits, main) == (12, 12, (12, 12, behind_s))
        assert 19 <= behind_s <= 21
        reports(world, keys[0], active=2, ready=2)
        reports(world, keys[1], active=2, ready=1)
        await world.passes(1)
        assert idle()[1][:2] == (12, 6)
        reports(world, keys[2], active=2, ready=2)
        await world.passes(1)
        assert idle()[1] == (12, 2, 0)

    run(scenario)


def test_a_queue_can_take_no_more_than_there_is() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        world.queue("other", {"m1": 8})
        await world.start()
        await world.passes(1)
        assert [one.available for queue in queues(world).values() for one in queue.usage] == [8, 8]
        key = world.submit("train", queue="other", gpus=5)
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert [one.available for queue in queues(world).values() for one in queue.usage] == [3, 3]

    run(scenario)


MANAGED = [
    {
        "manager": "karmada-controller-manager",
        "operation": "Update",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    },
    {
        "manager": "kubectl-edit",
        "operation": "Update",
        "time": "2026-03-14T09:26:53Z",
        "fieldsV1": {"f:spec": {"f:suspension": {".": {}, "f:scheduling": {}}}},
    },
]


@pytest.mark.parametrize(
    ("managed", "who"),
    [
        (MANAGED, "kubectl-edit at 2026-03-14T09:26:53Z"),
        (MANAGED[:1], ""),
        ([{**MANAGED[1], "manager": "fairway-dispatcher"}], ""),
        ([{**MANAGED[1], "time": None}], "kubectl-edit"),
        ("nonsense", ""),
        ([{"manager": "x", "fieldsV1": {"f:spec": 7}}], ""),
        (None, ""),
    ],
)
def test_who_cleared_a_hold_stands_in_the_managed_fields(managed: object, who: str) -> None:
    assert let_go_by(msgspec.Raw(msgspec.json.encode(managed))) == who


def test_who_cleared_a_hold_is_told() -> None:
    async def scenario(world: World) -> None:
        await one_queue(world)
        made = objects.binding("train", held=False)
        made["metadata"]["managedFields"] = MANAGED
        world.add("/apis/batch/v1/namespaces/team/jobs", objects.job("train", {"fairway.dev/queue": "main"}))
        world.add(f"{objects.WORK}/namespaces/team/resourcebindings", made)
        await world.passes(1)
        train = told(world, "train")
        assert train.state == "Adopted"
        assert "its hold was cleared by kubectl-edit at 2026-03-14T09:26:53Z" in train.note

    run(scenario)


def placed(**more: object) -> Callable[[Obj | None], Progress]:
    def of(status: Obj | None) -> Progress:
        made = objects.binding("train", replicas=3, held=False, more={**more})
        made["spec"]["clusters"] = [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 1}]
        items = [{"clusterName": name, "status": one} for name, one in (status or {}).items()]
        made["status"] = {"aggregatedStatus": items}
        stated = msgspec.json.decode(msgspec.json.encode(made), type=ResourceBinding)
        return BindingReader().read(stated).progress

    return of


A, B = frozenset("a"), frozenset("b")


@pytest.mark.parametrize(
    ("of", "status", "progress"),
    [
        (placed(), None, Progress(3, 2, unseen=A | B)),
        (placed(), {"a": {"ready": 2}}, Progress(1, 1, unseen=B)),
        (
            placed(),
            {"a": {"ready": 2}, "b": {"succeeded": 1}},
            Progress(ended=(("b", 1),), is_told=True, done=(Done("b", 1, 0),)),
        ),
        (placed(), {"a": {"ready": 9}, "b": {"ready": -3}}, Progress(1, unseen=B, starting=3, is_told=True)),
        (placed(), {"a": "odd", "b": {"ready": 1}}, Progress()),
        (placed(suspension={"dispatching": True}), {"a": {"ready": 2}}, Progress(1, 1, ("a", "b"), unseen=B)),
        (
            placed(suspension={"dispatchingOnClusters": {"clusterNames": ["b", "c"]}}),
            {"a": {"ready": 2}},
            Progress(1, 1, ("b",), unseen=B),
        ),
    ],
)
def test_progress_is_what_members_report(
    of: Callable[[Obj | None], Progress], status: Obj | None, progress: Progress
) -> None:
    assert of(status) == progress


@pytest.mark.parametrize(
    ("group", "kind", "status", "pods"),
    [
        ("apps", "Deployment", {"replicas": 3, "readyReplicas": 2}, 2),
        ("apps", "StatefulSet", {}, 0),
        ("batch.volcano.sh", "Job", {"running": 2, "succeeded": 1, "pending": 4}, 3),
        (
            "kubeflow.org",
            "PyTorchJob",
            {"replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": 2, "failed": 1}}},
            3,
        ),
        ("kubeflow.org", "PyTorchJob", {"replicaStatuses": 3}, None),
        ("jobset.x-k8s.io", "JobSet", {"restarts": 1}, None),
        ("batch", "Job", {"ready": "two"}, None),
    ],
)
def test_kinds_tell_how_many_of_their_pods_run(group: str, kind: str, status: Obj, pods: int | None) -> None:
    assert running_pods(group, kind, msgspec.Raw(msgspec.json.encode(status))) == pods


NASTY = "\x1b[2Jno\nmore\u202e\x00"


@pytest.mark.parametrize(
    "said",
    [
        {"fairway.dev/queue": "main", "check.fairway.dev/budget": f"Rejected; {NASTY}"},
        {"fairway.dev/queue": NASTY},
        {"fairway.dev/queue": "main", "fairway.dev/class": NASTY},
    ],
    ids=lambda said: list(said)[-1],
)
def test_whatever_tenants_write_is_told_as_it_is_and_commands_no_terminal(said: dict[str, str]) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8}, admissionChecks=[{"name": "budget"}])
        await world.start()
        key = world.submit("train", said=said)
        world.edit(key, lambda obj: obj["metadata"].setdefault("annotations", {}).update(said))
        await world.passes(5)
        train = told(world, "train")
        assert train.waiting is not None
        shown = train.waiting.text + train.note
        assert shown.isprintable()
        assert r"\x1b[2Jno" in shown
        assert r"more\u202e" in shown

    run(scenario)
