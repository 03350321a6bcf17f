"""Node objects to rows: amounts, labels, taints, a cordon as the taint it stands for, and shared devices."""

import re
from collections.abc import Collection, Mapping
from sys import intern
from types import MappingProxyType

from estimator.cluster.columns import NodeColumns
from estimator.cluster.devices import DeviceColumns
from estimator.cluster.node_devices import NodeDevicesMirror
from estimator.cluster.report import Report
from fairway.accelerators.devices import NONE_UNHEALTHY, NodeFacts, withdrawn
from fairway.kube.objects import Node, RawResources
from fairway.resources import PODS, Amounts, ResourceError, is_extended, is_scheduled, parse_amounts
from fairway.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE, Taint

_MAX_PODS_PER_NODE = 2**31 - 1
_MAX_RESOURCES_PER_NODE = 512
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})
_DIGITS = re.compile(r"\d+")


class NodeMirror:
    """The nodes of one cluster; the reflector's sink for them."""

    def __init__(self, columns: NodeColumns, devices: NodeDevicesMirror, report: Report) -> None:
        self._columns = columns
        self._devices = devices
        self._report = report
        self._facts: dict[str, NodeFacts] = {}
        self._told: dict[tuple[str, str], str] = {}

    def keys(self) -> Collection[str]:
        """Names of all nodes known."""
        return self._facts.keys()

    def copy(self) -> Mapping[str, NodeFacts]:
        """All nodes by name as they are now but for their annotations, for work on another thread."""
        return self._facts.copy()

    def upsert(self, node: Node) -> None:
        """A node appeared or changed."""
        name = intern(node.metadata.name)
        allocatable = self._amounts(name, "allocatable", node.status.allocatable)
        labels = _labels(node)
        unhealthy = self._unhealthy(name, node, allocatable)
        self._columns.set_node(name, allocatable, labels, _taints(node), unhealthy)
        self._facts[name] = NodeFacts(name, labels, _NO_ANNOTATIONS, allocatable, unhealthy)
        facts = NodeFacts(name, labels, node.metadata.annotations or {}, allocatable)
        row = self._columns.row_of(name)
        assert row is not None
        for table in self._columns.devices:
            self._set_devices(table, row, facts)
        self._devices.node_changed(name, node.status.node_info.boot_id)

    def delete(self, key: str) -> None:
        """A node is gone."""
        self._facts.pop(key, None)
        self._columns.remove_node(key)
        for table in self._columns.devices:
            table.remove_node(key)
            self._told.pop((key, table.scheme.name), None)
        self._devices.node_gone(key)

    def _set_devices(self, table: DeviceColumns, row: int, facts: NodeFacts) -> None:
        read = table.scheme.devices(facts)
        self._tell(facts.name, table.scheme.name, read.problems if read else ())
        template = table.scheme.new_device(facts) if read and table.scheme.new_device else None
        table.set_node(facts.name, row, read.found if read else None, template)

    def _tell(self, name: str, scheme: str, problems: tuple[str, ...]) -> None:
        if not problems and (name, scheme) not in self._told:
            return
        # Device plugins write to their node every half minute, and what is wrong stays so for days; where it
        # has a time in it, that is no news either.
        news = _DIGITS.sub("", "".join(problems))
        if news == self._told.get((name, scheme), ""):
            return
        for problem in problems:
            self._report("nodes", name, f"devices of {scheme}: {problem}")
        if news:
            self._told[name, scheme] = news
        else:
            del self._told[name, scheme]

    def _unhealthy(self, name: str, node: Node, allocatable: Amounts) -> Mapping[str, int]:
        if not any(is_extended(resource) for resource in allocatable):
            return NONE_UNHEALTHY
        raw = {
            resource: value
            for resource, value in (node.status.capacity or {}).items()
            if is_extended(resource)
        }
        return withdrawn(allocatable, self._amounts(name, "capacity", raw))

    def _amounts(self, name: str, field: str, raw: RawResources | None) -> Amounts:
        kept: Amounts = {}
        for resource, value in (raw or {}).items():
            if resource != PODS and not is_scheduled(resource):
                continue
            if len(kept) >= _MAX_RESOURCES_PER_NODE:
                self._report(
                    "nodes", name, f"status.{field}: only {_MAX_RESOURCES_PER_NODE} resources are read"
                )
                break
            try:
                kept.update(parse_amounts({intern(resource): value}))
            except ResourceError as error:
                self._report("nodes", name, f"status.{field}.{error}; it counts as none")
        if PODS in kept:
            kept[PODS] = min(kept[PODS], _MAX_PODS_PER_NODE)
        return kept


def _labels(node: Node) -> Mapping[str, str]:
    return {intern(key): intern(value) for key, value in (node.metadata.labels or {}).items()}


def _taints(node: Node) -> tuple[Taint, ...]:
    taints = [taint for taint in node.spec.taints or () if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    if node.spec.unschedulable and UNSCHEDULABLE not in taints:
        taints.append(UNSCHEDULABLE)
    # A cordon is the first cause, as kube-scheduler's filters have it.
    return tuple(sorted(taints, key=lambda taint: (taint != UNSCHEDULABLE, taint)))
