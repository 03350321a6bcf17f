import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.kube.objects import Pod
from fairway.quantity import MAX_INT64
from fairway.resources import (
    Amounts,
    ResourceError,
    format_amount,
    is_extended,
    is_scheduled,
    parse_amounts,
    pod_request,
    pod_template_request,
)
from tests import oracle
from tests.builders import PodBuilder, Quantities, pod, quantities

CI = settings(max_examples=200, derandomize=True, deadline=None)

P = pod("p")
MI = 1 << 20


@pytest.mark.parametrize(
    ("raw", "amounts"),
    [
        (None, {}),
        ({}, {}),
        (
            {"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": "2"},
            {"cpu": 1500, "memory": 1024, "nvidia.com/gpu": 2},
        ),
        ({"cpu": "0.1m", "memory": "0.1", "x/y": "0.5"}, {"cpu": 1, "memory": 1, "x/y": 1}),
        ({"cpu": 2, "memory": 0.5}, {"cpu": 2000, "memory": 1}),
        ({"cpu": None, "memory": "1"}, {"memory": 1}),
        ({"cpu": "100E", "memory": "100E"}, {"cpu": MAX_INT64, "memory": MAX_INT64}),
    ],
)
def test_a_resource_list_is_read_in_milli_cores_and_units(raw: Quantities | None, amounts: Amounts) -> None:
    assert parse_amounts(raw) == amounts


@pytest.mark.parametrize("raw", ["", "many", "1K", "1e", True, float("nan")])
def test_a_garbage_quantity_names_its_resource(raw: str | float) -> None:
    with pytest.raises(ResourceError, match=r"^nvidia.com/gpu: .* is not a Kubernetes quantity"):
        parse_amounts({"cpu": "1", "nvidia.com/gpu": raw})


@pytest.mark.parametrize(
    ("name", "scheduled", "extended"),
    [
        ("cpu", True, False),
        ("memory", True, False),
        ("ephemeral-storage", True, False),
        ("hugepages-2Mi", True, False),
        ("attachable-volumes-aws-ebs", True, False),
        ("nvidia.com/gpu", True, True),
        ("nvidia.com/mig-1g.10gb", True, True),
        ("google.com/tpu", True, True),
        ("count/jobs.batch", True, True),
        ("kubernetes.io/batch-cpu", True, False),
        ("foo.kubernetes.io/x", True, False),
        # nothing that a scheduler counts
        ("pods", False, False),
        ("storage", False, False),
        ("foo", False, False),
        ("", False, False),
        ("requests.cpu", False, False),
        ("requests.nvidia.com/gpu", False, False),
        ("limits.cpu", False, False),
        ("nvidia.com/", False, False),
        ("/gpu", False, False),
        ("../../x", False, False),
        ("a/b/c", False, False),
        ("NVIDIA.com/gpu", False, False),
        ("nvidia.com/gp u", False, False),
        # the name must stay valid with "requests." before it: 253 - 9 characters of domain at most
        ("d" * 244 + "/gpu", True, True),
        ("d" * 245 + "/gpu", False, False),
        ("nvidia.com/" + "g" * 63, True, True),
        ("nvidia.com/" + "g" * 64, False, False),
        ("x" * 1_000_000, False, False),
        ("hugepages-" + "x" * 1_000_000, False, False),
        ("example.com/" + "x" * 1_000_000, False, False),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_which_names_a_scheduler_counts(name: str, scheduled: bool, extended: bool) -> None:
    assert (is_scheduled(name), is_extended(name)) == (scheduled, extended)


@pytest.mark.parametrize(
    ("name", "amount", "shown"),
    [
        ("cpu", 500, "500m"),
        ("memory", 64 << 30, "64Gi"),
        ("ephemeral-storage", 1536 << 20, "1536Mi"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("pods", 2048, "2048"),
    ],
)
def test_amounts_are_shown_in_their_own_units(name: str, amount: int, shown: str) -> None:
    assert format_amount(name, amount) == shown


HELD: dict[str, tuple[PodBuilder, Amounts]] = {
    "no containers": (P, {}),
    "no requests": (P.requests(), {}),
    "containers add up": (
        P.requests(cpu="1", gpu=2).requests(cpu="500m", memory="1Ki"),
        {"cpu": 1500, "nvidia.com/gpu": 2, "memory": 1024},
    ),
    "rounded up once, after adding": (
        P.requests(cpu="0.3m").requests(cpu="0.3m").requests(cpu="0.3m"),
        {"cpu": 1},
    ),
    "limits are none": (P.requests(cpu="1").limits(cpu="2", memory="1Ki"), {"cpu": 1000}),
    # init containers
    "larger init": (P.init(cpu="3").requests(cpu="1").requests(cpu="1"), {"cpu": 3000}),
    "smaller inits": (P.init(cpu="1").init(cpu="1").requests(cpu="1500m"), {"cpu": 1500}),
    "by resource": (
        P.init(cpu="3", memory="1").requests(cpu="1", memory="5", gpu=1),
        {"cpu": 3000, "memory": 5, "nvidia.com/gpu": 1},
    ),
    "only in init": (P.init(gpu=1).requests(cpu="1"), {"nvidia.com/gpu": 1, "cpu": 1000}),
    # sidecars
    "sidecar adds": (P.sidecar(cpu="1").requests(cpu="1"), {"cpu": 2000}),
    "two sidecars": (P.sidecar(cpu="1").sidecar(cpu="1").requests(cpu="1"), {"cpu": 3000}),
    "init beside a sidecar before it": (P.sidecar(cpu="1").init(cpu="3").requests(cpu="2"), {"cpu": 4000}),
    "init before a sidecar": (P.init(cpu="3").sidecar(cpu="1").requests(cpu="1"), {"cpu": 3000}),
    "sidecars in order": (
        P.sidecar(cpu="1").init(cpu="3").sidecar(cpu="2").init(cpu="2").requests(cpu="1"),
        {"cpu": 5000},
    ),
    "only a sidecar": (P.sidecar(cpu="2"), {"cpu": 2000}),
    # overhead
    "overhead": (P.requests(cpu="1").overhead(cpu="250m", memory="1Mi"), {"cpu": 1250, "memory": MI}),
    "overhead on init": (P.init(cpu="3").requests(cpu="2").overhead(cpu="250m"), {"cpu": 3250}),
    # pod level
    "pod level replaces": (P.requests(cpu="3").pod_level(cpu="2"), {"cpu": 2000}),
    "pod level alone": (P.requests().pod_level(cpu="2", memory="1"), {"cpu": 2000, "memory": 1}),
    "pod level by resource": (P.requests(cpu="1", memory="7").pod_level(cpu="2"), {"cpu": 2000, "memory": 7}),
    "pod level huge pages": (
        P.requests({"hugepages-2Mi": "4Mi"}).pod_level({"hugepages-2Mi": "8Mi"}),
        {"hugepages-2Mi": 8 * MI},
    ),
    "pod level is not for devices and storage": (
        P.requests(gpu=1, storage="1").pod_level(gpu=5, storage="9"),
        {"nvidia.com/gpu": 1, "ephemeral-storage": 1},
    ),
    "overhead on pod level": (P.requests(cpu="1").pod_level(cpu="2").overhead(cpu="250m"), {"cpu": 2250}),
    "pod level limits are none": (P.requests(cpu="1").pod_level(limits=quantities(cpu="4")), {"cpu": 1000}),
    # resize in place
    "still has more": (P.requests(cpu="1").running_with(cpu="2"), {"cpu": 2000}),
    "asks for more": (P.requests(cpu="3").running_with(cpu="2"), {"cpu": 3000}),
    "was granted more": (P.requests(cpu="1").running_with(cpu="1").granted(cpu="4"), {"cpu": 4000}),
    "granted without a status": (P.requests(cpu="1").granted(cpu="4"), {"cpu": 1000}),
    "an infeasible resize is left out": (
        P.requests(cpu="3").running_with(cpu="2").granted(cpu="1").resize_pending("Infeasible"),
        {"cpu": 2000},
    ),
    "a deferred one is not": (
        P.requests(cpu="3").running_with(cpu="2").resize_pending("Deferred"),
        {"cpu": 3000},
    ),
    "infeasible without a status": (P.requests(cpu="3").resize_pending("Infeasible"), {"cpu": 3000}),
    "infeasible, and it has nothing": (P.requests(cpu="3").running_with().resize_pending("Infeasible"), {}),
    "resized by resource": (
        P.requests(cpu="1", memory="9").running_with(cpu="2", gpu=1),
        {"cpu": 2000, "memory": 9, "nvidia.com/gpu": 1},
    ),
    "resized sidecar": (P.sidecar(cpu="1").running_with(cpu="2").requests(cpu="1"), {"cpu": 3000}),
    "inits do not resize": (P.init(cpu="1").running_with(cpu="9").requests(cpu="1"), {"cpu": 1000}),
    "pod resized": (
        P.requests(cpu="1").pod_level(cpu="2").pod_running_with(quantities(cpu="3")),
        {"cpu": 3000},
    ),
    "pod granted more": (
        P.requests().pod_level(cpu="2").pod_running_with(quantities(cpu="1"), quantities(cpu="5")),
        {"cpu": 5000},
    ),
    "pod resize infeasible": (
        P.requests()
        .pod_level(cpu="9", memory="9")
        .pod_running_with(quantities(cpu="1"))
        .resize_pending("Infeasible"),
        {"cpu": 1000, "memory": 0},
    ),
    "pod status without pod level": (
        P.requests(cpu="1").pod_running_with(quantities(cpu="3")),
        {"cpu": 1000},
    ),
}


@pytest.mark.parametrize(("built", "expected"), HELD.values(), ids=HELD)
def test_what_a_pod_holds(built: PodBuilder, expected: Amounts) -> None:
    assert pod_request(built.build()) == expected


TEMPLATES: dict[str, tuple[PodBuilder, Amounts]] = {
    "limits stand in": (P.requests().limits(cpu="2", gpu=1), {"cpu": 2000, "nvidia.com/gpu": 1}),
    "by resource": (P.requests(cpu="1").limits(cpu="2", memory="5"), {"cpu": 1000, "memory": 5}),
    "by container": (P.requests(cpu="1").requests().limits(cpu="2"), {"cpu": 3000}),
    "an explicit zero stays": (P.requests(cpu="0").limits(cpu="2"), {"cpu": 0}),
    "for init containers": (P.init().limits(gpu=4).requests(gpu=1), {"nvidia.com/gpu": 4}),
    "for sidecars": (P.sidecar().limits(cpu="1").requests(cpu="1"), {"cpu": 2000}),
    "pod-level limits where no container asks": (
        P.requests(cpu="1").pod_level(limits=quantities(cpu="4", memory="7")),
        {"cpu": 1000, "memory": 7},
    ),
    "after containers": (P.requests().limits(cpu="2").pod_level(limits=quantities(cpu="4")), {"cpu": 2000}),
    "pod-level requests": (P.requests(cpu="1").pod_level(quantities(cpu="3")), {"cpu": 3000}),
    "huge pages cannot be overcommitted: the pod's limit stands": (
        P.requests({"hugepages-2Mi": "2Mi"}).pod_level(limits={"hugepages-2Mi": "8Mi"}),
        {"hugepages-2Mi": 8 * MI},
    ),
    "not devices": (P.requests(gpu=1).pod_level(limits=quantities(gpu=5)), {"nvidia.com/gpu": 1}),
    "overhead": (P.requests().limits(cpu="1").overhead(cpu="250m"), {"cpu": 1250}),
}


@pytest.mark.parametrize(("built", "expected"), TEMPLATES.values(), ids=TEMPLATES)
def test_what_a_pod_made_from_a_template_will_ask_for(built: PodBuilder, expected: Amounts) -> None:
    assert pod_template_request(built.build().spec) == expected


@pytest.mark.parametrize(
    "built",
    [
        P.requests(cpu="x"),
        P.init(cpu="x"),
        P.sidecar(cpu="x"),
        P.requests().overhead(cpu="x"),
        P.requests().pod_level(cpu="x"),
        P.requests().running_with(cpu="x"),
        P.requests().running_with().granted(cpu="x"),
    ],
)
def test_a_garbage_quantity_anywhere_in_a_pod_is_named(built: PodBuilder) -> None:
    with pytest.raises(ResourceError, match=r"^cpu: 'x' is not a Kubernetes quantity"):
        pod_request(built.build())


LISTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi"]),
    st.sampled_from(["0", "1", "2", "3", "500m", "0.3m", "7"]),
    max_size=3,
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    built = P
    for _ in range(draw(st.integers(0, 5))):
        add = draw(st.sampled_from([PodBuilder.requests, PodBuilder.init, PodBuilder.sidecar]))
        built = add(built, draw(LISTS))
        if draw(st.booleans()):
            built = built.running_with(draw(LISTS))
            if draw(st.booleans()):
                built = built.granted(draw(LISTS))
    if draw(st.booleans()):
        built = built.overhead(draw(LISTS))
    if draw(st.booleans()):
        built = built.pod_level(draw(LISTS))
        if draw(st.booleans()):
            built = built.pod_running_with(draw(LISTS), draw(st.none() | LISTS))
    if draw(st.booleans()):
        built = built.resize_pending(draw(st.sampled_from(["Infeasible", "Deferred"])))
    return built.build()


@CI
@given(pods())
def test_a_pod_holds_the_most_of_any_of_its_phases(built: Pod) -> None:
    expected = {
        name: -(-value * 1000 // 1) if name == "cpu" else -(-value // 1)
        for name, value in oracle.pod_request(built).items()
    }
    assert pod_request(built) == expected


@CI
@given(pods(), LISTS)
def test_one_more_sidecar_never_makes_a_pod_smaller(built: Pod, more: Quantities) -> None:
    spec = built.spec
    sidecar = P.sidecar(more).build().spec.init_containers or []
    larger = type(spec)(
        containers=spec.containers,
        init_containers=[*(spec.init_containers or ()), *sidecar],
        resources=spec.resources,
        overhead=spec.overhead,
    )
    before, after = pod_request(built), pod_request(Pod(built.metadata, larger, built.status))
    assert all(after[name] >= amount for name, amount in before.items())
