"""For how long an answer holds, and how much of it is left."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.cycle.displacement import UNKNOWN, Pods, displaced
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.cycle.witness import LEFT_ALONE, Witness
from queue_dispatcher.estimates.verdicts import (
    FIRST_REFUSAL_MS,
    FITS_MS,
    FORGOTTEN_MS,
    MAX_REFUSAL_MS,
    Verdicts,
    is_room,
)
from queue_dispatcher.workloads.fleet import ANYTHING

M1, M2 = frozenset({"m1"}), frozenset({"m2"})
GPU = "nvidia.com/gpu"


def pods(gpus: int, cpu: int = 0, count: int = 1) -> Pods:
    return (((("cpu", cpu), (GPU, gpus)), count),)


def test_an_answer_holds_until_its_time_is_up() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(2, M1), M1, 0)
    assert verdicts.get("q", FITS_MS - 1) == Verdict(2, M1)
    assert verdicts.current(FITS_MS) == {}
    assert verdicts.next_due_ms() is None


def test_each_admission_takes_one_and_the_last_takes_the_answer() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(2, M1), M1, 0)
    verdicts.admitted("q")
    assert verdicts.get("q", 1) == Verdict(1, M1)
    verdicts.admitted("q")
    assert verdicts.get("q", 1) is None
    verdicts.admitted("q")


def on(*nodes: str) -> Witness:
    return Witness((("pod", tuple((node, 1) for node in nodes)),))


FIRST, SECOND, THIRD = on("n1"), on("n1", "n2"), on("n3")
GUIDED = Verdict(
    9,
    M1 | M2,
    pods=pods(1),
    rooms=(("m1", 5), ("m2", 4)),
    witnesses=(("m1", (FIRST, SECOND, THIRD)), ("m2", (THIRD,))),
)


def left(verdicts: Verdicts, cluster: str = "m1") -> list[Witness] | None:
    """Where the next ones would go there; None if it has to be asked."""
    verdict = verdicts.get("q", 1)
    there = None if verdict is None else dict(verdict.witnesses).get(cluster)
    return None if there is None else list(there)


def guided() -> Verdicts:
    verdicts = Verdicts()
    verdicts.put("q", GUIDED, M1 | M2, 0)
    return verdicts


def test_each_that_is_released_goes_where_the_next_witness_says() -> None:
    verdicts = guided()
    for expected in ([SECOND, THIRD], [THIRD], None):
        verdicts.admitted("q", {"m1": 1}, {"m1": {"n9"}})
        assert left(verdicts) == expected
        assert expected is None or left(verdicts, "m2") == [THIRD]


@pytest.mark.parametrize(
    ("cluster", "nodes", "expected"),
    [
        ("m1", ("n3",), [FIRST, SECOND]),
        ("m1", ("n2", "n9"), [FIRST, THIRD]),
        ("m1", ("n1",), [THIRD]),
        # Rather the same than none.
        ("m1", ("n1", "n3"), [FIRST]),
        # Nodes of another cluster may have the same names.
        ("m2", ("n1",), [FIRST, SECOND, THIRD]),
        # Nobody knows where its pods go.
        ("m1", (), [FIRST, SECOND, THIRD]),
    ],
)
def test_what_others_were_told_is_told_to_nobody_else(
    cluster: str, nodes: tuple[str, ...], expected: list[Witness] | None
) -> None:
    verdicts = guided()
    verdicts.room_taken({cluster}, pods(1), {cluster: nodes} if nodes else {})
    assert left(verdicts) == expected
    late = Verdicts()
    late.room_taken({cluster}, pods(1), {cluster: nodes} if nodes else {})
    late.put("q", GUIDED, M1 | M2, 0, releases=0)
    assert left(late) == expected


def test_what_need_not_be_told_stays_so_whoever_comes_beside_it() -> None:
    verdicts = Verdicts()
    alone = (LEFT_ALONE, LEFT_ALONE)
    verdicts.put("q", replace(GUIDED, witnesses=(("m1", alone), ("m2", (THIRD,)))), M1 | M2, 0)
    verdicts.room_taken(M1, pods(1), {"m1": {"n1"}})
    assert left(verdicts) == list(alone)


def test_an_answer_is_of_use_however_much_else_was_released_while_it_was_under_way() -> None:
    verdicts = Verdicts()
    for _ in range(3):
        verdicts.room_taken(M1, pods(1), {"m1": {"n1", "n2", "n3"}})
    verdicts.put("q", GUIDED, M1 | M2, 0, releases=0)
    assert (left(verdicts), left(verdicts, "m2")) == ([FIRST], [THIRD])


def test_where_one_cluster_has_no_further_witness_all_is_asked_anew() -> None:
    """It may be the one to prefer."""
    verdicts = guided()
    verdicts.admitted("q", {"m2": 1}, {"m2": {"n3"}})
    assert verdicts.get("q", 1) is None


def test_what_karmada_places_uses_up_no_witness() -> None:
    verdicts = guided()
    verdicts.admitted("q")
    assert (left(verdicts), left(verdicts, "m2")) == ([FIRST, SECOND, THIRD], [THIRD])


def test_what_is_released_on_an_answer_that_is_used_up_counts_all_the_same() -> None:
    """A cycle has counted on all that fit."""
    verdicts = Verdicts()
    verdicts.put("q", Verdict(1, M1, pods=pods(1)), M1, 0)
    verdicts.put("other", Verdict(5, M1, pods=pods(1)), M1, 0)
    for count in (4, 3):
        verdicts.admitted("q")
        other = verdicts.get("other", 1)
        assert other is not None
        assert other.fits == count
    assert verdicts.releases == 2


MIXED = Witness((("head", (("n1", 1),)), ("worker", (("n2", 1),))), only_packs=True)


@pytest.mark.parametrize("taken", [{}, {"m1": {"n9"}}])
@pytest.mark.parametrize(
    ("told", "needed"),
    [
        (MIXED, [True]),
        (replace(FIRST, only_packs=True), [False]),
        (FIRST, [True]),
    ],
    ids=["of several kinds", "alike", "needed before"],
)
def test_what_only_packs_is_needed_once_others_are_there_unless_its_pods_are_alike(
    told: Witness, needed: list[bool], taken: dict[str, set[str]]
) -> None:
    verdicts = Verdicts()
    verdicts.put("q", replace(GUIDED, witnesses=(("m1", (told,)),)), M1 | M2, 0)
    verdicts.room_taken({"m2"}, pods(1), taken)
    assert left(verdicts) == [told]
    verdicts.room_taken({"m1"}, pods(1), taken)
    now = left(verdicts)
    assert now is not None
    assert [one.is_needed for one in now] == needed
    assert [one.nodes for one in now] == [told.nodes]


@pytest.mark.parametrize(
    ("by", "of", "expected"),
    [
        (pods(1), pods(8), 1),
        (pods(8), pods(1), 8),
        (pods(8), pods(3), 3),
        (pods(8, count=4), pods(8), 4),
        (pods(1, cpu=64), pods(1, cpu=8), 8),
        # It takes a place for a pod, if nothing else.
        (pods(0, cpu=64), pods(1), 1),
        # Pods of several kinds may have to go for each of the resources.
        (pods(2, cpu=16), (*pods(2), *pods(0, cpu=8)), 1 + 2),
        ((), pods(1), UNKNOWN),
        (pods(1), (), UNKNOWN),
    ],
)
def test_whose_place_a_release_takes(by: Pods, of: Pods, expected: int) -> None:
    assert displaced(by, of) == expected


def test_an_admission_takes_of_other_answers_about_its_clusters_what_it_may_displace() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(5, M1, pods=pods(8)), M1, 0)
    verdicts.put("same", Verdict(10, M1 | M2, pods=pods(1)), M1 | M2, 0)
    verdicts.put("used up", Verdict(8, M1, pods=pods(1)), M1, 0)
    verdicts.put("whole", Verdict(5, M1, pods=pods(1), per=4), M1, 0)
    verdicts.put("unknown", Verdict(5, M1), M1, 0)
    verdicts.put("elsewhere", Verdict(5, M2, pods=pods(1)), M2, 0)
    verdicts.put("refused", Verdict(0, pods=pods(1)), M1, 0)
    verdicts.admitted("q")
    left = {probe: verdict.fits for probe, verdict in verdicts.current(1).items()}
    assert left == {"q": 4, "same": 2, "whole": 3, "elsewhere": 5, "refused": 0}


def test_an_answer_counts_what_was_released_after_it_was_asked_for() -> None:
    verdicts = Verdicts()
    verdicts.room_taken(M1, pods(1))
    known = verdicts.releases
    verdicts.room_taken(M1, pods(2))
    verdicts.put("q", Verdict(5, M1, pods=pods(1)), M1, 0, known)
    verdicts.put("used up", Verdict(2, M1, pods=pods(1)), M1, 0, known)
    assert {probe: verdict.fits for probe, verdict in verdicts.current(1).items()} == {"q": 3}


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        ({"cpu": 1}, False),
        ({"cpu": 8000}, True),
        ({GPU: 1}, True),
        ({"memory": 1 << 40}, False),
        ({ANYTHING: 1}, True),
        ({}, False),
    ],
)
def test_room_for_a_question_is_of_what_it_asks_for(growth: Mapping[str, int], expected: bool) -> None:
    asked = pods(8, cpu=8000)
    assert is_room(growth, asked) == expected
    verdicts = Verdicts()
    verdicts.put("q", Verdict(0, pods=asked), M1, 0)
    verdicts.room_given({"m2": {GPU: 8}})
    assert verdicts.current(1).keys() == {"q"}
    verdicts.room_given({"m1": growth})
    assert verdicts.current(1).keys() == (set() if expected else {"q"})


def test_room_makes_no_answer_void_that_something_fits() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(1, M1), M1, 0)
    verdicts.room_given({"m1": {GPU: 1}})
    assert verdicts.current(1).keys() == {"q"}


def test_what_is_refused_again_and_again_is_asked_less_often_until_room_appears() -> None:
    verdicts = Verdicts()
    now_ms, pauses = 0, []
    for _ in range(8):
        verdicts.put("q", Verdict(0, pods=pods(1)), M1, now_ms)
        due_ms = verdicts.next_due_ms()
        assert due_ms is not None
        pauses.append(due_ms - now_ms)
        now_ms = due_ms
        # Clusters report all the time.
        verdicts.room_given({"m1": {"cpu": 1}})
        verdicts.current(now_ms)
    assert pauses[:3] == [FIRST_REFUSAL_MS, 2 * FIRST_REFUSAL_MS, 4 * FIRST_REFUSAL_MS]
    assert pauses[-1] == MAX_REFUSAL_MS
    verdicts.put("q", Verdict(0, pods=pods(1)), M1, now_ms)
    verdicts.room_given({"m1": {GPU: 1}})
    verdicts.put("q", Verdict(0, pods=pods(1)), M1, now_ms)
    assert verdicts.next_due_ms() == now_ms + FIRST_REFUSAL_MS


def test_questions_that_nobody_asks_are_forgotten() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(0), M1, 0)
    verdicts.current(FORGOTTEN_MS)
    verdicts.put("q", Verdict(0), M1, FORGOTTEN_MS)
    assert verdicts.next_due_ms() == FORGOTTEN_MS + FIRST_REFUSAL_MS
    assert len(verdicts) == 1


def test_alternating_workloads_share_their_answers() -> None:
    verdicts, asked = Verdicts(), 0
    clusters = frozenset(f"m{number}" for number in range(500))
    for number in range(200):
        probe = f"q{number % 20}"
        if verdicts.get(probe, number) is None:
            # What the estimators say knows of all that was released.
            verdicts.put(probe, Verdict(50, clusters, pods=pods(1, cpu=8)), clusters, number)
            asked += 1
        verdicts.admitted(probe)
    assert asked <= 80


Node = dict[str, int]


class Truth:
    """Nodes as they are, with everything on them that was released; pods go where it hurts others most."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.nodes = [
            ("m1" if number % 2 else "m2", {"cpu": chance.randint(0, 12), GPU: chance.randint(0, 4)})
            for number in range(chance.randint(1, 6))
        ]

    def room(self, amounts: Mapping[str, int], clusters: frozenset[str]) -> int:
        return sum(self._fits(node, amounts) for cluster, node in self.nodes if cluster in clusters)

    def place(self, amounts: Mapping[str, int], clusters: frozenset[str]) -> None:
        there = [n for cluster, n in self.nodes if cluster in clusters and self._fits(n, amounts)]
        assert there, "there is no room for what was released on an answer"
        node = self._chance.choice(there)
        for resource, amount in amounts.items():
            node[resource] -= amount

    def _fits(self, node: Node, amounts: Mapping[str, int]) -> int:
        return min(node[resource] // amount for resource, amount in amounts.items() if amount)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_nothing_is_released_on_an_answer_that_our_own_releases_have_used_up(seed: int) -> None:
    chance = random.Random(seed)
    truth, verdicts = Truth(chance), Verdicts()
    kinds = {
        f"q{number}": (
            {"cpu": chance.randint(1, 4), GPU: chance.randint(1, 2)},
            chance.randint(1, 3),
            chance.choice((M1, M2, M1 | M2)),
        )
        for number in range(4)
    }
    # Answers on their way: what was true when they were asked for, and how many releases were known then.
    under_way: dict[str, tuple[int, int]] = {}
    for now_ms in range(60):
        probe = chance.choice(list(kinds))
        amounts, count, clusters = kinds[probe]
        if chance.random() < 0.4:
            under_way[probe] = (truth.room(amounts, clusters) // count, verdicts.releases)
        elif probe in under_way:
            fits, releases = under_way.pop(probe)
            verdict = Verdict(fits, clusters, pods=((tuple(amounts.items()), count),), per=count)
            verdicts.put(probe, verdict, clusters, now_ms, releases)
        known = verdicts.get(probe, now_ms)
        if known is not None and known.fits > 0:
            verdicts.admitted(probe)
            for _ in range(count):
                truth.place(amounts, clusters)
