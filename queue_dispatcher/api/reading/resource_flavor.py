"""Reads ResourceFlavors. What cannot be read makes the flavor smaller, never larger."""

from fairway.selectors import is_label_key
from fairway.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from queue_dispatcher.api.objects import CapacityPolicySpec, ResourceFlavorObject
from queue_dispatcher.api.reading.fields import Problems, amount, integer, milli, selector, shown
from queue_dispatcher.api.resource_flavor import Capacity, FromClusters, FromEstimator, ResourceFlavor, Static

_STATIC, _FROM_CLUSTERS, _FROM_ESTIMATOR = "Static", "FromClusters", "FromEstimator"
_OPERATORS = ("", "Equal", "Exists")
_EFFECTS = ("", NO_SCHEDULE, "PreferNoSchedule", NO_EXECUTE)


def read_resource_flavor(stated: ResourceFlavorObject) -> ResourceFlavor:
    """The flavor, with what is wrong with it."""
    spec, problems = stated.spec, Problems()
    labels = spec.node_labels or {}
    for key in labels:
        if not is_label_key(key):
            problems.add("spec.nodeLabels", f"{shown(key)} is not a label key: no node can carry it")
    return ResourceFlavor(
        name=stated.metadata.name,
        cluster_names=tuple(dict.fromkeys(spec.cluster_names or ())),
        cluster_selector=selector(spec.cluster_selector, "spec.clusterSelector", problems),
        node_labels=dict(labels),
        node_taints=_taints(spec.node_taints or [], problems),
        tolerations=_tolerations(spec.tolerations or [], problems),
        capacity=_capacity(spec.capacity_policy, problems),
        headroom_percent=integer(spec.headroom_percent, 0, 100, 0, 100, "spec.headroomPercent", problems),
        price_milli=milli(spec.price, None, "spec.price", problems),
        problems=problems.found,
    )


def _taints(stated: list[Taint], problems: Problems) -> tuple[Taint, ...]:
    read: list[Taint] = []
    for index, one in enumerate(stated):
        field = f"spec.nodeTaints[{index}]"
        if not is_label_key(one.key):
            problems.add(f"{field}.key", f"{shown(one.key)} is not a label key: no node can carry it")
        if one.effect not in _EFFECTS[1:]:
            problems.add(
                f"{field}.effect",
                f"{shown(one.effect)}: expected {', '.join(_EFFECTS[1:])}; read as {NO_SCHEDULE}",
            )
            one = Taint(one.key, one.value, NO_SCHEDULE)
        read.append(one)
    return tuple(read)


def _tolerations(stated: list[Toleration], problems: Problems) -> tuple[Toleration, ...]:
    read: list[Toleration] = []
    for index, one in enumerate(stated):
        field = f"spec.tolerations[{index}]"
        if one.operator not in _OPERATORS:
            problems.add(f"{field}.operator", f"{shown(one.operator)}: expected Equal or Exists; left out")
        elif one.effect not in _EFFECTS:
            problems.add(
                f"{field}.effect", f"{shown(one.effect)}: expected {', '.join(_EFFECTS[1:])}; left out"
            )
        else:
            read.append(one)
    return tuple(read)


def _capacity(stated: CapacityPolicySpec | None, problems: Problems) -> Capacity:
    if stated is None:
        return FromClusters()
    field = "spec.capacityPolicy"
    if stated.resources and stated.type != _STATIC:
        problems.add(f"{field}.resources", f"only read with type {_STATIC}: ignored")
    match stated.type:
        case "" | "FromClusters":
            return FromClusters()
        case "FromEstimator":
            return FromEstimator()
        case "Static":
            if not stated.resources:
                problems.add(
                    f"{field}.resources", f"nothing: expected quantities with type {_STATIC}; read as 0"
                )
            return Static(
                {
                    name: amount(name, raw, f"{field}.resources[{name[:63]}]", problems) or 0
                    for name, raw in (stated.resources or {}).items()
                }
            )
        case other:
            expected = f"expected {_STATIC}, {_FROM_CLUSTERS} or {_FROM_ESTIMATOR}"
            problems.add(f"{field}.type", f"{shown(other)}: {expected}; read as no capacity")
            return Static({})
