"""The files that are shipped: made from their sources, all listed, of the shape that Karmada's API takes."""

from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from manifests.karmada.interpreters import generate
from tests.interpreters.lua_vm import Object
from tests.interpreters.objects import customizations, vm

FOLDER = files("manifests.karmada").joinpath("interpreters")
SCHEMA: Object = yaml.safe_load((Path(__file__).parent / "customization_schema.yaml").read_text())


@pytest.mark.parametrize("name", generate.files())
def test_files_are_what_their_sources_make(name: str) -> None:
    assert FOLDER.joinpath(name).read_text(encoding="utf-8") == generate.files()[name], (
        "run python -m manifests.karmada.interpreters.generate"
    )


def test_every_file_is_made_and_listed() -> None:
    names = {each.name for each in FOLDER.iterdir() if each.name.endswith(".yaml")}
    assert names == set(generate.files())
    listed = yaml.safe_load(FOLDER.joinpath("kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert set(listed) == names - {"kustomization.yaml"}


def test_every_source_is_used() -> None:
    made = "".join(generate.files().values())
    for source in (generate.HERE / "lua").rglob("*.lua"):
        text = source.read_text(encoding="utf-8")
        line = next(line for line in text.splitlines() if line.strip() and "REPLICA_SPECS" not in line)
        assert line in made, source


def _problems(value: object, schema: Object, path: str = "") -> list[str]:
    """What a strict API server would refuse; the schema uses nothing but types, properties and required."""
    if not isinstance(value, dict if schema["type"] == "object" else str):
        return [f"{path}: expected {schema['type']}"]
    known: Object = schema.get("properties", {})
    if not isinstance(value, dict) or not known:
        return []
    missing = [f"{path}.{key}: missing" for key in schema.get("required", ()) if key not in value]
    unknown = [f"{path}.{key}: unknown" for key in value if key not in known]
    inside = [
        problem
        for key in value
        if key in known
        for problem in _problems(value[key], known[key], f"{path}.{key}")
    ]
    return missing + unknown + inside


@pytest.mark.parametrize("target", customizations())
def test_karmadas_schema_takes_it(target: tuple[str, str]) -> None:
    customization = customizations()[target]
    assert _problems(customization, SCHEMA) == []
    assert customization["apiVersion"] == "config.karmada.io/v1alpha1"
    assert customization["metadata"]["labels"]["app.kubernetes.io/part-of"] == "fairway"


def test_the_schema_refuses() -> None:
    bad: Object = {
        "kind": 3,
        "spec": {"target": {"kind": "Job"}, "customizations": {"health": {}, "retention": {}}},
    }
    assert _problems(bad, SCHEMA) == [
        ".kind: expected string",
        ".spec.target.apiVersion: missing",
        ".spec.customizations.health: unknown",
        ".spec.customizations.retention.luaScript: missing",
    ]


def test_kinds_that_karmada_interprets_itself_are_marked() -> None:
    marked = {
        kind
        for (_, kind), each in customizations().items()
        if each["metadata"]["labels"].get("fairway.dev/replaces-built-in") == "true"
    }
    assert marked == {"Job", "RayCluster", "RayJob"}


@pytest.mark.parametrize("target", customizations())
def test_no_kind_has_two_answers_to_one_question(target: tuple[str, str]) -> None:
    assert vm(*target).operations() >= {
        "replicaResource",
        "healthInterpretation",
        "statusAggregation",
        "dependencyInterpretation",
    }
    # Without reflection Karmada collects the whole status, which is what says that a workload has ended.
    assert "statusReflection" not in vm(*target).operations()
