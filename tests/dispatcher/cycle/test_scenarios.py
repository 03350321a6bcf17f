"""What went wrong elsewhere, each as a scenario that must go right here.

Sources are issues of Kueue, Volcano, Armada and KAI-Scheduler, and defects of volcano-global v0.3.0.
"""

import pytest

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.reasons import waiting_for_borrowing
from queue_dispatcher.cycle.snapshot import Verdict
from tests.dispatcher.cycle.builders import BACKFILL, BEST_EFFORT, STRICT, Fleet, admitted, probed, shape
from tests.dispatcher.ledger.builders import cell, charge, owns, queue, root

GPU = cell("gpu")


def test_a_head_blocked_on_one_flavor_does_not_hold_up_another_under_best_effort() -> None:
    # kueue#8309: all of a queue waits for flavor A although flavor B is idle.
    fleet = Fleet(root("team", h100_gpu=8, a100_gpu=8))
    fleet.ledger.charge("team", charge(h100_gpu=6))
    fleet.submit("team", "h100-gang", at=1, h100_gpu=4)
    fleet.submit("team", "a100-job", at=2, a100_gpu=4)
    decision = fleet.decide()
    assert admitted(decision) == ["a100-job"]
    assert fleet.reasons(decision) == {"h100-gang": "WaitingForQuota"}


def test_a_head_blocked_on_one_flavor_holds_up_its_own_strict_queue_and_says_so() -> None:
    # kueue#8309: StrictFIFO promises order within the queue, whatever the flavor; other queues go on.
    fleet = Fleet(root("team", h100_gpu=8, a100_gpu=8), root("other", a100_gpu=1), strategy=STRICT)
    fleet.ledger.charge("team", charge(h100_gpu=6))
    fleet.submit("team", "h100-gang", at=1, h100_gpu=4)
    fleet.submit("team", "a100-job", at=2, a100_gpu=4)
    fleet.submit("other", "elsewhere", at=3, a100_gpu=1)
    decision = fleet.decide()
    assert admitted(decision) == ["elsewhere"]
    reason = fleet.reason(decision, "a100-job")
    assert reason is not None
    assert reason.kind == "BehindHead"
    assert "h100-gang" in reason.text
    assert "flavor h100" in reason.text


@pytest.mark.parametrize("strategy", [STRICT, BEST_EFFORT, BACKFILL])
def test_alike_workloads_start_in_the_order_they_came_however_long_they_run(
    strategy: QueueingStrategy,
) -> None:
    fleet = Fleet(root("team", gpu=4), strategy=strategy)
    for at, (name, runtime) in enumerate((("a", 60), ("b", None), ("c", 60), ("d", 90), ("e", None))):
        fleet.submit("team", name, at=at, runtime=runtime, gpu=2)
    assert fleet.cycle() == ["a", "b"]
    fleet.finish("b")
    decision = fleet.decide()
    assert admitted(decision) == ["c"]
    waits = "WaitingForQuota" if strategy is not STRICT else "BehindHead"
    assert fleet.reasons(decision) == {"d": "WaitingForQuota", "e": waits}


class TestHolding:
    """kueue#4809: who waits at the head of a StrictFIFO queue for the queue's own nominal quota, gets it.

    Kueue: pkg/scheduler/scheduler.go, reserveCapacityForUnreclaimablePreempt.
    """

    def fleet(self) -> Fleet:
        fleet = Fleet(
            root("org"), queue("lender", "org", gpu=4), queue("owner", "org", gpu=3), queue("borrower", "org")
        )
        fleet.configure("lender", strategy=STRICT)
        fleet.ledger.charge("borrower", charge(gpu=2))
        return fleet

    def test_nobody_borrows_what_it_waits_for(self) -> None:
        fleet = self.fleet()
        fleet.ledger.charge("owner", charge(gpu=2))
        fleet.submit("lender", "head", at=9, gpu=4)
        for number in range(5):
            fleet.submit("borrower", f"job{number}", at=number, priority=9, gpu=1)
        decision = fleet.decide()
        assert admitted(decision) == []
        reason = fleet.reason(decision, "job0")
        assert reason == waiting_for_borrowing("borrower", "default", "gpu", "1", is_held=True)
        assert fleet.reasons(decision)["head"] == "WaitingForQuota"
        fleet.ledger.give_back("borrower", charge(gpu=2))
        assert fleet.cycle() == ["head", "job0"]

    def test_an_owner_starts_however_many_borrowers_come(self) -> None:
        fleet = Fleet(root("org"), queue("lender", "org", gpu=8), queue("borrower", "org"))
        fleet.configure("lender", strategy=STRICT)
        for number in range(4):
            fleet.submit("borrower", f"b{number}", at=number, gpu=2)
        running = fleet.cycle()
        fleet.submit("lender", "head", at=50, gpu=6)
        for number in range(4, 100):
            fleet.submit("borrower", f"b{number}", at=number, gpu=2)
        ends = 0
        while "head" not in fleet.running:
            fleet.finish(running.pop(0))
            ends += 1
            running += fleet.cycle()
        assert ends == 3

    def test_owners_are_not_kept_from_their_own(self) -> None:
        fleet = self.fleet()
        fleet.ledger.charge("borrower", charge(gpu=2))
        fleet.submit("lender", "head", at=1, gpu=4)
        fleet.submit("owner", "own", at=2, gpu=2)
        fleet.submit("borrower", "borrows", at=0, gpu=1)
        assert fleet.cycle() == ["own"]

    @pytest.mark.parametrize("asked", [5, 7])
    def test_who_would_have_to_borrow_holds_nothing(self, asked: int) -> None:
        fleet = self.fleet()
        fleet.ledger.charge("owner", charge(gpu=3))
        fleet.submit("lender", "head", at=1, gpu=asked)
        fleet.submit("borrower", "job", at=2, gpu=2)
        assert fleet.cycle() == ["job"]

    def test_a_queue_that_can_take_its_quota_back_holds_nothing(self) -> None:
        fleet = self.fleet()
        fleet.ledger.charge("owner", charge(gpu=3))
        fleet.configure("lender", strategy=STRICT, reclaims=True)
        fleet.submit("lender", "head", at=1, gpu=4)
        fleet.submit("borrower", "job", at=2, gpu=2)
        assert fleet.cycle() == ["job"]

    def test_nor_does_one_whose_heads_are_passed(self) -> None:
        fleet = self.fleet()
        fleet.ledger.charge("owner", charge(gpu=3))
        fleet.configure("lender", strategy=BEST_EFFORT)
        fleet.submit("lender", "head", at=1, gpu=4)
        fleet.submit("borrower", "job", at=2, gpu=2)
        assert fleet.cycle() == ["job"]


def test_what_is_not_lent_waits_for_its_owner() -> None:
    # kueue#4809, the other side: who wants idle quota kept says so with lendingLimit.
    fleet = Fleet(root("org"), queue("lender", "org", gpu=owns(4, lends=0)), queue("borrower", "org"))
    fleet.submit("borrower", "job", at=1, gpu=1)
    fleet.submit("lender", "own", at=2, gpu=4)
    assert fleet.cycle() == ["own"]


def test_ageing_changes_the_order_but_cannot_be_raised_without_bound() -> None:
    # kueue#754: waiting work rises, yet never above what an administrator ranks higher than the cap.
    fleet = Fleet(root("a", gpu=1))
    fleet.configure("a", ageing=Ageing(step_ms=60_000, cap=10))
    fleet.now_ms = 10**9
    fleet.submit("a", "waited-for-days", at=0, priority=0, gpu=1)
    fleet.submit("a", "production", at=10**9, priority=100, gpu=1)
    fleet.submit("a", "batch", at=10**9, priority=10, gpu=1)
    assert fleet.cycle(tokens=1) == ["production"]
    fleet.finish("production")
    assert fleet.cycle() == ["waited-for-days"]


def test_impossible_work_does_not_freeze_the_loop() -> None:
    # kueue#12541, armada#5071: one queue alone kept the scheduler busy for ever.
    fleet = Fleet(root("a", gpu=1), strategy=STRICT)
    for number in range(50):
        fleet.submit("a", f"huge{number}", at=number, gpu=1000 + number)
    fleet.submit("a", "fine", at=99, gpu=1)
    assert fleet.cycle() == ["fine"]
    assert fleet.cycle() == []


def test_order_is_that_of_the_stored_time_and_survives_a_restart() -> None:
    # kueue#3984: after a restart work was ordered by when the informer delivered it.
    first, second = Fleet(root("a", gpu=9)), Fleet(root("a", gpu=9))
    for number in (3, 1, 2):
        first.submit("a", f"w{number}", at=number, gpu=1)
    for number in (2, 3, 1):
        second.submit("a", f"w{number}", at=number, gpu=1)
    assert first.decide().actions != ()
    assert admitted(first.decide()) == admitted(second.decide()) == ["w1", "w2", "w3"]


def test_who_is_taken_back_keeps_its_place_in_the_line() -> None:
    # kueue#8602: what no cluster took gives its quota back and is tried again; it does not go to the end.
    fleet = Fleet(root("a", gpu=1))
    fleet.submit("a", "first", at=1, gpu=1)
    fleet.submit("a", "second", at=2, gpu=1)
    assert fleet.cycle() == ["first"]
    fleet.finish("first")
    fleet.submit("a", "first", at=1, due=1000, gpu=1)
    assert fleet.queues["a"].pending.position("first", 0, fleet.queues["a"].ageing) == 2
    assert fleet.cycle() == ["second"]
    fleet.finish("second")
    fleet.submit("a", "third", at=3, gpu=1)
    fleet.now_ms = 1000
    assert fleet.cycle() == ["first"]


@pytest.mark.parametrize("free", [{"gpu": 3}, {"gpu": 0}, {"gpu": -5}])
def test_quota_above_what_is_there_releases_nothing_that_cannot_run(free: dict[str, int]) -> None:
    # kueue#9988, #3183: quota drifts from real capacity and pods stay pending; volcano-global hands each
    # of its queues the whole fleet.
    fleet = Fleet(root("a", gpu=100), root("b", gpu=100))
    for number in range(4):
        fleet.submit("a", f"a{number}", at=number, gpu=1)
        fleet.submit("b", f"b{number}", at=number, gpu=1)
    assert len(fleet.cycle(free=free)) == max(0, free["gpu"])


@pytest.mark.parametrize("strategy", [STRICT, BEST_EFFORT])
def test_everything_that_waits_has_a_reason(strategy: object) -> None:
    # kueue#2391: fits, is not admitted for hours, and nobody can tell why.
    fleet = Fleet(root("org", gpu=6), queue("a", "org", gpu=owns(2, borrows=1)), queue("b", "org"))
    fleet.configure("a", strategy=STRICT if strategy is STRICT else BEST_EFFORT)
    for number, amount in enumerate((1, 5, 2, 1, 9)):
        fleet.submit("a", f"a{number}", at=number, gpu=amount)
        fleet.submit("b", f"b{number}", at=number, gpu=amount, probe=f"p{number % 2}")
    fleet.submit("gone", "lost", gpu=1)
    for tokens in (0, 1, 100):
        decision = fleet.decide(tokens=tokens, max_probes=1, verdicts={"p0": Verdict(0)})
        waiting = {i.id for state in fleet.queues.values() for i in state.pending} - set(admitted(decision))
        assert set(fleet.reasons(decision)) == waiting
        for name in waiting:
            reason = fleet.reason(decision, name)
            assert reason is not None
            assert reason.text
            assert reason.unblock


def test_counts_are_those_of_the_items_whatever_came_twice_or_left_early() -> None:
    # kueue#1937: a counter kept by hand drifted from what was pending.
    fleet = Fleet(root("a", gpu=1))
    for _ in range(3):
        fleet.submit("a", "x", at=1, gpu=1)
        fleet.submit("a", "y", at=2, due=50, gpu=1)
    pending = fleet.queues["a"].pending
    pending.remove("nobody")
    pending.remove("y")
    pending.remove("y")
    assert (len(pending), [item.id for item in pending]) == (1, ["x"])
    fleet.cycle()
    assert len(pending) == 0


def test_one_work_is_charged_once_however_often_it_is_announced() -> None:
    # kueue#804, #12783: the same thing counted twice.
    fleet = Fleet(root("a", gpu=4))
    fleet.submit("a", "x", gpu=2)
    fleet.submit("a", "x", gpu=2)
    assert fleet.cycle() == ["x"]
    assert fleet.ledger.used("a", GPU) == 2


def test_a_job_larger_than_its_queues_entitlement_borrows_whole() -> None:
    # volcano#1096: queues deserve 1.5 GPUs each, jobs want 2, and nobody ever starts.
    fleet = Fleet(root("org", gpu=1), queue("a", "org", gpu=1), queue("b", "org", gpu=1))
    fleet.submit("a", "a1", at=1, gpu=2)
    fleet.submit("b", "b1", at=2, gpu=2)
    assert fleet.cycle() == ["a1"]
    fleet.finish("a1")
    assert fleet.cycle() == ["b1"]


def test_every_path_to_admission_holds_the_same_limits() -> None:
    # volcano#921, #1410, #4492: a cap checked at enqueue leaked at allocate.
    fleet = Fleet(root("org", gpu=9), queue("a", "org", gpu=owns(0, borrows=3)), queue("b", "org"))
    fleet.submit("a", "plain", at=1, gpu=2)
    fleet.submit("a", "asked", at=2, gpu=2, probe="p")
    fleet.submit("a", "group", at=3, members=3, gpu=2)
    fleet.submit("a", "second-choice", shape(charge(gpu=4), charge(gpu=2)), at=4)
    decision = fleet.decide(verdicts={"p": Verdict(5)})
    assert admitted(decision) == ["plain"]
    assert set(fleet.reasons(decision).values()) == {"WaitingForBorrowing"}


def test_what_grows_is_charged_for_the_difference_and_waits_its_turn() -> None:
    # volcano-global#37: growth after release was not gated at all.
    fleet = Fleet(root("a", gpu=4))
    fleet.ledger.charge("a", charge(gpu=2))
    fleet.submit("a", "growth", at=1, gpu=2)
    fleet.submit("a", "new", at=2, gpu=1)
    decision = fleet.decide()
    assert admitted(decision) == ["growth"]
    assert fleet.reasons(decision) == {"new": "WaitingForQuota"}


def test_what_cannot_be_placed_is_not_released() -> None:
    # karmada#3112, kueue#8602: released work that no cluster can take sits there and holds quota.
    fleet = Fleet(root("a", gpu=16))
    fleet.submit("a", "gang", probe="8x2", gpu=16)
    decision = fleet.decide(verdicts={"8x2": Verdict(0, frozenset({"m1", "m2"}), ("m1: 12 of 16 GPUs",))})
    assert admitted(decision) == probed(decision) == []
    assert fleet.ledger.totals.get(GPU, 0) == 0


def test_two_decisions_do_not_count_on_the_same_room() -> None:
    # karmada#1385, #6783: concurrent decisions over-commit between decision and pods.
    fleet = Fleet(root("a", gpu=99), root("b", gpu=99))
    fleet.submit("a", "a1", at=1, probe="p", gpu=8)
    fleet.submit("b", "b1", at=2, probe="q", gpu=8)
    verdicts = {"p": Verdict(1, frozenset({"m1", "m2"})), "q": Verdict(1, frozenset({"m2", "m3"}))}
    decision = fleet.decide(verdicts=verdicts)
    assert (admitted(decision), probed(decision)) == (["a1"], ["b1"])


class TestVolcanoGlobal:
    """Defects d to g of volcano-global v0.3.0, as far as a cycle can have them."""

    def test_work_of_any_priority_is_seen_and_counted(self) -> None:
        # d: a deleted PriorityClass took a binding out of the snapshot: never released, not counted as usage.
        fleet = Fleet(root("a", gpu=2))
        fleet.ledger.charge("a", charge(gpu=1))
        for priority in (-(10**9), 0, 10**9):
            fleet.submit("a", f"p{priority}", priority=priority, gpu=1)
        decision = fleet.decide()
        assert admitted(decision) == ["p1000000000"]
        assert len(fleet.reasons(decision)) == 2

    def test_work_of_an_unknown_queue_waits_in_sight_and_its_usage_counts(self) -> None:
        # e: an unknown queue was a log line; what ran in it was not counted.
        fleet = Fleet(root("a", gpu=4))
        fleet.ledger.charge("deleted", charge(gpu=3))
        fleet.submit("deleted", "lost", gpu=1)
        fleet.submit("a", "job", gpu=2)
        decision = fleet.decide(free={"gpu": 4 - fleet.ledger.totals[GPU]})
        assert fleet.reasons(decision) == {"lost": "QueueStopped", "job": "WaitingForCapacity"}

    def test_ties_are_broken_the_same_way_every_time(self) -> None:
        # f: order functions were kept in a Go map, so ties fell at random.
        names = [f"q{number}" for number in range(9)]
        runs = []
        for order in (names, names[::-1], names[4:] + names[:4]):
            fleet = Fleet(root("org", gpu=5), *(queue(name, "org") for name in order))
            for name in order:
                fleet.submit(name, f"{name}-job", gpu=1)
            runs.append(admitted(fleet.decide()))
        assert runs == [[f"q{number}-job" for number in range(5)]] * 3

    def test_what_is_tested_against_a_queue_is_charged_to_it(self) -> None:
        # g: an empty queue name was tested against the default queue and allocated to none.
        fleet = Fleet(root("default", gpu=1), root("a", gpu=1))
        fleet.submit("", "nameless", gpu=1)
        fleet.submit("a", "job", gpu=1)
        assert fleet.cycle() == ["job"]
        assert (fleet.ledger.used("a", GPU), fleet.ledger.used("default", GPU)) == (1, 0)
        assert fleet.reasons(fleet.decide()) == {"nameless": "QueueStopped"}
