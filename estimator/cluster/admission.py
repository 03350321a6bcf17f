"""What the member's API server adds to a pod when it is created: RuntimeClasses, LimitRanges, tolerations.

What `estimator.fit.admission` makes of it mirrors the admission plugins of Kubernetes 1.36.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from estimator.cluster.kind_mirror import KindMirror
from estimator.cluster.report import Report
from fairway.kube.member_kinds import LimitRange, LimitRangeItem, Namespace, RuntimeClass
from fairway.kube.objects import RawQuantity, RawResources, object_key
from fairway.resources import ResourceError, parse_nano_list
from fairway.taints import Toleration

CONTAINER, POD = "Container", "Pod"
_MAX_ENTRIES = 512
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Bound:
    """A quantity that a LimitRange states: in nano-units, and as it is written."""

    nano: int
    text: str


@dataclass(frozen=True, slots=True)
class LimitItem:
    """One entry of a LimitRange for pods or containers, defaulted as the API server stores it.

    What it gives to containers that state nothing, as quantities are written, and what it holds all to.
    """

    type: str
    default: tuple[tuple[str, RawQuantity], ...] = ()
    default_request: tuple[tuple[str, RawQuantity], ...] = ()
    min: tuple[tuple[str, Bound], ...] = ()
    max: tuple[tuple[str, Bound], ...] = ()
    ratio: tuple[tuple[str, Bound], ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeRules:
    """What a RuntimeClass adds to its pods; ``overhead`` as written, None where it states none at all."""

    overhead: tuple[tuple[str, RawQuantity], ...] | None = None
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClassMirror(KindMirror[RuntimeRules]):
    """The RuntimeClasses of one cluster, by name."""

    def upsert(self, stated: RuntimeClass) -> None:
        """A RuntimeClass appeared or changed."""
        key = stated.metadata.name
        scheduling = stated.scheduling
        self._set(
            key,
            RuntimeRules(
                None if stated.overhead is None else self._overhead(key, stated.overhead.pod_fixed),
                tuple(sorted(((scheduling.node_selector if scheduling else None) or {}).items())),
                tuple(
                    Toleration(t.key, t.operator, t.value, t.effect)
                    for t in (scheduling.tolerations if scheduling else None) or ()
                ),
            ),
        )

    def _overhead(self, key: str, raw: RawResources | None) -> tuple[tuple[str, RawQuantity], ...]:
        read = _readable(raw, lambda problem: self._tell(key, f"overhead.podFixed.{problem}"))
        return tuple((name, value) for name, value, _ in read)

    def _tell(self, key: str, problem: str) -> None:
        self._report("runtimeclasses", key[:_SHOWN], f"{problem}; the entry is ignored")


class LimitRangeMirror(KindMirror[tuple[LimitItem, ...]]):
    """The LimitRanges of one cluster, by namespace."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._by_namespace: dict[str, dict[str, tuple[LimitItem, ...]]] = {}

    def upsert(self, limit_range: LimitRange) -> None:
        """A LimitRange appeared or changed."""
        key = object_key(limit_range.metadata)
        items = tuple(
            self._item(key, index, item)
            for index, item in enumerate((limit_range.spec.limits or ())[:_MAX_ENTRIES])
            if item.type in (CONTAINER, POD)
        )
        if self._set(key, items):
            self._by_namespace.setdefault(limit_range.metadata.namespace, {})[key] = items

    def of(self, namespace: str) -> tuple[LimitItem, ...]:
        """What holds in a namespace: of its LimitRanges by name, as the API server's own order is any."""
        found = self._by_namespace.get(namespace)
        return tuple(item for key in sorted(found) for item in found[key]) if found else ()

    def _forget(self, key: str, value: tuple[LimitItem, ...]) -> None:
        namespace = key.rpartition("/")[0]
        siblings = self._by_namespace[namespace]
        del siblings[key]
        if not siblings:
            del self._by_namespace[namespace]

    def _item(self, key: str, index: int, item: LimitRangeItem) -> LimitItem:
        def read(name: str, raw: RawResources | None) -> dict[str, tuple[RawQuantity, Bound]]:
            def tell(problem: str) -> None:
                where = f"spec.limits[{index}].{name}.{problem}"
                self._report("limitranges", key[:_SHOWN], f"{where}; the entry is ignored")

            return {name: (value, Bound(nano, str(value))) for name, value, nano in _readable(raw, tell)}

        least, most = read("min", item.min), read("max", item.max)
        ratio = read("maxLimitRequestRatio", item.max_limit_request_ratio)
        default, request = read("default", item.default), read("defaultRequest", item.default_request)
        if item.type == CONTAINER:
            # SetDefaults_LimitRangeItem: stored objects have had it, hand-written ones have not.
            default = {**most, **default}
            request = {**least, **default, **request}
        return LimitItem(
            item.type, _raw(default), _raw(request), _bounds(least), _bounds(most), _bounds(ratio)
        )


class NamespaceMirror(KindMirror[dict[str, str]]):
    """The labels of one cluster's namespaces."""

    def upsert(self, namespace: Namespace) -> None:
        """A namespace appeared or changed."""
        self._set(namespace.metadata.name, namespace.metadata.labels or {})

    def labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of the namespace, None where it is not there (or not known: see `synced`)."""
        return self.get(name)


@dataclass(slots=True)
class DeviceTolerations:
    """Which pods that ask for an extended resource also tolerate taints of that name.

    The admission plugin ExtendedResourceToleration adds such a toleration to all of them, so that one without
    tells that the cluster has no such plugin. Counted: all pods, bound or not.
    """

    _with: Counter[str] = field(default_factory=Counter)
    _without: Counter[str] = field(default_factory=Counter)
    version: int = 0
    """Changes with every change of what `evidence` answers."""

    def seen(self, resource: str, tolerates: bool, pods: int) -> None:
        """So many more pods (fewer, if negative) ask for the resource, and tolerate its name or do not."""
        counter = self._with if tolerates else self._without
        before = self.evidence(resource)
        counter[resource] += pods
        if counter[resource] <= 0:
            del counter[resource]
        if self.evidence(resource) is not before:
            self.version += 1

    def evidence(self, resource: str) -> bool | None:
        """Whether pods of the resource are given the toleration; None where no pod asks for it."""
        if resource in self._without:
            return False
        return True if resource in self._with else None

    @property
    def any_without(self) -> bool:
        """Whether some pod lacks the toleration for something that it asks for."""
        return bool(self._without)


def device_tolerations(
    resources: Iterable[str], tolerations: Iterable[Toleration]
) -> tuple[tuple[str, bool], ...]:
    """What one pod that asks for these extended resources gives to `DeviceTolerations.seen`.

    Nothing where it tolerates everything: then the one toleration may have been merged into the other.
    """
    tolerations = tuple(tolerations)
    if any(not toleration.key and toleration.operator == "Exists" for toleration in tolerations):
        return ()
    keys = {toleration.key for toleration in tolerations}
    return tuple((resource, resource in keys) for resource in sorted(set(resources)))


class AdmissionMirror:
    """Everything known of what one cluster's API server adds to a pod."""

    def __init__(self, report: Report) -> None:
        self.runtime_classes = RuntimeClassMirror(report)
        self.limit_ranges = LimitRangeMirror(report)
        self.namespaces = NamespaceMirror(report)
        self.device_tolerations = DeviceTolerations()

    @property
    def version(self) -> int:
        """Changes with everything that can change how a pod is admitted."""
        kinds = (self.runtime_classes, self.limit_ranges, self.device_tolerations)
        return sum(kind.version for kind in kinds)


def _readable(
    raw: RawResources | None, tell: Callable[[str], None]
) -> Iterator[tuple[str, RawQuantity, int]]:
    """Name, quantity as written, nano-units of all entries that are quantities."""
    for name, value in list((raw or {}).items())[:_MAX_ENTRIES]:
        try:
            nano = parse_nano_list({name: value}).get(name)
        except ResourceError as error:
            tell(str(error))
            continue
        if nano is not None:
            yield name, value, nano


def _raw(entries: Mapping[str, tuple[RawQuantity, Bound]]) -> tuple[tuple[str, RawQuantity], ...]:
    return tuple((name, value) for name, (value, _) in sorted(entries.items()))


def _bounds(entries: Mapping[str, tuple[RawQuantity, Bound]]) -> tuple[tuple[str, Bound], ...]:
    return tuple((name, bound) for name, (_, bound) in sorted(entries.items()))
