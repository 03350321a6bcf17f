"""What an estimator answers to `Place`, as ClusterRooms, and what of it cannot be meant. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.workload_name import WorkloadName
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.witness import LEFT_ALONE, Witness
from queue_dispatcher.estimates.cluster_room import ClusterRoom

_DOUBT: Final = "doubt"
PLACEMENTS: Final = 8
"""So many workloads that are alike can be told where to go by one answer."""
_MOST_ASSIGNMENTS: Final = 50_000
"""More in one answer name no nodes that anybody would be told."""
_MOST_NAME: Final = 253
_ALGEBRA: Final = frozenset(("component", "gang", "not_known", "either_way", "understated"))
"""Kinds of reasons that say how an answer was found."""
_SHORT_OF: Final = ("insufficient", "never_fits")
_SAID_ALREADY: Final = {
    "short": _SHORT_OF,
    "too_few_nodes": _SHORT_OF,
    "no_such_node": ("node_selector",),
    "untolerated": ("taint", "node_selector"),
}
"""By kind of the first reason, those that say no more."""
_ADDRESS: Final = re.compile(
    r"https?://\S+|(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+:\d{2,5}\b|\b\d+\.\d+\.\d+\.\d+\b"
)


def room_of(placement: pb.ClusterPlacement, copies: int, assumed: Sequence[pb.Gang]) -> ClusterRoom:
    """What the answer means, where so many copies were wanted beside what was ``assumed``."""
    doubt = next((reason.text for reason in placement.reasons if reason.kind == _DOUBT), "")
    # A doubt beside room is about more than what was found.
    unknown = f"{placement.cluster}: {_discreet(short(doubt))}" if doubt and not placement.fits else ""
    most = placement.empty_bound if placement.HasField("empty_bound") else None
    witnesses = _witnesses(placement, copies, assumed)
    fits, why = max(0, placement.fits), _why(placement)
    earliest = _earliest(placement, copies) if not unknown else None
    return ClusterRoom(placement.cluster, fits, unknown, why, most, witnesses, earliest)


def clear_nonsense(found: Iterable[pb.ClusterPlacement], endings: pb.Endings | None = None) -> str:
    """Leave out of answers the nodes, and the room that comes, that cannot be meant: what is free counts.

    ``endings``: as they were asked about. What is to be logged of it; empty where all of it may be meant.
    """
    told = ""
    may_end: dict[tuple[WorkloadName, bool], int] | None = None
    if endings is not None and endings.of_choice:
        may_end = {(_name(one.workload), one.surplus > 0): one.surplus for one in endings.endings}
    for one in found:
        what, what_comes = _nonsense(one.placement), _nonsense_of_earliest(one, may_end)
        if what:
            one.ClearField("placement")
            told = told or f"nodes of {one.cluster}: {what}; no pods are told where to go"
        if what_comes:
            one.ClearField("earliest")
            told = told or f"room that comes in {one.cluster}: {what_comes}; none is held there"
    return told


def _earliest(placement: pb.ClusterPlacement, copies: int) -> Earliest | None:
    """When so many copies fit; None where they do now, as room that is there is not held for anybody."""
    if not placement.HasField("earliest") or placement.fits >= copies:
        return None
    found = placement.earliest
    at_ms = found.at_ms if found.HasField("at_ms") else None
    where = tuple((one.pod_set, one.node, one.pods) for one in found.placement)
    workloads = tuple(map(_name, found.workloads))
    gives = tuple(found.gives)
    return Earliest(placement.cluster, at_ms, found.pods, where, workloads, found.may_be_fewer, gives)


def _name(message: pb.WorkloadName) -> WorkloadName:
    return WorkloadName(message.namespace, message.name, message.kind, message.group)


def _nonsense_of_earliest(
    placement: pb.ClusterPlacement, may_end: Mapping[tuple[WorkloadName, bool], int] | None
) -> str:
    """What cannot be meant in what an estimator says of room that comes; empty where nothing is.

    ``may_end``: whose end it may name, and whose pods, and how many of these; None where that was not asked.
    """
    if not placement.HasField("earliest"):
        return ""
    earliest = placement.earliest
    if not earliest.placement:
        return "on no nodes"
    if earliest.pods < 0:
        return f"{earliest.pods} pods that have to end"
    if any(one.nth for one in earliest.placement):
        return "placements that were not asked for"
    ending = [_name(one) for one in earliest.workloads]
    if len(set(ending)) < len(ending):
        return "a workload that has to end twice"
    gives = earliest.gives or [0] * len(ending)
    if len(gives) != len(ending):
        return f"pods of {len(gives)} workloads, of which {len(ending)} have to end"
    most = [(may_end or {}).get((name, pods > 0)) for name, pods in zip(ending, gives, strict=True)]
    if None in most:
        return "workloads that have to end and were not asked about"
    if any(not 0 <= pods <= (known or 0) for pods, known in zip(gives, most, strict=True)):
        return "more pods that have to go than may"
    if may_end is not None and not earliest.HasField("at_ms"):
        return "no time, though none but these and what is being deleted may end"
    return _nonsense(earliest.placement)


def _witnesses(
    placement: pb.ClusterPlacement, copies: int, assumed: Sequence[pb.Gang]
) -> tuple[Witness, ...]:
    """Where so many copies go, and as many again; on no nodes where a kube-scheduler does as well by itself.

    Nobody knows whether it does where something is on its way, ``assumed``, that may go elsewhere than
    thought: pods that are alike become whole all the same, others are told. All are where room is held on
    some nodes, which are free as a kube-scheduler sees them.
    What becomes whole by itself is told for packing's sake alone, if at all.
    """
    wanted = min(copies, placement.fits)
    pod_sets = {one.pod_set for one in placement.placement}
    is_held = any(gang.waits and gang.where for gang in assumed)
    is_whole = placement.spread_fits >= wanted and not (is_held or (assumed and len(pod_sets) > 1))
    if wanted <= 0 or not pod_sets:
        return ()
    by_nth: dict[int, list[pb.Assignment]] = {}
    for one in placement.placement:
        by_nth.setdefault(one.nth, []).append(one)
    if is_whole and not placement.packs:
        return (LEFT_ALONE,) * len(by_nth)
    return tuple(_witness(by_nth[nth], placement.ranks_by_size, is_whole) for nth in sorted(by_nth))


def _nonsense(placement: Sequence[pb.Assignment]) -> str:
    """What cannot be meant in what an estimator says of nodes; empty where nothing is."""
    if len(placement) > _MOST_ASSIGNMENTS:
        return f"{len(placement)} assignments, more than {_MOST_ASSIGNMENTS}"
    nths: set[int] = set()
    seen: set[tuple[int, str, str]] = set()
    for one in placement:
        if one.pods <= 0:
            return f"{one.pods} pods"
        if not 0 < len(one.node) <= _MOST_NAME:
            return f"a name of {len(one.node)} characters"
        nths.add(one.nth)
        seen.add((one.nth, one.pod_set, one.node))
    if nths and not (min(nths) == 0 and max(nths) == len(nths) - 1 < PLACEMENTS):
        return "placements that were not asked for"
    return "" if len(seen) == len(placement) else "one named twice"


def _witness(assignments: Iterable[pb.Assignment], ranks_by_size: bool, only_packs: bool) -> Witness:
    nodes: dict[str, list[tuple[str, int]]] = {}
    spare = set()
    for one in assignments:
        nodes.setdefault(one.pod_set, []).append((one.node, one.pods))
        if one.spare:
            spare.add((one.pod_set, one.node))
    told = tuple((pod_set, tuple(where)) for pod_set, where in nodes.items())
    return Witness(told, ranks_by_size, frozenset(spare), only_packs)


def _why(placement: pb.ClusterPlacement) -> str:
    """The first two reasons that people act on; what the search has found beside them is its own business."""
    reasons = [reason for reason in placement.reasons if reason.kind != _DOUBT]
    telling = [reason for reason in reasons if reason.kind not in _ALGEBRA] or reasons
    if not telling:
        return ""
    first, *others = telling
    more = [reason.text for reason in others if reason.kind not in _SAID_ALREADY.get(first.kind, ())]
    return short("; ".join((first.text, *more[:1])))


def _discreet(text: str) -> str:
    """The text without addresses of servers."""
    return _ADDRESS.sub("(address)", text)


def short(text: str | None) -> str:
    """As much of it as is told."""
    return (text or "")[:300]
