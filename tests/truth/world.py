"""The objects of one cluster, by kind."""

from collections.abc import Iterable

from tests.truth.fields import Json, labels_of, name_of, namespace_of, objects, text


class World:
    """Plain objects of ``kubectl get -o json``."""

    def __init__(self, items: Iterable[Json]) -> None:
        self._by_kind: dict[str, list[Json]] = {}
        for item in items:
            self._by_kind.setdefault(text(item, "kind"), []).append(item)

    @classmethod
    def of_list(cls, dump: Json) -> "World":
        return cls(objects(dump, "items"))

    def all(self, kind: str) -> list[Json]:
        return self._by_kind.get(kind, [])

    def find(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """The object of that name, None where there is none."""
        for item in self.all(kind):
            if name_of(item) == name and namespace_of(item) == namespace:
                return item
        return None

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        return labels_of(self.find("Namespace", namespace) or {})

    def held(self, node: str) -> list[Json]:
        """Pods that the scheduler sees on the node: bound there and not at their end."""
        return [
            pod
            for pod in self.all("Pod")
            if text(pod, "spec", "nodeName") == node
            and text(pod, "status", "phase") not in ("Succeeded", "Failed")
        ]
