"""What is written in statuses."""

import msgspec

from queue_dispatcher.api.status import (
    ClusterQueueStatus,
    FlavorUsage,
    LocalQueueStatus,
    QueueCondition,
    active,
    resource_usage,
)

EARLIER, LATER = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"


def test_the_time_of_transition_stays_while_the_status_does() -> None:
    first = active(True, "Ready", "admits workloads", 1, EARLIER, ())
    assert first == QueueCondition("Active", "True", "Ready", "admits workloads", EARLIER, 1)
    same = active(True, "Ready", "spec.weight: read as 1", 2, LATER, (first,))
    assert (same.last_transition_time, same.observed_generation) == (EARLIER, 2)
    other = active(False, "Stopped", "spec.stopPolicy is Hold", 3, LATER, (same,))
    assert (other.status, other.last_transition_time) == ("False", LATER)
    foreign = QueueCondition("Other", "True", last_transition_time=EARLIER)
    assert active(True, "Ready", "", 1, LATER, (foreign,)).last_transition_time == LATER


def test_a_status_is_the_same_after_a_round_trip() -> None:
    usage = (
        resource_usage("cpu", 1500, 0, 500),
        resource_usage("memory", 3 << 30, 1 << 30, 0),
        resource_usage("gpu", 9, 1, 12),
    )
    written = ClusterQueueStatus(
        3, 2, (active(True, "Ready", "", 1, LATER, ()),), (FlavorUsage("h100", usage),)
    )
    encoded = msgspec.json.encode(written)
    assert msgspec.json.decode(encoded, type=ClusterQueueStatus) == written
    plain = msgspec.json.decode(encoded)
    assert plain["flavorsUsage"] == [
        {
            "flavor": "h100",
            "resources": [
                {"name": "cpu", "total": "1500m", "borrowed": "0", "reserved": "500m"},
                {"name": "memory", "total": "3Gi", "borrowed": "1Gi", "reserved": "0"},
                {"name": "gpu", "total": "9", "borrowed": "1", "reserved": "12"},
            ],
        }
    ]
    assert msgspec.json.decode(msgspec.json.encode(LocalQueueStatus())) == {
        "pending": 0,
        "admitted": 0,
        "conditions": [],
        "history": None,
    }
