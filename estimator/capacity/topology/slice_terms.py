"""What TPU slices impose on a gang: where its pods may be, and that they come in whole slices.

Pods of a multi-host slice are of use only all together, whether or not the workload says so. Where it is
clear how many hosts a slice has, this is a topology like any other and is imposed on components that state
none of the kind; else slices only bound the number of copies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from estimator.capacity.answer import UNBOUNDED
from estimator.capacity.room import Room
from estimator.capacity.sets.bounds import Needed, pods_per_shape
from estimator.capacity.topology.levels import Level, Levels
from estimator.capacity.topology.slices import UsableSlices, asks_tpu, usable_slices
from estimator.cluster.columns import BoolVector
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason
from fairway.workloads.gang import TopologyMode, TopologyRequest


@dataclass(frozen=True, slots=True)
class SliceTerms:
    """A gang with what slices impose on it.

    ``rows``: which rows the pods of each component may use, by index, where slices leave out any. ``copies``:
    never more than so many.
    """

    needed: Needed
    topology: TopologyRequest | None
    rows: Mapping[int, BoolVector]
    copies: int
    reasons: tuple[Reason, ...]


def slice_terms(room: Room, needed: Needed, topology: TopologyRequest | None, levels: Levels) -> SliceTerms:
    """The gang as slices of the cluster allow it; unchanged where it asks for no TPU."""
    together = pods_per_shape(needed)
    slices = {shape: usable_slices(room, shape) for shape in together if asks_tpu(shape)}
    if not slices:
        return SliceTerms(needed, topology, {}, UNBOUNDED, ())
    copies = [most for shape, found in slices.items() if (most := found.copies(together[shape])) is not None]
    rows = {index: slices[c.shape].rows for index, c in needed if c.shape in slices}
    rows = {index: usable for index, usable in rows.items() if not usable.all()}
    reasons = tuple(dict.fromkeys(why for found in slices.values() for why in found.reasons))
    needed, topology = _imposed(needed, topology, slices, levels)
    return SliceTerms(needed, topology, rows, min(copies, default=UNBOUNDED), reasons)


def _imposed(
    needed: Needed,
    topology: TopologyRequest | None,
    slices: Mapping[PodShape, UsableSlices],
    levels: Levels,
) -> tuple[Needed, TopologyRequest | None]:
    if topology is None and len(needed) > 1 and len({component.shape for _, component in needed}) == 1:
        # Components of one shape make up a slice together, as a leader and its workers do.
        _, first = needed[0]
        merged = replace(first, replicas=sum(component.replicas for _, component in needed))
        whole = slices[first.shape].topology(merged)
        hosts = {kind.hosts for kind, _ in slices[first.shape].free}
        if whole is None or merged.replicas > max(hosts):
            return needed, None
        return needed, TopologyRequest(TopologyMode.EXCLUSIVE, whole.level)
    bound = []
    for index, component in needed:
        alone = sum(other.shape == component.shape for _, other in needed) == 1
        found = slices.get(component.shape)
        whole = found.topology(component) if found is not None and alone else None
        stated = component.topology or topology
        if whole is not None and not _implies(stated, whole, levels):
            component = replace(component, topology=whole)
        bound.append((index, component))
    if topology is None and len(bound) == 1:
        index, lone = bound[0]
        return [(index, replace(lone, topology=None))], lone.topology
    return bound, topology


def _implies(stated: TopologyRequest | None, whole: TopologyRequest, levels: Levels) -> bool:
    """Whether a stated topology speaks of slices already, so that it is the workload's own affair."""
    if stated is None or stated.mode not in (TopologyMode.EXCLUSIVE, TopologyMode.SLICED):
        return False
    level = levels.resolve(stated.level)
    return isinstance(level, Level) and level.key == whole.level
