"""Pods of a workload as they would stand on nodes, for what-if questions."""

from collections.abc import Iterable, Iterator, Sequence

from admin.edits import EditError
from estimator.capacity.gangs.placements import Assignment
from fairway.accelerators.catalogue import Catalogue, DeviceClass
from fairway.kube.objects import Container, ObjectMeta, Pod, PodSpec, PodStatus, ResourceRequirements
from fairway.kube.templates import PodTemplate
from fairway.resources import ResourceError, pod_template_request
from fairway.taints import Toleration
from fairway.workloads.gang import Gang

_IN_PIECES = (DeviceClass.FRACTION, DeviceClass.MEMORY_POOL)
_EVERYTHING = [Toleration(operator="Exists")]
"""So that nothing is concluded from what these pods lack: no admission plugin has seen them."""
_KAI = ("gpu-fraction", "gpu-memory")


def bound_pods(gang: Gang, placement: Iterable[Assignment], catalogue: Catalogue) -> tuple[Pod, ...]:
    """A pod for each that the placement puts on a node.

    Raises EditError for pods that ask for parts of devices: which device they get is the scheme's choice, and
    what the others could still get depends on it.
    """
    templates = {pod_set.name: pod_set.template for pod_set in gang.pod_sets}
    for name, template in templates.items():
        if _asks_for_parts(template, catalogue):
            raise EditError(
                f"--add-pods: pod set {name} asks for parts of devices, and which device it gets is the "
                "sharing scheme's choice: ask about it instead, with --file"
            )
    return tuple(
        pod for assignment in placement for pod in _pods(gang, assignment, templates[assignment.pod_set])
    )


def _pods(gang: Gang, assignment: Assignment, template: PodTemplate) -> Iterator[Pod]:
    spec = template.spec
    bound = PodSpec(
        node_name=assignment.node,
        tolerations=_EVERYTHING,
        containers=_defaulted(spec.containers),
        init_containers=_defaulted(spec.init_containers),
        resources=spec.resources,
        overhead=spec.overhead,
        priority_class_name=spec.priority_class_name,
    )
    for number in range(assignment.pods):
        name = f"{gang.name}-{assignment.pod_set}-{assignment.node}-{number}"
        yield Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=gang.namespace or "default",
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
            ),
            spec=bound,
            status=PodStatus(phase="Running"),
        )


def _defaulted(containers: Sequence[Container] | None) -> list[Container]:
    """With limits for the requests that are missing, as the API server fills them in when a pod is made."""
    made: list[Container] = []
    for container in containers or ():
        resources = container.resources or ResourceRequirements()
        requests = {**(resources.limits or {}), **(resources.requests or {})}
        filled = ResourceRequirements(requests, resources.limits)
        made.append(Container(container.name, filled, container.restart_policy))
    return made


def _asks_for_parts(template: PodTemplate, catalogue: Catalogue) -> bool:
    if any(key in (template.metadata.annotations or {}) for key in _KAI):
        return True
    try:
        names = pod_template_request(template.spec)
    except ResourceError:
        return False
    entries = [catalogue.device(name) for name in names]
    return any(entry is not None and entry.device_class in _IN_PIECES for entry in entries)
