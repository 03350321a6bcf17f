"""Whether member clusters have the PriorityClasses by which the larger pods of a gang go first.

What counts is the estimator's rule: where it does not hold, its answers say so, and the dispatcher names none
of the classes in that cluster.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead, Plane
from admin.doctor.finding import Finding, Patch, Verdict
from admin.doctor.guiding import unguided
from estimator.cluster.priorities import PriorityRules, default_value, expected_classes, priority_rules
from fairway.kube.member_kinds import PRIORITY_CLASSES
from fairway.names import GANG_CLASSES

_LOST: Final = "gangs of several sizes are told which nodes to prefer there, and not which pods go first"
_MEMBERS: Final = "add --member NAME=KUBECONFIG for each, or --members-from-host"


def _classes(evidence: Evidence) -> Iterable[Finding]:
    if (nobody := unguided(evidence)) is not None:
        yield nobody
        return
    if not evidence.members:
        raise NotRead(
            "members",
            f"no member cluster was given, so their {PRIORITY_CLASSES.name} are not known",
            _MEMBERS,
        )
    for member in evidence.members.values():
        yield from _of_member(member)


def _of_member(member: Plane) -> Iterator[Finding]:
    subject = f"Cluster {member.name}"
    try:
        stated = member.listed(PRIORITY_CLASSES)
    except NotRead as reason:
        yield Finding(Verdict.UNKNOWN, subject, reason.why, reason.remedy)
        return
    there = {each.metadata.name: priority_rules(each) for each in stated}
    base = default_value(there.values())
    expected = expected_classes(there.values())
    missing = [name for name in expected if name not in there]
    wrong = [name for name in expected if name in there and there[name] != expected[name]]
    if not missing and not wrong:
        return
    told = [f"{_some(missing)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
    told += _compared(wrong, there, expected, base)
    yield Finding(
        Verdict.WARNING,
        subject,
        f"PriorityClasses: {'; '.join(told)}: {_LOST}",
        _remedy(wrong, expected, base),
        None if wrong else Patch(member.name, _manifests(missing, expected)),
    )


def _compared(
    wrong: Sequence[str], there: Mapping[str, PriorityRules], expected: Mapping[str, PriorityRules], base: int
) -> Iterator[str]:
    """Everything that is wrong with them, those together that have the same field wrong."""
    if names := [name for name in wrong if there[name].is_default]:
        yield f"{_some(names)}: globalDefault: expected false, found true"
    if names := [name for name in wrong if there[name].preempts]:
        yield f"{_some(names)}: preemptionPolicy: expected Never, found PreemptLowerPriority"
    if names := [name for name in wrong if there[name].value != expected[name].value]:
        wanted, found = ([of[name].value for name in names] for of in (expected, there))
        why = f" (right above the {base} of pods that name no class)" if base else ""
        yield f"{_some(names)}: value: expected {_values(wanted)}{why}, found {_values(found)}"


def _values(values: Sequence[int]) -> str:
    is_run = len(values) > 2 and list(values) == list(range(values[0], values[0] + len(values)))
    return f"{values[0]} to {values[-1]}" if is_run else ", ".join(map(str, values))


def _remedy(wrong: Sequence[str], expected: Mapping[str, PriorityRules], base: int) -> str:
    make = "kubectl apply -k manifests/member"
    if base:
        values = [rules.value for rules in expected.values()]
        make = (
            f"make {GANG_CLASSES[0]} to {GANG_CLASSES[-1]} with the values {values[0]} to {values[-1]} and "
            "preemptionPolicy Never: see docs/placement.md"
        )
    if not wrong:
        return make
    # Kubernetes refuses to change either field.
    return f"while no pods name them: kubectl delete priorityclass {' '.join(wrong)}; then {make}"


def _manifests(names: Iterable[str], expected: Mapping[str, PriorityRules]) -> str:
    return "---\n".join(
        "apiVersion: scheduling.k8s.io/v1\n"
        "kind: PriorityClass\n"
        f"metadata:\n  name: {name}\n"
        f"value: {expected[name].value}\n"
        "preemptionPolicy: Never\n"
        "description: Of Fairway, by size within a gang. Not for users.\n"
        for name in names
    )


def _some(names: Sequence[str]) -> str:
    return f"{names[0]} to {names[-1]}" if len(names) == len(GANG_CLASSES) else ", ".join(names)


CHECKS: Final = (
    Check(
        "gang-classes",
        "Can the larger pods of a gang go first in every member cluster?",
        "every member cluster that was given has the PriorityClasses by which larger pods of a gang go first",
        _classes,
    ),
)
