"""Claims, volumes and attach limits: VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone."""

from dataclasses import dataclass
from fractions import Fraction

from tests.truth.amounts import amounts, claim_names
from tests.truth.fields import Json, integer, labels_of, name_of, objects, strings, table, text, words
from tests.truth.selectors import label_selector_matches, node_selector_matches
from tests.truth.world import World

_BOUND = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


@dataclass(frozen=True)
class Binding:
    """What the first pod of the template settled for its claims: a volume by claim, or where one was made."""

    volumes: tuple[tuple[str, str], ...] = ()
    segments: tuple[tuple[str, str], ...] = ()


class Volumes:
    """The template's claims in a cluster. ``refusal``: why no node at all will do, if none will."""

    def __init__(self, world: World, pod: Json, namespace: str) -> None:
        self._world = world
        self._namespace = namespace
        self._names = claim_names(pod)
        self._claims = {name: world.find("PersistentVolumeClaim", name, namespace) for name in self._names}
        self.refusal = self._refused()
        known = {name: claim for name, claim in self._claims.items() if claim is not None}
        self._unbound = [
            name for name in dict.fromkeys(self._names) if name in known and not _is_bound(known[name])
        ]
        self._bound = [
            name for name in dict.fromkeys(self._names) if name in known and _is_bound(known[name])
        ]
        self._known = known
        self.once = [
            name for name, claim in known.items() if "ReadWriteOncePod" in words(claim, "spec", "accessModes")
        ]
        self.is_settled_by_first = bool(self._unbound) and not self.refusal
        self._attached = {name_of(node): self._attached_on(name_of(node)) for node in world.all("Node")}
        self._limits = {name_of(each): _limits(each) for each in world.all("CSINode")}
        self.used_once = any(
            name in self.once
            for node in world.all("Node")
            for held in world.held(name_of(node))
            if text(held, "metadata", "namespace") == namespace
            for name in claim_names(held)
        )

    def _refused(self) -> str:
        for name, claim in self._claims.items():
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if text(claim, "status", "phase") == "Lost":
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
            if text(claim, "metadata", "deletionTimestamp"):
                return f'persistentvolumeclaim "{name}" is being deleted'
            volume = text(claim, "spec", "volumeName")
            if volume and self._world.find("PersistentVolume", volume) is None:
                return f'persistentvolume "{volume}" not found'
            if not _is_bound(claim) and (volume or not self._waits(claim)):
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _class(self, claim: Json) -> Json:
        return self._world.find("StorageClass", text(claim, "spec", "storageClassName")) or {}

    def _waits(self, claim: Json) -> bool:
        return text(self._class(claim), "volumeBindingMode") == "WaitForFirstConsumer"

    def bindings(self, node: Json) -> Binding | None:
        """What a first pod on this node settles; None where its claims cannot be met there."""
        chosen: dict[str, str] = {}
        segments: dict[str, str] = {}
        claims = sorted(self._unbound, key=lambda name: _size(self._known[name]))
        for name in claims:
            volume = self._smallest(self._known[name], node, set(chosen.values()))
            if volume is not None:
                chosen[name] = name_of(volume)
                continue
            of_class = self._class(self._known[name])
            if text(of_class, "provisioner") in ("", _NO_PROVISIONER) or not _allows(of_class, node):
                return None
            segments |= self._segment(text(of_class, "provisioner"), node)
        return Binding(tuple(sorted(chosen.items())), tuple(sorted(segments.items())))

    def _segment(self, driver: str, node: Json) -> dict[str, str]:
        """Where a volume made for this node can be reached: nodes alike in the driver's topology keys."""
        for each in objects(self._world.find("CSINode", name_of(node)) or {}, "spec", "drivers"):
            if text(each, "name") == driver:
                labels = labels_of(node)
                return {key: labels[key] for key in words(each, "topologyKeys") if key in labels}
        return {}

    def _smallest(self, claim: Json, node: Json, taken: set[str]) -> Json | None:
        """volume.FindMatchingVolume: bound to the claim beforehand, else the smallest that will do."""
        best: Json | None = None
        for volume in self._world.all("PersistentVolume"):
            if name_of(volume) in taken or _size(volume, "capacity") < _size(claim):
                continue
            reaches = _reaches(volume, node)
            reference = table(volume, "spec", "claimRef")
            if reference:
                mine = (text(reference, "name"), text(reference, "namespace")) == (
                    name_of(claim),
                    self._namespace,
                )
                if mine and text(reference, "uid") in ("", text(claim, "metadata", "uid")):
                    return volume if reaches else None
                continue
            selector = table(claim, "spec").get("selector")
            if (
                text(volume, "status", "phase") != "Available"
                or (selector is not None and not label_selector_matches(selector, labels_of(volume)))
                or text(volume, "spec", "storageClassName") != text(claim, "spec", "storageClassName")
                or not reaches
                or not set(words(claim, "spec", "accessModes")) <= set(words(volume, "spec", "accessModes"))
            ):
                continue
            if best is None or _size(volume, "capacity") < _size(best, "capacity"):
                best = volume
        return best

    def rejects(self, node: Json, own: int, elsewhere: int, settled: Binding | None) -> str:
        """The filter that keeps one more pod off the node that has ``own`` of them, empty where none does."""
        if self.refusal:
            return "VolumeBinding"
        if self.once and (self.used_once or own or elsewhere):
            return "VolumeRestrictions"
        if self._over_limit(node, own, settled):
            return "NodeVolumeLimits"
        names = [text(self._known[name], "spec", "volumeName") for name in self._bound]
        if settled is None:
            if self._unbound and self.bindings(node) is None:
                return "VolumeBinding"
        else:
            names += [volume for _, volume in settled.volumes]
            labels = labels_of(node)
            if any(labels.get(key) != value for key, value in settled.segments):
                return "VolumeBinding"
        volumes = [self._world.find("PersistentVolume", name) or {} for name in names]
        if not all(_reaches(volume, node) for volume in volumes):
            return "VolumeBinding"
        if not all(_in_zone(volume, node) for volume in volumes):
            return "VolumeZone"
        return ""

    def _over_limit(self, node: Json, own: int, settled: Binding | None) -> bool:
        limits = self._limits.get(name_of(node), {})
        attached = self._attached[name_of(node)]
        chosen = dict(settled.volumes) if settled is not None else {}
        wanted = {}
        for name in self._names:
            handle = self._handle(self._known.get(name), chosen.get(name, ""))
            if handle is not None:
                wanted[handle] = handle[0]
        if own:
            return False  # What one pod of the template has attached the next one finds there.
        fresh = [driver for handle, driver in wanted.items() if handle not in attached]
        return any(
            sum(used == driver for used, _ in attached) + fresh.count(driver) > limits[driver]
            for driver in set(fresh)
            if driver in limits
        )

    def _handle(self, claim: Json | None, chosen: str = "") -> tuple[str, str] | None:
        """CSILimits.getCSIDriverInfo: driver and volume, None for what is not counted."""
        if claim is None:
            return None
        volume = self._world.find("PersistentVolume", chosen or text(claim, "spec", "volumeName"))
        if volume is None:
            driver = text(self._class(claim), "provisioner")
            return (driver, f"{text(claim, 'metadata', 'namespace')}/{name_of(claim)}") if driver else None
        source = table(volume, "spec", "csi")
        return (text(source, "driver"), text(source, "volumeHandle")) if source else None

    def _attached_on(self, node: str) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for pod in self._world.held(node):
            for name in claim_names(pod):
                claim = self._world.find("PersistentVolumeClaim", name, text(pod, "metadata", "namespace"))
                handle = self._handle(claim)
                if handle is not None:
                    found.add(handle)
        return found


def _is_bound(claim: Json) -> bool:
    return bool(text(claim, "spec", "volumeName")) and _BOUND in strings(claim, "metadata", "annotations")


def _size(obj: Json, *path: str) -> Fraction:
    found = amounts(obj, "spec", *(path or ("resources", "requests")))
    return found.get("storage", Fraction(0))


def _limits(csi_node: Json) -> dict[str, int]:
    counts = {
        text(each, "name"): integer(each, "allocatable", "count")
        for each in objects(csi_node, "spec", "drivers")
    }
    return {name: count for name, count in counts.items() if count is not None}


def _reaches(volume: Json, node: Json) -> bool:
    required = table(volume, "spec", "nodeAffinity").get("required")
    return not isinstance(required, dict) or node_selector_matches(required, node)


def _in_zone(volume: Json, node: Json) -> bool:
    labels = labels_of(node)
    if not any(key in labels for key in _ZONE_LABELS):
        return True
    for key, general in _ZONE_LABELS.items():
        zones = labels_of(volume).get(key)
        if zones is not None and labels.get(key, labels.get(general, "")) not in zones.split("__"):
            return False
    return True


def _allows(of_class: Json, node: Json) -> bool:
    """MatchTopologySelectorTerms: no terms allow everything."""
    terms = objects(of_class, "allowedTopologies")
    labels = labels_of(node)
    return not terms or any(
        all(
            labels.get(text(each, "key"), "") in words(each, "values") and text(each, "key") in labels
            for each in objects(term, "matchLabelExpressions")
        )
        for term in terms
    )
