"""What the tests stand on: the customizations as they are shipped, and objects that they are asked about."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tests.interpreters.lua_vm import LuaVm, Object, Requirements

_EXAMPLES = (Path(__file__).parent / "examples", Path(__file__).parents[1] / "workloads" / "examples")


@cache
def customizations() -> dict[tuple[str, str], dict[str, Any]]:
    """The shipped objects, by the version and kind that they are for."""
    found = {}
    for file in files("manifests.karmada").joinpath("interpreters").iterdir():
        if file.name.endswith(".yaml") and file.name != "kustomization.yaml":
            customization = yaml.safe_load(file.read_text(encoding="utf-8"))
            target = customization["spec"]["target"]
            found[target["apiVersion"], target["kind"]] = customization
    return found


@cache
def vm(api_version: str, kind: str) -> LuaVm:
    """The machine for a kind; like Karmada's it is used again and again."""
    return LuaVm(customizations()[api_version, kind]["spec"]["customizations"])


def vm_for(obj: Object) -> LuaVm:
    """The machine for an object."""
    return vm(obj["apiVersion"], obj["kind"])


def job_readiness() -> LuaVm:
    """The machine of what makes Karmada collect how many pods of a Job run."""
    file = files("manifests.karmada").joinpath("optional").joinpath("job-readiness.yaml")
    text = file.read_text(encoding="utf-8")
    return LuaVm(yaml.safe_load(text)["spec"]["customizations"])


@cache
def _example_text(name: str) -> str:
    return next(path for each in _EXAMPLES if (path := each / f"{name}.yaml").is_file()).read_text()


def example(name: str) -> Object:
    """A fresh copy of an example of this package, or of those that the capacity service is tested with."""
    loaded: Object = yaml.safe_load(_example_text(name))
    return loaded


def example_names() -> list[str]:
    """All examples of kinds that have a customization."""
    return sorted(
        path.stem
        for each in _EXAMPLES
        for path in each.glob("*.yaml")
        if (loaded := yaml.safe_load(path.read_text()))
        and (loaded["apiVersion"], loaded["kind"]) in customizations()
    )


def condition(type: str, status: str = "True") -> Object:
    """A condition as controllers write it."""
    return {
        "type": type,
        "status": status,
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def asked(requirements: Requirements | None) -> str:
    """Requests and, behind @, the values of the node selector; tolerations as +key."""
    if requirements is None:
        return ""
    claim = requirements.node_claim
    request = " ".join(
        f"{name}={quantity}" for name, quantity in sorted(requirements.resource_request.items())
    )
    where = "".join(f" @{value}" for _, value in sorted(((claim and claim.node_selector) or {}).items()))
    return request + where + "".join(f" +{each.key}" for each in (claim.tolerations if claim else ()))
