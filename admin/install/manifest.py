"""An object as it is to be applied, and where it is served.

The one idea: a body is JSON that nobody but the API server takes apart as a whole. What identifies the object
is read once, at the boundary; what settings change in it is done by the functions of
`admin.install.customizing`, each of which knows one place.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.install.kinds import Kind, kind_named
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.yaml_text import NoYaml, yaml_values

Json = Mapping[str, object]

PART_OF: Final = "app.kubernetes.io/part-of"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "app.kubernetes.io/component"
FAIRWAY: Final = "fairway"
INSTALLER: Final = "fairway-install"
"""Value of the label managed-by, and the field manager."""

_KUSTOMIZE: Final = "kustomize.config.k8s.io/"


class ManifestError(ValueError):
    """A manifest that cannot be used; the message names file, object and field."""


class _Head(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object to be there. ``namespace``: empty for a cluster-scoped one."""

    kind: Kind
    namespace: str
    name: str
    labels: Mapping[str, str]
    body: Json

    @property
    def path(self) -> str:
        """Where the object is served."""
        return object_path(self.kind, self.namespace, self.name)

    @property
    def collection(self) -> str:
        """Where objects of its kind and namespace are created."""
        return self.path.rpartition("/")[0]

    @property
    def component(self) -> str:
        """Which of our programs it belongs to, empty where to none."""
        return self.labels.get(COMPONENT, "")

    def __str__(self) -> str:
        return called(self.kind, self.namespace, self.name)


def called(kind: Kind, namespace: str, name: str) -> str:
    """How messages call an object: ``Deployment fairway-system/fairway-webhook``."""
    return f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"


def object_path(kind: Kind, namespace: str, name: str) -> str:
    """The URL path of one object."""
    if kind.is_namespaced:
        return f"{kind.root}/namespaces/{namespace}/{kind.plural}/{name}"
    return f"{kind.path}/{name}"


def manifest_of(body: Json, where: str) -> Manifest:
    """The object that this JSON is; ``where`` says where it was found. Raises ManifestError."""
    try:
        head = msgspec.convert(body, _Head)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{where}: {error}; expected a Kubernetes object") from None
    kind = kind_named(head.api_version, head.kind)
    if kind is None:
        raise ManifestError(f"{where}: {head.api_version} {head.kind}: expected a kind of this installation")
    if not head.metadata.name:
        raise ManifestError(f"{where}: {head.kind}: metadata.name: expected a name")
    if kind.is_namespaced != bool(head.metadata.namespace):
        expected = "a namespace" if kind.is_namespaced else "none, for it belongs to no namespace"
        raise ManifestError(
            f"{where}: {head.kind} {head.metadata.name}: metadata.namespace: expected {expected}"
        )
    return Manifest(kind, head.metadata.namespace, head.metadata.name, head.metadata.labels or {}, body)


def manifests_in(text: str, where: str) -> Iterator[Manifest]:
    """Every object of a YAML file; kustomize's own are left out. Raises ManifestError."""
    try:
        documents = yaml_values(text)
    except NoYaml as error:
        raise ManifestError(f"{where}: {error}; expected YAML") from None
    for number, document in enumerate(documents):
        if document is None or isinstance(document, list):
            # Nothing, or a patch of kustomize's.
            continue
        if not isinstance(document, dict):
            raise ManifestError(f"{where}, document {number + 1}: expected an object")
        if str(document.get("apiVersion", "")).startswith(_KUSTOMIZE):
            continue
        yield manifest_of(document, f"{where}, document {number + 1}")


def built(kind: Kind, namespace: str, name: str, body: Json, labels: Mapping[str, str]) -> Manifest:
    """An object made here; ``body`` without apiVersion, kind and metadata."""
    metadata: dict[str, object] = {"name": name, "labels": dict(labels)}
    if namespace:
        metadata["namespace"] = namespace
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}
    return Manifest(kind, namespace, name, labels, whole)


def encoded(text: str) -> str:
    """Text as a Secret's data has it."""
    return base64.b64encode(text.encode()).decode()
