"""What a queue's checks have to say before one of its workloads is admitted."""

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, SERVICE_CLASSES
from queue_dispatcher.turn.turn import turn
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, service_class
from tests.dispatcher.turn.builders import Plane

TIMEOUT_S = 600
BUDGET: Obj = {"name": "budget", "timeout": f"{TIMEOUT_S}s"}
DATA: Obj = {"name": "data"}


def plane(*checks: Obj, **promised: object) -> Plane:
    """Queue main asks for these checks."""
    made = Plane()
    made.feed(SERVICE_CLASSES, service_class("standard", 0, globalDefault=True, **promised))
    asks_for(made, *checks)
    return made


def asks_for(made: Plane, *checks: Obj, strategy: str = "BestEffortFIFO") -> None:
    stated = cluster_queue("main", {"m1": 100}, strategy=strategy, admissionChecks=list(checks))
    made.feed(CLUSTER_QUEUES, stated)


def says(made: Plane, answer: str | None, check: str = "budget", name: str = "x") -> None:
    """Whoever runs the check writes it, and a turn is taken; None takes it away."""
    says_only(made, answer, check, name)
    made.turn()


def says_only(made: Plane, answer: str | None, check: str = "budget", name: str = "x") -> None:
    """Without a turn."""

    def change(obj: Obj) -> None:
        said = obj["metadata"].setdefault("annotations", {})
        said.pop(f"check.fairway.dev/{check}", None)
        if answer is not None:
            said[f"check.fairway.dev/{check}"] = answer

    made.edit(name, change)


def waits(made: Plane, name: str = "x") -> str:
    """The kind of its reason; empty for what was released."""
    reason = made.reason(name)
    return reason.kind if reason is not None else ""


def text(made: Plane, name: str = "x") -> str:
    reason = made.reason(name)
    assert reason is not None
    return reason.text


def answered(made: Plane, check: str = "budget") -> bool:
    return f"check.fairway.dev/{check}" in (made.bindings["x"]["metadata"].get("annotations") or {})


@pytest.mark.parametrize(
    ("budget", "data", "kind", "told"),
    [
        (None, None, "WaitingForCheck", "check budget has not said that it may start, nor have 1 more"),
        ("Ready", None, "WaitingForCheck", "check data has not said that it may start"),
        (None, "Ready", "WaitingForCheck", "check budget has not said that it may start"),
        ("Ready", "Ready", "", ""),
        ("Ready; 40 of 100 h are left", " Ready ", "", ""),
        ("Rejected", "Ready", "CheckRejected", "check budget says that it may not start"),
        (
            "Rejected; none\n left",
            None,
            "CheckRejected",
            "check budget says that it may not start: none left",
        ),
        ("Retry", "Rejected", "CheckRejected", "check data says that it may not start"),
        ("ready", "Ready", "WaitingForCheck", "annotation check.fairway.dev/budget is 'ready': expected"),
        ("", "Ready", "WaitingForCheck", "annotation check.fairway.dev/budget is '': expected"),
        ("; Ready", "Ready", "WaitingForCheck", "is '; Ready': expected Ready, Retry, Rejected, and"),
        ('{"state": "Ready"}', "Ready", "WaitingForCheck", "expected Ready, Retry, Rejected, and a message"),
        ("Ready" * 10_000, "Ready", "WaitingForCheck", "expected Ready, Retry, Rejected, and a message"),
    ],
)
def test_what_the_answers_mean(budget: str | None, data: str | None, kind: str, told: str) -> None:
    made = plane(BUDGET, DATA)
    made.submit("x")
    says(made, budget)
    says(made, data, "data")
    assert (waits(made), made.is_held("x"), made.charged()) == (kind, bool(kind), 0 if kind else 1)
    if kind:
        assert told in text(made)
        assert len(text(made)) < 400


def test_whoever_lacks_a_word_holds_up_nobody_and_takes_its_place_with_it() -> None:
    made = plane(BUDGET)
    asks_for(made, BUDGET, strategy="StrictFIFO")
    made.submit("x", replicas=60)
    made.turn()
    made.passes(5)
    made.submit("late", replicas=60)
    says(made, "Ready", name="late")
    assert (made.released(), waits(made)) == (["late"], "WaitingForCheck")
    made.submit("small", replicas=30)
    says(made, "Ready")
    says(made, "Ready", name="small")
    # It came first, and so it is the head now.
    assert (made.released(), waits(made), waits(made, "small")) == (["late"], "WaitingForQuota", "BehindHead")


def test_a_group_waits_for_the_word_about_each() -> None:
    made = plane(BUDGET)
    said = {"fairway.dev/group": "g", "fairway.dev/group-size": "2"}
    made.submit("x", said=said)
    made.submit("y", said=said)
    says(made, "Ready")
    assert (waits(made), waits(made, "y")) == ("WaitingForGangMembers", "WaitingForCheck")
    says(made, "Ready", name="y")
    assert made.released() == ["x", "y"]


def test_rejected_is_not_for_ever() -> None:
    made = plane(BUDGET)
    made.submit("x")
    says(made, "Rejected; no budget left")
    made.passes(10 * TIMEOUT_S, step_s=60)
    made.restart()
    made.turn()
    assert (waits(made), made.writes) == ("CheckRejected", [])
    says(made, "Ready")
    assert made.released() == ["x"]


@pytest.mark.parametrize("word", ["Rejected", "Retry", None])
def test_a_word_that_is_taken_back_before_the_release_is_written_counts(word: str | None) -> None:
    made = plane(BUDGET)
    made.submit("x")
    made.edit("x", lambda obj: obj["metadata"]["annotations"].update({"check.fairway.dev/budget": "Ready"}))
    (write,) = turn(made.state, (), made.now).writes
    assert (write.purpose, made.charged()) == ("admit", 1)
    says_only(made, word)
    made.write(write)
    made.turn()
    assert (made.is_held("x"), made.record("x"), made.charged()) == (True, None, 0)


def test_what_was_admitted_is_asked_about_no_more() -> None:
    made = plane(BUDGET)
    made.submit("x")
    says(made, "Ready")
    made.place("x", m1=1)
    made.turn()
    for word in ("Rejected", "Retry", None):
        says(made, word)
        made.passes(2 * TIMEOUT_S, step_s=60)
        assert (made.released(), made.charged()) == (["x"], 1)


def test_retry_is_a_failed_try_that_is_asked_again_after_a_while() -> None:
    made = plane(BUDGET, requeue={"backoffBase": "60s", "backoffMax": "10m"})
    made.submit("x")
    created = made.bindings["x"]["metadata"]["creationTimestamp"]
    says(made, "Retry; the data are on their way")
    assert [write.purpose for write in made.writes] == ["retry_check"]
    requeue = made.requeue("x")
    assert requeue is not None
    assert (requeue["count"], requeue["enqueuedAt"], answered(made)) == (1, created, False)
    assert waits(made) == "BackingOff"
    assert "check budget said Retry: the data are on their way" in text(made)
    # What it says meanwhile counts when the pause is over, and so does that it says nothing.
    made.passes(59)
    assert waits(made) == "BackingOff"
    made.passes(1)
    assert waits(made) == "WaitingForCheck"
    made.passes(30)
    says(made, "Ready")
    assert made.released() == ["x"]


@pytest.mark.parametrize("comes_s", [1, 59])
def test_ready_during_the_pause_counts_when_it_is_over(comes_s: int) -> None:
    made = plane(BUDGET, requeue={"backoffBase": "60s"})
    made.submit("x")
    says(made, "Retry")
    made.passes(comes_s)
    says(made, "Ready")
    assert waits(made) == "BackingOff"
    made.passes(60 - comes_s)
    assert made.released() == ["x"]


def test_who_says_nothing_but_retry_costs_a_write_a_pause_and_no_more_than_the_class_allows() -> None:
    made = plane(BUDGET, requeue={"backoffBase": "10s", "backoffMax": "20s", "backoffLimit": 2})
    made.submit("x")
    for _ in range(600):
        says(made, "Retry")
        made.passes(1)
    assert [write.purpose for write in made.writes] == ["retry_check"] * 3
    assert waits(made) == "NeverFits"
    assert "more often than its ServiceClass allows (check budget said Retry)" in text(made)


def test_who_never_answers_is_told_and_may_still_answer() -> None:
    made = plane(BUDGET)
    made.submit("x")
    made.turn()
    made.passes(TIMEOUT_S - 1)
    assert waits(made) == "WaitingForCheck"
    made.passes(1)
    assert (waits(made), text(made)) == (
        "CheckTimedOut",
        "check budget has not been answered for more than 600 s",
    )
    made.passes(10 * TIMEOUT_S, step_s=60)
    assert (waits(made), made.writes) == ("CheckTimedOut", [])
    says(made, "Ready")
    assert made.released() == ["x"]


def test_a_clock_that_jumps_makes_nothing_overdue() -> None:
    made = plane(BUDGET)
    made.submit("x")
    made.turn()
    for skew_ms in (86_400_000, -86_400_000, 0):
        made.skew_ms = skew_ms
        made.passes(60)
        assert waits(made) == "WaitingForCheck"
    made.passes(TIMEOUT_S - 180)
    assert waits(made) == "CheckTimedOut"


def test_a_check_that_is_renamed_while_it_waits_is_asked_from_then_on() -> None:
    made = plane(BUDGET)
    made.submit("x")
    made.turn()
    made.passes(TIMEOUT_S - 1)
    asks_for(made, {"name": "money", "timeout": f"{TIMEOUT_S}s"})
    made.turn()
    made.passes(TIMEOUT_S - 1)
    assert waits(made) == "WaitingForCheck"
    assert "check money" in text(made)
    # Nobody asks for the old one any more.
    says(made, "Rejected")
    assert waits(made) == "WaitingForCheck"
    made.passes(1)
    assert waits(made) == "CheckTimedOut"
    asks_for(made)
    made.turn()
    assert made.released() == ["x"]


def test_a_name_that_nobody_can_answer_lets_nothing_pass() -> None:
    made = plane({"name": "no such/name"})
    made.submit("x")
    made.passes(60)
    assert waits(made) == "WaitingForCheck"
    assert made.cache.queues.cluster_queues.values["main"].problems


def test_what_waits_for_a_word_is_counted_in_its_queue() -> None:
    made = plane(BUDGET)
    made.submit("x")
    made.turn()
    assert [(one.queue, one.local_queue, one.reason) for one, _ in made.cache.tally] == [
        ("main", "main", "WaitingForCheck")
    ]
