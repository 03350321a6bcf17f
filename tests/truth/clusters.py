"""Random nodes, and random pods that run on them."""

from tests.truth.admission import admitted
from tests.truth.draft import (
    APPS,
    GPU,
    HOST,
    NAMESPACE,
    OTHER,
    RACK,
    REQUIRED,
    TIERS,
    VERSIONS,
    ZONE,
    Draft,
    grow,
    selector,
    sub,
    term,
    within,
)
from tests.truth.fields import Json, labels_of, name_of, objects, table
from tests.truth.world import World

DELETED = "2026-01-01T00:00:00Z"
_CPU = ("1", "2", "3", "4", "6", "1930m", "3920m")
_MEMORY = ("3Gi", "4Gi", "8Gi", "7910Mi", "4000M")
_PODS = ("4", "6", "8", "12", "30")
_ADDRESSES = ("", "", "127.0.0.1", "10.0.0.1")


def add_namespaces(draft: Draft) -> None:
    for name in (NAMESPACE, OTHER, "third"):
        labels = {"kubernetes.io/metadata.name": name, "env": draft.chance.choice(("prod", "dev"))}
        draft.add("v1", "Namespace", name, labels=labels)


def add_nodes(draft: Draft) -> None:
    """2 to 8 nodes in 1 to 3 zones; here and there a key is missing, a node is tainted or cordoned."""
    chance = draft.chance
    zones = chance.choice((1, 2, 2, 3, 3))
    for number in range(chance.randint(2, 8)):
        name = f"n{number}"
        labels = {"disk": chance.choice(("ssd", "hdd")), "gen": str(chance.randint(1, 4))}
        if not draft.maybe(0.06):
            labels[HOST] = name
        if not draft.maybe(0.1):
            labels[ZONE] = "abc"[chance.randrange(zones)]
        if draft.maybe(0.7):
            labels[RACK] = f"r{chance.randrange(3)}"
        amounts = {
            "cpu": chance.choice(_CPU),
            "memory": chance.choice(_MEMORY),
            "pods": chance.choice(_PODS),
            "ephemeral-storage": "20Gi",
        }
        spec: Json = {}
        if draft.maybe(0.12):
            effect = chance.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))
            taint = {"key": "dedicated", "value": chance.choice(("gold", "silver")), "effect": effect}
            grow(spec, "taints", taint)
        if draft.maybe(0.08):
            cordon(spec)
        draft.add("v1", "Node", name, labels=labels, spec=spec, status={"allocatable": amounts})


def cordon(spec: Json) -> None:
    """As ``kubectl cordon`` and the node lifecycle controller leave a node."""
    spec["unschedulable"] = True
    grow(spec, "taints", {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})


def host_port(draft: Draft) -> Json:
    number = draft.chance.choice((8080, 8080, 9090))
    port: Json = {
        "containerPort": number,
        "hostPort": number,
        "protocol": draft.chance.choice(("TCP", "TCP", "UDP")),
    }
    if address := draft.chance.choice(_ADDRESSES):
        port["hostIP"] = address
    return port


def add_pod(draft: Draft, name: str, node: str, labels: dict[str, str], namespace: str = NAMESPACE) -> Json:
    """A running pod with small amounts, its limits equal to its requests, as its LimitRange lets pass."""
    amounts = {"cpu": draft.chance.choice(("50m", "100m", "250m", "600m")), "memory": "128Mi"}
    container: Json = {
        "name": "main",
        "image": "example.com/other",
        "resources": {"requests": amounts, "limits": dict(amounts)},
    }
    return draft.add(
        "v1",
        "Pod",
        name,
        namespace,
        labels=labels,
        spec={"nodeName": node, "containers": [container]},
        status={"phase": "Running"},
    )


def complicate(draft: Draft, spec: Json) -> None:
    """Amounts that are not the sum of containers', and wishes that are no rules."""
    amounts = {"cpu": draft.chance.choice(("150m", "700m")), "memory": "96Mi"}
    helper: Json = {"name": "helper", "image": "example.com/helper"}
    helper["resources"] = {"requests": amounts, "limits": dict(amounts)}
    match draft.chance.randrange(5):
        case 0:
            spec["initContainers"] = [{**helper, "restartPolicy": "Always"}]
        case 1:
            spec["initContainers"] = [helper]
        case 2:
            spec["resources"] = {"requests": {"cpu": "800m", "memory": "256Mi"}}
        case 3:
            spec["hostNetwork"] = True
            for port in objects(objects(spec, "containers")[0], "ports"):
                port["hostPort"] = port["containerPort"]
        case 4:
            wish = {"weight": 50, "podAffinityTerm": term(HOST, selector(app="web"))}
            spec["affinity"] = {
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
            }


def add_others(draft: Draft) -> None:
    """Pods of other workloads: running, on their way out, at their end, and waiting."""
    chance = draft.chance
    for number in range(chance.randint(0, 5 * len(draft.nodes()) // 2)):
        app = chance.choice(APPS if draft.maybe(0.25) else APPS[1:])
        labels = {"app": app, "tier": chance.choice(TIERS), "version": chance.choice(VERSIONS)}
        namespace = chance.choice((NAMESPACE, NAMESPACE, NAMESPACE, OTHER, "third"))
        pod = add_pod(draft, f"{app}-{number}", draft.node_name(), labels, namespace)
        spec = table(pod, "spec")
        if draft.maybe(0.2):
            grow(objects(spec, "containers")[0], "ports", host_port(draft))
        if draft.maybe(0.2):
            complicate(draft, spec)
        if draft.maybe(0.1):
            table(pod, "metadata")["deletionTimestamp"] = DELETED
            table(pod, "metadata")["deletionGracePeriodSeconds"] = 30
        elif draft.maybe(0.08):
            table(pod, "status")["phase"] = chance.choice(("Succeeded", "Failed"))
        elif draft.maybe(0.06):
            del spec["nodeName"]
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
            table(pod, "status")["phase"] = "Pending"


def repel(draft: Draft) -> None:
    """Running pods whose own anti-affinity may keep the template's pods off."""
    chance = draft.chance
    for number in range(chance.randint(1, 2)):
        wanted = chance.choice(
            (
                selector(app="web"),
                selector(tier=chance.choice(TIERS)),
                {"matchExpressions": [within("app", APPS[:2])]},
                {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            )
        )
        made = term(chance.choice((HOST, ZONE, RACK)), wanted)
        namespace = chance.choice((NAMESPACE, OTHER))
        if namespace == OTHER or draft.maybe(0.3):
            match chance.randrange(3):
                case 0:
                    made["namespaces"] = [NAMESPACE]
                case 1:
                    made["namespaceSelector"] = selector(env=chance.choice(("prod", "dev")))
                case 2:
                    made["namespaceSelector"] = {}
        pod = add_pod(draft, f"loner-{number}", draft.node_name(), {"app": "loner"}, namespace)
        table(pod, "spec")["affinity"] = {"podAntiAffinity": {REQUIRED: [made]}}
        if draft.maybe(0.15):
            table(pod, "metadata")["deletionTimestamp"] = DELETED
            table(pod, "metadata")["deletionGracePeriodSeconds"] = 30
        elif draft.maybe(0.15):
            table(pod, "status")["phase"] = "Succeeded"


def add_own(draft: Draft) -> None:
    """Pods of the asking workload that run already, as the API server stored them, or an older revision."""
    stored = admitted(
        draft.template, NAMESPACE, World(draft.items), tolerates_extended=draft.tolerates_extended
    )
    if stored.refusal:
        return
    draft.constraints.add("own pods")
    is_older = draft.maybe(0.2)
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{draft.name}-65f4b",
        "uid": "0b0e4a5c-65f4-4b65-8f4b-000000000001",
        "controller": True,
    }
    for number in range(draft.chance.randint(1, 3)):
        labels = {**labels_of(stored.pod), "pod-template-hash": "65f4b"}
        spec = {**table(stored.pod, "spec"), "nodeName": draft.node_name()}
        if is_older:
            labels["version"] = "v0"
            spec.pop("affinity", None)
        pod = draft.add("v1", "Pod", f"{draft.name}-65f4b-{number}", NAMESPACE, labels=labels, spec=spec)
        table(pod, "metadata")["ownerReferences"] = [owner]
        pod["status"] = {"phase": "Running"}
        if draft.maybe(0.12):
            table(pod, "metadata")["deletionTimestamp"] = DELETED
            table(pod, "metadata")["deletionGracePeriodSeconds"] = 30


def taint_gpu_nodes(draft: Draft) -> None:
    """Nodes with GPUs, some tainted after them; running pods show whether admission tolerates that taint."""
    chance, nodes = draft.chance, draft.nodes()
    tainted = {name_of(node) for node in nodes if draft.maybe(0.6)} or {name_of(nodes[0])}
    for node in nodes:
        sub(node, "status", "allocatable")[GPU] = str(chance.randint(1, 4))
        if name_of(node) in tainted:
            grow(sub(node, "spec"), "taints", {"key": GPU, "value": "present", "effect": "NoSchedule"})
    draft.tolerates_extended = draft.maybe(0.5)
    free = [name_of(node) for node in nodes if name_of(node) not in tainted] or [name_of(nodes[0])]
    toleration: Json = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    for number in range(2):
        name = chance.choice(sorted(tainted) if draft.tolerates_extended else free)
        pod = add_pod(draft, f"trainer-{number}", name, {"app": "trainer"})
        main = objects(pod, "spec", "containers")[0]
        for kind in ("requests", "limits"):
            sub(main, "resources", kind)[GPU] = "1"
        if draft.tolerates_extended:
            grow(table(pod, "spec"), "tolerations", toleration)
