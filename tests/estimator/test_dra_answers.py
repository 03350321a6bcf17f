"""Devices of Dynamic Resource Allocation in answers: replicas, sets, gangs, and what is told beside them."""

import numpy as np
import pytest

from estimator.capacity.answer import Answer
from estimator.capacity.explain.explain import explain
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.request import Component
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.gang_fit import place_gang
from estimator.capacity.topology.levels import Level, Levels
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from estimator.reasons import insufficient
from fairway.dra.extended import IMPLICIT_PREFIX
from fairway.dra.selection import without_cel
from fairway.kube.resource_slices import ResourceClaimSpec
from fairway.workloads.gang import TopologyMode, TopologyRequest
from tests.builders import Complaints, NodeBuilder, node, replicas_of, room_of, sets_of, shape
from tests.dra.objects import (
    DRIVER,
    claim_spec,
    device,
    device_class,
    devices,
    exactly,
    first_of,
    published,
    request,
    same,
)
from tests.estimator.claiming import (
    GPU,
    allocated,
    claim_template,
    claiming,
    claiming_cluster,
    named_claim,
    on,
)

PCIE = f"{DRIVER}/root"
V10 = [*devices(4, "x", root="r1"), *devices(3, "y", root="r2"), *devices(1, "z", root="r3")]
TWO = claim_spec(request("g", 2))
ONE = claim_spec(request("g"))
PLAIN = device_class("gpu", extended=GPU)


def host(name: str, pods: int = 110, cpu: int = 64) -> NodeBuilder:
    return node(name).cpu(str(cpu)).pods(pods)


def small() -> ClusterMirror:
    """8 devices of which 2 are taken, 4 with little else, none."""
    return claiming_cluster(
        host("a"),
        host("b", cpu=3),
        host("c"),
        PLAIN,
        on("a", 8),
        on("b", 4),
        on("gone", 16),
        allocated("held", "a", "gpu-0", "gpu-1"),
    )


class TestReplicas:
    @pytest.mark.parametrize(
        ("asked", "value"),
        [
            (shape({GPU: 1}), 10),
            (shape({GPU: 2}), 5),
            (shape({GPU: 4}), 2),
            (shape({GPU: 7}), 0),
            (shape({GPU: 33}), 0),
            (shape({GPU: 1, "cpu": 1}), 9),
            (shape({GPU: 1, "cpu": 64}), 1),
            (shape({f"{IMPLICIT_PREFIX}gpu": 3}), 3),
            (shape({f"{IMPLICIT_PREFIX}other": 1}), 0),
            (claiming(ONE), 10),
            (claiming(TWO), 5),
            (claiming(TWO, cpu=2), 4),
            (claiming(ONE, TWO), 3),
            (claiming(claim_spec(request("g", None))), 1),
            (claiming(claim_spec(first_of("g", ("many", exactly(5)), ("few", exactly(2))))), 3),
            (claiming(claim_spec(request("g", adminAccess=True))), 220),
        ],
    )
    def test_each_node_serves_what_its_free_devices_do(self, asked: PodShape, value: int) -> None:
        answer = replicas_of(small(), asked)
        assert answer.value == value
        assert answer.upper_bound >= value

    def test_v10_devices_must_share_a_pcie_root(self) -> None:
        mirror = claiming_cluster(host("a"), PLAIN, on("a", V10))
        spec = claim_spec(request("g", 4), constraints=[same(PCIE)])
        assert replicas_of(mirror, claiming(spec)) == Answer(1, 1, True)

    @pytest.mark.parametrize(("amount", "value"), [(1, 2 + 4 + 4), (2, 1 + 2 + 2), (4, 0 + 1 + 1), (5, 0)])
    def test_a_device_plugin_serves_where_it_has_the_name_and_the_class_elsewhere(
        self, amount: int, value: int
    ) -> None:
        mirror = claiming_cluster(
            host("plugin").has({GPU: "2"}),
            host("class"),
            host("both").has({GPU: "0"}),
            PLAIN,
            on("plugin", 8),
            on("class", 4),
            on("both", 4),
        )
        assert replicas_of(mirror, shape({GPU: amount})).value == value

    def test_a_claim_that_goes_gives_its_devices_back(self) -> None:
        mirror = small()
        assert replicas_of(mirror, claiming(ONE)).value == 10
        mirror.dra.claims.delete("default/held")
        assert replicas_of(mirror, claiming(ONE)).value == 12

    def test_without_classes_nothing_changes(self) -> None:
        mirror = claiming_cluster(host("a").has({GPU: "2"}), host("b"), on("b", 8))
        assert replicas_of(mirror, shape({GPU: 1})).value == 2
        assert replicas_of(mirror, claiming(ONE)).value == 0

    def test_devices_that_several_nodes_reach_are_in_the_bound_only(self) -> None:
        fabric = published("f", devices(6), pool="fabric", allNodes=True)
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 2), fabric)
        answer = replicas_of(mirror, claiming(ONE))
        assert answer.value == 2
        assert answer.upper_bound >= 8
        assert not answer.proven
        assert replicas_of(mirror, claiming(claim_spec(request("g", None)))).value == 0

    def test_partitions_share_their_counters(self) -> None:
        slices = [
            published(
                "s0", count=2, pool="a", counter_sets={"gpu-0": {"slices": "7"}}, more={"nodeName": None}
            ),
            published(
                "s1",
                [
                    *(
                        device(f"1g-{i}", counters={"gpu-0": {"slices": "1"}}, profile="1g.10gb")
                        for i in range(7)
                    ),
                    *(
                        device(f"3g-{i}", counters={"gpu-0": {"slices": "3"}}, profile="3g.40gb")
                        for i in range(2)
                    ),
                ],
                count=2,
                pool="a",
            ),
        ]
        mirror = claiming_cluster(host("a"), PLAIN, *slices)

        def profile(name: str) -> ResourceClaimSpec:
            return claim_spec(request("g", 1, f"profile={name}"))

        assert replicas_of(mirror, claiming(profile("1g.10gb"))).value == 7
        assert replicas_of(mirror, claiming(profile("3g.40gb"))).value == 2
        upper = sets_of(
            mirror,
            [
                Component("large", 1, claiming(profile("3g.40gb"))),
                Component("small", 2, claiming(profile("1g.10gb"))),
            ],
        )
        assert upper.answer.value == 1

    def test_shares_of_one_device_serve_several_pods(self) -> None:
        shared = device(
            "gpu-0",
            {"memory": {"value": "80Gi", "requestPolicy": {"default": "10Gi"}}},
            more={"allowMultipleAllocations": True},
        )
        mirror = claiming_cluster(host("a"), PLAIN, on("a", [shared]))
        asked = claim_spec(request("g", 1, capacity={"requests": {"memory": "30Gi"}}))
        assert replicas_of(mirror, claiming(asked)).value == 2
        assert replicas_of(mirror, claiming(ONE)).value == 8


@pytest.mark.parametrize("asked", [shape({GPU: 1}), claiming(ONE), claiming(shared=["s"])])
def test_without_nodes_there_is_nothing(asked: PodShape) -> None:
    mirror = claiming_cluster(PLAIN, on("a", 8), named_claim("s", ONE))
    assert replicas_of(mirror, asked).value == 0


class TestSets:
    def test_components_draw_on_the_same_devices(self) -> None:
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 8), on("b", 4))
        sets = sets_of(
            mirror, [Component("lead", 1, shape({GPU: 1})), Component("work", 2, claiming(TWO))]
        ).answer
        assert sets.value == 2
        assert sets.upper_bound >= 2

    def test_one_component_with_claims_beside_one_without_is_exact(self) -> None:
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 8), on("b", 4))
        sets = sets_of(
            mirror, [Component("lead", 1, shape(cpu=1)), Component("work", 2, claiming(TWO))]
        ).answer
        assert (sets.value, sets.proven) == (3, True)

    def test_a_gang_that_must_share_a_rack_counts_the_racks_devices(self) -> None:
        mirror = claiming_cluster(
            host("a").label(rack="r1"),
            host("b").label(rack="r1"),
            host("c").label(rack="r2"),
            PLAIN,
            on("a", 4),
            on("b", 2),
            on("c", 5),
        )
        levels = Levels((Level("rack"),))
        topology = Topology(levels, DomainCache())
        fit = place_gang(
            room_of(mirror),
            (Component("w", 3, claiming(TWO)),),
            TopologyRequest(TopologyMode.REQUIRED, "rack"),
            topology.levels,
            topology.domains,
            lambda: False,
        )
        assert (fit.answer.value, fit.answer.proven) == (1, True)
        assert fit.placement == {(0, 0): 2, (0, 1): 1}

    def test_what_is_held_for_others_is_gone(self) -> None:
        room = room_of(small())
        asked = claiming(ONE)
        order = room.nodes.first_fit_order()
        placed = room.place(asked, room.fits(asked), 7, order)
        assert placed is not None
        twin = room.fork()
        room.take(asked, placed)
        assert int(room.fits(asked).sum()) == 3
        assert int(room.fits(claiming(TWO)).sum()) == 1
        assert int(twin.fits(asked).sum()) == 10


class TestSharedClaims:
    def test_a_claim_that_is_allocated_keeps_its_pods_on_its_node(self) -> None:
        claim = named_claim("s", ONE, "a", "gpu-1", users=250)
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 2), on("b", 4), claim)
        assert replicas_of(mirror, claiming(shared=["s"])).value == 6
        assert replicas_of(mirror, claiming(ONE, shared=["s"])).value == 1

    @pytest.mark.parametrize("node_name", [None, "a"])
    def test_all_pods_together_are_no_more_than_may_use_it(self, node_name: str | None) -> None:
        held = () if node_name is None else ("gpu-0",)
        claim = named_claim("s", ONE, node_name, *held)
        room = room_of(claiming_cluster(host("a", pods=500), PLAIN, on("a", 1), claim))
        first, other = claiming(shared=["s"]), claiming(shared=["s"], cpu=0)
        assert int(room.fits(first).sum()) == 256
        room.take(first, np.array([200]))
        assert int(room.fits(first).sum()) == int(room.fits(other).sum()) == 56

    def test_what_an_allocated_claim_asked_for_does_not_matter(self) -> None:
        claim = named_claim("s", claim_spec(request("g", of="gone")), "a", "gpu-1")
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 2), claim)
        assert replicas_of(mirror, claiming(shared=["s"])).value == 110

    def test_one_that_is_not_yet_allocated_is_counted_on_one_node(self) -> None:
        mirror = claiming_cluster(
            host("a", pods=5), host("b", pods=7), PLAIN, on("a", 2), on("b", 4), named_claim("s", ONE)
        )
        answer = replicas_of(mirror, claiming(shared=["s"]))
        assert (answer.value, answer.proven) == (7, False)
        assert answer.upper_bound >= 7
        assert replicas_of(mirror, claiming(ONE, shared=["s"])).value == 3

    def test_one_that_finds_no_device_anywhere_gives_none(self) -> None:
        spec = claim_spec(request("g", 5))
        mirror = claiming_cluster(host("a"), PLAIN, on("a", 4), named_claim("s", spec))
        assert replicas_of(mirror, claiming(shared=["s"])).value == 0

    def test_gangs_in_different_domains_do_not_each_get_it(self) -> None:
        mirror = claiming_cluster(
            host("a").label(rack="r1"),
            host("b").label(rack="r2"),
            PLAIN,
            on("a", 2),
            on("b", 2),
            named_claim("s", ONE),
        )
        fit = place_gang(
            room_of(mirror),
            (Component("w", 60, claiming(shared=["s"])), Component("x", 1, shape(cpu=1))),
            TopologyRequest(TopologyMode.REQUIRED, "rack"),
            Levels((Level("rack"),)),
            DomainCache(),
            lambda: False,
        )
        assert fit.answer.value == 1

    def test_a_claim_of_the_network_is_not_promised(self) -> None:
        claim = named_claim("s", ONE, "a", "gpu-1", nodes=["a", "b"])
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 2), claim)
        answer = replicas_of(mirror, claiming(shared=["s"]))
        assert (answer.value, answer.proven) == (0, False)
        assert "allocated for several nodes" in str(answer.reasons[0])


class TestWhatIsNotKnown:
    @pytest.mark.parametrize(
        ("asked", "text"),
        [
            (claiming(templates=["none"]), "ResourceClaimTemplate default/none is known neither"),
            (claiming(shared=["none"]), "ResourceClaim default/none is known neither"),
            (claiming(claim_spec(request("g", of="none"))), "has no DeviceClass none"),
            (claiming(templates=["wrong"]), "allocationMode is 'Some': expected ExactCount or All"),
        ],
    )
    def test_it_is_no_promise_and_is_told(self, asked: PodShape, text: str) -> None:
        wrong = claim_template("wrong", claim_spec(request("g", allocationMode="Some")))
        mirror = claiming_cluster(host("a"), PLAIN, on("a", 4), wrong)
        answer = replicas_of(mirror, asked)
        assert (answer.value, answer.proven) == (0, False)
        assert answer.reasons[0].kind == "dra_unknown"
        assert text in str(answer.reasons[0])

    def test_a_template_of_the_cluster_says_what_pods_get(self) -> None:
        mirror = claiming_cluster(host("a"), PLAIN, on("a", 4), claim_template("t", TWO))
        assert replicas_of(mirror, claiming(templates=["t"])).value == 2
        assert replicas_of(mirror, claiming(templates=["t", "t"])).value == 1

    def test_without_cel_nothing_is_promised_and_the_bound_stays(self) -> None:
        chosen = device_class("gpu", "device.driver == 'x'", extended=GPU)
        mirror = claiming_cluster(host("a"), chosen, on("a", 4), select=without_cel)
        answer = replicas_of(mirror, shape({GPU: 1}))
        assert (answer.value, answer.upper_bound) == (0, 4)
        assert "extra [dra]" in str(answer.reasons[0])

    def test_a_selector_that_fails_on_a_node_gives_none_on_any(self) -> None:
        failing = device_class("gpu", "!model=odd", extended=GPU)
        mirror = claiming_cluster(
            host("a"), host("b"), failing, on("a", devices(4, model="fine")), on("b", devices(1, model="odd"))
        )
        assert replicas_of(mirror, shape({GPU: 1})).value == 0

    def test_a_node_that_pods_may_not_use_does_not_matter_for_that(self) -> None:
        failing = device_class("gpu", "!model=odd", extended=GPU)
        mirror = claiming_cluster(
            host("a"),
            host("b").taint("x=y:NoSchedule"),
            failing,
            on("a", devices(4, model="fine")),
            on("b", devices(1, model="odd")),
        )
        assert replicas_of(mirror, shape({GPU: 1})).value == 4

    def test_while_claims_are_not_read_no_device_is_free(self) -> None:
        mirror = small()
        mirror.columns.dra.is_complete = False
        assert replicas_of(mirror, shape({GPU: 1})).value == 0
        answer = replicas_of(mirror, claiming(ONE))
        assert answer.value == 0
        assert "not served or not yet read" in str(answer.reasons[0])


class TestReasons:
    def test_a_class_without_free_devices_is_named_with_the_nodes(self) -> None:
        answer = replicas_of(small(), claiming(claim_spec(request("g", 7))))
        assert answer.reasons[0].kind == "dra"
        assert str(answer.reasons[0]).startswith("no device of class gpu free on 3 nodes: claim own0: ")
        assert "of 8 devices 8 match and 6 of them are free" in str(answer.reasons[0])

    def test_a_name_that_nobody_serves_is_insufficient_as_ever(self) -> None:
        mirror = claiming_cluster(host("a"), host("b"), PLAIN, on("a", 1))
        assert insufficient(GPU, 1) in replicas_of(mirror, shape({GPU: 1})).reasons

    def test_an_incomplete_pool_is_told(self) -> None:
        part = published("s", devices(4), pool="a", count=2)
        answer = replicas_of(claiming_cluster(host("a"), PLAIN, part), claiming(ONE))
        assert answer.value == 0
        assert "resourceSliceCount is 2, but generation 1 has 1 slices" in str(answer.reasons[0])

    def test_each_node_is_explained_once(self) -> None:
        asked = claiming(claim_spec(request("g", 7)))
        (told,) = explain(room_of(small()), [Component("w", 1, asked)], lambda: False)
        assert told.fits_alone == 0
        assert [(one.cause.kind, one.nodes) for one in told.blocked] == [("dra", 3)]
        assert told.near_misses[0].missing == "free devices of class gpu"
        assert "No device of class gpu free on 1 node" in told.near_misses[0].remedy


def test_bad_slices_are_reported_once_and_beside_them_all_is_counted() -> None:
    complaints = Complaints()
    bad = published("bad", [device("x", {"memory": "lots"})], pool="bad")
    mirror = claiming_cluster(host("a"), PLAIN, on("a", 2), bad, bad, report=complaints)
    assert [(resource, key) for resource, key, _ in complaints] == [("resourceslices", "bad")]
    assert replicas_of(mirror, claiming(ONE)).value == 2
