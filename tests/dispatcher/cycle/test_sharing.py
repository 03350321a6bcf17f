"""LocalQueues of one queue share it by what they have used; who has used up a budget goes last."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.decide import AdmissionCycles, decide
from queue_dispatcher.cycle.sharing import ENTRY_MS, Sharing, share, sharing
from tests.dispatcher.cycle.builders import BACKFILL, STRICT, Fleet
from tests.dispatcher.ledger.builders import cell, queue, root

CI = settings(max_examples=150, derandomize=True, deadline=None)
HOUR = 3_600_000
PRICES = {cell("gpu"): 1000}


def used(weights: dict[str, int] | None = None, **device_hours: int) -> Sharing:
    """By line, what it has used."""
    by_weight = weights or {}
    shares = {
        line: share(hours * 1000 * HOUR, 0, by_weight.get(line, 1000)) for line, hours in device_hours.items()
    }
    return sharing(shares, by_weight, PRICES)


def fleet_of(of: Sharing | None, gpu: int = 100) -> Fleet:
    fleet = Fleet(root("team", gpu=gpu))
    fleet.configure("team", sharing=of)
    return fleet


@pytest.mark.parametrize(
    ("of", "order"),
    [
        (used(a=10, b=0), ["b1", "b2", "a1", "a2"]),
        (used(a=0, b=10), ["a1", "a2", "b1", "b2"]),
        (used(a=10, b=10), ["a1", "b1", "a2", "b2"]),
        (used({"b": 4000}, a=10, b=30), ["b1", "b2", "a1", "a2"]),
        (used({"a": 500}, a=10, b=15), ["b1", "b2", "a1", "a2"]),
        (None, ["a1", "a2", "b1", "b2"]),
    ],
    ids=["less first", "the other", "equal take turns", "weight", "low weight", "not shared: by time"],
)
def test_who_has_used_the_least_goes_first(of: Sharing | None, order: list[str]) -> None:
    fleet = fleet_of(of)
    for at, (line, name) in enumerate([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")]):
        fleet.submit("team", name, line=line if of else "", at=at, gpu=1)
    assert fleet.cycle() == order


def test_who_starts_much_at_once_goes_behind_at_once() -> None:
    # An hour of one device counts as much as what twelve devices are charged at their entry.
    assert HOUR == 12 * ENTRY_MS
    fleet = fleet_of(used(a=1, b=0))
    for at in range(20):
        fleet.submit("team", f"b{at}", line="b", at=at, gpu=1)
        fleet.submit("team", f"a{at}", line="a", at=100 + at, gpu=1)
    began = fleet.cycle(tokens=16)
    assert began[:12] == [f"b{at}" for at in range(12)]
    assert sorted(began[12:]) == ["a0", "a1", "b12", "b13"]


def test_priority_goes_before_history_and_order_in_a_line_stays() -> None:
    fleet = fleet_of(used(a=50, b=0))
    fleet.submit("team", "late", line="b", at=9, gpu=1)
    fleet.submit("team", "early", line="b", at=1, gpu=2)
    fleet.submit("team", "urgent", line="a", at=99, priority=5, gpu=1)
    fleet.submit("team", "old", line="a", at=0, gpu=1)
    assert fleet.cycle() == ["urgent", "early", "late", "old"]


def test_a_price_counts_and_what_is_of_no_device_does_not() -> None:
    of = Sharing((("a", "b"),), {"a": 0, "b": 0}, {}, {cell("gpu"): 1000, cell("h100_gpu"): 4000})
    fleet = Fleet(root("team", gpu=9, h100_gpu=9, cpu=99))
    fleet.configure("team", sharing=of)
    fleet.submit("team", "b0", line="b", at=0, h100_gpu=1)
    for at in range(1, 6):
        fleet.submit("team", f"a{at}", line="a", at=at, gpu=1, cpu=5)
    fleet.submit("team", "b1", line="b", at=1, gpu=1)
    assert fleet.cycle() == ["b0", "a1", "a2", "a3", "a4", "b1", "a5"]


def test_the_head_of_a_strict_queue_is_that_of_who_has_used_the_least() -> None:
    fleet = fleet_of(used(a=10, b=0), gpu=4)
    fleet.configure("team", strategy=STRICT)
    fleet.submit("team", "small", line="a", at=0, gpu=1)
    fleet.submit("team", "large", line="b", at=1, gpu=4)
    fleet.ledger.charge("team", ((cell("gpu"), 2),))
    decision = fleet.decide()
    assert fleet.reasons(decision) == {"large": "WaitingForQuota", "small": "BehindHead"}


def test_a_reservation_holds_back_who_has_used_more() -> None:
    fleet = fleet_of(used(a=10, b=0, c=5), gpu=4)
    fleet.configure("team", strategy=BACKFILL, reservation=ReservationPolicy(0, 0))
    fleet.submit("team", "runs", line="a", gpu=2)
    assert fleet.cycle() == ["runs"]
    fleet.now_ms = 10
    fleet.submit("team", "gang", line="c", at=1, gpu=4)
    assert fleet.cycle() == []
    fleet.submit("team", "more", line="a", at=0, gpu=1)
    fleet.submit("team", "less", line="b", at=2, gpu=1)
    assert fleet.cycle() == ["less"]
    assert fleet.reasons(fleet.decide()) == {"gang": "WaitingForQuota", "more": "BehindReservation"}


@CI
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(0, 1), st.integers(0, 9)),
        max_size=25,
    ),
    st.tuples(*[st.integers(0, 3)] * 3),
    st.tuples(*[st.sampled_from([500, 1000, 3000])] * 3),
    st.integers(1, 30),
)
def test_each_turn_is_that_of_the_least_share(
    work: list[tuple[str, int, int, int]],
    hours: tuple[int, int, int],
    weights: tuple[int, int, int],
    gpu: int,
) -> None:
    """Against the rule played by hand: of the heads that fit, the higher priority, then the least share."""
    by_weight = dict(zip("abc", weights, strict=True))
    of = used(by_weight, **dict(zip("abc", hours, strict=True)))
    fleet = fleet_of(of, gpu=gpu)
    waiting = {}
    for number, (line, size, priority, at) in enumerate(work):
        name = f"{number:02}"
        waiting[name] = (line, size, priority, at)
        fleet.submit("team", name, line=line, at=at, priority=priority, gpu=size)
    shares, left, expected = dict(of.shares), gpu, []
    while True:
        fitting = [
            (-priority, shares[line], at, name)
            for name, (line, size, priority, at) in waiting.items()
            if size <= left
        ]
        if not fitting:
            break
        name = min(fitting)[-1]
        line, size, _, _ = waiting.pop(name)
        left -= size
        shares[line] += of.after(line, ((cell("gpu"), size),))
        expected.append(name)
    assert fleet.cycle() == expected


@CI
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(0, 1)), max_size=20),
    st.tuples(*[st.integers(0, 3)] * 3),
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from("abc"), st.sampled_from([0, 0, 8])),
        min_size=3,
        max_size=6,
    ),
    st.sampled_from([STRICT, BACKFILL]),
)
def test_what_is_kept_of_cycles_changes_nothing(
    work: list[tuple[str, int, int]],
    hours: tuple[int, int, int],
    rounds: list[tuple[int, str, int]],
    strategy: QueueingStrategy,
) -> None:
    """Before each round all have used so many times as much, and one an hour more."""
    fleet = fleet_of(used(a=0, b=0, c=0), gpu=12)
    fleet.configure("team", strategy=strategy, reservation=ReservationPolicy(0, 10))
    for number, (line, size, priority) in enumerate(work):
        fleet.submit("team", f"{number:02}", line=line, at=number, priority=priority, gpu=size)
    cycles = AdmissionCycles()
    for times, more, tokens in rounds:
        fleet.now_ms += 7
        amounts = {line: of * times + (line == more) for line, of in zip("abc", hours, strict=True)}
        fleet.configure("team", sharing=used(None, **amounts))
        snapshot = fleet.snapshot(tokens=tokens)
        kept, anew = cycles.decide(snapshot, fleet.now_ms), decide(snapshot, fleet.now_ms)
        assert kept.actions == anew.actions
        assert kept.reservations == anew.reservations
        assert dict(kept.waits) == dict(anew.waits)
        fleet.carry_out(kept)


# Budgets.


@pytest.mark.parametrize(
    ("over", "order"),
    [((), ["a1", "c1", "b1"]), (("a",), ["b1", "c1", "a1"]), (("a", "b"), ["c1", "a1", "b1"])],
)
@pytest.mark.parametrize("gpu", [100, 2])
def test_who_is_over_a_soft_budget_goes_behind_all_of_its_tree(
    over: tuple[str, ...], order: list[str], gpu: int
) -> None:
    fleet = Fleet(
        root("org", gpu=gpu), queue("dept", "org"), queue("a", "dept"), queue("b", "dept"), queue("c", "org")
    )
    for at, name in enumerate("abc"):
        fleet.configure(name, is_over_budget=name in over)
        fleet.submit(name, f"{name}1", at=at, gpu=1)
    assert fleet.cycle() == order[:gpu]


def over_budget(strategy: QueueingStrategy, *, is_over: bool = True, reclaims: bool = False) -> Fleet:
    """Of 8 GPUs ``b`` uses 4; ``a`` owns 6, has waited for them for long, and is over its budget."""
    fleet = Fleet(root("org", gpu=2), queue("a", "org", gpu=6), queue("b", "org"))
    policy = ReservationPolicy(0, 10)
    fleet.configure("a", is_over_budget=is_over, strategy=strategy, reservation=policy, reclaims=reclaims)
    fleet.submit("b", "runs", gpu=4)
    fleet.cycle()
    fleet.submit("a", "large", gpu=6)
    fleet.now_ms = 100
    fleet.cycle()
    fleet.submit("b", "wants", at=50, gpu=2)
    return fleet


@pytest.mark.parametrize("strategy", [STRICT, BACKFILL])
def test_nothing_is_kept_for_who_is_over_a_soft_budget(strategy: QueueingStrategy) -> None:
    assert over_budget(strategy, is_over=False).cycle() == []
    fleet = over_budget(strategy)
    assert fleet.cycle() == ["wants"]
    assert fleet.reservations.made == ()


def test_who_is_over_a_soft_budget_displaces_nobody() -> None:
    assert [*over_budget(STRICT, is_over=False, reclaims=True).decide().preemptors]
    assert not [*over_budget(STRICT, reclaims=True).decide().preemptors]


def test_a_reservation_goes_by_what_is_used_now_where_the_order_in_each_queue_has_stayed() -> None:
    fleet, cycles = Fleet(root("org", gpu=4), *(queue(name, "org") for name in "abc")), AdmissionCycles()
    policy = ReservationPolicy(after_ms=0, drain_after_ms=HOUR, depth=1)
    for name in "abc":
        fleet.configure(name, strategy=BACKFILL, reservation=policy, sharing=used({}, **{name: 5}))
    fleet.submit("c", "runs", line="c", gpu=4, runtime=HOUR)
    fleet.carry_out(cycles.decide(fleet.snapshot(), fleet.now_ms))
    for name in "abc":
        fleet.submit(name, f"{name} waits", line=name, priority=name == "c", gpu=4)

    def kept() -> list[str]:
        decision = cycles.decide(fleet.snapshot(), fleet.now_ms)
        fleet.carry_out(decision)
        return [one.item.id for one in decision.reservations.made]

    assert kept() == ["c waits"]
    fleet.queues["c"].pending.remove("c waits")
    fleet.configure("b", strategy=BACKFILL, reservation=policy, sharing=used(b=1))
    assert kept() == ["b waits"]
