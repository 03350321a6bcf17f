"""Flavors that are a part of a cluster's nodes: charged once, and every pod on nodes of what is charged."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from fairway.names import ADMISSION, QUEUE
from queue_dispatcher.bindings.record import AdmissionRecord, parse_record
from sandbox.simulation.fleet import FLAVOR, Fleet
from sandbox.simulation.karmada.policies import Way, placed, policy
from sandbox.simulation.objects import Obj
from sandbox.simulation.templates import GPU, fated, job, pod_template, pytorch_job
from tests.simulation.accounts import done_in, ended_in, is_ended, is_held
from tests.simulation.places import shares

TEAM, KIND, WAY = "team", "example.com/kind", "example.com/way"
WAYS: tuple[Way, ...] = ("aggregated", "by room", "copied")
SPOT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Nodes:
    """``kinds``: of each cluster, by the label of its nodes, the GPUs of each.

    ``flavors``: the clusters of each kind, as its flavor says. ``owned``: GPUs that the queue has of each.
    ``spot``: the kind of nodes with a taint.
    """

    kinds: Mapping[str, Mapping[str, Sequence[int]]]
    flavors: Mapping[str, Sequence[str]]
    owned: Mapping[str, int]
    spot: str = ""


ONE = Nodes({"a": {"new": [8] * 3, "old": [4] * 5}}, {"new": "a", "old": "a"}, {"new": 24, "old": 20}, "old")
BOTH = Nodes(
    {"a": {"new": [8] * 2, "old": [4] * 2}, "b": {"new": [8], "old": [4] * 4}},
    {"new": "ab", "old": "ab"},
    {"new": 20, "old": 18},
    "new",
)
EACH = Nodes(
    {"a": {"new": [8] * 2, "none": [8] * 2}, "b": {"old": [4] * 4, "none": [4] * 2}},
    {"new": "a", "old": "b"},
    {"new": 16, "old": 16},
)


@dataclass
class Watched:
    """What has become of pods and charges. ``strays``: pods on nodes that they are not charged to."""

    made: Fleet
    nodes: Nodes
    bound: int = 0
    kinds: set[str] = field(default_factory=set)
    strays: list[str] = field(default_factory=list)
    _known: set[tuple[str, int]] = field(default_factory=set)

    def wait(self, for_ms: int) -> None:
        """Time passes, never so much that a pod could come and go unseen."""
        self.made.wait(for_ms)
        for cluster, member in self.made.members.items():
            for pod in member.pods():
                if pod.node is None or (cluster, pod.number) in self._known:
                    continue
                self._known.add((cluster, pod.number))
                owner = pod.owner.template
                key = f"{TEAM}/{owner['metadata']['name']}-{owner['kind'].lower()}"
                binding = self.made.binding(key)
                assert binding is not None
                charged, kind = charged_to(binding, pod.set_name), pod.node.labels[KIND]
                self.bound += 1
                self.kinds.add(kind)
                # Of several flavors the first that has the cluster is charged for what is there.
                if next(one for one in charged if cluster in self.nodes.flavors[one]) != kind:
                    self.strays.append(f"{key} is charged to {charged}, and on {pod.node.name}: {kind}")


def charged_to(binding: Obj, component: str) -> tuple[str, ...]:
    """The flavors of the GPUs of its component."""
    record = parse_record(binding["metadata"]["annotations"][ADMISSION])
    assert isinstance(record, AdmissionRecord)
    return dict(dict(record.components).get(component, record.flavors))[GPU]


def fleet(nodes: Nodes, seed: int) -> Fleet:
    gpus = {cluster: [n for of in kinds.values() for n in of] for cluster, kinds in nodes.kinds.items()}
    made = Fleet(gpus, dispatchers=2, seed=seed)
    for cluster, kinds in nodes.kinds.items():
        labels = [kind for kind, of in kinds.items() for _ in of]
        for node, kind in zip(made.members[cluster].nodes.values(), labels, strict=True):
            node.labels = {**node.labels, KIND: kind}
            node.taints = (SPOT,) if kind == nodes.spot else ()
    made.api.delete("resourceflavors", FLAVOR)
    quotas = []
    for name, clusters in nodes.flavors.items():
        spec: Obj = {"clusterNames": list(clusters), "nodeLabels": {KIND: name}}
        if name == nodes.spot:
            spec |= {"nodeTaints": [SPOT], "tolerations": [{"key": "spot", "operator": "Exists"}]}
        made.api.create("resourceflavors", {"metadata": {"name": name}, "spec": spec})
        quotas.append({"name": name, "resources": [{"name": GPU, "nominalQuota": str(nodes.owned[name])}]})
    group = {"coveredResources": [GPU], "flavors": quotas}
    made.api.create("clusterqueues", {"metadata": {"name": "main"}, "spec": {"resourceGroups": [group]}})
    of = {"namespace": TEAM, "name": "main"}
    made.api.create("localqueues", {"metadata": of, "spec": {"clusterQueue": "main"}})
    made.api.create("namespaces", {"metadata": {"name": TEAM, "labels": {"fairway.dev/queueing": "enabled"}}})
    kinds_of = [("batch/v1", "Job"), ("kubeflow.org/v1", "PyTorchJob")]
    for way in WAYS:
        placement, selects = placed(way=way, groups=int(way == "copied")), {WAY: way.replace(" ", "-")}
        name = f"all-{way[:2]}"
        made.api.create("propagationpolicies", policy(name, TEAM, kinds_of, placement, labels=selects))
    made.start()
    return made


def workload(number: int, rng: random.Random) -> Obj:
    """A Job, or a set of two sizes; some want one kind of node, and some are of a group."""
    # Two and two, of which all have to fit into one flavor.
    is_grouped = number % 20 < 2
    wants = rng.choice((None, None, None, "new", "old"))
    spec = {"nodeSelector": {KIND: wants}} if wants else {}
    if rng.random() < 0.2:
        sizes = rng.choice(((1, 1), (2, 1), (4, 2)))
        roles = [
            (role, count, pod_template({GPU: size}, **spec))
            for role, count, size in zip(("Master", "Worker"), (1, 2), sizes, strict=True)
        ]
        made, way = pytorch_job(f"j{number}", TEAM, roles), "copied"
    else:
        gpus = rng.choice((1, 1, 2) if is_grouped else (1, 1, 2, 4))
        template = pod_template({GPU: gpus}, **spec)
        made = job(f"j{number}", TEAM, template, pods=rng.choice((1, 1, 2, 4)))
        way = rng.choice(WAYS)
    labels = {QUEUE: "main", WAY: way.replace(" ", "-")}
    if is_grouped:
        labels |= {"fairway.dev/group": f"g{number // 20}", "fairway.dev/group-size": "2"}
    return {
        **made,
        "metadata": {**made["metadata"], "labels": labels, "annotations": fated(1000 * rng.randint(5, 40))},
    }


@pytest.mark.parametrize("nodes", [ONE, BOTH, EACH], ids=["one cluster", "both in both", "one in each"])
def test_two_hundred_mixed_jobs(nodes: Nodes) -> None:
    made, rng = fleet(nodes, 1), random.Random(14)
    watched = Watched(made, nodes)
    made.wait(1_000)
    keys = []
    for number in range(200):
        keys.append(made.submit(workload(number, rng)))
        watched.wait(rng.randint(0, 2_500))
    while not all(is_ended(made.binding(key) or {}) for key in keys):
        watched.wait(1_000)
        assert made.now_ms < 3_600_000
    assert watched.strays == []
    assert watched.kinds == {"new", "old"}
    assert watched.bound >= 200
    used: dict[str, dict[str, int]] = {name: {} for name in nodes.flavors}
    for one in made.api.writes:
        after = one.after
        if one.resource != "resourcebindings" or after is None or is_held(after):
            continue
        for of in used.values():
            of.pop(one.key, None)
        if not is_ended(after):
            for flavor, gpus in charges(after, nodes).items():
                used[flavor][one.key] = gpus
                assert sum(used[flavor].values()) <= nodes.owned[flavor], one.key


def charges(binding: Obj, nodes: Nodes) -> dict[str, int]:
    """By flavor, the GPUs that it is charged: in each cluster of the first flavor that is there."""
    charged: dict[str, int] = {}
    for cluster, replicas in shares(binding).items():
        if cluster in ended_in(binding):
            continue
        spec = binding["spec"]
        left = replicas - done_in(binding, spec.get("replicas", 0)).get(cluster, 0)
        for component in spec.get("components") or [{"name": "", **spec, "replicas": left}]:
            gpus = int(component["replicaRequirements"]["resourceRequest"][GPU]) * component["replicas"]
            flavors = charged_to(binding, component["name"])
            flavor = next(one for one in flavors if cluster in nodes.flavors[one])
            charged[flavor] = charged.get(flavor, 0) + gpus
    return charged
