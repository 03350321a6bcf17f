"""What the member's API server adds to a pod when it is created: RuntimeClasses, LimitRanges, tolerations.

What `estimator.fit.admission` makes of it mirrors the admission plugins of Kubernetes 1.36.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from estimator.cluster.kind_mirror import KindMirror, NamespacedMirror
from estimator.cluster.report import Report
from fairway.kube.member_kinds import LimitRange, LimitRangeItem, Namespace, RuntimeClass, RuntimeScheduling
from fairway.kube.objects import RawResources, object_key
from fairway.resources import ResourceError, parse_nano_list
from fairway.taints import Toleration
from fairway.usage.owner import default_queues

CONTAINER, POD = "Container", "Pod"
_MAX_ENTRIES = 512
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Stated:
    """A quantity in nano-units, and as it is written."""

    nano: int
    text: str


Quantities = dict[str, Stated]
"""By the resource's name."""


@dataclass(frozen=True, slots=True)
class LimitItem:
    """One entry of a LimitRange for pods or containers, defaulted as the API server stores it.

    What it gives to containers that state nothing, and what it holds all to; each by name.
    """

    type: str
    default: Quantities
    default_request: Quantities
    min: Quantities
    max: Quantities
    ratio: Quantities


@dataclass(frozen=True, slots=True)
class RuntimeRules:
    """What a RuntimeClass adds to its pods; ``overhead`` None where it states none at all."""

    overhead: Quantities | None = None
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClassMirror(KindMirror[RuntimeRules]):
    """The RuntimeClasses of one cluster, by name."""

    def upsert(self, stated: RuntimeClass) -> None:
        """A RuntimeClass appeared or changed."""
        key, scheduling = stated.metadata.name, stated.scheduling or RuntimeScheduling()

        def tell(problem: str) -> None:
            self._report("runtimeclasses", key[:_SHOWN], f"overhead.podFixed.{problem}; the entry is ignored")

        self._set(
            key,
            RuntimeRules(
                None if stated.overhead is None else _readable(stated.overhead.pod_fixed, tell),
                tuple(sorted((scheduling.node_selector or {}).items())),
                tuple(scheduling.tolerations or ()),
            ),
        )


class LimitRangeMirror(NamespacedMirror[tuple[LimitItem, ...]]):
    """The LimitRanges of one cluster, by namespace."""

    def upsert(self, limit_range: LimitRange) -> None:
        """A LimitRange appeared or changed."""
        key = object_key(limit_range.metadata)
        items = tuple(
            self._item(key, index, item)
            for index, item in enumerate((limit_range.spec.limits or ())[:_MAX_ENTRIES])
            if item.type in (CONTAINER, POD)
        )
        self._set(key, items)

    def of(self, namespace: str) -> tuple[LimitItem, ...]:
        """What holds in a namespace: of its LimitRanges by name, as the API server's own order is any."""
        return tuple(item for _, items in sorted(self.within(namespace).items()) for item in items)

    def _item(self, key: str, index: int, item: LimitRangeItem) -> LimitItem:
        def read(name: str, raw: RawResources | None) -> Quantities:
            def tell(problem: str) -> None:
                where = f"spec.limits[{index}].{name}.{problem}"
                self._report("limitranges", key[:_SHOWN], f"{where}; the entry is ignored")

            return _readable(raw, tell)

        least, most = read("min", item.min), read("max", item.max)
        ratio = read("maxLimitRequestRatio", item.max_limit_request_ratio)
        default, request = read("default", item.default), read("defaultRequest", item.default_request)
        if item.type == CONTAINER:
            # SetDefaults_LimitRangeItem: stored objects have had it, hand-written ones have not.
            default = {**most, **default}
            request = {**least, **default, **request}
        return LimitItem(item.type, default, request, least, most, ratio)


class NamespaceMirror(KindMirror[dict[str, str]]):
    """The labels of one cluster's namespaces, and the LocalQueues that they give to pods that name none."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.default_queues: dict[str, str] = {}

    def upsert(self, namespace: Namespace) -> None:
        """A namespace appeared or changed."""
        self.default_queues.pop(namespace.metadata.name, None)
        self.default_queues.update(default_queues([namespace]))
        self._set(namespace.metadata.name, namespace.metadata.labels or {})

    def delete(self, key: str) -> None:
        """A namespace is gone."""
        self.default_queues.pop(key, None)
        super().delete(key)

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


def _readable(raw: RawResources | None, tell: Callable[[str], None]) -> Quantities:
    """All entries that are quantities, by name."""
    read: Quantities = {}
    for name, value in sorted(list((raw or {}).items())[:_MAX_ENTRIES]):
        try:
            read.update((name, Stated(nano, str(value))) for nano in parse_nano_list({name: value}).values())
        except ResourceError as error:
            tell(str(error))
    return read
