"""Fairway's own service as its clients meet it: over a real channel, before files or a (fake) API server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from estimator.capacity_service import SERVICE
from estimator.settings import AcceleratorSettings, TopologyOverride
from fairway.capacity.v1 import capacity_pb2 as pb
from sandbox.fakeapi import FakeApi
from tests import gang_checker
from tests.builders import NodeBuilder, PodBuilder, Quantity, node, pod, requirements
from tests.estimator.capacity_calls import (
    TPU,
    TPU_WORKER,
    Modes,
    dump,
    gang,
    place,
    placement,
    pod_set,
    template,
    topology,
    tpu_pools,
    workers,
    workload,
)
from tests.estimator.serving import (
    DEFAULTS,
    CapacityCaller,
    estimator,
    gpu_node,
    live,
    running,
    snapshot,
)
from tests.estimator.test_device_answers import hami_node, hami_pod
from tests.workloads.objects import example

Things = Sequence[NodeBuilder | PodBuilder]
HOST, RACK = "kubernetes.io/hostname", "example.com/rack"


@asynccontextmanager
async def serving(tmp_path: Path, things: Things, **changes: object) -> AsyncIterator[CapacityCaller]:
    """A caller to a server that knows one cluster, ``m``, of these objects."""
    file = dump(tmp_path / "m.json", things)
    async with estimator(snapshot("m", file), **changes) as caller:
        yield CapacityCaller(caller.channel)


def asked(tmp_path: Path, things: Things, wanted: pb.Gang, *assumed: pb.Gang) -> pb.ClusterPlacement:
    """The verdict on a cluster of these objects."""

    async def scenario() -> pb.ClusterPlacement:
        async with serving(tmp_path, things) as caller:
            return await place(caller, wanted, *assumed)

    return asyncio.run(scenario())


def gpu_host(name: str, gpus: int = 8, rack: str = "") -> NodeBuilder:
    built = node(name).gpus(gpus).cpu(96).memory("1Ti").label({HOST: name})
    return built.label({RACK: rack}) if rack else built


PAIR = [gpu_host("a", rack="1"), gpu_host("b", rack="1")]


class TestPlace:
    @pytest.mark.parametrize(
        ("things", "parts", "fits"),
        [
            (PAIR, {"worker": (1, {"gpu": 1})}, 16),
            (PAIR, {"worker": (16, {"gpu": 1})}, 1),
            (PAIR, {"worker": (17, {"gpu": 1})}, 0),
            (PAIR, {"worker": (2, {"gpu": 8, "cpu": 90})}, 1),
            ([*PAIR, pod("x").on("a").requests(gpu=3)], {"worker": (1, {"gpu": 4})}, 3),
            # First fit would put the small ones on both nodes.
            (PAIR, {"small": (8, {"gpu": 1}), "large": (1, {"gpu": 8})}, 1),
            (PAIR, {"launcher": (1, {"cpu": 1}), "worker": (5, {"gpu": 1}), "ps": (2, {"cpu": 20})}, 3),
            ([node("none").pods(0)], {"worker": (1, {"cpu": 1})}, 0),
        ],
    )
    def test_pod_sets_are_placed_whole_where_they_fit(
        self, tmp_path: Path, things: Things, parts: dict[str, tuple[int, dict[str, Quantity]]], fits: int
    ) -> None:
        sets = [pod_set(name, count, template(asks(takes))) for name, (count, takes) in parts.items()]
        found = asked(tmp_path, things, gang(*sets))
        assert (found.cluster, found.fits, found.upper_bound, found.proven) == ("m", fits, fits, True)
        assert flaws(things, parts, found) == []
        assert found.reasons

    @pytest.mark.parametrize(
        ("name", "fits"),
        [
            ("deployment", 0),  # another product
            ("deployment-gang", 2),
            ("jax-job", 21),
            ("job", 2),
            ("job-set-driver", 0),  # three racks, each whole
            ("job-set-superslice", 0),  # no such level
            ("job-set-tpu", 2),
            ("leader-worker-set", 2),
            ("leader-worker-set-group", 8),
            ("mpi-job", 8),
            ("paddle-job", 32),
            ("pod", 64),
            ("pytorch-job", 3),
            ("ray-cluster", 1),
            ("ray-job", 42),
            ("ray-service", 85),
            ("stateful-set", 4),
            ("tf-job", 18),
            ("train-job", 8),
            ("volcano-job", 8),
            ("volcano-partitions", 4),
            ("xgboost-job", 85),
        ],
    )
    def test_workload_objects_of_every_kind_are_read(self, fleet: Path, name: str, fits: int) -> None:
        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", fleet)) as caller:
                return await place(CapacityCaller(caller.channel), workload(example(name)))

        found = asyncio.run(scenario())
        # The pods of the one are those of another object; the others' have volumes of their own.
        is_whole = name not in {"train-job", "stateful-set"}
        assert (found.fits, found.upper_bound, found.proven) == (fits, fits, is_whole), found
        assert bool(found.placement) == bool(fits)

    def test_what_of_a_workload_is_not_heeded_is_told(self, fleet: Path) -> None:
        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", fleet)) as caller:
                return await place(CapacityCaller(caller.channel), workload(example("train-job")))

        (told,) = [reason.text for reason in asyncio.run(scenario()).reasons if reason.kind == "template"]
        assert "spec.runtimeRef: ClusterTrainingRuntime torch-distributed is another object" in told

    @pytest.mark.parametrize("copies", [0, 1, 3, 100])
    def test_at_least_the_copies_that_are_wanted_are_found(self, tmp_path: Path, copies: int) -> None:
        parts: dict[str, tuple[int, dict[str, Quantity]]] = {
            "small": (3, {"gpu": 1}),
            "large": (1, {"gpu": 4}),
        }
        things = [gpu_host(f"n{number}") for number in range(8)]
        sets = [pod_set(name, count, template(asks(takes))) for name, (count, takes) in parts.items()]
        found = asked(tmp_path, things, gang(*sets, copies=copies))
        assert 9 >= found.fits >= min(copies or 9, 9)
        assert flaws(things, parts, found) == []

    def test_no_placement_is_sent_that_nobody_asked_for(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, PAIR) as caller:
                (found,) = await caller.place(pb.PlaceRequest(gang=workers(4, gpu=1)))
                assert (found.fits, list(found.placement)) == (4, [])

        asyncio.run(scenario())


class TestAssumedGangs:
    @pytest.mark.parametrize(
        ("assumed", "fits", "held"),
        [
            ([], 16, None),
            ([workers(1, gpu=5)], 11, "room held for 1 pod of 1 workload on its way"),
            ([workers(2, 2, gpu=2)], 8, "room held for 4 pods of 1 workload on its way"),
            ([workers(1, gpu=5), workers(1, gpu=5)], 6, "room held for 2 pods of 2 workloads on their way"),
            ([workers(3, gpu=8)], 16, None),  # does not fit whole: takes nothing
            ([workload(example("paddle-job"))], 8, "room held for 4 pods of 1 workload on its way"),
            ([workload(example("paddle-job"), 2)], 0, "room held for 8 pods of 1 workload on its way"),
        ],
    )
    def test_hold_their_room(
        self, tmp_path: Path, assumed: list[pb.Gang], fits: int, held: str | None
    ) -> None:
        found = asked(tmp_path, PAIR, workers(1, gpu=1), *assumed)
        assert found.fits == fits
        assert [reason.text for reason in found.reasons if reason.kind == "assumed"] == (
            [held] if held else []
        )

    @pytest.mark.parametrize(
        ("bound_for", "pods", "fits"),
        [
            pytest.param("train", 10, 6, id="two of ten are still on their way"),
            pytest.param("train", 8, 8, id="all are there"),
            pytest.param("train", 3, 8, id="more are there than are on their way"),
            pytest.param("other", 6, 2, id="those of another workload are not its own"),
        ],
    )
    def test_pods_that_are_bound_already_are_not_held_room_for_once_more(
        self, tmp_path: Path, bound_for: str, pods: int, fits: int
    ) -> None:
        bound = [
            pod(f"p{n}").on("a").requests(gpu=1).owned_by("Job", bound_for, "batch/v1") for n in range(8)
        ]
        container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
        train = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"namespace": "default", "name": "train"},
            "spec": {"parallelism": pods, "template": {"spec": {"containers": [container]}}},
        }
        on_its_way = workload(json.dumps(train).encode())
        assert asked(tmp_path, [*PAIR, *bound], workers(1, gpu=1), on_its_way).fits == fits
        by_pod_sets = workers(1, pods, gpu=1)
        by_pod_sets.namespace, by_pod_sets.name = "default", "train"
        assert asked(tmp_path, [*PAIR, *bound], workers(1, gpu=1), by_pod_sets).fits == fits


class TestTopology:
    RACKS = (
        gpu_host("a", 4, rack="1"),
        gpu_host("b", 4, rack="1"),
        gpu_host("c", 4, rack="2"),
        gpu_host("d", 4),
    )

    @pytest.mark.parametrize(
        ("wanted", "fits", "level"),
        [
            (topology(Modes.REQUIRED, RACK), 1, RACK),
            (topology(Modes.REQUIRED, HOST), 0, ""),
            (topology(Modes.PREFERRED, RACK), 2, RACK),
            (topology(Modes.PREFERRED, HOST), 2, ""),  # no single host holds six
            (topology(Modes.EXCLUSIVE, RACK), 1, RACK),
            (topology(Modes.SLICED, RACK, 2), 2, RACK),
            (topology(Modes.SLICED, HOST, 3), 2, HOST),
            (topology(Modes.SLICED, "host", 3), 2, HOST),
            (topology(Modes.REQUIRED, "nowhere"), 0, ""),
        ],
    )
    @pytest.mark.parametrize("of_the_set", [False, True])
    def test_is_heeded_of_the_gang_and_of_a_pod_set(
        self, tmp_path: Path, wanted: pb.Topology, fits: int, level: str, of_the_set: bool
    ) -> None:
        worker = template(gpu=1)
        asking = (
            gang(pod_set("worker", 6, worker, wanted))
            if of_the_set
            else gang(pod_set("worker", 6, worker), topology=wanted)
        )
        found = asked(tmp_path, self.RACKS, asking)
        assert (found.fits, found.level) == (fits, level), found
        assert flaws(self.RACKS, {"worker": (6, {"gpu": 1})}, found) == []
        assert found.spread_fits == -1

    def test_a_level_that_is_not_known_is_named_with_those_that_are(self, tmp_path: Path) -> None:
        found = asked(tmp_path, PAIR, workers(2, topology=topology(Modes.REQUIRED, "x/nowhere"), gpu=1))
        assert found.proven
        assert found.reasons[0].kind == "unknown_level"
        assert "x/nowhere" in found.reasons[0].text
        assert HOST in found.reasons[0].text

    def test_levels_are_those_that_the_administrator_names(self, tmp_path: Path) -> None:
        racks = AcceleratorSettings(topology=(TopologyOverride("", ("example.com/zone", RACK)),))
        zones = {"a": "x", "b": "y", "c": "y"}
        things = [gpu_host(name, 4, "1").label({"example.com/zone": zone}) for name, zone in zones.items()]

        async def scenario() -> pb.ClusterPlacement:
            async with serving(tmp_path, things, accelerators=racks) as caller:
                return await place(caller, workers(4, topology=topology(Modes.REQUIRED, "rack"), gpu=2))

        # Racks of one name in two zones are two racks; a short name will do for a level that has been named.
        found = asyncio.run(scenario())
        assert (found.fits, found.level) == (1, RACK)
        assert placement(found) == {("worker", "b"): 2, ("worker", "c"): 2}

    def test_pods_that_repel_each_other_are_placed_apart(self, tmp_path: Path) -> None:
        term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": RACK}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        worker = template(gpu=1, labels={"app": "x"}, spec={"affinity": apart})
        found = asked(tmp_path, self.RACKS[:3], gang(pod_set("worker", 2, worker)))
        assert (found.fits, found.proven, found.spread_fits) == (1, True, -1)
        racks = {"a": "1", "b": "1", "c": "2"}
        assert sorted(racks[name] for _, name in placement(found)) == ["1", "2"]


class TestShares:
    @pytest.mark.parametrize(
        ("things", "worker", "fits"),
        [
            ([gpu_host("a", 2)], template(annotations={"gpu-fraction": "0.5"}), 2),
            ([gpu_host("a", 2)], template(annotations={"gpu-fraction": "0.7"}), 1),
            ([gpu_host("a", 1)], template(annotations={"gpu-fraction": "0.7"}), 0),
            ([hami_node("a")], template({"nvidia.com/gpumem": 10000}, gpu=1), 2),
            (
                [hami_node("a"), hami_pod("x", "a", (0, 20000))],
                template({"nvidia.com/gpumem": 10000}, gpu=1),
                1,
            ),
            ([hami_node("a")], template(gpu=1), 1),
        ],
    )
    def test_of_devices_are_placed_by_what_annotations_and_resources_say(
        self, tmp_path: Path, things: Things, worker: bytes, fits: int
    ) -> None:
        found = asked(tmp_path, things, gang(pod_set("worker", 2, worker)))
        assert (found.fits, found.upper_bound) == (fits, fits), found
        assert sum(placement(found).values()) == 2 * fits

    def test_one_that_cannot_be_read_fits_nowhere_and_says_so(self, tmp_path: Path) -> None:
        worker = template(annotations={"gpu-fraction": "half"})
        found = asked(tmp_path, PAIR, gang(pod_set("worker", 1, worker)))
        assert (found.fits, found.proven) == (0, True)
        assert any("annotation gpu-fraction is 'half'" in reason.text for reason in found.reasons)


class TestSpreading:
    def test_tells_how_many_copies_a_scheduler_that_spreads_would_place(self, tmp_path: Path) -> None:
        found = asked(
            tmp_path,
            PAIR,
            gang(pod_set("small", 8, template(gpu=1, cpu=4)), pod_set("large", 1, template(gpu=8))),
        )
        assert (found.fits, found.spread_fits) == (1, 0)

    def test_is_told_of_all_copies_that_fit(self, tmp_path: Path) -> None:
        things = [gpu_host(f"n{number}") for number in range(20)]
        found = asked(tmp_path, things, workers(1, gpu=1))
        assert (found.fits, found.spread_fits) == (160, 160)

    def test_is_not_told_where_the_first_pod_decides_about_the_others(self, tmp_path: Path) -> None:
        """The emptiest node takes the first, and its rack may be too small."""
        term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": RACK}
        together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        worker = template(gpu=1, labels={"app": "x"}, spec={"affinity": together})
        things = [gpu_host("a", 4, rack="1"), gpu_host("b", 4, rack="2"), gpu_host("c", 4, rack="2")]
        found = asked(tmp_path, things, gang(pod_set("worker", 6, worker)))
        assert (found.fits, found.spread_fits) == (1, -1)

    def test_is_not_told_where_slices_decide(self, tmp_path: Path) -> None:
        found = asked(tmp_path, tpu_pools(2), gang(pod_set("worker", 4, TPU_WORKER)))
        assert (found.fits, found.spread_fits) == (2, -1)


class TestExplain:
    def test_every_node_is_counted_once_by_what_keeps_pods_off_it(self, tmp_path: Path) -> None:
        things: Things = [
            gpu_host("full"),
            gpu_host("half"),
            gpu_host("cordoned").cordoned(),
            gpu_host("tainted").taint("team=a:NoSchedule"),
            gpu_host("small", 2),
            pod("x").on("full").requests(gpu=8),
            pod("y").on("half").requests(gpu=3),
        ]

        async def scenario() -> pb.ClusterExplanation:
            async with serving(tmp_path, things) as caller:
                (found,) = await caller.explain(pb.ExplainRequest(gang=workers(2, gpu=8)))
                return found

        found = asyncio.run(scenario())
        assert (found.placement.cluster, found.placement.fits, found.placement.proven) == ("m", 0, True)
        (explained,) = found.pod_sets
        assert (explained.pod_set, explained.fits_alone) == ("worker", 0)
        assert {blocked.reason.kind: blocked.nodes for blocked in explained.blocked} == {
            "insufficient": 2,
            "cordoned": 1,
            "taint": 1,
            "never_fits": 1,
        }
        assert [miss.node for miss in explained.near_misses] == ["cordoned", "half", "tainted", "full"]
        assert explained.near_misses[1].missing == "3 nvidia.com/gpu"

    def test_room_held_for_assumed_gangs_is_not_free(self, tmp_path: Path) -> None:
        async def scenario() -> int:
            async with serving(tmp_path, PAIR) as caller:
                request = pb.ExplainRequest(gang=workers(1, gpu=1), assumed=[workers(1, gpu=5)])
                (found,) = await caller.explain(request)
                assert found.placement.fits == 11
                return found.pod_sets[0].fits_alone

        assert asyncio.run(scenario()) == 11

    def test_a_busy_slice_is_named_as_what_it_is(self, tmp_path: Path) -> None:
        things: Things = [*tpu_pools(2), pod("x").on("pool-0-1").requests({TPU: 4})]

        async def scenario() -> pb.ClusterExplanation:
            async with serving(tmp_path, things) as caller:
                (found,) = await caller.explain(pb.ExplainRequest(gang=gang(pod_set("w", 8, TPU_WORKER))))
                return found

        found = asyncio.run(scenario())
        assert found.placement.fits == 0
        told = {blocked.reason.kind: blocked.nodes for blocked in found.pod_sets[0].blocked}
        assert told == {"slices_in_use": 3, "insufficient": 1, "fits": 4}


class TestSummary:
    def test_tells_devices_by_product(self, tmp_path: Path) -> None:
        product = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
        things: Things = [
            gpu_host("a").label(product),
            gpu_host("b").label(product).cordoned(),
            pod("x").on("a").requests(gpu=3),
        ]

        async def scenario() -> pb.ClusterSummary:
            async with serving(tmp_path, things) as caller:
                (found,) = await caller.summary("m")
                return found

        found = asyncio.run(scenario())
        assert (found.cluster, found.nodes, found.pods, found.doubt) == ("m", 2, 1, "")
        (told,) = found.products
        assert (told.total, told.allocated, told.cordoned, told.free) == (16, 3, 8, 5)
        assert [(one.devices, one.pods) for one in told.placeable] == [(8, 0), (4, 1), (2, 2), (1, 5)]

    def test_of_an_empty_cluster_is_empty_and_not_in_doubt(self) -> None:
        async def scenario() -> pb.ClusterSummary:
            async with FakeApi() as api, estimator(live("m", api.url)) as caller:
                (found,) = await CapacityCaller(caller.channel).summary()
                return found

        assert asyncio.run(scenario()) == pb.ClusterSummary(cluster="m")


ONE_GPU = workers(1, gpu=1)
Ask = Callable[[CapacityCaller, Sequence[str]], Coroutine[Any, Any, list[tuple[str, int, str]]]]
"""Asks about clusters; tells of each its name, what is free, and the doubt."""


async def _place(caller: CapacityCaller, clusters: Sequence[str]) -> list[tuple[str, int, str]]:
    found = await caller.place(pb.PlaceRequest(clusters=clusters, gang=ONE_GPU))
    return [(one.cluster, one.fits, _doubt(one)) for one in found]


async def _explain(caller: CapacityCaller, clusters: Sequence[str]) -> list[tuple[str, int, str]]:
    found = await caller.explain(pb.ExplainRequest(clusters=clusters, gang=ONE_GPU))
    return [(one.placement.cluster, one.placement.fits, _doubt(one.placement)) for one in found]


async def _summary(caller: CapacityCaller, clusters: Sequence[str]) -> list[tuple[str, int, str]]:
    found = await caller.summary(*clusters)
    return [(one.cluster, sum(p.free for p in one.products), one.doubt) for one in found]


def _doubt(found: pb.ClusterPlacement) -> str:
    doubts = [reason.text for reason in found.reasons if reason.kind == "doubt"]
    assert not doubts or (found.fits, found.proven, found.upper_bound > 10**9) == (0, False, True)
    return doubts[0] if doubts else ""


@pytest.mark.parametrize("ask", [_place, _explain, _summary])
class TestClusters:
    def test_come_in_the_order_asked_each_once_and_all_by_name_if_none_is(
        self, tmp_path: Path, ask: Ask
    ) -> None:
        files = {
            name: dump(tmp_path / f"{name}.json", [gpu_host("n", gpus)])
            for name, gpus in (("c", 4), ("a", 1), ("b", 2))
        }

        async def scenario() -> None:
            async with estimator(*(snapshot(name, file) for name, file in files.items())) as caller:
                own = CapacityCaller(caller.channel)
                assert await ask(own, []) == [("a", 1, ""), ("b", 2, ""), ("c", 4, "")]
                assert await ask(own, ["b"]) == [("b", 2, "")]
                assert await ask(own, ["c", "a", "c"]) == [("c", 4, ""), ("a", 1, "")]

        asyncio.run(scenario())

    def test_that_are_not_served_are_in_doubt_beside_the_truth_about_others(
        self, tmp_path: Path, ask: Ask
    ) -> None:
        file = dump(tmp_path / "m.json", PAIR)

        async def scenario() -> list[tuple[str, int, str]]:
            async with estimator(snapshot("m", file)) as caller:
                return await ask(CapacityCaller(caller.channel), ["elsewhere", "m", "n" * 5000])

        unknown, known, long = asyncio.run(scenario())
        assert known == ("m", 16, "")
        assert unknown[2].endswith("this estimator serves m; it was asked about 'elsewhere'")
        assert unknown[1] == 0
        assert long[0] == "n" * 5000
        assert long[2].endswith("n...'")

    def test_that_are_dead_do_not_touch_the_others(self, tmp_path: Path, ask: Ask) -> None:
        file = dump(tmp_path / "m.json", PAIR)

        async def scenario() -> list[tuple[str, int, str]]:
            async with FakeApi() as api:
                await api.refuse()
                async with estimator(snapshot("m", file), live("dead", api.url), stale_after_s=0.0) as caller:
                    return await ask(CapacityCaller(caller.channel), [])

        dead, alive = asyncio.run(scenario())
        assert alive == ("m", 16, "")
        assert dead[:2] == ("dead", 0)
        assert "nodes: " in dead[2]

    def test_that_are_not_read_yet_are_waited_for(self, tmp_path: Path, ask: Ask) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/api/v1/nodes", gpu_node("a", 8)[1])
                api.hang()
                async with estimator(live("m", api.url)) as caller:
                    call = asyncio.create_task(ask(CapacityCaller(caller.channel), []))
                    await api.until(lambda: len(api.seen) >= 4)
                    assert not call.done()
                    api.answer()
                    assert await call == [("m", 8, "")]

        asyncio.run(scenario())

    def test_out_of_contact_for_too_long_are_in_doubt(self, tmp_path: Path, ask: Ask) -> None:
        async def scenario() -> None:
            async with FakeApi() as api:
                api.create("/api/v1/nodes", gpu_node("a", 8)[1])
                async with estimator(live("m", api.url), stale_after_s=0.2) as caller:
                    own = CapacityCaller(caller.channel)
                    async with asyncio.timeout(20):
                        while await ask(own, []) != [("m", 8, "")]:
                            pass
                        await api.refuse()
                        while not (found := (await ask(own, []))[0])[2]:
                            assert found == ("m", 8, "")
                    assert "out of contact" in found[2]

        asyncio.run(scenario())


def test_the_age_is_how_long_contact_has_been_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create("/api/v1/nodes", gpu_node("a", 8)[1])
            async with estimator(live("m", api.url)) as caller:
                own = CapacityCaller(caller.channel)
                assert (await place(own, ONE_GPU)).age_s == 0
                await api.refuse()
                async with asyncio.timeout(20):
                    while (await place(own, ONE_GPU)).age_s == 0:
                        pass
                (summary,) = await own.summary()
                assert summary.age_s > 0
                assert summary.doubt == ""

    asyncio.run(scenario())


class TestProcess:
    def test_health_knows_the_service(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", dump(tmp_path / "m.json", PAIR))) as caller:
                stub = health_pb2_grpc.HealthStub(caller.channel)
                reply = await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))
                assert reply.status == health_pb2.HealthCheckResponse.SERVING

        asyncio.run(scenario())

    def test_reflection_describes_it_so_that_clients_need_no_proto_file(self, tmp_path: Path) -> None:
        settings = replace(DEFAULTS, clusters=(snapshot("m", dump(tmp_path / "m.json", PAIR)),))

        def describe(port: int) -> set[str]:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                known = ProtoReflectionDescriptorDatabase(channel)
                assert "fairway.capacity.v1.Capacity" in known.get_services()
                return {method.name for method in known.FindFileContainingSymbol(SERVICE).service[0].method}

        async def scenario() -> set[str]:
            async with running(settings) as (port, _):
                return await asyncio.to_thread(describe, port)

        assert asyncio.run(scenario()) == {"Place", "Explain", "Summary", "Usage", "Bound", "Promise"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two racks of 16 machines with 8 GPUs each, and two TPU slices of 4x4."""
    machines = [
        gpu_host(f"gpu-{number}")
        .memory("2Ti")
        .has({"rdma/ib": 8})
        .label(
            {
                **dict.fromkeys(RACK_KEYS, str(number // 16)),
                "cloud.provider.com/topology-rack": str(number // 4),
                "example.com/leaf": str(number // 2),
            }
        )
        for number in range(32)
    ]
    return dump(tmp_path_factory.mktemp("fleet") / "m.json", [*machines, *tpu_pools(2)])


RACK_KEYS = ("example.com/rack", "cloud.provider.com/topology-block", "volcano.sh/tier-1")


def asks(takes: dict[str, Quantity]) -> dict[str, Quantity]:
    """Requests by their full names."""
    return {"nvidia.com/gpu" if name == "gpu" else name: amount for name, amount in takes.items()}


def flaws(
    things: Things, parts: dict[str, tuple[int, dict[str, Quantity]]], found: pb.ClusterPlacement
) -> list[str]:
    """What an independent reading of the objects finds wrong with the placement."""
    stock = gang_checker.stock(
        [thing.build() for thing in things if isinstance(thing, NodeBuilder)],
        [thing.build() for thing in things if isinstance(thing, PodBuilder)],
    )
    asked_for = [gang_checker.Part(count, requirements(asks(takes))) for count, takes in parts.values()]
    index = {name: position for position, name in enumerate(parts)}
    placed = {(index[name], on): pods for (name, on), pods in placement(found).items()}
    return gang_checker.flaws(gang_checker.gang(stock, asked_for), found.fits, placed)
