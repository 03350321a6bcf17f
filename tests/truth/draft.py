"""A case in the making: the cluster's objects and the template, and small words to write them with."""

import random
from collections.abc import Mapping, Sequence

from tests.truth.fields import Json, labels_of, name_of, objects, table

ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
NAMESPACE, OTHER = "team", "other"
GPU = "nvidia.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APPS, TIERS, VERSIONS = ("web", "cache", "db"), ("front", "back"), ("v1", "v2")


class Draft:
    """What a seed has made so far. ``name``: of the workload; ``constraints``: what bears on it."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.chance = chance
        self.name = name
        self.items: list[Json] = []
        self.constraints: set[str] = set()
        self.unknowable: set[str] = set()
        self.tolerates_extended = False
        self.has_own = chance.random() < 0.45
        self.template: Json = {
            "metadata": {"labels": {"app": "web", "tier": chance.choice(TIERS)}},
            "spec": {
                "containers": [{"name": "main", "image": "example.com/web", "resources": {"requests": {}}}]
            },
        }

    def add(self, api_version: str, kind: str, name: str, namespace: str = "", **rest: object) -> Json:
        """One more object of the cluster; ``labels`` and ``annotations`` go into its metadata."""
        metadata: Json = {"name": name}
        if namespace:
            metadata["namespace"] = namespace
        for key in ("labels", "annotations"):
            if key in rest:
                metadata[key] = rest.pop(key)
        item: Json = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
        self.items.append(item)
        return item

    def kind(self, kind: str) -> list[Json]:
        return [item for item in self.items if item["kind"] == kind]

    @property
    def spec(self) -> Json:
        return table(self.template, "spec")

    @property
    def main(self) -> Json:
        return objects(self.spec, "containers")[0]

    @property
    def labels(self) -> Json:
        return table(self.template, "metadata", "labels")

    def request(self, name: str, amount: str) -> None:
        """The main container asks for so much; extended resources with a limit, as validation wants."""
        sub(self.main, "resources", "requests")[name] = amount
        if "/" in name:
            sub(self.main, "resources", "limits")[name] = amount

    def term(self, kind: str, term: Json) -> None:
        """A required term of ``podAffinity`` or ``podAntiAffinity``."""
        grow(sub(self.spec, "affinity", kind), REQUIRED, term)

    def mount(self, claim: str) -> None:
        """The template mounts this PersistentVolumeClaim."""
        grow(self.spec, "volumes", {"name": claim, "persistentVolumeClaim": {"claimName": claim}})

    def nodes(self) -> list[Json]:
        return self.kind("Node")

    def values(self, key: str) -> list[str]:
        """All values of a node label."""
        return sorted({labels_of(node)[key] for node in self.nodes() if key in labels_of(node)})

    def node_name(self) -> str:
        return name_of(self.chance.choice(self.nodes()))

    def maybe(self, probability: float) -> bool:
        return self.chance.random() < probability


def sub(obj: Json, *path: str) -> Json:
    """The object at the path, made where it is missing."""
    for key in path:
        found = obj.setdefault(key, {})
        assert isinstance(found, dict)
        obj = found
    return obj


def grow(obj: Json, key: str, *items: object) -> None:
    """Put items at the end of a list, which is made where it is missing."""
    found = obj.setdefault(key, [])
    assert isinstance(found, list)
    found += items


def selector(**labels: str) -> Json:
    return {"matchLabels": labels}


def within(key: str, values: Sequence[str], operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def term(key: str, wanted: Mapping[str, object] | None, **rest: object) -> Json:
    """A pod affinity term; without a selector where ``wanted`` is None."""
    made: Json = {"topologyKey": key, **rest}
    if wanted is not None:
        made["labelSelector"] = dict(wanted)
    return made
