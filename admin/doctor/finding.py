"""What a check of the doctor has to say: one line about one object, and the mend."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad it is. The order is the order of concern."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing has to be done."""
    UNKNOWN = "unknown"
    """Could not be checked, and the message says what would be needed."""
    WARNING = "warning"
    """Works now, and will hurt."""
    ERROR = "error"
    """Does not work, or does the wrong thing now."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change that would mend it, to be printed and never applied unasked.

    ``plane``: the name of the plane it belongs to, as in `Plane.name`. ``body``: a whole manifest in YAML
    where ``target`` is empty, else a JSON merge patch for the object that ``target`` names as kubectl does,
    such as ``propagationpolicy/train -n vision``. ``strategic``: it is a strategic merge patch in YAML, which
    names the entries of a list that it changes.
    """

    plane: str
    body: str
    target: str = ""
    strategic: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found about one object.

    ``subject``: the object as people name it, such as ``Cluster member1`` or ``PropagationPolicy
    vision/train``, or what was looked at as a whole where nothing is wrong. ``message``: what was found, at
    which field, and what was expected. ``remedy``: what to do, in one sentence or one command; empty for OK.
    ``more``: of several objects with the same thing wrong, the patch of each, in place of ``patch``.
    ``refused_at``: the field at which an API server refuses the object, where that is what was found.
    """

    verdict: Verdict
    subject: str
    message: str
    remedy: str = ""
    patch: Patch | None = None
    more: tuple[Patch, ...] = ()
    refused_at: str = ""


def does_not_apply(why: str) -> Finding:
    """Of a check that has nothing to look at: what is not there is not called well."""
    return Finding(Verdict.NOTE, "", f"does not apply: {why}")
