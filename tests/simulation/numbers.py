"""What the leader tells of its queues is so: reckoned from the objects alone, whenever it has heard of all.

Who waits in each queue and how many are charged to it; what is used of it, borrowed, and left. Left alone is
what depends on reports of members that come late.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from fairway.visibility import QueueView, Usage
from queue_dispatcher.bindings.requeue import Cause
from sandbox.simulation.objects import Obj, at, condition
from sandbox.simulation.story import SubmitLine
from sandbox.simulation.templates import GPU
from tests.simulation.accounts import (
    REQUEUE,
    asked,
    asked_each,
    cause_of,
    done_in,
    ended_in,
    is_ended,
    is_held,
    is_hopeless,
    is_part,
    leaving,
    placed,
    record_of,
    stands_still,
)
from tests.simulation.laws import Laws

_LAW = "what is told of queues is so"


@dataclass
class Numbers(Laws):
    """The law about what is told of queues, beside all others."""

    _compared: int = -1

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        # Nothing new is told while nothing is written.
        if self._news == self._compared:
            return
        told = self.world.leader.queues() if self.world.leader is not None else None
        if told is None:
            return
        self._compared = self._news
        used, charged, pending = Counter[str](), Counter[str](), Counter[str]()
        there, lost = self._there(), self._lost()
        taken = 0
        for binding in self._bindings():
            line = self._line(binding)
            if line is None or not line.gpus:
                continue
            queue, gpus = self._charged(binding, line)
            if gpus:
                charged[queue] += 1
                used[queue] += gpus
                # What runs on lost ones takes nothing of those that are there. Elsewhere than in the flavor
                # it is of no cluster that could be lost to it, and takes its part as while all was well.
                taken += gpus - self._runs(binding, line, {one for one in lost if self._is_of_flavor(one)})
        for queue in self._waiting():
            pending[queue] += 1
        for view in told.queues:
            for name, of, now in (
                ("admitted", view.admitted, charged[view.name]),
                ("pending", view.pending, pending[view.name]),
            ):
                if of != now:
                    self._break(_LAW, view.name, f"{name} {of}, and it is {now}")
            for usage in view.usage:
                if usage.resource == GPU:
                    self._compare(view, usage, used, None if there is None else there - taken)

    def _compare(self, view: QueueView, usage: Usage, used: Mapping[str, int], room: int | None) -> None:
        trees, name = self._trees, view.name
        if name not in trees.quotas:
            expected = {"nominal": 0, "used": used.get(name, 0)}
        elif not trees.is_placed(name):
            # Where it stands is for people to say first; until then it takes nothing.
            expected = {"available": 0}
        else:
            expected = {
                "nominal": trees.quotas[name].nominal,
                "used": sum(used.get(below, 0) for below in trees.below(name)),
                "borrowed": max(0, -trees.balance(name, used)),
            }
            if any(trees.quotas[one].is_stopped for one in trees.path(name)):
                expected["available"] = 0
            elif room is not None and not trees.excess(name, used):
                expected["available"] = max(0, min(trees.left(name, used), room))
        for what, amount in expected.items():
            told = getattr(usage, what)
            if told != amount:
                self._break(_LAW, name, f"{what} {told}, and it is {amount}")

    def _lost(self) -> set[str]:
        """Clusters that are not there at present, as the API server has it."""
        return {
            name
            for name, one in self.world.api.collection("clusters").objects.items()
            if (ready := condition(one, "Ready")) is None or ready["status"] != "True"
        }

    def _there(self) -> int | None:
        """GPUs of the clusters that are there, as they have reported; None if one does not say."""
        clusters, lost = self.world.api.collection("clusters").objects, self._lost()
        told = {
            name: at(one, "status", "resourceSummary", "allocatable", GPU)
            for name, one in clusters.items()
            if self._is_of_flavor(name)
        }
        return None if None in told.values() else sum(int(told[name]) for name in told.keys() - lost)

    def _charged(self, binding: Obj, line: SubmitLine) -> tuple[str, int]:
        """To which queue it is charged, and how many GPUs."""
        record, queue = record_of(binding), self._leads_to(binding)
        if is_ended(binding) or (record is None and line.skip and self._named_now(binding)):
            return "", 0
        each = asked_each(binding)
        runs = self._runs(binding, line)
        reserved = 0
        if record is not None:
            queue, reserved = record["queue"], int(record["requests"].get(GPU, 0))
        elif is_held(binding) and not placed(binding):
            left = each * leaving(binding)
            return (queue, left) if left else ("", 0)
        if not is_held(binding) and not is_hopeless(binding):
            reserved = max(reserved, asked(binding))
        return queue, runs + max(0, reserved - each * placed(binding))

    def _runs(self, binding: Obj, line: SubmitLine, among: Collection[str] | None = None) -> int:
        """GPUs of what is placed and has not ended, in all or only these clusters."""
        each = asked_each(binding)
        if (where := stands_still(binding)) and (among is None or where in among):
            return each * leaving(binding)
        over, done = ended_in(binding), done_in(binding, line.to_succeed)
        return each * sum(
            int(one.get("replicas", 0)) - done.get(one["name"], 0)
            for one in at(binding, "spec", "clusters", default=())
            if one["name"] not in over and (among is None or one["name"] in among)
        )

    def _waiting(self) -> Iterator[str]:
        """The queue of each that waits; a group waits as one, once all of it is there."""
        groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for binding in self._bindings():
            line = self._line(binding)
            if line is None or not line.gpus or line.skip:
                continue
            record, queue = record_of(binding), self._leads_to(binding)
            if record is not None and record.get("group"):
                group = groups[record["queue"], record["group"]]
                group["size"] = max(group["size"], line.group_size)
                group["released"] += 1
                group["decided"] = max(group["decided"], record.get("decision", {}).get("members", 0))
            if line.scheduler or not is_held(binding) or is_ended(binding):
                continue
            if line.least and is_part(binding):
                continue
            if cause_of(binding) is Cause.MAX_RUNTIME and record is None:
                continue
            if at(binding, "metadata", "deletionTimestamp", default=""):
                continue
            each = asked_each(binding)
            requeue = at(binding, "metadata", "annotations", REQUEUE)
            if record is not None or placed(binding):
                # It stands there for what it grew by.
                name = record["queue"] if record is not None else queue
                has = max(self._has(binding), each * placed(binding))
                if name in self._trees.quotas and asked(binding) > has and (record or not requeue):
                    yield name
            elif queue and requeue and line.tries is not None and _tries(requeue) > line.tries:
                yield queue
            elif queue:
                if line.group:
                    group = groups[queue, line.group]
                    group["taken back" if requeue else "new"] += 1
                    group["size"] = max(group["size"], line.group_size)
                else:
                    yield queue
        for (queue, _), members in groups.items():
            waiting = members["new"] + members["taken back"]
            is_there = waiting + max(members["released"], members["decided"]) >= members["size"]
            is_first = is_there and not members["released"]
            if not is_first:
                yield from [queue] * members["taken back"]
            if not is_there:
                yield from [queue] * members["new"]
            if is_there and (waiting if is_first else members["new"]):
                yield queue

    def _leads_to(self, binding: Obj) -> str:
        """The ClusterQueue that its template leads to; empty for none."""
        name = self._named_now(binding)
        if self._local_queue_is_gone(binding) or name not in self._trees.quotas:
            return ""
        return name


def _tries(requeue: str) -> int:
    return int(json.loads(requeue)["count"])
