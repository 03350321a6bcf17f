"""What is known of a world at any moment: who is charged what, and what keeps whom from running."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from queue_dispatcher.bindings.decision import digest
from queue_dispatcher.bindings.requeue import Cause
from queue_dispatcher.cycle.reasons import Reason
from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at, condition, from_rfc3339
from sandbox.simulation.story import SubmitLine
from sandbox.simulation.world import FLAVOR, World
from tests.simulation.accounts import (
    Charge,
    Trees,
    asked,
    asked_each,
    cause_of,
    is_held,
    placed,
    quota_of,
    record_of,
    replicas,
    was_taken_back,
)

QUEUE = "fairway.dev/queue"
STALE_MS = 100_000
"""So old may be what a decision was based on: a watch that says nothing is noticed after 90 s."""
SLACK_MS = 5_000
EARLY_MS = 12_000
"""So much earlier somebody may stop it who has not seen it placed, but knows when it was released."""
STARTS_WITHIN_MS = 400_000
"""What was admitted runs after so long, or is taken back; the default is 300 s."""


@dataclass(frozen=True)
class Broken:
    """A law that did not hold. ``about``: whose; ``at_s``: when."""

    law: str
    about: str
    told: str
    at_s: float

    def __str__(self) -> str:
        return f"{self.law}: {self.about}: {self.told} (at {self.at_s:.3f} s)"


@dataclass
class Known:
    """``broken``: what was found, each law once for each whom it is about."""

    world: World
    broken: list[Broken] = field(default_factory=list)
    _charges: dict[str, Charge] = field(default_factory=dict)
    _used: Counter[str] = field(default_factory=Counter)
    _trees: Trees = field(default_factory=lambda: Trees(()))
    _earlier: list[tuple[int, Trees]] = field(default_factory=list)
    _released: set[str] = field(default_factory=set)
    _as_one: dict[str, dict[str, int]] = field(default_factory=dict)
    """By the digest of a decision: who was to be released together, by uid, and what each asked for."""
    _away: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    """By cluster: since when it was not Ready last, and until when; None while it is not."""
    _told: set[tuple[str, str]] = field(default_factory=set)

    def _break(self, law: str, about: str, told: str) -> None:
        if (law, about) not in self._told:
            self._told.add((law, about))
            self.broken.append(Broken(law, about, told, self.world.now_s))

    def _queues_changed(self) -> None:
        self._earlier.append((self.world.timeline.now_ms, self._trees))
        # Stories with percentages have clusters that stay as they are.
        gpus = sum(one.gpus * one.nodes for one in self.world.clusters.values())
        objects = self.world.api.collection("clusterqueues").objects.values()
        self._trees = Trees(quota_of(one, gpus) for one in objects)

    def _cluster_changed(self, written: Written) -> None:
        known = self._away.get(written.key)
        is_away = written.after is None or not _is_ready(written.after)
        if is_away and (known is None or known[1] is not None):
            self._away[written.key] = (written.at_ms, None)
        elif not is_away and known is not None and known[1] is None:
            self._away[written.key] = (known[0], written.at_ms)

    def _lost_before(self, at_ms: int) -> frozenset[str]:
        """The clusters that work may be taken off then: lost for longer than it is to be waited for, as far
        as a dispatcher may have heard.
        """
        after_ms = 1_000 * self.world.story.lost_after_s
        if not after_ms:
            return frozenset()
        return frozenset(
            name
            for name, (from_ms, to_ms) in self._away.items()
            if (at_ms if to_ms is None else to_ms) - from_ms + STALE_MS >= after_ms - SLACK_MS
            and at_ms - from_ms >= after_ms - SLACK_MS
            and (to_ms is None or at_ms - to_ms <= STALE_MS)
        )

    def _charge(self, key: str, charge: Charge | None) -> None:
        old = self._charges.pop(key, None)
        if old is not None:
            self._used[old.queue] -= old.gpus
        if charge is not None:
            self._charges[key] = charge
            self._used[charge.queue] += charge.gpus

    def _obstacles(self, binding: Obj, line: SubmitLine, queue: str) -> frozenset[str]:
        """All that keeps the workload, and those that start with it, from running now; empty if it could."""
        # What was admitted stays with the queue that admitted it.
        is_lost = record_of(binding) is None and self._local_queue_is_gone(binding)
        if queue not in self._trees.quotas or is_lost:
            return frozenset({"queue"})
        together = self._together(binding, line)
        need = sum(asked(one) - self._has(one) for one, _ in together)
        gpus = self._gpus()
        found = {
            "stopped": self._trees.is_stopped(queue),
            "impossible": any(one.impossible or one.scheduler for _, one in together),
            "never": need > min(self._trees.most(queue), gpus) or not self._room(together, if_empty=True),
            "quota": bool(self._trees.excess(queue, self._used, need)),
            "room": not (self._room(together) and self._room_anywhere(together)),
            "promised": self._is_promised(binding),
        }
        return frozenset(name for name, is_so in found.items() if is_so)

    def _room(
        self,
        together: Iterable[tuple[Obj, SubmitLine]],
        free: dict[str, list[int]] | None = None,
        *,
        if_empty: bool = False,
    ) -> bool:
        """Whether what is missing of all of them at once fits the clusters that they may go to, the largest
        first; now, or if those were empty.
        """
        together = list(together)
        if free is None:
            free = self.world.free(if_empty=True) if if_empty else self._free(together)
        for binding, line in sorted(together, key=lambda one: -one[1].gpus):
            shares = at(binding, "spec", "clusters", default=())
            have = {share["name"]: share.get("replicas", 0) for share in shares}
            missing = replicas(binding) - sum(have.values())
            tasks = at(binding, "spec", "gracefulEvictionTasks", default=()) or ()
            evicting = {task["fromCluster"] for task in tasks}
            names = [name for name in line.clusters or free if name in free and self._is_of_flavor(name)]
            names = [name for name in names if name not in evicting]
            if not if_empty:
                names = [name for name in names if self._is_open(name)]
            if not line.gpus:
                continue
            rooms = {name: sum(left // line.gpus for left in free[name]) for name in names}
            if line.gang:
                rooms = {name: room for name, room in rooms.items() if not have or name in have}
                rooms = dict(sorted(rooms.items(), key=lambda one: -one[1])[:1])
            if sum(rooms.values()) < missing:
                return False
            for name in rooms:
                missing = take(free[name], line.gpus, missing)
        return True

    def _free(self, together: Iterable[tuple[Obj, SubmitLine]] = ()) -> dict[str, list[int]]:
        """As `World.free`, beside the room that is kept for others than these by the leader's word."""
        free, leader = self.world.free(), self.world.leader
        held = leader.held_rooms() if leader is not None else {}
        if not held:
            return free
        bindings = {one["metadata"]["uid"]: one for one in self._bindings()}
        for uid in held.keys() & bindings.keys() - {one["metadata"]["uid"] for one, _ in together}:
            earliest, each = held[uid], asked_each(bindings[uid])
            nodes = self.world.members[earliest.cluster].nodes
            names = [name for name, node in nodes.items() if node.takes({})]
            for _, node, count in earliest.where if each else ():
                if node in names:
                    place = free[earliest.cluster]
                    place[names.index(node)] -= min(place[names.index(node)], each * count)
        return free

    def _kept_for(self, reason: Reason | None) -> Obj | None:
        """The binding for which room is kept that the reason names; None if the leader keeps none for it."""
        leader = self.world.leader
        if leader is None or reason is None or reason.kind != "BehindReservation":
            return None
        name = reason.text.partition(" is kept for ")[2].partition(",")[0]
        ids = {uid for one in leader.reservations() if one.item.name == name for uid in one.item.members}
        return next((one for one in self._bindings() if one["metadata"]["uid"] in ids), None)

    def _is_open(self, cluster: str) -> bool:
        """Whether the cluster answers, and nothing keeps new work from it."""
        stated = self.world.api.collection("clusters").objects[cluster]
        return self.world.members[cluster].is_reachable and not at(stated, "spec", "taints")

    def _room_anywhere(self, together: list[tuple[Obj, SubmitLine]]) -> bool:
        """Whether each of several has room however the others are placed, which is up to Karmada."""
        for one in together if len(together) > 1 else ():
            free = self._free(together)
            for binding, line in (other for other in together if other is not one):
                for name in line.clusters or free:
                    if name in free:
                        take(free[name], 1, asked(binding))
            if not self._room([one], free):
                return False
        return True

    def _together(self, binding: Obj, line: SubmitLine) -> list[tuple[Obj, SubmitLine]]:
        """It and those that start with it."""
        if line.group and is_held(binding) and not placed(binding) and record_of(binding) is None:
            members = [one for one in self._bindings() if self._in_group(one, line)]
            held = [one for one in members if is_held(one)]
            if len(held) < len(members) or len(held) < self._size(line):
                # Once it has started, who was taken back stands in line alone.
                if was_taken_back(binding):
                    return [(binding, line)]
                held = [one for one in held if not was_taken_back(one)]
            return [(one, other) for one in held if (other := self._line(one)) is not None]
        return [(binding, line)]

    def _is_all_charged(self, binding: Obj, line: SubmitLine) -> bool:
        """Whether what is charged and has a place, or may still find one, leaves less than it, and those with
        it, ask for.
        """
        need = sum(asked(one) - self._has(one) for one, _ in self._together(binding, line))
        bindings = self.world.api.collection("resourcebindings").objects
        taken = sum(
            charge.gpus
            for key, charge in self._charges.items()
            if placed(bindings[key]) or self._is_on_its_way(bindings[key])
        )
        return taken + need > self._gpus()

    def _is_promised(self, but: Obj) -> bool:
        """Whether something was released a while ago, and takes what it asks for although it has no place."""
        return any(one is not but and self._is_on_its_way(one) for one in self._bindings())

    def _is_on_its_way(self, binding: Obj) -> bool:
        """Whether it was released and has no place, and is not to be taken back yet."""
        record = record_of(binding) if not is_held(binding) and not placed(binding) else None
        if record is None:
            return False
        return self.world.timeline.now_ms - from_rfc3339(record["admittedAt"]) < STARTS_WITHIN_MS

    def _has(self, binding: Obj) -> int:
        record = record_of(binding)
        return int(sum(record["requests"].values())) if record is not None else 0

    def _size(self, line: SubmitLine) -> int:
        """How many the group of the line has, as the largest of its members says."""
        members = (self._line(one) for one in self._bindings() if self._in_group(one, line))
        return max((one.group_size for one in members if one is not None), default=line.group_size)

    def _note_decision(self, binding: Obj, decision: Obj) -> None:
        """One of a group is released: who is to be with it is told by the digest of their uids."""
        line = self._line(binding)
        if line is None or decision["digest"] in self._as_one:
            return
        group = {
            one["metadata"]["uid"]: asked(one)
            for one in self._bindings()
            if (other := self._line(one)) is not None and other.group == line.group
        }
        for uids in combinations(sorted(group), decision["members"]):
            if digest(uids) == decision["digest"]:
                self._as_one[decision["digest"]] = {uid: group[uid] for uid in uids}
                return

    def _in_group(self, binding: Obj, line: SubmitLine) -> bool:
        """Whether it belongs to the group of the line: one of its queue that does not opt out."""
        other = self._line(binding)
        if other is None or other.group != line.group or other.skip:
            return False
        record = record_of(binding)
        if record is None and cause_of(binding) is Cause.MAX_RUNTIME:
            # It starts no more.
            return False
        if record is not None and record.get("group", "") != line.group:
            # It was released by itself, or with others.
            return False
        if not is_held(binding) and record is None:
            # Somebody let go of it by hand.
            return False
        of = self.world.binding(line.name)
        return of is not None and self._queue_named(of) == self._queue_named(binding)

    def _bindings(self) -> Iterable[Obj]:
        return self.world.api.collection("resourcebindings").objects.values()

    def _local_queue_is_gone(self, binding: Obj) -> bool:
        key = f"{binding['metadata']['namespace']}/{self._named_now(binding)}"
        return key not in self.world.api.collection("localqueues").objects

    def _is_surely_free(self, binding: Obj, queue: str) -> bool:
        """Whether it fits its queue's own quota, and the GPUs that nobody has been given."""
        if self._used[queue] + asked(binding) > self._trees.quotas[queue].nominal:
            return False
        return self._used.total() + asked(binding) <= self._gpus()

    def _gpus(self) -> int:
        """Those of all clusters of the flavor."""
        return sum(
            one.gpus * one.nodes for name, one in self.world.clusters.items() if self._is_of_flavor(name)
        )

    def _is_of_flavor(self, cluster: str) -> bool:
        flavor = self.world.api.collection("resourceflavors").objects.get(FLAVOR)
        return cluster in (at(flavor, "spec", "clusterNames") or self.world.clusters)

    def _line(self, binding: Obj) -> SubmitLine | None:
        return self.world.submitted.get(binding["spec"]["resource"]["name"])

    def _named_now(self, binding: Obj) -> str:
        """The queue that its template names."""
        reference = binding["spec"]["resource"]
        objects = self.world.api.collection(f"{reference['kind'].lower()}s").objects
        template = objects.get(f"{reference['namespace']}/{reference['name']}")
        return str(at(template, "metadata", "labels", QUEUE, default=""))

    def _queue_named(self, binding: Obj) -> str:
        record = record_of(binding)
        return str(record["queue"]) if record is not None else self._named_now(binding)


def _is_ready(cluster: Obj) -> bool:
    ready = condition(cluster, "Ready")
    return ready is not None and ready["status"] == "True"


def take(free: list[int], gpus: int, pods: int) -> int:
    """Give so many pods their GPUs of the nodes; how many are left without."""
    for number, left in enumerate(free):
        taken = min(pods, left // gpus)
        free[number] -= taken * gpus
        pods -= taken
    return pods
