"""Hold or let through: the answer to one admission review, from the review alone.

Held is a binding in scope that is created, or that grows, and is not held yet: the patch sets
``spec.suspension.scheduling`` and nothing beside it, so that what a policy says of dispatching stays, other
webhooks may come before or after, and asking twice changes nothing. An annotation says that it was us, and
when: a growth has its place in the line from then on. Growth is told by what the write changes
and not by who writes: the scheduler writes clusters, the dispatcher writes the flag, and neither grows.

A binding is never refused. Karmada's detector would try to create it again for ever, with the reason in a
log that the workload's owner does not see; a held one shows its reason in its queue.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from fairway.names import HELD_AT, SKIP
from fairway.scope import Reach, Scope
from webhook.bindings import Binding, BindingError, BindingSpec, is_binding, read_binding
from webhook.growth import growth
from webhook.review import Response, ReviewRequest

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"

_SUSPENSION: Final = "/spec/suspension"
_ANNOTATIONS: Final = "/metadata/annotations"
_HELD_AT: Final = f"{_ANNOTATIONS}/{HELD_AT.replace('/', '~1')}"
_SHOWN: Final = 63

Operation = dict[str, object]
"""One of a JSON patch (RFC 6902)."""


class Outcome(StrEnum):
    """What became of a review; the first two are held, the next two would be."""

    HELD_CREATION = "held-creation"
    HELD_GROWTH = "held-growth"
    WOULD_HOLD_CREATION = "would-hold-creation"
    WOULD_HOLD_GROWTH = "would-hold-growth"
    ALREADY_HELD = "already-held"
    NO_WORKLOAD = "no-workload"
    SKIPPED = "skipped"
    OUT_OF_SCOPE = "out-of-scope"
    NO_GROWTH = "no-growth"
    NOT_UNDERSTOOD = "not-understood"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to answer, and why: ``detail`` is what grew, or what was not understood."""

    outcome: Outcome
    response: Response
    detail: str = ""


def decide(
    request: ReviewRequest, scope: Scope, *, managed: bool, at: str, observe: bool = False
) -> Decision:
    """The answer to one request, ``at`` a moment in RFC 3339.

    The API server has asked by the label of the namespace already; ``managed`` says that all of it is held.
    With ``observe`` nothing is held, and the outcome says what would have been.
    """
    where = f"{request.resource.resource}.{request.resource.group}/{request.resource.version}"[:_SHOWN]
    if not is_binding(request.resource) or request.sub_resource:
        return _not_understood(f"{where} {request.sub_resource[:_SHOWN]}".strip(), "no binding of Karmada")
    if request.operation not in (CREATE, UPDATE):
        return _not_understood(where, f"operation {request.operation[:_SHOWN]}: expected CREATE or UPDATE")
    try:
        new = read_binding(request.object)
        if (passed := _passed(new, scope, managed=managed)) is not None:
            return Decision(passed, Response())
        if request.operation == CREATE:
            if observe:
                return _observed(Outcome.WOULD_HOLD_CREATION, "creation")
            return _held(Outcome.HELD_CREATION, new, "creation", at)
        grown = growth(read_binding(request.old_object).spec, new.spec)
    except BindingError as error:
        # The schema refuses it after us, and says so to whoever wrote it.
        return _not_understood(where, str(error))
    if grown is None:
        return Decision(Outcome.NO_GROWTH, Response())
    if observe:
        return _observed(Outcome.WOULD_HOLD_GROWTH, f"growth: {grown}")
    return _held(Outcome.HELD_GROWTH, new, f"growth: {grown}", at)


def _passed(binding: Binding, scope: Scope, *, managed: bool) -> Outcome | None:
    """Why a binding needs no hold whatever is done to it, None where it may."""
    spec = binding.spec
    if spec.is_held:
        return Outcome.ALREADY_HELD
    if not spec.is_workload or spec.placement is None:
        return Outcome.NO_WORKLOAD
    if binding.metadata.has(SKIP):
        return Outcome.SKIPPED
    reach = Reach.EVERYTHING if managed else Reach.TERMS
    return None if scope.gates(binding.subject, reach) else Outcome.OUT_OF_SCOPE


def _held(outcome: Outcome, binding: Binding, why: str, at: str) -> Decision:
    patch = msgspec.json.encode([_suspended(binding.spec), _marked(binding, at)])
    return Decision(outcome, Response(patch, audit=(("held", why),)), why)


def _suspended(spec: BindingSpec) -> Operation:
    if spec.suspension is None:
        return {"op": "add", "path": _SUSPENSION, "value": {"scheduling": True}}
    return {"op": "add", "path": f"{_SUSPENSION}/scheduling", "value": True}


def _marked(binding: Binding, at: str) -> Operation:
    if binding.metadata.annotations is None:
        return {"op": "add", "path": _ANNOTATIONS, "value": {HELD_AT: at}}
    return {"op": "add", "path": _HELD_AT, "value": at}


def _observed(outcome: Outcome, why: str) -> Decision:
    return Decision(outcome, Response(audit=(("would-hold", why),)), why)


def _not_understood(where: str, problem: str) -> Decision:
    warning = f"fairway: not held: {where}: {problem}"
    return Decision(Outcome.NOT_UNDERSTOOD, Response(warnings=(warning,)), problem)
