"""Whether a pod may ask for what a workload states: amounts and names that kube-apiserver refuses are none.

kube-scheduler never sees such pods, so that an answer for them would be about nothing: it passes over names
without a domain, and less than nothing fits anywhere. Mirrors validateContainerResourceName and
ValidateResourceQuantityValue of pkg/apis/core/validation/validation.go, Kubernetes 1.36.
"""

from collections.abc import Iterable, Iterator

from fairway.kube.objects import RawQuantity, RawResources
from fairway.kube.templates import TemplateSpec
from fairway.quantity import MAX_INT64, NANO, QuantityError, parse_nano
from fairway.resources import HUGEPAGES_PREFIX, is_extended
from fairway.workloads.gang import PodSet

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_NATIVE_DOMAIN = "kubernetes.io/"


def refusal(name: str, raw: RawQuantity) -> str:
    """What was expected where no pod may ask for so much of it; empty where one may."""
    if "/" not in name and name not in _STANDARD and not name.startswith(HUGEPAGES_PREFIX):
        return (
            f"expected cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain, such as "
            f"nvidia.com/{name}"
        )
    if "/" in name and _NATIVE_DOMAIN not in name and not is_extended(name):
        return "expected DOMAIN/NAME, such as nvidia.com/gpu"
    try:
        nano = parse_nano(0 if raw is None else raw)
    except QuantityError as error:
        return str(error)
    if nano < 0:
        return "expected 0 or more"
    if nano >= MAX_INT64 * NANO:
        return "expected less than 2^63"
    if is_extended(name) and nano % NANO:
        return "expected whole devices"
    return ""


def refusals(pod_sets: Iterable[PodSet]) -> Iterator[str]:
    """What kube-apiserver would refuse of the templates, each with its place."""
    for pod_set in pod_sets:
        for place, resources in _lists(pod_set.template.spec):
            for name, raw in (resources or {}).items():
                why = refusal(name, raw)
                if why:
                    yield f"pods {pod_set.name!r}: {place}: {name} {raw}: {why}"


def _lists(spec: TemplateSpec) -> Iterator[tuple[str, RawResources | None]]:
    for kind, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for n, container in enumerate(containers or ()):
            if container.resources is not None:
                at = f"{kind}[{n}] ({container.name}): resources"
                yield f"{at}.requests", container.resources.requests
                yield f"{at}.limits", container.resources.limits
    if spec.resources is not None:
        yield "resources.requests", spec.resources.requests
        yield "resources.limits", spec.resources.limits
    yield "overhead", spec.overhead
