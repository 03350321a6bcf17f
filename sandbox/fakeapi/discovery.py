"""What a group and version serves: ``GET /apis/GROUP/VERSION`` and ``GET /api/VERSION``.

Served is what a CustomResourceDefinition says, and whatever has objects: any other path answers too, but
nobody could know of it.
"""

import msgspec

from sandbox.fakeapi.store import ApiFault, Obj, Store

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def group_version_of(path: str) -> str | None:
    """``v1`` or ``apps/v1`` for a path that asks what is served there; None for every other path."""
    match path.strip("/").split("/"):
        case ["api", version]:
            return version
        case ["apis", group, version]:
            return f"{group}/{version}"
    return None


def resources(store: Store, group_version: str) -> bytes:
    """The APIResourceList. Raises ApiFault where nothing of that group and version is served."""
    found = {one["name"]: one for one in _of_definitions(store, group_version)}
    for path, collection in store.collections.items():
        if path.rpartition("/")[0] != group_version:
            continue
        if not collection.is_served:
            found.pop(collection.name, None)
        elif collection.records and collection.name not in found:
            is_namespaced = any(namespace for namespace, _ in collection.records)
            found[collection.name] = _resource(collection.name, collection.kind, is_namespaced=is_namespaced)
    if not found:
        raise ApiFault(404, "NotFound", "the server could not find the requested resource")
    return msgspec.json.encode(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": [found[name] for name in sorted(found)],
        }
    )


def _of_definitions(store: Store, group_version: str) -> list[Obj]:
    group, _, version = group_version.rpartition("/")
    definitions = store.collection("apiextensions.k8s.io/v1", "customresourcedefinitions")
    found = []
    for record in definitions.records.values():
        spec = record.decode()["spec"]
        versions = [one["name"] for one in spec.get("versions") or () if one.get("served", True)]
        if spec.get("group") == group and version in versions:
            names = spec["names"]
            is_namespaced = spec.get("scope", "Namespaced") == "Namespaced"
            found.append(_resource(names["plural"], names["kind"], is_namespaced=is_namespaced))
    return found


def _resource(plural: str, kind: str, *, is_namespaced: bool) -> Obj:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": is_namespaced,
        "kind": kind,
        "verbs": _VERBS,
    }
