"""The decision on one review: what is held, that nothing but the flag is touched, what is not understood."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import parse_catalogue
from fairway.names import HELD_AT
from fairway.scope import Scope, WorkloadKind, parse_workload_kind
from sandbox.fakeapi.patching import json_patch
from tests.webhook.builders import AT, CPU, GPU, Obj, binding, component, request, sets, spec
from tests.webhook.cases import CREATIONS, UPDATES, Creation, Update
from webhook.suspend import Decision, Outcome, decide

SCOPE = Scope(builtin_catalogue())


def decided(new: object, old: object = None, *, scope: Scope = SCOPE, managed: bool = False) -> Decision:
    return decide(request(new, old), scope, managed=managed, at=AT)


def patched(obj: Obj, decision: Decision) -> Obj:
    patch = decision.response.patch
    result: Obj = obj if patch is None else json_patch(obj, msgspec.json.decode(patch))
    return result


def without_flag(obj: Obj) -> Obj:
    """The object with nothing said of scheduling, as if the flag had never been there, nor its note."""
    rest = deepcopy(obj)
    annotations = rest["metadata"].get("annotations") or {}
    annotations.pop(HELD_AT, None)
    if not annotations:
        rest["metadata"].pop("annotations", None)
    suspension = rest["spec"].get("suspension") or {}
    suspension.pop("scheduling", None)
    if not suspension:
        rest["spec"].pop("suspension", None)
    return rest


@pytest.mark.parametrize("case", CREATIONS, ids=str)
def test_a_creation_is_held_or_not(case: Creation) -> None:
    decision = decided(case.binding)
    assert (decision.outcome is Outcome.HELD_CREATION) == case.held
    assert (decision.response.patch is not None) == case.held
    assert not decision.response.warnings


@pytest.mark.parametrize("case", UPDATES, ids=str)
def test_an_update_is_held_or_not(case: Update) -> None:
    decision = decided(case.new, case.old)
    assert (decision.outcome is Outcome.HELD_GROWTH) == case.held
    assert (decision.response.patch is not None) == case.held


@pytest.mark.parametrize("case", [case for case in CREATIONS if case.held], ids=str)
def test_the_patch_sets_the_flag_and_nothing_else(case: Creation) -> None:
    held = patched(case.binding, decided(case.binding))
    assert held["spec"]["suspension"]["scheduling"] is True
    assert held["metadata"]["annotations"][HELD_AT] == AT
    assert without_flag(held) == without_flag(case.binding)
    assert decided(held).outcome is Outcome.ALREADY_HELD


@pytest.mark.parametrize(
    "suspension",
    [
        {"dispatching": True},
        {"dispatching": False, "scheduling": None},
        {"dispatchingOnClusters": {"clusterNames": ["b", "a"]}, "scheduling": False},
    ],
)
def test_what_a_policy_suspends_stays_byte_for_byte(suspension: Obj) -> None:
    obj = binding(spec(GPU, suspension=suspension))
    held = patched(obj, decided(obj))["spec"]["suspension"]
    assert msgspec.json.encode(held | {"scheduling": None}) == msgspec.json.encode(
        suspension | {"scheduling": None}
    )


@pytest.mark.parametrize("annotations", [None, {}, {"a/b": "c", HELD_AT: "before"}])
def test_it_is_noted_when_it_was_held(annotations: Obj | None) -> None:
    obj = binding(spec(GPU))
    obj["metadata"]["annotations"] = annotations
    grown = binding(spec(GPU, replicas=9))
    grown["metadata"]["annotations"] = annotations
    for held in (patched(obj, decided(obj)), patched(grown, decided(grown, obj))):
        assert held["metadata"]["annotations"] == {**(annotations or {}), HELD_AT: AT}


def test_who_observes_holds_nothing_and_says_what_would_be_held() -> None:
    small, big, plain = binding(spec(GPU)), binding(spec(GPU, replicas=9)), binding(spec(CPU))
    for new, old, outcome in (
        (small, None, Outcome.WOULD_HOLD_CREATION),
        (big, small, Outcome.WOULD_HOLD_GROWTH),
        (small, big, Outcome.NO_GROWTH),
        (plain, None, Outcome.OUT_OF_SCOPE),
    ):
        decision = decide(request(new, old), SCOPE, managed=False, at=AT, observe=True)
        assert decision.outcome is outcome
        assert decision.response.patch is None


def test_a_null_suspension_is_none() -> None:
    obj = binding(spec(GPU))
    obj["spec"]["suspension"] = None
    assert patched(obj, decided(obj))["spec"]["suspension"] == {"scheduling": True}


def test_a_dry_run_is_answered_the_same() -> None:
    obj = binding(spec(GPU))
    dry = decide(request(obj, dryRun=True), SCOPE, managed=False, at=AT)
    assert dry == decided(obj)


def test_a_cluster_scoped_binding_is_held_too() -> None:
    assert decided(binding(spec(GPU), kind="ClusterResourceBinding")).outcome is Outcome.HELD_CREATION


@pytest.mark.parametrize(
    ("obj", "outcome"),
    [
        (binding(spec(CPU)), Outcome.HELD_CREATION),
        (binding(spec(CPU), labels={"fairway.dev/skip": ""}), Outcome.SKIPPED),
        (binding(spec(CPU, placement=None)), Outcome.NO_WORKLOAD),
        (binding(spec(replicas=None)), Outcome.NO_WORKLOAD),
    ],
)
def test_in_a_managed_namespace_every_workload_is_held(obj: Obj, outcome: Outcome) -> None:
    assert decided(obj, managed=True).outcome is outcome


@pytest.mark.parametrize(
    ("kind", "resource", "held"),
    [
        ("Job.batch", {"apiVersion": "batch/v1", "kind": "Job"}, True),
        ("Job.batch", {"apiVersion": "batch/v2alpha1", "kind": "Job"}, True),
        ("Job.batch", {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}, False),
        ("Job.batch", {"apiVersion": "batch/v1", "kind": "CronJob"}, False),
        ("Pod", {"apiVersion": "v1", "kind": "Pod"}, True),
        ("Pod", {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "Pod"}, False),
    ],
)
def test_a_listed_kind_is_held_whatever_it_asks_for(kind: str, resource: Obj, held: bool) -> None:
    scope = Scope(builtin_catalogue(), frozenset([parse_workload_kind(kind)]))
    obj = binding(spec(CPU, resource=resource | {"name": "w"}))
    assert (decided(obj, scope=scope).outcome is Outcome.HELD_CREATION) == held


@pytest.mark.parametrize(
    "text", ["", "job.batch", "Job.", "batch/v1/Job", "Job.Batch", "J ob", "Job." + "a" * 254]
)
def test_a_kind_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected KIND\.GROUP"):
        parse_workload_kind(text)


def test_kinds_are_written_as_they_are_read() -> None:
    assert [str(parse_workload_kind(text)) for text in ("Job.batch", "Pod")] == ["Job.batch", "Pod"]
    assert parse_workload_kind("RayJob.ray.io") == WorkloadKind("RayJob", "ray.io")


def test_an_administrators_catalogue_decides() -> None:
    rules = parse_catalogue("- pattern: example.com/output\n  class: whole\n", "own.yaml")
    obj = binding(spec({"example.com/output": "1"}))
    assert decided(obj).outcome is Outcome.OUT_OF_SCOPE
    assert decided(obj, scope=Scope(builtin_catalogue().extended_by(rules))).outcome is Outcome.HELD_CREATION


@pytest.mark.parametrize(
    ("new", "old", "grown"),
    [
        (spec(GPU, replicas=6), spec(GPU), "replicas from 2 to 6"),
        (spec({"nvidia.com/gpu": 2}), spec(GPU), "requests of nvidia.com/gpu from 1 to 2"),
        (spec(CPU | GPU), spec(CPU), "requests of nvidia.com/gpu from none to 1"),
        (
            sets(component("a", 1, GPU), component("b", 1)),
            sets(component("a", 1, GPU)),
            "components from 1 to 2",
        ),
        (sets(component("b", 1, GPU)), sets(component("a", 1, GPU)), "component b is new"),
        (
            sets(component("a", 3, GPU)),
            sets(component("a", 1, GPU)),
            "replicas of component a from 1 to 3",
        ),
        (
            sets(component("a", 1, {"nvidia.com/gpu": 4})),
            sets(component("a", 1, GPU)),
            "requests of nvidia.com/gpu from 1 to 4 in component a",
        ),
    ],
)
def test_what_grew_is_said_and_goes_to_the_audit_log(new: Obj, old: Obj, grown: str) -> None:
    decision = decided(binding(new), binding(old))
    assert decision.detail == f"growth: {grown}"
    assert dict(decision.response.audit) == {"held": f"growth: {grown}"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"resource": {"group": "apps", "version": "v1", "resource": "deployments"}},
            "no binding of Karmada",
        ),
        (
            {"resource": {"group": "work.karmada.io", "version": "v1alpha1", "resource": "resourcebindings"}},
            "no binding of Karmada",
        ),
        (
            {"resource": {"group": "work.karmada.io", "version": "v1alpha2", "resource": "works"}},
            "no binding",
        ),
        ({"subResource": "status"}, "no binding of Karmada"),
        ({"operation": "DELETE"}, "operation DELETE: expected CREATE or UPDATE"),
        ({"operation": ""}, "expected CREATE or UPDATE"),
        ({"object": None}, "Expected `object`, got `null`"),
        ({"object": "text"}, "Expected `object`, got `str`"),
        ({"object": []}, "Expected `object`, got `array`"),
        ({"object": {"spec": {"replicas": "2"}}}, "$.spec.replicas"),
        ({"object": {"spec": {"components": [{"replicas": {}}]}}}, "$.spec.components[0].replicas"),
        ({"object": {"metadata": {"labels": ["a"]}}}, "$.metadata.labels"),
        ({"object": {"spec": {"suspension": "yes"}}}, "$.spec.suspension"),
    ],
)
def test_what_is_not_understood_passes_with_a_warning(fields: dict[str, Any], problem: str) -> None:
    decision = decide(request(binding(spec(GPU)), **fields), SCOPE, managed=True, at=AT)
    assert decision.outcome is Outcome.NOT_UNDERSTOOD
    assert decision.response.patch is None
    assert problem in decision.response.warnings[0]
    assert decision.response.warnings[0].startswith("fairway: not held: ")


def test_an_old_object_that_is_none_passes_with_a_warning() -> None:
    decision = decide(request(binding(spec(GPU)), {"spec": 1}), SCOPE, managed=False, at=AT)
    assert decision.outcome is Outcome.NOT_UNDERSTOOD
    assert "$.spec" in decision.response.warnings[0]
