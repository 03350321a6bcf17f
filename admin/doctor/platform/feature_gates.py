"""Whether Karmada's feature gates are as scheduling of accelerators needs them, in each program alike.

Sources: Karmada's pkg/detector (components), pkg/scheduler/core (estimates and assumptions) and
pkg/estimator/server (quotas, assumed workloads), 1.15 to master of August 2026.
"""

from collections.abc import Iterable
from typing import Final

from admin.doctor.accelerator import is_accelerator
from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.gates import COMPONENTS, OVERCOMMIT, PRIORITY, QUOTA, has_gate
from admin.doctor.program import (
    CONTROLLERS,
    ESTIMATORS,
    KARMADA_WEBHOOK,
    SCHEDULER,
    Program,
    needed,
    programs,
)
from fairway.kube.objects import object_key
from fairway.kube.resource import RESOURCE_QUOTAS


def _components(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    found = [program for name in (SCHEDULER, CONTROLLERS) for program in needed(host, name)]
    found += programs(host, (KARMADA_WEBHOOK,))
    aware = [program for program in found if has_gate(COMPONENTS, program.version)]
    on = [program for program in aware if program.gate(COMPONENTS)]
    if not aware:
        return
    if not on:
        yield Finding(
            Verdict.NOTE,
            COMPONENTS,
            "off everywhere: workloads of several pod templates (Volcano Job, MPIJob, RayJob and others) are "
            "copied to every cluster like a ConfigMap, without any estimate",
            f"run {SCHEDULER}, {CONTROLLERS} and {KARMADA_WEBHOOK} with --feature-gates={COMPONENTS}=true",
        )
        return
    for program in found:
        if program not in on:
            yield Finding(
                Verdict.ERROR,
                program.subject,
                f"{COMPONENTS} is off in {program.name} and on in {_names(on)}: expected all alike",
                f"run {program.name} with --feature-gates={COMPONENTS}=true",
                program.with_gate(COMPONENTS, True),
            )


def _quota(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    controllers, estimators = needed(host, CONTROLLERS), programs(host, ESTIMATORS)
    told = [program for program in controllers if program.gate(QUOTA)]
    heeding = [program for program in estimators if program.gate(QUOTA)]
    if told and not heeding and estimators:
        yield Finding(
            Verdict.WARNING,
            QUOTA,
            f"{CONTROLLERS} tells namespaces, and no estimator counts ResourceQuotas by them",
            f"run the estimators with --feature-gates={QUOTA}=true",
        )
    for program in estimators:
        if heeding and program not in heeding:
            yield Finding(
                Verdict.WARNING,
                program.subject,
                f"{QUOTA} is off here and on in {_names(heeding)}: clusters are measured differently",
                f"run it with --feature-gates={QUOTA}=true",
                program.with_gate(QUOTA, True),
            )
    for program in controllers:
        if heeding and program not in told:
            yield Finding(
                Verdict.WARNING,
                program.subject,
                f"{QUOTA} is on in {_names(heeding)} and off in {CONTROLLERS}, which then tells no namespace "
                "of plain workloads: no quota is counted",
                f"run {CONTROLLERS} with --feature-gates={QUOTA}=true",
                program.with_gate(QUOTA, True),
            )
    if not told and not heeding:
        yield from _uncounted(evidence)


def _uncounted(evidence: Evidence) -> Iterable[Finding]:
    """ResourceQuotas of accelerators in members that nobody counts."""
    if not evidence.members:
        yield Finding(
            Verdict.UNKNOWN,
            QUOTA,
            "it is off, and whether ResourceQuotas of member clusters limit accelerators cannot be seen",
            "add --member NAME=KUBECONFIG for each, or --members-from-host",
        )
    for member in evidence.members.values():
        if RESOURCE_QUOTAS.name in member.unread:
            continue
        limiting = [
            object_key(quota.metadata)
            for quota in member.listed(RESOURCE_QUOTAS)
            if any(is_accelerator(name.removeprefix("requests.")) for name in quota.status.hard or {})
        ]
        if limiting:
            yield Finding(
                Verdict.WARNING,
                f"Cluster {member.name}",
                f"{_some(limiting)} limit accelerators, and no estimate counts them: pods will be refused "
                "there after they were placed",
                f"run {CONTROLLERS} and the estimators with --feature-gates={QUOTA}=true",
            )


def _overcommit(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    schedulers, estimators = needed(host, SCHEDULER), programs(host, ESTIMATORS)
    for program in schedulers:
        if program.gate(OVERCOMMIT):
            for estimator in estimators:
                if not estimator.gate(OVERCOMMIT):
                    yield Finding(
                        Verdict.WARNING,
                        estimator.subject,
                        f"{OVERCOMMIT} is on in {SCHEDULER} and off here: what is on its way to the cluster "
                        "is not deducted",
                        f"run it with --feature-gates={OVERCOMMIT}=true",
                        estimator.with_gate(OVERCOMMIT, True),
                    )
        elif has_gate(OVERCOMMIT, program.version):
            yield Finding(
                Verdict.WARNING,
                program.subject,
                f"{OVERCOMMIT} is off: workloads that Karmada places close together are placed on the same "
                "free devices, but for those that Fairway has promised its estimators",
                f"run {SCHEDULER} and the estimators with --feature-gates={OVERCOMMIT}=true",
                program.with_gate(OVERCOMMIT, True),
            )
        else:
            yield Finding(
                Verdict.NOTE,
                program.subject,
                f"{SCHEDULER} {program.version} has no {OVERCOMMIT}: workloads that Karmada places close "
                "together may be placed on the same free devices, but for those that Fairway has promised "
                "its estimators",
                "upgrade Karmada to 1.18 or newer, and switch it on",
            )


def _priority(evidence: Evidence) -> Iterable[Finding]:
    for program in needed(evidence.on_host(), SCHEDULER):
        if has_gate(PRIORITY, program.version) and not program.gate(PRIORITY):
            yield Finding(
                Verdict.NOTE,
                program.subject,
                f"{PRIORITY} is off: what does not fit is asked for again at once and ever again, and "
                "schedulePriority of policies is not heeded; the order of releases is Fairway's either way",
                f"run {SCHEDULER} with --feature-gates={PRIORITY}=true",
                program.with_gate(PRIORITY, True),
            )


def _names(found: Iterable[Program]) -> str:
    return ", ".join(dict.fromkeys(program.name for program in found))


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"ResourceQuota {shown}" if len(names) <= 3 else f"ResourceQuota {shown} and {len(names) - 3} more"


CHECKS: Final = (
    Check(
        "component-gate",
        f"Is {COMPONENTS} on in all of Karmada's programs, or in none?",
        f"{COMPONENTS} is on in all of Karmada's programs",
        _components,
    ),
    Check(
        "quota-gate",
        f"Is {QUOTA} on where namespaces are told and where quotas are counted?",
        "ResourceQuotas of member clusters are counted, or there are none that limit accelerators",
        _quota,
    ),
    Check(
        "overcommit-gate",
        f"Is {OVERCOMMIT} on, so that workloads that are placed close together do not take the same devices?",
        f"{OVERCOMMIT} is on in the scheduler and the estimators",
        _overcommit,
    ),
    Check(
        "priority-gate",
        f"Is {PRIORITY} on?",
        f"{PRIORITY} is on, or not known to this release",
        _priority,
    ),
)
