"""Which release of Karmada runs, and what is known to be broken in it.

Sources: Karmada's issues and pull requests by number, docs/CHANGELOG of the lines 1.13 to 1.18, and
pkg/features/features.go at each tag.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.program import CONTROLLERS, ESTIMATORS, KARMADA, SCHEDULER, Program, programs
from admin.doctor.version import Faulty, Version, version


@dataclass(frozen=True, slots=True)
class Fault:
    """Something broken in a range of releases; with ``gate`` only where that is on in ``program``."""

    faulty: Faulty
    verdict: Verdict
    what: str
    source: str
    program: str = SCHEDULER
    gate: str = ""


def _faulty(since: str, *mended: str) -> Faulty:
    return Faulty(version(since), tuple(version(each) for each in mended))


FAULTS: Final = (
    Fault(
        _faulty("0.0.0", "1.13.0"),
        Verdict.ERROR,
        "cannot suspend the scheduling of a binding, so that nothing is held",
        "karmada-io/karmada#5937, #6062",
    ),
    Fault(
        _faulty("1.13.0", "1.13.3", "1.14.0"),
        Verdict.ERROR,
        "schedules held bindings when a Cluster is updated",
        "karmada-io/karmada#6354, #6356, #6360",
    ),
    Fault(
        _faulty("1.13.0", "1.13.7", "1.14.4", "1.15.0"),
        Verdict.NOTE,
        "keeps a dispatching suspension on bindings that the policy no longer states",
        "karmada-io/karmada#6707, #6717, #6718",
        CONTROLLERS,
    ),
    Fault(
        _faulty("1.13.0", "1.16.0"),
        Verdict.WARNING,
        "asks estimators nothing about workloads of several pod templates and copies them to every cluster",
        "karmada-io/karmada#5115",
    ),
    Fault(
        _faulty("1.16.0", "1.16.6", "1.17.3", "1.18.0"),
        Verdict.ERROR,
        "places workloads of several pod templates where estimators say that none fits",
        "karmada-io/karmada#7554",
        gate="MultiplePodTemplatesScheduling",
    ),
    Fault(
        _faulty("1.13.0", "1.17.2", "1.18.0"),
        Verdict.NOTE,
        "retries what does not fit within seconds, not within minutes, so that a release that is withdrawn "
        "may still start",
        "karmada-io/karmada#7340, #7353",
        gate="PriorityBasedScheduling",
    ),
    Fault(
        _faulty("1.9.0", "1.14.10", "1.15.6", "1.16.3", "1.17.0"),
        Verdict.WARNING,
        "does not tell estimators the namespace, so that no ResourceQuota is heeded",
        "karmada-io/karmada#7112, #7124, #7238, #7239, #7240",
        CONTROLLERS,
        "ResourceQuotaEstimate",
    ),
)

BYTES_ONLY_SINCE: Final = version("1.19.0-alpha.0")
"""From here on the scheduler states requests in fields that estimators before `READS_BYTES_SINCE` skip."""
READS_BYTES_SINCE: Final = version("1.18.0")


def _releases(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    found = programs(host, KARMADA)
    tagged = [(program, tag) for program in found if (tag := program.version) is not None]
    for program in found:
        if program.version is None and program.name in (SCHEDULER, CONTROLLERS):
            yield Finding(
                Verdict.UNKNOWN,
                program.subject,
                f"the image {program.container.image} tells no release",
                "use an image whose tag is a release, such as :v1.18.2",
            )
    for name in (SCHEDULER, CONTROLLERS):
        if not any(program.name == name for program in found):
            yield Finding(
                Verdict.UNKNOWN,
                name,
                "no Deployment or pod runs it, so that its release is not known",
                "give the cluster that runs Karmada's pods as --host, and their namespace as "
                "--karmada-namespace",
            )
    for program, tag in tagged:
        yield from _faults(program, tag)
    yield from _skew(tagged)


def _faults(program: Program, tag: Version) -> Iterable[Finding]:
    for fault in FAULTS:
        if fault.program != program.name or not fault.faulty.holds(tag):
            continue
        if fault.gate and not program.gate(fault.gate):
            continue
        yield Finding(
            fault.verdict,
            program.subject,
            f"{program.name} {tag} {fault.what} ({fault.source})",
            f"upgrade Karmada to {fault.faulty.remedy(tag)} or newer",
        )


def _skew(tagged: list[tuple[Program, Version]]) -> Iterable[Finding]:
    """Karmada supports one minor release between its components, while it is being upgraded."""
    lines = sorted({tag.line for _, tag in tagged})
    if len(lines) > 1:
        told = ", ".join(f"{program.name} {tag}" for program, tag in tagged)
        yield Finding(
            Verdict.WARNING,
            "Karmada",
            f"its programs are of different releases: {told}",
            "finish the upgrade, so that all are of one release",
        )


def _estimator_wire(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    schedulers = [
        (program, tag) for program in programs(host, (SCHEDULER,)) if (tag := program.version) is not None
    ]
    for scheduler, tag in schedulers:
        if tag < BYTES_ONLY_SINCE:
            continue
        for estimator in programs(host, ESTIMATORS):
            of = estimator.version
            if not estimator.is_ours and of is not None and of < READS_BYTES_SINCE:
                yield Finding(
                    Verdict.ERROR,
                    estimator.subject,
                    f"the estimator {of} does not read what {scheduler.name} {tag} asks: it sees no "
                    "requests, affinity or tolerations, and promises far too much",
                    "replace it by fairway-estimator, which reads every release, or upgrade it to 1.18 or "
                    "newer",
                )


CHECKS: Final = (
    Check(
        "karmada-release",
        "Is Karmada new enough, and of a release without faults that matter here?",
        "no known fault in this release of Karmada",
        _releases,
    ),
    Check(
        "estimator-wire",
        "Do the estimators understand what this release of karmada-scheduler asks?",
        "the scheduler and the estimators speak the same protocol",
        _estimator_wire,
    ),
)
