"""The OverridePolicy that tells the pods of one workload in its clusters where to go, and where to stay, and
their gang scheduler how many start together.

It is there before the release is, for Karmada reads policies when it makes the Work, and a template that runs
may not change. So it is never changed either while its workload is placed: it belongs to the binding, and
the garbage collector of the control plane takes it away once that is gone, which is after its Works are.

Mirrors OverridePolicy of policy.karmada.io/v1alpha1, Karmada 1.19; seen live: 15 of 15 Jobs had in their
first Work what a policy said that was created just before the release. A plaintext entry under something
that is not there fails the whole Work, so each sets what has its parent there; the annotations of the object
itself have an overrider that makes what it needs.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from fairway.kube.objects import ObjectMeta
from fairway.names import GANG_CLASSES, GUIDANCE
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.workloads.gang_minimum import WORKLOAD, GangMinimum, Together
from queue_dispatcher.workloads.guidance import Guidance, Guided
from queue_dispatcher.workloads.keeping import Kept, Told
from queue_dispatcher.workloads.pod_template import NODE_AFFINITY, PREFERRED

API_VERSION: Final = "policy.karmada.io/v1alpha1"
KIND: Final = "OverridePolicy"
MAX_NAME: Final = 253
NO_LABELS: Final[Mapping[str, str]] = {}
_WEIGHT: Final = 100
# Less by as much as kube-scheduler adds for nodes that are emptier, and as much more than those not named.
_SPARE_WEIGHT: Final = 50


def policy_path(binding: Binding) -> str:
    """Where the policy of a binding is served; the binding has a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{binding.namespace}/overridepolicies/{policy_name(binding)}"


def policy_name(binding: Binding) -> str:
    """What the policy of a binding is called.

    A workload that is made anew under its name has a binding of the same name, only after the one before and
    its Works are gone: so what is left of that one's policy is found, and says nothing about it.
    """
    name = f"fairway-{binding.name}"
    if len(name) <= MAX_NAME:
        return name
    return f"fairway-{hashlib.sha256(binding.name.encode()).hexdigest()}"


def is_ours(metadata: ObjectMeta) -> bool:
    """Whether the policy is Fairway's, whatever it is called."""
    return GUIDANCE in (metadata.labels or {})


def override_policy(
    binding: Binding,
    guidance: tuple[Guidance, ...],
    kept: tuple[Kept, ...] = (),
    together: Together | None = None,
) -> Mapping[str, object]:
    """The policy, as it is to be applied: what pods prefer, on which nodes they are kept, and how many start
    together.
    """
    rules = [
        *([_together(together)] if together is not None else ()),
        *(rule(one.clusters, [entry for told in one.pods for entry in _told(told)]) for one in kept),
        *(rule((one.cluster,), [entry for pods in one.pods for entry in _entries(pods)]) for one in guidance),
    ]
    return policy_of(binding, policy_name(binding), rules)


def policy_of(
    binding: Binding, name: str, rules: Sequence[Mapping[str, object]], labels: Mapping[str, str] = NO_LABELS
) -> Mapping[str, object]:
    """A policy of ours about the workload of the binding, to which it belongs."""
    workload = binding.workload
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": binding.namespace,
            "labels": {GUIDANCE: "true", **labels},
            "ownerReferences": [
                {
                    "apiVersion": "work.karmada.io/v1alpha2",
                    "kind": "ResourceBinding",
                    "name": binding.name,
                    "uid": binding.uid,
                }
            ],
        },
        "spec": {
            "resourceSelectors": [
                {
                    "apiVersion": workload.api_version,
                    "kind": workload.kind,
                    "namespace": workload.namespace,
                    "name": workload.name,
                }
            ],
            "overrideRules": list(rules),
        },
    }


def rule(clusters: Sequence[str], entries: list[Mapping[str, object]]) -> Mapping[str, object]:
    """What is said in these clusters, in all where none is named."""
    return {**_where(clusters), "overriders": {"plaintext": entries}}


def _where(clusters: Sequence[str]) -> Mapping[str, object]:
    return {"targetCluster": {"clusterNames": list(clusters)}} if clusters else {}


def _together(told: Together) -> Mapping[str, object]:
    own = [_annotations(one) for one in told.minimums if one.pointer == WORKLOAD]
    within = [add(one.path, _metadata(one)) for one in told.minimums if one.pointer != WORKLOAD]
    return {
        **_where(told.clusters),
        "overriders": {
            **({"annotationsOverrider": own} if own else {}),
            **({"plaintext": within} if within else {}),
        },
    }


def _annotations(told: GangMinimum) -> Mapping[str, object]:
    return {"operator": "add", "value": {told.annotation: str(told.pods)}}


def _metadata(told: GangMinimum) -> Mapping[str, object]:
    """What stands in the metadata of a job template already, with what is told."""
    annotations = {**dict(told.stated or ()), told.annotation: str(told.pods)}
    return annotations if told.stated is not None else {"annotations": annotations}


def _told(told: Told) -> Iterator[Mapping[str, object]]:
    for field, value in told.fields():
        yield add(f"{told.template.pointer}/{field}", value)


def add(path: str, value: object) -> Mapping[str, object]:
    """An entry that puts a value at a JSON pointer; what it stands in has to be there."""
    return {"path": path, "operator": "add", "value": value}


def _entries(pods: Guided) -> Iterator[Mapping[str, object]]:
    pointer = pods.template.pointer
    yield add(f"{pointer}/affinity", _affinity(pods))
    if pods.rank:
        yield add(f"{pointer}/priorityClassName", GANG_CLASSES[pods.rank - 1])


def _affinity(pods: Guided) -> Mapping[str, object]:
    """What the template says already, and that its pods prefer these nodes."""
    stated = pods.template.affinity
    terms: list[object] = [
        *map(msgspec.json.decode, stated.preferred),
        *(_term(node, node in pods.spare) for node in pods.nodes),
    ]
    on_nodes = {field: msgspec.json.decode(said) for field, said in stated.on_nodes}
    others = {field: msgspec.json.decode(said) for field, said in stated.others}
    return {**others, NODE_AFFINITY: {**on_nodes, PREFERRED: terms}}


def _term(node: str, is_spare: bool) -> Mapping[str, object]:
    # By its name: the label kubernetes.io/hostname may say something else.
    expression = {"key": "metadata.name", "operator": "In", "values": [node]}
    weight = _SPARE_WEIGHT if is_spare else _WEIGHT
    return {"weight": weight, "preference": {"matchFields": [expression]}}
