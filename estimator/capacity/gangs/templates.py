"""Pod templates in the estimator's own terms.

A template says more than Karmada's request does: what each container asks of devices, annotations that ask
for parts of one, where pods must be with respect to each other. What both say comes out the same, claim and
amounts, so that an answer does not depend on which way the question came.

A template that Kubernetes would refuse becomes a pod that fits nowhere, with a problem that says why.
"""

from collections.abc import Iterator
from dataclasses import replace

from estimator.capacity.claims import RawTerm, RawToleration, node_claim
from estimator.capacity.gangs.pod_affinity import RefusedTemplate, distances
from estimator.capacity.topology.tpu_units import SLICE_TOPOLOGY
from estimator.fit.pod_shape import NodeClaim, PodClaim, PodShape
from estimator.fit.pod_volumes import pod_volumes
from fairway.accelerators import hami_claims, kai, volcano_vgpu
from fairway.accelerators.hami_vendors import VENDORS
from fairway.kube.objects import Container, LabelSelector, ResourceRequirements
from fairway.kube.templates import Affinity, NodeAffinity, NodeSelector, PodTemplate, TemplateSpec
from fairway.pod_terms import required_terms
from fairway.resources import (
    Amounts,
    ResourceError,
    container_template_request,
    contradicted_by_pod,
    is_extended,
    is_scheduled,
    pod_template_request,
)
from fairway.selectors import FIELD_NAME, Operator, Term, field_requirement

DEVICE_ANNOTATIONS: tuple[str, ...] = tuple(
    sorted(
        {
            SLICE_TOPOLOGY,
            kai.FRACTION,
            kai.GPU_MEMORY,
            kai.NUM_DEVICES,
            hami_claims.POLICY,
            hami_claims.SOFT_MODE,
            volcano_vgpu.MODE,
            volcano_vgpu.GROUP_POLICY,
            volcano_vgpu.USE_ID,
            volcano_vgpu.AVOID_ID,
        }.union(
            name
            for vendor in VENDORS
            for name in (
                vendor.use_type,
                vendor.avoid_type,
                vendor.mode,
                vendor.same_numa,
                *vendor.use_id,
                *vendor.avoid_id,
            )
            if name
        )
    )
)
"""The annotations of a pod by which sharing schemes decide what it gets of devices."""

MAX_RULES = 1000
"""Containers, resources, tolerations, requirements and constraints of a template; others have some tens.

Each part of a label selector is looked at for all pods that run."""


def shape_of(template: PodTemplate, field: str, problems: list[str], namespace: str = "") -> PodShape:
    """The shape of each pod made from the template; ``field`` is where it stands, for messages.

    ``namespace``: that of the pods, in which their claims and the templates of these are.

    What is not looked at is added to ``problems``; so is what Kubernetes would refuse, and then the shape
    fits nowhere.
    """
    spec_field = f"{field}.spec"
    try:
        _refuse_excess(template.spec, spec_field)
        apart = distances(template, spec_field, namespace, problems)
        containers = _containers(template.spec, spec_field)
        total = _total(template.spec, spec_field)
        claims = _claims(template.spec, spec_field, namespace)
    except RefusedTemplate as error:
        problems.append(f"{error}; read as a pod that fits nowhere")
        return nowhere(template)
    excess = _beyond(total, containers)
    annotations = template.metadata.annotations or {}
    return PodShape(
        requests=tuple(sorted((n, amount) for n, amount in total.items() if amount > 0 and is_scheduled(n))),
        claim=_claim(template.spec),
        priority_class=template.spec.priority_class_name,
        containers=(*containers, excess) if excess else containers,
        annotations=tuple((key, annotations[key]) for key in DEVICE_ANNOTATIONS if key in annotations),
        per_domain=apart.per_domain,
        spread=apart.spread,
        claims=claims,
        inter_pod=apart.inter_pod,
        volumes=pod_volumes(template.spec, apart.inter_pod.namespace, tell=problems.append),
    )


def _refuse_excess(spec: TemplateSpec, field: str) -> None:
    """Raises RefusedTemplate for a template that would take minutes to work with."""
    rules = sum(_rules(spec))
    if rules > MAX_RULES:
        what = "containers, resources, claims, tolerations, affinity requirements and spread constraints"
        raise RefusedTemplate(f"{field}: {rules} {what} in all: expected at most {MAX_RULES}")


def _rules(spec: TemplateSpec) -> Iterator[int]:
    lists = (spec.tolerations, spec.topology_spread_constraints, spec.resource_claims)
    yield from (len(rules or ()) for rules in lists)
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        resources = container.resources or ResourceRequirements()
        yield 1 + len(resources.requests or ()) + len(resources.limits or ())
    affinity = spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinity()
    required = node_affinity.required_during_scheduling_ignored_during_execution or NodeSelector()
    for term in required.node_selector_terms or ():
        yield 1 + len(term.match_expressions or ()) + len(term.match_fields or ())
    for pods in (affinity.pod_affinity, affinity.pod_anti_affinity):
        for affinity_term in required_terms(pods):
            yield 1 + _parts(affinity_term.label_selector) + _parts(affinity_term.namespace_selector)
    yield from (_parts(constraint.label_selector) for constraint in spec.topology_spread_constraints or ())


def _parts(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels or ()) + len(selector.match_expressions or ())


_Container = tuple[tuple[str, int], ...]


def _containers(spec: TemplateSpec, field: str) -> tuple[_Container, ...]:
    """The extended resources of each container that runs as long as the pod does. Raises RefusedTemplate."""
    found: list[_Container] = []
    for index, container in enumerate(spec.init_containers or ()):
        asked = _asked(container, f"{field}.initContainers[{index}]")
        if container.restart_policy == "Always":
            found.append(asked)
    for index, container in enumerate(spec.containers or ()):
        found.append(_asked(container, f"{field}.containers[{index}]"))
    return tuple(asked for asked in found if asked)


def _asked(container: Container, field: str) -> _Container:
    try:
        amounts = container_template_request(container)
    except ResourceError as error:
        raise RefusedTemplate(f"{field}.resources: {error}") from None
    return tuple(sorted((name, amount) for name, amount in amounts.items() if is_extended(name)))


def _claims(spec: TemplateSpec, field: str, namespace: str) -> tuple[PodClaim, ...]:
    """The claims on devices that each pod names. Raises RefusedTemplate."""
    found: list[PodClaim] = []
    for index, stated in enumerate(spec.resource_claims or ()):
        named = [name for name in (stated.resource_claim_name, stated.resource_claim_template_name) if name]
        if len(named) != 1:
            raise RefusedTemplate(
                f"{field}.resourceClaims[{index}]: expected one of resourceClaimName and "
                f"resourceClaimTemplateName, found {len(named)}"
            )
        claim = PodClaim(f"{namespace}/{named[0]}", is_shared=bool(stated.resource_claim_name))
        if not (claim.is_shared and claim in found):
            found.append(claim)
    return tuple(found)


def _total(spec: TemplateSpec, field: str) -> Amounts:
    try:
        if contradiction := contradicted_by_pod(spec):
            raise RefusedTemplate(f"{field}.{contradiction}")
        return pod_template_request(spec)
    except ResourceError as error:  # of the pod itself, as its containers have been read
        raise RefusedTemplate(f"{field}.resources or {field}.overhead: {error}") from None


def _beyond(total: Amounts, containers: tuple[_Container, ...]) -> _Container:
    """What init containers ask for above all that run later, as if by one container more."""
    left = {name: amount for name, amount in total.items() if is_extended(name)}
    for container in containers:
        for name, amount in container:
            left[name] -= amount
    return tuple(sorted((name, amount) for name, amount in left.items() if amount > 0))


def _claim(spec: TemplateSpec) -> NodeClaim:
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    terms: tuple[RawTerm, ...] = tuple(
        (
            tuple((r.key, r.operator, tuple(r.values or ())) for r in term.match_expressions or ()),
            tuple((r.key, r.operator, tuple(r.values or ())) for r in term.match_fields or ()),
        )
        for term in (required.node_selector_terms if required else None) or ()
    )
    selector = tuple(sorted((spec.node_selector or {}).items()))
    tolerations: tuple[RawToleration, ...] = tuple(
        (t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()
    )
    claim = node_claim(selector, terms, tolerations, _size(selector, terms, tolerations))
    if not spec.node_name:
        return claim
    here = field_requirement(FIELD_NAME, Operator.IN, (spec.node_name,))
    affinity = (Term(),) if claim.affinity is None else claim.affinity
    return replace(claim, affinity=tuple(Term(term.labels, (*term.fields, here)) for term in affinity))


def _size(
    selector: tuple[tuple[str, str], ...], terms: tuple[RawTerm, ...], tolerations: tuple[RawToleration, ...]
) -> int:
    """About as many bytes as the claim would take on the wire."""
    size = sum(len(text) + 2 for pair in (*selector, *tolerations) for text in pair)
    for term in terms:
        for requirements in term:
            for key, operator, values in requirements:
                size += len(key) + len(operator) + sum(len(value) + 2 for value in values) + 6
    return size


def nowhere(template: PodTemplate) -> PodShape:
    """A shape that no node takes; it still names the devices that the template asks for."""
    spec = template.spec
    names: set[str] = set()
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        resources = container.resources or ResourceRequirements()
        names.update(resources.requests or (), resources.limits or ())
    devices = tuple((name, 1) for name in sorted(names) if is_extended(name))
    return PodShape(devices, NodeClaim(affinity=()), spec.priority_class_name)
