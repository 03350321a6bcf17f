"""CustomResourceDefinitions as the doctor reads them: apiextensions.k8s.io/v1."""

import msgspec

from fairway.kube.objects import Condition, KubeStruct, ObjectMeta

_NULL = msgspec.Raw(b"null")


class Schema(KubeStruct, frozen=True):
    """The schema of one version, as it came."""

    open_api_v3_schema: msgspec.Raw = msgspec.field(default=_NULL, name="openAPIV3Schema")


class DefinedVersion(KubeStruct, frozen=True):
    """One version of the kind."""

    name: str = ""
    served: bool = False
    storage: bool = False
    schema: Schema = Schema()


class DefinitionNames(KubeStruct, frozen=True):
    """What the kind is called."""

    kind: str = ""


class DefinitionSpec(KubeStruct, frozen=True):
    """The spec of a CustomResourceDefinition."""

    group: str = ""
    names: DefinitionNames = DefinitionNames()
    scope: str = ""
    versions: list[DefinedVersion] | None = None


class DefinitionStatus(KubeStruct, frozen=True):
    """Whether the API server serves it."""

    conditions: list[Condition] | None = None


class CustomResourceDefinition(KubeStruct, frozen=True):
    """A CustomResourceDefinition."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

    def schema(self, version: str) -> object:
        """The schema of a version as plain values, None where it has none of that name."""
        found: object = msgspec.json.decode(self.schema_text(version))
        return found

    def schema_text(self, version: str) -> msgspec.Raw:
        """The same as JSON."""
        stated = (each.schema.open_api_v3_schema for each in self.spec.versions or () if each.name == version)
        return next(stated, _NULL)
