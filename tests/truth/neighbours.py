"""What a random template may ask about other pods: affinity, anti-affinity and spreading."""

from tests.truth.clusters import add_pod
from tests.truth.draft import (
    APPS,
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
from tests.truth.fields import Json, objects


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
    draft.unknowable.add("template hash")


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
