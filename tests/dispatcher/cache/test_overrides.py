"""Whether somebody else's policies may say what guidance would."""

import json
from dataclasses import replace

import msgspec
import pytest

from fairway.kube.objects import ObjectMeta
from fairway.names import GUIDANCE
from queue_dispatcher.bindings import suspending_policy
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.override_policy import policy_name
from queue_dispatcher.cache.overrides import KEPT_FIELDS, OverridePolicyObject, Overrides
from queue_dispatcher.workloads.pod_template import PodTemplateFacts
from tests.dispatcher.bindings.builders import binding

TRAIN = WorkloadReference("batch/v1", "Job", "team", "train")
POD = PodTemplateFacts("main", "/spec/template/spec")
ANY = [{"apiVersion": "batch/v1", "kind": "Job"}]


def policy(
    path: str, selectors: object = ANY, *, namespace: str = "team", old: bool = False
) -> OverridePolicyObject:
    overriders = {"plaintext": [{"path": path, "operator": "add", "value": 1}]}
    rules = {"overriders": overriders} if old else {"overrideRules": [{"overriders": overriders}]}
    made = {
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"resourceSelectors": selectors, **rules},
    }
    return msgspec.json.decode(json.dumps(made), type=OverridePolicyObject)


PATHS = [
    ("/spec/template/spec/affinity", True),
    ("/spec/template/spec/affinity/nodeAffinity", True),
    ("/spec/template/spec/priorityClassName", True),
    ("/spec/template/spec", True),
    ("/spec/template", True),
    ("", True),
    ("/spec/template/spec/nodeSelector", False),
    ("/spec/template/spec/affinityX", False),
    ("/spec/parallelism", False),
    ("/metadata/labels/a", False),
    ("/spec/other/spec/affinity", False),
]


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(("path", "touches"), PATHS)
def test_by_what_it_sets(path: str, touches: bool, old: bool) -> None:
    overrides = Overrides()
    overrides.policies.upsert(policy(path, old=old))
    assert overrides.touch(TRAIN, [POD]) is touches


KEPT = [
    ("/spec/template/spec/nodeSelector", True),
    ("/spec/template/spec/nodeSelector/gpu", True),
    ("/spec/template/spec/tolerations/0", True),
    ("/spec/template/spec/affinity", True),
    ("/spec/template", True),
    ("/spec/template/spec/priorityClassName", False),
    ("/spec/template/spec/containers/0/image", False),
]


@pytest.mark.parametrize(("path", "touches"), KEPT)
def test_by_what_decides_which_nodes_pods_are_on(path: str, touches: bool) -> None:
    overrides = Overrides()
    overrides.policies.upsert(policy(path))
    assert overrides.touch(TRAIN, [POD], KEPT_FIELDS) is touches


MINIMUM = "scheduling.volcano.sh/group-min-member"
OF_JOB = f"/metadata/annotations/{MINIMUM.replace('/', '~1')}"
OF_SET = "/spec/replicatedJobs/0/template/metadata/annotations"
ANNOTATIONS = [
    (OF_JOB, OF_JOB, True),
    ("/metadata/annotations", OF_JOB, True),
    ("/metadata", OF_JOB, True),
    ("", OF_JOB, True),
    ("/metadata/annotations/a", OF_JOB, False),
    ("/metadata/labels", OF_JOB, False),
    ("/spec/template/spec/affinity", OF_JOB, False),
    (f"{OF_SET}/a", OF_SET, True),
    ("/spec/replicatedJobs/0/template", OF_SET, True),
    ("/spec/replicatedJobs/1/template", OF_SET, False),
    (OF_JOB, OF_SET, False),
]


@pytest.mark.parametrize(("path", "ours", "sets"), ANNOTATIONS)
def test_by_what_says_how_many_start_together(path: str, ours: str, sets: bool) -> None:
    overrides = Overrides()
    overrides.policies.upsert(policy(path))
    assert overrides.set_any(TRAIN, [ours]) is sets


@pytest.mark.parametrize(("annotation", "sets"), [(MINIMUM, True), ("a", False)])
@pytest.mark.parametrize("operator", ["add", "remove"])
def test_by_the_annotations_that_it_sets(annotation: str, operator: str, sets: bool) -> None:
    annotates = {"annotationsOverrider": [{"operator": operator, "value": {annotation: "2"}}]}
    made = {
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"resourceSelectors": ANY, "overrideRules": [{"overriders": annotates}]},
    }
    overrides = Overrides()
    overrides.policies.upsert(msgspec.json.decode(json.dumps(made), type=OverridePolicyObject))
    assert overrides.set_any(TRAIN, [OF_JOB]) is sets
    assert not overrides.touch(TRAIN, [POD])


def test_it_is_told_where_others_are_there_now() -> None:
    told: list[str] = []
    overrides = Overrides(told.append)
    overrides.policies.upsert(policy("/metadata/labels/a"))
    overrides.policies.upsert(policy("/spec/template/spec/affinity"))
    overrides.policies.delete("team/p")
    overrides.cluster_policies.upsert(policy("/spec/template/spec/affinity", namespace=""))
    assert told == ["team", "team", ""]


SELECTORS = [
    (None, True),
    ([], True),
    ([{"apiVersion": "batch/v1", "kind": "Job", "name": "train"}], True),
    ([{"apiVersion": "batch/v1beta1", "kind": "Job", "namespace": "team"}], True),
    ([{"apiVersion": "batch/v1", "kind": "Job", "labelSelector": {"matchLabels": {"a": "b"}}}], True),
    ([{"apiVersion": "batch/v1", "kind": "Job", "name": "other"}], False),
    ([{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}], False),
    ([{"apiVersion": "batch/v1", "kind": "Job", "namespace": "others"}], False),
    ([{"apiVersion": "apps/v1", "kind": "Deployment"}, *ANY], True),
]


@pytest.mark.parametrize(("selectors", "touches"), SELECTORS)
def test_by_what_it_is_about(selectors: object, touches: bool) -> None:
    overrides = Overrides()
    overrides.cluster_policies.upsert(policy("/spec/template/spec/affinity", selectors, namespace=""))
    assert overrides.touch(TRAIN, [POD]) is touches


def test_by_namespace_and_while_it_is_there() -> None:
    overrides = Overrides()
    overrides.policies.upsert(policy("/spec/template/spec/affinity", namespace="others"))
    assert not overrides.touch(TRAIN, [POD])
    overrides.policies.upsert(policy("/spec/template/spec/affinity"))
    assert overrides.touch(TRAIN, [POD])
    overrides.policies.delete("team/p")
    assert not overrides.touch(TRAIN, [POD])


def test_ours_are_known_and_touch_nobody() -> None:
    overrides, of = Overrides(), binding()
    ours = policy("/spec/template/spec/affinity", namespace=of.namespace)
    named = ObjectMeta(name=policy_name(of), namespace=of.namespace, labels={"fairway.dev/guidance": "true"})
    overrides.policies.upsert(msgspec.structs.replace(ours, metadata=named))
    assert overrides.has_ours(of)
    # Made anew under its name, and the policy of the one before is not collected yet.
    assert overrides.has_ours(replace(of, uid="anew"))
    assert not overrides.has_ours(replace(of, name="other"))
    assert not overrides.touch(of.workload, [POD])
    overrides.policies.delete(f"{of.namespace}/{policy_name(of)}")
    assert not overrides.has_ours(of)


def test_what_suspends_a_workload_is_ours_alone_and_told_by_its_binding() -> None:
    told: list[str] = []
    overrides, made = Overrides(suspends=told.append), binding()
    theirs = policy("/spec/suspend", namespace=made.namespace)
    named = ObjectMeta(suspending_policy.policy_name(made), "ns")
    overrides.policies.upsert(msgspec.structs.replace(theirs, metadata=named))
    assert not overrides.suspend(made)
    ours = ObjectMeta(suspending_policy.policy_name(made), "ns", labels={GUIDANCE: "true"})
    overrides.policies.upsert(OverridePolicyObject(metadata=ours))
    assert overrides.suspend(made)
    assert not overrides.set_any(made.workload, ["/spec/suspend"])
    overrides.policies.delete(f"ns/{ours.name}")
    assert not overrides.suspend(made)
    # That guides others, or the same, says nothing of it.
    guides = ObjectMeta(policy_name(made), "ns", labels={GUIDANCE: "true"})
    overrides.policies.upsert(OverridePolicyObject(metadata=guides))
    assert (overrides.suspend(made), told) == (False, [made.key] * 3)
