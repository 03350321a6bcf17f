"""Node objects to rows: allocatable amounts, labels, taints, and a cordon as the taint it stands for."""

from collections.abc import Collection, Mapping
from sys import intern

from estimator.cluster.columns import NodeColumns
from estimator.cluster.report import Report
from fairway.kube.objects import Node, RawResources
from fairway.resources import PODS, Amounts, ResourceError, is_scheduled, parse_amounts
from fairway.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE, Taint

_MAX_PODS_PER_NODE = 2**31 - 1
_MAX_RESOURCES_PER_NODE = 512


class NodeMirror:
    """The nodes of one cluster; the reflector's sink for them."""

    def __init__(self, columns: NodeColumns, report: Report) -> None:
        self._columns = columns
        self._report = report
        self._names: dict[str, None] = {}

    def keys(self) -> Collection[str]:
        """Names of all nodes known."""
        return self._names.keys()

    def upsert(self, node: Node) -> None:
        """A node appeared or changed."""
        name = intern(node.metadata.name)
        self._names[name] = None
        self._columns.set_node(
            name, self._allocatable(name, node.status.allocatable), _labels(node), _taints(node)
        )

    def delete(self, key: str) -> None:
        """A node is gone."""
        self._names.pop(key, None)
        self._columns.remove_node(key)

    def _allocatable(self, name: str, raw: RawResources | None) -> Amounts:
        kept: Amounts = {}
        for resource, value in (raw or {}).items():
            if resource != PODS and not is_scheduled(resource):
                continue
            if len(kept) >= _MAX_RESOURCES_PER_NODE:
                self._report(
                    "nodes", name, f"status.allocatable: only {_MAX_RESOURCES_PER_NODE} resources are read"
                )
                break
            try:
                kept.update(parse_amounts({intern(resource): value}))
            except ResourceError as error:
                self._report("nodes", name, f"status.allocatable.{error}; it counts as none")
        if PODS in kept:
            kept[PODS] = min(kept[PODS], _MAX_PODS_PER_NODE)
        return kept


def _labels(node: Node) -> Mapping[str, str]:
    return {intern(key): intern(value) for key, value in (node.metadata.labels or {}).items()}


def _taints(node: Node) -> tuple[Taint, ...]:
    taints = [
        Taint(t.key, t.value, t.effect)
        for t in node.spec.taints or ()
        if t.effect in (NO_SCHEDULE, NO_EXECUTE)
    ]
    if node.spec.unschedulable and UNSCHEDULABLE not in taints:
        taints.append(UNSCHEDULABLE)
    # A cordon is the first cause, as kube-scheduler's filters have it.
    return tuple(sorted(taints, key=lambda taint: (taint != UNSCHEDULABLE, taint)))
