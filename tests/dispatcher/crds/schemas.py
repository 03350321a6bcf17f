"""The CustomResourceDefinitions as files, their schemas, and what the doctor's validator says by them.

What is judged by the validator judges it as well: `EXAMPLES` says what is refused, and a real kube-apiserver
says the same of them (`test_real_server`).
"""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from admin.doctor.objects.written import our_schemas
from admin.doctor.refusals import refusals
from admin.doctor.structural_schema import completed

Json = Any
"""Test objects and schemas are JSON, and stay it."""

_KEY = re.compile(r"\[([^\]]*[^\]0-9][^\]]*)\]")
FOLDER = Path(__file__).parents[3] / "manifests" / "crds"
KINDS = ("ResourceFlavor", "ClusterQueue", "LocalQueue", "ServiceClass")


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

    def is_true(rule: str, value: Json) -> bool:
        return holds(rule, value, None)

    # The server writes the keys of maps as it writes fields.
    said = refusals(our_schemas()[kind], stated, is_true)
    found = [_KEY.sub(r".\1", one.field) + f": {one.told}" for one in said]
    return found if before is None else [*found, *_changes(schema(kind), stated, before, "")]


def defaulted(kind: str, spec: Json) -> Json:
    """The spec with the schema's defaults filled in."""
    return completed(our_schemas()[kind].properties["spec"], spec)


def _changes(at: Json, value: Json, before: Json, path: str) -> Iterator[str]:
    """What may not change: rules of fields, which nobody asks of a new object."""
    for rule in at.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and not holds(rule["rule"], value, before):
            yield f"{path}: {rule['message']}"
    for name, one in at.get("properties", {}).items():
        if name in value and name in before:
            yield from _changes(one, value[name], before[name], f"{path}.{name}".lstrip("."))


def holds(rule: str, value: Json, before: Json) -> bool:
    """Whether the CEL rule is true, by an engine that is asked here and not by the doctor's code."""
    result = _compiled(rule).eval(data={"self": value, "oldSelf": before})
    return result.value() is True


@cache
def _compiled(rule: str) -> Json:
    engine = importlib.import_module("cel_expr_python.cel")
    dynamic = engine.Type.DYN
    return engine.NewEnv(variables={"self": dynamic, "oldSelf": dynamic}).compile(rule)
