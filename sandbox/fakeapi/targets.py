"""What a URL path of the API names."""

from dataclasses import dataclass

from sandbox.fakeapi.store import ApiFault, Collection, Key, Store


@dataclass(frozen=True, slots=True)
class Target:
    """``key`` is None for a collection; ``part`` is the subresource."""

    collection: Collection
    namespace: str
    key: Key | None
    part: str

    @property
    def object_key(self) -> Key:
        if self.key is None:
            raise ApiFault(405, "MethodNotAllowed", f"{self.collection.name}: expected the path of an object")
        return self.key

    @property
    def resource(self) -> str:
        """Such as ``pods`` or ``pods/status``."""
        return f"{self.collection.name}/{self.part}" if self.part else self.collection.name


def target(store: Store, path: str) -> Target:
    """Any group, version and resource exists; 404 for a path that is none of the API's."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group_version = version
        case ["apis", group, version, *rest]:
            group_version = f"{group}/{version}"
        case _:
            rest = []
    match rest:
        case ["namespaces", namespace, resource, *more] if resource not in ("status", "finalize"):
            pass
        case [resource, *more]:
            namespace = ""
        case _:
            raise _not_served()
    collection = store.collection(group_version, resource)
    if not collection.is_served:
        raise _not_served()
    key = (namespace, more[0]) if more else None
    return Target(collection, namespace, key, more[1] if len(more) > 1 else "")


def _not_served() -> ApiFault:
    return ApiFault(404, "NotFound", "the server could not find the requested resource")
