"""Queues whose work is spread: to which clusters it is released, and what its pods are told there."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.cycle.witness import LEFT_ALONE, Witness
from tests.dispatcher.scenarios import objects
from tests.dispatcher.turn.builders import Plane

PACKS, SPREADS = "MostAllocated", "LeastAllocated"
GROUP = {"fairway.dev/group": "g", "fairway.dev/group-size": "2"}
NEEDED = Witness((("pod", (("n1", 1),)),))
ONLY_PACKS = Witness((("pod", (("n2", 1),)),), only_packs=True)


def plane(scoring: str, gpus: dict[str, int] | None = None, **flavor: object) -> Plane:
    """Two clusters of 100 GPUs each in one flavor, and queue ``main`` that may use all of them."""
    gpus = gpus or {"m1": 100, "m2": 100}
    made = Plane(gpus, rooms=gpus)
    made.feed(RESOURCE_FLAVORS, objects.flavor("all", *gpus, **flavor))
    quotas = {"all": sum(gpus.values())}
    made.feed(CLUSTER_QUEUES, objects.cluster_queue("main", quotas, scoringStrategy={"type": scoring}))
    return made


def where(made: Plane, *names: str) -> dict[str, int]:
    """How many of these are in each cluster."""
    return dict(Counter(place.partition(":")[0] for name in names for place in made.clusters(name)))


def submitted(made: Plane, rounds: Sequence[int], name: str = "x") -> list[str]:
    """So many small ones in each turn, by name."""
    names: list[str] = []
    for count in rounds:
        made.elapsed_ms += 10
        for _ in range(count):
            names.append(made.submit(f"{name}{len(names)}", clusters=("m1", "m2")))
        made.turn()
    return names


@pytest.mark.parametrize(("scoring", "expected"), [(PACKS, {"m1": 12}), (SPREADS, {"m1": 6, "m2": 6})])
@pytest.mark.parametrize("rounds", [(12,), (6, 6), (1,) * 12, (5, 1, 6)])
def test_what_is_released_before_karmada_counts_it_is_spread_too(
    scoring: str, expected: dict[str, int], rounds: Sequence[int]
) -> None:
    made = plane(scoring)
    assert where(made, *submitted(made, rounds)) == expected


def test_the_devices_count_and_not_the_workloads() -> None:
    made = plane(SPREADS)
    sizes = {"a": 4, "b": 1, "c": 1, "d": 1, "e": 1, "f": 4}
    for name, gpus in sizes.items():
        made.submit(name, clusters=("m1", "m2"), gpus=gpus)
        made.turn()
    assert {name: where(made, name) for name in sizes} == {
        "a": {"m1": 1},
        **{name: {"m2": 1} for name in "bcde"},
        "f": {"m1": 1},
    }


def counts(made: Plane, **taken: int) -> None:
    """Karmada counts so many GPUs of each cluster as taken."""
    for name, gpus in taken.items():
        seen = objects.cluster(name, 100)
        seen["status"]["resourceSummary"]["allocated"] = {objects.GPU: str(gpus)}
        made.feed(CLUSTERS, seen)


@pytest.mark.parametrize(("scoring", "expected"), [(PACKS, {"m1": 30}), (SPREADS, {"m1": 5, "m2": 25})])
@pytest.mark.parametrize("rounds", [(30,), (10, 1, 19), (1,) * 30])
def test_what_others_have_taken_counts_too(
    scoring: str, expected: dict[str, int], rounds: Sequence[int]
) -> None:
    made = plane(scoring)
    counts(made, m1=50, m2=30)
    assert where(made, *submitted(made, rounds)) == expected


def test_what_karmada_has_counted_is_not_taken_off_again() -> None:
    made = plane(SPREADS)
    counts(made, m1=50, m2=30)
    first = submitted(made, (30,))
    counts(made, m1=55, m2=55)
    assert where(made, *submitted(made, (4,), "later")) == {"m1": 2, "m2": 2}
    # Others have left one cluster, and come to the other.
    counts(made, m1=20, m2=60)
    assert where(made, *submitted(made, (4, 4), "last")) == {"m1": 8}
    for name in first:
        made.delete(name)
    assert where(made, *submitted(made, (1,) * 4, "after")) == {"m1": 4}


def test_what_grows_stays_together_all_the_same() -> None:
    made = plane(SPREADS)
    made.submit("x", replicas=2, clusters=("m1", "m2"))
    made.turn()
    assert list(made.clusters("x")) == ["m1:2"]
    made.edit("x", lambda obj: obj["spec"].update(replicas=9, suspension={"scheduling": True}))
    made.passes(1)
    assert list(made.clusters("x")) == ["m1:9"]


def told(made: Plane, name: str) -> list[str]:
    """Which fields of its pods the policy of its release sets, and nodes that it names."""
    companion = made.companions[name]
    if companion is None or companion.body is None:
        return []
    text = msgspec.json.encode(companion.body).decode()
    return [word for word in ("nodeSelector", "n1", "n2") if f'"{word}' in text or f"/{word}" in text]


@pytest.mark.parametrize(
    ("scoring", "witness", "expected"),
    [
        (PACKS, NEEDED, ["n1"]),
        (PACKS, ONLY_PACKS, ["n2"]),
        (PACKS, LEFT_ALONE, []),
        (SPREADS, NEEDED, ["n1"]),
        (SPREADS, ONLY_PACKS, []),
        (SPREADS, LEFT_ALONE, []),
    ],
)
def test_who_spreads_is_told_nodes_only_to_become_whole(
    scoring: str, witness: Witness, expected: list[str]
) -> None:
    made = plane(scoring)
    made.witnesses = (witness,)
    made.submit("x", clusters=("m1",))
    made.turn()
    assert where(made, "x") == {"m1": 1}
    assert told(made, "x") == expected


def test_one_answer_serves_queues_of_both_kinds() -> None:
    made = plane(SPREADS)
    made.queue("other", {"all": 200})
    made.witnesses = (ONLY_PACKS, ONLY_PACKS)
    made.submit("x", clusters=("m1",))
    made.submit("y", "other", clusters=("m1",))
    made.turn()
    assert (told(made, "x"), told(made, "y")) == ([], ["n2"])
    assert len(made.asked) == 1


@pytest.mark.parametrize(
    ("second", "expected"),
    [(NEEDED, (["n2"], ["n1"])), (ONLY_PACKS, ([], [])), (LEFT_ALONE, ([], []))],
)
def test_of_a_group_all_are_told_where_one_has_to_be(
    second: Witness, expected: tuple[list[str], list[str]]
) -> None:
    made = plane(SPREADS)
    made.witnesses_of = {"a": (ONLY_PACKS,), "b": (second,)}
    for name in ("a", "b"):
        made.submit(name, said=GROUP, clusters=("m1",))
    made.turn()
    assert made.released() == ["a", "b"]
    assert (told(made, "a"), told(made, "b")) == expected


@pytest.mark.parametrize("scoring", [PACKS, SPREADS])
def test_pods_are_kept_on_the_nodes_of_their_flavor_all_the_same(scoring: str) -> None:
    made = plane(scoring, nodeLabels={"kind": "new"})
    made.witnesses = (ONLY_PACKS,)
    made.submit("x", clusters=("m1",))
    made.turn()
    assert told(made, "x") == ["nodeSelector", *(["n2"] if scoring == PACKS else [])]
