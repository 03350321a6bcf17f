import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE, Taint, Toleration, first_untolerated

CI = settings(max_examples=200, derandomize=True, deadline=None)

GPU = Taint("nvidia.com/gpu", "present", NO_SCHEDULE)
SPOT = Taint("spot", "", NO_EXECUTE)
SOFT = Taint("spot", "", "PreferNoSchedule")


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerates"),
    [
        (Toleration("nvidia.com/gpu", "Equal", "present", NO_SCHEDULE), GPU, True),
        (Toleration("nvidia.com/gpu", "Equal", "absent", NO_SCHEDULE), GPU, False),
        (Toleration("nvidia.com/gpu", "Equal", "present", NO_EXECUTE), GPU, False),
        (Toleration("amd.com/gpu", "Equal", "present", NO_SCHEDULE), GPU, False),
        # no operator means Equal
        (Toleration("nvidia.com/gpu", "", "present"), GPU, True),
        (Toleration("nvidia.com/gpu"), GPU, False),
        (Toleration("spot"), SPOT, True),
        # no effect means all effects
        (Toleration("spot", "Exists"), SPOT, True),
        (Toleration("spot", "Exists"), SOFT, True),
        # Exists does not look at the value
        (Toleration("nvidia.com/gpu", "Exists"), GPU, True),
        (Toleration("nvidia.com/gpu", "Exists", "absent"), GPU, True),
        # no key means all keys, for Equal too, where the value still counts
        (Toleration("", "Exists"), GPU, True),
        (Toleration("", "Exists", "", NO_EXECUTE), GPU, False),
        (Toleration(), GPU, False),
        (Toleration(), SPOT, True),
        (Toleration("", "Equal", "present"), GPU, True),
        # the numeric operators are off, and what is no operator tolerates nothing
        (Toleration("n", "Gt", "1", NO_SCHEDULE), Taint("n", "2", NO_SCHEDULE), False),
        (Toleration("n", "Lt", "3", NO_SCHEDULE), Taint("n", "2", NO_SCHEDULE), False),
        (Toleration("n", "Lt", "2", NO_SCHEDULE), Taint("n", "2", NO_SCHEDULE), False),
        (Toleration("spot", "exists"), SPOT, False),
        (Toleration("spot", "garbage"), SPOT, False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, taint: Taint, tolerates: bool) -> None:
    assert toleration.tolerates(taint) is tolerates


@pytest.mark.parametrize(
    ("taints", "tolerations", "first"),
    [
        ([], [], None),
        ([GPU], [], GPU),
        ([GPU, SPOT], [], GPU),
        ([GPU, SPOT], [Toleration("nvidia.com/gpu", "Exists")], SPOT),
        ([GPU, SPOT], [Toleration("spot", "Exists"), Toleration("nvidia.com/gpu", "Exists")], None),
        ([GPU, SPOT], [Toleration("", "Exists")], None),
        ([SOFT], [], None),
        ([Taint("x", "", "Garbage")], [], None),
        ([UNSCHEDULABLE], [], UNSCHEDULABLE),
        ([UNSCHEDULABLE], [Toleration("node.kubernetes.io/unschedulable", "Exists")], None),
    ],
)
def test_the_first_hard_taint_without_a_toleration_keeps_a_pod_off(
    taints: list[Taint], tolerations: list[Toleration], first: Taint | None
) -> None:
    assert first_untolerated(taints, iter(tolerations)) == first


@pytest.mark.parametrize(
    ("taint", "shown"), [(GPU, "nvidia.com/gpu=present:NoSchedule"), (SPOT, "spot:NoExecute")]
)
def test_a_taint_is_shown_as_kubectl_shows_it(taint: Taint, shown: str) -> None:
    assert str(taint) == shown


TEXTS = st.sampled_from(["", "a", "b"])
EFFECTS = st.sampled_from([NO_SCHEDULE, NO_EXECUTE, "PreferNoSchedule"])
TAINTS = st.lists(st.builds(Taint, TEXTS, TEXTS, EFFECTS), max_size=4)
TOLERATIONS = st.lists(
    st.builds(
        Toleration, TEXTS, st.sampled_from(["", "Equal", "Exists", "Gt"]), TEXTS, st.just("") | EFFECTS
    ),
    max_size=4,
)


@CI
@given(TAINTS, TOLERATIONS, TOLERATIONS)
def test_more_tolerations_never_keep_a_pod_off(
    taints: list[Taint], some: list[Toleration], more: list[Toleration]
) -> None:
    if first_untolerated(taints, some) is None:
        assert first_untolerated(taints, [*some, *more]) is None


@CI
@given(TAINTS, TOLERATIONS)
def test_what_keeps_a_pod_off_is_a_hard_taint_of_the_node_that_nothing_covers(
    taints: list[Taint], tolerations: list[Toleration]
) -> None:
    hard = [t for t in taints if t.effect != "PreferNoSchedule"]
    uncovered = [t for t in hard if not any(toleration.tolerates(t) for toleration in tolerations)]
    assert first_untolerated(taints, tolerations) == next(iter(uncovered), None)
