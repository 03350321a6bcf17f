"""What queues allow and what of it is in use, reckoned from the objects alone.

Written from the documents of the API, and shares nothing with the ledger that it judges.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from queue_dispatcher.bindings.requeue import Cause
from sandbox.simulation.objects import Obj, at
from sandbox.simulation.story import SubmitLine
from sandbox.simulation.templates import GPU

ADMISSION = "fairway.dev/admission"
REQUEUE = "fairway.dev/requeue"
NEVER_FULL = 1 << 100


@dataclass(frozen=True)
class Reserves:
    """How a ClusterQueue keeps room for what waits there, in milliseconds since that came into the line.

    ``holds_ms``: since it was kept. ``depth``: for how many of its tree.
    """

    after_ms: int
    drains_ms: int
    holds_ms: int
    depth: int


@dataclass(frozen=True)
class Quota:
    """Of one ClusterQueue, in GPUs. ``lends``, ``borrows``: None for without limit.

    ``rest``: what its percentage lost by rounding down, in hundredths. ``reserves``: None where what waits
    keeps nothing. ``displaces``, ``reclaims``: whom its work may displace, in its own queue and in others.
    ``evicts``: what it uses beyond its quota is taken back. ``ages_ms``: so long a wait there is worth one of
    priority, ``ages_by`` at the most; 0 where no wait is.
    """

    name: str
    parent: str
    nominal: int
    rest: int
    lends: int | None
    borrows: int | None
    is_strict: bool
    is_stopped: bool
    is_drained: bool = False
    reserves: Reserves | None = None
    displaces: str = "Never"
    reclaims: str = "Never"
    evicts: bool = False
    ages_ms: int = 0
    ages_by: int = 0

    def priority(self, stated: int, waited_ms: int) -> int:
        """By which work goes that has waited there for so long."""
        return stated + (min(self.ages_by, max(0, waited_ms) // self.ages_ms) if self.ages_ms else 0)


@dataclass(frozen=True)
class Charge:
    """What a binding takes of a queue. ``ours``: what of it we admitted, by a record of ours; the rest runs,
    or is about to, because somebody else let go of it.
    """

    key: str
    queue: str
    gpus: int
    ours: int


def quota_of(obj: Obj, capacity: int) -> Quota:
    """``capacity``: what percentages are taken of."""
    found: Obj = {}
    for group in at(obj, "spec", "resourceGroups", default=()):
        for flavor in group["flavors"]:
            found = next((one for one in flavor["resources"] if one["name"] == GPU), found)
    limits = [
        None if found.get(name) is None else int(found[name]) for name in ("lendingLimit", "borrowingLimit")
    ]
    nominal = str(found.get("nominalQuota", 0))
    hundredths = capacity * int(nominal[:-1]) if nominal.endswith("%") else 100 * int(nominal)
    return Quota(
        name=obj["metadata"]["name"],
        parent=at(obj, "spec", "parent", default=""),
        nominal=hundredths // 100,
        rest=hundredths % 100,
        lends=limits[0],
        borrows=limits[1],
        is_strict=at(obj, "spec", "queueingStrategy") == "StrictFIFO",
        is_stopped=at(obj, "spec", "stopPolicy", default="None") != "None",
        is_drained=at(obj, "spec", "stopPolicy") == "HoldAndDrain",
        reserves=_reserves_of(obj),
        displaces=at(obj, "spec", "preemption", "withinClusterQueue", default="Never"),
        reclaims=at(obj, "spec", "preemption", "reclaimWithinCohort", default="Never"),
        evicts=at(obj, "spec", "quotaReduction", "policy") == "Evict",
        ages_ms=_ms(at(obj, "spec", "ageing", "step", default="0s")),
        ages_by=at(obj, "spec", "ageing", "cap", default=0),
    )


def _reserves_of(obj: Obj) -> Reserves | None:
    if at(obj, "spec", "queueingStrategy", default="BackfillFIFO") != "BackfillFIFO":
        return None
    stated: Obj = at(obj, "spec", "reservation", default={})
    after_ms = _ms(stated.get("after", "60s"))
    return Reserves(
        after_ms,
        max(after_ms, _ms(stated.get("drainAfter", "600s"))),
        _ms(stated.get("holdTimeout", "86400s")),
        int(stated.get("depth", 1)),
    )


def _ms(duration: str) -> int:
    """Of a duration in whole seconds, as stories state it."""
    return 1_000 * int(duration.removesuffix("s"))


def was_taken_back(binding: Obj) -> bool:
    """Whether it was released before, and did not start."""
    return REQUEUE in at(binding, "metadata", "annotations", default={})


def cause_of(binding: Obj) -> Cause:
    """Why it was taken back, if it was."""
    requeue = at(binding, "metadata", "annotations", REQUEUE)
    return Cause(json.loads(requeue).get("cause", "")) if requeue is not None else Cause.FAILED


def stays_in(binding: Obj) -> str:
    """The cluster that its requeue record says it is suspended in; empty for none."""
    text = at(binding, "metadata", "annotations", REQUEUE)
    return _stays_in(text) if text is not None else ""


@lru_cache(maxsize=10_000)
def _stays_in(text: str) -> str:
    try:
        requeue: Obj = json.loads(text)
        return str((requeue.get("suspended") or {}).get("cluster", ""))
    except (ValueError, AttributeError):
        return ""


def stands_still(binding: Obj) -> str:
    """The cluster where it is suspended, with no pods to be there; empty for none. What has a switch stays
    placed.
    """
    where = stays_in(binding)
    if not where or not is_held(binding) or record_of(binding) is not None:
        return ""
    shares: list[Obj] = at(binding, "spec", "clusters", default=[]) or []
    is_there = [share["name"] for share in shares] == [where]
    is_so = is_there and (has_switch(binding) or not shares[0].get("replicas"))
    return where if is_so and where not in ended_in(binding) else ""


def has_switch(binding: Obj) -> bool:
    """Whether it is suspended by its own switch."""
    return bool(at(binding, "spec", "resource", "kind") == "JobSet")


def leaving(binding: Obj) -> int:
    """How many pods of what is suspended are still there, as is reported: all, of what does not count them
    and does not say that there are none.
    """
    where = stands_still(binding)
    found = 0
    if where and has_switch(binding):
        return 0 if where in _still_in(binding) else replicas(binding)
    for item in at(binding, "status", "aggregatedStatus", default=()) if where else ():
        if item["clusterName"] == where:
            status: Obj = item.get("status") or {}
            found += status.get("active", 0) + (status.get("terminating") or 0)
    return min(found, replicas(binding))


def _still_in(binding: Obj) -> set[str]:
    """Clusters where its JobSet is suspended and has no Jobs with pods."""
    return {
        item["clusterName"]
        for item in at(binding, "status", "aggregatedStatus", default=())
        if any(
            one["type"] == "Suspended" and one["status"] == "True"
            for one in at(item, "status", "conditions", default=())
        )
        and not any(one["active"] for one in at(item, "status", "replicatedJobsStatus", default=()))
    }


def record_of(binding: Obj) -> Obj | None:
    """Its admission record, if that is its own; what is no record counts as none. Not to be changed."""
    text = at(binding, "metadata", "annotations", ADMISSION)
    record = _record(text) if text is not None else None
    return record if record is not None and record.get("id") == binding["metadata"]["uid"] else None


@lru_cache(maxsize=10_000)
def _record(text: str) -> Obj | None:
    try:
        record: Obj = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def limit_ms(line: SubmitLine) -> int | None:
    """For how long it may run, by its class or by what it says; None for without end."""
    stated = [seconds for seconds in (line.may_run_s, line.says_s) if seconds]
    return 1000 * min(stated) if stated else None


def is_held(binding: Obj) -> bool:
    return bool(at(binding, "spec", "suspension", "scheduling"))


def replicas(binding: Obj) -> int:
    """How many it is to have."""
    return int(at(binding, "spec", "replicas", default=0))


def is_whole(binding: Obj) -> bool:
    """Whether all replicas have a cluster."""
    return placed(binding) >= replicas(binding)


def is_part(binding: Obj) -> bool:
    """Whether it is elastic and runs with fewer pods than it asks for, held so that none are added."""
    record = record_of(binding)
    runs = record["replicas"] if record is not None else 0
    return is_held(binding) and 0 < runs == placed(binding) < replicas(binding)


def given_of(binding: Obj) -> list[Obj]:
    """For whom it has given pods up, as its record says, the latest last."""
    record = record_of(binding)
    return [] if record is None else record.get("given", [])


def placed(binding: Obj) -> int:
    """How many replicas have a cluster, to run there."""
    if stands_still(binding):
        return 0
    return sum(share.get("replicas", 0) for share in at(binding, "spec", "clusters", default=()))


def ended_in(binding: Obj) -> set[str]:
    """Clusters in which it came to its end."""
    return {
        item["clusterName"]
        for item in at(binding, "status", "aggregatedStatus", default=())
        if any(
            one["type"] in ("Complete", "Completed", "Succeeded", "Failed") and one["status"] == "True"
            for one in at(item, "status", "conditions", default=())
        )
    }


def done_in(binding: Obj, completions: int) -> Mapping[str, int]:
    """By cluster, how many replicas of a Job of so many completions run no more there, though it goes on."""
    shares = at(binding, "spec", "clusters", default=())
    if at(binding, "spec", "resource", "kind") != "Job" or len(shares) != 1:
        return {}
    (share,) = shares
    for item in at(binding, "status", "aggregatedStatus", default=()):
        succeeded = at(item, "status", "succeeded", default=0)
        if item["clusterName"] == share["name"] and succeeded:
            there = at(item, "status", "active", default=0) + (
                at(item, "status", "terminating", default=0) or 0
            )
            return {share["name"]: max(0, share.get("replicas", 0) - max(there, completions - succeeded))}
    return {}


def is_hopeless(binding: Obj) -> bool:
    """Whether Karmada last said that it finds no place for it, or never looks at it."""
    return at(binding, "spec", "schedulerName", default="") not in ("", "default-scheduler") or any(
        one["type"] == "Scheduled" and one["status"] == "False"
        for one in at(binding, "status", "conditions", default=())
    )


def is_ended(binding: Obj) -> bool:
    """Whether it came to its end wherever it is."""
    names = {share["name"] for share in at(binding, "spec", "clusters", default=())}
    return bool(names) and names <= ended_in(binding)


def asked(binding: Obj) -> int:
    """GPUs that all its replicas ask for."""
    return asked_each(binding) * replicas(binding)


def asked_each(binding: Obj) -> int:
    """GPUs that one replica asks for."""
    return int(at(binding, "spec", "replicaRequirements", "resourceRequest", GPU, default=0))


def charge_of(binding: Obj, queue: str, completions: int) -> Charge | None:
    """What it takes; ``queue``: where it belongs if no record says so; ``completions``: of a Job."""
    if is_ended(binding):
        return None
    record, key = record_of(binding), f"{binding['metadata']['namespace']}/{binding['metadata']['name']}"
    each = asked_each(binding)
    if record is not None:
        over = ended_in(binding)
        shares = at(binding, "spec", "clusters", default=())
        done = done_in(binding, completions)
        given_back = each * sum(
            share.get("replicas", 0) if share["name"] in over else done.get(share["name"], 0)
            for share in shares
        )
        admitted = int(record["requests"].get(GPU, 0))
        wanted = 0 if is_held(binding) or is_hopeless(binding) else asked(binding)
        most = max(admitted, wanted, each * placed(binding))
        return Charge(key, record["queue"], most - given_back, admitted - given_back)
    if not is_held(binding) and not is_hopeless(binding):
        return Charge(key, queue, asked(binding), 0)
    if left := each * leaving(binding):
        return Charge(key, queue, left, left)
    return Charge(key, queue, each * placed(binding), 0) if placed(binding) else None


class Trees:
    """Queues under their roots, which do not change."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        self._paths: dict[str, list[str]] = {}
        self._owned: dict[str, int] = {}
        self._most: dict[str, int] = {}
        self.quotas: Mapping[str, Quota] = {one.name: one for one in quotas}
        rests = Counter[str]()
        for one in self.quotas.values():
            if self.is_placed(one.name):
                rests[one.parent] += one.rest
        # What children lose by rounding is their parent's.
        self.quotas = {
            name: replace(one, nominal=one.nominal + rests[name] // 100) for name, one in self.quotas.items()
        }

    def root(self, name: str) -> str:
        return self.path(name)[-1]

    def priority(self, name: str, stated: int, waited_ms: int) -> int:
        """By which work goes that has waited in the queue for so long; as stated where there is no such."""
        quota = self.quotas.get(name)
        return quota.priority(stated, waited_ms) if quota is not None else stated

    def path(self, name: str) -> list[str]:
        """From the queue to its root; a parent that is not there is a pool without quota."""
        path = self._paths.get(name)
        if path is None:
            path = self._paths[name] = [name]
            while (
                (known := self.quotas.get(path[-1])) is not None and known.parent and known.parent not in path
            ):
                path.append(known.parent)
        return path

    def below(self, name: str) -> list[str]:
        return [one for one in self.quotas if name in self.path(one)]

    def owned(self, name: str) -> int:
        """What the queue and those below it own."""
        if name not in self._owned:
            self._owned[name] = sum(self.quotas[one].nominal for one in self.below(name))
        return self._owned[name]

    def is_stopped(self, name: str) -> bool:
        """Whether it admits nothing: it or one above it is stopped, not there, or above itself; or it has
        queues below it."""
        if any(one.parent == name for one in self.quotas.values()):
            return True
        return not self.is_placed(name) or any(self.quotas[one].is_stopped for one in self.path(name))

    def excess(self, name: str, used: Mapping[str, int], more: int = 0) -> str:
        """Which limit is passed if the queue takes so much more; empty for none."""
        taken = Counter(used)
        taken[name] += more
        for node in self.path(name):
            quota = self.quotas.get(node)
            beyond = 0 if quota is None or not quota.parent else quota.borrows
            within = self._taken(node, taken)
            if beyond is not None and within > self.owned(node) + beyond:
                return f"{within} taken or kept of {self.owned(node)} below {node}, which borrows {beyond}"
        return ""

    def _taken(self, node: str, used: Counter[str], above: tuple[str, ...] = ()) -> int:
        """What is used below the node, and what its queues keep for themselves unused."""
        total, above = used[node], (*above, node)
        for child in (one for one in self.quotas.values() if one.parent == node and one.name not in above):
            inside = self._taken(child.name, used, above)
            kept = 0 if child.lends is None else max(0, self.owned(child.name) - child.lends)
            total += max(inside, kept)
        return total

    def balance(self, name: str, used: Mapping[str, int]) -> int:
        """What the queue and those below it own and have left, below 0 what they borrow; of no circle."""
        children = [one for one in self.quotas.values() if one.parent == name]
        own = self.quotas[name].nominal - used.get(name, 0)
        lent = ((one, self.balance(one.name, used)) for one in children)
        return own + sum(left if one.lends is None else min(left, one.lends) for one, left in lent)

    def bounds(self, name: str, used: Mapping[str, int]) -> list[int]:
        """By node of the queue's path: how much more it may take as far as that goes."""
        found, own = [], 0
        for node in self.path(name):
            quota, left = self.quotas[node], self.balance(node, used)
            borrows = 0 if not quota.parent else NEVER_FULL if quota.borrows is None else quota.borrows
            found.append(own + max(0, left + borrows))
            if quota.lends is not None:
                own += max(0, left - quota.lends)
        return found

    def borrows(self, name: str, used: Mapping[str, int], more: int) -> bool:
        """Whether by so much more the queue, or one above it, would use more than it owns."""
        for node in self.path(name):
            left, lends = self.balance(node, used), self.quotas[node].lends
            if more and left < more:
                return True
            # Who is above does not see what the node has for itself alone.
            more -= 0 if lends is None else min(more, max(0, left - lends))
        return False

    def is_placed(self, name: str) -> bool:
        """Whether the queue stands below a root, or is one."""
        top = self.quotas.get(self.path(name)[-1])
        return top is not None and not top.parent

    def left(self, name: str, used: Mapping[str, int]) -> int:
        """How much more the queue may take before a limit is passed."""
        more, most = 0, self.most(name)
        while more < most and not self.excess(name, used, more + 1):
            more += 1
        return more

    def most(self, name: str) -> int:
        """What the queue could ever use if nobody else did."""
        if name not in self._most:
            most = self.owned(self.root(name))
            while self.excess(name, {}, most) and most > 0:
                most -= 1
            self._most[name] = most
        return self._most[name]
