"""What one client of the visibility API can use up, and that others do not notice."""

import asyncio
import itertools
import ssl
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.service.addresses import BindAddress
from fairway.service.certificates import TlsFiles
from fairway.service.https import following_context
from queue_dispatcher.visibility import server
from queue_dispatcher.visibility.bounds import Allowances, Bounds
from queue_dispatcher.visibility.outcome import Outcome
from queue_dispatcher.visibility.remembered import Remembered
from queue_dispatcher.visibility.server import (
    GUEST_BOUNDS,
    MAX_HEADERS,
    STRANGER_BOUNDS,
    VisibilityServer,
)
from sandbox.fakeapi.access import TOKEN_REVIEWS
from sandbox.fakeapi.seen import requests
from tests.certs import Authority
from tests.dispatcher.scenarios.world import World, run
from tests.security.tenants import ADMIN_TOKEN, ALPHA_TOKEN, NOBODY_TOKEN, desk, two_tenants


def test_a_client_that_asks_too_often_is_told_so_and_others_are_answered() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            statuses = [(await asked.ask("/queues", ALPHA_TOKEN)).status for _ in range(GUEST_BOUNDS.burst)]
            assert set(statuses) == {200}
            refused = await asked.ask("/queues", ALPHA_TOKEN)
            while refused.status == 200:
                refused = await asked.ask("/queues", ALPHA_TOKEN)
            assert refused.status == 429
            assert b"user 'alice' asks too much: expected 20 requests a second" in refused.body
            assert refused.headers["Retry-After"] == "1"
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200
            await world.passes(1.1)
            assert (await asked.ask("/queues", ALPHA_TOKEN)).status == 200

    run(scenario)


def test_a_client_that_asks_too_much_at_once_is_told_so_and_others_are_answered() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            for token in (ALPHA_TOKEN, ADMIN_TOKEN):
                assert (await asked.ask("/queues", token)).status == 200
            # Rights cannot be looked up: all of these stay under way.
            asked.api.part(requests(path="subjectaccessreviews"))
            waiting = [
                asyncio.create_task(asked.ask(f"/workloads/n{number}/x", ALPHA_TOKEN))
                for number in range(GUEST_BOUNDS.at_once)
            ]
            await asked.api.until(
                lambda: sum("subjectaccessreviews" in one.path for one in asked.api.seen) >= len(waiting)
            )
            refused = await asked.ask("/workloads/other/x", ALPHA_TOKEN)
            assert refused.status == 429
            assert b"and 8 at once" in refused.body
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200
            asked.api.heal()
            assert {one.status for one in await asyncio.gather(*waiting)} == {403}
            assert (await asked.ask("/queues", ALPHA_TOKEN)).status == 200

    run(scenario)


def test_wrong_tokens_by_the_thousand_do_not_reach_the_api_server() -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200
            before = asked.api.access.asked[TOKEN_REVIEWS]
            began_s = asyncio.get_running_loop().time()
            statuses = [(await asked.ask("/queues", f"wrong-{number}")).status for number in range(500)]
            passed_s = asyncio.get_running_loop().time() - began_s
            assert set(statuses) == {401, 429}
            most = STRANGER_BOUNDS.burst + passed_s * STRANGER_BOUNDS.per_second
            assert asked.api.access.asked[TOKEN_REVIEWS] - before <= most
            # Who is known comes through beside them, from the same address.
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200

    run(scenario)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/queues/" + "x" * 5000, {}, 400),
        ("/queues?offset=" + "1" * 5000, {}, 400),
        ("/queues", {"X-Long": "x" * (21 << 10)}, 400),
        ("/queues", {f"X-{number}": "x" for number in range(MAX_HEADERS + 10)}, 400),
        ("/queues/" + "x" * 2000, {}, 404),
        ("/workloads/" + "n" * 300 + "/x", {}, 400),
        ("/queues/a%2f..%2f..%00%1b[31m", {}, 404),
    ],
)
def test_a_head_beyond_its_bounds_is_refused_and_others_are_answered(
    path: str, headers: dict[str, str], status: int
) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            assert (await asked.ask(path, ADMIN_TOKEN, **headers)).status == status
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200

    run(scenario)


@pytest.mark.parametrize("body", [b"x", b"x" * (1 << 20)])
def test_a_body_is_refused(body: bytes) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
            url = f"{asked.url}/visibility/v1/queues"
            async with asked.session.get(url, data=body, headers=headers) as response:
                assert response.status == 413
                assert "a body is not expected" in await response.text()
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200

    run(scenario)


@pytest.mark.parametrize("begun", [b"", b"GET /visibility/v1/que", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_connection_without_a_whole_request_is_ended(begun: bytes) -> None:
    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            host, port = asked.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(begun)
            began_s = asyncio.get_running_loop().time()
            # In virtual time this takes none.
            assert await reader.read() == b""
            assert asyncio.get_running_loop().time() - began_s < server.HEAD_WITHIN_S + 2
            writer.close()
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200

    run(scenario)


def test_connections_of_one_address_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS_OF_ONE", 3)

    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            host, port = asked.url.removeprefix("http://").split(":")
            flood = [
                await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0)) for _ in range(5)
            ]
            ended = [await reader.read() for reader, _ in flood[3:]]
            assert ended == [b"", b""]
            assert (await asked.ask("/queues", ADMIN_TOKEN)).status == 200
            for _, writer in flood:
                writer.close()

    run(scenario)


def test_what_becomes_of_questions_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each kind, and none of it tells who asked."""
    monkeypatch.setattr(server, "MAX_CONNECTIONS_OF_ONE", 3)
    monkeypatch.setattr(server, "GUEST_BOUNDS", Bounds(per_second=0.001, burst=3, at_once=8))

    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            for path, token, status in (
                ("/queues", ADMIN_TOKEN, 200),
                ("/queues/research?offset=x", ADMIN_TOKEN, 400),
                ("/queues/none", ADMIN_TOKEN, 404),
                ("/queues", ADMIN_TOKEN, 429),
                ("/queues", "forged", 401),
                ("/queues", NOBODY_TOKEN, 403),
                ("/none", NOBODY_TOKEN, 404),
            ):
                assert (await asked.ask(path, token)).status == status
            asked.api.fail(500, 100, when=requests(path=TOKEN_REVIEWS))
            assert (await asked.ask("/queues", ALPHA_TOKEN)).status == 503
            asked.api.faults.heal()
            assert asked.outcomes == {
                Outcome.ANSWERED: 1,
                Outcome.MALFORMED: 1,
                Outcome.NOT_FOUND: 2,
                Outcome.LIMITED: 1,
                Outcome.UNAUTHENTICATED: 1,
                Outcome.FORBIDDEN: 1,
                Outcome.UNAVAILABLE: 1,
            }
            host, port = asked.url.removeprefix("http://").split(":")
            flood = [
                await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0)) for _ in range(4)
            ]
            assert await flood[3][0].read() == b""
            assert asked.outcomes[Outcome.CUT_OFF] == 1
            for _, writer in flood:
                writer.close()

    run(scenario)


def test_requests_beyond_all_bounds_are_turned_away_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "AT_ONCE", 0)

    async def scenario(world: World) -> None:
        await two_tenants(world)
        async with desk(world) as asked:
            told = await asked.ask("/queues", ADMIN_TOKEN)
            assert told.status == 503
            assert told.headers["Retry-After"] == "1"

    run(scenario)


def test_tls_follows_its_files_and_speaks_nothing_older(tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    files = _files(tmp_path)
    old.issue("visibility").write(tmp_path, "tls")

    async def scenario(world: World) -> None:
        await two_tenants(world)
        # Its clock moves a second at each look, so that every handshake checks the files.
        context = following_context(files, clock=itertools.count().__next__)
        visibility = VisibilityServer(world.dispatcher, world.dispatcher.controller._clock)
        async with visibility.serve(BindAddress("127.0.0.1", 0), context) as address:
            url = f"https://localhost:{address.port}/visibility/v1/queues"
            assert await _answers(url, trusting(old))
            assert not await _answers(url, trusting(new))
            new.issue("visibility").write(tmp_path, "tls")
            assert await _answers(url, trusting(new))
            # What does not fit together leaves the last good pair in force.
            (tmp_path / "tls.key").write_bytes(old.issue("other").key)
            assert await _answers(url, trusting(new))
            legacy = trusting(new)
            legacy.maximum_version = ssl.TLSVersion.TLSv1_2
            assert not await _answers(url, legacy)
            assert not await _answers(url.replace("https:", "http:"), trusting(new))

    run(scenario)


@given(
    asked=st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3, allow_nan=False)), max_size=200),
    burst=st.integers(1, 5),
)
def test_no_client_gets_more_than_its_allowance_whatever_others_do(
    asked: list[tuple[str, float]], burst: int
) -> None:
    bounds = Bounds(per_second=2.0, burst=burst, at_once=1_000_000)
    together, alone = Allowances(bounds), {name: Allowances(bounds) for name in "abc"}
    now_s, admitted = 0.0, dict.fromkeys("abc", 0)
    for client, pause_s in asked:
        now_s += pause_s
        wait_s = together.begin(client, now_s)
        assert (wait_s == 0) == (alone[client].begin(client, now_s) == 0)
        admitted[client] += wait_s == 0
    for count in admitted.values():
        assert count <= burst + 2.0 * now_s + 1


def test_clients_without_number_take_no_more_memory_than_some() -> None:
    allowances = Allowances(Bounds(1.0, 1, 1, clients=10))
    for number in range(1000):
        allowances.begin(f"client {number}", 0.0)
        allowances.end(f"client {number}")
    assert len(allowances._clients) == 10


def test_answers_are_remembered_within_bounds_and_asked_for_once() -> None:
    async def play() -> None:
        now_s, asked = [0.0], [0]
        known = Remembered[int](2, lambda: now_s[0])
        gate = asyncio.Event()

        async def ask() -> int:
            asked[0] += 1
            await gate.wait()
            return 7

        waiting = [asyncio.create_task(known.asked(b"a", ask, lambda _: 10.0)) for _ in range(5)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gate.set()
        assert await asyncio.gather(*waiting[1:]) == [7] * 4
        assert asked == [1]
        now_s[0] = 10.0
        assert known.get(b"a") is None
        for key in (b"b", b"c", b"d"):
            known.put(key, 1, 5.0)
        assert len(known) == 2

    asyncio.run(play())


def _files(folder: Path) -> TlsFiles:
    return TlsFiles(folder / "tls.crt", folder / "tls.key", None, verify_clients=False)


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem.decode())


async def _answers(url: str, context: ssl.SSLContext) -> bool:
    """Whether a new connection gets an answer."""
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(url) as response,
        ):
            return response.status == 200
    except aiohttp.ClientError:
        return False
