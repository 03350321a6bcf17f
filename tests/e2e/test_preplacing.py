"""A release states where to, and Karmada keeps to it: see docs/placement.md."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.e2e.objects import Binding, Obj, Pod
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import (
    Workload,
    aggregated,
    deployment,
    divided,
    duplicated,
    in_one,
    in_turn,
    job,
    volcano_job,
    weighted,
    whole,
)

FOUR = deployment("web", 4)
SET = volcano_job("train", 3)
ROUNDS = int(os.environ.get("FAIRWAY_ROUNDS", "6"))
"""Of gangs of which one has no room."""
PLACEMENTS: list[tuple[str, Workload, Obj, bool]] = [
    ("aggregated", FOUR, aggregated("a", "b"), True),
    ("by room", FOUR, divided("a", "b"), True),
    ("aggregated in one", FOUR, whole("a", "b"), True),
    ("by room in one", FOUR, in_one(divided("a", "b")), True),
    ("duplicated in one", FOUR, in_one(duplicated("a", "b")), True),
    ("a gang in one", job("gang", 4, gang=True), whole("a", "b"), True),
    ("components in one", SET, whole("a", "b"), True),
    ("duplicated components in one", SET, in_one(duplicated("a", "b")), True),
    ("the first term", FOUR, in_turn("b", "a"), True),
    ("a first term without room", deployment("wide", 2, 8), in_turn("b", "a"), False),
    ("duplicated", FOUR, duplicated("a", "b"), False),
    ("by weights", FOUR, weighted("a", "b"), False),
    ("components everywhere", SET, aggregated("a", "b"), False),
]


def at_release(tenant: Tenant, key: str) -> Binding:
    """The first version that is not held."""
    return next(binding for binding in tenant.versions(key) if binding.is_released)


def where(tenant: Tenant, key: str) -> list[dict[str, int]]:
    """Where it has been since it was placed first, without repetitions."""
    found: list[dict[str, int]] = []
    for binding in tenant.versions(key):
        if binding.is_placed and binding.shares not in found[-1:]:
            found.append(binding.shares)
    return found


@pytest.mark.parametrize(
    ("workload", "placement", "states_where"),
    [case[1:] for case in PLACEMENTS],
    ids=[case[0].replace(" ", "-") for case in PLACEMENTS],
)
async def test_placed_with_the_release(
    tenant: Tenant, workload: Workload, placement: Obj, states_where: bool
) -> None:
    if workload is SET and not tenant.plane.assets.workload_schemas:
        pytest.skip("KARMADA_ASSETS has no workload-crds; see docs/e2e.md")
    await tenant.quota(34)
    key = await tenant.submit(workload, placement)
    await tenant.born_held(key)
    shares = await tenant.placed(key)
    await tenant.plane.karmada.bindings.until_of(
        key, lambda binding: binding.scheduled == "Success", "confirmed by Karmada"
    )
    assert at_release(tenant, key).is_placed is states_where
    assert where(tenant, key) == [shares]
    if workload is not SET:
        assert await tenant.running(workload, sum(shares.values())) == shares
    assert tenant.admissions(key) == 1


async def test_two_hundred_in_a_row(tenant: Tenant) -> None:
    """Released, and ended as soon as they run, while others wait for their room: each stays where it went."""
    await tenant.quota(34)
    rng = random.Random(14)
    ways: list[Callable[..., Obj]] = [aggregated, divided, whole, lambda *of: in_one(duplicated(*of))]
    left: dict[str, Workload] = {}
    for number in range(200):
        workload = job(f"j{number}", rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 2)))
        left[await tenant.submit(workload, rng.choice(ways)("a", "b"))] = workload
    keys = list(left)
    while left:
        await tenant.plane.changes.until(
            lambda: any(_all_run(tenant, workload) for workload in left.values()),
            f"one of {len(left)} left running",
        )
        for key, workload in list(left.items()):
            if _all_run(tenant, workload):
                assert tenant.pods(workload) == tenant.binding(key).shares
                await tenant.finish(workload)
                del left[key]
    assert [key for key in keys if not at_release(tenant, key).is_placed] == []
    assert [key for key in keys if len(where(tenant, key)) != 1] == []


def _all_run(tenant: Tenant, workload: Workload) -> bool:
    return sum(tenant.pods(workload).values()) == int(workload.body["spec"]["parallelism"])


async def test_three_gangs_on_room_for_two(tenant: Tenant) -> None:
    """Round after round all at once: never a third, never a half, and the third as soon as there is room."""
    await tenant.quota(24)
    await rounds(tenant, gangs=3, gpus=4)


async def test_two_gangs_on_room_for_one(tenant: Tenant) -> None:
    """Each needs all nodes, and the quota is enough for both: never one node for each of them."""
    await tenant.quota(32)
    await rounds(tenant, gangs=2, gpus=8)


async def rounds(tenant: Tenant, gangs: int, gpus: int) -> None:
    """So many gangs at once, again and again, each of two pods; there is room for all but one."""
    watched = Watch(gangs - 1)
    pods = tenant.plane.members["a"].kubelet.pods
    pods.listeners.append(watched.see)
    try:
        for number in range(ROUNDS):
            names = [f"g{number}-{which}" for which in range(gangs)]
            await all_but_one(tenant, [job(name, 2, gpus, gang=True) for name in names])
    finally:
        pods.listeners.remove(watched.see)
    assert watched.crowded == []
    # A watch that sees nothing finds nothing wrong.
    assert len(watched.seen) == ROUNDS * gangs


@dataclass(slots=True)
class Watch:
    """Which gangs have nodes, by every version of their pods. ``crowded``: where more than ``most`` had."""

    most: int
    bound: dict[str, set[str]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    crowded: list[list[str]] = field(default_factory=list)

    def see(self, pod: Pod) -> None:
        """A version of a pod."""
        of = self.bound.setdefault(pod.workload, set())
        if pod.holds_node:
            of.add(pod.metadata.uid)
            self.seen.add(pod.workload)
        else:
            of.discard(pod.metadata.uid)
        holding = sorted(name for name, uids in self.bound.items() if uids)
        if len(holding) > self.most and holding not in self.crowded[-1:]:
            self.crowded.append(holding)


async def all_but_one(tenant: Tenant, gangs: list[Workload]) -> None:
    """They come at once; one waits, without a single pod, until others have ended."""
    await tenant.submit_all(gangs, whole("a"))
    await tenant.plane.changes.until(
        lambda: sum(_all_run(tenant, gang) for gang in gangs) == len(gangs) - 1,
        f"all but one of {gangs[0].name} and so on running",
    )
    (last,) = (gang for gang in gangs if not _all_run(tenant, gang))
    others = [gang for gang in gangs if gang is not last]
    await tenant.waits_for(last, "WaitingForCapacity")
    assert all(binding.is_held for binding in tenant.versions(tenant.key(last)))
    assert tenant.pods() == {"a": 2 * len(others)}
    for gang in others:
        await tenant.finish(gang)
    await tenant.running(last, 2)
    await tenant.finish(last)
    for gang in gangs:
        assert len(where(tenant, tenant.key(gang))) == 1
        await tenant.delete(gang.binding)
