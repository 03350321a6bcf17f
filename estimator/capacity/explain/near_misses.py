"""The nodes that come closest to taking one more pod: what each lacks, and what would free it.

Closeness is a sum over everything in the way: thousandths of what the pod asks for that are missing, and a
fixed charge for what somebody has to decide instead of free. A cordon is lifted with one command; a taint
takes a word with whoever set it; another label mostly means other hardware. The mirror keeps sums, not pods,
so a remedy names amounts and leaves the choice of pods to whoever knows them.
"""

from collections.abc import Iterator

import numpy as np

from estimator.capacity.amounts import amount_text, lacking_text
from estimator.capacity.devices.device_room import claims_of
from estimator.capacity.explain.obstacles import Obstacles
from estimator.capacity.gangs.placements import NearMiss
from estimator.capacity.room import Room
from estimator.capacity.survey.access import is_condition
from estimator.capacity.survey.kinds import node_name
from estimator.cluster.columns import IntVector
from estimator.cluster.devices import DeviceColumns
from estimator.fit.pod_shape import PodShape
from fairway.accelerators.devices import PPM, DeviceClaim
from fairway.taints import UNSCHEDULABLE

MOST = 5
_SHOWN_BROKEN = 3
_CORDON, _TAINT, _DEVICES, _LABEL, _SLICE = 250, 500, 1000, 1000, 1000


def near_misses(room: Room, shape: PodShape, obstacles: Obstacles) -> tuple[NearMiss, ...]:
    """The `MOST` nodes with least in the way of a pod, the closest first, then by name.

    Not among them: nodes that take a pod now, and those that could not hold one even if empty and well.
    """
    distance = _distance(obstacles)
    rows = np.flatnonzero(room.nodes.present & ~obstacles.never & (distance > 0))
    if not len(rows):
        return ()
    distance = distance[rows]
    last = min(MOST, len(rows)) - 1
    limit = int(np.partition(distance, last)[last])
    closest = sorted(
        (far, node_name(room.nodes, row), row)
        for far, row in zip(distance.tolist(), rows.tolist(), strict=True)
        if far <= limit
    )
    return tuple(_near_miss(room, shape, obstacles, row, name) for _, name, row in closest[:MOST])


def permille(short: IntVector, amount: int) -> IntVector:
    """Thousandths of the amount, rounded up so that nothing that is short counts as none."""
    if amount >= 1_000_000:
        short, amount = -(-short // (amount // 1_000_000)), 1_000_000
    return -(-short * 1000 // amount)


def _distance(obstacles: Obstacles) -> IntVector:
    distance = _LABEL * obstacles.refused.astype(np.int64)
    for _, rows in obstacles.mismatched:
        distance += rows * _LABEL
    for resource, amount in obstacles.amounts.items():
        distance += permille(obstacles.short[resource], amount)
    for taint, rows in obstacles.untolerated.items():
        distance += rows * (_CORDON if taint == UNSCHEDULABLE else _TAINT)
    for limit in obstacles.devices:
        distance += (limit.pods == 0) * _DEVICES
    for one in obstacles.filters:
        if one.rows is not None:
            distance += ~one.rows * _LABEL
    return distance + obstacles.slices * _SLICE


def _near_miss(room: Room, shape: PodShape, obstacles: Obstacles, row: int, name: str) -> NearMiss:
    found = [
        *_shortages(room, obstacles, row),
        *_pieces(room, shape, obstacles, row),
        *_refusals(room, obstacles, row, name),
    ]
    if obstacles.slices[row]:
        found.append(("a TPU slice that is wholly free", "Other hosts of its slice are busy or not well."))
    return NearMiss(name, ", ".join(missing for missing, _ in found), " ".join(remedy for _, remedy in found))


def _shortages(room: Room, obstacles: Obstacles, row: int) -> Iterator[tuple[str, str]]:
    for resource, short in obstacles.short.items():
        missing = int(short[row])
        if not missing:
            continue
        free, has = int(room.free(resource)[row]), int(room.nodes.allocatable(resource)[row])
        remedy = f"{amount_text(resource, free)} of {amount_text(resource, has)} {resource} are free"
        if has > free:
            held = lacking_text(resource, min(missing, has - free))
            remedy += f": pods that hold {held} have to end, move or shrink"
        if unhealthy := int(room.nodes.unhealthy(resource)[row]):
            remedy += f"; {amount_text(resource, unhealthy)} unhealthy beside them"
            broken = room.nodes.broken.on(row).get(resource)
            remedy += f" ({', '.join(broken.why[:_SHOWN_BROKEN])})" if broken is not None else ""
        yield f"{lacking_text(resource, missing)} {resource}", f"{remedy}."


def _refusals(room: Room, obstacles: Obstacles, row: int, name: str) -> Iterator[tuple[str, str]]:
    for taint, rows in obstacles.untolerated.items():
        if not rows[row]:
            continue
        if taint == UNSCHEDULABLE:
            yield "an end to the cordon", f"Uncordon it (kubectl uncordon {name})."
        elif is_condition(taint):
            yield f"an end to {taint}", f"Kubernetes lifts {taint} once the node has recovered."
        else:
            yield f"a toleration of {taint}", f"Let the pods tolerate {taint}, or lift it."
    labels = room.nodes.labels
    mismatch = False
    for requirement, rows in obstacles.mismatched:
        if not rows[row]:
            continue
        mismatch = True
        code = int(labels.codes(requirement.key)[row])
        found = labels.values(requirement.key).get(code)
        wanted = " or ".join(sorted(requirement.values))
        there = "has no such label" if found is None else f"has {found!r}"
        yield f"label {requirement.key}={wanted}", f"The node selector asks for {wanted!r}, the node {there}."
    if obstacles.refused[row] and not mismatch:
        yield "a match of the required node affinity", "The pods' node affinity excludes the node."
    for one in obstacles.filters:
        if one.rows is not None and not one.rows[row]:
            yield f"other pods around it ({one.filter})", f"With the pods that run now the node {one.reason}."


def _pieces(room: Room, shape: PodShape, obstacles: Obstacles, row: int) -> Iterator[tuple[str, str]]:
    full = {limit.scheme: limit for limit in obstacles.devices if limit.pods[row] == 0}
    for table in room.nodes.devices:
        limit = full.get(table.scheme.name)
        read = claims_of(table.scheme, shape.ask) if limit else None
        if limit is None or read is None:
            continue
        if limit.problems:
            yield (
                "a request that can be read",
                f"The devices that the pods ask for: {'; '.join(limit.problems)}.",
            )
            continue
        for claim in read.found:
            yield _asked(claim), _largest_piece(table, row)
    for limit in obstacles.devices:
        if limit.classes is not None and limit.pods[row] == 0:
            told = str(limit.reason(1))
            named = " and ".join(limit.classes) or "?"
            yield f"free devices of class {named}", f"{told[:1].upper()}{told[1:]}."


def _asked(claim: DeviceClaim) -> str:
    untouched = "untouched " if claim.exclusive else ""
    devices = f"1 {untouched}device" if claim.count == 1 else f"{claim.count} {untouched}devices"
    free = []
    if claim.memory or claim.memory_ppm:
        free.append(f"{claim.memory or f'{claim.memory_ppm * 100 // PPM}%'} of memory")
    if claim.cores or claim.cores_ppm:
        free.append(f"{claim.cores or f'{claim.cores_ppm * 100 // PPM}%'} of cores")
    return f"{devices} with {' and '.join(free)} free" if free else devices


def _largest_piece(table: DeviceColumns, row: int) -> str:
    here = table.node == row
    if not here.any():
        return f"The node has no device that {table.scheme.name} shares."
    memory = int(table.number("memory_free")[here].max())
    cores = int(table.number("cores_free")[here].max())
    untouched = int(
        np.count_nonzero((table.number("touched") == 0) & (table.number("slots_free") > 0) & here)
    )
    devices = int(np.count_nonzero(here))
    return (
        f"Of its {devices} devices {untouched} are untouched; the most that is free on one is "
        f"{memory} of memory and {cores} of cores."
    )
