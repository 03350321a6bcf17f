"""What other people's OverridePolicies say of the pod templates of workloads.

What we tell pods is in an OverridePolicy too, and Karmada applies all that are about a workload one after
the other: of two that set one field the last wins. So where somebody else's may be about what ours would
set, nothing is told: no guidance, nothing that keeps pods on the nodes of a flavor, nothing to their gang
scheduler. Of which clusters and labels theirs are is not looked at: that can change without anybody noticing.

Of our own it is known which there are: what was released before and taken back, or was about to be when its
leader died, may have one that says something else; and what suspends a workload has to go when that goes on.

Mirrors the selectors, plaintext and annotation overriders of policy.karmada.io/v1alpha1, Karmada 1.19.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from queue_dispatcher.bindings import suspending_policy
from queue_dispatcher.bindings.binding import Binding, WorkloadReference
from queue_dispatcher.bindings.override_policy import is_ours, policy_name
from queue_dispatcher.cache.table import Table
from queue_dispatcher.workloads.gang_minimum import ANNOTATIONS, annotation_path
from queue_dispatcher.workloads.pod_template import PodTemplateFacts

GUIDED_FIELDS: Final = ("affinity", "priorityClassName")
"""Of a pod's spec: what guidance sets."""
KEPT_FIELDS: Final = ("affinity", "nodeSelector", "tolerations")
"""What decides whether pods stay on the nodes of a flavor."""
_FIELDS: Final = frozenset((*GUIDED_FIELDS, *KEPT_FIELDS))
_GUIDED: Final = frozenset(GUIDED_FIELDS)
_MINIMUMS: Final = tuple(map(annotation_path, ANNOTATIONS.values()))


class _Selector(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Plaintext(KubeStruct, frozen=True):
    path: str = ""


class _Annotations(KubeStruct, frozen=True):
    value: dict[str, str] | None = None


class _Overriders(KubeStruct, frozen=True):
    plaintext: list[_Plaintext] | None = None
    annotations_overrider: list[_Annotations] | None = None


class _Rule(KubeStruct, frozen=True):
    overriders: _Overriders | None = None


class _Spec(KubeStruct, frozen=True):
    resource_selectors: list[_Selector] | None = None
    override_rules: list[_Rule] | None = None
    overriders: _Overriders | None = None


class OverridePolicyObject(KubeStruct, frozen=True):
    """policy.karmada.io/v1alpha1 OverridePolicy or ClusterOverridePolicy."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


_POLICY: Final = "/apis/policy.karmada.io/v1alpha1"
OVERRIDE_POLICIES = ResourceKind("overridepolicies", f"{_POLICY}/overridepolicies", OverridePolicyObject)
CLUSTER_OVERRIDE_POLICIES = ResourceKind(
    "clusteroverridepolicies", f"{_POLICY}/clusteroverridepolicies", OverridePolicyObject
)


@dataclass(frozen=True, slots=True)
class Override:
    """Which workloads it is about, all with none named, and the JSON pointers that it sets."""

    selectors: tuple[_Selector, ...]
    paths: frozenset[str]

    @property
    def guided_paths(self) -> tuple[str, ...]:
        """Those that name a field that guidance sets, sorted; for whose templates is not asked."""
        return tuple(sorted(path for path in self.paths if not _GUIDED.isdisjoint(path.split("/"))))

    def touches(self, workload: WorkloadReference, ours: Iterable[str]) -> bool:
        """Whether it may set any of these in the object of the workload, JSON pointers."""
        if self.selectors and not any(_selects(one, workload) for one in self.selectors):
            return False
        return any(_overlap(path, one) for path in self.paths for one in ours)


_OURS: Final = Override((), frozenset())


class Overrides:
    """Those of all namespaces; sinks of reflectors. ``changed``: called with the namespace that one is in of
    which others are there now; empty for all. ``suspends``: called with the key of a binding for which one
    that suspends it has come or gone.
    """

    def __init__(
        self,
        changed: Callable[[str], None] = lambda namespace: None,
        suspends: Callable[[str], None] = lambda key: None,
    ) -> None:
        self._changed = changed
        self._suspends = suspends
        # Others', by namespace and key: each release and each item that waits looks through those of its own.
        self._others: dict[str, dict[str, Override]] = {}
        self.policies = Table[OverridePolicyObject, Override](read_override, self._policy_changed)
        self.cluster_policies = Table[OverridePolicyObject, Override](read_override, lambda *_: changed(""))

    def touch(
        self,
        workload: WorkloadReference,
        templates: Iterable[PodTemplateFacts],
        fields: Iterable[str] = GUIDED_FIELDS,
    ) -> bool:
        """Whether anybody's may set these fields in the templates of the workload."""
        return self.set_any(
            workload, [f"{template.pointer}/{field}" for template in templates for field in fields]
        )

    def set_any(self, workload: WorkloadReference, paths: Collection[str]) -> bool:
        """Whether anybody's may set any of these in the object of the workload, JSON pointers."""
        return any(one.touches(workload, paths) for one in self._about(workload.namespace))

    def has_ours(self, binding: Binding) -> bool:
        """Whether there is a policy of ours for the binding."""
        return f"{binding.namespace}/{policy_name(binding)}" in self.policies.values

    def suspend(self, binding: Binding) -> bool:
        """Whether there is a policy of ours that suspends the workload of the binding."""
        return (
            self.policies.values.get(f"{binding.namespace}/{suspending_policy.policy_name(binding)}") is _OURS
        )

    def _policy_changed(self, key: str, before: Override | None, now: Override | None) -> None:
        if about := suspending_policy.binding_key(key):
            self._suspends(about)
        if all(one is None or one is _OURS for one in (before, now)):
            return
        namespace = key.partition("/")[0]
        others = self._others.setdefault(namespace, {})
        if now is None or now is _OURS:
            del others[key]
        else:
            others[key] = now
        if not others:
            del self._others[namespace]
        self._changed(namespace)

    def _about(self, namespace: str) -> Iterator[Override]:
        yield from self.cluster_policies.values.values()
        yield from self._others.get(namespace, {}).values()


def read_override(obj: OverridePolicyObject) -> Override | None:
    """What of a policy matters; None where it sets nothing that ours could, and is none of ours."""
    if is_ours(obj.metadata):
        return _OURS
    spec = obj.spec
    rules = [spec.overriders, *(rule.overriders for rule in spec.override_rules or ())]
    paths = {path for rule in rules if rule is not None for path in _paths(rule)}
    kept = frozenset(path for path in paths if not path or _is_of_pods(path) or _is_minimum(path))
    return Override(tuple(spec.resource_selectors or ()), kept) if kept else None


def _paths(rule: _Overriders) -> Iterator[str]:
    """What it sets, as JSON pointers."""
    yield from (one.path for one in rule.plaintext or ())
    for one in rule.annotations_overrider or ():
        yield from map(annotation_path, one.value or ())


def _is_minimum(path: str) -> bool:
    """Whether it may say how many pods start together."""
    return any(_overlap(path, one) for one in _MINIMUMS)


def _is_of_pods(path: str) -> bool:
    """Whether it is one of our fields, within one, or may be around one."""
    steps = path.split("/")
    return "spec" in steps or not _FIELDS.isdisjoint(steps)


def _selects(selector: _Selector, workload: WorkloadReference) -> bool:
    return (
        selector.kind == workload.kind
        and selector.api_version.rpartition("/")[0] == workload.group
        and selector.namespace in ("", workload.namespace)
        and selector.name in ("", workload.name)
    )


def _overlap(path: str, ours: str) -> bool:
    """Whether one is the other, or around it."""
    return f"{ours}/".startswith(f"{path}/") or f"{path}/".startswith(f"{ours}/")
