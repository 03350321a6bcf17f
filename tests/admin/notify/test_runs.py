"""Whole runs: who is told where, how often, and what a rerun does after each kind of failure."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from admin.notify.record import record_of
from sandbox.fakeapi import ApiFault, Cut, Seen, requests
from sandbox.fakeapi.store import Obj
from sandbox.fakeapi.virtual_time import run
from tests.admin.notify.world import Cluster, World, idle, outcomes, problems, reference
from tests.usage.agents import DeviceBuilder

HOUR_S, DAY_S = 3600.0, 86_400.0
EVENTS = requests(verb="create", path="/events")
RECORDS = requests(path="/configmaps")
OVERSIZED = DeviceBuilder("GPU-0").doing(10, 30, 5)
JOBSET = "jobset.x-k8s.io/v1alpha2"

Scenario = Callable[[World], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scenario], None]:
    def played(scenario: Scenario) -> None:
        async def main() -> None:
            async with AsyncExitStack() as stack:
                world = World(tmp_path, stack)
                await world.member("east")
                await scenario(world)

        run(main())

    return played


Play = Callable[[Scenario], None]


def test_an_owner_is_told_what_is_idle_since_when_and_what_to_do(play: Play) -> None:
    async def scenario(world: World) -> None:
        job = world.east.idler()
        found = await world.run()
        assert outcomes(found) == {"east team/Job/train": "told"}
        (event,) = world.east.events()
        metadata = job["metadata"]
        assert event["involvedObject"] == {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "team",
            "name": "train",
            "uid": metadata["uid"],
        }
        assert (event["reason"], event["type"]) == ("IdleDevices", "Normal")
        assert event["source"] == {"component": "fairway-notify"}
        assert event["firstTimestamp"] == "2026-11-22T12:00:00Z"
        assert event["message"] == (
            "Of 1 device (NVIDIA-H100) in east: 1 idle for up to 2h (since 2026-11-22 10:00 UTC), 2.0 "
            "device-hours so far: end it or ask for fewer. Unused now: as much as 1 device. To look: "
            "fairway top -n team --by pod. Told once a day at most."
        )

    play(scenario)


@pytest.mark.parametrize("every_s", [1800.0, HOUR_S, DAY_S - 20, DAY_S])
def test_once_a_day_and_every_day_however_often_it_runs(play: Play, every_s: float) -> None:
    async def scenario(world: World) -> None:
        world.east.idler()
        told = []
        at_s = 17 * 60.0
        while at_s < 2 * DAY_S + HOUR_S:
            await world.run(at_s)
            if world.east.events():
                told.append(at_s)
            world.east.forget_events()
            at_s += every_s
        assert len(told) == 3
        assert all(later - earlier > DAY_S - HOUR_S for earlier, later in pairwise(told))

    play(scenario)


def test_a_workload_that_is_made_anew_is_another_one(play: Play) -> None:
    async def scenario(world: World) -> None:
        first = world.east.idler()
        await world.run()
        world.east.api.delete("/apis/batch/v1/namespaces/team/jobs/train")
        world.east.api.delete("/api/v1/namespaces/team/pods/train-0")
        second = world.east.idler()
        await world.run(HOUR_S)
        assert len(world.east.events()) == 2
        assert set(world.east.recorded()) == {first["metadata"]["uid"], second["metadata"]["uid"]}

    play(scenario)


def test_two_runs_at_once_tell_once(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(12):
            world.east.idler(f"train-{number}")
        world.east.api.delay(0.5, 5, when=EVENTS)
        await asyncio.gather(world.run(), world.run(5), world.run(7))
        assert len(world.east.events()) == 12

    play(scenario)


def ends_of_a_run() -> list[object]:
    """Each write at which a run may end, before and after it takes effect: read, claim, Event, settle."""
    return [
        pytest.param(verb, part, cut, id=f"{verb} {part} {cut.name}")
        for verb, part in (("create", "/configmaps"), ("create", "/events"), ("update", "/configmaps"))
        for cut in Cut
    ]


@pytest.mark.parametrize(("verb", "part", "cut"), ends_of_a_run())
def test_a_run_that_breaks_off_is_made_good_by_the_next_and_nobody_is_told_twice(
    play: Play, verb: str, part: str, cut: Cut
) -> None:
    async def scenario(world: World) -> None:
        world.east.idler("a")
        world.east.idler("b")
        world.east.api.cut(cut, 1_000, when=requests(verb=verb, path=part))
        await world.run()
        world.east.api.faults.clear()
        found = await world.run(600)
        assert set(outcomes(found).values()) <= {"told", "told within a day"}
        assert world.east.told() == ["IdleDevices Job/a", "IdleDevices Job/b"]

    play(scenario)


@pytest.mark.parametrize(("verb", "part", "cut"), ends_of_a_run())
def test_when_events_are_forgotten_before_the_next_run_nobody_is_told_twice(
    play: Play, verb: str, part: str, cut: Cut
) -> None:
    async def scenario(world: World) -> None:
        world.east.idler("a")
        world.east.api.cut(cut, 1_000, when=requests(verb=verb, path=part))
        await world.run()
        before = world.east.told()
        world.east.api.faults.clear()
        world.east.forget_events()
        await world.run(2 * HOUR_S)
        assert len(before + world.east.told()) <= 1
        world.east.forget_events()
        await world.run(DAY_S + 3 * HOUR_S)
        assert world.east.told() == ["IdleDevices Job/a"]

    play(scenario)


def test_what_was_refused_is_told_by_the_next_run_that_may(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.namespace("other")
        world.east.idler("a")
        world.east.idler("b", "other")
        world.east.api.fail(403, 1_000, when=requests(path="/namespaces/team/events"))
        found = await world.run()
        assert outcomes(found) == {"east team/Job/a": "not told", "east other/Job/b": "told"}
        assert found.is_partial
        (problem,) = problems(found.lines)
        assert "/api/v1/namespaces/team/events: 403" in problem
        assert "expected permission" in problem
        world.east.api.faults.clear()
        await world.run(2 * HOUR_S)
        assert world.east.told() == ["IdleDevices Job/a"]
        assert world.east.told("other") == ["IdleDevices Job/b"]

    play(scenario)


def test_where_records_cannot_be_read_or_written_nobody_is_told(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.idler()
        for which in (RECORDS, requests(verb="create", path="/configmaps")):
            world.east.api.fail(403, 1_000, when=which)
            found = await world.run()
            assert outcomes(found) == {"east team/Job/train": "not told"}
            assert "configmaps" in problems(found.lines)[0]
            assert world.east.events() == []
            world.east.api.faults.clear()

    play(scenario)


def test_a_dry_run_does_not_need_to_know_who_was_told(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.idler()
        world.east.api.authorization = _Denying("configmaps")  # type: ignore[assignment]  # A check.
        assert outcomes(await world.run(dry_run=True)) == {"east team/Job/train": "would be told"}
        assert outcomes(await world.run()) == {"east team/Job/train": "not told"}

    play(scenario)


def test_a_namespace_for_records_that_is_not_there_is_named_with_the_cure(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.idler()
        world.east.api.fail(404, 1_000, when=requests(verb="create", path="/configmaps"))
        (problem,) = problems((await world.run()).lines)
        assert problem.endswith("make namespace fairway-system, or name another (--record-namespace)")

    play(scenario)


def test_a_server_that_goes_away_half_way_costs_only_its_own(play: Play) -> None:
    async def scenario(world: World) -> None:
        west = await world.member("west")
        for number in range(20):
            world.east.idler(f"train-{number}")
        west.idler()
        served = 0

        def gone(seen: Seen) -> bool:
            nonlocal served
            served += EVENTS(seen)
            return served > 6

        world.east.api.cut(Cut.BEFORE, 1_000_000, when=gone)
        found = await world.run()
        told = outcomes(found)
        assert told["west team/Job/train"] == "told"
        assert sorted(told.values()).count("not told") == 14
        # A server that is gone is not asked for each of them.
        assert len(world.east.api.seen) < 100
        world.east.api.faults.clear()
        await world.run(900)
        assert len(world.east.events()) == 20

    play(scenario)


def test_a_cluster_that_is_down_does_not_keep_others_from_theirs(play: Play) -> None:
    async def scenario(world: World) -> None:
        west = await world.member("west")
        west.idler()
        world.east.measure = lambda *_: None  # type: ignore[method-assign]  # Nobody writes there.
        world.east.api.fail(503, 1_000)
        found = await world.run()
        assert [failure.cluster for failure in found.failures] == ["east"]
        assert west.told() == ["IdleDevices Job/train"]

    play(scenario)


def test_namespaces_that_may_not_be_read_tell_nobody_and_say_so(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.idler()
        world.east.api.fail(403, 1_000, when=lambda seen: seen.path == "/api/v1/namespaces")
        found = await world.run()
        assert found.lines == ()
        (failure,) = found.failures
        assert "who wants to be told is not known" in failure.problem
        assert "403" in failure.problem

    play(scenario)


@pytest.mark.parametrize("value", [None, "", "false", "True", "yes", "x" * 63])
def test_only_namespaces_that_ask_are_told(play: Play, value: str | None) -> None:
    async def scenario(world: World) -> None:
        world.east.namespace("quiet", value)
        world.east.idler(namespace="quiet")
        world.east.idler()
        found = await world.run()
        assert world.east.told("quiet") == []
        assert world.east.told() == ["IdleDevices Job/train"]
        notes = [note.text for note in found.notes if "quiet" in note.text]
        assert bool(notes) == (value not in (None, "", "false"))
        assert all("expected true or false, found" in note for note in notes)

    play(scenario)


def test_a_dry_run_writes_nothing_and_says_who_would_be_told(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.idler()
        assert outcomes(await world.run(dry_run=True)) == {"east team/Job/train": "would be told"}
        assert world.east.events() == []
        assert world.east.recorded() == {}
        await world.run()
        assert outcomes(await world.run(dry_run=True)) == {"east team/Job/train": "told within a day"}

    play(scenario)


@pytest.mark.parametrize("later_s", [HOUR_S, DAY_S])
def test_what_a_few_minutes_show_is_told_when_it_is_seen_again(play: Play, later_s: float) -> None:
    async def scenario(world: World) -> None:
        world.east.pod("train-0", OVERSIZED, by=world.east.job("train"))
        for after_s in (0, 600):
            assert outcomes(await world.run(after_s)) == {"east team/Job/train": "told when seen again"}
            assert world.east.events() == []
        assert outcomes(await world.run(later_s)) == {"east team/Job/train": "told"}
        assert outcomes(await world.run(later_s + HOUR_S)) == {"east team/Job/train": "told within a day"}
        assert world.east.told() == ["OversizedDevices Job/train"]

    play(scenario)


def test_what_cannot_be_noted_is_told_with_the_reason(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.pod("train-0", OVERSIZED, by=world.east.job("train"))
        world.east.api.cut(Cut.BEFORE, 1_000, when=requests(verb="create", path="/configmaps"))
        found = await world.run()
        assert outcomes(found) == {"east team/Job/train": "not told"}
        assert "could not be written" in problems(found.lines)[0]
        world.east.api.faults.clear()
        assert outcomes(await world.run(60)) == {"east team/Job/train": "told when seen again"}

    play(scenario)


@pytest.mark.parametrize(
    ("device", "agent_age_s"),
    [
        (DeviceBuilder("GPU-0").unmeasured(), 30),
        (idle("GPU-0"), 601),
        (idle("GPU-0"), -601),
        (idle("GPU-0", 3500), 30),
    ],
    ids=["not measured", "stale", "by a clock that is ahead", "idle for too short a time"],
)
def test_nothing_is_told_of_what_is_not_known(play: Play, device: DeviceBuilder, agent_age_s: float) -> None:
    async def scenario(world: World) -> None:
        world.east.pod("train-0", device, by=world.east.job("train"))
        found = await world.run(agent_age_s=agent_age_s)
        assert found.lines == ()
        assert world.east.events() == []

    play(scenario)


def jobset(cluster: Cluster, of: str = "", size: int = 2) -> None:
    """A JobSet of Jobs with an idle pod each."""
    top = cluster.make(JOBSET, "JobSet", "pretrain", of=of)
    for number in range(size):
        job = cluster.job(f"pretrain-{number}", by=top)
        cluster.pod(f"pretrain-{number}-0", idle(f"GPU-{number}"), by=job)


def test_what_controls_a_workload_is_told_once_for_all_its_parts(play: Play) -> None:
    async def scenario(world: World) -> None:
        jobset(world.east, size=3)
        await world.run()
        assert world.east.told() == ["IdleDevices JobSet/pretrain"]
        assert world.east.events()[0]["message"].startswith("Of 3 devices (NVIDIA-H100) in east: 3 idle")

    play(scenario)


def test_behind_a_replica_set_is_its_deployment(play: Play) -> None:
    async def scenario(world: World) -> None:
        deployment = world.east.make("apps/v1", "Deployment", "web")
        replicas = world.east.make("apps/v1", "ReplicaSet", "web-5f6", by=deployment)
        world.east.pod("web-5f6-a", idle("GPU-0"), by=replicas)
        label = {"pod-template-hash": "5f6"}
        world.east.api.update(
            "/api/v1/namespaces/team/pods/web-5f6-a", lambda obj: obj["metadata"].update(labels=label)
        )
        await world.run()
        (event,) = world.east.events()
        assert event["involvedObject"]["kind"] == "Deployment"
        assert event["involvedObject"]["uid"] == deployment["metadata"]["uid"]

    play(scenario)


def test_a_pod_that_nobody_controls_is_told_itself(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.pod("lab", idle("GPU-0"))
        await world.run()
        assert world.east.told() == ["IdleDevices Pod/lab"]

    play(scenario)


def test_a_workload_that_is_gone_or_going_is_not_told(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.idler("a")
        world.east.idler("b")
        world.east.api.delete("/apis/batch/v1/namespaces/team/jobs/a")
        going = "/apis/batch/v1/namespaces/team/jobs/b"
        world.east.api.update(going, lambda obj: obj["metadata"].update(finalizers=["example.com/x"]))
        world.east.api.delete(going)
        found = await world.run()
        assert (found.lines, found.failures) == ((), ())

    play(scenario)


@pytest.mark.parametrize("spread", [False, True])
def test_what_may_not_be_read_is_known_by_what_names_it(play: Play, spread: bool) -> None:
    async def scenario(world: World) -> None:
        jobset(world.east, size=1)
        if spread:
            (await world.control_plane()).make(JOBSET, "JobSet", "pretrain")
        world.east.api.authorization = _Denying("jobsets")  # type: ignore[assignment]  # A check.
        await world.run()
        told = ["IdleDevices JobSet/pretrain"]
        assert (world.karmada or world.east).told() == told
        assert world.east.told() == ([] if spread else told)

    play(scenario)


class _Denying:
    """Everything but one resource."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def check(self, seen: Seen) -> None:
        if f"/{self._resource}/" in seen.path:
            raise ApiFault(403, "Forbidden", f'forbidden: User "u" cannot get resource "{self._resource}"')


@pytest.mark.parametrize(
    "name", ["../../../../api/v1/namespaces/kube-system", "x/y", "..", "a%2fb", "a?b=c", ""]
)
def test_a_name_that_leads_elsewhere_is_not_followed(play: Play, name: str) -> None:
    async def scenario(world: World) -> None:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u", "controller": True}
        world.east.pod("p", idle("GPU-0"))
        world.east.api.update(
            "/api/v1/namespaces/team/pods/p", lambda obj: obj["metadata"].update(ownerReferences=[owner])
        )
        found = await world.run()
        assert found.lines == ()
        asked = [seen.path for seen in world.east.api.seen if seen.path.startswith("/apis/batch")]
        assert asked == []

    play(scenario)


UID = "ffffffff-0000-4000-8000-000000000000"
NONSENSE = ("not a key! 3", "x" * 5_000, "../..")
STATED = [
    *((field, text) for field in ("uid", "kind", "name", "apiVersion") for text in NONSENSE),
    ("uid", UID),
    ("uid", "another's"),
    ("kind", "Pod"),
    ("name", "Not_An.Events:Name"),
    ("apiVersion", "example.com/v1"),
]
"""What the author of a pod chooses, in place of what is true of its owner."""


@pytest.mark.parametrize(("field", "text"), STATED)
@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_what_a_pod_says_of_its_owner_costs_nobody_else(play: Play, kind: str, field: str, text: str) -> None:
    async def scenario(world: World) -> None:
        top = world.east.make(JOBSET, "JobSet", "pretrain")
        job = world.east.job("train")
        named, other = (job, top) if kind == "Job" else (top, job)
        # JobSets are known by what names them alone.
        world.east.api.authorization = _Denying("jobsets")  # type: ignore[assignment]  # A check.
        owner = {**reference(named), field: other["metadata"]["uid"] if text == "another's" else text}
        world.east.pod("evil", idle("GPU-evil"))
        world.east.api.update(
            "/api/v1/namespaces/team/pods/evil", lambda obj: obj["metadata"].update(ownerReferences=[owner])
        )
        assert "not told" not in outcomes(await world.run()).values()
        world.east.pod("train-0", idle("GPU-train"), by=job)
        world.east.pod("pretrain-0", idle("GPU-pretrain"), by=top)
        await world.run(HOUR_S)
        events = world.east.events()
        for one in (top, job):
            of = {"namespace": "team", **reference(one)}
            del of["controller"]
            (message,) = (event["message"] for event in events if event["involvedObject"] == of)
            assert message.startswith("Of 1 device ")
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", event["metadata"]["name"]) for event in events)
        assert all(re.fullmatch(r"[-.a-z0-9]{1,40}", key) for key in world.east.recorded())

    play(scenario)


def test_what_others_keep_in_a_record_stays(play: Play) -> None:
    async def scenario(world: World) -> None:
        uid = world.east.idler()["metadata"]["uid"]
        await world.run()
        path = f"/api/v1/namespaces/fairway-system/configmaps/{record_of(uid)}"
        others = {"readme": "x", "last": "2026-11-20T12:00:00Z"}
        marks = {"labels": {"backup": "yes"}, "annotations": {"example.com/a": "b"}}

        def mark(obj: Obj) -> None:
            obj["metadata"] |= marks
            obj["binaryData"] = {"logo": "AAEC"}
            obj["data"] |= others

        world.east.api.update(path, mark)
        assert outcomes(await world.run(DAY_S)) == {"east team/Job/train": "told"}
        (record,) = world.east.api.store.collection("v1", "configmaps").records.values()
        obj = record.decode()
        assert obj["metadata"] == obj["metadata"] | marks
        assert obj["binaryData"] == {"logo": "AAEC"}
        assert obj["data"] == {**others, uid: "2026-11-23T12:00:00Z"}

    play(scenario)


def test_a_workload_that_karmada_has_spread_is_told_once_on_its_template(play: Play) -> None:
    async def scenario(world: World) -> None:
        karmada = await world.control_plane()
        template = karmada.make(JOBSET, "JobSet", "pretrain")
        for name in ("west", "north", "south"):
            await world.member(name)
        for cluster in world.clusters:
            jobset(cluster, of=template["metadata"]["uid"])
            # Its name alone does not make a workload Karmada's.
        own = world.east.idler("own")
        karmada.job("own")
        found = await world.run()
        assert outcomes(found) == {"karmada team/JobSet/pretrain": "told", "east team/Job/own": "told"}
        assert karmada.told() == ["IdleDevices JobSet/pretrain"]
        (event,) = karmada.events()
        assert event["involvedObject"]["uid"] == template["metadata"]["uid"]
        assert event["message"].startswith(
            "Of 8 devices (NVIDIA-H100) in east, north, south and 1 more: 8 idle for up to 2h"
        )
        assert [cluster.told() for cluster in world.clusters] == [["IdleDevices Job/own"], [], [], []]
        assert own["metadata"]["uid"] in world.east.recorded()
        await world.run(HOUR_S)
        assert len(karmada.events()) == 1

    play(scenario)


def test_of_a_template_that_is_not_there_any_more_the_members_object_is_told(play: Play) -> None:
    async def scenario(world: World) -> None:
        karmada = await world.control_plane()
        karmada.make(JOBSET, "JobSet", "pretrain")
        jobset(world.east, of="the uid of an earlier one")
        await world.run()
        assert (karmada.told(), world.east.told()) == ([], ["IdleDevices JobSet/pretrain"])

    play(scenario)


def test_while_karmada_cannot_be_asked_its_workloads_are_not_told_five_times(play: Play) -> None:
    async def scenario(world: World) -> None:
        karmada = await world.control_plane()
        template = karmada.make(JOBSET, "JobSet", "pretrain")
        await world.member("west")
        for cluster in world.clusters:
            jobset(cluster, of=template["metadata"]["uid"])
        world.east.pod("lab", idle("GPU-lab"))
        await karmada.api.refuse()
        found = await world.run()
        assert found.is_partial
        assert world.clusters[1].told() == []
        assert "IdleDevices JobSet/pretrain" not in world.east.told()
        await karmada.api.start()
        await world.run(60)
        assert karmada.told() == ["IdleDevices JobSet/pretrain"]

    play(scenario)


def test_a_namespace_with_more_than_a_run_tells_does_not_hold_up_others(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.east.namespace("small")
        for number in range(50):
            world.east.idler(f"train-{number:02}")
        world.east.idler("one", "small")
        found = await world.run(limit=3)
        assert len(world.east.events()) == 3
        assert world.east.told("small") == ["IdleDevices Job/one"]
        (rest,) = found.rest
        assert (rest.where, rest.namespace, rest.workloads) == ("east", "team", 47)
        # The next ones are told by the next run.
        await world.run(HOUR_S, limit=3)
        assert len({one["involvedObject"]["name"] for one in world.east.events()}) == 6

    play(scenario)
