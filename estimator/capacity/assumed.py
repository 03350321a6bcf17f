"""Room held for workloads that Karmada has placed on the cluster and whose pods are not all bound yet.

karmada-scheduler (1.18 and later, gate SchedulingOvercommitProtection) sends every workload it placed in
the last minutes, the asking one among them, with the *total* replicas on this cluster. Pods that are bound
hold their room on the nodes already, so charging the whole workload would charge it twice. A workload of a
single template travels under its own name, so its bound pods are known and only the rest is charged. One
of several components carries no name of its own: it is charged whole.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from estimator.capacity.budget import Expired
from estimator.capacity.request import AssumedWorkload, Component, WorkloadReference
from estimator.capacity.room import Room, placed_first_fit
from estimator.capacity.waiting import keep
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import NodeClaim, PodShape
from estimator.reasons import Reason, held_for_assumed, kept_for_waiting
from fairway.selectors import Requirement

BoundPods = Callable[[str, str], Mapping[str, int]]
"""Pods that hold room on a node, by kind of controller, given its namespace and name."""


_NOT_ALL = "{} workloads on their way could not all be placed in time"


class OutOfTime(Exception):
    """The time for the answer is up before anything can be said; the message says what took it."""


def bound_pods(assumed: tuple[AssumedWorkload, ...], bound: BoundPods) -> BoundPods:
    """What ``bound`` says now about the names that `outstanding` asks for, for use on another thread."""
    names = {(w.namespace, w.components[0].name) for w in assumed if len(w.components) == 1}
    known = {name: dict(bound(*name)) for name in names}
    return lambda namespace, name: known[namespace, name]


def outstanding(
    assumed: tuple[AssumedWorkload, ...], bound: BoundPods, asking: WorkloadReference | None
) -> tuple[AssumedWorkload, ...]:
    """The assumed workloads without the pods that are already bound, in an order of their own.

    Where several controllers share the name, the kind that is asking decides; else the smallest count does,
    since charging too much is safer than too little; and several workloads of one name share its pods. The
    sender's order is random, ours is by content.
    """
    unclaimed: dict[tuple[str, str], int] = {}
    left = []
    for workload in sorted(assumed, key=_content):
        components = tuple(component for component in workload.components if component.replicas > 0)
        if len(workload.components) == 1 and components:
            template = components[0]
            name = (workload.namespace, template.name)
            if name not in unclaimed:
                unclaimed[name] = _bound(*name, bound, asking)
            already = min(unclaimed[name], template.replicas)
            unclaimed[name] -= already
            rest = template.replicas - already
            components = (Component(template.name, rest, template.shape),) if rest else ()
        if components:
            left.append(replace(workload, components=components))
    return tuple(left)


def hold(room: Room, workloads: tuple[AssumedWorkload, ...], expired: Expired) -> tuple[Reason, ...]:
    """Take the room of the workloads, first fit; one that does not fit whole takes nothing.

    Those that wait come after all others, and keep what is free of the room that they are to have.

    Raises OutOfTime when it is up before all are placed: a number found on what is left would promise room
    that is taken.

    Mirrors the assumed-workload deduction of Karmada 1.19's node resource plugin, which leaves behind what a
    workload that did not fit had taken so far.
    """
    order = room.nodes.first_fit_order()
    pods = held = waiting = 0
    for workload in sorted(workloads, key=lambda workload: workload.waits):
        if workload.waits:
            if expired():
                raise OutOfTime(_NOT_ALL.format(len(workloads)))
            for one in workload.components:
                keep(room, one.shape, one.replicas, _places(workload, one))
            waiting += 1
            continue
        before = room.fork() if len(workload.components) > 1 else None
        for component in workload.components:
            if expired():
                raise OutOfTime(_NOT_ALL.format(len(workloads)))
            placed = laid(room, component.shape, component.replicas, _places(workload, component), order)
            if int(placed.sum()) < component.replicas:
                if before is not None:
                    room.restore(before)
                break
            room.take(component.shape, placed)
        else:
            pods += sum(component.replicas for component in workload.components)
            held += 1
    reasons = (held_for_assumed(pods, held),) if held else ()
    return (*reasons, kept_for_waiting(waiting)) if waiting else reasons


def _places(workload: AssumedWorkload, component: Component) -> list[tuple[str, int]]:
    return [(node, pods) for name, node, pods in workload.where if name == component.name]


def laid(
    room: Room, shape: PodShape, count: int, where: Iterable[tuple[str, int]], order: IntVector
) -> IntVector:
    """Pods by row when so many go where they are said to go, as far as there is room, else first fit.

    As many as there is room for; nothing is taken.
    """
    fits = room.fits(shape)
    placed = np.zeros_like(fits)
    left = count
    for node, pods in where:
        row = room.nodes.row_of(node)
        if row is not None:
            here = min(left, pods, int(fits[row]))
            placed[row] += here
            fits[row] -= here
            left -= here
    return placed + placed_first_fit(fits, left, order) if left else placed


def _content(workload: AssumedWorkload) -> tuple[object, ...]:
    """All that decides where its pods go, as something that sorts the same in every process."""
    return (
        workload.namespace,
        tuple((c.name, c.replicas, c.shape.requests, _nodes(c.shape.claim)) for c in workload.components),
    )


def _nodes(claim: NodeClaim) -> tuple[object, ...]:
    terms = tuple((_values(term.labels), _values(term.fields)) for term in claim.affinity or ())
    return (_values(claim.selector), claim.affinity is None, terms, claim.tolerations)


def _values(requirements: tuple[Requirement, ...]) -> tuple[object, ...]:
    return tuple((r.key, sorted(r.values), r.complement, r.allows_absent, str(r.bound)) for r in requirements)


def _bound(namespace: str, name: str, bound: BoundPods, asking: WorkloadReference | None) -> int:
    by_kind = bound(namespace, name)
    if not by_kind:
        return 0
    if asking and (asking.namespace, asking.name) == (namespace, name):
        return by_kind.get(asking.kind, 0)
    return min(by_kind.values())
