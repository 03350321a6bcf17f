"""Promises over real gRPC: to every replica, of which clusters, and what is made of a refusal."""

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

import grpc
import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.estimates.endpoints import KEPT_S, PATIENCE_S, Endpoints
from queue_dispatcher.estimates.estimators import Estimators
from queue_dispatcher.estimates.promised import HOLDS_S, Lists, Promised
from queue_dispatcher.settings import EstimatorSettings
from sandbox.fakeapi import virtual_time
from tests.dispatcher.estimates.test_estimators import GANG, Canned, serving

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]

TRAIN = Promised("uid", WorkloadReference("batch/v1", "Job", "team", "train"), GANG)
LISTS: Lists = {"m1": [TRAIN], "m2": [], "nobody": [TRAIN]}


def test_an_estimator_is_told_of_all_its_clusters_at_once() -> None:
    async def scenario() -> None:
        async with serving(Canned()) as one:
            async with Estimators(EstimatorSettings({"m1": one.address, "m2": one.address})) as estimators:
                assert await estimators.promise("leader", 7, LISTS) == {"m1": (1,), "m2": ()}
            (told,) = one.promised
            assert (told.holder, told.since_ms, told.ttl_ms) == ("leader", 7, 1000 * HOLDS_S)
            assert [(of.cluster, len(of.promised)) for of in told.clusters] == [("m1", 1), ("m2", 0)]
            sent = told.clusters[0].promised[0]
            assert sent.gang == GANG
            named = pb.WorkloadName(namespace="team", group="batch", kind="Job", name="train")
            assert sent.workload == named

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("fails", "asked_again"),
    [
        # An older one is left alone for a while.
        (grpc.StatusCode.UNIMPLEMENTED, False),
        (grpc.StatusCode.FAILED_PRECONDITION, True),
        (grpc.StatusCode.INVALID_ARGUMENT, True),
        (grpc.StatusCode.UNAVAILABLE, True),
    ],
)
def test_one_that_keeps_none_tells_nothing(
    fails: grpc.StatusCode, asked_again: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(Canned(fails=fails)) as one:
            async with Estimators(EstimatorSettings({"m1": one.address})) as estimators:
                for _ in range(2):
                    assert await estimators.promise("leader", 7, LISTS) == {}
            assert len(one.promised) == (2 if asked_again else 1)

    asyncio.run(scenario())
    assert ("refuses promises" in caplog.text) is (
        fails in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT)
    )


def test_every_replica_is_told_that_the_address_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(Canned()) as one, serving(Canned()) as other:
            found = [one.address, other.address]

            async def of(self: Endpoints, address: str) -> Sequence[str]:
                assert address == "estimator:10352"
                return found

            monkeypatch.setattr(Endpoints, "of", of)
            async with Estimators(EstimatorSettings({"m1": "estimator:10352"})) as estimators:
                assert await estimators.promise("leader", 7, LISTS) == {"m1": (1,)}
            assert [len(replica.promised) for replica in (one, other)] == [1, 1]

    asyncio.run(scenario())


def test_one_that_hangs_keeps_the_others_from_being_told_for_a_second() -> None:
    async def scenario() -> None:
        goes_on = asyncio.Event()

        class Hanging(Canned):
            async def promise(self, data: bytes, context: "Context") -> bytes:
                answer = await super().promise(data, context)
                await goes_on.wait()
                return answer

        async with serving(Hanging()) as one, serving(Canned()) as other:
            settings = EstimatorSettings({"m1": one.address, "m2": other.address}, timeout_s=60)
            async with Estimators(settings) as estimators:
                for _ in range(3):
                    assert await estimators.promise("leader", 7, LISTS) == {"m2": ()}
                assert (len(one.promised), len(other.promised)) == (1, 3)
                goes_on.set()
                while len(one.promised) < 2:
                    found = await estimators.promise("leader", 7, LISTS)
                assert found == {"m1": (1,), "m2": ()}

    asyncio.run(scenario())


V4, V6 = socket.AF_INET, socket.AF_INET6


@pytest.mark.parametrize(
    ("address", "found", "expected"),
    [
        ("name:80", [(V4, "10.0.0.2"), (V4, "10.0.0.1")], ("10.0.0.1:80", "10.0.0.2:80")),
        # One is reached by its name, by which its certificate is known.
        ("name:80", [(V4, "10.0.0.1")], ("name:80",)),
        ("name:80", [(V4, "10.0.0.1"), (V6, "fd::1")], ("name:80",)),
        ("name:80", [(V6, "fd::2"), (V6, "fd::1")], ("[fd::1]:80", "[fd::2]:80")),
        ("name:80", [], ("name:80",)),
        ("10.0.0.9:80", [(V4, "10.0.0.1"), (V4, "10.0.0.2")], ("10.0.0.9:80",)),
        ("[fd::9]:80", [(V6, "fd::1"), (V6, "fd::2")], ("[fd::9]:80",)),
    ],
)
def test_an_address_is_as_many_endpoints_as_it_has_ips(
    address: str, found: list[tuple[socket.AddressFamily, str]], expected: tuple[str, ...]
) -> None:
    looked_up: list[str] = []

    async def scenario() -> None:
        async def getaddrinfo(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:
            looked_up.append(host)
            if not found:
                raise OSError("no such name")
            return [(family, type, 6, "", (ip, port)) for family, ip in found]

        asyncio.get_running_loop().getaddrinfo = getaddrinfo  # type: ignore[assignment]  # stands in for it
        endpoints = Endpoints(lambda: 0.0)
        assert await endpoints.of(address) == expected
        assert await endpoints.of(address) == expected

    asyncio.run(scenario())
    assert len(looked_up) == (1 if address.startswith("name") else 0)


def test_a_lookup_that_hangs_is_waited_for_once_and_for_a_moment() -> None:
    async def scenario() -> None:
        now_s, looked_up, hangs = 0.0, 0, False
        goes_on = asyncio.Event()

        async def getaddrinfo(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:
            nonlocal looked_up
            looked_up += 1
            if hangs:
                await goes_on.wait()
            last = ("10.0.0.3",) if hangs else ("10.0.0.1", "10.0.0.2")
            return [(V4, type, 6, "", (ip, port)) for ip in (*last, "10.0.0.9")]

        loop = asyncio.get_running_loop()
        loop.getaddrinfo = getaddrinfo  # type: ignore[assignment]  # stands in for it
        endpoints = Endpoints(lambda: now_s)
        before = ("10.0.0.1:80", "10.0.0.2:80", "10.0.0.9:80")
        assert await endpoints.of("name:80") == before
        now_s, hangs = 2 * KEPT_S, True
        began_s = loop.time()
        for _ in range(3):
            assert await endpoints.of("name:80") == before
        # Of another nothing is known yet.
        assert await endpoints.of("other:80") == ("other:80",)
        assert looked_up == 3
        assert loop.time() - began_s == pytest.approx(2 * PATIENCE_S)
        goes_on.set()
        await asyncio.sleep(0.1)
        assert await endpoints.of("name:80") == ("10.0.0.3:80", "10.0.0.9:80")
        endpoints.close()

    virtual_time.run(scenario())


def test_who_closes_waits_for_no_lookup() -> None:
    async def scenario() -> None:
        async def getaddrinfo(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:
            await asyncio.Event().wait()
            return []

        asyncio.get_running_loop().getaddrinfo = getaddrinfo  # type: ignore[assignment]  # stands in for it
        endpoints = Endpoints(lambda: 0.0)
        assert await endpoints.of("name:80") == ("name:80",)
        assert len(asyncio.all_tasks()) == 2
        endpoints.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    virtual_time.run(scenario())
