"""Rendered objects: how they are read, told apart and compared."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

Json = Any
"""Manifests are JSON, and stay it."""
Key = tuple[str, str, str, str]

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
CHART = MANIFESTS / "chart" / "fairway"
OVERLAYS = ("host-cluster", "kind", "estimator-per-member", "estimator-for-many", "estimator-elsewhere")
HOST_OVERLAYS = OVERLAYS[:-1]
FOLDERS = (
    *(f"overlays/{name}" for name in OVERLAYS),
    "base",
    "karmada",
    "member",
    "member/node-agent",
    "member/notify",
    "karmada/notify",
    "overlays/notify",
    "member/node-agent/monitoring",
    "monitoring",
)
"""Everything that `kubectl apply -k` is meant for."""


def documents(text: str) -> list[Json]:
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each is not None]


def key_of(each: Json) -> Key:
    metadata = each["metadata"]
    return each["apiVersion"], each["kind"], metadata.get("namespace", ""), metadata["name"]


def by_key(objects: Iterable[Json]) -> dict[Key, Json]:
    found: dict[Key, Json] = {}
    for each in objects:
        assert key_of(each) not in found, f"{key_of(each)} twice"
        found[key_of(each)] = each
    return found


def of_kind(objects: Iterable[Json], *kinds: str) -> Iterator[Json]:
    return (each for each in objects if each["kind"] in kinds)


def pod_of(deployment: Json) -> Json:
    return deployment["spec"]["template"]["spec"]


def container_of(deployment: Json) -> Json:
    (container,) = pod_of(deployment)["containers"]
    return container


def without_namespaces(objects: Iterable[Json]) -> list[Json]:
    """Helm is told to create the namespace that it installs into; a chart has none."""
    return [each for each in objects if each["kind"] != "Namespace"]
