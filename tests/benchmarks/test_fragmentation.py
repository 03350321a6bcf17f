"""Fragmentation as FGD measures it: small cases by hand, laws, and the published number of a real trace."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.openb.fragmentation import GpuNode, GpuNodes, TaskMix, TaskShape, fragmentation, popular
from benchmarks.openb.trace import TraceError, read_machines, read_tasks, trace_folder

HALF = TaskShape(4000, 1, 500)
ONE = TaskShape(4000, 1, 1000)
TWO = TaskShape(4000, 2, 1000)
CPU_ONLY = TaskShape(4000)


def lost(node: GpuNode, shape: TaskShape) -> int:
    return int(GpuNodes([node]).lost(shape)[0])


@pytest.mark.parametrize(
    ("gpus", "cpu", "shape", "expected"),
    [
        ([1000, 1000], 8000, ONE, 0),
        ([1000, 400], 8000, ONE, 400),
        ([1000, 400], 8000, HALF, 400),
        ([500, 499], 8000, HALF, 499),
        ([400, 400], 8000, HALF, 800),
        ([1000, 1000], 8000, TWO, 0),
        ([1000, 999], 8000, TWO, 1999),
        ([1000, 1000, 300], 8000, TWO, 300),
        ([1000], 8000, TWO, 1000),
        ([1000, 1000], 3999, HALF, 2000),
        ([1000, 1000], 4000, HALF, 0),
        ([1000, 400], 8000, CPU_ONLY, 1400),
        ([1000, 400], 0, CPU_ONLY, 1400),
        ([0, 0], 8000, HALF, 0),
        ([], 8000, HALF, 0),
        ([-200, 700], -1, HALF, 700),
        ([1000], 8000, TaskShape(0, 1, 1000), 0),
    ],
)
def test_what_a_task_cannot_use_of_a_node_is_lost_to_it(
    gpus: list[int], cpu: int, shape: TaskShape, expected: int
) -> None:
    assert lost(GpuNode(gpus, cpu), shape) == expected


@pytest.mark.parametrize(
    ("products", "expected"),
    [((), 0), (("T4",), 0), (("A10", "T4"), 0), (("A10",), 1000), (("t4",), 1000), (("absent",), 1000)],
)
def test_all_is_lost_to_a_task_that_does_not_accept_the_product(
    products: tuple[str, ...], expected: int
) -> None:
    assert lost(GpuNode([1000], 8000, "T4"), TaskShape(4000, 1, 1000, products)) == expected


def test_nodes_of_different_size_stand_side_by_side() -> None:
    nodes = GpuNodes([GpuNode([600], 8000), GpuNode([600, 300, 1000], 8000), GpuNode([], 8000)])

    assert nodes.lost(HALF).tolist() == [0, 300, 0]
    assert nodes.free_milli == 2500


def test_fragmentation_is_the_mean_over_the_mix() -> None:
    nodes = GpuNodes([GpuNode([1000, 400], 8000), GpuNode([300], 8000)])
    mix = TaskMix(((HALF, 2), (TWO, 1)))

    found = fragmentation(nodes, mix)

    # Lost to a half: 400 and 300; to two whole ones: 1400 and 300.
    assert found.of_node(0) == Fraction(2 * 400 + 1400, 3)
    assert found.of_node(1) == 300
    assert found.milli == Fraction(2 * 400 + 1400, 3) + 300
    assert found.share_of_free == found.milli / 1700


def test_nothing_is_fragmented_where_nothing_is_free() -> None:
    found = fragmentation(GpuNodes([GpuNode([0], 8000)]), TaskMix(((ONE, 1),)))

    assert found.milli == 0
    assert found.share_of_free == 0


def test_a_cluster_without_nodes_has_no_fragmentation() -> None:
    assert fragmentation(GpuNodes([]), TaskMix(((ONE, 1),))).milli == 0


def test_the_popular_shapes_are_as_few_as_cover_the_share() -> None:
    tasks = [HALF] * 90 + [ONE] * 5 + [TWO] * 3 + [CPU_ONLY] * 2

    assert popular(tasks) == TaskMix(((HALF, 90), (ONE, 5)))
    assert popular(tasks, percent=96) == TaskMix(((HALF, 90), (ONE, 5), (TWO, 3)))
    assert popular(tasks, percent=90).tasks == 90
    assert popular(tasks, percent=100).tasks == 100


def test_of_equally_popular_shapes_the_larger_comes_first() -> None:
    tasks = [TaskShape(1000, 1, 200), TaskShape(2000, 1, 100), TaskShape(2000, 1, 200), TaskShape(2000)]

    shapes = [shape for shape, _ in popular(tasks, percent=100).shapes]

    assert shapes == [
        TaskShape(2000, 1, 200),
        TaskShape(2000, 1, 100),
        TaskShape(2000),
        TaskShape(1000, 1, 200),
    ]


@pytest.mark.parametrize("percent", [0, 101, -5])
def test_a_share_that_cannot_be_is_refused(percent: int) -> None:
    with pytest.raises(ValueError, match="percent: expected 1 to 100"):
        popular([ONE], percent)


def test_no_tasks_are_no_mix() -> None:
    with pytest.raises(ValueError, match="tasks: expected at least one"):
        popular([])
    with pytest.raises(ValueError, match="mix: expected at least one task"):
        fragmentation(GpuNodes([]), TaskMix(()))


free_nodes = st.lists(
    st.builds(
        GpuNode,
        st.lists(st.integers(0, 1000), max_size=8),
        st.integers(0, 16000),
        st.sampled_from(["A", "B"]),
    ),
    max_size=5,
)
shapes = st.one_of(
    st.builds(TaskShape, st.integers(0, 16000)),
    st.builds(
        TaskShape, st.integers(0, 16000), st.just(1), st.integers(1, 1000), st.sampled_from([(), ("A",)])
    ),
    st.builds(TaskShape, st.integers(0, 16000), st.integers(2, 8), st.just(1000)),
)


def lost_one_by_one(node: GpuNode, shape: TaskShape) -> int:
    """The definition, read out loud."""
    total = sum(node.gpu_milli)
    if not shape.gpus or (shape.products and node.product not in shape.products):
        return total
    good = [free for free in node.gpu_milli if free >= shape.gpu_milli]
    if len(good) < shape.gpus or node.cpu_milli < shape.cpu_milli:
        return total
    return total - sum(good)


@given(free_nodes, st.lists(shapes, min_size=1, max_size=6))
def test_columns_say_what_the_definition_says(nodes: list[GpuNode], tasks: list[TaskShape]) -> None:
    mix = popular(tasks, percent=100)
    expected = [
        sum(Fraction(lost_one_by_one(node, shape) * count, mix.tasks) for shape, count in mix.shapes)
        for node in nodes
    ]

    found = fragmentation(GpuNodes(nodes), mix)

    assert [found.of_node(index) for index in range(len(nodes))] == expected
    assert found.milli == sum(expected)
    assert 0 <= found.share_of_free <= 1


def test_the_empty_gpu_cluster_of_the_openb_trace_is_fragmented_as_published() -> None:
    try:
        machines, tasks = read_machines(trace_folder()), read_tasks(trace_folder())
    except TraceError as error:
        pytest.skip(str(error))
    mix = popular(TaskShape(task.cpu_milli, task.gpus, task.gpu_milli, task.models) for task in tasks)
    nodes = [GpuNode([1000] * m.gpus, m.cpu_milli, m.model) for m in machines if m.gpus]

    found = fragmentation(GpuNodes(nodes), mix)

    assert len(nodes) == 1213
    assert len(mix.shapes) == 35
    assert found.free_milli == 6_212_000
    assert round(float(found.milli) / 1000, 2) == 866.23
    assert round(float(found.share_of_free) * 100, 2) == 13.94
