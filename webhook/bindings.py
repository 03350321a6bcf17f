"""ResourceBinding and ClusterResourceBinding of Karmada, as far as holding one depends on them.

Mirrors pkg/apis/work/v1alpha2/binding_types.go of Karmada 1.19. Every field is optional here: Karmada's own
schema refuses what lacks a required one, after the webhooks have been asked.
"""

from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct, RawResources
from fairway.names import QUEUE
from fairway.scope import Subject, asked_for
from webhook.review import GroupVersionResource

GROUP: Final = "work.karmada.io"
VERSION: Final = "v1alpha2"
NAMESPACED: Final = "resourcebindings"
CLUSTER_SCOPED: Final = "clusterresourcebindings"

_SHOWN: Final = 160


class BindingError(ValueError):
    """An object that is no binding; the message locates the field."""


class BindingMeta(KubeStruct, frozen=True):
    """Labels and annotations, by which users opt in and out."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    def has(self, name: str) -> bool:
        """Whether a label or an annotation of that name is there, with any value."""
        return name in (self.labels or ()) or name in (self.annotations or ())


class TemplateReference(KubeStruct, frozen=True):
    """The workload that the binding places."""

    api_version: str = ""
    kind: str = ""

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


class Requirements(KubeStruct, frozen=True):
    """What each replica asks for; quantities as they came."""

    resource_request: RawResources | None = None


class Component(KubeStruct, frozen=True):
    """One pod template of a workload that has several."""

    name: str = ""
    replicas: int | None = None
    replica_requirements: Requirements | None = None


class Suspension(KubeStruct, frozen=True):
    """What is suspended; the rest of it is the policy's and never touched."""

    scheduling: bool | None = None


class BindingSpec(KubeStruct, frozen=True):
    """What is to be placed, and whether it is held."""

    resource: TemplateReference = TemplateReference()
    replicas: int | None = None
    replica_requirements: Requirements | None = None
    components: list[Component] | None = None
    placement: dict[str, msgspec.Raw] | None = None
    suspension: Suspension | None = None

    @property
    def is_workload(self) -> bool:
        """Whether it runs pods, as Karmada decides: ConfigMaps and attached bindings do not."""
        return (self.replicas or 0) > 0 or self.replica_requirements is not None or bool(self.components)

    @property
    def is_held(self) -> bool:
        """Whether scheduling is suspended already."""
        return self.suspension is not None and self.suspension.scheduling is True

    def resources(self) -> frozenset[str]:
        """Of what any replica asks for more than none: of the workload, or of a component."""
        parts = [self.replica_requirements, *(part.replica_requirements for part in self.components or ())]
        return asked_for(part.resource_request for part in parts if part is not None)


class Binding(KubeStruct, frozen=True):
    """A binding of either scope."""

    metadata: BindingMeta = BindingMeta()
    spec: BindingSpec = BindingSpec()

    @property
    def subject(self) -> Subject:
        """What decides whether it waits in a queue."""
        resource = self.spec.resource
        return Subject(self.metadata.has(QUEUE), resource.kind, resource.group, self.spec.resources())


_decode = msgspec.json.Decoder(Binding).decode


def is_binding(resource: GroupVersionResource) -> bool:
    """Whether the resource is one that `read_binding` understands."""
    return (resource.group, resource.version) == (GROUP, VERSION) and resource.resource in (
        NAMESPACED,
        CLUSTER_SCOPED,
    )


def read_binding(raw: msgspec.Raw) -> Binding:
    """The binding in JSON. Raises BindingError, which says where a value of the wrong type is."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BindingError(str(error)[:_SHOWN]) from None
