"""Stocks of nodes: what is remembered of which kind, what is left, and what is never promised."""

from itertools import count

import pytest

from fairway.dra.allocation import Budget
from fairway.dra.in_use import InUse
from fairway.dra.kinds import Kinds
from fairway.dra.pools import within_reach
from fairway.dra.requests import Claim
from fairway.dra.slices import read_slice
from fairway.dra.stock import MOST_PODS, Judgement, NodeStock, Wider
from fairway.kube.resource_slices import ResourceClaimSpec
from tests.dra.objects import (
    DRIVER,
    Fields,
    claim_spec,
    device,
    device_class,
    devices,
    equals,
    gather_pools,
    held,
    in_use,
    published,
    read_claim,
    request,
    same,
)

ROOT = f"{DRIVER}/root"

NOTHING = InUse()


def claims(*specs: ResourceClaimSpec) -> tuple[Claim, ...]:
    classes = {"gpu": device_class()}
    return tuple(read_claim(f"c{index}", spec, classes) for index, spec in enumerate(specs))


def stock(offered: list[Fields], held: InUse = NOTHING, wider: int = 0) -> NodeStock:
    pools = gather_pools([read_slice(published("s", offered))])
    beyond = gather_pools([read_slice(published("w", devices(wider, "w"), pool="w", allNodes=True))])
    return NodeStock("a", pools, Wider(tuple(map(within_reach, beyond)) if wider else (), wider), held)


def roots(*names: str, tag: str = "") -> list[Fields]:
    return [device(f"gpu-{tag}{index}", root=root, id=f"{tag}{index}") for index, root in enumerate(names)]


ONE = claims(claim_spec(request("g")))
PAIR = claims(claim_spec(request("g", 2), constraints=[same(ROOT)]))


def test_nodes_that_differ_in_names_and_ids_are_of_one_kind() -> None:
    # The selectors of these tests can look at anything, so there must be none.
    judgement = Judgement.by(equals)
    judgement.asked(PAIR)
    first, second = stock(roots("x", "x", "y")), stock(roots("p", "p", "q", tag="other"))
    third = stock(roots("p", "q", "q"))
    assert judgement.kind(first) == judgement.kind(second) != judgement.kind(third)


@pytest.mark.parametrize(
    "other",
    [
        roots("x", "x"),
        roots("x", "x", "x", "x"),
        [*roots("x", "x"), device("x", {"memory": "1"}, root="x")],
        [*roots("x", "x"), device("x", taints=[{"key": "k", "effect": "NoSchedule"}], root="x")],
        [*roots("x", "x"), device("x", more={"allowMultipleAllocations": True}, root="x")],
        [*roots("x", "x"), device("x", root=1)],
        [*roots("x", "x"), device("x")],
    ],
)
def test_whatever_decides_something_makes_another_kind(other: list[Fields]) -> None:
    judgement = Judgement.by(equals)
    judgement.asked(PAIR)
    assert judgement.kind(stock(roots("x", "x", "x"))) != judgement.kind(stock(other))


def test_what_is_in_use_makes_another_kind() -> None:
    judgement = Judgement.by(equals)
    taken = in_use([held("c", {"device": "gpu-1"})])
    assert judgement.kind(stock(devices(2))) != judgement.kind(stock(devices(2), taken))


def test_a_new_question_tells_apart_what_was_alike() -> None:
    judgement = Judgement.by(equals)
    first, second = stock(roots("x", "x")), stock(roots("x", "y"))
    asked = judgement.asked(ONE)
    assert judgement.kind(first) == judgement.kind(second)
    assert judgement.copies(first, asked, Budget(1000)) == judgement.copies(second, asked, Budget(1000))
    asked = judgement.asked(PAIR)
    found = [judgement.copies(one, asked, Budget(1000)).value for one in (first, second)]
    assert found == [1, 0]


def test_numbers_of_kinds_are_never_used_again() -> None:
    numbers = count()
    one, other = stock(devices(1)), stock(devices(2))
    kinds, later = Kinds(frozenset(), frozenset()), Kinds(frozenset(), frozenset())
    found = [one.kind(kinds, numbers), other.kind(kinds, numbers), one.kind(later, numbers)]
    assert len(set(found)) == 3


@pytest.mark.parametrize("pods", range(5))
def test_what_is_left_and_what_was_taken_are_the_whole(pods: int) -> None:
    judgement = Judgement.by(equals)
    asked = judgement.asked(ONE)
    left = judgement.after(stock(devices(4)), asked, pods, Budget(10_000))
    assert judgement.copies(left, asked, Budget(10_000)).value == 4 - pods


def test_more_than_there_is_leaves_nothing_to_promise_and_the_bound_as_it_was() -> None:
    judgement = Judgement.by(equals)
    asked = judgement.asked(ONE)
    left = judgement.after(stock(devices(4)), asked, 5, Budget(10_000))
    found = judgement.copies(left, asked, Budget(10_000))
    assert (found.value, found.upper_bound) == (0, 4)


def test_without_steps_nothing_is_promised_and_nothing_ruled_out() -> None:
    judgement = Judgement.by(equals)
    asked = judgement.asked(ONE)
    found = judgement.copies(stock(devices(4)), asked, Budget(2))
    assert (found.value, found.upper_bound) == (0, MOST_PODS)
    assert judgement.copies(stock(devices(4)), asked, Budget(1000)).value == 4


@pytest.mark.parametrize(("wider", "upper"), [(0, 2), (3, 5), (300, MOST_PODS)])
def test_what_several_nodes_may_use_is_in_the_bound_only(wider: int, upper: int) -> None:
    judgement = Judgement.by(equals)
    found = judgement.copies(stock(devices(2), wider=wider), judgement.asked(ONE), Budget(10_000))
    assert (found.value, found.upper_bound) == (2, upper)


def test_all_devices_are_never_promised_where_others_may_use_some_of_them() -> None:
    judgement = Judgement.by(equals)
    asked = judgement.asked(claims(claim_spec(request("g", None))))
    assert judgement.copies(stock(devices(2)), asked, Budget(1000)).value == 1
    assert judgement.copies(stock(devices(2), wider=1), asked, Budget(1000)).value == 0
