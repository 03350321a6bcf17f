"""Questions to estimators over real gRPC, with canned answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.estimators import SERVICE, Estimators, EstimatorTlsError, Room
from queue_dispatcher.settings import EstimatorSettings, EstimatorTls
from tests.certs import Authority

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]

GANG = pb.Gang(pod_sets=[pb.PodSet(name="worker", count=2, template_json=b"{}")])


@dataclass
class Canned:
    """An estimator of these clusters: how many fit, and the reasons."""

    fits: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    asked: list[pb.PlaceRequest] = field(default_factory=list)
    address: str = ""
    fails: grpc.StatusCode | None = None
    garbage: bytes = b""

    async def place(self, data: bytes, context: "Context") -> bytes:
        request = pb.PlaceRequest.FromString(data)
        self.asked.append(request)
        if self.fails is not None:
            await context.abort(self.fails, "so it was scripted")
        if self.garbage:
            return self.garbage
        return pb.PlaceResponse(
            clusters=[
                pb.ClusterPlacement(
                    cluster=cluster,
                    fits=self.fits[cluster],
                    reasons=[pb.Reason(kind=kind, text=text) for kind, text in self.reasons.get(cluster, [])],
                )
                for cluster in request.clusters
                if cluster in self.fits
            ]
        ).SerializeToString()


@asynccontextmanager
async def serving(
    estimator: Canned, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[Canned]:
    server = grpc.aio.server()
    handlers = {"Place": grpc.unary_unary_rpc_method_handler(estimator.place)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    estimator.address = f"localhost:{port}"
    try:
        yield estimator
    finally:
        await server.stop(None)


def test_clusters_of_one_estimator_are_asked_together() -> None:
    async def scenario() -> None:
        async with serving(Canned({"m1": 3, "m2": 0}, {"m2": [("insufficient", "too few GPUs")]})) as one:
            settings = EstimatorSettings({"m1": one.address, "m2": one.address})
            async with Estimators(settings) as estimators:
                rooms = await estimators.place(["m2", "m1"], GANG, {})
            assert rooms == (Room("m2", 0, why="too few GPUs"), Room("m1", 3))
            assert [list(request.clusters) for request in one.asked] == [["m2", "m1"]]
            assert one.asked[0].gang == GANG

    asyncio.run(scenario())


def test_a_cluster_with_something_on_its_way_is_asked_with_it() -> None:
    async def scenario() -> None:
        async with serving(Canned({"m1": 3, "m2": 1})) as one:
            settings = EstimatorSettings({"m1": one.address, "m2": one.address})
            async with Estimators(settings) as estimators:
                await estimators.place(["m1", "m2"], GANG, {"m2": [GANG, GANG]})
            burdens = {tuple(request.clusters): len(request.assumed) for request in one.asked}
            assert burdens == {("m1",): 0, ("m2",): 2}

    asyncio.run(scenario())


def test_what_is_not_known_is_told_and_does_not_spoil_the_rest() -> None:
    async def scenario() -> None:
        doubtful = Canned(
            {"doubt": 0, "late": 2}, {"doubt": [("doubt", "in doubt (stale)")], "late": [("doubt", "late")]}
        )
        failing, garbled = Canned(fails=grpc.StatusCode.UNKNOWN), Canned(garbage=b"\xff\xff\xff")
        async with (
            serving(Canned({"m1": 3})) as good,
            serving(doubtful),
            serving(failing),
            serving(garbled),
        ):
            settings = EstimatorSettings(
                {
                    "m1": good.address,
                    "doubt": doubtful.address,
                    "late": doubtful.address,
                    "silent": good.address,
                    "failing": failing.address,
                    "garbled": garbled.address,
                    "away": "127.0.0.1:1",
                },
                timeout_s=5,
            )
            names = ["m1", "doubt", "late", "silent", "failing", "garbled", "away", "without"]
            async with Estimators(settings) as estimators:
                found = {room.cluster: room for room in await estimators.place(names, GANG, {})}
        assert found["m1"] == Room("m1", 3)
        assert found["doubt"] == Room("doubt", 0, unknown="in doubt (stale)")
        assert found["late"] == Room("late", 2)
        assert found["silent"].unknown.endswith("no answer about silent")
        assert "unknown: so it was scripted" in found["failing"].unknown
        assert "no PlaceResponse" in found["garbled"].unknown
        assert "unavailable" in found["away"].unknown
        assert found["without"].unknown == "no estimator of it is configured"

    asyncio.run(scenario())


def test_the_address_that_karmada_would_use() -> None:
    discovering = EstimatorSettings({"m1": "there:1"}, discovers=True, port=99)
    assert discovering.address("m1") == "there:1"
    assert discovering.address("m2") == "karmada-scheduler-estimator-m2.karmada-system.svc:99"
    assert EstimatorSettings({"m1": "there:1"}).address("m2") is None
    assert discovering.asks
    assert not EstimatorSettings().asks


def test_mutual_tls(tmp_path: Path) -> None:
    authority = Authority("estimators")
    server = authority.issue("estimator")
    certificate, key = authority.issue("dispatcher").write(tmp_path, "client")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    credentials = grpc.ssl_server_credentials(
        [(server.key, server.certificate)], authority.pem, require_client_auth=True
    )

    async def scenario() -> None:
        async with serving(Canned({"m1": 1}), credentials) as one:
            settings = EstimatorSettings({"m1": one.address}, tls=EstimatorTls(ca, certificate, key))
            async with Estimators(settings) as estimators:
                assert await estimators.place(["m1"], GANG, {}) == (Room("m1", 1),)

    asyncio.run(scenario())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    with pytest.raises(EstimatorTlsError, match=f"{missing}.*expected a PEM file"):
        Estimators(EstimatorSettings(tls=EstimatorTls(missing)))
