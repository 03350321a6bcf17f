"""What one cycle admits, in which order, and why the rest waits."""

import pytest

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.reasons import Reason, never_fits, queue_stopped
from queue_dispatcher.cycle.snapshot import Verdict
from tests.dispatcher.cycle.builders import BEST_EFFORT, STRICT, Fleet, admitted, probed, shape
from tests.dispatcher.ledger.builders import charge, owns, queue, root


def test_what_fits_is_admitted_oldest_first() -> None:
    fleet = Fleet(root("a", gpu=3))
    for name, at in (("young", 3), ("old", 1), ("middle", 2), ("late", 4)):
        fleet.submit("a", name, at=at, gpu=1)
    decision = fleet.decide()
    assert admitted(decision) == ["old", "middle", "young"]
    assert fleet.reasons(decision) == {"late": "WaitingForQuota"}


def test_the_higher_priority_goes_first_whatever_its_shape_or_age() -> None:
    fleet = Fleet(root("a", gpu=4))
    fleet.submit("a", "low", at=1, priority=0, gpu=2)
    fleet.submit("a", "high", at=9, priority=10, gpu=2)
    fleet.submit("a", "higher", at=9, priority=11, gpu=1)
    assert fleet.cycle() == ["higher", "high"]


def test_equal_in_all_the_id_decides() -> None:
    for names in (["x", "y", "z"], ["z", "x", "y"]):
        fleet = Fleet(root("a", gpu=2))
        for name in names:
            fleet.submit("a", name, gpu=1)
        assert fleet.cycle() == ["x", "y"]


@pytest.mark.parametrize(
    ("strategy", "goes", "reasons"),
    [
        (BEST_EFFORT, ["small"], {"big": "WaitingForQuota", "other": "WaitingForQuota"}),
        (STRICT, [], {"big": "WaitingForQuota", "small": "BehindHead", "other": "BehindHead"}),
    ],
)
def test_a_blocked_head_holds_up_strict_queues_alone(
    strategy: QueueingStrategy, goes: list[str], reasons: dict[str, str]
) -> None:
    fleet = Fleet(root("a", gpu=4), strategy=strategy)
    fleet.ledger.charge("a", charge(gpu=3))
    fleet.submit("a", "big", at=1, gpu=3)
    fleet.submit("a", "small", at=2, gpu=1)
    fleet.submit("a", "other", at=3, gpu=2)
    decision = fleet.decide()
    assert admitted(decision) == goes
    assert fleet.reasons(decision) == reasons
    behind = fleet.reason(decision, "small")
    if strategy is STRICT:
        assert behind is not None
        assert behind.text == (
            "big is at the head of the StrictFIFO queue and waits: queue a is short of 2 gpu of flavor "
            "default"
        )


def test_another_tree_goes_on_while_one_is_blocked() -> None:
    fleet = Fleet(root("a", gpu=1), root("b", gpu=1), strategy=STRICT)
    fleet.ledger.charge("a", charge(gpu=1))
    fleet.submit("a", "stuck", at=1, gpu=1)
    fleet.submit("b", "goes", at=2, gpu=1)
    assert fleet.cycle() == ["goes"]


@pytest.mark.parametrize("strategy", [STRICT, BEST_EFFORT])
@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (
            {"gpu": 9},
            "it asks for 9 gpu of flavor default; queue a can never use more than 8, even if it borrows all "
            "that others lend",
        ),
        ({"cpu": 5000}, "it asks for 5 cpu of flavor default, which has 4 in all"),
    ],
)
def test_what_can_never_fit_blocks_nobody(
    strategy: QueueingStrategy, asked: dict[str, int], text: str
) -> None:
    fleet = Fleet(root("org", gpu=2, cpu=9000), queue("a", "org", gpu=6), strategy=strategy)
    fleet.ledger.charge("org", charge(cpu=1000))
    fleet.submit("a", "impossible", shape(charge(**asked)), at=1)
    fleet.submit("a", "possible", at=2, gpu=8)
    decision = fleet.decide(free={"cpu": 3000})
    assert admitted(decision) == ["possible"]
    reason = fleet.reason(decision, "impossible")
    assert reason == never_fits(text)


@pytest.mark.parametrize("strategy", [STRICT, BEST_EFFORT])
def test_a_shape_that_is_said_never_to_fit_blocks_nobody(strategy: QueueingStrategy) -> None:
    fleet = Fleet(root("a", gpu=1), strategy=strategy)
    never = never_fits("no flavor reaches its clusters")
    fleet.submit("a", "impossible", shape(never=never), at=1)
    fleet.submit("a", "charged", shape(charge(gpu=1), never=never), at=1)
    fleet.submit("a", "possible", at=2, gpu=1)
    decision = fleet.decide()
    assert admitted(decision) == ["possible"]
    assert fleet.reason(decision, "impossible") == fleet.reason(decision, "charged") == never


def test_a_queue_with_no_alternative_left_says_so() -> None:
    fleet = Fleet(root("a", gpu=1))
    fleet.submit("a", "x", shape())
    assert fleet.reasons(fleet.decide()) == {"x": "NeverFits"}


def test_a_stopped_queue_admits_nothing_and_its_siblings_go_on() -> None:
    fleet = Fleet(root("org", gpu=4), queue("a", "org"), queue("b", "org"))
    stopped = queue_stopped("a", "spec.stopPolicy of ClusterQueue a is Hold")
    fleet.configure("a", stopped=stopped)
    fleet.submit("a", "held", gpu=1)
    fleet.submit("a", "impossible", gpu=99)
    fleet.submit("b", "goes", gpu=1)
    decision = fleet.decide()
    assert admitted(decision) == ["goes"]
    assert fleet.reason(decision, "held") == fleet.reason(decision, "impossible") == stopped


def test_a_queue_outside_the_tree_waits_with_a_reason() -> None:
    fleet = Fleet(root("a", gpu=1))
    fleet.submit("", "nameless", gpu=1)
    fleet.submit("a", "goes", gpu=1)
    decision = fleet.decide()
    assert admitted(decision) == ["goes"]
    assert fleet.reasons(decision) == {"nameless": "QueueStopped"}


def test_what_is_not_due_is_left_alone_and_the_time_is_told() -> None:
    fleet = Fleet(root("a", gpu=4), strategy=STRICT)
    fleet.submit("a", "backing-off", at=1, due=5000, gpu=1)
    fleet.submit("a", "goes", at=2, gpu=1)
    decision = fleet.decide()
    assert (admitted(decision), decision.next_due_ms) == (["goes"], 5000)
    fleet.now_ms = 5000
    again = fleet.decide()
    assert (admitted(again), again.next_due_ms) == (["backing-off", "goes"], None)


@pytest.mark.parametrize(
    ("used", "free", "goes", "paid", "kind"),
    [
        ({}, {}, ["job"], charge(a100_gpu=4), ""),
        ({"a100_gpu": 2}, {}, ["job"], charge(h100_gpu=2), ""),
        ({}, {"a100_gpu": 3}, ["job"], charge(h100_gpu=2), ""),
        ({"a100_gpu": 2, "h100_gpu": 1}, {}, [], (), "WaitingForQuota"),
        ({"h100_gpu": 1}, {"a100_gpu": 3, "h100_gpu": 1}, [], (), "NeverFits"),
        ({"h100_gpu": 2}, {"a100_gpu": 9, "h100_gpu": 9}, ["job"], charge(a100_gpu=4), ""),
    ],
)
def test_the_first_alternative_that_fits_is_taken(
    used: dict[str, int], free: dict[str, int], goes: list[str], paid: object, kind: str
) -> None:
    fleet = Fleet(root("a", a100_gpu=4, h100_gpu=2))
    fleet.ledger.charge("a", charge(**used))
    fleet.submit("a", "job", shape(charge(a100_gpu=4), charge(h100_gpu=2)))
    decision = fleet.decide(free=free)
    assert fleet.carry_out(decision) == goes
    if goes:
        assert fleet.running["job"] == ("a", paid)
    elif kind == "WaitingForQuota":
        assert fleet.reasons(decision) == {"job": kind}


@pytest.mark.parametrize(
    ("used", "free", "asked", "text"),
    [
        pytest.param(
            {"a": {"gpu": 5}},
            {},
            {"gpu": 2},
            "queue a is short of 1 gpu of flavor default",
            id="quota",
        ),
        pytest.param(
            {"b": {"cpu": 9500}},
            {},
            {"cpu": 1000},
            "queue a would have to borrow 500m cpu of flavor default more than it can now; queue b borrows "
            "9500m",
            id="lenders",
        ),
        pytest.param(
            {"a": {"memory": 5 << 30}},
            {},
            {"memory": 3 << 30},
            "queue a would have to borrow 2Gi memory of flavor default more than it can now; it uses 5Gi "
            "itself",
            id="borrowing limit",
        ),
        pytest.param(
            {"b": {"gpu": 3}},
            {"gpu": 2},
            {"gpu": 4},
            "2 gpu more are needed than are free in flavor default",
            id="physical",
        ),
    ],
)
def test_reasons_say_what_is_missing_where(
    used: dict[str, dict[str, int]], free: dict[str, int], asked: dict[str, int], text: str
) -> None:
    fleet = Fleet(
        root("org", cpu=10_000, memory=8 << 30),
        queue("a", "org", gpu=owns(6, borrows=0), memory=owns(4 << 30, borrows=2 << 30)),
        queue("b", "org", gpu=3),
    )
    for name, amounts in used.items():
        fleet.ledger.charge(name, charge(**amounts))
    fleet.submit("a", "job", shape(charge(**asked)))
    reason = fleet.reason(fleet.decide(free=free), "job")
    assert reason is not None
    assert reason.text == text
    assert reason.unblock


def test_capacity_of_a_flavor_is_shared_by_all_trees_and_runs_out_in_a_cycle() -> None:
    fleet = Fleet(root("a", gpu=9), root("b", gpu=9))
    for number in range(4):
        fleet.submit("a", f"a{number}", at=number, gpu=1)
        fleet.submit("b", f"b{number}", at=number, gpu=1)
    decision = fleet.decide(free={"gpu": 3})
    assert admitted(decision) == ["a0", "b0", "a1"]
    assert set(fleet.reasons(decision).values()) == {"WaitingForCapacity"}


def test_more_charged_than_there_is_admits_nothing() -> None:
    fleet = Fleet(root("a", gpu=9))
    fleet.ledger.charge("a", charge(gpu=3))
    fleet.submit("a", "job", gpu=1)
    decision = fleet.decide(free={"gpu": -1})
    assert fleet.reasons(decision) == {"job": "WaitingForCapacity"}


def test_within_quota_goes_before_borrowing() -> None:
    fleet = Fleet(root("org", gpu=1), queue("a", "org", gpu=0), queue("b", "org", gpu=1))
    fleet.submit("a", "borrows", at=1, priority=100, gpu=1)
    fleet.submit("b", "owns", at=9, gpu=1)
    fleet.submit("b", "second", at=9, gpu=1)
    assert fleet.cycle(tokens=2) == ["owns", "borrows"]


def test_who_comes_to_borrow_by_what_others_take_in_the_cycle_goes_after_those_who_do_not() -> None:
    fleet = Fleet(
        root("org", gpu=9),
        queue("d", "org"),
        queue("x", "d", gpu=2),
        queue("y", "d", gpu=2),
        queue("borrower", "d"),
        queue("w", "d", cpu=1),
        queue("z", "d"),
    )
    fleet.ledger.charge("borrower", charge(gpu=2))
    fleet.submit("x", "x1", at=1, gpu=2)
    fleet.submit("y", "within-quota-but-its-department-borrows", at=2, gpu=2)
    fleet.submit("w", "w1", at=3, cpu=1)
    fleet.submit("z", "makes-quota-scarce", at=4, gpu=9)
    assert fleet.cycle() == ["x1", "w1", "within-quota-but-its-department-borrows"]


def test_the_queue_with_the_smaller_share_after_its_head_goes_first() -> None:
    fleet = Fleet(root("org", gpu=12), queue("a", "org"), queue("b", "org"))
    for number in range(4):
        fleet.submit("a", f"a{number}", at=number, gpu=3)
        fleet.submit("b", f"b{number}", at=number, gpu=1)
    assert fleet.cycle() == ["b0", "b1", "a0", "b2", "b3", "a1"]


def test_weights_scale_shares() -> None:
    fleet = Fleet(root("org", gpu=9), queue("a", "org", weight=2000), queue("b", "org"))
    for number in range(9):
        fleet.submit("a", f"a{number}", gpu=1)
        fleet.submit("b", f"b{number}", gpu=1)
    names = fleet.cycle()
    assert [sum(name[0] == q for name in names) for q in "ab"] == [6, 3]


def test_weight_zero_borrows_only_what_nobody_else_wants() -> None:
    fleet = Fleet(root("org", gpu=3), queue("a", "org", weight=0, gpu=1), queue("b", "org"))
    for number in range(3):
        fleet.submit("a", f"a{number}", at=number, priority=9, gpu=1)
        fleet.submit("b", f"b{number}", at=number, gpu=1)
    assert fleet.cycle() == ["a0", "b0", "b1", "b2"]


def test_small_items_do_not_starve_a_neighbour_with_large_ones() -> None:
    """Both in one department, beside another: the department's turn is not for its smallest item."""
    fleet = Fleet(
        root("org", gpu=24),
        queue("x", "org"),
        queue("y", "org"),
        queue("large", "x"),
        queue("small", "x"),
        queue("else", "y"),
    )
    for number in range(12):
        fleet.submit("large", f"large{number}", gpu=4)
        fleet.submit("small", f"small{number}", gpu=1)
        fleet.submit("else", f"else{number}", gpu=1)
    fleet.cycle()
    used = {name: fleet.ledger.used(name, charge(gpu=1)[0][0]) for name in ("large", "small", "else")}
    assert used == {"large": 4, "small": 8, "else": 12}


def test_a_queues_own_priority_goes_before_shares() -> None:
    fleet = Fleet(root("org", gpu=4), queue("a", "org"), queue("b", "org"))
    fleet.configure("b", priority=5)
    for number in range(3):
        fleet.submit("a", f"a{number}", priority=9, gpu=1)
        fleet.submit("b", f"b{number}", gpu=1)
    assert fleet.cycle() == ["b0", "b1", "b2", "a0"]


def test_waiting_raises_priority_up_to_the_cap() -> None:
    ageing = Ageing(step_ms=1000, cap=3)
    fleet = Fleet(root("a", gpu=1))
    fleet.configure("a", ageing=ageing)
    fleet.submit("a", "old", at=0, priority=0, gpu=1)
    fleet.submit("a", "fresh", at=2500, priority=2, gpu=1)
    fleet.submit("a", "urgent", at=99_000, priority=9, gpu=1)
    order = {}
    for now_ms in (2500, 3000, 99_000):
        fleet.now_ms = now_ms
        items = fleet.queues["a"].pending.ordered(now_ms, ageing)
        order[now_ms] = [item.name for item in items]
    assert order[2500] == ["urgent", "old", "fresh"]
    assert order[3000] == ["urgent", "old", "fresh"]
    assert order[99_000] == ["urgent", "fresh", "old"]
    fleet.submit("a", "same", at=0, priority=1, ageing=Ageing(step_ms=1, cap=100), gpu=1)
    assert fleet.decide().actions[0].item.name == "same"


def test_time_alone_can_change_who_is_first_behind_a_blocked_strict_head() -> None:
    fleet = Fleet(root("a", gpu=2), strategy=STRICT)
    fleet.configure("a", ageing=Ageing(step_ms=1000, cap=5))
    fleet.ledger.charge("a", charge(gpu=1))
    fleet.submit("a", "big", at=0, priority=1, gpu=2)
    fleet.submit("a", "small", at=-1, priority=0, gpu=1)
    decision = fleet.decide()
    assert (admitted(decision), decision.next_due_ms) == ([], 999)
    fleet.now_ms = 999
    assert fleet.cycle() == ["small"]


def test_no_more_is_released_than_the_window_lets() -> None:
    fleet = Fleet(root("a", gpu=9), root("b", gpu=9))
    for number in range(3):
        fleet.submit("a", f"a{number}", at=number, gpu=1)
        fleet.submit("b", f"b{number}", at=10 + number, gpu=1)
    fleet.submit("b", "big", at=20, gpu=9)
    fleet.submit("b", "impossible", at=20, gpu=10)
    decision = fleet.decide(tokens=3, in_flight=7)
    assert admitted(decision) == ["a0", "b0", "a1"]
    assert fleet.reasons(decision) == {
        "a2": "ReleaseWindowFull",
        "b1": "ReleaseWindowFull",
        "b2": "ReleaseWindowFull",
        "big": "WaitingForQuota",
        "impossible": "NeverFits",
    }
    assert decision.window_full == {"a2", "b1"}
    reason = fleet.reason(decision, "a2")
    assert reason is not None
    assert "still placing 10 workloads" in reason.text
    assert fleet.decide(tokens=0).actions == ()


def test_a_group_goes_whole_even_where_it_overdraws_the_window() -> None:
    fleet = Fleet(root("a", gpu=9))
    fleet.submit("a", "group", at=1, members=4, gpu=8)
    fleet.submit("a", "next", at=2, gpu=1)
    decision = fleet.decide(tokens=2)
    assert admitted(decision) == ["group"]
    assert fleet.reasons(decision) == {"next": "ReleaseWindowFull"}


class TestEstimates:
    """Items that the estimators are asked about."""

    def test_an_open_question_is_raised_once_and_nothing_else_takes_its_room(self) -> None:
        fleet = Fleet(root("a", gpu=4))
        fleet.submit("a", "gang", at=1, probe="8x", gpu=4)
        fleet.submit("a", "small", at=2, gpu=1)
        decision = fleet.decide()
        assert (admitted(decision), probed(decision)) == ([], ["gang"])
        assert fleet.reasons(decision) == {"gang": "WaitingForEstimate", "small": "WaitingForQuota"}

    def test_others_go_where_there_is_room_for_both(self) -> None:
        fleet = Fleet(root("a", gpu=5))
        fleet.submit("a", "gang", at=1, probe="8x", gpu=4)
        fleet.submit("a", "small", at=2, gpu=1)
        decision = fleet.decide()
        assert (admitted(decision), probed(decision)) == (["small"], ["gang"])

    @pytest.mark.parametrize(("strategy", "goes"), [(STRICT, []), (BEST_EFFORT, ["small"])])
    def test_no_room_is_a_refusal_in_the_estimators_words(
        self, strategy: QueueingStrategy, goes: list[str]
    ) -> None:
        fleet = Fleet(root("a", gpu=5), strategy=strategy)
        fleet.submit("a", "gang", at=1, probe="8x", gpu=4)
        fleet.submit("a", "small", at=2, gpu=1)
        decision = fleet.decide(
            verdicts={"8x": Verdict(0, reasons=("member1: 3 of 4 GPUs", "member2: down"))}
        )
        assert (admitted(decision), probed(decision)) == (goes, [])
        reason = fleet.reason(decision, "gang")
        assert reason is not None
        assert reason.text == "member1: 3 of 4 GPUs; member2: down"

    def test_a_count_is_used_up_and_then_asked_for_again(self) -> None:
        fleet = Fleet(root("a", gpu=9))
        for number in range(4):
            fleet.submit("a", f"gang{number}", at=number, probe="2x", gpu=2)
        decision = fleet.decide(verdicts={"2x": Verdict(2, frozenset({"member1"}))})
        assert (admitted(decision), probed(decision)) == (["gang0", "gang1"], ["gang2"])

    @pytest.mark.parametrize(("theirs", "goes", "asked"), [("member1", [], ["b"]), ("member2", ["b"], [])])
    def test_an_admission_unsettles_estimates_of_the_same_clusters(
        self, theirs: str, goes: list[str], asked: list[str]
    ) -> None:
        fleet = Fleet(root("q", gpu=9), root("r", gpu=9))
        fleet.submit("q", "a", at=1, probe="2x", gpu=2)
        fleet.submit("r", "b", at=2, probe="1x", gpu=1)
        verdicts = {"2x": Verdict(1, frozenset({"member1"})), "1x": Verdict(1, frozenset({theirs}))}
        decision = fleet.decide(verdicts=verdicts)
        assert (admitted(decision), probed(decision)) == (["a", *goes], asked)

    def test_where_others_went_is_unsettled_and_where_ones_like_went_is_not(self) -> None:
        fleet = Fleet(*(root(name, gpu=9) for name in "abc"))
        for at, (name, probe) in enumerate((("a", "p"), ("b", "q"), ("a", "p"), ("b", "q"), ("c", "r"))):
            fleet.submit(name, f"{name}{at}", at=at, probe=probe, gpu=1)
        verdicts = {"p": Verdict(9, frozenset({"m1", "m2"})), "q": Verdict(9, frozenset({"m3"}))}
        verdicts["r"] = Verdict(1, frozenset({"m2", "m4"}))
        decision = fleet.decide(verdicts=verdicts)
        assert (admitted(decision), probed(decision)) == (["a0", "b1", "a2", "b3"], ["c4"])

    def test_no_more_questions_than_allowed_and_equal_ones_once(self) -> None:
        fleet = Fleet(*(root(f"q{number}", gpu=9) for number in range(6)))
        for number in range(6):
            fleet.submit(f"q{number}", f"job{number}", at=number, probe=f"p{number // 2}", gpu=2)
        decision = fleet.decide(max_probes=2)
        assert probed(decision) == ["job0", "job2"]
        assert set(fleet.reasons(decision).values()) == {"WaitingForEstimate"}
        assert len(fleet.reasons(decision)) == 6

    def test_who_is_asked_about_takes_no_token(self) -> None:
        fleet = Fleet(root("a", gpu=9))
        fleet.submit("a", "gang", at=1, probe="8x", gpu=4)
        fleet.submit("a", "small", at=2, gpu=1)
        fleet.submit("a", "next", at=3, gpu=1)
        decision = fleet.decide(tokens=1)
        assert (admitted(decision), probed(decision)) == (["small"], ["gang"])
        assert fleet.reasons(decision) == {"gang": "WaitingForEstimate", "next": "ReleaseWindowFull"}

    @pytest.mark.parametrize(("lent", "goes"), [(3, ["beside"]), (0, [])])
    def test_where_quota_suffices_other_queues_go_on_and_where_not_who_has_won_it_keeps_it(
        self, lent: int, goes: list[str]
    ) -> None:
        fleet = Fleet(root("org", gpu=lent), queue("a", "org", gpu=4), queue("b", "org"), root("c", gpu=1))
        fleet.submit("a", "gang", at=1, probe="8x", gpu=4)
        fleet.submit("b", "beside", at=2, priority=9, gpu=3)
        fleet.submit("c", "elsewhere", at=3, gpu=1)
        decision = fleet.decide()
        assert sorted(admitted(decision)) == [*goes, "elsewhere"]
        assert probed(decision) == ["gang"]
        assert fleet.decide(verdicts={"8x": Verdict(0)}).actions[0].item.name == "beside"
        assert "gang" in admitted(fleet.decide(verdicts={"8x": Verdict(1)}))

    def test_ten_that_are_asked_about_keep_nobody_waiting_whom_they_leave_room(self) -> None:
        fleet = Fleet(root("a", gpu=305))
        for number in range(10):
            fleet.submit("a", f"open{number}", at=number, gpu=1 + number, probe=f"p{number}")
        for number in range(6):
            fleet.submit("a", f"known{number}", at=100 + number, gpu=50)
        decision = fleet.decide(tokens=10)
        assert admitted(decision) == [f"known{number}" for number in range(5)]
        assert len(probed(decision)) == 10
        assert fleet.reasons(decision)["known5"] == "WaitingForQuota"

    def test_nobody_passes_the_head_of_a_strict_queue_while_it_is_asked_about(self) -> None:
        fleet = Fleet(root("a", gpu=9), root("b", gpu=9), strategy=STRICT)
        fleet.submit("a", "gang", at=1, probe="8x", gpu=4)
        fleet.submit("a", "small", at=2, gpu=1)
        fleet.submit("b", "other", at=3, gpu=1)
        decision = fleet.decide(tokens=1)
        assert (admitted(decision), probed(decision)) == (["other"], ["gang"])
        assert fleet.reasons(decision) == {"gang": "WaitingForEstimate", "small": "BehindHead"}

    def test_trees_share_the_questions_of_a_cycle(self) -> None:
        fleet = Fleet(root("a", gpu=99), root("b", gpu=99), root("c", gpu=99))
        for number in range(20):
            fleet.submit("a", f"a{number}", at=number, priority=9, probe=f"p{number}", gpu=1)
        fleet.submit("b", "b", at=50, probe="q", gpu=1)
        fleet.submit("c", "c", at=60, gpu=1)
        decision = fleet.decide(max_probes=4)
        assert (admitted(decision), probed(decision)) == (["c"], ["a0", "b", "a1", "a2"])
        assert set(fleet.reasons(decision).values()) == {"WaitingForEstimate"}

    @pytest.mark.parametrize("strategy", [STRICT, BEST_EFFORT])
    def test_what_no_cluster_could_take_were_it_empty_blocks_nobody(self, strategy: QueueingStrategy) -> None:
        fleet = Fleet(root("a", gpu=100), strategy=strategy)
        fleet.submit("a", "impossible", at=1, probe="bad", gpu=1)
        fleet.submit("a", "fine", at=2, gpu=2)
        decision = fleet.decide(verdicts={"bad": Verdict(0, reasons=("no node has label x",), never=True)})
        assert admitted(decision) == ["fine"]
        ends = "the workload asks for less or for other nodes, or such nodes are added"
        assert fleet.reason(decision, "impossible") == never_fits("no node has label x", ends)

    def test_nothing_is_asked_about_what_has_no_quota_or_no_token(self) -> None:
        fleet = Fleet(root("a", gpu=1))
        fleet.submit("a", "gang", probe="8x", gpu=1)
        assert probed(fleet.decide(tokens=0)) == []
        fleet.ledger.charge("a", charge(gpu=1))
        assert probed(fleet.decide()) == []


def test_reasons_are_the_same_whenever_they_are_read() -> None:
    fleet = Fleet(root("a", gpu=4))
    fleet.submit("a", "goes", at=1, gpu=3)
    fleet.submit("a", "waits", at=2, gpu=2)
    verdicts = {"x": Verdict(0, reasons=("full",))}
    fleet.submit("a", "unplaceable", probe="x", gpu=1)
    read_at_once, read_late = (fleet.decide(verdicts=verdicts) for _ in range(2))
    before: dict[str, Reason | None] = {n: fleet.reason(read_at_once, n) for n in ("waits", "unplaceable")}
    waiting = dict(read_late.waits.items())
    assert waiting == dict(read_at_once.waits.items())
    verdicts.clear()
    fleet.ledger.charge("a", charge(gpu=4))
    third = fleet.reason(read_late, "waits")
    assert third == before["waits"]
    assert before["waits"] is not None
    assert before["waits"].text == "queue a is short of 1 gpu of flavor default"
    assert fleet.reason(read_late, "unplaceable") == before["unplaceable"]
