"""What a random template may ask; each constraint puts the objects that it needs into the cluster."""

from collections.abc import Callable

from tests.truth import neighbours
from tests.truth.admission import limit_range_item_defaults
from tests.truth.clusters import host_port, repel, taint_gpu_nodes
from tests.truth.draft import (
    GPU,
    NAMESPACE,
    RACK,
    REQUIRED,
    ZONE,
    Draft,
    grow,
    sub,
    within,
)
from tests.truth.fields import Json, objects, table


def plain(draft: Draft) -> None:
    """Nothing but amounts."""


def sidecar(draft: Draft) -> None:
    chance = draft.chance
    asked = {"cpu": chance.choice(("100m", "400m", "1")), "memory": "64Mi"}
    made: Json = {"name": "proxy", "image": "example.com/proxy", "restartPolicy": "Always"}
    made["resources"] = {"requests": asked}
    if draft.maybe(0.2):
        made["ports"] = [host_port(draft)]
    containers: list[Json] = [made]
    if draft.maybe(0.5):
        setup: Json = {"name": "setup", "image": "example.com/setup"}
        setup["resources"] = {"requests": {"cpu": chance.choice(("200m", "1500m"))}}
        containers.insert(chance.randrange(2), setup)
    draft.spec["initContainers"] = containers


def pod_level(draft: Draft) -> None:
    chance = draft.chance
    kind = chance.choice(("requests", "requests", "limits"))
    whole = {"cpu": chance.choice(("1500m", "2", "3"))}
    if draft.maybe(0.4):
        whole["memory"] = "2Gi"
    draft.spec["resources"] = {kind: whole}
    sub(draft.main, "resources", "limits").pop("cpu", None)
    if draft.maybe(0.4):
        for name in ("cpu", "memory"):
            sub(draft.main, "resources", "requests").pop(name, None)


def node_affinity(draft: Draft) -> None:
    chance = draft.chance
    if draft.maybe(0.35):
        sub(draft.spec, "nodeSelector")["disk"] = chance.choice(("ssd", "hdd"))
        return
    terms: list[Json] = [{}] if draft.maybe(0.25) else []
    for _ in range(chance.randint(1, 2)):
        wanted: Json = {}
        match chance.randrange(7):
            case 0:
                wanted = within(ZONE, chance.sample("abc", 2))
            case 1:
                wanted = within(ZONE, [chance.choice("abc")], "NotIn")
            case 2:
                wanted = {"key": RACK, "operator": chance.choice(("Exists", "DoesNotExist"))}
            case 3 | 4:
                wanted = within("gen", [str(chance.randint(1, 3))], chance.choice(("Gt", "Lt")))
            case 5:
                wanted = within("disk", ["ssd"])
            case 6:
                name = draft.node_name()
                terms.append(
                    {"matchFields": [within("metadata.name", [name], chance.choice(("In", "NotIn")))]}
                )
                continue
        terms.append({"matchExpressions": [wanted]})
    sub(draft.spec, "affinity", "nodeAffinity")[REQUIRED] = {"nodeSelectorTerms": terms}


def tolerations(draft: Draft) -> None:
    chance = draft.chance
    for node in draft.nodes():
        if draft.maybe(0.4) and not objects(node, "spec", "taints"):
            taint = {"key": "dedicated", "value": chance.choice(("gold", "silver"))}
            grow(sub(node, "spec"), "taints", {**taint, "effect": chance.choice(("NoSchedule", "NoExecute"))})
    made: list[Json] = [
        {"key": "dedicated", "operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "gold", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "gold"},
        {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"},
        {"operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    ]
    grow(draft.spec, "tolerations", *chance.sample(made, chance.randint(1, 2)))


def host_ports(draft: Draft) -> None:
    port = host_port(draft)
    if draft.maybe(0.15):
        draft.spec["hostNetwork"] = True
        del port["hostPort"]
    grow(draft.main, "ports", port)


def gpu_taint(draft: Draft) -> None:
    taint_gpu_nodes(draft)
    draft.request(GPU, draft.chance.choice(("1", "1", "2")))


def runtime_class(draft: Draft) -> None:
    chance = draft.chance
    draft.spec["runtimeClassName"] = "kata"
    if draft.maybe(0.06):
        return
    rest: Json = {"handler": "kata"}
    if draft.maybe(0.8):
        rest["overhead"] = {"podFixed": {"cpu": chance.choice(("100m", "250m", "750m")), "memory": "160Mi"}}
    scheduling: Json = {}
    if draft.maybe(0.4):
        scheduling["nodeSelector"] = {"disk": "ssd"}
    if draft.maybe(0.4):
        scheduling["tolerations"] = [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]
    if scheduling:
        rest["scheduling"] = scheduling
    draft.add("node.k8s.io/v1", "RuntimeClass", "kata").update(rest)


def limit_range(draft: Draft) -> None:
    chance = draft.chance
    asked = sub(draft.main, "resources", "requests")
    left_out = chance.choice((("cpu",), ("cpu", "memory"), ("cpu", "memory"), ()))
    for name in left_out:
        asked.pop(name, None)
    item: Json = {"type": "Container"}
    if draft.maybe(0.5):
        item["defaultRequest"] = {"cpu": chance.choice(("300m", "900m"))}
    if draft.maybe(0.6):
        item["default"] = {"cpu": chance.choice(("1", "1200m")), "memory": chance.choice(("512Mi", "2Gi"))}
    if draft.maybe(0.12):
        draft.constraints.add("LimitRange bounds")
        item = {"type": "Container", "max": {"cpu": chance.choice(("700m", "1"))}}
    spec = {"limits": [limit_range_item_defaults(item)]}
    draft.add("v1", "LimitRange", "defaults", NAMESPACE, spec=spec)


Constraint = Callable[[Draft], None]

CONSTRAINTS: dict[str, Constraint] = {
    "plain": plain,
    "sidecar": sidecar,
    "pod-level": pod_level,
    "node affinity": node_affinity,
    "tolerations": tolerations,
    "host port": host_ports,
    "self anti-affinity": neighbours.anti_self,
    "anti-affinity to others": neighbours.anti_others,
    "self-affinity": neighbours.affine_self,
    "affinity to others": neighbours.affine_others,
    "namespaces": neighbours.namespaces,
    "label keys": neighbours.label_keys,
    "template hash": neighbours.template_hash,
    "zone spread": neighbours.zone_spread,
    "host spread": neighbours.host_spread,
    "rack spread": neighbours.rack_spread,
    "repelled": repel,
    "device taint": gpu_taint,
    "RuntimeClass": runtime_class,
    "LimitRange": limit_range,
}
"""By name; those of volumes are in `tests.truth.storage`."""


def requests(draft: Draft) -> None:
    """Small and odd amounts, from which others take away."""
    chance = draft.chance
    draft.request("cpu", chance.choice(("100m", "250m", "333m", "500m", "700m", "1")))
    if draft.maybe(0.8):
        draft.request("memory", chance.choice(("64Mi", "300M", "512Mi", "1Gi", "1500Mi")))
    if draft.maybe(0.1):
        draft.request("ephemeral-storage", "3Gi")
    if draft.maybe(0.15):
        table(draft.main, "resources")["limits"] = {"cpu": "2"}
