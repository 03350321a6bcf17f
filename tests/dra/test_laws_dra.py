"""Laws of the counting, against trying everything on small nodes."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.kube.resource_slices import ResourceClaimSpec
from tests.dra.exhaustive import Cluster, Gpu, Pod, Want
from tests.dra.objects import DRIVER, Fields, Scene, claim_spec, device, exactly, held, on_node

LIMIT = 7
COUNTERS = ("one", "two")

plain_gpus = st.builds(
    Gpu,
    model=st.integers(0, 1),
    root=st.sampled_from([None, 0, 1, 2]),
    held=st.sampled_from([False] * 4 + [True]),
)
# Where a device that is shared out is held whole, administrators take its counters twice, there as here; the
# exhaustive search does not follow that.
gpus = st.builds(
    Gpu,
    model=st.integers(0, 1),
    root=st.sampled_from([None, 0, 1]),
    counters=st.sampled_from([(0, 0), (0, 0), (1, 0), (2, 1), (0, 2)]),
    shared=st.sampled_from([False, False, True]),
    memory=st.sampled_from([4, 6]),
    held=st.sampled_from([False] * 4 + [True]),
).filter(lambda gpu: not (gpu.shared and gpu.held and any(gpu.counters)))
wants = st.builds(
    Want,
    count=st.sampled_from([1, 1, 2, 3, None]),
    model=st.sampled_from([None, 0, 1]),
    memory=st.sampled_from([None, 0, 2, 3]),
)
admin_wants = st.builds(
    Want, count=st.sampled_from([1, 2]), model=st.sampled_from([None, 0]), admin=st.just(True)
)
requests = st.one_of(st.tuples(wants), st.tuples(wants), st.tuples(wants, wants), st.tuples(admin_wants))
some = st.frozensets(st.integers(0, 1))
pods = st.builds(Pod, requests=st.lists(requests, min_size=1, max_size=2).map(tuple), alike=some, unlike=some)


def body(want: Want) -> Fields:
    asked = {} if want.memory is None else {"memory": want.memory}
    return exactly(
        want.count,
        *(() if want.model is None else (f"model={want.model}",)),
        adminAccess=want.admin or None,
        capacity={"requests": asked},
    )


def stated(pod: Pod) -> ResourceClaimSpec:
    written: list[Fields] = []
    for index, alternatives in enumerate(pod.requests):
        if len(alternatives) == 1:
            written.append({"name": f"r{index}", "exactly": body(alternatives[0])})
        else:
            first = [{"name": f"s{place}", **body(want)} for place, want in enumerate(alternatives)]
            written.append({"name": f"r{index}", "firstAvailable": first})
    names = {f"r{index}": index for index in range(len(pod.requests))}
    constraints: list[Fields] = [
        {field: f"{DRIVER}/root", "requests": concerned}
        for field, of in (("matchAttribute", pod.alike), ("distinctAttribute", pod.unlike))
        if (concerned := [name for name, index in names.items() if index in of])
    ]
    return claim_spec(*written, constraints=constraints)


def taken(gpu: Gpu) -> dict[str, Fields]:
    """What the device takes of the counters, those that it does not touch left out."""
    touched: Fields = {name: n for name, n in zip(COUNTERS, gpu.counters, strict=True) if n}
    return {"set": touched} if touched else {}


def scene(offered: list[Gpu], counters: tuple[int, int]) -> Scene:
    published = [
        device(
            f"d{index}",
            {"memory": gpu.memory},
            taken(gpu),
            (),
            {"allowMultipleAllocations": gpu.shared},
            **{"model": gpu.model, **({} if gpu.root is None else {"root": gpu.root})},
        )
        for index, gpu in enumerate(offered)
    ]
    holds = [held(f"h{i}", {"device": f"d{i}"}) for i, gpu in enumerate(offered) if gpu.held]
    return on_node(published, *holds, set=dict(zip(COUNTERS, counters, strict=True)))


@settings(max_examples=400, deadline=None)
@given(st.lists(gpus, min_size=1, max_size=5), st.tuples(st.integers(0, 4), st.integers(0, 3)), pods)
def test_the_value_is_what_first_fit_reaches_and_the_bound_holds(
    offered: list[Gpu], counters: tuple[int, int], pod: Pod
) -> None:
    everything = Cluster(tuple(offered), counters, pod)
    answer = scene(offered, counters).ask(stated(pod), limit=LIMIT)
    assert answer.value == everything.first_fit(LIMIT)
    best = everything.best(LIMIT)
    assert answer.value <= best <= answer.upper_bound
    event(f"value {answer.value}")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(plain_gpus, min_size=1, max_size=7),
    st.integers(1, 3),
    st.sampled_from([None, 0]),
    st.sampled_from(["", "alike", "unlike"]),
)
def test_one_plain_request_is_bounded_exactly(
    offered: list[Gpu], count: int, model: int | None, constraint: str
) -> None:
    concerned = frozenset({0})
    pod = Pod(
        ((Want(count, model),),),
        alike=concerned if constraint == "alike" else frozenset(),
        unlike=concerned if constraint == "unlike" else frozenset(),
    )
    answer = scene(offered, (0, 0)).ask(stated(pod), limit=LIMIT)
    assert answer.upper_bound == Cluster(tuple(offered), (0, 0), pod).best(LIMIT)
    if constraint != "unlike":
        assert answer.value == answer.upper_bound


@settings(max_examples=100, deadline=None)
@given(st.lists(gpus, min_size=1, max_size=5), pods, st.integers(0, 60))
def test_fewer_steps_never_promise_more(offered: list[Gpu], pod: Pod, steps: int) -> None:
    asked = scene(offered, (3, 3))
    short, long = asked.ask(stated(pod), limit=LIMIT, steps=steps), asked.ask(stated(pod), limit=LIMIT)
    assert short.value <= long.value
    assert short.upper_bound == long.upper_bound
