"""Capacities that the estimators count."""

import asyncio
from collections.abc import Iterable, Mapping

import msgspec
import pytest

from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope
from queue_dispatcher.api.objects import ResourceFlavorObject
from queue_dispatcher.bindings.cluster import ClusterObject
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.estimates.capacities import EVERY_S, Capacities
from sandbox.fakeapi import virtual_time
from tests.dispatcher.scenarios.objects import GPU, cluster, flavor
from tests.dispatcher.scenarios.world import World, run

BY_ESTIMATOR = {"capacityPolicy": {"type": "FromEstimator"}}
Counts = dict[str, dict[str, int]]


class Estimators:
    """Answers with ``counts``, by cluster; those left out do not answer."""

    def __init__(self, **counts: dict[str, int]) -> None:
        self.counts: Counts = counts
        self.asked: list[list[str]] = []
        self.fails = 0

    async def __call__(self, clusters: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
        asked = list(clusters)
        self.asked.append(asked)
        if self.fails:
            self.fails -= 1
            raise RuntimeError("a defect")
        return {name: amounts for name, amounts in self.counts.items() if name in asked}


def cache(**flavors: tuple[str, ...]) -> Cache:
    """Clusters m1 to m3 with 8 GPUs each, as Karmada says, and flavors ``f`` to be counted by estimators."""
    made = Cache(Scope(builtin_catalogue()), lambda: None)
    for name in ("m1", "m2", "m3"):
        made.clusters.upsert(msgspec.json.decode(msgspec.json.encode(cluster(name, 8)), type=ClusterObject))
    for name, clusters in flavors.items():
        stated = flavor(name, *clusters, **(BY_ESTIMATOR if name.startswith("f") else {}))
        made.flavors.upsert(msgspec.json.decode(msgspec.json.encode(stated), type=ResourceFlavorObject))
    return made


def capacity(made: Cache, name: str) -> Mapping[str, int]:
    return made.fleet.capacity(name) or {}


def test_only_clusters_of_flavors_that_are_to_be_counted_are_asked_about() -> None:
    made, estimators = cache(f=("m1", "m2"), other=("m3",)), Estimators(m1={GPU: 6}, m2={GPU: 7})
    asyncio.run(Capacities(estimators, made).refresh())
    assert estimators.asked == [["m1", "m2"]]
    assert capacity(made, "f")[GPU] == 13
    assert capacity(made, "other")[GPU] == 8


def test_nobody_is_asked_where_no_flavor_wants_it() -> None:
    estimators = Estimators()
    asyncio.run(Capacities(estimators, cache(other=("m1",))).refresh())
    assert estimators.asked == []


def test_what_an_estimator_does_not_count_is_as_karmada_sums_it_up() -> None:
    made = cache(f=("m1",))
    asyncio.run(Capacities(Estimators(m1={GPU: 6}), made).refresh())
    assert capacity(made, "f") == {GPU: 6, "cpu": 1_000_000}


@pytest.mark.parametrize(("before", "expected"), [({"m2": {GPU: 3}}, 4 + 3), ({}, 4 + 8)])
def test_a_cluster_that_does_not_answer_keeps_its_last_count(before: Counts, expected: int) -> None:
    """Where it never answered, what Karmada sums up counts."""
    made, estimators = cache(f=("m1", "m2")), Estimators(m1={GPU: 4})
    estimators.counts |= before
    capacities = Capacities(estimators, made)
    asyncio.run(capacities.refresh())
    estimators.counts.pop("m2", None)
    asyncio.run(capacities.refresh())
    assert capacity(made, "f")[GPU] == expected


def test_a_device_more_is_seen_at_the_next_look_though_one_look_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, estimators = cache(f=("m1",)), Estimators(m1={GPU: 4})

    async def scenario() -> None:
        task = asyncio.create_task(Capacities(estimators, made).run())
        await asyncio.sleep(1)
        assert capacity(made, "f")[GPU] == 4
        estimators.counts["m1"] = {GPU: 5}
        estimators.fails = 1
        await asyncio.sleep(EVERY_S)
        assert capacity(made, "f")[GPU] == 4
        await asyncio.sleep(EVERY_S)
        assert capacity(made, "f")[GPU] == 5
        task.cancel()

    virtual_time.run(scenario())
    assert "capacities were not counted" in caplog.text


def test_what_the_estimators_count_bounds_what_is_released() -> None:
    """Karmada says eight GPUs, and two of them are broken."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.api.update(
            "/apis/fairway.dev/v1alpha1/resourceflavors/m1", lambda obj: obj["spec"].update(BY_ESTIMATOR)
        )
        world.queue("main", {"m1": 8})
        await world.start()
        estimators = Estimators(m1={GPU: 6})
        capacities = Capacities(estimators, world.dispatcher.cache)
        await world.passes(1)
        await capacities.refresh()
        keys = [world.submit(f"w{number}", gpus=2) for number in range(4)]
        await world.passes(3)
        assert len(world.released(keys)) == 3
        estimators.counts["m1"] = {GPU: 8}
        await capacities.refresh()
        await world.until(lambda: len(world.released(keys)) == 4, within_s=3)

    run(scenario)
