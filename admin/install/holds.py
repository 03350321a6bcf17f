"""Whose hold a suspended binding carries, and what giving it back writes. Pure.

What the webhook or a policy holds carries its note, unless somebody took that off. Without it the API server
tells: the flag is set inside somebody else's write, and no owner is noted for what admission changes.
Whoever else suspends a binding does it in a request, and is noted in ``metadata.managedFields`` as the one
who set ``spec.suspension.scheduling``; our dispatcher is noted there too, by its own name. So a hold is ours
where the binding has a note or record of ours, or where nobody, or only our dispatcher, is noted and the
workload is one that we hold. All else is left alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.names import ADMISSION, HELD_AT, REQUEUE, SKIP
from fairway.scope import Reach, Scope
from webhook.bindings import Binding

OUR_MANAGERS: Final = frozenset({"fairway", "fairway-dispatcher"})
_NULL: Final = msgspec.Raw(b"null")
_RECORDS: Final = frozenset({ADMISSION, HELD_AT, REQUEUE})
_FLAG: Final = ("f:spec", "f:suspension", "f:scheduling")


class Whose(StrEnum):
    """Whose a hold is, and how that is known."""

    RECORDED = "recorded"
    """The gate has noted that it holds it, or the dispatcher that it was admitted or taken back."""
    UNCLAIMED = "unclaimed"
    """Nobody is noted as having set it, and the workload is one that we hold."""
    OTHERS = "others"
    """Somebody is noted as having set it, or the workload is none of ours."""


class ManagedFields(KubeStruct, frozen=True):
    """Who has set which fields."""

    manager: str = ""
    fields_v1: msgspec.Raw = msgspec.field(default=_NULL, name="fieldsV1")


class BindingMeta(ObjectMeta, frozen=True):
    """Metadata with the owners of fields."""

    managed_fields: list[ManagedFields] | None = None


class PlacedOn(KubeStruct, frozen=True):
    """A cluster that has got a part of the workload."""

    name: str = ""


class SchedulePriority(KubeStruct, frozen=True):
    """The priority that Karmada schedules by."""

    priority: int = 0


class HeldSpec(KubeStruct, frozen=True):
    """What decides whose turn it is, and what the suspension says beside our flag."""

    suspension: dict[str, msgspec.Raw] | None = None
    clusters: list[PlacedOn] | None = None
    schedule_priority: SchedulePriority | None = None


class BindingCondition(KubeStruct, frozen=True):
    """A condition of a binding."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class HeldStatus(KubeStruct, frozen=True):
    """How far Karmada's scheduler has got with it."""

    scheduler_observed_generation: int = 0
    conditions: list[BindingCondition] | None = None


class HeldBinding(KubeStruct, frozen=True):
    """A binding as far as giving it back depends on it."""

    metadata: BindingMeta = BindingMeta()
    spec: HeldSpec = HeldSpec()
    status: HeldStatus = HeldStatus()

    @property
    def is_held(self) -> bool:
        """Whether scheduling is suspended."""
        return (self.spec.suspension or {}).get("scheduling") == msgspec.Raw(b"true")

    @property
    def has_records(self) -> bool:
        """Whether the gate or the dispatcher has written on it."""
        return not _RECORDS.isdisjoint(self.metadata.annotations or ())

    @property
    def verdict(self) -> BindingCondition | None:
        """What Karmada's scheduler last said; of a held binding it may be long ago."""
        return next((each for each in self.status.conditions or () if each.type == "Scheduled"), None)

    def is_dealt_with(self, before: BindingCondition | None) -> bool:
        """Whether the scheduler has placed it as it is now, or has said anew that it cannot."""
        now = self.verdict
        is_refused = now is not None and now.status == "False" and now != before
        return is_refused or self.status.scheduler_observed_generation == self.metadata.generation


def whose(held: HeldBinding, binding: Binding, scope: Scope, reach: Reach, *, others_hold: bool) -> Whose:
    """Whose hold it is. ``binding``: the same, as the webhook reads it; ``reach``: of queues, there.

    ``others_hold``: another admission webhook suspends bindings too, so an unclaimed hold may be its.
    """
    if held.has_records:
        return Whose.RECORDED
    if others_hold or binding.metadata.has(SKIP) or setters(held.metadata) - OUR_MANAGERS:
        return Whose.OTHERS
    is_ours = binding.spec.is_workload and binding.spec.placement is not None
    return Whose.UNCLAIMED if is_ours and scope.gates(binding.subject, reach) else Whose.OTHERS


def setters(metadata: BindingMeta) -> frozenset[str]:
    """Who is noted as having set the flag."""
    return frozenset(each.manager for each in metadata.managed_fields or () if _sets_flag(each.fields_v1))


def _sets_flag(fields: msgspec.Raw) -> bool:
    value: object = msgspec.json.decode(fields)
    for key in _FLAG:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """What is given back first: what runs and wants to grow, then by priority, then the oldest."""

    is_pending: bool
    negated_priority: int
    created: str
    key: tuple[str, str]


def turn(held: HeldBinding) -> Turn:
    """The place of a held binding in the order in which they are given back."""
    priority = held.spec.schedule_priority.priority if held.spec.schedule_priority else 0
    key = held.metadata.namespace, held.metadata.name
    return Turn(not held.spec.clusters, -priority, held.metadata.creation_timestamp or "", key)


def given_back(held: HeldBinding, *, keep_records: bool) -> dict[str, object]:
    """The merge patch that lets Karmada place it, and takes our records off it.

    What a policy suspends beside our flag stays; a suspension that says nothing else goes.
    """
    others = {key for key in held.spec.suspension or () if key != "scheduling"}
    body: dict[str, object] = {"spec": {"suspension": {"scheduling": None} if others else None}}
    return body if keep_records else {**body, **without_records(held)}


def without_records(held: HeldBinding) -> dict[str, object]:
    """The merge patch that takes our records off a binding; it moves no generation and wakes nobody."""
    present: Mapping[str, str] = held.metadata.annotations or {}
    gone = {key: None for key in sorted(_RECORDS) if key in present}
    # The last annotations go with the map that held them, as if they had never been.
    annotations = None if gone and gone.keys() == present.keys() else gone
    return {"metadata": {"annotations": annotations}} if gone else {}
