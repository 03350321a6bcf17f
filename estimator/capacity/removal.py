"""Which pods of a workload go first where it is to have fewer: as its controller chooses them. Pure.

Mirrors kube-controller-manager 1.36. Of a ReplicaSet (pkg/controller, ActivePodsWithRanks) those without a
node, then those that are not ready, of a lower deletion cost, on the nodes with the most pods of their
Deployment, and that have been ready for less time, which it tells apart by powers of two. Of a Job
(pkg/controller/job, activePodsForRemoval) those without a node, those that are not ready, and the latest to
become so. Of a StatefulSet the highest ordinal.

What decides beyond that (phases, restarts, uids) is not known here, or may be otherwise by the time they go:
such pods are told beside each other, and any of them may be the next.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from estimator.cluster.pods import HeldByPod

_SOON_S: Final = 60.0
"""Which of two has been ready for longer, by powers of two, is to be as certain so much later."""


def in_order_of_removal(pods: Mapping[str, HeldByPod], now_s: float) -> list[list[str]]:
    """The keys of the pods of one workload, those first that go first; those beside each other of which
    nobody knows. Not of pods that are being deleted.
    """
    controllers = {held.controller for held in pods.values()}
    kind = next((one[2] for one in controllers if one is not None), "") if len(controllers) == 1 else ""
    if kind == "StatefulSet":
        return _by_ordinal(pods)
    if kind not in ("ReplicaSet", "Job"):
        # Of a Deployment that is rolled out each of its ReplicaSets loses some.
        return [list(pods)] if pods else []
    beside = Counter(held.node for held in pods.values() if held.is_bound and kind == "ReplicaSet")

    def rank(key: str) -> tuple[bool, bool, int, int]:
        held = pods[key]
        is_ready = held.is_bound and held.ready_s is not None
        if not is_ready:
            return held.is_bound, False, 0, 0
        return True, True, held.deletion_cost if kind == "ReplicaSet" else 0, -beside[held.node]

    order: list[list[str]] = []
    is_later = _is_surely_later(now_s) if kind == "ReplicaSet" else float.__gt__
    for (_, is_ready, *_), found in groupby(sorted(pods, key=rank), rank):
        keys = list(found)
        order += _by_time(keys, pods, is_later) if is_ready else [keys]
    return order


def _by_ordinal(pods: Mapping[str, HeldByPod]) -> list[list[str]]:
    ordinals = {key: key.rpartition("-")[2] for key in pods}
    if not all(one.isdecimal() for one in ordinals.values()):
        return [list(pods)]
    return [[key] for key in sorted(pods, key=lambda key: -int(ordinals[key]))]


def _by_time(
    keys: Sequence[str], pods: Mapping[str, HeldByPod], is_later: Callable[[float, float], bool]
) -> Iterator[list[str]]:
    """Of pods that are ready, the latest first. ``is_later``: whether the first of two times surely is."""
    ready_s = {key: pods[key].ready_s or 0.0 for key in keys}
    if not all(ready_s.values()):
        yield list(keys)
        return
    together: list[str] = []
    for key in sorted(keys, key=lambda key: -ready_s[key]):
        if together and is_later(ready_s[together[-1]], ready_s[key]):
            yield together
            together = []
        together.append(key)
    yield together


def _is_surely_later(now_s: float) -> Callable[[float, float], bool]:
    return lambda one_s, other_s: now_s - other_s >= 2 * max(0.0, now_s - one_s) + _SOON_S
