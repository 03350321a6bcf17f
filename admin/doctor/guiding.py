"""Whether pods are told where to go in their clusters, as far as the dispatcher's flags say."""

from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, does_not_apply
from admin.doctor.program import DISPATCHER, Program, programs


def unguided(evidence: Evidence) -> Finding | None:
    """What a check of it says where no pods are told anything; None where they are, or that is not known."""
    try:
        found = programs(evidence.on_host(), (DISPATCHER,))
    except NotRead:
        return None
    if not found or any(_guides(program) for program in found):
        return None
    return does_not_apply(f"{DISPATCHER} is told not to tell pods where to go")


def _guides(program: Program) -> bool:
    arguments = program.arguments
    return arguments.switch("guidance", default=True) and arguments.text("placement") != "karmada"
