"""Reading plain Kubernetes JSON: a path into an object, as the type that is expected there.

What is absent or of another type reads as empty, as Go's decoder leaves a zero value.
"""

Json = dict[str, object]
"""An object as ``json.loads`` makes it."""


def at(obj: object, *path: str) -> object:
    """What lies at the path, None where it ends early."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def table(obj: object, *path: str) -> Json:
    """The object there."""
    found = at(obj, *path)
    return found if isinstance(found, dict) else {}


def objects(obj: object, *path: str) -> list[Json]:
    """The list of objects there."""
    found = at(obj, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def words(obj: object, *path: str) -> list[str]:
    """The list of strings there."""
    found = at(obj, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def strings(obj: object, *path: str) -> dict[str, str]:
    """The map of strings there, such as labels; numbers of quantities as text."""
    return {key: str(value) for key, value in table(obj, *path).items()}


def text(obj: object, *path: str) -> str:
    """The string there."""
    found = at(obj, *path)
    return found if isinstance(found, str) else ""


def integer(obj: object, *path: str) -> int | None:
    """The integer there, None where there is none."""
    found = at(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def name_of(obj: object) -> str:
    return text(obj, "metadata", "name")


def namespace_of(obj: object) -> str:
    return text(obj, "metadata", "namespace")


def labels_of(obj: object) -> dict[str, str]:
    return strings(obj, "metadata", "labels")
