"""A pod template as the member's API server would store its pods: what admission adds, and what it refuses.

LimitRanges give defaults, ExtendedResourceToleration tolerations, a RuntimeClass overhead, a node selector
and tolerations; then limits are checked. In the order, and with the words, of the admission plugins of
Kubernetes 1.36 (pkg/kubeapiserver/options/plugins.go; plugin/pkg/admission/runtimeclass). Webhooks,
PodNodeSelector and PodTolerationRestriction are not known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from estimator.cluster.admission import AdmissionMirror, RuntimeRules
from estimator.fit.device_tolerations import NOTHING_ADDED, TolerationPolicy
from estimator.fit.limit_ranges import defaulted, refusal
from fairway.kube.objects import ResourceRequirements
from fairway.kube.templates import PodTemplate, TemplateSpec
from fairway.resources import CPU, MEMORY, ResourceError, is_extended, parse_nano_list
from fairway.taints import NO_SCHEDULE, Toleration

_OVERHEAD_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_OVERHEAD_UNFOUNDED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class AdmissionView:
    """What is known of a cluster's admission; not to be kept."""

    mirror: AdmissionMirror
    tolerations: TolerationPolicy = NOTHING_ADDED


@dataclass(frozen=True, slots=True)
class Admitted:
    """The template of the pods as stored, the very same object where nothing is added.

    ``refused``: why the API server creates no such pod; empty where it does. ``unknown``: what the template
    depends on and could not be read: an answer is then not proven.
    """

    template: PodTemplate
    refused: str = ""
    unknown: tuple[str, ...] = ()


def admitted(template: PodTemplate, namespace: str, policy: AdmissionView) -> Admitted:
    """What becomes of pods of the template in a namespace of the member.

    Never raises: quantities that are none stay as they are, for whoever reads the template to refuse.
    """
    items = policy.mirror.limit_ranges.of(namespace)
    unknown: list[str] = []
    spec = template.spec
    if not items and not policy.mirror.limit_ranges.synced and _takes_defaults(spec):
        unknown.append("LimitRanges cannot be read, and containers state no cpu or memory")
    try:
        spec = defaulted(spec, items)
    except ResourceError:
        return Admitted(template, "", tuple(unknown))
    spec = _tolerating(spec, policy.tolerations, unknown)
    spec, refused = _of_its_class(spec, policy.mirror, unknown)
    if not refused:
        try:
            refused = refusal(spec, items)
        except ResourceError:
            refused = ""
    as_stored = template if spec is template.spec else replace(template, spec=spec)
    return Admitted(as_stored, refused, tuple(unknown))


def added_tolerations(
    resources: Iterable[str], tolerations: Iterable[Toleration], policy: TolerationPolicy
) -> tuple[tuple[Toleration, ...], tuple[str, ...]]:
    """What admission adds to a pod that asks for these resources, and what is not known of it."""
    if not policy.added:
        return (), ()
    has = tuple(tolerations)
    added: list[Toleration] = []
    assumed: list[str] = []
    for name in sorted(policy.added.intersection(resources)):
        if any(_covers(toleration, name) for toleration in has):
            continue
        added.append(Toleration(name, "Exists", "", NO_SCHEDULE))
        if name in policy.assumed:
            assumed.append(
                f"whether admission lets pods of {name} tolerate taints of that name is assumed, "
                "since no pod of it goes without (--extended-resource-toleration)"
            )
    return tuple(added), tuple(assumed)


def _covers(toleration: Toleration, key: str) -> bool:
    """Whether it tolerates all that the added one would."""
    return (
        toleration.operator == "Exists"
        and toleration.key in ("", key)
        and toleration.effect in ("", NO_SCHEDULE)
    )


def _takes_defaults(spec: TemplateSpec) -> bool:
    return any(not names >= {CPU, MEMORY} for names in _names(spec))


def _names(spec: TemplateSpec) -> Iterator[set[str]]:
    """For each container the resources that it states anything of."""
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        stated = container.resources or ResourceRequirements()
        yield {*(stated.requests or ()), *(stated.limits or ())}


def _tolerating(spec: TemplateSpec, policy: TolerationPolicy, unknown: list[str]) -> TemplateSpec:
    if not policy.added:
        return spec
    names = filter(is_extended, set().union(*_names(spec)))
    added, assumed = added_tolerations(names, spec.tolerations or (), policy)
    unknown += assumed
    return _with_tolerations(spec, added)


def _with_tolerations(spec: TemplateSpec, added: Iterable[Toleration]) -> TemplateSpec:
    has = spec.tolerations or []
    more = [toleration for toleration in added if toleration not in has]
    return replace(spec, tolerations=[*has, *more]) if more else spec


def _of_its_class(
    spec: TemplateSpec, mirror: AdmissionMirror, unknown: list[str]
) -> tuple[TemplateSpec, str]:
    """The pod as its RuntimeClass makes it, and why it is refused."""
    if not spec.runtime_class_name:
        return spec, _OVERHEAD_UNFOUNDED if spec.overhead else ""
    rules = mirror.runtime_classes.get(spec.runtime_class_name)
    shown = spec.runtime_class_name[:_SHOWN]
    if rules is None and mirror.runtime_classes.synced:
        return spec, f'pod rejected: RuntimeClass "{shown}" not found'
    if rules is None:
        unknown.append(f"RuntimeClasses cannot be read, so that what {shown} adds is not known")
        return spec, ""
    refused = _conflict(spec, rules) or _overhead_refused(spec, rules)
    if refused:
        return spec, refused
    if rules.overhead and not spec.overhead:
        spec = replace(spec, overhead={name: stated.text for name, stated in rules.overhead.items()})
    selector = {**(spec.node_selector or {}), **dict(rules.node_selector)}
    if selector != (spec.node_selector or {}):
        spec = replace(spec, node_selector=selector)
    return _with_tolerations(spec, rules.tolerations), ""


def _conflict(spec: TemplateSpec, rules: RuntimeRules) -> str:
    own = spec.node_selector or {}
    for key, value in rules.node_selector:
        if own.get(key, value) != value:
            key, value, stated = (text[:_SHOWN] for text in (key, value, own[key]))
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {stated}"
            )
    return ""


def _overhead_refused(spec: TemplateSpec, rules: RuntimeRules) -> str:
    if not spec.overhead:
        return ""
    if rules.overhead is None:
        return _OVERHEAD_UNFOUNDED
    try:
        same = {n: stated.nano for n, stated in rules.overhead.items()} == parse_nano_list(spec.overhead)
    except ResourceError:
        return ""
    return "" if same else _OVERHEAD_DIFFERS
