"""Killed after any of its writes, at any interleaving: the next leader continues, and the end is the same.

Random schedules of arrivals, ends, scalings, groups and kills. At every write the laws hold: quota is never
exceeded, and nothing is released twice. In the end all that fits has run, groups whole.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairway.names import ADMISSION
from sandbox.fakeapi.writes import Write
from tests.dispatcher.scenarios.objects import GPU, Obj
from tests.dispatcher.scenarios.world import World, run

QUOTA = {"a": 8, "b": 6}
BORROWABLE = 14


@dataclass
class Watchman:
    """Looks at the stored objects after every write of the dispatcher."""

    world: World
    kill_at: set[int]
    releases: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    is_killed: bool = False

    def after(self, write: Write) -> None:
        body = json.loads(write.body)
        if (body.get("metadata", {}).get("annotations") or {}).get(ADMISSION) is not None:
            self.releases[body["metadata"]["uid"]] += 1
        self.check()
        self.writes += 1
        if self.writes in self.kill_at:
            self.is_killed = True
            self.world.leads = False

    def check(self) -> None:
        charged = 0
        for obj in self.world.karmada.bindings().values():
            charged += holds(obj)
        assert charged <= BORROWABLE


def holds(obj: Obj) -> int:
    """GPUs that a binding is admitted with or placed with, unless it has ended."""
    spec, status = obj["spec"], obj.get("status", {})
    ended = {item["clusterName"] for item in status.get("aggregatedStatus") or ()}
    placed = {share["name"]: share["replicas"] for share in spec.get("clusters") or ()}
    if placed and placed.keys() <= ended:
        return 0
    each = int(spec["replicaRequirements"]["resourceRequest"][GPU])
    record = json.loads((obj["metadata"].get("annotations") or {}).get(ADMISSION) or "{}")
    admitted: int = (record.get("requests") or {}).get(GPU, 0)
    taken: int = each * sum(placed.values())
    return max(admitted, taken)


async def play(world: World, seed: int, kills: set[int]) -> tuple[Counter[str], list[str]]:
    """What was released how often, and what is still held in the end."""
    chance = random.Random(seed)
    world.fleet(m1=100)
    world.add("/apis/fairway.dev/v1alpha1/clusterqueues", {"metadata": {"name": "root"}, "spec": {}})
    for name, quota in QUOTA.items():
        world.queue(name, {"m1": quota}, parent="root")
    watchman = Watchman(world, kills)
    world.api.writes.after = watchman.after
    running = await world.start()
    keys: list[str] = []
    for number in range(8):
        queue = chance.choice(sorted(QUOTA))
        if chance.random() < 0.3:
            said = {"fairway.dev/group": f"g{number}", "fairway.dev/group-size": "2"}
            keys += [world.submit(f"w{number}{part}", queue, gpus=2, said=said) for part in "xy"]
        else:
            keys.append(world.submit(f"w{number}", queue, gpus=chance.choice((1, 2, 4))))
        await world.passes(chance.choice((0.0, 0.02, 0.1)))
        if chance.random() < 0.3:
            world.karmada.finish([key for key in keys if world.is_placed(key)][:2])
        if watchman.is_killed:
            await running.kill()
            watchman.is_killed, world.leads = False, True
            running = await world.start()
    for _ in range(60):
        await world.passes(0.2)
        if watchman.is_killed:
            await running.kill()
            watchman.is_killed, world.leads = False, True
            running = await world.start()
        world.karmada.finish([key for key in keys if world.is_placed(key)])
        if not any(map(world.is_held, keys)):
            break
    await world.passes(0.5)
    world.check()
    groups: dict[str, set[bool]] = {}
    for key in keys:
        record = world.record(key) or {}
        if record.get("group"):
            groups.setdefault(record["group"], set()).add(world.is_held(key))
    assert all(len(held) == 1 for held in groups.values())
    return watchman.releases, [key for key in keys if world.is_held(key)]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    kills=st.sets(st.integers(1, 10), max_size=4),
)
def test_killed_after_any_of_its_writes_the_end_is_the_same(seed: int, kills: set[int]) -> None:
    releases, held = run(lambda world: play(world, seed, kills))
    assert held == []
    assert set(releases.values()) <= {1}


@pytest.mark.parametrize("kill", range(1, 7))
def test_killed_after_each_write_of_a_group(kill: int) -> None:
    releases, held = run(lambda world: play(world, 7, {kill}))
    assert held == []
    assert set(releases.values()) <= {1}
