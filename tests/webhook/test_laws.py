"""Laws of the decision on anything that may come: idempotent, touching one leaf, and never at a loss."""

from copy import deepcopy

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import HELD_AT, QUEUE, SKIP
from fairway.scope import Scope
from sandbox.fakeapi.patching import json_patch
from tests.webhook.builders import AT, Obj, binding, component, request, review, spec
from tests.webhook.cel import Evaluator
from webhook.match_conditions import creation_conditions, growth_conditions
from webhook.review import ReviewError, read_review, write_review
from webhook.suspend import Outcome, decide

SCOPE = Scope(builtin_catalogue())
CREATION = Evaluator(creation_conditions(SCOPE))
GROWTH = Evaluator(growth_conditions(SCOPE))

quantities = st.one_of(
    st.integers(-2, 4), st.sampled_from(["0", "1", "2", "500m", "1Gi", "1024Mi", "1e3", "?"])
)
names = st.sampled_from(
    ["cpu", "memory", "nvidia.com/gpu", "google.com/tpu", "rdma/hca", "example.com/output"]
)
requests = st.one_of(st.none(), st.dictionaries(names, quantities, max_size=3))
replicas = st.integers(0, 3)
components = st.one_of(
    st.none(),
    st.lists(
        st.builds(component, st.sampled_from("abc"), replicas, requests),
        max_size=3,
        unique_by=lambda each: each["name"],
    ),
)
suspensions = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "scheduling": st.booleans(),
            "dispatching": st.booleans(),
            "dispatchingOnClusters": st.just({"clusterNames": ["b", "a"]}),
        },
    ),
)
marks = st.one_of(
    st.none(), st.dictionaries(st.sampled_from([QUEUE, SKIP, "team"]), st.just("x"), max_size=2)
)


@st.composite
def specs(draw: st.DrawFn) -> Obj:
    return spec(
        draw(requests),
        replicas=draw(st.one_of(st.none(), replicas)),
        components=draw(components),
        suspension=draw(suspensions),
        placement=draw(st.sampled_from([None, {}, {"clusterAffinity": {}}])),
    )


bindings = st.builds(binding, specs(), labels=marks, annotations=marks)

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda values: st.one_of(
        st.lists(values, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(
                    ["spec", "metadata", "labels", "replicas", "components", "suspension", "name"]
                ),
                st.text(max_size=4),
            ),
            values,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


def refusal(body: bytes) -> str:
    """Why the body is no review; nothing where it was decided."""
    try:
        decide(read_review(body), SCOPE, managed=False, at=AT)
    except ReviewError as error:
        return str(error)
    return ""


@given(bindings, st.booleans())
def test_a_patch_sets_the_leaf_alone_and_is_made_once(obj: Obj, managed: bool) -> None:
    decision = decide(request(obj), SCOPE, managed=managed, at=AT)
    patch = decision.response.patch
    if patch is None:
        return
    held = json_patch(obj, msgspec.json.decode(patch))
    wanted = deepcopy(obj)
    wanted["spec"]["suspension"] = {**(obj["spec"].get("suspension") or {}), "scheduling": True}
    wanted["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), HELD_AT: AT}
    assert held == wanted
    assert decide(request(held), SCOPE, managed=managed, at=AT).outcome is Outcome.ALREADY_HELD
    # Another answer to the same question may be applied on top: the API server calls again after others.
    assert json_patch(held, msgspec.json.decode(patch))["spec"]["suspension"]["scheduling"] is True


@given(bindings)
def test_the_conditions_of_a_creation_say_what_the_webhook_says(obj: Obj) -> None:
    held = decide(request(obj), SCOPE, managed=False, at=AT).response.patch is not None
    assert CREATION.matches(object=obj, oldObject=None) == held


@given(bindings, bindings)
def test_the_conditions_of_a_growth_say_what_the_webhook_says(old: Obj, new: Obj) -> None:
    held = decide(request(new, old), SCOPE, managed=False, at=AT).response.patch is not None
    assert GROWTH.matches(object=new, oldObject=old) == held


@given(bindings)
def test_an_update_that_changes_no_size_is_never_held(obj: Obj) -> None:
    new = deepcopy(obj)
    new["spec"]["clusters"] = [{"name": "member1", "replicas": 2}]
    new["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["other"]}}
    new["metadata"]["annotations"] = {"fairway.dev/admission": "{}", QUEUE: "late"}
    assert decide(request(new, obj), SCOPE, managed=True, at=AT).response.patch is None


@given(json_values, json_values)
def test_any_objects_are_answered(new: object, old: object) -> None:
    for operation in ("CREATE", "UPDATE", "DELETE"):
        asked = request(new, old, operation=operation)
        decision = decide(asked, SCOPE, managed=True, at=AT)
        answer = msgspec.json.decode(write_review(asked.uid, decision.response))
        assert answer["response"]["allowed"] is True


@given(st.one_of(st.binary(max_size=200), json_values.map(msgspec.json.encode)))
def test_any_body_is_answered_or_refused(body: bytes) -> None:
    assert len(refusal(body)) < 500


@given(json_values, st.sampled_from(["kind", "apiVersion", "request", "uid", "resource", "operation"]))
def test_any_value_in_any_field_of_a_review_is_answered_or_refused(value: object, field: str) -> None:
    asked = review(binding(spec({"nvidia.com/gpu": 1})))
    (asked if field in asked else asked["request"])[field] = value
    assert len(refusal(msgspec.json.encode(asked))) < 500
