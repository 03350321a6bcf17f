"""Who may lead, decided from a Lease and our own clock.

The one idea: the times in a Lease are those of somebody else's clock and are only ever shown, never compared.
What counts is how long, by our own monotonic clock, a Lease has said the same: its holder renews it all the
time, so one that has not changed for its whole duration has been given up.

Mirrors client-go ``tools/leaderelection``, v0.36.
"""

import datetime
import socket
import uuid
from dataclasses import dataclass

from fairway.kube.objects import ApiObject, KubeStruct
from fairway.kube.resource import ResourceKind


class LeaseSpec(KubeStruct, frozen=True):
    """coordination.k8s.io/v1 LeaseSpec."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiObject, frozen=True):
    """coordination.k8s.io/v1 Lease."""

    spec: LeaseSpec = LeaseSpec()


LEASES = ResourceKind("leases", "/apis/coordination.k8s.io/v1/leases", Lease)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a leader may stay silent, in seconds; client-go's defaults.

    ``lease_duration_s``: others take over once the Lease has not changed for so long. ``renew_deadline_s``:
    the leader itself gives up so long after the last renewal that succeeded; the difference is the margin in
    which nobody leads, for what is still on its way. ``retry_period_s``: between attempts.
    """

    lease_duration_s: int = 15
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period_s < self.renew_deadline_s < self.lease_duration_s:
            raise ValueError(
                f"leader election: retry period {self.retry_period_s:g} s, renew deadline "
                f"{self.renew_deadline_s:g} s, lease duration {self.lease_duration_s} s: expected each to be "
                "longer than the one before"
            )


@dataclass(frozen=True, slots=True)
class Observation:
    """A Lease, and since when (by our clock, in seconds) we have seen it say just this."""

    lease: Lease
    since_s: float

    def next(self, lease: Lease, now_s: float) -> "Observation":
        """After reading it again: the time counts on unless what it says has changed."""
        return Observation(lease, self.since_s if lease.spec == self.lease.spec else now_s)


@dataclass(frozen=True, slots=True)
class Held:
    """Another leads, and may be silent until ``until_s`` (by our clock) before that is taken for its end."""

    holder: str
    until_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The Lease is ours to take, or to renew; ``spec`` is what to write (as a merge patch)."""

    spec: dict[str, object]


def decide(observed: Observation, identity: str, timing: Timing, now_s: float, wall_s: float) -> Held | Claim:
    """Whether ``identity`` may write itself into the Lease.

    ``now_s`` is the time by the same clock as the observation; ``wall_s``, seconds since the epoch, is only
    written down.
    """
    spec = observed.lease.spec
    if spec.holder_identity and spec.holder_identity != identity:
        promised_s = spec.lease_duration_seconds or 0
        until_s = observed.since_s + (promised_s if promised_s > 0 else timing.lease_duration_s)
        if now_s < until_s:
            return Held(spec.holder_identity, until_s)
    claim = first_claim(identity, timing, wall_s)
    if spec.holder_identity == identity:
        del claim.spec["acquireTime"], claim.spec["leaseTransitions"]
    else:
        claim.spec["leaseTransitions"] = max(0, spec.lease_transitions or 0) + 1
    return claim


def first_claim(identity: str, timing: Timing, wall_s: float) -> Claim:
    """What the first leader writes into a new Lease."""
    now = _micro_time(wall_s)
    return Claim(
        {
            "holderIdentity": identity,
            "leaseDurationSeconds": timing.lease_duration_s,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
    )


def release(wall_s: float) -> dict[str, object]:
    """What the leader writes, as a merge patch of the spec, to let another lead at once."""
    return {"holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": _micro_time(wall_s)}


def new_identity() -> str:
    """A name for this process that no other has or will have: host, underscore, UUID."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _micro_time(wall_s: float) -> str:
    moment = datetime.datetime.fromtimestamp(wall_s, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
