"""Pods that keep their distance: caps per domain and even spreading, against a scheduler that tries all."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.topology.spreading import keeps_distance, row_caps, spread_replicas
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import (
    EACH_NODE,
    PodShape,
    Spread,
)
from estimator.fit.pod_topology_spread import SpreadRule
from estimator.reasons import domain_cap, scarcest_domain
from tests.builders import NodeBuilder, cluster, never, node, replicas_of, room_of, shape
from tests.estimator.fleets import seeded

CI = settings(max_examples=100, derandomize=True, deadline=None)
ZONE, RACK, HOST = "zone", "rack", "kubernetes.io/hostname"


def at(name: str, gpus: int, zone: str = "", rack: str = "") -> NodeBuilder:
    labels = {key: value for key, value in ((ZONE, zone), (RACK, rack)) if value}
    return node(name).gpus(gpus).label({**labels, HOST: name})


def kept_apart(
    spread: Iterable[Spread] = (), per_domain: Iterable[tuple[str, int]] = (), asked: PodShape | None = None
) -> PodShape:
    return replace(asked or shape(gpu=1), spread=tuple(spread), per_domain=tuple(per_domain))


def value_of(mirror: ClusterMirror, asked: PodShape) -> tuple[int, bool]:
    answer = spread_replicas(room_of(mirror), asked, never).answer
    return answer.value, answer.proven


# Capacity of each domain, pods that run there, max skew, min domains: the most further pods in each.
LIMITS: dict[str, tuple[list[int], list[int], int, int, list[int]]] = {
    "the scarcest decides": ([9, 2, 4], [0, 0, 0], 1, 0, [3, 2, 3]),
    "a wider skew": ([9, 2, 4], [0, 0, 0], 3, 0, [5, 2, 4]),
    "a full domain counts as the emptiest": ([9, 0, 4], [0, 0, 0], 1, 0, [1, 0, 1]),
    "alike domains are filled": ([4, 4], [0, 0], 1, 0, [4, 4]),
    "a lone domain is filled": ([7], [3], 1, 0, [7]),
    "too few domains count as one that is empty": ([9, 5], [0, 0], 2, 3, [2, 2]),
    "pods that run count there too": ([9, 5], [1, 3], 2, 3, [1, 0]),
    "as many as there must be": ([9, 5], [0, 0], 2, 2, [7, 5]),
    "no domain": ([], [], 1, 0, []),
    "a skew that Kubernetes does not accept": ([3, 3], [0, 0], 0, 0, [0, 0]),
    "a domain far ahead gets nothing": ([9, 2], [5, 0], 1, 0, [0, 2]),
    "those behind catch up first": ([9, 9, 1], [3, 0, 1], 1, 0, [0, 3, 1]),
}


@pytest.mark.parametrize(("capacity", "running", "skew", "least", "most"), LIMITS.values(), ids=LIMITS)
def test_spread_limits(
    capacity: list[int], running: list[int], skew: int, least: int, most: list[int]
) -> None:
    present = np.array([0, *running], dtype=np.int64)
    inside = np.array([False, *(True for _ in capacity)])
    rule = SpreadRule(Spread(ZONE, skew, least), np.zeros(0, dtype=np.int64), inside, present)
    further = rule.totals(np.array([0, *capacity], dtype=np.int64)) - present
    assert further.tolist()[1:] == most


FOUR = (at("a", 8, "x"), at("b", 8, "x"), at("c", 2, "y"), at("d", 8))

# Nodes, constraints, how many fit and whether that is proven.
CASES: dict[str, tuple[Iterable[NodeBuilder], PodShape, int]] = {
    "anti-affinity by host": (FOUR, kept_apart(per_domain=[(HOST, 1)]), 4),
    "anti-affinity by zone leaves nodes without a zone alone": (
        FOUR,
        kept_apart(per_domain=[(ZONE, 1)]),
        10,
    ),
    "a host port on nodes without a hostname label": (
        (node("a").gpus(8), node("b").gpus(8)),
        kept_apart(per_domain=[(EACH_NODE, 1)]),
        2,
    ),
    "anti-affinity by a label that no node has": (
        (node("a").gpus(8), node("b").gpus(8)),
        kept_apart(per_domain=[(HOST, 1)]),
        16,
    ),
    "one hostname on two nodes": (
        (node("a").gpus(8).label({HOST: "same"}), node("b").gpus(8).label({HOST: "same"})),
        kept_apart(per_domain=[(HOST, 1)]),
        1,
    ),
    "caps that nest": (
        (at("a", 8, "x"), at("b", 8, "x"), at("c", 8, "x"), at("d", 8, "y")),
        kept_apart(per_domain=[(ZONE, 2), (HOST, 1)]),
        3,
    ),
    "a negative cap": (FOUR, kept_apart(per_domain=[(HOST, -3)]), 0),
    "spread by zone never uses nodes without a zone": (FOUR, kept_apart([Spread(ZONE, 1)]), 5),
    "spread by zone with one pod a host": (
        FOUR,
        kept_apart([Spread(ZONE, 1)], [(HOST, 1)]),
        3,
    ),
    "spread by a label that no node has": (FOUR, kept_apart([Spread("nowhere", 1)]), 0),
    "too few zones": (FOUR, kept_apart([Spread(ZONE, 2, min_domains=3)]), 4),
    "a zone without room counts": (
        (at("a", 8, "x"), at("b", 0, "y")),
        kept_apart([Spread(ZONE, 1)]),
        1,
    ),
    "a zone behind a taint counts": (
        (at("a", 8, "x"), at("b", 8, "y").taint("spot:NoSchedule")),
        kept_apart([Spread(ZONE, 1)]),
        1,
    ),
    "a cordoned zone counts": (
        (at("a", 8, "x"), at("b", 8, "y").cordoned()),
        kept_apart([Spread(ZONE, 1)]),
        1,
    ),
    "a zone that the node selector excludes does not count": (
        (at("a", 8, "x").label(kind="gpu"), at("b", 8, "y")),
        kept_apart([Spread(ZONE, 1)], asked=shape(gpu=1, selector={"kind": "gpu"})),
        8,
    ),
    "by zone and by host": (
        (at("a", 8, "x"), at("b", 8, "y")),
        kept_apart([Spread(ZONE, 1), Spread(HOST, 1)]),
        16,
    ),
    "by zone and by host, with a full host": (
        (at("a", 8, "x"), at("b", 8, "y"), at("c", 0, "y")),
        kept_apart([Spread(ZONE, 1), Spread(HOST, 1)]),
        2,
    ),
}


@pytest.mark.parametrize(("nodes", "asked", "most"), CASES.values(), ids=CASES)
def test_as_many_fit_as_distance_allows(nodes: Iterable[NodeBuilder], asked: PodShape, most: int) -> None:
    assert keeps_distance(asked)
    assert value_of(cluster(*nodes), asked) == (most, True)


def test_spreading_counts_all_domains_of_the_cluster_and_not_only_those_of_the_room() -> None:
    mirror = cluster(at("a", 8, "x"), at("b", 8, "y"))
    inside = room_of(mirror).within(np.array([True, False]))
    assert spread_replicas(inside, kept_apart([Spread(ZONE, 1)]), never).answer.value == 1


def test_caps_that_cross_are_understated_and_bounded() -> None:
    """Racks r1 and r2 reach over both zones, so trimming one node's room may cost the other label's."""
    mirror = cluster(
        at("a", 1, "x", "r1"), at("b", 1, "x", "r2"), at("c", 1, "y", "r1"), at("d", 1, "y", "r2")
    )
    spreading = spread_replicas(room_of(mirror), kept_apart(per_domain=[(ZONE, 1), (RACK, 1)]), never)
    assert (spreading.answer.value, spreading.answer.upper_bound) == (1, 2)
    assert not spreading.answer.proven
    assert any(reason.kind == "understated" for reason in spreading.answer.reasons)


def test_reasons_name_the_constraints_that_bite() -> None:
    asked = kept_apart([Spread(ZONE, 1)], [(HOST, 1), (RACK, 100)])
    reasons = spread_replicas(room_of(cluster(*FOUR)), asked, never).answer.reasons
    assert reasons[:2] == (domain_cap(HOST, 1), scarcest_domain(ZONE, 1, 2, 2))
    assert [str(reason) for reason in reasons[:2]] == [
        f"at most 1 pod in each domain of {HOST}",
        "pods may differ by at most 1 between 2 domains of zone, the scarcest of which takes 2",
    ]


def test_an_expired_deadline_ends_the_waves() -> None:
    mirror = cluster(at("a", 8, "x"), at("b", 8, "y"))
    asked = kept_apart([Spread(ZONE, 1), Spread(HOST, 1)])
    answer = spread_replicas(room_of(mirror), asked, lambda: True).answer
    assert (answer.value, answer.upper_bound) == (0, 16)


def test_one_constraint_is_answered_whatever_the_time() -> None:
    asked = kept_apart([Spread(ZONE, 1)])
    assert spread_replicas(room_of(cluster(*FOUR)), asked, lambda: True).answer.value == 5


def test_caps_per_row_are_exact_where_a_domain_is_a_node() -> None:
    caps = row_caps(room_of(cluster(*FOUR)), kept_apart(per_domain=[(HOST, 3)]))
    assert caps.safe.tolist() == caps.most.tolist()
    assert sorted(caps.safe.tolist()) == [2, 3, 3, 3]


def test_caps_per_row_share_what_a_domain_may_take() -> None:
    caps = row_caps(room_of(cluster(*FOUR)), kept_apart([Spread(ZONE, 2)]))
    assert caps.safe.tolist() != caps.most.tolist()
    assert int(caps.safe.sum()) == 4


# --- against a scheduler that tries everything -----------------------------------------------------------


def a_node(rng: Random) -> NodeBuilder:
    built = at(
        "n", rng.choice([0, 1, 1, 2, 3]), rng.choice(["x", "x", "y", "z", ""]), rng.choice(["r", "s", ""])
    )
    if rng.random() < 0.15:
        built = built.cordoned()
    return built.label(kind=rng.choice(["gpu", "gpu", "gpu", "cpu"]))


def fleets(most: int) -> st.SearchStrategy[ClusterMirror]:
    def named(nodes: list[NodeBuilder]) -> ClusterMirror:
        return cluster(
            *(replace(n, name=f"n{i}", labels={**n.labels, HOST: f"n{i}"}) for i, n in enumerate(nodes))
        )

    return st.lists(seeded(a_node), min_size=1, max_size=most).map(named)


def a_shape(rng: Random, spreads: int, caps: int) -> PodShape:
    keys = rng.sample([ZONE, HOST, RACK], spreads)
    return kept_apart(
        [Spread(key, rng.choice([1, 1, 2]), rng.choice([0, 0, 0, 2, 3])) for key in keys],
        [(rng.choice([HOST, ZONE, RACK]), rng.choice([1, 2])) for _ in range(rng.randint(0, caps))],
        shape(gpu=1, selector=rng.choice([{}, {"kind": "gpu"}])),
    )


def shapes(spreads: int, caps: int) -> st.SearchStrategy[PodShape]:
    return seeded(lambda rng: a_shape(rng, rng.randint(0, spreads), caps))


def kept(mirror: ClusterMirror, asked: PodShape, placed: tuple[int, ...]) -> bool:
    """Whether pods so placed are within every cap and every domain's skew."""
    rows = [row for row in mirror.columns.rows if row is not None]
    for key, most in asked.per_domain:
        domains: dict[str, int] = {}
        for row, pods in zip(rows, placed, strict=True):
            if key in row.labels:
                domains[row.labels[key]] = domains.get(row.labels[key], 0) + pods
        if any(pods > most for pods in domains.values()):
            return False
    return all(skew_of(mirror, asked, s, placed) <= s.max_skew for s in asked.spread)


def skew_of(mirror: ClusterMirror, asked: PodShape, spread: Spread, placed: tuple[int, ...]) -> int:
    domains: dict[str, int] = {}
    for row, pods in zip(mirror.columns.rows, placed, strict=True):
        assert row is not None
        labelled = all(other.key in row.labels for other in asked.spread)
        if labelled and all(r.allows(row.labels.get(r.key)) for r in asked.claim.selector):
            domains[row.labels[spread.key]] = domains.get(row.labels[spread.key], 0) + pods
        elif pods:
            return 10**6
    least = 0 if len(domains) < spread.min_domains else min(domains.values(), default=0)
    return max(domains.values(), default=0) - least


def most_in_turn(mirror: ClusterMirror, asked: PodShape) -> int:
    """The most pods that a scheduler ever places which takes one pod at a time, in whatever order."""
    fits = tuple(room_of(mirror).fits(asked).tolist())

    @cache
    def after(placed: tuple[int, ...]) -> int:
        best = sum(placed)
        for row, pods in enumerate(placed):
            if pods < fits[row]:
                more = (*placed[:row], pods + 1, *placed[row + 1 :])
                if kept(mirror, asked, more):
                    best = max(best, after(more))
        return best

    return after((0,) * len(fits))


@CI
@given(fleets(5), shapes(1, 0) | shapes(0, 1) | shapes(0, 2))
def test_one_constraint_is_answered_exactly(mirror: ClusterMirror, asked: PodShape) -> None:
    most = most_in_turn(mirror, asked)
    value, proven = value_of(mirror, asked)
    assert value == most or not proven
    if len(asked.spread) + len(dict(asked.per_domain)) <= 1:
        assert (value, proven) == (most, True)


@CI
@given(fleets(5), shapes(1, 0), st.integers(1, 2))
def test_one_constraint_with_a_cap_by_host_is_answered_exactly(
    mirror: ClusterMirror, asked: PodShape, most: int
) -> None:
    asked = replace(asked, per_domain=((HOST, most),))
    assert value_of(mirror, asked) == (most_in_turn(mirror, asked), True)


@CI
@given(fleets(4), shapes(3, 2))
def test_any_constraints_are_answered_between_what_surely_fits_and_what_never_does(
    mirror: ClusterMirror, asked: PodShape
) -> None:
    most = most_in_turn(mirror, asked)
    spreading = spread_replicas(room_of(mirror), asked, never)
    assert spreading.answer.value <= most <= spreading.answer.upper_bound
    assert spreading.answer.proven is (spreading.answer.value == spreading.answer.upper_bound)
    assert kept(mirror, asked, tuple(spreading.placed.tolist()))


@CI
@given(fleets(4), shapes(3, 2), st.integers(0, 6))
def test_the_search_ends_at_the_wanted_number(mirror: ClusterMirror, asked: PodShape, wanted: int) -> None:
    whole = spread_replicas(room_of(mirror), asked, never)
    some = spread_replicas(room_of(mirror), asked, never, wanted)
    assert int(some.placed.sum()) == some.answer.value == min(wanted, whole.answer.value)
    assert some.answer.upper_bound == whole.answer.upper_bound
    assert kept(mirror, asked, tuple(some.placed.tolist()))


@CI
@given(fleets(4), shapes(2, 2), st.randoms(use_true_random=False))
def test_whatever_stays_within_safe_caps_keeps_its_distance(
    mirror: ClusterMirror, asked: PodShape, rng: Random
) -> None:
    caps = row_caps(room_of(mirror), asked)
    placed = tuple(rng.randint(0, most) for most in caps.safe.tolist())
    assert kept(mirror, asked, placed)
    assert (caps.safe <= caps.most).all()


@CI
@given(fleets(4))
def test_without_constraints_the_answer_is_that_of_replicas(mirror: ClusterMirror) -> None:
    asked = shape(gpu=1)
    assert not keeps_distance(asked)
    assert value_of(mirror, asked) == (replicas_of(mirror, asked).value, True)
