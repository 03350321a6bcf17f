"""Suspending: what stands still has no pods, loses nothing that it has done, and goes on where it stands.

By what is written in the world, and by what is in its members.
"""

import json
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fairway.names import SUSPENDED
from queue_dispatcher.bindings.requeue import Cause
from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at, from_rfc3339
from sandbox.simulation.pods import Owner
from tests.simulation.accounts import (
    REQUEUE,
    cause_of,
    has_switch,
    is_held,
    leaving,
    record_of,
    stands_still,
    stays_in,
)
from tests.simulation.displaced import Displacements
from tests.simulation.places import shares

_NO_PODS: Final = "what stands still has no pods"
_DONE: Final = "what it has done is not lost"
_THERE: Final = "it goes on where it stands"
_SAID: Final = "it stands still for as long as was said"
_LET_GO: Final = "what is released is not suspended any more"
_FOLLOWS: Final = "what suspends it comes after the hold, and goes after the release"
_WITHIN_MS: Final = 30_000
"""How long Karmada may take to have its pods end, beside the time that they take themselves."""


class Standing(NamedTuple):
    """It stands still in a cluster. ``began_ms``: when the Job there was made; None where there is none."""

    cluster: str
    since_ms: int
    began_ms: int | None
    succeeded: int


@dataclass
class Suspensions(Displacements):
    """The laws about suspending, beside all others. ``suspended``, ``resumed``, ``given_up``: how often."""

    suspended: int = 0
    resumed: int = 0
    given_up: int = 0
    _standing: dict[str, Standing] = field(default_factory=dict)
    """By key."""
    _late_ms: dict[str, int] = field(default_factory=dict)
    """By key of what is released, since when it is suspended all the same."""

    def _binding_changed(self, written: Written) -> None:
        super()._binding_changed(written)
        before, after, key = written.before, written.after, written.key
        if after is None or before is None:
            self._standing.pop(key, None)
            return
        was, now = stands_still(before), stands_still(after)
        is_ours = written.user.startswith("dispatcher")
        if was and not now and is_ours:
            self._stands_no_more(written, before, after, was)
        if now and not was:
            if is_ours and record_of(before) is not None:
                self.suspended += 1
                self._stands_from(key, before, after, now)
            owner = self._owner_in(after, now)
            began_ms = owner.started_ms if owner is not None else None
            self._standing[key] = Standing(
                now, written.at_ms, began_ms, owner.succeeded if owner is not None else 0
            )
        elif not now:
            self._standing.pop(key, None)

    def _stands_from(self, key: str, before: Obj, after: Obj, where: str) -> None:
        if set(shares(before)) != {where}:
            self._break(_THERE, key, f"suspended in {where}, and was on {shares(before)}")
        if at(before, "spec", "resource", "kind") not in ("Job", "JobSet") or cause_of(after) not in (
            Cause.PREEMPTED,
            Cause.DRAINED,
        ):
            self._break(_THERE, key, f"suspended: {cause_of(after)}")

    def _stands_no_more(self, written: Written, before: Obj, after: Obj, was: str) -> None:
        key, now_ms = written.key, self.world.timeline.now_ms
        if record_of(after) is not None:
            self.resumed += 1
            if set(shares(after)) != {was}:
                self._break(_THERE, key, f"stood still in {was}, and goes on in {shares(after)}")
            self._has_done_no_less(key, after)
            return
        if shares(after) or stays_in(after):
            return
        self.given_up += 1
        until = at(before, "metadata", "annotations", REQUEUE)
        until_ms = _until_ms(until)
        if self._has_wrong_clocks() or (has_switch(before) and leaving(before)):
            # What is not known to have stopped is not to be kept waiting for.
            return
        if until_ms is None or now_ms < until_ms - self._early_ms():
            self._break(_SAID, key, f"given up {until_ms and until_ms - now_ms} ms before that")

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        for key in list(self._standing):
            binding = self.world.api.collection("resourcebindings").objects.get(key)
            if binding is not None:
                self._has_done_no_less(key, binding)
                self._has_no_pods(key, binding)
        for key, binding in self.world.api.collection("resourcebindings").objects.items():
            if has_switch(binding):
                self._goes_on(key, binding)

    def _guided(self, written: Written) -> None:
        """What runs is charged in each moment: also between the writes of a policy and of its binding."""
        super()._guided(written)
        policy: Obj = written.after or written.before or {}
        if SUSPENDED not in at(policy, "metadata", "labels", default={}):
            return
        uid = policy["metadata"]["ownerReferences"][0]["uid"]
        for binding in self.world.api.collection("resourcebindings").objects.values():
            if binding["metadata"]["uid"] == uid and bool(stands_still(binding)) is (written.after is None):
                self._break(
                    _FOLLOWS, written.key, f"{written.verb}, and it stands in {stands_still(binding)!r}"
                )

    def _goes_on(self, key: str, binding: Obj) -> None:
        """What is released is suspended no more, within a while."""
        members = [self.world.members[cluster] for cluster in shares(binding)]
        owners = [self._owner_in(binding, member.name) for member in members]
        is_calm = self.world.faults.is_calm() and not self._is_slow
        is_late = record_of(binding) is not None and any(one and one.is_suspended for one in owners)
        if not is_late or is_held(binding) or not is_calm or not all(one.is_reachable for one in members):
            self._late_ms.pop(key, None)
            return
        now_ms = self.world.timeline.now_ms
        late_ms = now_ms - self._late_ms.setdefault(key, now_ms)
        if late_ms > _WITHIN_MS:
            self._break(_LET_GO, key, f"in {', '.join(shares(binding))}, for {late_ms // 1000} s")

    def _has_done_no_less(self, key: str, binding: Obj) -> None:
        """It is the same Job there, and has done no less."""
        one = self._standing.get(key)
        if one is None or one.began_ms is None:
            return
        owner = self._owner_in(binding, one.cluster)
        if owner is None or owner.started_ms != one.began_ms:
            self._break(_DONE, key, f"the Job in {one.cluster} is gone, with {one.succeeded} that succeeded")
        elif owner.succeeded < one.succeeded:
            self._break(_DONE, key, f"{owner.succeeded} have succeeded, of {one.succeeded}")
        else:
            self._standing[key] = one._replace(succeeded=owner.succeeded)

    def _has_no_pods(self, key: str, binding: Obj) -> None:
        one, line = self._standing[key], self._line(binding)
        member = self.world.members[one.cluster]
        owner = self._owner_in(binding, one.cluster)
        calm = self.world.faults.is_calm() and not self._is_slow and member.is_reachable
        if not calm or owner is None or line is None or not stands_still(binding):
            self._standing[key] = one._replace(since_ms=self.world.timeline.now_ms)
            return
        stood_ms = self.world.timeline.now_ms - one.since_ms
        if owner.pods and stood_ms > _WITHIN_MS + 1_000 * line.stops_s:
            self._break(_NO_PODS, key, f"{len(owner.pods)} in {one.cluster} after {stood_ms // 1000} s")

    def _owner_in(self, binding: Obj, cluster: str) -> Owner | None:
        """The workload in a member."""
        resource: Obj = binding["spec"]["resource"]
        member = self.world.members.get(cluster)
        found = (one for one in (member.owners.values() if member is not None else ()))
        return next(
            (
                one
                for one in found
                if (one.kind, one.template["metadata"]["name"]) == (resource["kind"], resource["name"])
            ),
            None,
        )


def _until_ms(requeue: str) -> int | None:

    stay: Obj = json.loads(requeue).get("suspended") or {}
    return from_rfc3339(stay["until"]) if "until" in stay else None
