"""Reservations: who gets one, when it could start, and who may pass it."""

from dataclasses import dataclass, replace

import pytest

from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.actions import Admit, Probe
from queue_dispatcher.cycle.decide import AdmissionCycles, decide
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import Shape, probe_of, probe_through
from queue_dispatcher.cycle.reasons import BEHIND_STRANGERS_RESERVATION, told_to
from queue_dispatcher.cycle.runtime import in_steps, longest_within
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.ledger.tree import QuotaNode
from tests.dispatcher.cycle.builders import BACKFILL, BEST_EFFORT, Fleet, admitted, bound, preplaced, shape
from tests.dispatcher.ledger.builders import charge, owns, queue, root

MIN = 60_000
POLICY = ReservationPolicy(after_ms=5 * MIN, drain_after_ms=30 * MIN, hold_timeout_ms=600 * MIN)


def fleet(*nodes: QuotaNode, policy: ReservationPolicy = POLICY) -> Fleet:
    found = Fleet(*nodes, strategy=BACKFILL)
    for node in nodes:
        found.configure(node.name, reservation=policy)
    return found


def full(runs: dict[str, int | None], policy: ReservationPolicy = POLICY, **amounts: int) -> Fleet:
    """One queue of 16 GPUs in which workloads of 4 run, for so many minutes at the most each."""
    found = fleet(root("q", gpu=16, **amounts), policy=policy)
    for name, minutes in runs.items():
        found.submit("q", name, gpu=4, runtime=None if minutes is None else minutes * MIN)
    assert set(found.cycle()) == set(runs)
    return found


@dataclass(frozen=True)
class Case:
    """``runs``: by workload of 4 of 16 GPUs, its end in minutes. A gang of 12 waits since 0 for ``waited``
    minutes when one of ``gpu`` comes that runs for ``runtime`` minutes.
    """

    name: str
    runs: dict[str, int | None]
    waited: int
    gpu: int
    runtime: int | None
    starts: bool
    reserved: bool = True


KNOWN: dict[str, int | None] = {"a": 10, "b": 20, "c": 40}


@pytest.mark.parametrize(
    "case",
    [
        Case("not long enough for a reservation", KNOWN, 4, 4, None, starts=True, reserved=False),
        # 12 are free at 20: 4 now, and 4 each at 10 and at 20.
        Case("over before the gang can start", KNOWN, 5, 4, 15, starts=True),
        Case("over a minute too late", KNOWN, 5, 4, 16, starts=False),
        Case("of unknown runtime", KNOWN, 5, 4, None, starts=False),
        Case("small enough to fit beside", {"a": 10, "b": 20, "c": 20}, 5, 4, None, starts=True),
        Case("nobody knows when the gang starts", {"a": 10, "b": None, "c": None}, 5, 4, 1, starts=False),
        Case("it is drained", KNOWN, 30, 4, 1, starts=False),
        Case("what is in the way has overrun", {"a": 2, "b": 2, "c": 40}, 5, 4, 1, starts=False),
    ],
    ids=lambda case: case.name,
)
def test_who_passes_a_reservation(case: Case) -> None:
    found = full(case.runs)
    found.submit("q", "gang", gpu=12, at=0)
    found.cycle()
    found.now_ms = case.waited * MIN
    found.submit(
        "q",
        "small",
        gpu=case.gpu,
        at=found.now_ms,
        runtime=None if case.runtime is None else case.runtime * MIN,
    )
    decision = found.decide()
    assert found.carry_out(decision) == (["small"] if case.starts else [])
    assert [one.item.id for one in decision.reservations.made] == (["gang"] if case.reserved else [])
    if not case.starts:
        assert found.reasons(decision)["small"] == "BehindReservation"
    assert found.reasons(decision)["gang"] == "WaitingForQuota"


def test_a_gang_starts_when_small_work_keeps_coming() -> None:
    """Law 4: within drainAfter and the longest run, whatever is declared; here nothing is."""
    found = full({"a": None, "b": None, "c": None, "d": None})
    found.submit("q", "gang", gpu=16)
    ends = {"a": 7, "b": 12, "c": 18, "d": 25}
    for minute in range(1, 120):
        found.now_ms = minute * MIN
        for name in [name for name, at in ends.items() if at == minute]:
            found.finish(name)
            del ends[name]
        found.submit("q", f"small{minute}", gpu=4, at=found.now_ms)
        for name in found.cycle():
            if name == "gang":
                assert minute <= 5 + 25
                return
            ends[name] = minute + 25
    pytest.fail("the gang never started")


WALLED = (
    root("org"),
    queue("one", "org", gpu=owns(0, borrows=0, lends=0)),
    queue("two", "org", gpu=owns(0, borrows=0, lends=0)),
    queue("own", "one", gpu=4),
    queue("other", "two", gpu=0),
    queue("idle", "two", gpu=8),
)
CAPPED = (
    root("org"),
    queue("own", "org", gpu=owns(4, borrows=0)),
    queue("other", "org"),
    queue("idle", "org", gpu=8),
)
LENDING = (*WALLED[:2], queue("two", "org", gpu=owns(0, lends=6)), *WALLED[3:])


@pytest.mark.parametrize("waited", [6, 40])
@pytest.mark.parametrize(
    ("nodes", "runtime"),
    [
        # What lies behind walls is nobody else's, whether or not anybody knows when the gang can start.
        pytest.param(WALLED, None, id="walls"),
        pytest.param(WALLED, 60 * MIN, id="walls, known"),
        # Of 12 the gang is to have 4.
        pytest.param(CAPPED, None, id="lacks its own alone"),
        pytest.param(CAPPED, 60 * MIN, id="lacks its own alone, known"),
        pytest.param(LENDING, None, id="a wall on one side"),
    ],
)
def test_who_takes_nothing_of_what_is_lacking_is_not_held_back(
    nodes: tuple[QuotaNode, ...], runtime: int | None, waited: int
) -> None:
    found = fleet(*nodes)
    found.submit("own", "runs", gpu=2, runtime=runtime)
    assert found.cycle() == ["runs"]
    found.submit("own", "gang", gpu=4)
    found.now_ms = waited * MIN
    assert found.cycle() == []
    assert [one.item.id for one in found.reservations.made] == ["gang"]
    starts = []
    for gpu in range(1, 11):
        found.submit("other", "comes", gpu=gpu, at=found.now_ms)
        if admitted(found.decide()):
            starts.append(gpu)
        found.queues["other"].pending.remove("comes")
    assert starts == list(range(1, 9))


def test_a_lenders_own_work_is_not_held_back_for_a_borrower() -> None:
    found = fleet(root("org"), queue("lender", "org", gpu=8), queue("borrower", "org", gpu=8))
    found.submit("borrower", "a", gpu=8, runtime=20 * MIN)
    assert found.cycle() == ["a"]
    found.submit("borrower", "gang", gpu=12)
    found.now_ms = 6 * MIN
    found.submit("lender", "own", gpu=8, at=found.now_ms)
    found.submit("borrower", "late", gpu=2, at=found.now_ms)
    decision = found.decide()
    assert found.carry_out(decision) == ["own"]
    assert [one.item.id for one in decision.reservations.made] == ["gang"]


@pytest.mark.parametrize(
    ("of", "runs", "gpu", "gang", "claims", "starts"),
    [
        pytest.param("own", 0, 8, 12, (), True, id="what its queue owns"),
        pytest.param("own", 4, 8, 12, (), False, id="more than that"),
        pytest.param("gangs", 0, 4, 12, (), False, id="the queue of the gang"),
        pytest.param("own", 0, 8, 4, (), False, id="the gang does not borrow"),
        pytest.param("own", 0, 8, 12, ("gang",), False, id="others were displaced for it"),
    ],
)
def test_nodes_kept_for_who_borrows_are_not_kept_from_who_owns(
    of: str, runs: int, gpu: int, gang: int, claims: tuple[str, ...], *, starts: bool
) -> None:
    found = fleet(root("org", gpu=16), queue("own", "org", gpu=8), queue("gangs", "org", gpu=8))
    if runs:
        found.submit("own", "runs", gpu=runs)
        assert found.cycle() == ["runs"]
    large = preplaced([bound("ab", gpu=gang)], probe="gang")
    small = preplaced([bound("ab", gpu=gpu)], probe="small")
    found.submit("gangs", "gang", large)
    found.earliest[probe_through(_probe(large), {"gang"})] = Earliest("a", 20 * MIN, 3)
    found.now_ms = 6 * MIN
    found.submit(of, "comes", small, at=found.now_ms)
    there = Verdict(1, frozenset("a"), rooms=(("a", 1),))
    verdicts = {key: Verdict(0, reasons=("no node",)) for key in (_probe(large), _probe(small))}
    verdicts |= {
        probe_through(_probe(large), {"gang"}): Verdict(0),
        probe_through(_probe(small), {"gang"}): there,
    }
    for expected in ([], ["comes"] if starts else []):
        snapshot = replace(found.snapshot(verdicts=verdicts), claims=dict.fromkeys(claims, 60 * MIN))
        decision = decide(snapshot, found.now_ms)
        assert [(one.item.id, one.cluster) for one in decision.reservations.made] == [("gang", "a")]
        assert found.carry_out(decision) == expected


def test_what_waits_within_its_quota_is_kept_from_borrowers() -> None:
    found = fleet(root("org"), queue("own", "org", gpu=8), queue("other", "org", gpu=8))
    found.submit("other", "a", gpu=6, runtime=20 * MIN)
    found.submit("other", "a2", gpu=6)
    assert found.cycle() == ["a", "a2"]
    found.submit("own", "gang", gpu=8)
    found.now_ms = 6 * MIN
    found.submit("other", "b", gpu=4, at=found.now_ms, runtime=20 * MIN)
    found.submit("other", "c", gpu=4, at=found.now_ms, runtime=10 * MIN)
    assert found.cycle() == ["c"]


@pytest.mark.parametrize(("gang", "first"), [(8, "gang"), (9, "small")])
def test_who_will_borrow_is_told_by_what_its_queue_owns_not_by_what_it_runs(gang: int, first: str) -> None:
    """By what runs now the small one is within the queue's quota of 8, and the gang never is."""
    found = fleet(root("org"), queue("q", "org", gpu=8), queue("other", "org", gpu=8))
    found.submit("q", "a", gpu=6, runtime=20 * MIN)
    found.submit("other", "b", gpu=4, runtime=20 * MIN)
    found.cycle()
    found.submit("q", "gang", gpu=gang)
    found.submit("q", "small", gpu=2, at=1)
    found.now_ms = 6 * MIN
    assert [one.item.id for one in found.decide(free={"gpu": 0}).reservations.made] == [first]


def test_a_service_of_its_queue_gives_nothing_back_so_who_needs_that_would_borrow() -> None:
    found = fleet(root("org"), queue("q", "org", gpu=8), queue("other", "org", gpu=8))
    found.submit("q", "service", gpu=6)
    found.submit("other", "b", gpu=10, runtime=20 * MIN)
    found.cycle()
    found.endings.drop("service")
    found.submit("q", "gang", gpu=8)
    found.submit("q", "small", gpu=2, at=1)
    found.now_ms = 6 * MIN
    assert [one.item.id for one in found.decide().reservations.made] == ["small"]


def test_of_two_that_hold_one_only_the_second_gives_way() -> None:
    """In queues of their own, so that neither goes first by the order of a queue, and both borrow."""
    policy = replace(POLICY, depth=2)
    found = fleet(root("org", gpu=8), queue("x", "org", gpu=4), queue("y", "org", gpu=4), policy=policy)
    found.submit("x", "a", gpu=8, runtime=20 * MIN)
    found.submit("y", "b", gpu=8, runtime=30 * MIN)
    found.cycle()
    found.submit("x", "first", gpu=8)
    found.submit("y", "second", gpu=8, at=1)
    found.now_ms = 6 * MIN
    decision = found.decide()
    found.carry_out(decision)
    assert [one.item.id for one in decision.reservations.made] == ["first", "second"]
    found.finish("a")
    assert found.cycle() == ["first"]
    found.finish("b")
    assert found.cycle() == ["second"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("first", {"first", "second", "third"}),
        ("second", {"second", "third"}),
        ("third", {"third"}),
        ("other", set()),
    ],
)
def test_who_holds_one_may_use_what_is_kept_for_those_behind_it(item: str, expected: set[str]) -> None:
    found = fleet(*(root(name, gpu=64) for name in ("first", "second", "third", "other")))
    refused = {}
    for number, name in enumerate(("first", "second", "third")):
        gang = preplaced([bound("ab", gpu=16)], probe=name)
        found.submit(name, name, gang, at=number)
        refused[_probe(gang)] = Verdict(0, reasons=("no node",))
        found.earliest[probe_through(_probe(gang), {name})] = Earliest("a", 20 * MIN, 3)
    found.now_ms = 6 * MIN
    reservations = found.decide(verdicts=refused).reservations
    assert [one.item.id for one in reservations.made] == ["first", "second", "third"]
    first = reservations.made[0]
    asked = replace(first.item, id=item, queue=item)
    assert reservations.through(asked, first.rank, None, found.now_ms) == expected


def test_so_many_of_a_tree_get_one_for_each_flavor() -> None:
    policy = ReservationPolicy(after_ms=MIN, drain_after_ms=30 * MIN, depth=1)
    found = fleet(root("q", gpu=16, a100_gpu=16), policy=policy)
    found.submit("q", "a", gpu=16, runtime=20 * MIN)
    found.submit("q", "b", a100_gpu=16, runtime=20 * MIN)
    found.cycle()
    for number in range(3):
        found.submit("q", f"gpu{number}", gpu=8, at=number)
    found.submit("q", "other", a100_gpu=8, at=9)
    found.now_ms = 2 * MIN
    assert [one.item.id for one in found.decide().reservations.made] == ["gpu0", "other"]
    found.configure("q", reservation=ReservationPolicy(after_ms=MIN, drain_after_ms=30 * MIN, depth=2))
    assert [one.item.id for one in found.decide().reservations.made] == ["gpu0", "gpu1", "other"]


@dataclass(frozen=True)
class Wanting:
    """Those that want all 16 GPUs: by name, when each came, its maxWait and its priority, in minutes."""

    about: str
    came: dict[str, tuple[int, int | None, int]]
    first: str


@pytest.mark.parametrize(
    "case",
    [
        Wanting("nobody says: who came first", {"a": (0, None, 0), "b": (1, None, 0)}, "a"),
        Wanting("the earlier deadline", {"a": (0, 60, 0), "b": (1, 30, 0)}, "b"),
        Wanting("the earlier deadline, not the shorter wait", {"a": (0, 31, 0), "b": (2, 30, 0)}, "a"),
        Wanting("who has one goes before who has none", {"a": (0, None, 0), "b": (1, 60, 0)}, "b"),
        Wanting("who is late already", {"a": (0, 3, 0), "b": (1, 30, 0)}, "a"),
        Wanting("the higher priority, whatever the deadline", {"a": (0, 1, 0), "b": (1, None, 1)}, "b"),
        # A reservation is held for 600 minutes, and that is what who states none counts with.
        Wanting("none is not for ever", {"a": (0, None, 0), "b": (601, 30, 0)}, "a"),
        Wanting("a long one is no worse than none", {"a": (0, 9_999, 0), "b": (1, None, 0)}, "a"),
    ],
    ids=lambda case: case.about,
)
def test_of_equal_priority_the_earliest_deadline_has_room_kept(case: Wanting) -> None:
    found = full({"a": 10, "b": 20, "c": 40})
    for name, (came, max_wait, priority) in case.came.items():
        wait = None if max_wait is None else max_wait * MIN
        found.submit("q", name, gpu=16, at=came * MIN, priority=priority, max_wait=wait)
    found.now_ms = 5 * MIN + max(came for came, _, _ in case.came.values()) * MIN
    assert [one.item.id for one in found.decide().reservations.made] == [case.first]


def test_a_deadline_that_has_just_come_takes_no_reservation_from_who_has_waited() -> None:
    found = full({"a": None, "b": None, "c": None, "d": None})
    found.submit("q", "gang", gpu=16)
    made = []
    for minute, name in ((5, "due1"), (8, "due2"), (13, "due3")):
        found.now_ms = minute * MIN
        found.submit("q", name, gpu=16, at=found.now_ms, max_wait=20 * MIN)
        decision = found.decide()
        found.carry_out(decision)
        made += [one.item.id for one in decision.reservations.made]
    assert made == ["gang", "gang", "due1"]


def test_a_deadline_beyond_the_first_classes_of_a_line_is_found() -> None:
    found = full({"a": None, "b": None, "c": None, "d": None})
    for number in range(40):
        found.submit("q", f"gpu{number}", gpu=2, at=number, runtime=(number + 1) * MIN)
    found.submit("q", "due", gpu=8, at=60, max_wait=30 * MIN)
    found.now_ms = 6 * MIN
    assert [one.item.id for one in found.decide().reservations.made] == ["due"]


@pytest.mark.parametrize(
    ("max_wait", "reserved"), [(None, 5), (60, 5), (10, 5), (9, 4.5), (4, 2), (1, 0.5), (0.0, 0)]
)
def test_who_should_not_wait_long_has_room_kept_sooner(max_wait: float | None, reserved: float) -> None:
    found = full(KNOWN)
    wait = None if max_wait is None else int(max_wait * MIN)
    found.submit("q", "gang", gpu=12, max_wait=wait)
    reserved_ms = int(reserved * MIN)
    for at_ms in sorted({max(0, reserved_ms - 1), reserved_ms}):
        found.now_ms = at_ms
        decision = found.decide()
        assert bool(decision.reservations.made) == (at_ms >= reserved_ms)
        found.carry_out(decision)


def test_nothing_is_reserved_of_what_never_comes_back() -> None:
    found = full({"a": 10, "b": 20, "service": None})
    found.endings.drop("service")
    found.submit("q", "gang", gpu=16)
    found.now_ms = 6 * MIN
    found.submit("q", "small", gpu=4, at=found.now_ms)
    decision = found.decide()
    assert decision.reservations.made == ()
    assert found.carry_out(decision) == ["small"]


def test_a_reservation_is_given_up_for_as_long_as_it_was_held() -> None:
    policy = ReservationPolicy(after_ms=MIN, drain_after_ms=2 * MIN, hold_timeout_ms=10 * MIN)
    found = full({"a": None, "b": None, "c": None}, policy=policy)
    found.submit("q", "gang", gpu=16)
    seen = []
    for minute in range(1, 40):
        found.now_ms = minute * MIN
        decision = found.decide()
        found.carry_out(decision)
        seen.append(bool(decision.reservations.made))
    assert seen[:10] == [True] * 10
    assert seen[10:20] == [False] * 10
    assert seen[20:30] == [True] * 10


def test_who_goes_first_anyway_is_not_held_back() -> None:
    found = full(KNOWN)
    found.submit("q", "gang", gpu=12)
    found.now_ms = 6 * MIN
    found.submit("q", "urgent", gpu=4, at=found.now_ms, priority=1)
    assert found.cycle() == ["urgent"]


def test_the_estimators_say_where_and_when() -> None:
    """Of a cluster that is reserved only its room is kept, and who may pass is asked about with that."""
    found = fleet(root("q", gpu=64))
    gang = preplaced([bound("ab", gpu=16)], probe="gang")
    small = preplaced([bound("ab", gpu=1)], probe="small")
    found.submit("q", "gang", gang)
    found.now_ms = 6 * MIN
    refused = {key: Verdict(0, reasons=("no node",)) for key in (_probe(gang), _probe(small))}
    made = found.decide(verdicts=refused).reservations.made
    assert [(one.item.id, one.starts_ms, one.cluster) for one in made] == [("gang", None, "")]
    own = probe_through(_probe(gang), frozenset({"gang"}))
    found.earliest[own] = Earliest("a", 20 * MIN, 3)
    decision = found.decide(verdicts=refused)
    assert [(one.starts_ms, one.cluster) for one in decision.reservations.made] == [(20 * MIN, "a")]
    found.carry_out(decision)
    found.submit("q", "long", small, at=found.now_ms, runtime=20 * MIN)
    found.submit("q", "short", small, at=found.now_ms + 1, runtime=10 * MIN)
    through = probe_through(_probe(small), frozenset({"gang"}))
    decision = found.decide(verdicts=refused)
    asked = [one for one in decision.actions if isinstance(one, Probe)]
    assert {(one.item.id, one.probe) for one in asked} == {("short", through), ("gang", own)}
    there = Verdict(1, frozenset("a"), rooms=(("a", 1),))
    assert found.carry_out(found.decide(verdicts={**refused, own: Verdict(0), through: there})) == ["short"]
    fits = {**refused, own: Verdict(1, frozenset("a"), rooms=(("a", 1),)), through: Verdict(0)}
    decision = found.decide(verdicts=fits)
    assert found.carry_out(decision) == ["gang"]
    assert decision.reservations.made == ()


def test_who_waits_for_what_never_comes_back_takes_nobodys_place() -> None:
    found = full({"a": 10, "b": 20, "service": None})
    found.endings.drop("service")
    found.submit("q", "gang", gpu=16)
    found.submit("q", "smaller", gpu=12, at=1)
    found.now_ms = 6 * MIN
    assert [one.item.id for one in found.decide().reservations.made] == ["smaller"]


def test_what_goes_first_leaves_less_to_pass() -> None:
    """The gang leaves 8, of which 6 are taken by who came before it."""
    policy = ReservationPolicy(after_ms=0, drain_after_ms=30 * MIN)
    found = fleet(root("q", gpu=16), policy=policy)
    gang = preplaced([bound("ab", gpu=8)], probe="gang")
    found.submit("q", "gang", gang, at=1)
    refused = {_probe(gang): Verdict(0, reasons=("no node",))}
    found.now_ms = MIN
    found.carry_out(found.decide(verdicts=refused))
    found.submit("q", "first", gpu=6)
    found.submit("q", "behind", gpu=4, at=2)
    assert found.carry_out(found.decide(verdicts=refused)) == ["first"]


@pytest.mark.parametrize(("drains", "starts"), [(30, ["beside"]), (6, [])])
def test_what_ends_before_it_can_start_may_be_used_after(drains: int, starts: list[str]) -> None:
    """Of quota that a gang does not lack while it waits for nodes; unless it drains."""
    policy = ReservationPolicy(after_ms=5 * MIN, drain_after_ms=drains * MIN)
    found = fleet(root("q", gpu=16), policy=policy)
    gang = preplaced([bound("ab", gpu=12)], probe="gang")
    found.submit("q", "a", gpu=4, runtime=15 * MIN)
    assert found.cycle() == ["a"]
    found.submit("q", "gang", gang)
    found.now_ms = 6 * MIN
    refused = {_probe(gang): Verdict(0, reasons=("no node",))}
    found.earliest[probe_through(_probe(gang), frozenset({"gang"}))] = Earliest("a", 20 * MIN, 3)
    found.carry_out(found.decide(verdicts=refused))
    found.submit("q", "more", gpu=5, at=found.now_ms)
    found.submit("q", "beside", gpu=4, at=found.now_ms + 1)
    verdicts = {**refused, probe_through(_probe(gang), frozenset({"gang"})): Verdict(0)}
    assert found.carry_out(found.decide(verdicts=verdicts)) == starts


def test_who_could_ever_start_is_found_out_by_what_there_is_by_then() -> None:
    """Though who is refused was found in a cycle before, when there was less."""
    found = fleet(root("q", gpu=16))
    found.submit("q", "a", gpu=8)
    found.cycle()
    found.submit("q", "gang", gpu=12)
    cycles = AdmissionCycles()
    found.now_ms = MIN
    assert cycles.decide(found.snapshot(free={"gpu": 0}), found.now_ms).reservations.made == ()
    found.now_ms = 6 * MIN
    decision = cycles.decide(found.snapshot(free={"gpu": 8}), found.now_ms)
    assert [one.item.id for one in decision.reservations.made] == ["gang"]


def test_who_has_one_keeps_it_when_its_room_is_there() -> None:
    """Another tree that came first has its turn first, and takes nothing of what was kept."""
    found = fleet(root("own", gpu=8), root("other", gpu=8))
    found.configure("other", strategy=BEST_EFFORT)
    found.submit("other", "a", gpu=8)
    assert found.cycle(free={"gpu": 8}) == ["a"]
    found.submit("other", "older", gpu=4)
    found.submit("own", "gang", gpu=8, at=1)
    found.now_ms = 6 * MIN
    assert found.cycle(free={"gpu": 0}) == []
    found.finish("a")
    found.now_ms += 1
    decision = found.decide(free={"gpu": 8})
    assert found.reasons(decision) == {"older": "WaitingForCapacity"}
    assert found.carry_out(decision) == ["gang"]


def test_who_has_one_keeps_it_while_nothing_more_may_be_released() -> None:
    found = full({"a": None, "b": None, "c": None})
    found.submit("q", "gang", gpu=12)
    found.now_ms = 6 * MIN
    found.cycle()
    (made,) = found.reservations.made
    for name in ("a", "b"):
        found.finish(name)
    found.now_ms += 1
    assert found.cycle(tokens=0) == []
    (kept,) = found.reservations.made
    assert (kept.item.id, kept.since_ms) == ("gang", made.since_ms)
    found.now_ms += 1
    assert found.cycle() == ["gang"]
    assert found.reservations.made == ()


def test_who_has_one_keeps_it_while_it_is_asked_about() -> None:
    """And the estimators keep its room, or there would never be what they are asked about."""
    found = fleet(root("q", gpu=64))
    gang = preplaced([bound("ab", gpu=16)], probe="gang")
    found.submit("q", "gang", gang)
    found.now_ms = 6 * MIN
    refused = {_probe(gang): Verdict(0, reasons=("no node",))}
    found.carry_out(found.decide(verdicts=refused))
    own = probe_through(_probe(gang), frozenset({"gang"}))
    found.earliest[own] = Earliest("a", 20 * MIN, 3)
    found.carry_out(found.decide(verdicts=refused))
    found.now_ms += 1
    decision = found.decide(verdicts=refused)
    assert [one.probe for one in decision.actions if isinstance(one, Probe)] == [own]
    assert [(one.since_ms, one.cluster) for one in decision.reservations.made] == [(6 * MIN, "a")]


@pytest.mark.parametrize("asked_again", [False, True])
def test_a_reservation_is_held_while_the_estimators_are_asked_again(asked_again: bool) -> None:
    """Their word runs out within seconds; nobody takes the room meanwhile, and its time runs on."""
    found = fleet(root("org", gpu=12), queue("own", "org", gpu=4), queue("other", "org"))
    gang = preplaced([bound("ab", gpu=12)], probe="gang")
    refused = {_probe(gang): Verdict(0, reasons=("no node",))}
    found.submit("own", "gang", gang)
    found.now_ms = 6 * MIN
    assert found.carry_out(found.decide(verdicts=refused)) == []
    (made,) = found.reservations.made
    # Who uses less goes first, and would take what the gang needs of the quota.
    found.submit("other", "small", gpu=6, at=found.now_ms)
    found.now_ms = 7 * MIN
    decision = found.decide(verdicts={} if asked_again else refused)
    assert [action.item.id for action in decision.actions] == (["gang"] if asked_again else [])
    assert [(one.item.id, one.since_ms) for one in decision.reservations.made] == [("gang", made.since_ms)]
    assert found.carry_out(decision) == []


def test_also_those_behind_the_first_keep_theirs_while_they_are_asked_about() -> None:
    found = fleet(root("q", gpu=64), policy=replace(POLICY, depth=2))
    refused = {}
    for number in range(2):
        gang = preplaced([bound("ab", gpu=16 + number)], probe=f"gang{number}")
        refused[_probe(gang)] = Verdict(0, reasons=("no node",))
        found.submit("q", f"gang{number}", gang, at=number)
    found.now_ms = 6 * MIN
    found.carry_out(found.decide(verdicts=refused))
    before = [(one.item.id, one.since_ms) for one in found.reservations.made]
    assert [item for item, _ in before] == ["gang0", "gang1"]
    found.now_ms = 7 * MIN
    assert [(one.item.id, one.since_ms) for one in found.decide().reservations.made] == before


@pytest.mark.parametrize(
    ("runs", "waited", "text", "unblock"),
    [
        (
            KNOWN,
            5,
            "waits longer, for gpu of flavor default: it can start in 900 s at the latest",
            # What may run for 900 s is taken to run for up to an eighth longer.
            "gang starts or is deleted; or it has a maxRuntime of 851 s or less, and so ends before that one "
            "can start",
        ),
        (
            {"a": 10, "b": None, "c": None},
            5,
            "gpu of flavor default: nobody knows when it can start, as not all that uses what it lacks has a "
            "maxRuntime",
            "gang starts or is deleted",
        ),
        (
            KNOWN,
            30,
            "it can start any moment, as what was to end by now has not; by now nothing passes it",
            "gang starts or is deleted",
        ),
    ],
)
def test_who_is_held_back_is_told_for_whom_and_what_would_pass(
    runs: dict[str, int | None], waited: int, text: str, unblock: str
) -> None:
    found = full(runs)
    found.submit("q", "gang", gpu=12, at=0)
    found.now_ms = waited * MIN
    found.submit("q", "small", gpu=4, at=found.now_ms)
    reason = found.reason(found.decide(), "small")
    assert reason is not None
    assert reason.text.startswith("the room that it would take is kept for gang, which waits longer, for ")
    assert reason.text.endswith(text)
    assert reason.unblock == unblock
    stranger = told_to(lambda namespace: False, reason)
    assert stranger.text == BEHIND_STRANGERS_RESERVATION.text
    assert stranger.unblock == unblock.replace("gang", "that workload")


def test_what_is_told_to_pass_does_pass() -> None:
    found = full(KNOWN)
    found.submit("q", "gang", gpu=12, at=0)
    found.now_ms = 5 * MIN + 1
    left_ms = longest_within(15 * MIN - 1)
    found.submit("q", "short", gpu=4, at=found.now_ms, runtime=in_steps(left_ms // 1000 * 1000))
    assert found.cycle() == ["short"]


@pytest.mark.parametrize(
    ("of", "amounts", "passes"),
    [
        ("q", {"gpu": 4}, True),
        ("q", {"a100_gpu": 4}, False),
        # It goes first anyway, or takes only what its own queue owns.
        ("urgent", {"gpu": 4}, False),
        ("lender", {"gpu": 4}, False),
    ],
)
def test_who_passes_is_told(of: str, amounts: dict[str, int], passes: bool) -> None:
    nodes = (
        root("org"),
        queue("q", "org", gpu=16, a100_gpu=4),
        queue("urgent", "org"),
        queue("lender", "org", gpu=4),
    )
    found = fleet(*nodes)
    for name in "abcd":
        found.submit("q", name, gpu=4, runtime=20 * MIN)
    found.cycle()
    found.submit("q", "gang", gpu=16)
    found.now_ms = 6 * MIN
    priority = 1 if of == "urgent" else 0
    way = shape(charge(**amounts))
    found.submit(of, "small", way, at=found.now_ms, runtime=5 * MIN, priority=priority)
    decision = found.decide()
    assert [one.item.id for one in decision.reservations.made] == ["gang"]
    admitted = [action for action in decision.actions if isinstance(action, Admit)]
    assert [(action.item.id, action.passes) for action in admitted] == [("small", passes)]


def _probe(shape: Shape) -> str:
    return probe_of(shape, shape.alternatives[0])


def claimed(found: Fleet, **until: int) -> list[str]:
    """A cycle in which others are displaced for these until then, in minutes; what it admits."""
    made = decide(
        replace(found.snapshot(), claims={name: at * MIN for name, at in until.items()}), found.now_ms
    )
    return found.carry_out(made)


def test_what_others_were_displaced_for_is_not_given_up_before_they_may_have_gone() -> None:
    """Not by a holdTimeout shorter than pods take to end, nor if it was given up before."""
    found = full({"a": None, "b": None, "c": None, "d": None}, replace(POLICY, hold_timeout_ms=MIN))
    found.submit("q", "gang", gpu=8)
    found.now_ms = 5 * MIN
    found.cycle()
    found.now_ms = 7 * MIN
    assert "gang" in found.decide().reservations.given_up
    found.cycle()
    found.finish("a")
    found.submit("q", "small", gpu=4, at=found.now_ms)
    assert claimed(found, gang=10) == []
    (made,) = found.reservations.made
    assert (made.item.id, made.expires_ms, found.reservations.given_up) == ("gang", 10 * MIN, {})
    found.now_ms = 10 * MIN
    assert found.cycle() == ["small"]


def test_what_is_left_is_kept_also_where_the_others_that_are_to_go_would_never_end() -> None:
    """As services: one of two has been displaced, and nobody else gets what it left."""
    found = fleet(root("org"), queue("a", "org", gpu=4), queue("b", "org"))
    found.configure("a", reclaims=True)
    for name in ("b1", "b2"):
        found.submit("b", name, gpu=2)
    assert found.cycle() == ["b1", "b2"]
    found.finish("b1")
    found.endings.drop("b2")
    found.submit("a", "owner", gpu=4)
    found.submit("b", "late", gpu=2, at=1)
    assert claimed(found, owner=10) == []


def test_each_for_whom_others_are_displaced_has_its_room_kept() -> None:
    """However many of a tree have one by their queue."""
    found = fleet(root("org"), *(queue(name, "org", gpu=4) for name in "abc"), policy=POLICY)
    for name in "ab":
        found.configure(name, strategy=BACKFILL, reclaims=True)
        found.submit(name, f"{name}1", gpu=4)
    found.submit("c", "c1", gpu=4)
    assert found.cycle() == ["a1", "b1", "c1"]
    for name in "ab":
        found.submit(name, f"{name}2", gpu=4, at=1)
    found.now_ms = MIN
    claimed(found, a2=10, b2=10)
    assert {one.item.id for one in found.reservations.made} == {"a2", "b2"}


def test_who_holds_one_starts_whatever_is_kept_for_those_behind_it() -> None:
    """What those behind it wait for was reckoned beside it: else neither would ever start."""
    found = fleet(root("org", gpu=4), queue("a", "org"), queue("b", "org"), policy=replace(POLICY, depth=2))
    found.submit("a", "long", gpu=4)
    assert found.cycle() == ["long"]
    found.submit("a", "first", gpu=2, at=1)
    found.submit("b", "second", gpu=2, at=2)
    found.now_ms = 40 * MIN
    found.cycle()
    assert [one.item.id for one in found.reservations.made] == ["first", "second"]
    found.finish("long")
    assert found.cycle() == ["first", "second"]


def test_nobody_passes_by_when_it_could_have_started_before_what_starts_now() -> None:
    """In one cycle: what goes first and ends nobody knows when makes that unknown."""
    found = full({"a": 10, "b": 20, "c": None})
    found.submit("q", "gang", gpu=12)
    found.now_ms = 5 * MIN
    found.cycle()
    found.submit("q", "urgent", gpu=2, at=found.now_ms, priority=1)
    found.submit("q", "short", gpu=2, at=found.now_ms, runtime=5 * MIN)
    assert found.cycle() == ["urgent"]


@pytest.mark.parametrize(
    ("runtime", "then", "passes"), [(2, 8, False), (12, 18, True), (None, 20, True)], ids=str
)
def test_who_gave_way_to_one_that_starts_may_start_once_that_is_over(
    runtime: int | None, then: int, *, passes: bool
) -> None:
    found = fleet(root("q", gpu=3), policy=replace(POLICY, depth=2))
    found.submit("q", "long", gpu=1, runtime=20 * MIN)
    found.submit("q", "gone", gpu=2, runtime=10 * MIN)
    found.cycle()
    found.submit("q", "first", gpu=1, at=0, runtime=None if runtime is None else runtime * MIN)
    found.submit("q", "second", gpu=2, at=1)
    found.now_ms = 6 * MIN
    assert found.cycle() == []
    found.finish("gone")
    # Over at 16.
    found.submit("q", "third", gpu=1, at=found.now_ms, runtime=10 * MIN)
    decision = found.decide()
    assert found.carry_out(decision) == (["first", "third"] if passes else ["first"])
    (second,) = decision.reservations.made
    assert (second.item.id, second.starts_ms) == ("second", then * MIN)
    # As the next cycle finds it.
    assert found.decide().reservations.made == decision.reservations.made


def test_who_is_first_by_then_takes_the_place_of_who_was_before() -> None:
    """Of many that wait few are tried beside the first of each class, and which of them changes as they have
    waited long enough.
    """
    found, cycles = full({"a": None, "b": None, "c": None, "d": None}), AdmissionCycles()
    found.configure("q", reclaims=True)
    found.submit("q", "early", gpu=4)
    found.submit("q", "next", gpu=4)
    for number in range(5):
        found.submit("q", f"urgent{number}", gpu=5 + number, at=3 * MIN, priority=1)
    first = [f"urgent{number}" for number in range(5)]
    for minute, tried in ((6, [*first, "early", "next"]), (9, [*first, "early"])):
        made = cycles.decide(found.snapshot(), minute * MIN)
        assert [one.item.id for one in made.preemptors] == tried


def test_one_that_has_backed_off_puts_off_none_that_is_like_it() -> None:
    found = fleet(root("org", gpu=8), queue("a", "org"))
    found.submit("a", "runs", gpu=6)
    found.cycle()
    found.submit("a", "backed off", gpu=4, at=1, due=9 * MIN)
    found.submit("a", "waits", gpu=4, at=2)
    found.now_ms = 9 * MIN
    found.queues["a"].pending.advance(found.now_ms)
    assert [one.item.id for one in found.decide().reservations.made] == ["waits"]
