"""Pods with persistent volumes: where they can go, and how many of them."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
import numpy as np
import pytest

from estimator.cluster.columns import NodeColumns
from estimator.cluster.occupancy import PodTraits
from estimator.cluster.report import Report
from estimator.cluster.volumes import VolumesMirror
from estimator.fit.limits import ENDLESS, Limit
from estimator.fit.pod_volumes import PodVolume, pod_volumes
from estimator.fit.surroundings import volume_limits
from fairway.kube.member_kinds import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from fairway.kube.objects import VolumeClaimSpec
from fairway.kube.templates import PodTemplate
from tests.builders import Complaints, cluster, no_complaints, node

Json = Mapping[str, object]
ClaimUses = Mapping[str, Mapping[int, int]]
_T = TypeVar("_T")

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def typed(stated: object, kind: type[_T]) -> _T:
    return msgspec.json.decode(msgspec.json.encode(stated), type=kind)


# --- objects -----------------------------------------------------------------------------------------------


def claim(name: str, volume: str = "", modes: Iterable[str] = (), **more: object) -> PersistentVolumeClaim:
    """Bound where it has a volume; ``more``: annotations, deletionTimestamp, phase, or fields of the spec."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = {
        "name": name,
        "namespace": "team",
        "annotations": more.pop("annotations", annotations),
        "deletionTimestamp": more.pop("deletionTimestamp", None),
    }
    phase = more.pop("phase", "Bound" if volume else "Pending")
    spec = {"volumeName": volume, "accessModes": list(modes), **more}
    return typed({"metadata": meta, "spec": spec, "status": {"phase": phase}}, PersistentVolumeClaim)


def volume(
    name: str,
    *terms: Json,
    labels: Mapping[str, str] | None = None,
    phase: str = "Bound",
    size: object = "1Gi",
    **spec: object,
) -> PersistentVolume:
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [t]} for t in terms]}}
    stated = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"capacity": {"storage": size}, "nodeAffinity": affinity if terms else None, **spec},
        "status": {"phase": phase},
    }
    return typed(stated, PersistentVolume)


def within(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": values}


def typed_volume(name: str, term: Json, stated: Mapping[str, object]) -> PersistentVolume:
    """As `volume`, from a table."""
    meta = {"name": name, "labels": stated.get("labels")}
    spec = {key: value for key, value in stated.items() if key not in ("labels", "size", "phase")}
    spec["capacity"] = {"storage": stated.get("size", "1Gi")}
    spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    return typed({"metadata": meta, "spec": spec, "status": {"phase": stated["phase"]}}, PersistentVolume)


def local(
    name: str, host: str, labels: Mapping[str, str] | None = None, size: object = "1Gi", **more: object
) -> PersistentVolume:
    return volume(
        name,
        within(HOST, host),
        labels=labels,
        size=size,
        phase="Available",
        storageClassName="local",
        **more,
    )


def storage_class(name: str, provisioner: str = "ebs", waits: bool = True, **more: object) -> StorageClass:
    annotations = more.pop("annotations", None)
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    meta = {"name": name, "annotations": annotations, "creationTimestamp": more.pop("created", None)}
    return typed(
        {"metadata": meta, "provisioner": provisioner, "volumeBindingMode": mode, **more}, StorageClass
    )


def csi_node(name: str, **limits: int | None) -> CsiNode:
    drivers = [{"name": driver, "allocatable": {"count": count}} for driver, count in limits.items()]
    return typed({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CsiNode)


LOCAL = storage_class("local", "kubernetes.io/no-provisioner")
IN_X, IN_Y = ({"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]} for zone in "xy")
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
EBS = storage_class("ebs", allowedTopologies=[IN_X])
ANY = storage_class("any")
AT_ONCE = storage_class("at-once", waits=False)

Stored = PersistentVolumeClaim | PersistentVolume | StorageClass | CsiNode


def known(*objects: Stored, report: Report = no_complaints, synced: bool = True) -> VolumesMirror:
    found = VolumesMirror(report)
    for stored in objects:
        match stored:
            case PersistentVolumeClaim():
                found.claims.upsert(stored)
            case PersistentVolume():
                found.volumes.upsert(stored)
            case StorageClass():
                found.classes.upsert(stored)
            case CsiNode():
                found.csi_nodes.upsert(stored)
    for kind in (found.claims, found.volumes, found.classes, found.csi_nodes):
        kind.synced = synced
    return found


# --- nodes and questions -----------------------------------------------------------------------------------


def nodes() -> NodeColumns:
    """a and b in zone x, c in zone y, d without a zone; row by row."""
    zones = {"a": "x", "b": "x", "c": "y", "d": ""}
    return cluster(
        *(node(name).label({HOST: name, **({ZONE: zone} if zone else {})}) for name, zone in zones.items())
    ).columns


def pod(**spec: object) -> PodTemplate:
    return typed({"spec": spec}, PodTemplate)


def shared(*names: str) -> tuple[PodVolume, ...]:
    return tuple(PodVolume(f"team/{name}") for name in names)


def own(*asks: Json) -> tuple[PodVolume, ...]:
    templates = {f"data{index}": typed(ask, VolumeClaimSpec) for index, ask in enumerate(asks)}
    return pod_volumes(pod().spec, "team", templates)


def asks(storage_class: str | None = None, size: object = "1Gi", **more: object) -> Json:
    return {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}, **more}


def limits_of(
    objects: Iterable[Stored], asked: tuple[PodVolume, ...], uses: ClaimUses | None = None
) -> dict[str, Limit]:
    """``uses``: by claim the rows on which pods use it, and how many do."""
    columns = nodes()
    for claim_key, pods in (uses or {}).items():
        for row, count in pods.items():
            for _ in range(count):
                use(columns, row, claim_key)
    return {one.filter: one for one in volume_limits(columns, known(*objects), asked)}


def use(columns: NodeColumns, row: int, claim_key: str) -> None:
    group = columns.occupancy.group(PodTraits("team", claims=(claim_key,)))
    columns.occupancy.hold(row, group)


def rows(limit: Limit) -> str:
    """The names of the nodes that are left."""
    present = [True] * 4 if limit.rows is None else limit.rows.tolist()
    return "".join(name for name, is_in in zip("abcd", present, strict=True) if is_in)


# --- where bound volumes are -------------------------------------------------------------------------------

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_ZONE = "node(s) had no available volume zone"

# Objects, claims of the pod, filter, nodes that are left, reason.
BOUND: dict[str, tuple[list[Stored], tuple[PodVolume, ...], str, str, str]] = {
    "its host": (
        [claim("c", "v"), volume("v", within(HOST, "b"))],
        shared("c"),
        "VolumeBinding",
        "b",
        CONFLICT,
    ),
    "either term": (
        [claim("c", "v"), volume("v", within(HOST, "b"), within(ZONE, "y"))],
        shared("c"),
        "VolumeBinding",
        "bc",
        CONFLICT,
    ),
    "two volumes": (
        [
            claim("c", "v"),
            volume("v", within(ZONE, "x")),
            claim("e", "w"),
            volume("w", within(HOST, "a", "c")),
        ],
        shared("c", "e"),
        "VolumeBinding",
        "a",
        CONFLICT,
    ),
    "its node is gone": (
        [claim("c", "v"), volume("v", within(HOST, "gone"))],
        shared("c"),
        "VolumeBinding",
        "",
        CONFLICT,
    ),
    "its zone by label": (
        [claim("c", "v"), volume("v", labels={ZONE: "x"})],
        shared("c"),
        "VolumeZone",
        "abd",
        NO_ZONE,
    ),
    "zones by label": (
        [claim("c", "v"), volume("v", labels={ZONE: "y__z"})],
        shared("c"),
        "VolumeZone",
        "cd",
        NO_ZONE,
    ),
    "its zone by the old label": (
        [claim("c", "v"), volume("v", labels={OLD_ZONE: "y"})],
        shared("c"),
        "VolumeZone",
        "cd",
        NO_ZONE,
    ),
    "a region that no node states": (
        [claim("c", "v"), volume("v", labels={"topology.kubernetes.io/region": "r"})],
        shared("c"),
        "VolumeZone",
        "d",
        NO_ZONE,
    ),
    "on its way to a node": (
        [claim("c", storageClassName="any", annotations={"volume.kubernetes.io/selected-node": "c"}), ANY],
        shared("c"),
        "VolumeBinding",
        "c",
        "node(s) didn't find available persistent volumes to bind",
    ),
}


@pytest.mark.parametrize(("objects", "asked", "name", "left", "reason"), BOUND.values(), ids=BOUND)
def test_volumes_that_are_bound(
    objects: list[Stored], asked: tuple[PodVolume, ...], name: str, left: str, reason: str
) -> None:
    found = limits_of(objects, asked)
    assert list(found) == [name]
    assert (rows(found[name]), found[name].reason, found[name].unknown) == (left, reason, ())


@pytest.mark.parametrize(
    "objects",
    [
        [claim("c", "v"), volume("v")],
        [claim("c", "v"), volume("v", within(HOST, "a", "b", "c", "d"))],
        [claim("c", "v"), volume("v", labels={ZONE: "x__"})],
    ],
)
def test_volumes_that_all_nodes_reach(objects: list[Stored]) -> None:
    assert limits_of(objects, shared("c")) == {}


# --- claims that hold their pods up ------------------------------------------------------------------------

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"

# Objects, filter, reason.
STUCK: dict[str, tuple[list[Stored], str, str]] = {
    "its volume is gone": ([claim("c", "v")], "VolumeZone", 'persistentvolume "v" not found'),
    "lost": (
        [claim("c", "v", phase="Lost")],
        "VolumeBinding",
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
    ),
    "being deleted": (
        [claim("c", "v", deletionTimestamp="2026-01-01T00:00:00Z"), volume("v")],
        "VolumeBinding",
        'persistentvolumeclaim "c" is being deleted',
    ),
    "unbound, to be bound at once": (
        [claim("c", storageClassName="at-once"), AT_ONCE],
        "VolumeBinding",
        UNBOUND,
    ),
    "unbound without a class": ([claim("c")], "VolumeBinding", UNBOUND),
    "unbound of a class that is not there": ([claim("c", storageClassName="gone")], "VolumeBinding", UNBOUND),
    "promised a volume": (
        [claim("c", "v", phase="Pending", annotations={}, storageClassName="any"), ANY, volume("v")],
        "VolumeBinding",
        UNBOUND,
    ),
    "of a class by annotation": (
        [claim("c", annotations={"volume.beta.kubernetes.io/storage-class": "at-once"}), AT_ONCE],
        "VolumeBinding",
        UNBOUND,
    ),
}


@pytest.mark.parametrize(("objects", "name", "reason"), STUCK.values(), ids=STUCK)
def test_claims_that_hold_pods_up(objects: list[Stored], name: str, reason: str) -> None:
    found = limits_of(objects, shared("c"))[name]
    assert (found.total, found.reason, found.unknown) == (0, reason, ())


# --- volumes to come ---------------------------------------------------------------------------------------

BIND = "node(s) didn't find available persistent volumes to bind"

# Objects, claims, nodes that are left, pods by node (None: any number), pods in all, whether all is known.
TO_COME: dict[str, tuple[list[Stored], tuple[PodVolume, ...], str, list[int] | None, int | None, bool]] = {
    "where the class allows": ([EBS], own(asks("ebs")), "ab", None, None, False),
    "anywhere": ([ANY], own(asks("any")), "abcd", None, None, False),
    "shared, where the class allows": (
        [EBS, claim("c", storageClassName="ebs")],
        shared("c"),
        "ab",
        None,
        None,
        False,
    ),
    "made at once": ([AT_ONCE], own(asks("at-once")), "abcd", None, None, False),
    "of the default class": (
        [
            storage_class("old", created="2025", annotations=DEFAULT),
            storage_class("new", created="2026", annotations=DEFAULT, allowedTopologies=[IN_Y]),
        ],
        own(asks()),
        "c",
        None,
        None,
        False,
    ),
    "made, or lying ready": (
        [EBS, volume("v", within(HOST, "d"), phase="Available", storageClassName="ebs")],
        own(asks("ebs")),
        "abd",
        None,
        None,
        False,
    ),
    "local ones": (
        [LOCAL, local("v", "a"), local("w", "a"), local("u", "c"), local("z", "gone")],
        own(asks("local")),
        "abcd",
        [2, 0, 1, 0],
        3,
        True,
    ),
    "two for each pod": (
        [LOCAL, *(local(f"v{index}", "a") for index in range(5)), local("u", "c")],
        own(asks("local"), asks("local")),
        "abcd",
        [2, 0, 0, 0],
        3,
        True,
    ),
    "of a zone, more than one node": (
        [
            LOCAL,
            *(volume(f"v{n}", within(ZONE, "x"), phase="Available", storageClassName="local") for n in "12"),
        ],
        own(asks("local")),
        "abcd",
        [2, 2, 0, 0],
        2,
        True,
    ),
    "of several zones": (
        [
            LOCAL,
            volume("v", within(ZONE, "x"), phase="Available", storageClassName="local"),
            local("w", "a"),
        ],
        own(asks("local")),
        "abcd",
        [2, 1, 0, 0],
        2,
        False,
    ),
    "local ones that are bound at once": (
        [storage_class("local", "kubernetes.io/no-provisioner", waits=False), local("v", "a")],
        own(asks("local")),
        "abcd",
        [1, 0, 0, 0],
        1,
        False,
    ),
    "none left": ([LOCAL], own(asks("local")), "abcd", [0, 0, 0, 0], 0, True),
    "no such class": ([], own(asks("gone")), "abcd", [0, 0, 0, 0], 0, True),
    "no class and nobody's default": ([], own(asks()), "abcd", [0, 0, 0, 0], 0, True),
    "shared, local": (
        [LOCAL, claim("c", storageClassName="local"), local("v", "a"), local("w", "c")],
        shared("c"),
        "ac",
        None,
        None,
        False,
    ),
    "shared, one is kept for it": (
        [
            LOCAL,
            claim("c", storageClassName="local"),
            local("v", "b", claimRef={"namespace": "team", "name": "c"}),
        ],
        shared("c"),
        "b",
        None,
        None,
        False,
    ),
    "not in this cluster": ([], shared("c"), "abcd", None, None, False),
}


@pytest.mark.parametrize(
    ("objects", "asked", "left", "caps", "total", "is_known"), TO_COME.values(), ids=TO_COME
)
def test_volumes_to_come(
    objects: list[Stored],
    asked: tuple[PodVolume, ...],
    left: str,
    caps: list[int] | None,
    total: int | None,
    is_known: bool,
) -> None:
    found = limits_of(objects, asked)["VolumeBinding"]
    assert rows(found) == left
    assert (None if found.caps is None else found.caps.tolist()) == caps
    assert found.total == total
    assert (found.unknown == ()) is is_known
    assert bool(found.reason) == (left != "abcd" or caps is not None)


WANTED = {"accessModes": ["ReadWriteMany"], "selector": {"matchLabels": {"disk": "ssd"}}}

WAITING = typed(
    {"metadata": {"name": "c", "namespace": "team"}, "spec": asks("local", **WANTED)}, PersistentVolumeClaim
)

# What a volume that lies ready differs in from one that would do.
UNFIT: dict[str, dict[str, object]] = {
    "too small": {"size": "1Mi"},
    "of another mode": {"volumeMode": "Block"},
    "of another class": {"storageClassName": "other"},
    "for one node at a time": {"accessModes": ["ReadWriteOnce"]},
    "not among the selected": {"labels": {"disk": "hdd"}},
    "in use": {"phase": "Bound"},
    "kept for a claim": {"claimRef": {"namespace": "team", "name": "other"}},
}


@pytest.mark.parametrize("differs", UNFIT.values(), ids=UNFIT)
def test_volumes_that_will_not_do(differs: dict[str, object]) -> None:
    good: dict[str, object] = {
        "labels": {"disk": "ssd"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "phase": "Available",
        "storageClassName": "local",
    }
    asked = (*own(asks("local", **WANTED)), *shared("c"))
    found = []
    for stated in (good, good | differs):
        stored = typed_volume("v", within(HOST, "b"), stated)
        objects = (LOCAL, WAITING, stored)
        found += [limits_of(objects, (one,))["VolumeBinding"] for one in asked]
    assert [limit.total for limit in found] == [1, None, 0, None]
    assert [rows(limit) for limit in found] == ["abcd", "b", "abcd", ""]


@pytest.mark.parametrize(
    ("differs", "left"),
    [
        ({"labels": {"disk": "hdd"}, "accessModes": ["ReadOnlyMany"]}, "b"),
        ({"size": "1Mi"}, ""),
        ({"volumeMode": "Block"}, ""),
        ({"claimRef": {"namespace": "team", "name": "c", "uid": "another"}}, ""),
        ({"claimRef": {"namespace": "other", "name": "c"}}, ""),
    ],
)
def test_volumes_that_are_kept_for_a_claim_need_not_be_all_that_it_asks_for(
    differs: dict[str, object], left: str
) -> None:
    kept: dict[str, object] = {
        "phase": "Available",
        "storageClassName": "local",
        "claimRef": {"namespace": "team", "name": "c"},
    }
    stored = typed_volume("v", within(HOST, "b"), kept | differs)
    found = limits_of((LOCAL, WAITING, stored), shared("c"))
    assert rows(found["VolumeBinding"]) == left


def test_volumes_of_a_node_that_was_there_are_not_counted() -> None:
    mirror = cluster(node("a").label({HOST: "a"}), node("b").label({HOST: "b"}))
    objects, asked = known(LOCAL, local("v", "a"), local("w", "b")), own(asks("local"))
    assert volume_limits(mirror.columns, objects, asked)[0].total == 2
    mirror.columns.hold("b", {"pods": 1})
    mirror.nodes.delete("b")
    assert volume_limits(mirror.columns, objects, asked)[0].total == 1


def test_volumes_are_taken_and_given_back() -> None:
    mirror, columns, asked = known(LOCAL, local("v", "a")), nodes(), own(asks("local"))
    version = mirror.version

    def total() -> int | None:
        return volume_limits(columns, mirror, asked)[0].total

    assert total() == 1
    mirror.volumes.upsert(volume("v", within(HOST, "a"), storageClassName="local"))
    assert total() == 0
    mirror.volumes.upsert(local("v", "a"))
    assert total() == 1
    mirror.volumes.delete("v")
    assert total() == 0
    assert mirror.version == version + 3


# --- how many volumes --------------------------------------------------------------------------------------


def csi(name: str, driver: str = "ebs") -> PersistentVolume:
    return volume(name, csi={"driver": driver, "volumeHandle": f"h-{name}"})


IN_USE: list[Stored] = [
    claim("c1", "v1"),
    csi("v1"),
    claim("c2", "v2"),
    csi("v2"),
    claim("c3", "v3"),
    csi("v3"),
]
HELD: ClaimUses = {"team/c1": {0: 2}, "team/c2": {0: 1, 1: 1}}
E = ENDLESS

# Objects, claims, uses, pods by node.
ATTACHED: dict[str, tuple[list[Stored], tuple[PodVolume, ...], ClaimUses, list[int]]] = {
    "own volumes": ([ANY, csi_node("a", ebs=3), csi_node("b", ebs=3)], own(asks("any")), {}, [3, 3, E, E]),
    "own beside those in use": (
        [ANY, *IN_USE, csi_node("a", ebs=3), csi_node("b", ebs=3)],
        own(asks("any")),
        HELD,
        [1, 2, E, E],
    ),
    "two each": ([ANY, csi_node("a", ebs=5)], own(asks("any"), asks("any", "2Gi")), {}, [2, E, E, E]),
    "a shared one that is there already": (
        [*IN_USE, csi_node("a", ebs=2), csi_node("b", ebs=1)],
        shared("c1"),
        HELD,
        [E, 0, E, E],
    ),
    "a shared one and own ones": (
        [ANY, *IN_USE, csi_node("a", ebs=4), csi_node("b", ebs=4)],
        (*shared("c3"), *own(asks("any"))),
        HELD,
        [1, 2, E, E],
    ),
    "more in use than allowed": ([ANY, *IN_USE, csi_node("a", ebs=1)], own(asks("any")), HELD, [0, E, E, E]),
    "a shared one that is there already, with more than allowed": (
        [*IN_USE, csi_node("a", ebs=1)],
        shared("c1"),
        HELD,
        [E, E, E, E],
    ),
    "one not bound yet, in use": (
        [ANY, claim("c", storageClassName="any"), csi_node("a", ebs=1), csi_node("b", ebs=0)],
        shared("c"),
        {"team/c": {0: 1}},
        [E, 0, E, E],
    ),
    "made by what became a CSI driver": (
        [storage_class("gp", "kubernetes.io/aws-ebs"), csi_node("a", **{"ebs.csi.aws.com": 1})],
        own(asks("gp")),
        {},
        [1, E, E, E],
    ),
    "the scarcer of two drivers": (
        [ANY, storage_class("fsx", "fsx"), csi_node("a", ebs=3, fsx=1)],
        own(asks("any"), asks("fsx")),
        {},
        [1, E, E, E],
    ),
}


@pytest.mark.parametrize(("objects", "asked", "uses", "caps"), ATTACHED.values(), ids=ATTACHED)
def test_attach_limits(
    objects: list[Stored], asked: tuple[PodVolume, ...], uses: ClaimUses, caps: list[int]
) -> None:
    found = limits_of(objects, asked, uses)["NodeVolumeLimits"]
    assert found.caps is not None
    assert found.caps.tolist() == caps
    assert found.reason == "node(s) exceed max volume count"


@pytest.mark.parametrize(
    "objects",
    [
        [ANY, csi_node("a", other=1)],
        [ANY, csi_node("a", ebs=None)],
        [ANY, csi_node("gone", ebs=1)],
    ],
)
def test_no_attach_limits(objects: list[Stored]) -> None:
    assert "NodeVolumeLimits" not in limits_of(objects, own(asks("any")))


def test_attach_limits_follow_what_comes_and_goes() -> None:
    columns, mirror = nodes(), known(ANY, *IN_USE, csi_node("a", ebs=3))

    def left() -> int:
        (limit, *_) = volume_limits(columns, mirror, own(asks("any")))
        assert limit.caps is not None
        return int(limit.caps[0])

    assert (left(), left()) == (3, 3)
    use(columns, 0, "team/c1")
    assert left() == 2
    use(columns, 0, "team/c2")
    assert left() == 1
    mirror.claims.delete("team/c1")
    assert left() == 2
    columns.occupancy.release(0, columns.occupancy.group(PodTraits("team", claims=("team/c2",))))
    assert left() == 3


@pytest.mark.parametrize(
    ("uses", "modes", "total"),
    [
        ({}, ["ReadWriteOncePod"], 1),
        ({"team/c": {2: 1}}, ["ReadWriteOncePod"], 0),
        ({"team/other": {2: 1}}, ["ReadWriteOncePod"], 1),
        ({"team/c": {2: 1}}, ["ReadWriteOnce"], None),
    ],
)
def test_one_pod_at_a_time(uses: ClaimUses, modes: list[str], total: int | None) -> None:
    found = limits_of([claim("c", "v", modes), volume("v")], shared("c"), uses)
    if total is None:
        assert found == {}
    else:
        assert found["VolumeRestrictions"].total == total
        assert "ReadWriteOncePod" in found["VolumeRestrictions"].reason


# --- templates ---------------------------------------------------------------------------------------------


def test_claims_of_a_template() -> None:
    spec = pod(
        volumes=[
            {"name": "config", "configMap": {"name": "x"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "again", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": asks("local", "2Gi")}}},
            {"name": "www", "persistentVolumeClaim": {"claimName": "replaced"}},
        ]
    ).spec
    found = pod_volumes(spec, "team", {"www": typed(asks("any"), VolumeClaimSpec)})
    assert [(one.key, one.own) for one in found] == [
        ("team/c", False),
        ("team/scratch", True),
        ("team/www", True),
    ]
    assert [one.ask.storage_class for one in found if one.ask is not None] == ["local", "any"]
    assert hash(found) == hash(pod_volumes(spec, "team", {"www": typed(asks("any"), VolumeClaimSpec)}))


# --- what is not known, what is wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "asked", "told"),
    [
        ([], shared("c"), ["PersistentVolumeClaims cannot be read"]),
        ([claim("c", "v")], shared("c"), ["PersistentVolumes cannot be read"]),
        ([claim("c", storageClassName="any")], shared("c"), ["StorageClasses cannot be read"]),
        ([], own(asks("any")), ["StorageClasses cannot be read"]),
        (
            [claim("c", "v"), csi("v")],
            shared("c"),
            ["CSINodes cannot be read: how many volumes of ebs a node takes is not known"],
        ),
        ([], (), []),
    ],
)
def test_kinds_that_cannot_be_read_are_told(
    objects: list[Stored], asked: tuple[PodVolume, ...], told: list[str]
) -> None:
    found = volume_limits(nodes(), known(*objects, synced=False), asked)
    texts = [text for limit in found for text in limit.unknown]
    assert all(limit.total is None and limit.rows is None for limit in found)
    assert len(texts) == len(told)
    assert all(text.startswith(part) for text, part in zip(texts, told, strict=True))


def test_what_cannot_be_parsed_is_told_and_the_rest_works() -> None:
    told = Complaints()
    mirror = known(
        volume("v", {"key": ZONE, "operator": "Near", "values": ["x"]}, within(HOST, "c"), size="big"),
        claim("c", "v", resources={"requests": {"storage": "?"}}),
        claim("e", storageClassName="odd", selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        storage_class(
            "odd",
            allowedTopologies=[
                {"matchLabelExpressions": [{"key": "?", "values": ["x"]}]},
                {},
                IN_Y,
            ],
        ),
        volume("w", phase="Available", storageClassName="odd"),
        report=told,
    )
    assert [(resource, key) for resource, key, _ in told] == [
        ("persistentvolumes", "v"),
        ("persistentvolumes", "v"),
        ("persistentvolumeclaims", "team/c"),
        ("persistentvolumeclaims", "team/e"),
        ("storageclasses", "odd"),
    ]
    texts = " ".join(text for _, _, text in told)
    assert "spec.capacity.storage: 'big' is not a Kubernetes quantity" in texts
    assert "spec.nodeAffinity.required.nodeSelectorTerms[0]: " in texts
    assert "allowedTopologies[0]: '?' is not a label key" in texts
    found = [volume_limits(nodes(), mirror, shared(name))[0] for name in "ce"]
    assert [rows(limit) for limit in found] == ["c", "c"]


def test_names_of_a_megabyte_are_not_repeated_in_full() -> None:
    name = "x" * (1 << 20)
    objects: list[Stored] = [claim(name, name), claim("c", name), volume("v", size=name)]
    told = Complaints()
    mirror = known(*objects, csi_node(name, ebs=1), storage_class(name), report=told)
    texts = [*(text for report in told for text in report)]
    for asked in (shared(name), shared("c"), shared(name + "y"), own(asks(name)), own(asks(name + "y"))):
        for limit in volume_limits(nodes(), mirror, asked):
            texts += [limit.reason, *limit.unknown]
    assert max(map(len, texts)) < 600


def test_rows_of_nodes_that_are_gone_take_nothing() -> None:
    mirror = cluster(node("a").label({ZONE: "x"}), node("b").label({ZONE: "x"}))
    mirror.columns.hold("later", {"pods": 1})
    mirror.nodes.delete("b")
    objects = known(claim("c", "v"), volume("v", {"key": "no", "operator": "DoesNotExist"}))
    assert volume_limits(mirror.columns, objects, shared("c")) == ()
    for terms in ([], [{"key": "no", "operator": "DoesNotExist"}]):
        ready = known(LOCAL, volume("v", *terms, phase="Available", storageClassName="local"))
        (limit,) = volume_limits(mirror.columns, ready, own(asks("local")))
        assert limit.caps is not None
        assert np.array_equal(limit.caps, mirror.columns.present.astype(np.int64))
