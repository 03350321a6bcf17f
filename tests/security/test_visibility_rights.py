"""Who is told what by the visibility API."""

import logging
import re

import msgspec
import pytest

from fairway.visibility import LocalQueueView, QueueList, QueueView, WorkloadList
from queue_dispatcher.visibility import authorization
from queue_dispatcher.visibility.reviews import IDENTITY_S, RIGHT_S
from sandbox.fakeapi.access import ACCESS_REVIEWS, TOKEN_REVIEWS
from sandbox.fakeapi.seen import requests
from tests.dispatcher.scenarios.objects import FAIRWAY, local_queue
from tests.dispatcher.scenarios.world import World, run
from tests.security.tenants import (
    ADMIN_TOKEN,
    ALPHA,
    ALPHA_TOKEN,
    MARK,
    NOBODY_TOKEN,
    PATHS,
    ZETA,
    ZETA_TOKEN,
    desk,
    two_tenants,
)


@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
def test_a_tenant_reads_no_name_of_another(strategy: str) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world, strategy)
        async with desk(world) as asked:
            for path in PATHS:
                told = await asked.ask(path, ALPHA_TOKEN)
                said = told.body.decode() + str(told.headers)
                # What one has named oneself may come back, and nothing else.
                for word in sorted(re.split("[/?=]", path), key=len, reverse=True):
                    said = said.replace(word, "") if word else said
                assert MARK not in said, path
                assert told.status in (200, 403, 404)
            for path in (f"/workloads/{ZETA}/{MARK}-1", f"/namespaces/{ZETA}/queues/{MARK}-local"):
                assert (await asked.ask(path, ALPHA_TOKEN)).status == 403
            elsewhere = [
                msgspec.json.decode(told.body, type=WorkloadList)
                for token in (ALPHA_TOKEN, ADMIN_TOKEN)
                for told in [await asked.ask(f"/workloads/{ALPHA}/{MARK}-1", token)]
            ]
            assert elsewhere == [WorkloadList(), WorkloadList(namespaces=[ZETA])]
            # That there is such a queue is not told either.
            there = await asked.ask(f"/queues/{MARK}-only", ALPHA_TOKEN)
            absent = await asked.ask("/queues/nosuch", ALPHA_TOKEN)
            assert there.status == absent.status == 404
            assert there.body.replace(f"{MARK}-only".encode(), b"nosuch") == absent.body

    run(scenario)


def test_positions_stay_true_and_others_are_counted() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            queue = msgspec.json.decode(
                (await asked.ask("/queues/research", ALPHA_TOKEN)).body, type=QueueView
            )
            whole = msgspec.json.decode(
                (await asked.ask("/queues/research", ADMIN_TOKEN)).body, type=QueueView
            )
            order = [one.name for one in whole.workloads]
            assert order == [f"{MARK}-1", "alpha-1", f"{MARK}-2", "alpha-2", f"{MARK}-3", "alpha-3"]
            assert [one.name for one in queue.workloads] == ["alpha-1", "alpha-2", "alpha-3"]
            assert [one.position_in_cluster_queue for one in queue.workloads] == [2, 4, 6]
            assert [one.position_in_local_queue for one in queue.workloads] == [1, 2, 3]
            assert [one.others_before for one in queue.workloads] == [1, 2, 3]
            assert (queue.pending, queue.other_pending) == (6, 3)
            assert (whole.pending, whole.other_pending) == (6, 0)
            assert queue.waiting == whole.waiting
            page = await asked.ask("/queues/research?offset=1&limit=1", ALPHA_TOKEN)
            (second,) = msgspec.json.decode(page.body, type=QueueView).workloads
            assert (second.name, second.position_in_cluster_queue, second.others_before) == ("alpha-2", 4, 2)
            local = await asked.ask(f"/namespaces/{ALPHA}/queues/main", ALPHA_TOKEN)
            assert [
                one.others_before for one in msgspec.json.decode(local.body, type=LocalQueueView).workloads
            ] == [1, 2, 3]
            (third,) = msgspec.json.decode(
                (await asked.ask(f"/workloads/{ALPHA}/alpha-3", ALPHA_TOKEN)).body, type=WorkloadList
            ).workloads
            assert (third.position_in_cluster_queue, third.others_before) == (6, 3)

    run(scenario)


def test_queues_of_others_are_counted() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            own = msgspec.json.decode((await asked.ask("/queues", ALPHA_TOKEN)).body, type=QueueList)
            assert [queue.name for queue in own.queues] == ["root", "research"]
            assert (own.other_queues, own.other_unresolved) == (1, 1)
            assert [one.name for one in own.unresolved] == ["alpha-lost"]
            everything = msgspec.json.decode((await asked.ask("/queues", ADMIN_TOKEN)).body, type=QueueList)
            assert [queue.name for queue in everything.queues] == ["root", "research", f"{MARK}-only"]
            assert (everything.other_queues, everything.other_unresolved) == (0, 0)
            assert {one.name for one in everything.unresolved} == {"alpha-lost", f"{MARK}-lost"}

    run(scenario)


def test_the_reason_of_a_strict_queue_names_its_head_only_to_those_who_may_see_it() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        # Those that are alike wait for what the head waits for; this one for the head.
        world.submit(f"{MARK}-4", f"{MARK}-local", ZETA, gpus=1)
        await world.passes(1)
        async with desk(world) as asked:
            answers = [
                msgspec.json.decode((await asked.ask(path, token)).body, type=WorkloadList)
                .workloads[0]
                .waiting
                for path, token in (
                    (f"/workloads/{ALPHA}/alpha-2", ALPHA_TOKEN),
                    (f"/workloads/{ALPHA}/alpha-2", ADMIN_TOKEN),
                    (f"/workloads/{ZETA}/{MARK}-4", ZETA_TOKEN),
                )
            ]
            assert [one.kind for one in answers if one is not None] == ["BehindHead"] * 3
            told, whole, own = (one.text for one in answers if one is not None)
            assert told == "a workload of another namespace is at the head of the StrictFIFO queue and waits"
            assert whole.startswith(f"{ZETA}/{MARK}-1 is at the head")
            assert own == whole

    run(scenario)


def test_events_name_no_workload_of_another_namespace() -> None:
    from queue_dispatcher.visibility.events import BindingEvents

    class Writer:
        def __init__(self) -> None:
            self.told: list[tuple[str, str]] = []

        def record(self, regarding: object, type: object, reason: str, message: str) -> None:
            self.told.append((getattr(regarding, "namespace"), message))  # noqa: B009 - its type does not matter

    async def scenario(world: World) -> None:
        await two_tenants(world)
        # Of alike workloads the first is told of: one that asks for something else is of a class of its own.
        world.submit("alpha-4", "main", ALPHA, gpus=1)
        await world.passes(1)
        writer, now_ms = Writer(), [0]
        clock = world.dispatcher.controller._clock
        events = BindingEvents(writer, lambda: now_ms[0], clock.now_ms)  # type: ignore[arg-type]  # it only records
        await events.look(world.dispatcher)
        now_ms[0] += 60_000
        await events.look(world.dispatcher)
        heard = [message for namespace, message in writer.told if namespace == ALPHA]
        assert any("a workload of another namespace is at the head" in message for message in heard)
        assert not any(MARK in message for message in heard)

    run(scenario)


def test_a_local_queue_that_names_a_foreign_queue_shows_nothing_of_it() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        world.api.update(
            f"{FAIRWAY}/clusterqueues/{MARK}-only",
            lambda obj: obj["spec"].update(namespaceSelector={"matchLabels": {"team": MARK}}),
        )
        world.add(f"{FAIRWAY}/namespaces/{ALPHA}/localqueues", local_queue("spy", f"{MARK}-only"))
        await world.passes(1)
        async with desk(world) as asked:
            assert (await asked.ask(f"/queues/{MARK}-only", ALPHA_TOKEN)).status == 404
            own = msgspec.json.decode((await asked.ask("/queues", ALPHA_TOKEN)).body, type=QueueList)
            assert [queue.name for queue in own.queues] == ["root", "research"]

    run(scenario)


def test_a_binding_that_claims_to_be_about_another_namespace_tells_its_owner_nothing() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        reference = {"apiVersion": "batch/v1", "kind": "Job", "namespace": ZETA, "name": f"{MARK}-1"}
        world.bind("forged", ALPHA, gpus=1, more={"resource": reference})
        await world.passes(1)
        async with desk(world) as asked:
            for path in ("/queues", "/queues/research", f"/workloads/{ALPHA}/forged-job"):
                assert MARK not in (await asked.ask(path, ALPHA_TOKEN)).body.decode()

    run(scenario)


@pytest.mark.parametrize(
    ("token", "status", "says"),
    [
        ("", 401, "expected a bearer token of karmada-apiserver"),
        ("forged", 401, "does not know the bearer token"),
        ("x" * (17 << 10), 401, "expected 16384 ASCII characters at most"),
        (NOBODY_TOKEN, 403, "user 'nobody' may see nothing"),
        (ADMIN_TOKEN, 200, "queues"),
        (ALPHA_TOKEN, 200, "queues"),
    ],
)
def test_who_is_not_known_or_not_permitted_gets_nothing(token: str, status: int, says: str) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            told = await asked.ask("/queues", token)
            assert told.status == status
            assert says in told.body.decode()
            assert ("WWW-Authenticate" in told.headers) == (status == 401)
            if status != 200:
                assert MARK not in told.body.decode()
                assert b"alpha" not in told.body

    run(scenario)


@pytest.mark.parametrize("header", ["Basic YWRtaW46", "Bearer", "token-admin", "bearer  ", "Negotiate x"])
def test_anything_but_a_bearer_token_is_refused(header: str) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            assert (await asked.ask("/queues", Authorization=header)).status == 401
            assert not asked.api.access.asked[TOKEN_REVIEWS]

    run(scenario)


@pytest.mark.parametrize("path", [TOKEN_REVIEWS, ACCESS_REVIEWS])
@pytest.mark.parametrize("code", [500, 403, 429, 404])
def test_while_nobody_can_be_asked_nothing_is_shown(path: str, code: int) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            asked.api.fail(code, 100, when=requests(path=path))
            told = await asked.ask("/queues", ADMIN_TOKEN)
            assert told.status == 503
            assert "karmada-apiserver cannot be asked who may see what" in told.body.decode()
            assert "Retry-After" in told.headers
            # Where it is, and what it said, is for the log.
            assert asked.api.url not in told.body.decode()
            assert asked.errors
            asked.api.faults.heal()

    run(scenario)


def test_what_is_revoked_is_refused_within_seconds_and_what_holds_is_not_asked_again() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            access = asked.api.access
            for _ in range(20):
                assert (await asked.ask("/queues", ALPHA_TOKEN)).status == 200
            assert access.asked[TOKEN_REVIEWS] == 1
            # One for everything, one for each namespace.
            assert access.asked[ACCESS_REVIEWS] == 3
            access.revoke("alice")
            await world.passes(RIGHT_S + 1)
            assert (await asked.ask("/queues", ALPHA_TOKEN)).status == 403
            access.forget(ALPHA_TOKEN)
            await world.passes(IDENTITY_S + 1)
            assert (await asked.ask("/queues", ALPHA_TOKEN)).status == 401

    run(scenario)


def test_rights_are_asked_for_so_many_namespaces_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "MOST_NAMESPACES", 1)

    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            # By name Alpha comes first: Zeta's own are not looked at until they are named.
            blind = msgspec.json.decode((await asked.ask("/queues", ZETA_TOKEN)).body, type=QueueList)
            assert blind.unreviewed_namespaces == 1
            assert not blind.unresolved
            named = msgspec.json.decode(
                (await asked.ask(f"/queues?namespace={ZETA}", ZETA_TOKEN)).body, type=QueueList
            )
            assert [one.name for one in named.unresolved] == [f"{MARK}-lost"]
            assert named.unreviewed_namespaces == 0
            many = "&".join(f"namespace=n{number}" for number in range(65))
            assert (await asked.ask(f"/queues?{many}", ZETA_TOKEN)).status == 400

    run(scenario)


def test_no_token_is_written_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            for token in (ADMIN_TOKEN, ALPHA_TOKEN, "token-forged"):
                await asked.ask("/queues", token)
            asked.api.fail(500, 100, when=requests(path="reviews"))
            told = await asked.ask("/queues", "token-other")
            assert b"token-" not in told.body
            assert not any("token-" in str(error) for error in asked.errors)

    caplog.set_level(logging.DEBUG)
    run(scenario)
    assert not [record for record in caplog.records if "token-" in str(record.__dict__)]
