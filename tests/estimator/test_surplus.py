"""How many pods workloads have to give up for a gang to fit, whichever of them their controllers choose."""

from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from random import Random

import pytest

from estimator.capacity.gangs.ways import MAX_WAYS
from estimator.capacity.removal import in_order_of_removal
from estimator.capacity.request import Component
from fairway.kube.objects import Pod
from fairway.workloads.gang import TopologyMode, TopologyRequest
from tests import gang_checker
from tests.builders import NodeBuilder, PodBuilder, Thing, cluster, component, node, requirements
from tests.estimator.gang_instances import components
from tests.estimator.test_earliest import HALF, RACK, TWO, WHOLE, A, Asked, B, C, running
from tests.estimator.test_victims import jobs
from tests.gang_checker import Part

NOW_S = 1_000.0
D = node("d").gpus(8).cpu(32)


def ready(owner: str, on: str, gpus: int, number: int = 0, ago_s: int = 500) -> PodBuilder:
    """Its pods of one age are ready since the same second, so nobody knows which of them goes first."""
    minutes, seconds = divmod(int(NOW_S) - ago_s, 60)
    return running(owner, on, gpus, number).ready(f"1970-01-01T00:{minutes:02}:{seconds:02}Z")


def asks(*parts: Component, may_end: Sequence[str] = (), **surplus: tuple[int, int]) -> Asked:
    """``surplus``: by Job, how many pods it may give up, of how many that are to be there."""
    return Asked(parts, may_end=jobs(*may_end), surplus=surplus)


def found(asked: Asked, *things: Thing) -> dict[str, int] | None:
    """Who has to give up how many pods, 0 for all."""
    room = asked.of(cluster(*things))
    if room is None:
        return None
    return dict(zip((one.name for one in room.workloads), room.gives or [0] * 9, strict=False))


EACH = [ready("e", name, 8) for name in "abcd"]
BY_AGE = [ready("e", name, 8, ago_s=100 * (number + 1)) for number, name in enumerate("abcd")]
FOUR = (A, B, C, D)
TABLE: list[tuple[str, Sequence[Thing], Asked, dict[str, int] | None]] = [
    # name, what there is, what is asked, who gives how many
    ("one node, whichever it is", (*FOUR, *EACH), asks(WHOLE, e=(3, 4)), {"e": 1}),
    ("no more than have to", (*FOUR, *EACH), asks(TWO, e=(3, 4)), {"e": 2}),
    ("no more than may", (*FOUR, *EACH), asks(TWO, e=(1, 4)), None),
    ("then it ends", (*FOUR, *EACH), asks(TWO, e=(1, 4), may_end=["e"]), {"e": 0}),
    (
        "pods of it before others as a whole",
        (*FOUR, *EACH[:3], ready("x", "d", 8)),
        asks(WHOLE, e=(2, 3), may_end=["x", "e"]),
        {"e": 1},
    ),
    (
        "and others besides",
        (*FOUR, *EACH[:3], ready("x", "d", 8)),
        asks(TWO, e=(1, 3), may_end=["x", "e"]),
        {"e": 1, "x": 0},
    ),
    (
        "of two as many as each has",
        (*FOUR, *EACH[:2], ready("f", "c", 8), ready("f", "d", 8)),
        asks(TWO, e=(1, 2), f=(1, 2)),
        {"e": 1, "f": 1},
    ),
    # Which of them go decides.
    (
        "the latest is on that node",
        (A.label({RACK: "x"}), *FOUR[1:], *BY_AGE),
        asks(component("w", 1, selector={RACK: "x"}, gpu=8), e=(3, 4)),
        {"e": 1},
    ),
    (
        "the latest is on another",
        (*FOUR[:3], D.label({RACK: "x"}), *BY_AGE),
        asks(component("w", 1, selector={RACK: "x"}, gpu=8), e=(3, 4)),
        None,
    ),
    (
        "where nobody knows, it takes all that might go before",
        (A.label({RACK: "x"}), *FOUR[1:], *EACH),
        asks(component("w", 1, selector={RACK: "x"}, gpu=8), e=(4, 4)),
        {"e": 4},
    ),
    (
        "halves of two nodes are no node",
        (A, B, *(ready("e", name, 4, number) for name in "ab" for number in range(2))),
        asks(WHOLE, e=(3, 4)),
        {"e": 3},
    ),
    (
        "of one node it is all one which",
        (A, *(ready("e", "a", 2, number) for number in range(4))),
        asks(HALF, e=(3, 4)),
        {"e": 2},
    ),
    # Those first that hold nothing.
    (
        "what is to be there and is not",
        (*FOUR, *EACH[:3], ready("x", "d", 8)),
        asks(WHOLE, e=(3, 5)),
        {"e": 3},
    ),
    (
        "what is there and is not to be goes anyway",
        (*FOUR, *EACH),
        asks(TWO, e=(2, 3)),
        {"e": 1},
    ),
    (
        "what has no node",
        (*FOUR, *EACH[:3], ready("x", "d", 8), running("e", "", 8, 7)),
        asks(WHOLE, e=(3, 4)),
        {"e": 2},
    ),
    (
        "what is not ready",
        (*FOUR, *EACH[:3], running("e", "d", 4, 7)),
        asks(HALF, e=(3, 4)),
        {"e": 1},
    ),
    (
        "what is being deleted is none of it",
        (*FOUR, *EACH, running("e", "a", 0, 7).terminating("1970-01-01T01:00:00Z")),
        asks(WHOLE, e=(3, 4)),
        {"e": 1},
    ),
    (
        "within one rack, whichever go",
        (*(one.label({RACK: rack}) for one, rack in zip(FOUR, "xxyy", strict=True)), *EACH),
        Asked(
            (TWO,),
            topology=TopologyRequest(TopologyMode.REQUIRED, RACK),
            may_end=(),
            surplus={"e": (3, 4)},
        ),
        {"e": 3},
    ),
]


@pytest.mark.parametrize(
    ("things", "asked", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_who_has_to_give_up_how_many(
    things: Sequence[Thing], asked: Asked, expected: dict[str, int] | None
) -> None:
    assert found(asked, *things) == expected


def test_who_goes_before_goes_as_well_where_it_does_not_help() -> None:
    things: tuple[Thing, ...] = (A, B.label({RACK: "x"}), C, D, *BY_AGE)
    asked = asks(component("w", 1, selector={RACK: "x"}, gpu=8), e=(3, 4))
    room = asked.of(cluster(*things))
    assert room is not None
    assert (room.gives, room.pods, [one.node for one in room.placement]) == ((2,), 2, ["b"])


def test_of_too_many_ways_only_what_is_certain_counts() -> None:
    nodes = [node(f"n{number}").gpus(8).cpu(32 + number) for number in range(MAX_WAYS + 1)]
    pods = [ready("e", f"n{number}", 8) for number in range(MAX_WAYS + 1)]
    # Each node is another, so each that might be left is another way; all alike they are one.
    assert found(asks(WHOLE, e=(9, 99)), *nodes, *pods) is None
    alike = [node(f"n{number}").gpus(8).cpu(32) for number in range(MAX_WAYS + 1)]
    assert found(asks(WHOLE, e=(9, MAX_WAYS + 1)), *alike, *pods) == {"e": 1}


# --- law -------------------------------------------------------------------------------------------------


def orders(pods: Sequence[Pod]) -> Iterator[list[Pod]]:
    """All orders in which they may go, as far as anybody knows; see `test_removal`."""
    mirror = cluster(*pods)
    groups = in_order_of_removal(mirror.pods.copy(), NOW_S)
    by_key = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in pods}

    def all_of(left: Sequence[Sequence[str]]) -> Iterator[list[Pod]]:
        if not left:
            yield []
            return
        for first in permutations(left[0]):
            for rest in all_of(left[1:]):
                yield [*(by_key[key] for key in first), *rest]

    return all_of(groups)


def fits(nodes: Sequence[NodeBuilder], pods: Sequence[Pod], parts: Sequence[Part]) -> bool:
    stock = gang_checker.stock([one.build() for one in nodes], pods)
    return gang_checker.best(gang_checker.gang(stock, parts)) >= 1


@pytest.mark.parametrize("seed", range(150))
def test_whichever_pods_go_it_fits_and_with_one_fewer_it_might_not(seed: int) -> None:
    rng = Random(seed)
    nodes = [node(f"n{number}").gpus(rng.choice((4, 8))).cpu(32) for number in range(rng.randint(1, 3))]
    pods: dict[str, list[Pod]] = {"e": [], "f": []}
    for number in range(rng.randint(1, 6)):
        owner, on, gpus = rng.choice("ef"), rng.choice(nodes).name, {"e": 2, "f": 4}
        made = ready(owner, on, gpus[owner], number, rng.choice((100, 100, 300)))
        pods[owner].append((made if rng.random() < 0.9 else running(owner, on, gpus[owner], number)).build())
    others = [running("x", rng.choice(nodes).name, rng.choice((0, 1, 2)), 9).build()]
    parts = [Part(rng.randint(1, 2), requirements(gpu=rng.choice((1, 2, 4, 8)), cpu=1))]
    everybody = [*pods["e"], *pods["f"], *others]
    if fits(nodes, everybody, parts):
        return
    surplus = {name: (rng.randint(1, len(of)), len(of)) for name, of in pods.items() if of}
    room = Asked(components(parts), may_end=(), surplus=surplus).of(cluster(*nodes, *everybody))
    gives = {"e": 0, "f": 0} | (
        dict(zip((one.name for one in room.workloads), room.gives, strict=True)) if room else {}
    )

    def is_enough(e: int, f: int) -> bool:
        return all(
            fits(nodes, [*one[e:], *other[f:], *others], parts)
            for one in islice(orders(pods["e"]), 200)
            for other in islice(orders(pods["f"]), 200)
        )

    if room is None:
        most = {name: min(surplus.get(name, (0, 0))[0], len(of)) for name, of in pods.items()}
        assert not is_enough(most["e"], most["f"])
        return
    assert is_enough(gives["e"], gives["f"])
    for name in room.workloads:
        fewer = {**gives, name.name: gives[name.name] - 1}
        assert not is_enough(fewer["e"], fewer["f"])
