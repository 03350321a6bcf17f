"""Kustomize, as far as our kustomizations use it; what it does not know it refuses.

That it builds what `kubectl kustomize` builds is a test, wherever kubectl is. Mirrors kustomize 5.7
(api/internal/target/kusttarget.go): resources and generators, then components on all of it, then patches,
images and replacements.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import yaml

from tests.manifests.objects import Json, documents

_KNOWN = {"apiVersion", "kind", "resources", "components", "configMapGenerator"} | {
    "patches",
    "images",
    "replacements",
}
_LOCAL = "config.kubernetes.io/local-config"


class Unknown(Exception):
    """A kustomization that uses more than this knows."""


def build(folder: Path) -> list[Json]:
    """What `kubectl kustomize FOLDER` prints, in another order."""
    return [each for each in _accumulated(folder, []) if not _is_local(each)]


def _accumulated(folder: Path, objects: list[Json]) -> list[Json]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if unknown := kustomization.keys() - _KNOWN:
        raise Unknown(f"{folder}: {', '.join(sorted(unknown))}")
    for name in kustomization.get("resources", ()):
        path = folder / name
        objects = objects + (_accumulated(path, []) if path.is_dir() else documents(path.read_text()))
    objects = objects + [_config_map(folder, each) for each in kustomization.get("configMapGenerator", ())]
    for name in kustomization.get("components", ()):
        objects = _accumulated(folder / name, objects)
    for patch in kustomization.get("patches", ()):
        steps = yaml.safe_load((folder / patch["path"]).read_text())
        objects = [_patched(each, steps) if _is_target(each, patch["target"]) else each for each in objects]
    for image in kustomization.get("images", ()):
        objects = [_with_image(each, image["name"], image["newTag"]) for each in objects]
    for replacement in kustomization.get("replacements", ()):
        objects = _replaced(objects, replacement)
    return objects


def _is_local(each: Json) -> bool:
    return bool(each["metadata"].get("annotations", {}).get(_LOCAL) == "true")


def _config_map(folder: Path, generator: Json) -> Json:
    options = generator["options"]
    if options.get("disableNameSuffixHash") is not True:
        raise Unknown(f"{folder}: a name with a hash")
    metadata = {key: options[key] for key in ("labels", "annotations") if key in options}
    metadata |= {key: generator[key] for key in ("name", "namespace") if key in generator}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    files = [folder / name for name in generator.get("files", ())]
    return made | ({"data": {file.name: file.read_text() for file in files}} if files else {})


def _is_target(each: Json, target: Json) -> bool:
    if unknown := target.keys() - {"kind", "name", "labelSelector"}:
        raise Unknown(f"a target by {', '.join(sorted(unknown))}")
    key, _, value = target.get("labelSelector", "").partition("=")
    return (
        each["kind"] == target["kind"]
        and re.fullmatch(target.get("name", ".*"), each["metadata"]["name"]) is not None
        and (not key or each["metadata"].get("labels", {}).get(key) == value)
    )


def _patched(each: Json, steps: Sequence[Json]) -> Json:
    result = deepcopy(each)
    for step in steps:
        *above, key = [part.replace("~1", "/") for part in step["path"].split("/")[1:]]
        node = result
        for part in above:
            node = node[int(part)] if isinstance(node, list) else node[part]
        match step["op"], node:
            case "add", list() if key == "-":
                node.append(deepcopy(step["value"]))
            case ("add", dict()) | ("replace", dict()):
                assert step["op"] == "add" or key in node, f"{step['path']}: nothing to replace"
                node[key] = deepcopy(step["value"])
            case _:
                raise Unknown(f"a patch that does {step['op']} at {step['path']}")
    return result


def _with_image(each: Json, name: str, tag: str) -> Json:
    if each["kind"] != "Deployment":
        return each
    result = deepcopy(each)
    for container in result["spec"]["template"]["spec"]["containers"]:
        if container["image"].rpartition(":")[0] == name:
            container["image"] = f"{name}:{tag}"
    return result


def _replaced(objects: list[Json], replacement: Json) -> list[Json]:
    source = replacement["source"]
    (found,) = (each for each in objects if each["kind"] == source["kind"])
    (value,) = (get for get, _ in _fields(found, source["fieldPath"]))
    results = deepcopy(objects)
    for target in replacement["targets"]:
        options = target.get("options", {})
        for each in results:
            if each["kind"] == target["select"]["kind"]:
                for path in target["fieldPaths"]:
                    _replace(each, path, value, options)
    return results


def _replace(each: Json, path: str, value: str, options: Json) -> None:
    ((old, (node, key)),) = _fields(each, path)
    if "delimiter" in options:
        parts = old.split(options["delimiter"])
        parts[options["index"]] = value
        value = options["delimiter"].join(parts)
    node[key] = value


def _fields(each: Json, path: str) -> Iterator[tuple[Json, tuple[Json, Json]]]:
    node: Json = {"": each}
    key: Json = ""
    for part in path.split("."):
        node, key = node[key], part
        if part.startswith("[name="):
            (key,) = (index for index, item in enumerate(node) if item["name"] == part[6:-1])
        elif isinstance(node, list):
            key = int(part)
    yield node[key], (node, key)
