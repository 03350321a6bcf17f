"""Seeded random cases: a small cluster with running pods, and a workload with one to three constraints."""

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.truth.clusters import add_namespaces, add_nodes, add_others, add_own
from tests.truth.constraints import CONSTRAINTS, requests
from tests.truth.draft import NAMESPACE, Draft, sub
from tests.truth.fields import Json
from tests.truth.oracle import Truth, truth
from tests.truth.storage import STORAGE
from tests.truth.world import World

_CONSTRAINTS = {**CONSTRAINTS, **STORAGE}
_APART = ({"pod-level", "LimitRange"}, {"template hash", "label keys"})
"""Pairs that would mostly make pods that no API server takes."""
MANY = 500
"""Replicas of the workload: more than any of the clusters holds."""


@dataclass(frozen=True)
class Case:
    """One question and all that its answer may depend on.

    ``items`` are the cluster's objects as ``kubectl get`` shows them; ``template`` is the pod template of the
    workload. ``constraints`` names what bears on the answer, ``unknowable`` what no list of objects can tell.
    ``tolerates_extended``: the API server runs ExtendedResourceToleration.
    """

    seed: int
    items: tuple[Json, ...]
    template: Json
    constraints: frozenset[str]
    unknowable: frozenset[str]
    tolerates_extended: bool
    namespace: str = NAMESPACE

    def dump(self) -> Json:
        """The cluster as one list."""
        return {"apiVersion": "v1", "kind": "List", "items": list(self.items)}

    @property
    def name(self) -> str:
        """The workload's name, which no other case's has."""
        return f"web-{self.seed}"

    def workload(self) -> Json:
        """The Deployment that asks."""
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "replicas": MANY,
                "selector": {"matchLabels": {"app": "web"}},
                "template": self.template,
            },
        }

    def pod_template(self) -> Json:
        """The template as the Deployment's new ReplicaSet has it, with the hash of its revision."""
        template = copy.deepcopy(self.template)
        sub(template, "metadata", "labels")["pod-template-hash"] = "7c9d8"
        return template

    def truth(self) -> Truth:
        """What the oracle says."""
        return truth(
            self.pod_template(),
            self.namespace,
            World(self.items),
            tolerates_extended=self.tolerates_extended,
        )


def case(seed: int) -> Case:
    """The case of this seed."""
    draft = Draft(random.Random(seed), f"web-{seed}")
    add_namespaces(draft)
    add_nodes(draft)
    requests(draft)
    for name in _chosen(draft):
        draft.constraints.add(name)
        _CONSTRAINTS[name](draft)
    add_others(draft)
    if draft.has_own:
        add_own(draft)
    return Case(
        seed,
        tuple(draft.items),
        draft.template,
        frozenset(draft.constraints),
        frozenset(draft.unknowable),
        draft.tolerates_extended,
    )


def cases(count: int, first: int = 0) -> Iterator[Case]:
    """The cases of so many seeds in a row."""
    return (case(seed) for seed in range(first, first + count))


def _chosen(draft: Draft) -> list[str]:
    """One to three constraints that go together, each name as likely as any other."""
    names = draft.chance.sample(sorted(_CONSTRAINTS), draft.chance.choice((1, 2, 2, 3)))
    if "plain" in names:
        return ["plain"]
    chosen: list[str] = []
    for name in names:
        if name in STORAGE and any(other in STORAGE for other in chosen):
            continue
        if any(name in pair and pair & set(chosen) for pair in _APART):
            continue
        if name == "missing claim" and draft.maybe(0.6):
            continue
        chosen.append(name)
    return chosen or ["plain"]
