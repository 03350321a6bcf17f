from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.bindings.admission import alternatives_of, components_of, flavors_of
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cycle.items import joined
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.workloads.charge import NOWHERE, AdmittedTo, Copies, charge_of
from queue_dispatcher.workloads.demand import Demand, Placed, Requests
from queue_dispatcher.workloads.flavors import Reaches, offered
from queue_dispatcher.workloads.node_claim import NodeClaim
from queue_dispatcher.workloads.queue_of import Resolved
from tests.dispatcher.bindings.builders import binding
from tests.dispatcher.workloads.builders import (
    GPU,
    LAW,
    a_set,
    claim,
    component,
    is_accelerator,
    plain,
    queue,
    reach,
)

REACHES: Reaches = {
    "h100": reach("a", gpu="H100"),
    "a100": reach("a", "b", gpu="A100"),
    "spot": reach("c"),
}
OFFERED = {GPU: ("h100", "a100", "spot", "offered")}
SIX = plain(6, gpu=1)
RESERVED: Requests = ((GPU, 6),)


def charged(
    demand: Demand = SIX,
    placed: Collection[Placed] = (),
    finished: Collection[str] = (),
    reserved: Requests = RESERVED,
    admitted_to: tuple[str, ...] = ("h100",),
    copies: Copies | None = None,
) -> dict[str, int]:
    """Charged GPUs by flavor."""
    table = CellTable()
    flavors = AdmittedTo({GPU: admitted_to} if admitted_to else {})
    charge = charge_of(reserved, flavors, demand, placed, finished, OFFERED, REACHES, table, copies)
    assert all(amount > 0 for _, amount in charge)
    return {table.name(cell).flavor: amount for cell, amount in charge}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # Until it is placed: all of it, in every flavor it was admitted to.
        (charged(), {"h100": 6}),
        (charged(admitted_to=("h100", "spot")), {"h100": 6, "spot": 6}),
        # Once placed, where it is.
        (charged(placed=(Placed("a", 6),)), {"h100": 6}),
        (charged(placed=(Placed("c", 6),), admitted_to=("h100", "spot")), {"spot": 6}),
        (
            charged(placed=(Placed("a", 4), Placed("c", 2)), admitted_to=("h100", "spot")),
            {"h100": 4, "spot": 2},
        ),
        # Karmada chose a cluster of a flavor that it was not admitted to; or of none.
        (charged(placed=(Placed("c", 6),)), {"spot": 6}),
        (charged(placed=(Placed("unknown", 6),)), {"h100": 6}),
        # Not all of it is placed: the rest stays reserved.
        (charged(placed=(Placed("a", 4),)), {"h100": 6}),
        (charged(placed=(Placed("c", 4),), admitted_to=("h100", "spot")), {"spot": 6, "h100": 2}),
        # More is placed than was admitted.
        (charged(placed=(Placed("a", 9),)), {"h100": 9}),
        (charged(placed=(Placed("a", 6),), reserved=()), {"h100": 6}),
        # Finished in one cluster of two: that part comes back.
        (charged(placed=(Placed("a", 4), Placed("c", 2)), finished=("c",)), {"h100": 4}),
        (charged(placed=(Placed("a", 4), Placed("c", 2)), finished=("a", "c")), {}),
        # A flavor that is gone, renamed say, keeps nothing; what the queue still names stays.
        (charged(admitted_to=("gone",)), {"h100": 6}),
        (charged(admitted_to=("gone", "spot")), {"spot": 6}),
        (charged(placed=(Placed("c", 4),), admitted_to=("gone",)), {"h100": 2, "spot": 4}),
        (charged(admitted_to=("offered",)), {"offered": 6}),
        # A record that was edited to name no flavor does not get away with it.
        (charged(admitted_to=()), {"h100": 6}),
        # Duplicated: each cluster has all replicas.
        (
            charged(placed=(Placed("a", 6), Placed("c", 6)), reserved=((GPU, 18),)),
            {"h100": 12, "spot": 6},
        ),
        (
            charged(plain(6, claim({"gpu": "A100"}), gpu=1), placed=(Placed("a", 6),)),
            {"a100": 6},
        ),
        (
            charged(
                a_set(
                    component("launcher", 1, claim({"gpu": "A100"}), gpu=1),
                    component("worker", 2, claim({"gpu": "H100"}), gpu=4),
                ),
                placed=(Placed("a"),),
                reserved=((GPU, 9),),
                admitted_to=("h100", "a100"),
            ),
            {"h100": 8, "a100": 1},
        ),
    ],
)
def test_charge(case: dict[str, int], expected: dict[str, int]) -> None:
    assert case == expected


def test_what_no_group_covers_is_not_charged() -> None:
    table = CellTable()
    assert charge_of((("cpu", 5),), NOWHERE, plain(1, cpu=5), (Placed("a", 1),), (), {}, REACHES, table) == ()


_SHARES = st.lists(
    st.tuples(st.sampled_from(("a", "b", "c", "d")), st.integers(0, 9)), max_size=4, unique_by=lambda s: s[0]
).map(lambda shares: tuple(Placed(*share) for share in shares))


@LAW
@given(
    _SHARES,
    st.sets(st.sampled_from(("a", "b", "c", "d"))),
    st.integers(0, 20),
    st.lists(st.sampled_from(("h100", "a100", "spot", "gone")), unique=True).map(tuple),
)
def test_never_below_what_is_placed_nor_below_what_is_reserved(
    placed: tuple[Placed, ...], finished: set[str], reserved: int, admitted_to: tuple[str, ...]
) -> None:
    total = sum(charged(plain(9, gpu=1), placed, finished, ((GPU, reserved),), admitted_to).values())
    running = sum(share.replicas for share in placed if share.cluster not in finished)
    ended = sum(share.replicas for share in placed) - running
    assert total >= max(running, reserved - ended)
    if len(admitted_to) <= 1:
        assert total == max(running, reserved - ended)


_CLAIMS = st.sampled_from((claim(), claim({"gpu": "A100"}), claim({"gpu": "H100"})))


@LAW
@given(
    st.permutations("abcd"),
    st.integers(1, 3),
    st.lists(_CLAIMS, min_size=1, max_size=3),
    st.sets(st.sampled_from("abcd"), min_size=1),
    st.permutations(("h100", "a100", "spot")),
    st.integers(0, 7),
)
def test_wherever_karmada_places_it_no_flavor_is_charged_more_than_at_admission(
    chosen: list[str], copies: int, claims: list[NodeClaim], permitted: set[str], order: list[str], way: int
) -> None:
    table, team, copies = CellTable(), queue(((GPU,), tuple(order))), min(copies, len(permitted))
    demand = a_set(*(component(f"c{i}", 2, one, gpu=i + 1) for i, one in enumerate(claims)))
    one = replace(binding(), demand=demand)
    waits = Pending(Resolved("team"), demand.total(copies), copies, 0)
    found = alternatives_of(waits, one, team, REACHES, frozenset(permitted), is_accelerator, table)
    if isinstance(found, Reason):
        return
    alternative = joined([options[way % len(options)] for options in found])
    flavors = AdmittedTo(
        dict(flavors_of(alternative)), {name: dict(of) for name, of in components_of(alternative)}
    )
    among = Copies(copies, permitted) if copies > 1 else None
    for number in range(copies + 1):
        placed = tuple(Placed(name) for name in chosen if name in permitted)[:number]
        after = charge_of(waits.demand, flavors, demand, placed, (), offered(team), REACHES, table, among)
        assert all(amount <= dict(alternative.charge).get(cell, 0) for cell, amount in after)
        if copies == 1 and not number:
            assert after == alternative.charge


ALL = ("h100", "a100", "spot")
"""Clusters a (first found in h100), b (in a100 alone) and c (in spot)."""


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # Until they are placed, each flavor the most that it may get.
        (charged(reserved=((GPU, 18),), admitted_to=ALL, copies=Copies(3, "abc")), dict.fromkeys(ALL, 6)),
        (charged(reserved=((GPU, 12),), admitted_to=ALL, copies=Copies(2, "abc")), dict.fromkeys(ALL, 6)),
        (charged(reserved=((GPU, 12),), admitted_to=ALL, copies=Copies(2, "ac")), {"h100": 6, "spot": 6}),
        # One flavor has all clusters.
        (charged(reserved=((GPU, 12),), admitted_to=("a100",), copies=Copies(2, "ab")), {"a100": 12}),
        # One is placed, and where the other goes is not known.
        (
            charged(
                placed=(Placed("a", 6),), reserved=((GPU, 12),), admitted_to=ALL, copies=Copies(2, "abc")
            ),
            dict.fromkeys(ALL, 6),
        ),
        (
            charged(placed=(Placed("a", 6),), reserved=((GPU, 12),), admitted_to=ALL, copies=Copies(2, "ac")),
            {"h100": 6, "spot": 6},
        ),
        # All are placed.
        (
            charged(
                placed=(Placed("a", 6), Placed("c", 6)),
                reserved=((GPU, 12),),
                admitted_to=ALL,
                copies=Copies(2, "abc"),
            ),
            {"h100": 6, "spot": 6},
        ),
        # Grown in each of its clusters, and not placed so yet.
        (
            charged(
                placed=(Placed("a", 4), Placed("c", 4)),
                reserved=((GPU, 12),),
                admitted_to=("h100", "spot"),
                copies=Copies(2, "ac"),
            ),
            {"h100": 6, "spot": 6},
        ),
        # A cluster has gone since: the copy for it is kept, wherever it may go.
        (
            charged(reserved=((GPU, 18),), admitted_to=("h100", "spot"), copies=Copies(3, "ac")),
            {"h100": 18, "spot": 18},
        ),
    ],
)
def test_each_copy_is_charged_where_it_can_go(case: dict[str, int], expected: dict[str, int]) -> None:
    assert case == expected


@LAW
@given(
    permitted=st.sets(st.sampled_from("abc"), min_size=1),
    count=st.integers(1, 3),
    chosen=st.permutations("abc"),
    flavors=st.permutations(ALL).map(tuple),
    finished=st.sets(st.sampled_from("abc")),
)
def test_wherever_copies_go_no_flavor_is_charged_more_than_before_and_none_less_than_it_has(
    permitted: set[str], count: int, chosen: list[str], flavors: tuple[str, ...], finished: set[str]
) -> None:
    count = min(count, len(permitted))
    reserved: Requests = ((GPU, 6 * count),)
    copies = Copies(count, permitted)
    places = [cluster for cluster in chosen if cluster in permitted][:count]
    before = charged(reserved=reserved, admitted_to=flavors, copies=copies)
    assert sum(before.values()) >= 6 * count
    for number in range(1, count + 1):
        placed = tuple(Placed(cluster, 6) for cluster in places[:number])
        now = charged(placed=placed, reserved=reserved, admitted_to=flavors, copies=copies)
        alone = charged(placed=placed, reserved=(), admitted_to=flavors)
        assert all(now.get(flavor, 0) <= amount for flavor, amount in before.items())
        assert now.keys() <= before.keys()
        assert all(now.get(flavor, 0) >= amount for flavor, amount in alone.items())
        ended = charged(
            placed=placed, finished=finished, reserved=reserved, admitted_to=flavors, copies=copies
        )
        assert all(ended.get(flavor, 0) <= now.get(flavor, 0) for flavor in ended)
        before = now
