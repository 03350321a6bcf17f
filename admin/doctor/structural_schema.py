"""Structural schemas as CustomResourceDefinitions state them, as far as Fairway's own do.

A keyword that is not known here is an error when the schema is read: what is not judged must not pass.
"""

from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct

_NOTHING: Final = msgspec.UNSET


class Rule(KubeStruct, frozen=True):
    """A condition in CEL over the value that has it, as ``self``."""

    rule: str = ""
    message: str = ""
    field_path: str = ""


class Schema(KubeStruct, frozen=True, forbid_unknown_fields=True):
    """What one value may be.

    ``property_names`` and ``title``, what the value is in a few words, are of JSON Schema; no
    CustomResourceDefinition of ours has them.
    """

    type: str = ""
    title: str = ""
    description: str = ""
    format: str = ""
    properties: "dict[str, Schema]" = msgspec.field(default_factory=dict)
    required: tuple[str, ...] = ()
    additional_properties: "Schema | None" = None
    property_names: "Schema | None" = None
    max_properties: int | None = None
    items: "Schema | None" = None
    min_items: int | None = None
    max_items: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    default: object = _NOTHING
    any_of: "tuple[Schema, ...]" = ()
    is_int_or_string: bool = msgspec.field(default=False, name="x-kubernetes-int-or-string")
    list_type: str = msgspec.field(default="", name="x-kubernetes-list-type")
    list_map_keys: tuple[str, ...] = msgspec.field(default=(), name="x-kubernetes-list-map-keys")
    map_type: str = msgspec.field(default="", name="x-kubernetes-map-type")
    rules: tuple[Rule, ...] = msgspec.field(default=(), name="x-kubernetes-validations")

    def child(self, name: str) -> "Schema | None":
        """The schema of a field or of a map's value; None where there is no such field."""
        return self.properties.get(name, self.additional_properties)


_SCHEMAS: Final = msgspec.json.Decoder(Schema)


def read_schema(text: bytes | msgspec.Raw) -> Schema:
    """The schema in a JSON text. Raises msgspec.ValidationError for a keyword that is not known."""
    return _SCHEMAS.decode(text)


def completed(schema: Schema, value: object) -> object:
    """The value as an API server has it before it judges it: nulls left out of maps, defaults filled in."""
    if isinstance(value, list):
        items = schema.items
        return value if items is None else [completed(items, one) for one in value]
    if not isinstance(value, dict):
        return value
    stated: dict[str, object] = {}
    for name, one in value.items():
        child = schema.child(name)
        if child is None:
            stated[name] = one
        elif one is not None:
            stated[name] = completed(child, one)
    for name, child in schema.properties.items():
        if name not in stated and child.default is not _NOTHING:
            stated[name] = child.default
    return stated
