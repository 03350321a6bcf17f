"""Whether karmada-scheduler asks estimators at all, and how patiently; and how fast Karmada may write.

Sources: Karmada's cmd/scheduler/app/options and cmd/controller-manager/app/options (1.13 to 1.19: 40 requests
a second, bursts of 60, 3 s for all estimators together). Measured: a binding costs the scheduler four
requests and a member object costs controllers nine, so that 40 are 10 placements or 4 objects a second.
"""

from collections.abc import Iterable
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.kinds import CLUSTERS
from admin.doctor.member_cluster import PULL
from admin.doctor.objects.behind import behind
from admin.doctor.program import CONTROLLERS, SCHEDULER, Program, needed

_DEFAULT_QPS: Final = 40.0
_TIMEOUT_S: Final = 3.0
_SHORTEST_S: Final = 1.0
_LONGEST_S: Final = 10.0
_ENOUGH_QPS: Final = 100.0
_RAISED: Final = "1000"


def _asks(evidence: Evidence) -> Iterable[Finding]:
    for scheduler in needed(evidence.on_host(), SCHEDULER):
        flags = scheduler.arguments
        if not flags.switch("enable-scheduler-estimator"):
            yield Finding(
                Verdict.ERROR,
                scheduler.subject,
                "runs without --enable-scheduler-estimator: no estimator is ever asked",
                "run it with --enable-scheduler-estimator=true",
                scheduler.with_flag("enable-scheduler-estimator", "true"),
            )
        timeout_s = flags.seconds("scheduler-estimator-timeout", _TIMEOUT_S)
        if not _SHORTEST_S <= timeout_s <= _LONGEST_S:
            why = (
                "answers that take longer count as errors, and one error throws all answers away"
                if timeout_s < _SHORTEST_S
                else "one estimator that hangs holds up all scheduling for that long"
            )
            yield Finding(
                Verdict.WARNING,
                scheduler.subject,
                f"--scheduler-estimator-timeout={flags.text('scheduler-estimator-timeout')}: {why}",
                "leave it at the default of 3s",
                scheduler.with_flag("scheduler-estimator-timeout", "3s"),
            )
        if flags.switch("insecure-skip-estimator-verify"):
            yield Finding(
                Verdict.WARNING,
                scheduler.subject,
                "--insecure-skip-estimator-verify: whoever answers at an estimator's address is believed",
                "state --scheduler-estimator-ca-file, and leave this flag out",
                scheduler.with_flag("insecure-skip-estimator-verify", "false"),
            )


def _pull_mode(evidence: Evidence) -> Iterable[Finding]:
    pulling = [
        cluster.name for cluster in evidence.on_karmada().listed(CLUSTERS) if cluster.spec.sync_mode == PULL
    ]
    if not pulling:
        return
    for scheduler in needed(evidence.on_host(), SCHEDULER):
        if scheduler.arguments.switch("disable-scheduler-estimator-in-pull-mode"):
            yield Finding(
                Verdict.ERROR,
                scheduler.subject,
                f"--disable-scheduler-estimator-in-pull-mode, and {', '.join(sorted(pulling))} in pull mode: "
                "wherever one of them may be chosen, the answers of all estimators are thrown away",
                "give these clusters an estimator, and leave the flag out",
                scheduler.with_flag("disable-scheduler-estimator-in-pull-mode", "false"),
            )


def _throttles(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    for program in needed(host, SCHEDULER):
        yield from _throttle(program, 4, "placements a second: four requests each")
    for program in needed(host, CONTROLLERS):
        pace = "objects in member clusters a second: nine requests each"
        yield from _throttle(program, 9, pace, behind(evidence))


def _throttle(program: Program, requests: int, pace: str, late: str = "") -> Iterable[Finding]:
    """``late``: what shows that it is too slow by now."""
    qps = program.arguments.number("kube-api-qps", _DEFAULT_QPS)
    if 0 < qps < _ENOUGH_QPS:
        yield Finding(
            Verdict.WARNING if qps < _DEFAULT_QPS or late else Verdict.NOTE,
            program.subject,
            f"--kube-api-qps={qps:g} holds Karmada to about {max(1, int(qps / requests))} {pace}{late}",
            f"run {program.name} with --kube-api-qps={_RAISED} --kube-api-burst={_RAISED}",
            program.with_flags({"kube-api-qps": _RAISED, "kube-api-burst": _RAISED}),
        )


CHECKS: Final = (
    Check(
        "scheduler-flags",
        "Does karmada-scheduler ask estimators, safely and with a sensible patience?",
        "karmada-scheduler asks estimators, and verifies who answers",
        _asks,
    ),
    Check(
        "pull-mode",
        "Is every cluster in pull mode asked as well?",
        "no cluster is left out because of pull mode",
        _pull_mode,
    ),
    Check(
        "client-throttle",
        "May Karmada's programs write fast enough?",
        "Karmada's programs may write fast enough",
        _throttles,
    ),
)
