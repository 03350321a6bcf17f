"""The CustomResourceDefinitions as files, their schemas, and a validator of what our schemas use.

The validator is small because the schemas are: it does what kube-apiserver does for the keywords that occur
in them, CEL rules by a real engine included, and refuses to judge a keyword that it does not know.
"""

import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Json = Any
"""Test objects and schemas are JSON, and stay it."""

FOLDER = Path(__file__).parents[3] / "manifests" / "crds"
KINDS = ("ResourceFlavor", "ClusterQueue", "LocalQueue", "ServiceClass")
_KNOWN = {
    *("description", "type", "properties", "required", "additionalProperties", "maxProperties", "items"),
    *("maxItems", "minItems", "maxLength", "minLength", "pattern", "enum", "minimum", "maximum", "anyOf"),
    *("default", "format"),
    *("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
    *("x-kubernetes-map-type", "x-kubernetes-int-or-string"),
}
_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


@cache
def definition(kind: str) -> Json:
    """The CustomResourceDefinition of the kind."""
    return yaml.safe_load((FOLDER / f"fairway.dev_{plural(kind)}.yaml").read_text())


def plural(kind: str) -> str:
    return {"ServiceClass": "serviceclasses"}.get(kind, kind.lower() + "s")


def schema(kind: str) -> Json:
    """Its schema."""
    return definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(at: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema inside the schema, itself first, by path."""
    yield path, at
    for name, one in at.get("properties", {}).items():
        yield from nodes(one, f"{path}.{name}")
    for keyword, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in at:
            yield from nodes(at[keyword], path + suffix)


def errors(kind: str, stated: Json, before: Json = None) -> list[str]:
    """What kube-apiserver would answer to the object (as an update of ``before``), as path and message."""
    return list(_errors(schema(kind), defaulted(schema(kind), stated), before, ""))


def defaulted(at: Json, value: Json) -> Json:
    """The value with the schema's defaults filled in."""
    if isinstance(value, Mapping):
        properties = at.get("properties", {})
        known = {
            name: defaulted(one, value[name] if name in value else one["default"])
            for name, one in properties.items()
            if name in value or "default" in one
        }
        inner = at.get("additionalProperties", {})
        return {**{name: defaulted(inner, one) for name, one in value.items()}, **known}
    if isinstance(value, list):
        return [defaulted(at.get("items", {}), one) for one in value]
    return value


def _errors(at: Json, value: Json, before: Json, path: str) -> Iterator[str]:
    assert set(at) <= _KNOWN, f"{path}: this validator knows nothing of {set(at) - _KNOWN}"
    wanted = at.get("type")
    if wanted and (not isinstance(value, _TYPES[wanted]) or (wanted == "integer" and value is True)):
        yield f"{path}: expected {wanted}"
        return
    if "anyOf" in at and not isinstance(value, int | str):
        yield f"{path}: expected integer or string"
        return
    if "enum" in at and value not in at["enum"]:
        yield f"{path}: Unsupported value"
    match value:
        case str():
            yield from _text_errors(at, value, path)
        case int():
            if value < at.get("minimum", value) or value > at.get("maximum", value):
                yield f"{path}: should be between minimum and maximum"
        case list():
            yield from _list_errors(at, value, before, path)
        case Mapping():
            yield from _object_errors(at, value, before, path)
    for rule in at.get("x-kubernetes-validations", ()):
        if not holds(rule["rule"], value, before):
            yield f"{path}{rule.get('fieldPath', '')}: {rule['message']}"


def _text_errors(at: Json, value: str, path: str) -> Iterator[str]:
    if not at.get("minLength", 0) <= len(value) <= at.get("maxLength", len(value)):
        yield f"{path}: Too long or too short"
    if "pattern" in at and not re.search(at["pattern"], value):
        yield f"{path}: should match the pattern"


def _list_errors(at: Json, value: Json, before: Json, path: str) -> Iterator[str]:
    if not at.get("minItems", 0) <= len(value) <= at.get("maxItems", len(value)):
        yield f"{path}: Too many or too few"
    keys = at.get("x-kubernetes-list-map-keys")
    if at.get("x-kubernetes-list-type") in ("set", "map"):
        identities = [str([one.get(key) for key in keys] if keys else one) for one in value]
        if len(set(identities)) < len(identities):
            yield f"{path}: Duplicate value"
    for index, one in enumerate(value):
        yield from _errors(at["items"], one, None, f"{path}[{index}]")


def _object_errors(at: Json, value: Json, before: Json, path: str) -> Iterator[str]:
    for name in at.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: Required value"
    if len(value) > at.get("maxProperties", len(value)):
        yield f"{path}: Too many"
    for name, one in value.items():
        inner = at.get("properties", {}).get(name) or at.get("additionalProperties")
        if inner:
            yield from _errors(inner, one, (before or {}).get(name), f"{path}.{name}")


def holds(rule: str, value: Json, before: Json) -> bool:
    """Whether the CEL rule is true; a transition rule holds where there is nothing before."""
    if "oldSelf" in rule and before is None:
        return True
    result = _compiled(rule).eval(data={"self": value, "oldSelf": before})
    return result.value() is True


@cache
def _compiled(rule: str) -> Json:
    engine = importlib.import_module("cel_expr_python.cel")
    dynamic = engine.Type.DYN
    return engine.NewEnv(variables={"self": dynamic, "oldSelf": dynamic}).compile(rule)
