"""The dispatcher without one permission: it says which, once, stays up, and goes without what that gives."""

import asyncio
import logging

import pytest

from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.visibility.waiting import waiting_of
from sandbox.fakeapi.authorization import Authorization, Rule
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import FAIRWAY
from tests.dispatcher.scenarios.world import World, run
from tests.rbac import dispatching, roles
from tests.rbac.dispatching import ADMITTED, Process, furnish
from tests.rbac.roles import DISPATCHER
from tests.rbac.test_minimal import atoms, name

READS = ("list", "watch")
NEEDED = (
    "resourcebindings",
    "clusterresourcebindings",
    "clusters",
    "resourceflavors",
    "clusterqueues",
    "localqueues",
)
POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/team/propagationpolicies"


def own_atoms() -> list[Rule]:
    """All but those of the template reader, of which one kind is like the other."""
    return [
        atom
        for atom in atoms(roles.karmada())
        if atom.source.partition(" ")[2].startswith("fairway-dispatcher")
        or (atom.source.endswith("template-reader") and atom.groups == ("ray.io",))
    ]


def without(*atoms: Rule) -> Authorization:
    authorization = roles.karmada()
    for atom in atoms:
        authorization.without(DISPATCHER, atom)
    return authorization


def reading(resource: str) -> list[Rule]:
    return [atom for atom in own_atoms() if atom.resources == (resource,) and atom.verbs[0] in READS]


def full_resource(atom: Rule) -> str:
    plural, slash, part = atom.resources[0].partition("/")
    return f"{plural}.{atom.groups[0]}{slash}{part}" if atom.groups[0] else atom.resources[0]


def entry_of(process: Process, key: str) -> Entry:
    (entry,) = (one for one in process.dispatcher.cache.entries.values() if one.binding.key == key)
    return entry


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "fairway.kube.denials" and record.levelno == logging.WARNING
    ]


@pytest.mark.parametrize("atom", own_atoms(), ids=name)
def test_it_says_what_it_misses_and_stays_up(atom: Rule, caplog: pytest.LogCaptureFixture) -> None:
    (verb,), (resource,) = atom.verbs, atom.resources

    async def scenario(world: World) -> None:
        world.api.authorization = without(atom)
        furnish(world)
        async with dispatching.process(world, asks=True) as process:
            kind = {"rayclusters": "RayCluster", "rayjobs": "RayJob", "rayservices": "RayService"}.get(
                resource
            )
            kinds = [(kind, "ray.io")] if kind else []
            repeats = (verb, resource) == ("patch", "events")
            await dispatching.everything(world, process, kinds, repeats_events=repeats)
            assert not process.task.done()
            (denial,) = process.client.denials.current()
            assert (denial.verb, denial.resource, denial.user) == (verb, full_resource(atom), DISPATCHER)
            (told,) = warnings(caplog)
            assert f'user "{DISPATCHER}" may not {verb} {full_resource(atom)} ' in told
            assert denial.permission is not None
            assert told.endswith(
                f"without it: {denial.permission.lost}; {denial.permission.manifest} grants it"
            )
            stops = verb in READS and resource in NEEDED
            assert bool(process.sources.missing()) == stops
            if resource != "leases" and (verb, resource) != ("patch", "resourcebindings"):
                assert (world.record(ADMITTED) is not None) == (not stops)

    run(scenario)


@pytest.mark.parametrize("resource", NEEDED)
def test_what_it_cannot_do_without_is_waited_for(resource: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.api.authorization = without(*reading(resource))
        furnish(world)
        async with dispatching.process(world) as process:
            await world.passes(5)
            assert world.is_held(ADMITTED)
            (missing,) = process.sources.missing()
            assert missing.startswith(f"{resource}.")
            assert f'User "{DISPATCHER}" cannot list resource "{resource}"' in missing
            world.api.authorization = roles.karmada()
            await world.until(lambda: world.is_placed(ADMITTED))
            assert process.client.denials.current() == ()

    caplog.set_level(logging.INFO)
    run(scenario)
    assert any(f"may list {resource}." in record.getMessage() for record in caplog.records)


def priority_class(world: World, process: Process) -> str:
    world.add("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 7})
    return world.submit("other", more={"replicaRequirements": _requirements("high")})


def _requirements(priority_class: str) -> dict[str, object]:
    return {"priorityClassName": priority_class, "resourceRequest": {objects.GPU: "1"}}


def test_without_priority_classes_priorities_are_0_and_say_why() -> None:
    async def scenario(world: World) -> None:
        world.api.authorization = without(*reading("priorityclasses"))
        furnish(world)
        async with dispatching.process(world) as process:
            key = priority_class(world, process)
            await world.until(lambda: world.is_placed(key))
            entry = entry_of(process, key)
            assert entry.priority.value == 0
            (note,) = entry.priority.notes
            assert note.startswith("PriorityClass high is not known: passed over; ")
            assert 'cannot list resource "priorityclasses"' in note
            # Looked for again every minute.
            world.api.authorization = roles.karmada()
            await world.passes(61)
            await process.dispatcher.controller.settled()
            assert (entry.priority.value, entry.priority.notes) == (7, ())

    run(scenario)


def test_without_policies_the_queue_that_one_names_is_passed_over() -> None:
    async def scenario(world: World) -> None:
        world.api.authorization = without(*reading("propagationpolicies"))
        furnish(world)
        annotated = {"metadata": {"name": "p", "annotations": {"fairway.dev/queue": "main"}}}
        world.add(POLICIES, annotated)
        named = {
            "propagationpolicy.karmada.io/namespace": "team",
            "propagationpolicy.karmada.io/name": "p",
        }
        async with dispatching.process(world) as process:
            key = world.submit("other", queue="", annotations=named)
            await world.until(lambda: world.is_placed(ADMITTED))
            entry = entry_of(process, key)
            reason = waiting_of(process.dispatcher.cache, process.dispatcher.controller.view, entry, 0)
            assert reason is not None
            assert 'cannot list resource "propagationpolicies"' in reason.text
            world.api.authorization = roles.karmada()
            await world.passes(61)
            await world.until(lambda: world.is_placed(key))

    run(scenario)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"team": "ours"}},
        {"matchExpressions": [{"key": "barred", "operator": "DoesNotExist"}]},
    ],
    ids=["what has a label", "what lacks one"],
)
def test_without_namespaces_a_selector_takes_nobody(selector: dict[str, object]) -> None:
    async def scenario(world: World) -> None:
        world.api.authorization = without(*reading("namespaces"))
        furnish(world)
        world.api.update(
            "/api/v1/namespaces/team", lambda obj: obj["metadata"].update(labels={"team": "ours"})
        )
        world.queue("choosy", {"m1": 8}, namespaceSelector=selector)
        async with dispatching.process(world) as process:
            key = world.submit("other", queue="choosy")
            await world.until(lambda: world.is_placed(ADMITTED))
            await world.passes(2)
            assert world.is_held(key)
            entry = entry_of(process, key)
            reason = waiting_of(process.dispatcher.cache, process.dispatcher.controller.view, entry, 0)
            assert reason is not None
            assert reason.kind == "QueueStopped"
            assert "namespaceSelector" in reason.text
            assert 'cannot list resource "namespaces"' in reason.text
            world.api.authorization = roles.karmada()
            await world.passes(61)
            await world.until(lambda: world.is_placed(key))

    run(scenario)


def test_an_api_server_without_our_kinds_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        kinds = ("resourceflavors", "clusterqueues", "localqueues", "serviceclasses")
        for kind in kinds:
            world.api.serve(f"{FAIRWAY}/{kind}", served=False)
        async with dispatching.process(world) as process:
            await world.passes(5)
            assert not process.task.done()
            assert process.sources.missing() == []
            for kind in kinds:
                world.api.serve(f"{FAIRWAY}/{kind}")
            furnish(world)
            await world.passes(61)
            await world.until(lambda: world.is_placed(ADMITTED))

    run(scenario)
    told = [record.getMessage() for record in caplog.records]
    assert sum("clusterqueues.fairway.dev are not served by" in one for one in told) == 1


@pytest.mark.parametrize(("was_in_trouble", "level"), [(False, logging.WARNING), (True, logging.INFO)])
def test_roles_that_a_server_has_yet_to_read_are_no_warning(
    was_in_trouble: bool, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(world: World) -> None:
        world.api.authorization = roles.karmada()
        furnish(world)
        async with dispatching.process(world) as process:
            await world.until(lambda: world.is_placed(ADMITTED))
            world.api.authorization = without(*reading("resourcebindings"))
            if was_in_trouble:
                process.client.denials.troubled()
            catching_up = asyncio.create_task(process.sources.catch_up())
            await world.passes(5)
            world.api.authorization = roles.karmada()
            await catching_up

    run(scenario)
    told = [one for one in caplog.records if one.getMessage().startswith("not leading yet")]
    assert {one.levelno for one in told} == {level}


def test_one_kind_of_status_that_may_not_be_written_stops_no_other() -> None:
    async def scenario(world: World) -> None:
        (atom,) = (one for one in own_atoms() if one.resources == ("clusterqueues/status",))
        world.api.authorization = without(atom)
        furnish(world)
        async with dispatching.process(world):
            await world.passes(12)
            local = world.api.store.collection("fairway.dev/v1alpha1", "localqueues")
            assert local.records["team", "main"].decode()["status"]["admitted"] == 1
            asked = [one for one in world.api.seen if one.path.endswith("/clusterqueues/main/status")]
            # Not every five seconds.
            assert len(asked) == 1

    run(scenario)
