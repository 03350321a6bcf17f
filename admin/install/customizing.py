"""What settings change in a manifest, one small function for each place.

No templates: the manifests are whole as they are packaged, and each function here replaces one kind of value
in them and leaves the rest as it is.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from admin.install.manifest import FAIRWAY, INSTALLER, MANAGED_BY, PART_OF, Json, Manifest, manifest_of

Place = tuple[str, ...]
"""The keys above a value, lists left out."""

IMAGES: Final = frozenset({"fairway", "fairway-estimator", "fairway-webhook", "fairway-dispatcher"})


def with_texts(manifest: Manifest, change: Callable[[Place, str], str]) -> Manifest:
    """Every text of the object as ``change`` makes it of its place and what stands there."""
    return _rebuilt(manifest, {key: _changed(value, (key,), change) for key, value in manifest.body.items()})


def marked(manifest: Manifest) -> Manifest:
    """Labelled as part of Fairway and as applied by the installer, so that the way back finds it."""
    labels = {**manifest.labels, PART_OF: FAIRWAY, MANAGED_BY: INSTALLER}
    metadata = {**_below(manifest.body, "metadata"), "labels": labels}
    return _rebuilt(manifest, {**manifest.body, "metadata": metadata})


def without_aggregated_rules(manifest: Manifest) -> Manifest:
    """A ClusterRole whose rules are put together by the control plane, without any of ours in their place."""
    if "aggregationRule" not in manifest.body:
        return manifest
    return _rebuilt(manifest, {key: value for key, value in manifest.body.items() if key != "rules"})


def with_namespaces(manifest: Manifest, renamed: Mapping[str, str]) -> Manifest:
    """Namespaces under other names, wherever they are named: in metadata, subjects, addresses and flags."""
    return with_names(manifest, {old: new for old, new in renamed.items() if old != new})


def with_names(manifest: Manifest, renamed: Mapping[str, str]) -> Manifest:
    """Whole names replaced in every text; a name that is only the beginning of a longer one stays."""
    if not renamed:
        return manifest
    names = "|".join(re.escape(old) for old in sorted(renamed, key=len, reverse=True))
    pattern = re.compile(rf"(?<![a-z0-9-])({names})(?![a-z0-9-])")
    return with_texts(manifest, lambda _, text: pattern.sub(lambda found: renamed[found[1]], text))


def with_images(manifest: Manifest, registry: str, tag: str) -> Manifest:
    """Our own images from this registry with this tag; those of others stay."""

    def change(place: Place, text: str) -> str:
        if place[-1] != "image":
            return text
        name = text.rpartition("/")[2].partition("@")[0].partition(":")[0]
        return f"{registry}/{name}:{tag}" if name in IMAGES else text

    return with_texts(manifest, change)


def with_volume(manifest: Manifest, name: str, source: Json, folder: str = "") -> Manifest:
    """The volume of that name made of this source; with a ``folder`` it is added and mounted there."""

    def in_pod(pod: Json) -> Json:
        others = [each for each in _list(pod, "volumes") if _name(each) != name]
        at = next((at for at, each in enumerate(_list(pod, "volumes")) if _name(each) == name), len(others))
        return {**pod, "volumes": [*others[:at], {"name": name, **source}, *others[at:]]}

    def mounted(container: Json) -> Json:
        present = _list(container, "volumeMounts")
        mount = {"name": name, "mountPath": folder, "readOnly": True}
        return container if not folder else {**container, "volumeMounts": [*present, mount]}

    return _with_pod(_with_container(manifest, mounted), in_pod)


def with_egress(manifest: Manifest, ports: Iterable[int]) -> Manifest:
    """A NetworkPolicy that lets its pods call these TCP ports too, wherever they are."""
    spec = _below(manifest.body, "spec")
    known = {
        _below(entry, "port").get("port")
        for rule in _list(spec, "egress")
        if isinstance(rule, dict)
        for entry in ({"port": each} for each in _list(rule, "ports"))
    }
    more: list[object] = [
        {"protocol": "TCP", "port": port} for port in sorted(set(ports)) if port not in known
    ]
    if not more:
        return manifest
    spec["egress"] = [*_list(spec, "egress"), {"ports": more}]
    return _rebuilt(manifest, {**manifest.body, "spec": spec})


def with_flag(manifest: Manifest, flag: str, value: str) -> Manifest:
    """A flag of the first container with this value, where it stands or behind all others."""
    prefix = f"--{flag}="
    is_there = False

    def change(place: Place, text: str) -> str:
        nonlocal is_there
        if place[-1] not in ("args", "command") or not text.startswith(prefix):
            return text
        is_there = True
        return prefix + value

    changed = with_texts(manifest, change)
    return changed if is_there else with_arguments(changed, [prefix + value])


def with_arguments(manifest: Manifest, arguments: Sequence[str]) -> Manifest:
    """More arguments for the first container, behind those that it has; of each, only what is not there."""

    def change(container: Json) -> Json:
        key = "args" if "args" in container or "command" not in container else "command"
        present = _list(container, key)
        return {**container, key: [*present, *(each for each in arguments if each not in present)]}

    return _with_container(manifest, change)


def _with_container(manifest: Manifest, change: Callable[[Json], Json]) -> Manifest:
    def in_pod(pod: Json) -> Json:
        first, *others = _list(pod, "containers") or [{}]
        return {**pod, "containers": [change(first) if isinstance(first, dict) else first, *others]}

    return _with_pod(manifest, in_pod)


def _with_pod(manifest: Manifest, change: Callable[[Json], Json]) -> Manifest:
    spec = _below(manifest.body, "spec")
    template = _below(spec, "template")
    template["spec"] = change(_below(template, "spec"))
    return _rebuilt(manifest, {**manifest.body, "spec": {**spec, "template": template}})


def _name(item: object) -> object:
    return item.get("name") if isinstance(item, dict) else None


def _changed(value: object, place: Place, change: Callable[[Place, str], str]) -> object:
    if isinstance(value, str):
        return change(place, value)
    if isinstance(value, dict):
        return {key: _changed(below, (*place, str(key)), change) for key, below in value.items()}
    if isinstance(value, list):
        return [_changed(each, place, change) for each in value]
    return value


def _below(body: Json, key: str) -> dict[str, object]:
    value = body.get(key)
    return dict(value) if isinstance(value, dict) else {}


def _list(body: Json, key: str) -> list[object]:
    value = body.get(key)
    return list(value) if isinstance(value, list) else []


def _rebuilt(manifest: Manifest, body: Json) -> Manifest:
    return manifest_of(body, str(manifest))
