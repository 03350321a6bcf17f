"""When a cluster's state is good enough to answer from, when to wait for it, when to say doubt."""

import asyncio

import pytest

from estimator.cluster.freshness import Freshness, Verdict, verdict, worst
from estimator.member import NODES, PODS, MemberCluster
from tests.builders import cluster

STALE_AFTER_S = 120.0


def fresh(*, synced: bool, lost_s: float | None, recovering: bool = False) -> Freshness:
    return Freshness(synced, lost_s, recovering, "")


@pytest.mark.parametrize(
    ("freshness", "expected"),
    [
        pytest.param(fresh(synced=True, lost_s=None), Verdict.ANSWER, id="in contact"),
        pytest.param(fresh(synced=True, lost_s=1.0), Verdict.ANSWER, id="contact lost a moment ago"),
        pytest.param(
            fresh(synced=True, lost_s=STALE_AFTER_S), Verdict.ANSWER, id="lost for just as long as allowed"
        ),
        pytest.param(fresh(synced=True, lost_s=120.1), Verdict.DOUBT, id="lost for longer"),
        pytest.param(
            fresh(synced=True, lost_s=120.1, recovering=True), Verdict.WAIT, id="lost, but coming back"
        ),
        pytest.param(fresh(synced=False, lost_s=0.5), Verdict.WAIT, id="just started"),
        pytest.param(
            fresh(synced=False, lost_s=500.0), Verdict.DOUBT, id="never reached, and not for want of time"
        ),
        pytest.param(
            fresh(synced=False, lost_s=500.0, recovering=True), Verdict.WAIT, id="a very long first list"
        ),
    ],
)
def test_verdict(freshness: Freshness, expected: Verdict) -> None:
    assert verdict(freshness, STALE_AFTER_S) is expected


def test_what_needs_several_resources_is_as_fresh_as_the_worst_of_them() -> None:
    nodes = Freshness(True, None, False, "")
    pods = Freshness(True, 7.0, True, "pods: out of contact")
    quotas = Freshness(False, 3.0, True, "quotas: reading")
    assert worst((nodes, pods)) == Freshness(True, 7.0, True, "pods: out of contact")
    assert worst((nodes, pods, quotas)) == Freshness(
        False, 7.0, True, "pods: out of contact; quotas: reading"
    )
    assert worst((nodes,)).lost_s is None


def test_something_that_is_not_recovering_makes_the_whole_not_recover() -> None:
    assert not worst(
        (fresh(synced=True, lost_s=9.0, recovering=True), fresh(synced=True, lost_s=9.0))
    ).recovering


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def member(clock: Clock) -> MemberCluster:
    return MemberCluster("m", cluster(), clock)


def test_a_resource_that_nobody_reads_is_not_synced() -> None:
    clock = Clock()
    late = member(clock)
    clock.now_s += 5
    assert late.freshness((NODES,)) == Freshness(False, 5.0, False, "nodes: not read yet")


def test_who_waits_is_answered_as_soon_as_the_state_is_there() -> None:
    async def scenario() -> None:
        waiting = member(Clock())
        state = fresh(synced=False, lost_s=0.0)
        for resource in (NODES, PODS):
            waiting.watch(resource, lambda: state)
        callers = [
            asyncio.create_task(waiting.settle((NODES, PODS), STALE_AFTER_S, within_s=60)) for _ in range(3)
        ]
        await asyncio.sleep(0)
        waiting.changed()  # something happened, but not enough
        await asyncio.sleep(0)
        assert not any(caller.done() for caller in callers)
        state = fresh(synced=True, lost_s=None)
        waiting.changed()
        assert await asyncio.gather(*callers) == [None, None, None]

    asyncio.run(scenario())


def test_who_waits_longer_than_it_may_gets_the_doubt() -> None:
    async def scenario() -> Freshness | None:
        waiting = member(Clock())
        waiting.watch(NODES, lambda: fresh(synced=False, lost_s=1.0))
        return await waiting.settle((NODES,), STALE_AFTER_S, within_s=0)

    assert asyncio.run(scenario()) == fresh(synced=False, lost_s=1.0)


def test_a_hopeless_cluster_is_doubted_at_once_however_long_the_caller_would_wait() -> None:
    async def scenario() -> Freshness | None:
        hopeless = member(Clock())
        hopeless.watch(NODES, lambda: fresh(synced=True, lost_s=9999.0))
        async with asyncio.timeout(5):
            return await hopeless.settle((NODES,), STALE_AFTER_S, within_s=3600)

    assert asyncio.run(scenario()) is not None


def test_a_caller_that_gives_up_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        waiting = member(Clock())
        waiting.watch(NODES, lambda: fresh(synced=False, lost_s=0.0))
        caller = asyncio.create_task(waiting.settle((NODES,), STALE_AFTER_S, within_s=60))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        waiting.changed()

    asyncio.run(scenario())
