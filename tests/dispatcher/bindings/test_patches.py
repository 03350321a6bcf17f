"""Patches applied to bindings, as an API server would, by the five lines of RFC 7386."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.bindings import patches
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.derivation import read_state
from queue_dispatcher.bindings.patches import Patch
from queue_dispatcher.bindings.record import write_record
from queue_dispatcher.bindings.requeue import Suspended, write_requeue
from queue_dispatcher.bindings.state import Admitted, Growing, HeldWithin, Pending, Reassert, Shrinking, State
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import NO_FACTS
from tests.dispatcher.bindings.builders import (
    CREATED_MS,
    UID,
    Object,
    binding,
    phase_of,
    rb,
    read,
    record,
    requeue,
)
from tests.dispatcher.workloads.builders import LAW

SUSPENDED = replace(requeue(), suspended=Suspended("m1", (("nvidia.com/gpu", ("f",)),)))
ALL: dict[str, Callable[[Binding], Patch]] = {
    "admit": lambda one: patches.admit(one, record()),
    "shrink": lambda one: patches.shrink(one, record(1)),
    "clear hold": lambda one: patches.clear_hold(one, None),
    "clear hold and lower": lambda one: patches.clear_hold(one, record(1)),
    "take back": lambda one: patches.take_back(one, requeue()),
    "leave": lambda one: patches.leave(one, (Placed("m2", 3), Placed("m3", 0))),
    "hold": patches.hold,
    "release": lambda one: patches.release(one, "8"),
    "clear": patches.clear,
    "suspend": lambda one: patches.suspend(one, SUSPENDED),
    "wait on": lambda one: patches.wait_on(one, SUSPENDED),
    "give up": lambda one: patches.give_up(one, requeue()),
}


def merged(target: object, patch: object) -> object:
    """What a JSON merge patch makes of a value."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def applied(obj: Object, patch: Patch) -> Object:
    result = merged(copy.deepcopy(obj), patch)
    assert isinstance(result, dict)
    return result


def state(one: Binding) -> State:
    team = Resolved("research", "team")
    return read_state(one, NO_FACTS, team, in_scope=True, copies=1, phase=phase_of(one), seen_ms=CREATED_MS)


@pytest.mark.parametrize("name", ALL)
def test_each_is_about_the_binding_as_it_was_read(name: str) -> None:
    metadata = ALL[name](binding())["metadata"]
    assert isinstance(metadata, Mapping)
    assert metadata["uid"] == UID
    assert metadata["resourceVersion"] == ("8" if name == "release" else "7")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "admit",
            {
                "metadata": {"annotations": {ADMISSION: write_record(record()), REQUEUE: None}},
                "spec": {"suspension": {"scheduling": False}},
            },
        ),
        ("shrink", {"metadata": {"annotations": {ADMISSION: write_record(record(1))}}}),
        ("clear hold", {"metadata": {}, "spec": {"suspension": {"scheduling": False}}}),
        (
            "clear hold and lower",
            {
                "metadata": {"annotations": {ADMISSION: write_record(record(1))}},
                "spec": {"suspension": {"scheduling": False}},
            },
        ),
        (
            "take back",
            {
                "metadata": {"annotations": {ADMISSION: None, REQUEUE: write_requeue(requeue())}},
                "spec": {"suspension": {"scheduling": True}},
            },
        ),
        ("hold", {"metadata": {}, "spec": {"suspension": {"scheduling": True}}}),
        ("release", {"metadata": {}, "spec": {"suspension": {"scheduling": False}}}),
        ("clear", {"metadata": {}, "spec": {"suspension": {"scheduling": True}, "clusters": []}}),
        (
            "suspend",
            {
                "metadata": {"annotations": {ADMISSION: None, REQUEUE: write_requeue(SUSPENDED)}},
                "spec": {"suspension": {"scheduling": True}, "clusters": [{"name": "m1"}]},
            },
        ),
        ("wait on", {"metadata": {"annotations": {REQUEUE: write_requeue(SUSPENDED)}}}),
        (
            "give up",
            {
                "metadata": {"annotations": {REQUEUE: write_requeue(requeue())}},
                "spec": {"suspension": {"scheduling": True}, "clusters": []},
            },
        ),
        ("leave", {"metadata": {}, "spec": {"clusters": [{"name": "m2", "replicas": 3}, {"name": "m3"}]}}),
    ],
)
def test_the_bodies(name: str, expected: dict[str, dict[str, object]]) -> None:
    patch = copy.deepcopy(ALL[name](binding()))
    metadata = patch["metadata"]
    assert isinstance(metadata, dict)
    del metadata["uid"], metadata["resourceVersion"]
    assert patch == expected


def test_what_was_suspended_is_cleared_to_where_it_was() -> None:
    patch = patches.clear(binding(requeue=SUSPENDED, placed={"m1": 2, "m2": 2}))
    assert patch["spec"] == {"suspension": {"scheduling": True}, "clusters": [{"name": "m1"}]}


JOB_SET: Object = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "namespace": "ns",
    "name": "train",
}
COMPONENTS: list[Object] = [{"name": "workers", "replicas": 4}]


@pytest.mark.parametrize(
    ("spec", "stays"),
    [({}, {"name": "m1", "replicas": 4}), ({"components": COMPONENTS, "replicas": 0}, {"name": "m1"})],
    ids=["replicas", "components"],
)
def test_what_has_a_switch_stays_placed_as_it_is(spec: Object, stays: Object) -> None:
    one = binding(placed={"m1": 4}, record=record(), held=False, spec={"resource": JOB_SET, **spec})
    assert patches.suspend(one, SUSPENDED)["spec"] == {
        "suspension": {"scheduling": True},
        "clusters": [stays],
    }
    elsewhere = binding(placed={"m2": 4}, requeue=SUSPENDED, spec={"resource": JOB_SET, **spec})
    assert patches.clear(elsewhere)["spec"] == {"suspension": {"scheduling": True}, "clusters": [stays]}


def test_nothing_is_suspended_without_saying_where() -> None:
    with pytest.raises(ValueError, match="expected where"):
        patches.suspend(binding(), requeue())


@pytest.mark.parametrize("name", ["clear", "leave", "give up"])
def test_pods_that_would_be_stranded_are_not_cleared(name: str) -> None:
    one = binding(spec={"preserveResourcesOnDeletion": True})
    with pytest.raises(ValueError, match="ns/train-job: preserveResourcesOnDeletion"):
        ALL[name](one)


def step(obj: Object, patch: Patch) -> tuple[Object, State]:
    after = applied(obj, patch)
    return after, state(read(after))


def test_a_life_of_a_workload_in_patches() -> None:
    obj = rb(replicas=4)
    assert isinstance(state(read(obj)), Pending)
    obj, now = step(obj, patches.admit(read(obj), record(4)))
    assert isinstance(now, Admitted)
    obj, now = step(obj, patches.take_back(read(obj), requeue()))
    assert isinstance(now, Pending)
    assert now.tries == 1
    placed = {"clusters": [{"name": "a", "replicas": 4}]}
    _, now = step({**obj, "spec": {**spec_of(obj), **placed}}, {})
    assert now == Reassert()
    obj, now = step(obj, patches.clear(read(obj)))
    assert isinstance(now, Pending)
    obj, now = step(obj, patches.admit(read(obj), record(4)))
    assert isinstance(now, Admitted)
    grown = {**obj, "spec": {**spec_of(obj), **placed, "replicas": 6, "suspension": {"scheduling": True}}}
    assert isinstance(state(read(grown)), Growing)
    obj, now = step(grown, patches.admit(read(grown), record(6)))
    assert isinstance(now, Admitted)
    smaller: Object = {**obj, "spec": {**spec_of(obj), "replicas": 3}}
    now = state(read(smaller))
    assert isinstance(now, Shrinking)
    obj, now = step(smaller, patches.shrink(read(smaller), now.record))
    assert now == Admitted(record(3), now.phase) if isinstance(now, Admitted) else False
    obj, now = step(obj, patches.hold(read(obj)))
    assert isinstance(now, HeldWithin)
    obj, now = step(obj, patches.release(read(obj), "9"))
    assert isinstance(now, Admitted)


def spec_of(obj: Object) -> Object:
    spec = obj["spec"]
    assert isinstance(spec, dict)
    return spec


_LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
_OTHER = st.dictionaries(
    st.sampled_from(("a", "b", "dispatching", "x/y")), st.lists(_LEAF, max_size=2), max_size=3
)
_OBJECTS = st.builds(
    lambda annotations, labels, suspension, more, clusters, held: rb(
        annotations=annotations,
        metadata={"labels": labels, "finalizers": ["karmada.io/binding-controller"]},
        held=None,
        placed=clusters,
        spec={**more, "suspension": {**suspension, "scheduling": held}},
    ),
    st.dictionaries(st.sampled_from(("a", "policy", ADMISSION, REQUEUE)), st.text(max_size=4), max_size=4),
    st.dictionaries(st.sampled_from(("a", "b")), st.text(max_size=4)),
    st.dictionaries(st.sampled_from(("dispatching", "dispatchingOnClusters")), _OTHER | st.booleans()),
    _OTHER,
    st.none() | st.dictionaries(st.sampled_from(("m1", "m2")), st.integers(0, 9)),
    st.none() | st.booleans(),
)


@LAW
@given(_OBJECTS, st.sampled_from(sorted(ALL)))
def test_no_patch_changes_anything_but_our_own_fields(obj: Object, name: str) -> None:
    patch = ALL[name](read(obj))
    before, after = stripped(obj, name), stripped(applied(obj, patch), name)
    assert after == before
    assert applied(applied(obj, patch), patch) == applied(obj, patch)


def stripped(obj: Object, name: str) -> Object:
    """The object without what the patch may change."""
    rest = copy.deepcopy(obj)
    metadata, spec = rest["metadata"], rest["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    metadata.pop("resourceVersion")
    for key in (ADMISSION, REQUEUE):
        metadata["annotations"].pop(key, None)
    spec["suspension"].pop("scheduling", None)
    if name in ("clear", "leave", "suspend", "give up"):
        spec.pop("clusters", None)
    return rest
