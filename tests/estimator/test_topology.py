"""Gangs whose pods share domains of a topology level: tables, and against brute force over domains."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.answer import UNBOUNDED
from estimator.capacity.budget import NO_BUDGET, Budget
from estimator.capacity.request import Component
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.gang_fit import GangFit, place_gang
from estimator.capacity.topology.levels import Levels, detected, levels_of
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import (
    PodShape,
    Spread,
)
from estimator.reasons import (
    Reason,
    crossed_topologies,
    domain_limit,
    fits_within,
    held_domains,
    outside_level,
    understated,
    uneven_slices,
    unknown_level,
)
from fairway.workloads.gang import TopologyMode, TopologyRequest
from tests.builders import (
    NodeBuilder,
    cluster,
    component,
    never,
    node,
    pod,
    replicas_of,
    room_of,
    shape,
)
from tests.estimator import gathering, packing
from tests.estimator.fleets import seeded
from tests.estimator.test_device_answers import hami_node
from tests.estimator.test_spreading import kept

CI = settings(max_examples=100, derandomize=True, deadline=None)
BLOCK, RACK, HOST = "example.com/topology-block", "example.com/topology-rack", "kubernetes.io/hostname"
CLIQUE, POOL = "nvidia.com/gpu.clique", "cloud.google.com/gke-nodepool"
LEVELS = levels_of([BLOCK, RACK, HOST])
KEYS = {BLOCK: (BLOCK,), RACK: (BLOCK, RACK), HOST: (BLOCK, RACK, HOST)}


def at(name: str, gpus: int, block: str = "", rack: str = "", cpu: int = 64) -> NodeBuilder:
    labels = {key: value for key, value in ((BLOCK, block), (RACK, rack)) if value}
    return node(name).gpus(gpus).cpu(cpu).label({**labels, HOST: name})


def required(level: str) -> TopologyRequest:
    return TopologyRequest(TopologyMode.REQUIRED, level)


def preferred(level: str) -> TopologyRequest:
    return TopologyRequest(TopologyMode.PREFERRED, level)


def exclusive(level: str, size: int = 0) -> TopologyRequest:
    return TopologyRequest(TopologyMode.EXCLUSIVE, level, size)


def sliced(level: str, size: int) -> TopologyRequest:
    return TopologyRequest(TopologyMode.SLICED, level, size)


def tied(part: Component, topology: TopologyRequest) -> Component:
    return replace(part, topology=topology)


def place(
    mirror: ClusterMirror,
    asked: Iterable[Component],
    topology: TopologyRequest | None = None,
    levels: Levels = LEVELS,
    wanted: int = 0,
) -> GangFit:
    return place_gang(room_of(mirror), tuple(asked), topology, levels, DomainCache(), never, wanted)


def workers(pods: int, gpus: int = 8) -> Component:
    return component("worker", pods, gpu=gpus)


LAUNCHER = component("launcher", 1, cpu=1)

# --- tables ----------------------------------------------------------------------------------------------

RACKS = (
    at("a", 8, "b1", "r1"),
    at("b", 8, "b1", "r1"),
    at("c", 8, "b1", "r2"),
    at("d", 8, "b2", "r3"),
    at("e", 8, "b2", "r3"),
    at("f", 8, "b2", "r3"),
)
HELD_BY_OTHERS = pod("leader").on("c").requests(gpu=1)


# Components, topology, copies, level.
CASES: dict[str, tuple[tuple[Component, ...], TopologyRequest | None, int, str]] = {
    "no topology": ((workers(2),), None, 3, ""),
    "required: racks of 2, 1 and 3 nodes": ((workers(2),), required("rack"), 2, RACK),
    "required: in a block": ((workers(3),), required("block"), 2, BLOCK),
    "required: on a host": ((workers(2, gpus=4),), required("host"), 6, HOST),
    "required: too large for any rack": ((workers(4),), required("rack"), 0, ""),
    "required: by the component alone": ((tied(workers(2), required("rack")),), None, 2, RACK),
    "required: components of one shape": ((workers(1), workers(2)), required("rack"), 1, RACK),
    "required: several shapes": ((LAUNCHER, workers(2)), required("rack"), 2, RACK),
    "preferred: it fits in a rack": ((workers(3),), preferred("rack"), 2, RACK),
    "preferred: only in a block": ((workers(2, gpus=5), LAUNCHER), preferred("host"), 3, RACK),
    "preferred: in no block": ((workers(4),), preferred("rack"), 1, ""),
    "preferred: not at all": ((workers(7),), preferred("rack"), 0, ""),
    "exclusive: one copy a rack": ((workers(1),), exclusive("rack"), 3, RACK),
    "exclusive: several shapes": ((LAUNCHER, workers(2)), exclusive("rack"), 2, RACK),
    "exclusive: too large for all but one": ((workers(3),), exclusive("rack"), 1, RACK),
    "exclusive: in slices, each with a rack": ((workers(2),), exclusive("rack", 1), 1, RACK),
    "sliced: two a rack": ((workers(4),), sliced("rack", 2), 1, RACK),
    "sliced: one a rack": ((workers(3),), sliced("rack", 1), 2, RACK),
    "sliced: of several components": ((workers(2), component("aux", 2, cpu=32)), sliced("rack", 2), 2, RACK),
    "sliced by rack within a block": (
        (tied(workers(2), sliced("rack", 1)),),
        required("block"),
        2,
        BLOCK,
    ),
    "required in a rack, within a block": (
        (tied(workers(2), required("rack")), workers(1)),
        required("block"),
        2,
        BLOCK,
    ),
    "each component in a rack of its own choice": (
        (tied(workers(2), required("rack")), tied(component("other", 1, gpu=8), required("rack"))),
        None,
        2,
        "",
    ),
    "two components that each want a rack": (
        (tied(workers(1), exclusive("rack")), tied(component("other", 1, gpu=4), exclusive("rack"))),
        None,
        1,
        "",
    ),
    "sliced over racks by hosts of their own": (
        (tied(workers(2, gpus=4), required("host")),),
        sliced("rack", 2),
        6,
        RACK,
    ),
    "nothing to place": ((workers(0),), required("rack"), UNBOUNDED, ""),
}


@pytest.mark.parametrize(("asked", "topology", "copies", "level"), CASES.values(), ids=CASES)
def test_copies_in_domains(
    asked: tuple[Component, ...], topology: TopologyRequest | None, copies: int, level: str
) -> None:
    fit = place(cluster(*RACKS), asked, topology)
    assert (fit.answer.value, fit.answer.proven, fit.level) == (copies, True, level)


def test_a_rack_name_repeated_in_two_blocks_holds_no_gang_together() -> None:
    mirror = cluster(at("a", 8, "b1", "r1"), at("b", 8, "b2", "r1"), at("c", 8, "b2", "r1"))
    assert place(mirror, [workers(3)], required(RACK)).answer.value == 0
    assert place(mirror, [workers(2)], required(RACK)).domains == (("b2", "r1"),)


def test_a_rack_name_repeated_in_two_blocks_is_one_domain_to_those_who_keep_apart_by_it() -> None:
    mirror = cluster(at("a", 8, "b1", "r1"), at("b", 8, "b2", "r1"), at("c", 8, "b2", "r2"))
    assert place(mirror, [workers(1)], exclusive(RACK)).answer.value == 2
    assert place(mirror, [workers(2)], exclusive(RACK)).answer.value == 1


def test_nodes_without_a_label_are_of_no_use_to_a_level_and_are_counted() -> None:
    mirror = cluster(
        at("a", 8, "b1", "r1"), at("b", 8, "b1"), at("c", 8, "", "r1"), at("d", 8), at("e", 8, "b1", "r1")
    )
    fit = place(mirror, [workers(3)], required(RACK))
    assert fit.answer.value == 0
    assert outside_level(RACK, 3) in fit.answer.reasons


def test_a_preferred_level_is_told() -> None:
    fit = place(cluster(*RACKS), [workers(3)], preferred("rack"))
    assert fit.answer.reasons[0] == fits_within(RACK)
    assert str(fits_within(RACK)) == f"one copy fits within one domain of {RACK}"
    assert fit.domains == (("b2", "r3"),)


def test_the_domains_used_are_told() -> None:
    assert place(cluster(*RACKS), [workers(2)], required("rack")).domains == (("b1", "r1"), ("b2", "r3"))


def test_reasons_say_what_the_roomiest_domain_holds() -> None:
    fit = place(cluster(*RACKS), [workers(4)], required("rack"))
    assert fit.answer.reasons[0] == domain_limit(RACK, 4, 3, 3)
    assert str(fit.answer.reasons[0]) == (
        f"4 pods must be in one domain of {RACK}; the roomiest of 3 holds 3"
    )


@pytest.mark.parametrize(("pods", "limits"), [(1, False), (2, True), (4, True)])
def test_a_domain_is_told_as_a_limit_only_where_it_is_one(pods: int, limits: bool) -> None:
    for topology in (required("rack"), sliced("rack", pods)):
        fit = place(cluster(*RACKS), [workers(pods)], topology)
        assert any(reason.kind == "topology" for reason in fit.answer.reasons) == limits


REFUSED: dict[str, tuple[tuple[Component, ...], TopologyRequest | None, str]] = {
    "an unknown level": ((workers(1),), required("row"), "unknown_level"),
    "an unknown level that is merely preferred": ((workers(1),), preferred("row"), "unknown_level"),
    "an unknown level of a component": ((tied(workers(1), required("row")), LAUNCHER), None, "unknown_level"),
    "a label that no node carries": ((workers(1),), exclusive(POOL), "unknown_level"),
    "no slice size": ((workers(4),), sliced("rack", 0), "slice_size"),
    "a negative slice size": ((workers(4),), sliced("rack", -2), "slice_size"),
    "slices that do not come out even": ((workers(4),), sliced("rack", 3), "slice_size"),
    "uneven slices of one component": ((workers(4), LAUNCHER), sliced("rack", 2), "slice_size"),
    "slices across a component's own topology": (
        (tied(workers(4), required("block")), workers(2)),
        sliced("rack", 2),
        "topology_conflict",
    ),
}


@pytest.mark.parametrize(("asked", "topology", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_understood_is_answered_with_zero_and_why(
    asked: tuple[Component, ...], topology: TopologyRequest | None, why: str
) -> None:
    answer = place(cluster(*RACKS), asked, topology).answer
    assert answer.value == 0
    assert any(reason.kind == why for reason in answer.reasons)


def test_an_ambiguous_level_is_answered_with_zero_and_the_keys() -> None:
    levels = levels_of(["example.com/rack", "example.org/rack"])
    answer = place(cluster(*RACKS), [workers(1)], required("rack"), levels).answer
    assert (answer.value, str(answer.reasons[0])) == (
        0,
        "topology level 'rack' may be any of example.com/rack, example.org/rack: "
        "name the level by its label key",
    )


def test_crossed_topologies_are_not_worked_out_and_keep_their_bound() -> None:
    asked = (tied(workers(2), required("block")), component("aux", 2, cpu=1))
    answer = place(cluster(*RACKS), asked, sliced("rack", 2)).answer
    assert (answer.value, answer.upper_bound, answer.proven) == (0, 3, False)


SAID: dict[str, tuple[Reason, str]] = {
    "unknown_level": (
        unknown_level("row", (BLOCK, RACK)),
        "topology level 'row' is unknown here: expected a label key that nodes carry, or a short name of one "
        f"of this cluster's levels ({BLOCK}, {RACK})",
    ),
    "slice_size": (
        uneven_slices("worker", 10, 4),
        "component worker has 10 pods, which slices of 4 do not make up: expected a positive slice size that "
        "divides it",
    ),
    "topology_label": (
        outside_level(RACK, 3, 1, " r"),
        f"3 nodes in no domain of {RACK}: label missing or, on 1 of them, malformed (' r')",
    ),
    "exclusive": (held_domains(RACK, 2), f"2 domains of {RACK} in use by others"),
    "topology_conflict": (
        crossed_topologies("worker", BLOCK, RACK),
        f"component worker is tied to {BLOCK} inside a gang in slices over {RACK}: expected whole slices "
        "within each domain of its own",
    ),
    "understated": (understated("not searched"), "more may fit: not searched"),
}


@pytest.mark.parametrize(("kind", "said"), SAID.items(), ids=SAID)
def test_reasons_are_typed_and_read_as_sentences(kind: str, said: tuple[Reason, str]) -> None:
    reason, text = said
    assert (reason.kind, str(reason)) == (kind, text)


def test_a_hostile_level_name_is_shown_cut() -> None:
    answer = place(cluster(*RACKS), [workers(1)], required("x" * 100_000)).answer
    assert len(str(answer.reasons[0])) < 400


def test_the_order_in_which_nodes_came_changes_no_answer() -> None:
    asked = [component("worker", 2, gpu=8)]
    fits = [place(cluster(*order), asked, required("rack"), wanted=1) for order in (RACKS, RACKS[::-1])]
    assert fits[0].answer == fits[1].answer
    assert fits[0].domains == fits[1].domains


def test_a_known_level_whose_label_no_node_carries_has_no_domains() -> None:
    answer = place(cluster(node("a").gpus(8)), [workers(1)], required("rack")).answer
    assert answer.value == 0
    assert outside_level(RACK, 1) in answer.reasons


def test_a_preferred_level_without_domains_gives_way_to_a_coarser_one() -> None:
    mirror = cluster(at("a", 8, "b1"), at("b", 8, "b1"))
    fit = place(mirror, [workers(2)], preferred("rack"))
    assert (fit.answer.value, fit.level) == (1, BLOCK)


def test_a_label_outside_of_the_levels_is_a_level_by_itself() -> None:
    nodes = [at(f"n{i}", 8).label({POOL: f"pool-{i // 2}"}) for i in range(4)]
    fit = place(cluster(*nodes), [workers(2)], exclusive(POOL))
    assert (fit.answer.value, fit.level, fit.domains) == (2, POOL, (("pool-0",), ("pool-1",)))


def test_domains_that_others_hold_for_themselves_are_left_alone() -> None:
    mirror = cluster(*RACKS, HELD_BY_OTHERS)
    mirror.columns.hold_exclusively("c", RACK, 1)
    fit = place(mirror, [workers(1, gpus=4)], exclusive("rack"))
    assert (fit.answer.value, fit.answer.proven) == (2, True)
    assert held_domains(RACK, 1) in fit.answer.reasons
    assert place(mirror, [workers(1, gpus=4)], required("rack")).answer.value == 11


def test_a_clique_is_given_away_only_when_wholly_free() -> None:
    trays = [node(f"n{i}").gpus(4).cpu(8).label({CLIQUE: f"uuid.{i // 3}"}) for i in range(6)]
    asked = [component("worker", 2, gpu=4)]
    levels = detected({CLIQUE})
    assert place(cluster(*trays), asked, exclusive("clique"), levels).answer.value == 2
    busy = cluster(*trays, pod("p").on("n0").requests(gpu=1))
    fit = place(busy, asked, exclusive("clique"), levels)
    assert (fit.answer.value, fit.domains) == (1, (("uuid.1",),))
    assert place(busy, asked, required("clique"), levels).answer.value == 2
    cpu_only = cluster(*trays, pod("p").on("n0").requests(cpu=1))
    assert place(cpu_only, asked, exclusive("clique"), levels).answer.value == 2


def test_the_search_ends_when_the_wanted_copies_are_found() -> None:
    asked = [LAUNCHER, workers(1)]
    fit = place(cluster(*RACKS), asked, required("rack"), wanted=2)
    assert (fit.answer.value, fit.answer.upper_bound) == (2, 6)
    assert fit.placement is not None
    assert packing.flaws(room_of(cluster(*RACKS)), tuple(asked), 2, fit.placement) == []


@pytest.mark.parametrize(
    ("asked", "topology", "value"),
    [
        ([workers(2)], required("rack"), 2),
        ([workers(2)], exclusive("rack"), 2),
        ([workers(2)], sliced("rack", 2), 2),
        ([LAUNCHER, workers(2)], required("rack"), 0),
        ([LAUNCHER, workers(2)], exclusive("rack"), 0),
        ([LAUNCHER, tied(workers(2), required("rack"))], None, 0),
    ],
)
def test_with_no_time_only_arithmetic_is_answered_and_the_bound_holds(
    asked: list[Component], topology: TopologyRequest | None, value: int
) -> None:
    mirror = cluster(*RACKS)
    fit = place_gang(room_of(mirror), tuple(asked), topology, LEVELS, DomainCache(), lambda: True)
    assert fit.answer.value == value
    assert fit.answer.upper_bound >= place(mirror, asked, topology).answer.value


def test_a_gang_of_a_hundred_thousand_pods() -> None:
    mirror = cluster(*(node(f"n{i}").cpu(400).pods(60_000).label({BLOCK: f"b{i // 3}"}) for i in range(6)))
    levels = levels_of([BLOCK])
    asked = [component("web", 100_000, cpu="5m")]
    fit = place(mirror, asked, required("block"), levels)
    assert (fit.answer.value, fit.answer.proven) == (2, True)
    assert sum((fit.placement or {}).values()) == 200_000
    parts = [LAUNCHER, tied(component("web", 100_000, cpu="5m"), sliced("block", 1000))]
    assert place(mirror, parts, None, levels, wanted=1).answer.value == 1


def test_five_hundred_domains() -> None:
    mirror = cluster(*(at(f"n{i}", 8, f"b{i // 40}", f"r{i // 4}") for i in range(2000)))
    fit = place(mirror, [workers(4)], required("rack"))
    assert (fit.answer.value, fit.answer.proven, len(fit.domains)) == (500, True, 500)
    assert place(mirror, [LAUNCHER, workers(4)], required("rack"), wanted=3).answer.value == 3


def test_caps_by_host_hold_inside_domains_exactly() -> None:
    apart = replace(shape(gpu=1), per_domain=((HOST, 1),))
    fit = place(cluster(*RACKS), [Component("worker", 2, apart)], required("rack"))
    assert (fit.answer.value, fit.answer.proven) == (2, True)


def test_caps_by_rack_leave_one_copy_to_each() -> None:
    apart = replace(shape(gpu=1), per_domain=((RACK, 2),))
    fit = place(cluster(*RACKS), [Component("worker", 2, apart)], required("rack"))
    assert fit.answer.value == 3
    assert place(cluster(*RACKS), [Component("worker", 3, apart)], required("rack")).answer.value == 0


def test_a_gang_in_one_rack_cannot_spread_over_all_of_them() -> None:
    even = replace(shape(gpu=1), spread=(Spread(RACK, 1),))
    assert place(cluster(*RACKS), [Component("worker", 2, even)], required("rack")).answer.value == 0
    fit = place(cluster(*RACKS), [Component("worker", 2, even)])
    assert (fit.answer.value, fit.answer.proven) == (13, True)


def test_a_spread_component_among_others_is_understated_and_says_so() -> None:
    even = Component("worker", 6, replace(shape(gpu=1), spread=(Spread(RACK, 1),)))
    fit = place(cluster(*RACKS), [even, LAUNCHER])
    assert fit.answer.value == 0
    assert fit.answer.upper_bound >= 1
    assert any(reason.kind == "understated" for reason in fit.answer.reasons)


def test_where_devices_are_only_bounded_domains_are_too() -> None:
    """Of containers that ask for shares of devices separately, so many fit for sure and so many at most."""
    shares = PodShape(
        requests=(("nvidia.com/gpu", 2), ("nvidia.com/gpumem", 17_000)),
        containers=(
            (("nvidia.com/gpu", 1), ("nvidia.com/gpumem", 9_000)),
            (("nvidia.com/gpu", 1), ("nvidia.com/gpumem", 8_000)),
        ),
    )
    mirror = cluster(*(hami_node(f"n{i}", devices=3).label({BLOCK: "b"}) for i in range(2)))
    alone = replicas_of(mirror, shares)
    one, pair = (
        place(mirror, [Component("worker", pods, shares)], required("block"), levels_of([BLOCK])).answer
        for pods in (1, 2)
    )
    assert 0 < alone.value < alone.upper_bound
    assert (one.value, one.upper_bound) == (alone.value, alone.upper_bound)
    assert (pair.value, pair.upper_bound) == (alone.value // 2, alone.upper_bound // 2)


@pytest.mark.parametrize("search", [NO_BUDGET, Budget(lambda: 0.0, 10.0)], ids=["greedy", "exact"])
def test_v4_within_a_rack(search: Budget) -> None:
    """V4: nodes of 7 and 8 GPUs take 5, 4, 3 and 3 in one way only."""
    mirror = cluster(at("a", 7, "b", "r"), at("b", 8, "b", "r"), at("c", 8, "b", "s"))
    asked = tuple(component(f"c{i}", 1, gpu=gpus) for i, gpus in enumerate((5, 4, 3, 3)))
    room = room_of(mirror)
    fit = place_gang(room, asked, required("rack"), LEVELS, DomainCache(), never, 0, search)
    assert (fit.answer.value, fit.answer.proven, fit.domains) == (1, True, (("b", "r"),))


def test_components_of_one_shape_share_their_caps() -> None:
    apart = replace(shape(gpu=1), per_domain=((HOST, 1),))
    parts = [Component("leader", 1, apart), Component("worker", 2, apart), LAUNCHER]
    fit = place(cluster(*RACKS), parts)
    assert (fit.answer.value, fit.answer.proven) == (2, True)


# --- against brute force over domains --------------------------------------------------------------------


def a_node(rng: Random) -> NodeBuilder:
    built = at(
        "n", rng.choice([0, 1, 2, 2, 4]), rng.choice(["b1", "b1", "b2", ""]), rng.choice(["r1", "r2", ""])
    )
    built = built.cpu(rng.choice([0, 1, 2, 4])).pods(rng.choice([1, 3, 20]))
    return built.cordoned() if rng.random() < 0.1 else built


def fleets(most: int) -> st.SearchStrategy[ClusterMirror]:
    def named(nodes: list[NodeBuilder]) -> ClusterMirror:
        return cluster(
            *(replace(n, name=f"n{i}", labels={**n.labels, HOST: f"n{i}"}) for i, n in enumerate(nodes))
        )

    return st.lists(seeded(a_node), min_size=1, max_size=most).map(named)


def a_topology(rng: Random, pods: int) -> TopologyRequest:
    level = rng.choice([BLOCK, RACK, RACK, HOST])
    sizes = [size for size in range(1, pods + 1) if pods % size == 0]
    return rng.choice([required(level), required(level), exclusive(level), sliced(level, rng.choice(sizes))])


SHAPES = (shape(gpu=1), shape(gpu=2), shape(cpu=1), shape(cpu=1, gpu=1))


def a_component(rng: Random, owns: float) -> Component:
    pods = rng.randint(1, 3)
    topology = a_topology(rng, pods) if rng.random() < owns else None
    return Component("part", pods, rng.choice(SHAPES), topology)


def gangs(most: int, owns: float = 0.0, same: bool = False) -> st.SearchStrategy[tuple[Component, ...]]:
    def built(rng: Random) -> tuple[Component, ...]:
        parts = [a_component(rng, owns) for _ in range(rng.randint(1, most))]
        return tuple(replace(part, shape=parts[0].shape) if same else part for part in parts)

    return seeded(built)


def held_rows(mirror: ClusterMirror, rng: Random) -> frozenset[int]:
    """Now and then another workload has a node's rack for itself."""
    held = {row for row in range(len(mirror.columns.rows)) if rng.random() < 0.15}
    for row in held:
        for level in KEYS:
            mirror.columns.hold_exclusively(f"n{row}", level, 1)
    return frozenset(held)


def checked(
    mirror: ClusterMirror,
    asked: tuple[Component, ...],
    topology: TopologyRequest | None,
    held: frozenset[int] = frozenset(),
) -> tuple[GangFit, int]:
    """The answer, of which the placement has been looked over, and the best that there is, up to 4."""
    room = room_of(mirror)
    over = None
    own: dict[int, gathering.Tied] = {}
    for index, part in enumerate(asked):
        request = part.topology
        if topology is not None and topology.mode is TopologyMode.SLICED:
            request = topology
        if request is not None:
            own[index] = gathering.tied(room, part, request, KEYS[request.level], held)
    if topology is not None and topology.mode is not TopologyMode.SLICED:
        over = gathering.tied(room, asked[0], topology, KEYS[topology.level], held)
    fit = place(mirror, asked, topology)
    if fit.answer.value:
        assert fit.placement is not None
        assert packing.flaws(room, asked, fit.answer.value, fit.placement) == []
        assert gathering.astray(asked, over, own, fit.placement) == []
    best = gathering.best(room, asked, over, own, 4)
    assert min(fit.answer.value, 4) <= best <= fit.answer.upper_bound
    assert fit.answer.proven is (fit.answer.value == fit.answer.upper_bound)
    assert len(set(fit.answer.reasons)) == len(fit.answer.reasons)
    return fit, best


LEVEL = st.sampled_from([BLOCK, RACK, HOST])
RNG = st.randoms(use_true_random=False)


@CI
@given(fleets(5), gangs(1) | gangs(3, same=True), st.sampled_from([required, exclusive]), LEVEL, RNG)
def test_gangs_of_one_shape_are_answered_as_brute_force_over_domains(
    mirror: ClusterMirror,
    asked: tuple[Component, ...],
    mode: Callable[[str], TopologyRequest],
    level: str,
    rng: Random,
) -> None:
    fit, best = checked(mirror, asked, mode(level), held_rows(mirror, rng))
    assert fit.answer.proven
    assert min(fit.answer.value, 4) == best


@CI
@given(fleets(5), gangs(1), LEVEL, RNG)
def test_slices_of_one_component_are_answered_as_brute_force_over_domains(
    mirror: ClusterMirror, asked: tuple[Component, ...], level: str, rng: Random
) -> None:
    sizes = [size for size in (1, 2, 3) if asked[0].replicas % size == 0]
    fit, best = checked(mirror, asked, sliced(level, rng.choice(sizes)))
    assert fit.answer.proven
    assert min(fit.answer.value, 4) == best


@CI
@given(fleets(4), gangs(1, owns=1.0), st.sampled_from([required, exclusive]), LEVEL, RNG)
def test_a_component_tied_within_its_gang_is_answered_as_brute_force_over_domains(
    mirror: ClusterMirror,
    asked: tuple[Component, ...],
    mode: Callable[[str], TopologyRequest],
    level: str,
    rng: Random,
) -> None:
    fit, best = checked(mirror, asked, mode(level), held_rows(mirror, rng))
    own = asked[0].topology
    assert own is not None
    if own.mode is not TopologyMode.EXCLUSIVE or set(KEYS[own.level]) >= set(KEYS[level]):
        assert fit.answer.proven
    assert min(fit.answer.value, 4) == best


@CI
@given(fleets(4), gangs(3), st.sampled_from([required, exclusive]), LEVEL, RNG)
def test_gangs_of_several_shapes_lie_between_placement_and_bound(
    mirror: ClusterMirror,
    asked: tuple[Component, ...],
    mode: Callable[[str], TopologyRequest],
    level: str,
    rng: Random,
) -> None:
    checked(mirror, asked, mode(level), held_rows(mirror, rng))


@CI
@given(fleets(4), gangs(3, owns=0.6), st.none() | st.builds(required, LEVEL), RNG)
def test_tied_components_lie_between_placement_and_bound(
    mirror: ClusterMirror, asked: tuple[Component, ...], topology: TopologyRequest | None, rng: Random
) -> None:
    checked(mirror, asked, topology, held_rows(mirror, rng))


def test_small_gangs_of_several_shapes_are_placed_as_well_as_they_can_be() -> None:
    """No law, since packing is hard, but so it is on each of these."""
    missed = []
    for seed in range(150):
        rng = Random(seed)
        nodes = [a_node(rng) for _ in range(rng.randint(2, 5))]
        mirror = cluster(
            *(replace(n, name=f"n{i}", labels={**n.labels, HOST: f"n{i}"}) for i, n in enumerate(nodes))
        )
        asked = tuple(a_component(rng, 0.0) for _ in range(rng.randint(2, 3)))
        fit, best = checked(mirror, asked, required(rng.choice([BLOCK, RACK])))
        if min(fit.answer.value, 4) != best:
            missed.append(seed)
    assert missed == []


def test_domains_that_a_component_has_for_itself_are_gone_for_copies_in_other_domains() -> None:
    asked = (tied(workers(1, gpus=1), exclusive("block")),)
    fit = place(cluster(*RACKS), asked, required("rack"))
    assert (fit.answer.value, fit.answer.proven) == (2, True)
    pair = (tied(workers(1, gpus=1), exclusive("block")), LAUNCHER)
    assert place(cluster(*RACKS), pair, required("rack")).answer.value == 2


def test_two_components_never_share_a_domain_that_each_wants_for_itself() -> None:
    asked = tuple(
        tied(component(name, 1, gpu=gpus), exclusive("rack")) for name, gpus in (("one", 4), ("other", 3))
    )
    fit = place(cluster(*RACKS), asked)
    assert (fit.answer.value, fit.answer.proven) == (1, True)
    room, racks = room_of(cluster(*RACKS)), exclusive(RACK)
    own = {
        index: gathering.tied(room, part, racks, KEYS[RACK], frozenset()) for index, part in enumerate(asked)
    }
    assert gathering.astray(asked, None, own, fit.placement or {}) == []


def test_caps_that_reach_over_domains_hold_over_all_copies() -> None:
    apart = Component("worker", 1, replace(shape(gpu=1), per_domain=((BLOCK, 1),)))
    fit = place(cluster(*RACKS), (apart, LAUNCHER), required("rack"))
    assert (fit.answer.value, fit.answer.upper_bound >= 2) == (2, True)


def apart(rng: Random, parts: tuple[Component, ...]) -> tuple[Component, ...]:
    """The same components, of which some keep their distance."""
    keys = (BLOCK, RACK, HOST)
    shapes = {
        part.shape: replace(
            part.shape,
            per_domain=((rng.choice(keys), rng.choice([1, 2])),) if rng.random() < 0.6 else (),
            spread=(Spread(rng.choice(keys), rng.choice([1, 2])),) if rng.random() < 0.3 else (),
        )
        for part in parts
    }
    return tuple(replace(part, shape=shapes[part.shape]) for part in parts)


@CI
@given(fleets(4), gangs(2, owns=0.2) | gangs(2, same=True), st.none() | st.builds(required, LEVEL), RNG)
def test_gangs_that_keep_their_distance_do_so_in_every_placement(
    mirror: ClusterMirror, asked: tuple[Component, ...], topology: TopologyRequest | None, rng: Random
) -> None:
    asked = apart(rng, asked)
    fit = place(mirror, asked, topology)
    for kind in {part.shape for part in asked}:
        placed = [0] * len(mirror.columns.rows)
        for (index, row), pods in (fit.placement or {}).items():
            placed[row] += pods if asked[index].shape == kind else 0
        assert kept(mirror, kind, tuple(placed))
    if not any(part.shape.spread for part in asked):
        checked(mirror, asked, topology)


@CI
@given(fleets(5), gangs(2), LEVEL)
def test_preferred_is_the_finest_level_at_which_one_copy_fits(
    mirror: ClusterMirror, asked: tuple[Component, ...], level: str
) -> None:
    fit = place(mirror, asked, preferred(level))
    assert fit.answer.value == place(mirror, asked).answer.value
    room = room_of(mirror)
    upward = [key for key in (HOST, RACK, BLOCK) if key in KEYS[level]]
    for key in upward:
        over = gathering.tied(room, asked[0], required(key), KEYS[key], frozenset())
        if gathering.best(room, asked, over, {}, 1):
            assert fit.level == key
            break
    else:
        assert fit.level == ""


@CI
@given(fleets(5), gangs(3, owns=0.3), st.none() | st.builds(required, LEVEL), st.integers(0, 30))
def test_an_expired_deadline_cuts_the_search_and_not_the_truth(
    mirror: ClusterMirror, asked: tuple[Component, ...], topology: TopologyRequest | None, looks: int
) -> None:
    clock = iter([False] * looks)
    cut = place_gang(room_of(mirror), asked, topology, LEVELS, DomainCache(), lambda: next(clock, True))
    whole = place(mirror, asked, topology)
    assert cut.answer.value <= whole.answer.upper_bound
    assert cut.answer.upper_bound >= whole.answer.value
    if cut.answer.value:
        assert cut.placement is not None
        assert packing.flaws(room_of(mirror), asked, cut.answer.value, cut.placement) == []
