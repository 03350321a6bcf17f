"""Clusters that vanish, are not ready, come back, grow."""

from fairway.names import ADMISSION
from tests.dispatcher.scenarios.karmada import Karmada
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, Obj, cluster, cluster_queue, flavor, local_queue
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.test_queues import kind, reason
from tests.dispatcher.scenarios.world import World, run

PATH = "/apis/cluster.karmada.io/v1alpha1/clusters"


def ready(obj: Obj, *, is_ready: bool) -> None:
    obj["status"]["conditions"] = [{"type": "Ready", "status": "True" if is_ready else "False"}]


def test_a_cluster_that_is_not_ready_is_no_capacity() -> None:
    """volcano-global defect c: one that became NotReady still counted."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 100})
        await world.start()
        world.api.update(f"{PATH}/m1", lambda obj: ready(obj, is_ready=False))
        await world.passes(1)
        key = world.submit("train", gpus=4)
        await world.passes(3)
        assert world.is_held(key)
        world.api.update(f"{PATH}/m1", lambda obj: ready(obj, is_ready=True))
        await world.until(lambda: world.is_placed(key), within_s=2)

    run(scenario)


def test_a_placement_that_names_a_cluster_that_has_not_joined_waits_for_it() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8, "m2": 8})
        await world.start()
        key = world.submit("train", gpus=4, clusters=("m2",))
        several = world.submit("several", gpus=4, clusters=("m2", "m3"))
        await world.passes(2)
        told = reason(world, key)
        assert told is not None
        assert told.kind == "NeverFits"
        assert told.text.endswith("m2, which it names, has not joined")
        assert told.unblock == "cluster m2 joins, or its placement permits other clusters"
        of_several = reason(world, several)
        assert of_several is not None
        assert of_several.unblock.startswith("one of the clusters m2, m3 joins")
        world.add(PATH, cluster("m2", 8))
        world.add(f"{FAIRWAY}/resourceflavors", flavor("m2", "m2"))
        await world.until(lambda: world.is_placed(key) and world.is_placed(several), within_s=2)

    run(scenario)


def test_a_placement_that_permits_no_cluster_by_its_taints_is_not_told_to_ask_for_less() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        await world.start()
        taint = {"key": "away", "effect": "NoSchedule"}
        world.api.update(f"{PATH}/m1", lambda obj: obj["spec"].update(taints=[taint]))
        key = world.submit("train", gpus=4, clusters=("m1",))
        await world.passes(2)
        told = reason(world, key)
        assert told is not None
        assert told.text == "its placement permits none of the clusters that there are"
        assert told.unblock == "its placement permits other clusters, or a cluster that it permits joins"

    run(scenario)


def test_what_is_being_taken_off_a_cluster_is_not_released_for_it() -> None:
    """Karmada gives it none of the clusters that it evicts it from, ten minutes long if nothing else runs."""

    def evicting(obj: Obj) -> None:
        obj["spec"]["clusters"] = []
        obj["spec"]["gracefulEvictionTasks"] = [{"fromCluster": "m1", "reason": "TaintUntolerated"}]
        obj["spec"]["suspension"] = {"scheduling": True}
        obj["metadata"]["annotations"].pop(ADMISSION)

    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 8, "m2": 8})
        await world.start()
        here, elsewhere = (
            world.submit(name, gpus=4, clusters=clusters)
            for name, clusters in (("here", ("m1",)), ("elsewhere", ("m1", "m2")))
        )
        await world.until(lambda: world.is_placed(here) and world.is_placed(elsewhere))
        world.karmada.room = {"m2": 8}
        for key in (here, elsewhere):
            world.api.update(Karmada.path(key), evicting)
        await world.until(lambda: world.is_placed(elsewhere), within_s=2)
        assert world.is_held(here)
        told = reason(world, here)
        assert told is not None
        assert told.kind == "NeverFits"
        assert told.text.endswith("as long as Karmada takes it off m1")

        world.karmada.room = None
        world.api.update(Karmada.path(here), lambda obj: obj["spec"].pop("gracefulEvictionTasks"))
        await world.until(lambda: world.is_placed(here), within_s=2)

    run(scenario)


def test_what_runs_on_a_lost_cluster_takes_nothing_from_the_others() -> None:
    """armada #817: capacity that is gone and usage that is not starve the rest."""

    async def scenario(world: World) -> None:
        world.add("/api/v1/namespaces", {"metadata": {"name": "team"}})
        world.add(PATH, cluster("m1", 8), cluster("m2", 8))
        world.add(f"{FAIRWAY}/resourceflavors", flavor("both", "m1", "m2"))
        world.queue("main", {"both": 100})
        await world.start()
        first = world.submit("first", gpus=6, clusters=("m1",))
        await world.until(lambda: world.is_placed(first))
        world.api.update(f"{PATH}/m1", lambda obj: ready(obj, is_ready=False))
        await world.passes(1)
        second = world.submit("second", gpus=8, clusters=("m2",))
        await world.until(lambda: world.is_placed(second), within_s=2)
        third = world.submit("third", gpus=1)
        await world.passes(2)
        assert world.is_held(third)

    run(scenario)


def test_a_cluster_that_is_gone_and_back_under_the_same_name() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 100})
        await world.start()
        running = world.submit("running", gpus=4)
        await world.until(lambda: world.is_placed(running))
        world.api.delete(f"{PATH}/m1")
        key = world.submit("train", gpus=4)
        await world.passes(2)
        assert kind(world, key) == "NeverFits"
        assert charged(world) == 4
        world.add(PATH, cluster("m1", 16))
        await world.until(lambda: world.is_placed(key), within_s=2)
        assert charged(world) == 8

    run(scenario)


def test_the_envelope_bounds_quotas_that_promise_too_much() -> None:
    """Kueue #9988: quota drifts from what there is."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 100})
        world.queue("other", {"m1": 100})
        await world.start()
        one = world.submit("one", gpus=6)
        await world.until(lambda: world.is_placed(one))
        two = world.submit("two", "other", gpus=6)
        await world.passes(2)
        assert kind(world, two) == "WaitingForCapacity"
        world.karmada.finish([one])
        await world.until(lambda: world.is_placed(two))

    run(scenario)


def test_headroom_and_static_capacity() -> None:
    async def scenario(world: World) -> None:
        world.add("/api/v1/namespaces", {"metadata": {"name": "team"}})
        world.add(PATH, cluster("m1", 10))
        static = {"type": "Static", "resources": {GPU: "3"}}
        world.add(
            f"{FAIRWAY}/resourceflavors",
            flavor("most", "m1", headroomPercent=50),
            flavor("fixed", "m1", capacityPolicy=static),
        )
        for name in ("most", "fixed"):
            world.add(f"{FAIRWAY}/clusterqueues", cluster_queue(name, {name: 100}))
            world.add(f"{FAIRWAY}/namespaces/team/localqueues", local_queue(name, name))
        await world.start()
        keys = {gpus: world.submit(f"w{gpus}", "most", gpus=gpus) for gpus in (6, 5)}
        static_keys = {gpus: world.submit(f"s{gpus}", "fixed", gpus=gpus) for gpus in (4, 3)}
        await world.until(lambda: world.is_placed(keys[5]) and world.is_placed(static_keys[3]))
        await world.passes(1)
        assert world.is_held(keys[6])
        assert world.is_held(static_keys[4])

    run(scenario)


def test_a_fleet_that_karmada_does_not_sum_up_is_bounded_by_quota_alone() -> None:
    async def scenario(world: World) -> None:
        world.add("/api/v1/namespaces", {"metadata": {"name": "team"}})
        world.add(PATH, cluster("m1", None))
        world.add(f"{FAIRWAY}/resourceflavors", flavor("m1", "m1"))
        world.queue("main", {"m1": 4})
        await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: world.is_placed(key))

    run(scenario)


def test_a_percentage_follows_the_capacity() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": "50%"})
        await world.start()
        key = world.submit("train", gpus=6)
        await world.passes(2)
        assert kind(world, key) == "NeverFits"
        world.api.update(
            f"{PATH}/m1", lambda obj: obj["status"]["resourceSummary"]["allocatable"].update({GPU: "12"})
        )
        await world.until(lambda: world.is_placed(key), within_s=2)

    run(scenario)


def test_heartbeats_of_clusters_derive_nothing_anew() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 1})
        await world.start()
        for number in range(5):
            world.submit(f"w{number}", gpus=2)
        await world.passes(2)
        cache = world.dispatcher.cache
        marked: list[object] = []
        cache.mark = lambda entry: marked.append(entry)  # type: ignore[method-assign]  # to count
        for number in range(10):
            world.api.update(
                f"{PATH}/m1",
                lambda obj, number=number: obj["status"].update(remedyActions=[str(number)]),  # type: ignore[misc]  # a default that binds the number
            )
        await world.passes(1)
        assert marked == []
        assert not cache.queues.is_tree_stale

    run(scenario)
