"""What a random template may ask of volumes, with the claims, volumes and classes that go with it."""

from tests.truth.clusters import add_pod
from tests.truth.constraints import Constraint
from tests.truth.draft import HOST, NAMESPACE, ZONE, Draft, grow, sub, within
from tests.truth.fields import Json, name_of, table

DRIVER = "disk.csi.example.com"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def _volume(draft: Draft, name: str, *, claim: str = "", size: str = "10Gi", of_class: str = "disk") -> Json:
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "storageClassName": of_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"},
    }
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "name": claim, "namespace": NAMESPACE}
    phase = "Bound" if claim else "Available"
    return draft.add("v1", "PersistentVolume", name, spec=spec, status={"phase": phase})


def _claim(draft: Draft, name: str, volume: str, mode: str = "ReadWriteOnce", of_class: str = "disk") -> Json:
    spec: Json = {
        "accessModes": [mode],
        "storageClassName": of_class,
        "resources": {"requests": {"storage": "5Gi"}},
    }
    rest: Json = {"spec": spec, "status": {"phase": "Bound" if volume else "Pending"}}
    if volume:
        spec["volumeName"] = volume
    item = draft.add("v1", "PersistentVolumeClaim", name, NAMESPACE)
    item.update(rest)
    if volume:
        table(item, "metadata")["annotations"] = dict(_BOUND)
    return item


def _class(draft: Draft, mode: str, provisioner: str = DRIVER) -> Json:
    body = {"provisioner": provisioner, "volumeBindingMode": mode}
    return draft.add("storage.k8s.io/v1", "StorageClass", "disk", **body)


def _only(key: str, values: list[str]) -> Json:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [within(key, values)]}]}}


def zonal_volume(draft: Draft) -> None:
    """A claim bound to a volume of a zone or a host, now and then to one that is gone."""
    draft.mount("data")
    _class(draft, "Immediate")
    _claim(draft, "data", "volume")
    if draft.maybe(0.06):
        return
    volume = _volume(draft, "volume", claim="data")
    key = draft.chance.choice((ZONE, ZONE, HOST))
    values = draft.values(key) or ["a"]
    value = draft.chance.choice(values)
    if key == ZONE and draft.maybe(0.35):
        label = draft.chance.choice((ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone"))
        table(volume, "metadata")["labels"] = {label: "__".join(sorted({value, draft.chance.choice(values)}))}
    else:
        table(volume, "spec")["nodeAffinity"] = _only(key, [value])


def first_consumer(draft: Draft) -> None:
    """A claim that waits for its first pod: for one of some volumes, or for one to be made."""
    chance = draft.chance
    draft.has_own = False
    draft.mount("data")
    _claim(draft, "data", "")
    if draft.maybe(0.4):
        draft.unknowable.add("WaitForFirstConsumer")
        of_class = _class(draft, "WaitForFirstConsumer")
        if draft.maybe(0.5):
            allowed = {"key": ZONE, "values": chance.sample("abc", 2)}
            of_class["allowedTopologies"] = [{"matchLabelExpressions": [allowed]}]
        keys = [ZONE] if draft.maybe(0.7) else []
        for node in draft.nodes():
            _csi_node(draft, name_of(node), None, keys)
        return
    _class(draft, "WaitForFirstConsumer", "kubernetes.io/no-provisioner")
    for number in range(chance.randint(1, 3)):
        size = chance.choice(("3Gi", "4Gi", "8Gi", f"{10 + number}Gi", f"{10 + number}Gi"))
        kind = "other" if draft.maybe(0.15) else "disk"
        volume = _volume(draft, f"volume-{number}", size=size, of_class=kind)
        key = chance.choice((ZONE, HOST))
        if values := draft.values(key):
            table(volume, "spec")["nodeAffinity"] = _only(key, [chance.choice(values)])


def once(draft: Draft) -> None:
    """A claim that one pod at a time may use."""
    draft.mount("data")
    _class(draft, "Immediate")
    _claim(draft, "data", "volume", "ReadWriteOncePod")
    table(_volume(draft, "volume", claim="data"), "spec")["accessModes"] = ["ReadWriteOncePod"]
    draft.has_own = draft.maybe(0.3)
    if draft.maybe(0.2):
        pod = add_pod(draft, "holder", draft.node_name(), {"app": "holder"})
        mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        grow(table(pod, "spec"), "volumes", mounted)
        if draft.maybe(0.3):
            table(pod, "status")["phase"] = "Succeeded"


def _csi_node(draft: Draft, name: str, count: int | None, keys: list[str]) -> None:
    driver: Json = {"name": DRIVER, "nodeID": name, "topologyKeys": keys}
    if count is not None:
        driver["allocatable"] = {"count": count}
    draft.add("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]})


def attach_limit(draft: Draft) -> None:
    """Nodes that attach few volumes, some of which hold volumes of others."""
    draft.mount("data")
    _class(draft, "Immediate")
    _claim(draft, "data", "volume", "ReadWriteMany")
    _volume(draft, "volume", claim="data")
    for node in draft.nodes():
        name = name_of(node)
        if draft.maybe(0.85):
            _csi_node(draft, name, draft.chance.randint(1, 2), [])
        for number in range(draft.chance.randint(0, 2)):
            held = f"held-{name}-{number}"
            _claim(draft, held, f"volume-{held}")
            _volume(draft, f"volume-{held}", claim=held)
            pod = add_pod(draft, f"holder-{name}-{number}", name, {"app": "holder"})
            grow(table(pod, "spec"), "volumes", {"name": "d", "persistentVolumeClaim": {"claimName": held}})
            if draft.maybe(0.1):
                sub(pod, "status")["phase"] = "Succeeded"


def missing_claim(draft: Draft) -> None:
    """A claim that the member does not have: Karmada may bring it along with the workload, or nobody will."""
    draft.unknowable.add("missing claim")
    draft.has_own = False
    draft.mount("absent")


STORAGE: dict[str, Constraint] = {
    "zonal volume": zonal_volume,
    "WaitForFirstConsumer": first_consumer,
    "ReadWriteOncePod": once,
    "attach limits": attach_limit,
    "missing claim": missing_claim,
}
"""By name; a template has at most one of these."""
