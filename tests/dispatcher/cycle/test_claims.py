"""Claims: what others were displaced for is kept for it, however many there are, and also while it is asked
about; and is not for other queues, whatever the priorities there.
"""

from dataclasses import replace

import pytest

from queue_dispatcher.api.cluster_queue import (
    Preemption,
    QueueingStrategy,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.decide import decide
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import probe_through
from queue_dispatcher.cycle.reservation import Reservations
from queue_dispatcher.cycle.snapshot import Verdict
from tests.dispatcher.cycle.builders import BACKFILL, BEST_EFFORT, Fleet, admitted, probed, shape
from tests.dispatcher.ledger.builders import charge, owns, queue, root

ALL = Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)


def fleet() -> Fleet:
    """Two queues, each of which owns half of 16 GPUs; one of 8 runs for each of them. Both may displace."""
    found = Fleet(
        root("org", gpu=0),
        queue("a", "org", gpu=owns(8)),
        queue("b", "org", gpu=owns(8)),
        strategy=BEST_EFFORT,
    )
    for name in ("a", "b"):
        found.submit(name, f"runs in {name}", gpu=8)
    found.cycle()
    for name in ("a", "b"):
        found.queues[name] = replace(found.queues[name], preemption=ALL)
    return found


def decided(found: Fleet, *claims: str, verdicts: dict[str, Verdict] | None = None) -> Decision:
    return decide(
        replace(found.snapshot(verdicts=verdicts), claims=dict.fromkeys(claims, found.now_ms + 600_000)),
        found.now_ms,
    )


@pytest.mark.parametrize(
    ("of", "priority", "starts"),
    [("b", 9, []), ("b", 0, []), ("a", 9, ["other"]), ("a", 0, [])],
)
def test_what_is_left_for_one_is_for_who_goes_first_in_its_queue_alone(
    of: str, priority: int, starts: list[str]
) -> None:
    found = fleet()
    found.submit("a", "claims", gpu=8, priority=5)
    found.finish("runs in a")
    found.submit("a", "filler", gpu=4, priority=9)
    assert found.cycle() == ["filler"]
    found.submit(of, "other", gpu=4, priority=priority)
    assert admitted(decided(found, "claims")) == starts
    assert admitted(decided(found)) == ["other"]


def test_each_of_many_claims_is_kept() -> None:
    found, names = fleet(), ["one", "three", "two"]
    for name in names:
        found.submit("a", name, gpu=4)
    assert sorted(one.item.id for one in decided(found, *names).reservations.made) == names


def test_a_claim_is_kept_while_it_is_asked_about() -> None:
    """Also one that was never refused in a cycle before."""
    found = fleet()
    found.finish("runs in a")
    found.submit("a", "asked", shape(charge(gpu=8), probe="q"), gpu=8)
    (made,) = decided(found, "asked").reservations.made
    assert (made.item.id, made.is_claimed) == ("asked", True)


@pytest.mark.parametrize(
    ("cluster", "claims", "passed"),
    [
        ("m1", ("first", "second"), {"second", "third"}),
        ("m2", ("first", "second"), {"third"}),
        # Who was not reckoned with it gives way wherever that is.
        ("m2", ("first",), {"second", "third"}),
    ],
)
def test_who_has_a_claim_uses_nothing_that_is_made_for_another_one_elsewhere(
    cluster: str, claims: tuple[str, ...], passed: set[str]
) -> None:
    found = fleet()
    for name in ("first", "second", "third"):
        found.submit("a", name, gpu=1)
    reservations = decided(found, "first", "second", "third").reservations
    clusters = {"first": "m1", "second": cluster, "third": "m1"}
    reservations = Reservations(
        tuple(
            replace(one, cluster=clusters[one.item.id], is_claimed=one.item.id in claims)
            for one in reservations.made
        )
    )
    first = reservations.made[0]
    assert reservations.behind("first") == {"first"} | passed
    assert reservations.through(first.item, first.rank, None, found.now_ms) == {"first"} | passed


# Of those that are alike the first is looked at, and what is kept for one of them is not for all.


@pytest.mark.parametrize(
    ("gpus", "starts", "keep"), [(8, "older", ["other", "newer"]), (4, "newer", ["other"])]
)
def test_who_goes_first_starts_in_the_place_of_one_that_is_like_it(
    gpus: int, starts: str, keep: list[str]
) -> None:
    """Those that come after that one were reckoned with just as much; and it comes after them from now on."""
    found = fleet()
    found.finish("runs in a")
    found.submit("a", "older", gpu=gpus)
    found.submit("a", "newer", gpu=8, at=1)
    found.submit("b", "other", gpu=8)
    now = decided(found, "newer", "other")
    assert admitted(now) == [starts]
    assert [one.item.id for one in now.reservations.made] == keep


def asked_about(found: Fleet, of: str, *names: str, **clusters: str) -> dict[str, Verdict]:
    """They wait in the queue one after the other, alike, and are asked about; there is no room but what is
    kept for some of them in these clusters.
    """
    way = shape(charge(gpu=8), probe="q")
    for at, name in enumerate(names):
        found.submit(of, name, way, at=at)
    found.earliest = {
        probe_through("q", {name}): Earliest(cluster, None, 1) for name, cluster in clusters.items()
    }
    found.reservations = decided(found, *clusters).reservations
    return {"q": Verdict(0, frozenset(), ("no room",))}


@pytest.mark.parametrize("strategy", [BEST_EFFORT, BACKFILL])
def test_who_has_room_is_not_held_up_by_one_like_it_that_waits_elsewhere(
    strategy: QueueingStrategy,
) -> None:
    found = fleet()
    found.finish("runs in a")
    found.finish("runs in b")
    found.queues["a"] = replace(found.queues["a"], strategy=strategy)
    verdicts = asked_about(found, "a", "older", "newer", "newest", older="m0", newer="m1")
    verdicts[probe_through("q", {"older"})] = verdicts["q"]
    verdicts[probe_through("q", {"newer"})] = Verdict(1, frozenset({"m1"}), ())
    now = decided(found, "older", "newer", verdicts=verdicts)
    assert admitted(now) == ["newer"]
    # The others of its class wait still, which is told.
    assert found.reasons(now) == dict.fromkeys(("newest", "older"), "WaitingForCapacity")
    assert found.carry_out(now) == ["newer"]
    assert admitted(decided(found, "older", verdicts=verdicts)) == []


def test_nobody_takes_what_a_claim_needs_while_who_goes_before_it_is_asked_about() -> None:
    found = fleet()
    found.finish("runs in a")
    found.finish("runs in b")
    verdicts = asked_about(found, "a", "older", "newer", newer="m1")
    found.submit("a", "newest", gpu=1, at=2)
    now = decided(found, "newer", verdicts=verdicts)
    assert (probed(now), admitted(now)) == (["older"], [])
