"""Who may lead, as a table of Leases and clocks."""

import pytest

from fairway.kube.lease import (
    Claim,
    Held,
    Lease,
    LeaseSpec,
    Observation,
    Timing,
    decide,
    new_identity,
    release,
)
from fairway.kube.objects import ObjectMeta

TIMING = Timing()
WALL_S = 1_790_000_000.25
NOW = "2026-09-21T14:13:20.250000Z"
HELD = LeaseSpec("other", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z", 3)


def after(silent_s: float, spec: LeaseSpec = HELD) -> Held | Claim:
    return decide(Observation(Lease(spec=spec), 100.0), "me", TIMING, 100.0 + silent_s, WALL_S)


@pytest.mark.parametrize("silent_s", [0.0, 14.9])
def test_who_was_heard_of_lately_leads(silent_s: float) -> None:
    assert after(silent_s) == Held("other", 115.0)


@pytest.mark.parametrize("silent_s", [15.0, 1e9])
def test_who_is_silent_for_the_whole_duration_is_replaced(silent_s: float) -> None:
    expected = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": NOW,
        "renewTime": NOW,
        "leaseTransitions": 4,
    }
    assert after(silent_s) == Claim(expected)


def test_the_duration_that_the_holder_promised_counts() -> None:
    spec = LeaseSpec("other", 60)
    assert after(59.0, spec) == Held("other", 160.0)
    assert isinstance(after(60.0, spec), Claim)


@pytest.mark.parametrize("duration_s", [None, 0, -5])
def test_a_duration_that_is_none_is_ours(duration_s: int | None) -> None:
    spec = LeaseSpec("other", duration_s)
    assert after(14.9, spec) == Held("other", 115.0)
    assert isinstance(after(15.0, spec), Claim)


@pytest.mark.parametrize("holder", [None, ""])
@pytest.mark.parametrize("transitions", [None, -7, 0])
def test_a_lease_without_a_holder_is_free(holder: str | None, transitions: int | None) -> None:
    decision = after(0.0, LeaseSpec(holder, lease_transitions=transitions))
    assert isinstance(decision, Claim)
    assert decision.spec["leaseTransitions"] == 1


def test_a_renewal_counts_no_transition_and_keeps_the_time_of_acquisition() -> None:
    expected = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": NOW}
    assert after(0.0, LeaseSpec("me", 15, "t", "t", 3)) == Claim(expected)


def test_only_a_change_of_what_the_lease_says_is_a_sign_of_life() -> None:
    first = Observation(Lease(ObjectMeta(resource_version="1"), HELD), 100.0)
    relabelled = first.next(Lease(ObjectMeta(resource_version="2"), HELD), 105.0)
    assert (relabelled.since_s, relabelled.lease.metadata.resource_version) == (100.0, "2")
    renewed = LeaseSpec("other", 15, HELD.acquire_time, "2026-01-01T00:00:02.000000Z", 3)
    assert relabelled.next(Lease(spec=renewed), 106.0).since_s == 106.0


def test_what_a_release_says() -> None:
    assert release(WALL_S) == {"holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": NOW}


@pytest.mark.parametrize("times", [(10, 10.0, 2.0), (15, 10.0, 10.0), (15, 2.0, 0.0), (15, 20.0, 2.0)])
def test_times_that_leave_no_margin_are_refused(times: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="expected each to be longer than the one before"):
        Timing(*times)


def test_identities_are_unique() -> None:
    assert new_identity() != new_identity()
