"""Whether the API servers are of versions that Fairway works with.

Sources: Kubernetes 1.30 release notes (matchConditions of webhooks general; 1.28 to 1.29 beta), 1.36
(MutatingAdmissionPolicy v1, on by default); Karmada's README, which tests against the ten newest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, Plane, Role
from admin.doctor.finding import Finding, Verdict
from admin.doctor.kinds import CLUSTERS
from admin.doctor.version import parse_version, version

OLDEST_TESTED: Final = version("1.30.0")
NEWEST_TESTED: Final = version("1.36.0")


@dataclass(frozen=True, slots=True)
class Floor:
    """The oldest version that can work, by what an API server is for, and why."""

    minor: int
    why: str


FLOORS: Final = {
    Role.HOST: Floor(27, "Deployments and Services of ours use fields that older ones drop"),
    Role.KARMADA: Floor(
        29, "the conditions of our webhook's registration compare quantities in CEL, which older ones refuse"
    ),
    Role.MEMBER: Floor(27, "older ones do not serve what estimators list"),
}


def _versions(evidence: Evidence) -> Iterable[Finding]:
    planes = [plane for plane in (evidence.host, evidence.karmada) if plane is not None]
    planes += evidence.members.values()
    if not planes:
        evidence.on_karmada()
    stated = _of_clusters(evidence.karmada)
    for plane in planes:
        text = plane.version or stated.get(plane.name, "")
        if text:
            yield from _judged(plane.role, _subject(plane), text)
        else:
            yield Finding(
                Verdict.UNKNOWN,
                _subject(plane),
                "a dump does not tell the API server's version" if not plane.unread else "it was not read",
                f"give a kubeconfig as --{plane.role}, or ask it: kubectl version",
            )
    for name, text in stated.items():
        if name not in evidence.members:
            yield from _judged(Role.MEMBER, f"Cluster {name}", text)


def _of_clusters(karmada: Plane | None) -> dict[str, str]:
    if karmada is None or CLUSTERS.name in karmada.unread:
        return {}
    return {
        cluster.name: cluster.status.kubernetes_version
        for cluster in karmada.listed(CLUSTERS)
        if cluster.status.kubernetes_version
    }


def _subject(plane: Plane) -> str:
    return f"Cluster {plane.name}" if plane.role is Role.MEMBER else f"{plane.role} API server"


def _judged(role: Role, subject: str, text: str) -> Iterable[Finding]:
    found, floor = parse_version(text), FLOORS[role]
    if found is None:
        yield Finding(Verdict.UNKNOWN, subject, f"its version {text!r} is none", "ask it: kubectl version")
    elif found.line < (1, floor.minor):
        yield Finding(
            Verdict.ERROR,
            subject,
            f"Kubernetes {found} is older than 1.{floor.minor}: {floor.why}",
            f"upgrade it to {OLDEST_TESTED} or newer",
        )
    elif found.line < OLDEST_TESTED.line:
        yield Finding(
            Verdict.WARNING,
            subject,
            f"Kubernetes {found} is older than {OLDEST_TESTED}, the oldest that Fairway is tested with",
            f"upgrade it to {OLDEST_TESTED} or newer",
        )
    elif found.line > NEWEST_TESTED.line:
        yield Finding(
            Verdict.NOTE,
            subject,
            f"Kubernetes {found} is newer than {NEWEST_TESTED}, the newest that Fairway is tested with",
            "nothing, where all else is well",
        )


CHECKS: Final = (
    Check(
        "kubernetes-version",
        "Are the API servers of versions that Fairway works with?",
        "all API servers are of versions that Fairway is tested with",
        _versions,
    ),
)
