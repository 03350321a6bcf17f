"""What members report of placed work: does it run, are its pods there, was it sent there at all?

Karmada places first, then writes into the member, then collects what became of it, each at its own pace. What
lies between is charged and does not run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fairway.kube.objects import KubeStruct
from queue_dispatcher.bindings.objects import NULL, BindingStatus, Suspension
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.reclaimable import Done, done_of
from queue_dispatcher.workloads.running import are_seen, ended_pods, running_pods, starting_pods

MAX_MESSAGE = 200
SCHEDULING = "f:scheduling"
_OURS = ("fairway", "karmada-")
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Progress:
    """``idle``: pods that are placed and of which no member says that they run; ``starting``: pods of which a
    member says that they are there and do not run. ``silent``: clusters that got a part and have not reported
    anything of it; ``unseen``: those and others of which no pod is reported. ``unsent``: those to which a
    policy has Karmada send nothing. ``ended``: by cluster, how many pods have ended, where any have.
    ``is_told``: whether all clusters say how many pods run. ``refused``: where Karmada cannot write it, and
    why; ``kept_out``: those of them of which nothing is known, as what is there is not collected any more.
    ``done``: of a Job, where any of its pods have succeeded.
    """

    idle: int = 0
    silent: int = 0
    unsent: tuple[str, ...] = ()
    starting: int = 0
    unseen: frozenset[str] = frozenset()
    ended: tuple[tuple[str, int], ...] = ()
    is_told: bool = False
    refused: tuple[tuple[str, str], ...] = ()
    kept_out: frozenset[str] = frozenset()
    done: tuple[Done, ...] = ()


ALL_RUNS = Progress()
"""Nothing is placed, or all of it runs as far as can be told."""


def progress_of(
    group: str,
    kind: str,
    demand: Demand,
    placed: Sequence[Placed],
    status: BindingStatus,
    suspension: Suspension | None,
) -> Progress:
    """The progress of what is placed."""
    if not placed:
        return ALL_RUNS
    items = {item.cluster_name: item for item in status.aggregated_status or ()}
    reports = {cluster: item.status for cluster, item in items.items()}
    idle = silent = starting = 0
    unseen = set()
    ended: list[tuple[str, int]] = []
    done: list[Done] = []
    is_told = True
    for share in placed:
        pods = pods_at(demand, share)
        report = reports.get(share.cluster, NULL)
        if not pods:
            continue
        if bytes(report) == b"null":
            silent += 1
            idle += pods
            unseen.add(share.cluster)
            is_told = False
            continue
        if not are_seen(group, kind, report):
            unseen.add(share.cluster)
        running = running_pods(group, kind, report)
        idle += max(0, pods - running) if running is not None else 0
        is_told = is_told and running is not None
        starting += starting_pods(group, kind, report)
        if over := ended_pods(group, kind, report):
            ended.append((share.cluster, over))
        if some := done_of(group, kind, share.cluster, report):
            done.append(some)
    unsent = _unsent(placed, suspension)
    refused = tuple(
        (share.cluster, item.applied_message[:MAX_MESSAGE])
        for share in placed
        if (item := items.get(share.cluster)) is not None and not item.applied and item.applied_message
    )
    kept_out = frozenset(cluster for cluster, _ in refused if bytes(reports[cluster]) == b"null")
    return Progress(
        idle,
        silent,
        unsent,
        starting,
        frozenset(unseen),
        tuple(ended),
        is_told,
        refused,
        kept_out,
        tuple(done),
    )


def pods_at(demand: Demand, share: Placed) -> int:
    """How many pods one cluster got."""
    return sum(count for _, count in demand.at(share))


def pods_placed(demand: Demand, placed: Sequence[Placed]) -> int:
    """How many pods all clusters got together."""
    return sum(pods_at(demand, share) for share in placed)


def _unsent(placed: Sequence[Placed], suspension: Suspension | None) -> tuple[str, ...]:
    if suspension is None:
        return ()
    only = suspension.dispatching_on_clusters
    names = set((only.cluster_names if only is not None else None) or ())
    return tuple(share.cluster for share in placed if suspension.dispatching or share.cluster in names)


class _Manager(KubeStruct, frozen=True):
    manager: str = ""
    time: str | None = None
    fields_v1: msgspec.Raw = msgspec.field(default=NULL, name="fieldsV1")


_MANAGERS = msgspec.json.Decoder(list[_Manager])
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def let_go_by(managed_fields: msgspec.Raw) -> str:
    """Who last wrote ``spec.suspension.scheduling``, but for Karmada and Fairway, and when; empty for
    nobody.
    """
    try:
        managers = _MANAGERS.decode(managed_fields)
        for one in managers:
            if one.manager and not one.manager.startswith(_OURS) and _owns_hold(one.fields_v1):
                return f"{one.manager[:63]} at {one.time[:40]}" if one.time else one.manager[:63]
    except _BROKEN:
        return ""
    return ""


def _owns_hold(fields: msgspec.Raw) -> bool:
    for name in ("f:spec", "f:suspension"):
        inner = _FIELDS.decode(fields).get(name)
        if inner is None:
            return False
        fields = inner
    return SCHEDULING in _FIELDS.decode(fields)
