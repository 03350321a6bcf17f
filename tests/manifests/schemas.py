"""Kubernetes' own schemas of its objects, release by release, in the strict form that refuses unknown fields.

They come with the package kubernetes-validate; its own check loads 3 MB for each object, so ours keeps them.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jsonschema
import kubernetes_validate
from referencing import Registry, Resource

from tests.manifests.objects import Json

RELEASES = tuple(f"1.{minor}" for minor in range(30, 37))
"""Every release of Kubernetes that hosts, members and karmada-apiserver may be of."""

_FOLDER = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"


def problems(each: Json, release: str) -> list[str]:
    """What the release's schema says against an object: place and reason."""
    errors = _validator(release, each["apiVersion"], each["kind"]).iter_errors(each)
    return [f"{error.json_path}: {error.message}" for error in errors]


def knows(each: Json, release: str) -> bool:
    """Whether the release has the object's kind at all."""
    return _file(release, each["apiVersion"], each["kind"]).is_file()


def _file(release: str, api_version: str, kind: str) -> Path:
    group, _, version = api_version.rpartition("/")
    name = f"{kind.lower()}-{group.partition('.')[0]}-{version}" if group else f"{kind.lower()}-{version}"
    return _FOLDER / f"v{release}.0-local-strict" / f"{name}.json"


@cache
def _registry(release: str) -> Registry[Json]:
    return Registry().with_resources(_definitions(release))


def _definitions(release: str) -> Iterator[tuple[str, Resource[Json]]]:
    contents = json.loads((_FOLDER / f"v{release}.0-local-strict" / "_definitions.json").read_text())
    resource = Resource.from_contents(contents)
    yield contents.get("$id", "_definitions.json"), resource


@cache
def _validator(release: str, api_version: str, kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(_file(release, api_version, kind).read_text())
    return jsonschema.Draft202012Validator(schema, registry=_registry(release))
