"""Room that is held for what waits: against whom it counts, and which answers do not hold any more."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import probe_through
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Estimates, Probing, Subject
from queue_dispatcher.estimates.questions import Question
from queue_dispatcher.workloads.demand import Placed
from tests.dispatcher.estimates.test_asking import NOBODY
from tests.dispatcher.estimates.test_questions import BOTH, DIVIDED, bound
from tests.dispatcher.estimates.test_verdicts import pods

PODS = pb.PodSet(name="pod", count=1, template_json=b"{}")
QUESTION = Question(("m1", "m2"), pb.Gang(namespace="team", pod_sets=[PODS], copies=4), 4, adds_up=True)
AT_M1 = Earliest("m1", 5_000, 2, (("pod", "n1", 3), ("pod", "n2", 1)))
AT_M2 = Earliest("m2", 4_000, 2, (("pod", "k1", 4),))
M1, M2 = frozenset({"m1"}), frozenset({"m2"})


def subject(uid: str = "u") -> Subject:
    return Subject(replace(bound(DIVIDED), uid=uid), BOTH, 1)


def estimates(*probes: str) -> Estimates:
    """Of which these questions are known, ``q`` among them."""
    made = Estimates(60)
    for probe in ("q", *probes):
        answer(made, probe, Verdict(0))
        made.verdicts.drop(probe)
    return made


def answer(made: Estimates, probe: str, verdict: Verdict, asked: Probing | None = None) -> None:
    probing = asked or made.ask(probe, [subject()])
    assert probing is not None
    rooms = [ClusterRoom(name, verdict.fits if name in verdict.clusters else 0) for name in sorted(BOTH)]
    made.answered(Answered(probing, (QUESTION,), (verdict,), rooms=tuple(rooms)), 0)


def names(gangs: Iterable[pb.Gang]) -> list[tuple[str, bool]]:
    return [(gang.name, gang.waits) for gang in gangs]


def test_what_waits_is_told_behind_what_is_on_its_way() -> None:
    made = estimates()
    assert made.reserve("u", "big", "q", AT_M1)
    made.released("q", {"v": "small"}, 10_000, {"v": [Placed("m1", 1)]}, {"m1": 1})
    told = made.assumed(1)
    assert {cluster: names(gangs) for cluster, gangs in told.items()} == {
        "m1": [("small", False), ("big", True)]
    }
    (_, waiting) = told["m1"]
    # All of it, in one cluster.
    assert (waiting.copies, list(waiting.pod_sets)) == (4, [PODS])
    assert [(one.pod_set, one.node, one.pods) for one in waiting.where] == list(AT_M1.where)
    assert list(QUESTION.gang.where) == []


@pytest.mark.parametrize(
    ("through", "asks", "counted"),
    [
        ((), "x", ["big", "other"]),
        (("u",), "x", ["other"]),
        (("u", "v"), "x", []),
        # Its own counts as well unless that is said: the plain answer is as good for others that are alike.
        ((), "u", ["big", "other"]),
        (("v",), "u", ["big"]),
        (("gone",), "x", ["big", "other"]),
    ],
)
def test_a_question_counts_what_it_may_not_use(
    through: tuple[str, ...], asks: str, counted: list[str]
) -> None:
    made = estimates()
    assert made.reserve("u", "big", "q", AT_M1)
    assert made.reserve("v", "other", "q", AT_M1)
    probing = made.ask(probe_through("q", through), [subject(asks)], frozenset(through))
    assert probing is not None
    told = made.assumed(1, probing.uses)
    assert [gang.name for gang in told.get("m1", ())] == counted
    says = {1: ("room is reserved there for 1 that waits longer",), 0: ()}
    says[2] = ("room is reserved there for 2 that wait longer",)
    assert made.counted(M1, 1, probing.uses) == says[len(counted)]
    assert made.counted(M2, 1, probing.uses) == ()


def test_one_that_is_moved_keeps_its_place_and_one_that_is_dropped_is_not_told() -> None:
    made = estimates()
    assert made.reserve("u", "big", "q", AT_M1)
    assert made.reserve("v", "other", "q", AT_M2)
    assert made.reserve("u", "big", "q", AT_M2)
    assert {cluster: names(of) for cluster, of in made.assumed(1).items()} == {
        "m2": [("big", True), ("other", True)]
    }
    assert (made.reserved("u"), made.reserved("w")) == (AT_M2, None)
    made.unreserve("u")
    made.unreserve("u")
    assert [name for name, _ in names(made.assumed(1)["m2"])] == ["other"]


FITS_1, FITS_2, FULL = Verdict(9, M1, pods=pods(1)), Verdict(9, M2, pods=pods(1)), Verdict(0, pods=pods(1))


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        # By question: is its answer still there?
        pytest.param(None, AT_M1, {"fits 1": False, "fits 2": True, "full": True}, id="made"),
        pytest.param(AT_M1, None, {"fits 1": True, "fits 2": True, "full": False}, id="dropped"),
        pytest.param(AT_M1, AT_M2, {"fits 1": True, "fits 2": False, "full": False}, id="moved"),
        pytest.param(
            AT_M1,
            replace(AT_M1, where=(("pod", "n9", 4),)),
            {"fits 1": False, "fits 2": True, "full": False},
            id="moved within a cluster",
        ),
        pytest.param(AT_M1, AT_M1, {"fits 1": True, "fits 2": True, "full": True}, id="the same"),
        pytest.param(
            AT_M1,
            replace(AT_M1, at_ms=9_000, pods=1),
            {"fits 1": True, "fits 2": True, "full": True},
            id="free at another time",
        ),
    ],
)
@pytest.mark.parametrize("is_under_way", [False, True])
def test_answers_that_counted_other_room_do_not_hold(
    before: Earliest | None, now: Earliest | None, kept: dict[str, bool], is_under_way: bool
) -> None:
    made = estimates()
    if before is not None:
        assert made.reserve("u", "big", "q", before)
    said = {"fits 1": FITS_1, "fits 2": FITS_2, "full": FULL}
    asked = {probe: made.ask(probe, [subject("x")]) for probe in said}
    since = made.releases

    def hear() -> None:
        for probe, verdict in said.items():
            probing = asked[probe]
            assert probing is not None
            rooms = tuple(ClusterRoom(name, 9 * (name in verdict.clusters)) for name in sorted(BOTH))
            made.answered(Answered(probing, (QUESTION,), (verdict,), releases=since, rooms=rooms), 0)

    if not is_under_way:
        hear()
    if now is None:
        made.unreserve("u")
    else:
        assert made.reserve("u", "big", "q", now)
    if is_under_way:
        hear()
    assert {probe: made.verdicts.get(probe, 1) is not None for probe in said} == kept
    # Where room is held no longer, those are asked first that have refused.
    gone = before is not None and not kept["full"]
    many = [ClusterRoom(f"c{number}", 0) for number in range(40)]
    made.answers.put("full", pods(1), many, NOBODY, 0)
    asked_again = made.answers.plan("full", ["m1", *(room.cluster for room in many)], 1).ask
    assert asked_again == (("m1",) if gone else ())


def test_what_is_released_holds_no_room_besides() -> None:
    made = estimates()
    assert made.reserve("u", "big", "q", AT_M1)
    answer(made, "full", FULL)
    made.released("q", {"u": "big"}, 10_000, {"u": [Placed("m2", 4)]}, {})
    assert made.reserved("u") is None
    assert {cluster: names(of) for cluster, of in made.assumed(1).items()} == {"m2": [("big", False)]}
    # It went elsewhere.
    assert made.verdicts.get("full", 1) is None


def test_of_a_question_that_is_not_known_nothing_is_held() -> None:
    made = estimates()
    assert not made.reserve("u", "big", "unknown", AT_M1)
    assert (made.reserved("u"), made.assumed(1), made.releases) == (None, {}, 0)
    # One that holds already goes on, whatever is remembered of questions.
    assert made.reserve("u", "big", probe_through("q", {"v"}), AT_M1)
    made._questions.clear()
    assert made.reserve("u", "big", "q", AT_M2)
    assert made.reserved("u") == AT_M2
    assert not made.reserve("u", "big", "unknown", AT_M1)
    assert made.reserved("u") == AT_M2


def test_only_a_leader_holds_room() -> None:
    made = estimates()
    assert made.reserve("u", "big", "q", AT_M1)
    made.abandon()
    assert (made.reserved("u"), made.assumed(1), [*made.reservations()]) == (None, {}, [])


def test_the_estimators_are_told_soon() -> None:
    made = estimates()
    before = made.releases
    assert made.reserve("u", "big", "q", AT_M1)
    assert made.releases == before + 1
    assert made.reserve("u", "big", "q", AT_M1)
    assert made.releases == before + 1
