"""What a gang lacks in a cluster, in terms that people act on, and whether it could ever fit there."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.capacity.budget import NO_BUDGET
from estimator.capacity.gangs.placing import place
from estimator.capacity.gangs.shortage import shortage
from estimator.capacity.request import Component, GangQuestion
from tests.builders import NodeBuilder, PodBuilder, cluster, component, never, node, pod, room_of, term
from tests.estimator.test_placing import NOWHERE, nodes

GPU = "nvidia.com/gpu"


def fleet(
    *made: NodeBuilder | PodBuilder, whole: int = 0, busy: Sequence[int] = ()
) -> tuple[NodeBuilder | PodBuilder, ...]:
    """``whole`` nodes of 8 free GPUs, and for each of ``busy`` one on which so many are held."""
    free = [node(f"free{number}").gpus(8).cpu(96) for number in range(whole)]
    held = [node(f"busy{number}").gpus(8).cpu(96) for number in range(len(busy))]
    pods = [pod(f"p{n}").on(f"busy{n}").requests({GPU: gpus}) for n, gpus in enumerate(busy) if gpus]
    return (*free, *held, *pods, *made)


ODD = term(("x", "In", ["y"]))

SHORT: list[tuple[str, tuple[NodeBuilder | PodBuilder, ...], Component, int, str]] = [
    (
        "a selector that no node has",
        fleet(whole=6),
        component("main", 1, gpu=8, selector={"x": "y"}),
        0,
        "0 of 6 nodes match nodeSelector x=y",
    ),
    (
        "an affinity that no node has",
        fleet(whole=1),
        component("main", 1, gpu=8, affinity=[ODD]),
        0,
        "0 of 1 node match the required node affinity",
    ),
    (
        "of two selectors the one that no node has",
        fleet(node("z").gpus(8).cpu(96).label(zone="a")),
        component("main", 1, gpu=8, selector={"x": "y", "zone": "a"}),
        0,
        "0 of 1 node match nodeSelector x=y",
    ),
    (
        "a taint",
        fleet(node("t").gpus(8).cpu(96).taint("pool=gpu:NoSchedule")),
        component("main", 1, gpu=8),
        0,
        "the only node that matches has a taint that is not tolerated: taint pool=gpu:NoSchedule on 1 node",
    ),
    (
        "a full cluster",
        fleet(busy=(8, 4)),
        component("main", 1, gpu=8),
        2,
        "1 node with 8 nvidia.com/gpu free needed, 0 there",
    ),
    (
        "a gang of three where two nodes are free",
        fleet(whole=2, busy=(1, 2)),
        component("main", 3, gpu=8),
        1,
        "3 nodes with 8 nvidia.com/gpu free each needed, 2 there",
    ),
    (
        "a gang larger than the cluster",
        fleet(whole=2),
        component("main", 3, gpu=8),
        0,
        "3 pods of 8 nvidia.com/gpu each needed at once; with nothing else running 2 fit",
    ),
    (
        "small pods",
        fleet(busy=(7, 6)),
        component("main", 4, gpu=1),
        4,
        "room for 4 pods of 1 nvidia.com/gpu each needed, for 3 there",
    ),
    (
        "cpu is scarcer than devices",
        fleet(pod("web").on("free0").requests(cpu=95), whole=1),
        component("main", 2, gpu=1, cpu=1),
        4,
        "room for 2 pods of 1 cpu each needed, for 1 there",
    ),
    (
        "a cordon, which passes",
        fleet(node("c").gpus(8).cpu(96).cordoned()),
        component("main", 1, gpu=8),
        1,
        "1 node with 8 nvidia.com/gpu free needed, 0 there",
    ),
]


@pytest.mark.parametrize(
    ("made", "asked", "bound", "told"), [row[1:] for row in SHORT], ids=[row[0] for row in SHORT]
)
def test_what_is_lacking_is_told_first(
    made: tuple[NodeBuilder | PodBuilder, ...], asked: Component, bound: int, told: str
) -> None:
    found = place(room_of(cluster(*made)), GangQuestion("m", (asked,), wanted=1), NOWHERE, never, NO_BUDGET)
    assert found.answer.value == 0
    assert found.empty_bound == bound
    assert found.answer.reasons[0].text == told


def test_a_pod_that_no_node_could_hold_is_told_by_the_answer_itself() -> None:
    asked = component("main", 1, gpu=16)
    found = place(nodes(2), GangQuestion("m", (asked,), wanted=1), NOWHERE, never, NO_BUDGET)
    assert found.empty_bound == 0
    assert any(
        "needs 16 nvidia.com/gpu, the largest eligible node has 8" in str(r) for r in found.answer.reasons
    )


def test_of_a_gang_of_several_the_scarcest_is_told() -> None:
    room = room_of(cluster(*fleet(whole=1, busy=(8,))))
    found = shortage(room, (component("a", 1, cpu=1), component("b", 2, gpu=8)), 1)
    assert (found.empty_bound, found.reasons[0].text) == (
        1,
        "2 nodes with 8 nvidia.com/gpu free each needed, 1 there",
    )


def test_what_fits_is_not_worked_out() -> None:
    found = place(
        nodes(2), GangQuestion("m", (component("main", 1, gpu=8),), wanted=2), NOWHERE, never, NO_BUDGET
    )
    assert (found.answer.value, found.empty_bound) == (2, None)


@given(
    gpus=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=4),
    pods=st.integers(1, 4),
    each=st.integers(1, 9),
)
def test_no_more_fit_than_would_if_nothing_ran(gpus: list[tuple[int, int]], pods: int, each: int) -> None:
    things: list[NodeBuilder | PodBuilder] = []
    for number, (has, held) in enumerate(gpus):
        things.append(node(f"n{number}").gpus(has).cpu(96))
        if min(has, held):
            things.append(pod(f"p{number}").on(f"n{number}").requests({GPU: min(has, held)}))
    asked = (component("main", pods, gpu=each),)
    found = place(room_of(cluster(*things)), GangQuestion("m", asked, wanted=99), NOWHERE, never, NO_BUDGET)
    assert found.empty_bound is not None
    assert found.answer.value <= found.empty_bound
