"""What a random template may ask of its nodes and neighbours; each puts its own objects into the cluster."""

from collections.abc import Callable

from tests.truth.admission import limit_range_item_defaults
from tests.truth.clusters import add_pod, host_port, repel, taint_gpu_nodes
from tests.truth.draft import (
    APPS,
    GPU,
    HOST,
    NAMESPACE,
    OTHER,
    RACK,
    REQUIRED,
    TIERS,
    ZONE,
    Draft,
    grow,
    selector,
    sub,
    term,
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


def anti_self(draft: Draft) -> None:
    draft.term("podAntiAffinity", term(draft.chance.choice((HOST, HOST, ZONE)), selector(app="web")))


def affine_self(draft: Draft) -> None:
    draft.term("podAffinity", term(draft.chance.choice((ZONE, ZONE, HOST, RACK)), selector(app="web")))


def _others(draft: Draft) -> Json:
    """A selector of pods of others, now and then of all."""
    chance = draft.chance
    match chance.randrange(7):
        case 0:
            return {"matchExpressions": [within("app", APPS[1:])]}
        case 1:
            return {"matchLabels": {"app": "cache", "tier": chance.choice(TIERS)}}
        case 2:
            return {"matchExpressions": [within("app", ["web"], "NotIn"), within("version", ["v2"])]}
        case 3:
            return {"matchExpressions": [{"key": "version", "operator": "DoesNotExist"}]}
    return selector(app=chance.choice(APPS[1:]))


def anti_others(draft: Draft) -> None:
    wanted = None if draft.maybe(0.05) else _others(draft)
    draft.term("podAntiAffinity", term(draft.chance.choice((HOST, HOST, ZONE, RACK)), wanted))


def affine_others(draft: Draft) -> None:
    """Mostly to pods that are there."""
    draft.term("podAffinity", term(draft.chance.choice((ZONE, ZONE, HOST, RACK)), _others(draft)))
    if draft.maybe(0.7):
        for app in APPS[1:]:
            labels = {"app": app, "tier": draft.chance.choice(TIERS), "version": "v2"}
            add_pod(draft, f"{app}-first", draft.node_name(), labels)


def namespaces(draft: Draft) -> None:
    """Terms that look into other namespaces."""
    chance = draft.chance
    wanted = chance.choice((selector(app="web"), _others(draft), {}))
    made = term(chance.choice((HOST, ZONE)), wanted)
    match chance.randrange(4):
        case 0:
            made["namespaces"] = [OTHER]
        case 1:
            made["namespaceSelector"] = selector(env=chance.choice(("prod", "dev")))
        case 2:
            made["namespaceSelector"] = {}
        case 3:
            made |= {"namespaces": [NAMESPACE, "absent"], "namespaceSelector": selector(env="prod")}
    draft.term(chance.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity")), made)


def label_keys(draft: Draft) -> None:
    """Terms and constraints completed with the pod's own labels."""
    chance = draft.chance
    draft.labels["version"] = chance.choice(("v1", "v2"))
    field = chance.choice(("matchLabelKeys", "mismatchLabelKeys"))
    keys = chance.choice((["version"], ["tier"], ["version", "absent"]))
    wanted = chance.choice((selector(app="web"), {"matchExpressions": [within("app", APPS)]}))
    if field == "matchLabelKeys" and draft.maybe(0.5):
        draft.constraints.add("zone spread")
        made = _spread(draft, ZONE)
        made |= {"labelSelector": wanted, field: keys}
        _add_spread(draft, made)
        return
    draft.term(
        chance.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity")),
        term(chance.choice((HOST, ZONE)), wanted, **{field: keys}),
    )


def template_hash(draft: Draft) -> None:
    """The key that a Deployment gives its pods, one value a revision; nothing of it runs yet."""
    draft.has_own = False
    made = _spread(draft, draft.chance.choice((ZONE, HOST)))
    made |= {"labelSelector": selector(app="web"), "matchLabelKeys": ["pod-template-hash"]}
    _add_spread(draft, made)


def _spread(draft: Draft, key: str) -> Json:
    made: Json = {
        "maxSkew": draft.chance.randint(1, 3),
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway" if draft.maybe(0.06) else "DoNotSchedule",
    }
    if made["whenUnsatisfiable"] == "DoNotSchedule" and draft.maybe(0.2):
        made["minDomains"] = draft.chance.randint(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draft.maybe(0.25):
            made[policy] = draft.chance.choice(("Honor", "Ignore"))
    return made


def _spread_over(draft: Draft, key: str) -> None:
    chance = draft.chance
    made = _spread(draft, "example.com/nowhere" if draft.maybe(0.04) else key)
    match chance.choices(("own", "others", "both", "all", "none"), (11, 3, 2, 2, 1))[0]:
        case "own":
            made["labelSelector"] = selector(app="web")
        case "others":
            made["labelSelector"] = _others(draft)
        case "both":
            made["labelSelector"] = {"matchExpressions": [within("app", APPS[:2])]}
        case "all":
            made["labelSelector"] = {}
    _add_spread(draft, made)
    if draft.maybe(0.25) and "affinity" not in draft.spec:
        # Domains that the pod may not go to count only where the policy is Ignore.
        zones = {"matchExpressions": [within(ZONE, chance.sample("abc", 2))]}
        sub(draft.spec, "affinity", "nodeAffinity")[REQUIRED] = {"nodeSelectorTerms": [zones]}


def _add_spread(draft: Draft, made: Json) -> None:
    """Unless there is one of its kind on the same key, which no API server takes."""
    kind = (made["topologyKey"], made["whenUnsatisfiable"])
    if kind not in [
        (other["topologyKey"], other["whenUnsatisfiable"])
        for other in objects(draft.spec, "topologySpreadConstraints")
    ]:
        grow(draft.spec, "topologySpreadConstraints", made)


def zone_spread(draft: Draft) -> None:
    _spread_over(draft, ZONE)


def host_spread(draft: Draft) -> None:
    _spread_over(draft, HOST)


def rack_spread(draft: Draft) -> None:
    _spread_over(draft, RACK)


def repelled(draft: Draft) -> None:
    repel(draft)


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
    "self anti-affinity": anti_self,
    "anti-affinity to others": anti_others,
    "self-affinity": affine_self,
    "affinity to others": affine_others,
    "namespaces": namespaces,
    "label keys": label_keys,
    "template hash": template_hash,
    "zone spread": zone_spread,
    "host spread": host_spread,
    "rack spread": rack_spread,
    "repelled": repelled,
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
