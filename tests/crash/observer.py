"""Looks at every state that any binding ever has, and says what must not be.

It trusts nothing but the stored objects: what a workload is charged is worked out from its record and from
where it is placed, and whether that is too much by `tests.crash.quota`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sandbox.fakeapi import FakeApi
from tests.crash.quota import exceeded
from tests.crash.schedule import Schedule
from tests.crash.views import GPU, View, bindings, changes, view_of


@dataclass(slots=True)
class _Past:
    """What became of one binding so far."""

    admissions: int = 0
    take_backs: int = 0
    displaced: int = 0
    finished: bool = False


class Observer:
    """``faults`` says what was wrong, in the order it was seen; ``now`` has all bindings as they are."""

    def __init__(self, api: FakeApi, schedule: Schedule) -> None:
        self.faults: list[str] = []
        self.seen = 0
        """How many states."""
        self.now: dict[str, View] = {}
        self.admitted: list[str] = []
        """Keys in the order of their admissions."""
        self._bindings = bindings(api.store)
        self._schedule = schedule
        self._workloads = {workload.key: workload for workload in schedule.workloads}
        self._past: dict[str, _Past] = {}
        self.displaced = schedule.displaced

    @property
    def take_backs(self) -> int:
        return sum(past.take_backs for past in self._past.values())

    async def run(self) -> None:
        """Until cancelled."""
        async for event in changes(self._bindings):
            if event.new is None:
                self.faults.append(f"{event.old and event.old.key}: deleted")
                continue
            new = view_of(event.new)
            old = self.now.get(new.key)
            self.seen += 1
            self.now[new.key] = new
            faults = list(self._happened(old, new))
            faults += exceeded(self._schedule.queues, self._charged())
            faults += self._too_full()
            self.faults += (f"{new.key}: {fault}" for fault in faults)

    # What happens to one binding.

    def _happened(self, old: View | None, new: View) -> Iterator[str]:
        past = self._past.setdefault(new.key, _Past())
        if new.record is not None and new.record["id"] != new.uid:
            yield f"its record is of {new.record['id']}"
        if old is None:
            return
        if old.record is None and new.record is not None:
            past.admissions += 1
            yield from self._admitted(old, new, past)
        elif old.record is not None and new.record is None:
            past.take_backs += 1
            if new.requeue is not None and new.requeue.get("cause") == "Preempted":
                past.displaced += 1
                yield from self._displaced(old, new)
            else:
                yield from _taken_back(old, new)
        elif old.record != new.record:
            yield from _amended(old, new)
        elif old.held and not new.held and new.record is None:
            yield "released without a record"
        if past.finished and (old.record, old.held, old.requeue) != (new.record, new.held, new.requeue):
            yield "touched after it had finished"
        past.finished |= new.is_finished

    def _admitted(self, old: View, new: View, past: _Past) -> Iterator[str]:
        self.admitted.append(new.key)
        workload = self._workloads[new.key]
        if not old.held or new.held:
            yield f"admitted, and its flag went from {old.held} to {new.held}"
        if old.clusters:
            yield f"admitted while placed on {dict(old.clusters)}"
        if past.admissions > 1 + past.take_backs:
            yield f"admitted {past.admissions} times and taken back {past.take_backs} times"
        record = new.record
        if record["queue"] != new.namespace or record.get("group", "") != workload.group:
            yield f"admitted to queue {record['queue']} in group {record.get('group')!r}"
        if record["requests"] != {GPU: new.replicas * new.gpus}:
            yield f"admitted with {record['requests']}, asks for {new.replicas} x {new.gpus}"
        if not workload.group and past.take_backs == 0:
            yield from self._overtaken(new)

    def _displaced(self, old: View, new: View) -> Iterator[str]:
        if not new.held or new.clusters:
            yield f"displaced, and is held: {new.held}, on {dict(new.clusters)}"
        if new.requeue["count"] != (old.requeue or {"count": 0})["count"]:
            yield "being displaced counts as a try"
        by = next((one for one in self.now.values() if one.uid == new.requeue["by"]), None)
        if by is None or by.record is not None:
            yield f"displaced for {by and by.key}, which does not wait"

    def _overtaken(self, new: View) -> Iterator[str]:
        """Who is like it, came earlier, and waits all the same."""
        workload = self._workloads[new.key]
        for other in self.now.values():
            peer = self._workloads[other.key]
            if (
                (other.created, other.uid) < (new.created, new.uid)
                and peer.alike == workload.alike
                and not peer.group
                and (other.replicas, other.record, other.requeue) == (new.replicas, None, None)
            ):
                yield f"admitted before {other.key}, which is like it and came earlier"

    # All together.

    def _charged(self) -> Mapping[tuple[str, str], int]:
        """GPUs by queue and flavor: what records say, moved to where the workload is placed."""
        usage: Counter[tuple[str, str]] = Counter()
        for seen in self.now.values():
            if seen.record is None or seen.is_finished:
                continue
            queue = seen.record["queue"]
            for cluster, replicas in seen.clusters.items():
                usage[queue, cluster] += replicas * seen.gpus
            rest = seen.record["requests"].get(GPU, 0) - seen.placed * seen.gpus
            for flavor in seen.record["flavors"][GPU]:
                usage[queue, flavor] += max(0, rest)
        return usage

    def _too_full(self) -> Iterator[str]:
        usage: Counter[str] = Counter()
        for (_, flavor), amount in self._charged().items():
            usage[flavor] += amount
        for flavor, amount in usage.items():
            if amount > self._schedule.capacity[flavor]:
                yield f"{amount} admitted to flavor {flavor}, which has {self._schedule.capacity[flavor]}"

    # The end.

    def ending(self) -> dict[str, str]:
        """What each binding is: ``finished``, ``running``, ``pending``, or something that is no end."""
        return {key: _as_said(self._workloads[key].ends, _end(seen)) for key, seen in self.now.items()}

    def wrong_at_rest(self) -> Iterator[str]:
        """What must not be once everything has come to rest."""
        for workload in self._schedule.workloads:
            if workload.key not in self.now:
                yield f"{workload.key}: lost"
        groups: dict[tuple[str, str], set[bool]] = {}
        for workload in self._schedule.workloads:
            if workload.group and workload.key in self.now:
                members = groups.setdefault((workload.namespace, workload.group), set())
                members.add(self.now[workload.key].record is not None)
        for (namespace, group), admitted in groups.items():
            if len(admitted) > 1:
                yield f"group {namespace}/{group}: half of it is admitted"
        yield from self._displaced_in_vain()

    def _displaced_in_vain(self) -> Iterator[str]:
        displaced = Counter[str]()
        for key, past in self._past.items():
            workload = self._workloads[key]
            displaced[workload.clusters[0]] += past.displaced * workload.demand
        for cluster, most in self.displaced.items():
            if displaced[cluster] > most:
                yield f"{displaced[cluster]} GPUs in {cluster} were displaced, and {most} are enough"

    def idle(self) -> Iterator[str]:
        """The clusters that ought to be in full use, and are not."""
        used = Counter[str]()
        for seen in self.now.values():
            for cluster, replicas in seen.clusters.items():
                used[cluster] += replicas * seen.gpus
        for cluster in self.displaced:
            if used[cluster] != self._schedule.capacity[cluster]:
                yield f"of {self._schedule.capacity[cluster]} GPUs in {cluster} {used[cluster]} are in use"


def _taken_back(old: View, new: View) -> Iterator[str]:
    if not new.held or new.requeue is None:
        yield "its record is gone, and it was not taken back"
    elif old.clusters:
        yield f"taken back while placed on {dict(old.clusters)}"
    elif new.requeue["count"] != (old.requeue or {"count": 0})["count"] + 1 and old.requeue is not None:
        yield f"taken back for the {new.requeue['count']}th time after {old.requeue['count']}"


def _amended(old: View, new: View) -> Iterator[str]:
    """A record may only follow what is asked for; growth waited since it was asked for."""
    has_grown = new.record["requests"].get(GPU, 0) > old.record["requests"].get(GPU, 0)
    for field in ("id", "queue", "localQueue", "class", "group", "enqueuedAt"):
        was, became = old.record.get(field), new.record.get(field)
        if was != became and not (has_grown and field == "enqueuedAt" and became > was):
            yield f"its record's {field} became {became!r}, was {was!r}"
    if new.record["requests"] != {GPU: new.replicas * new.gpus}:
        yield f"its record now says {new.record['requests']}, it asks for {new.replicas} x {new.gpus}"
    if new.record["requests"] == old.record["requests"]:
        yield f"its record was rewritten for nothing: {old.record} became {new.record}"


def _end(seen: View) -> str:
    if seen.is_finished:
        return "finished"
    if seen.record is not None and not seen.held and seen.placed == seen.replicas:
        is_exact = seen.record["requests"] == {GPU: seen.replicas * seen.gpus}
        return "running" if is_exact else f"running with a record of {seen.record['requests']}"
    if seen.record is None and seen.held and not seen.clusters:
        if seen.requeue is None:
            return "pending"
        if seen.requeue.get("cause") == "Preempted":
            return "displaced"
    return str(replace(seen, created="", uid=""))


def _as_said(ends: str, is_now: str) -> str:
    """What it is, in the word that its schedule has for it."""
    return ends if ends == "either" and is_now in ("running", "pending", "displaced") else is_now
