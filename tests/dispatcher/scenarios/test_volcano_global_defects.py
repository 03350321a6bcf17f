"""The defects of volcano-global 0.3 that were found in its code, by their letters. Shown elsewhere:

c  test_clusters.py::test_a_cluster_that_is_not_ready_is_no_capacity
e  test_queues.py::test_a_deleted_queue_goes_on_to_be_charged_and_its_workloads_wait
   and, for one that never was,
   test_queues.py::test_a_queue_that_cannot_be_told_is_told_and_comes_right_when_it_appears
g  test_queues.py::test_the_default_queue_of_a_namespace_and_that_of_a_policy
i  test_growth.py::test_growth_waits_for_quota_while_what_runs_goes_on
k  the webhook's part: tests/webhook/test_server.py::test_replicas_share_certificates_and_either_answers
"""

import asyncio

from tests.dispatcher.scenarios.objects import FAIRWAY, local_queue
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.test_queues import kind
from tests.dispatcher.scenarios.world import World, run


def test_a_no_binding_costs_a_request_of_its_own() -> None:
    """a: every binding added or updated cost a live GET of its template."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 1})
        await world.start()
        first = world.submit("first", gpus=2)
        await world.passes(1)
        before = len(world.api.seen)
        keys = [world.submit(f"w{number}", gpus=2) for number in range(50)]
        for key in keys:
            world.edit(key, lambda obj: obj["metadata"]["annotations"].update(poked="yes"))
        await world.passes(2)
        assert len(world.api.seen) == before
        assert kind(world, first) == "NeverFits"

    run(scenario)


def test_b_a_binding_whose_template_comes_later_is_not_forgotten() -> None:
    """b: when its template could not be read, a binding stayed suspended until something else touched it."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        world.api.fail(500, 3, when=lambda seen: "/jobs" in seen.path)
        await world.start()
        key = world.bind("train", gpus=2)
        await world.passes(8)
        assert world.is_held(key)
        job = {"metadata": {"name": "train", "labels": {"fairway.dev/queue": "main"}}, "spec": {}}
        world.add("/apis/batch/v1/namespaces/team/jobs", job)
        await world.until(lambda: world.is_placed(key))

    run(scenario)


def test_b_a_kind_that_is_not_served_is_told_and_followed_once_it_is() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets"
        world.api.serve("/apis/jobset.x-k8s.io/v1alpha2/jobsets", served=False)
        await world.start()
        key = world.bind("set", gpus=2, kind="JobSet", api_version="jobset.x-k8s.io/v1alpha2")
        plain = world.submit("plain", gpus=1)
        await world.until(lambda: world.is_placed(plain))
        assert kind(world, key) == "Unreadable"
        world.api.serve("/apis/jobset.x-k8s.io/v1alpha2/jobsets")
        world.add(path, {"metadata": {"name": "set", "labels": {"fairway.dev/queue": "main"}}, "spec": {}})
        await world.until(lambda: world.is_placed(key), within_s=120)

    run(scenario)


def test_d_a_deleted_priority_class_costs_the_priority_and_nothing_else() -> None:
    """d: such a binding was neither dispatched nor counted."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        world.add("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        await world.start()
        spec = {"template": {"spec": {"priorityClassName": "high", "containers": []}}}
        for name in ("running", "waiting"):
            labels = {"fairway.dev/queue": "main"}
            world.add(
                "/apis/batch/v1/namespaces/team/jobs",
                {"metadata": {"name": name, "labels": labels}, "spec": spec},
            )
        running = world.bind("running", gpus=2)
        await world.until(lambda: world.is_placed(running))
        waiting = world.bind("waiting", gpus=2)
        await world.passes(1)
        world.api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/high")
        await world.passes(1)
        assert charged(world) == 2
        entry = world.dispatcher.cache.bindings.entries[waiting]
        assert entry.priority.value == 0
        assert "PriorityClass high does not exist" in entry.priority.notes[0]
        world.karmada.finish([running])
        await world.until(lambda: world.is_placed(waiting))

    run(scenario)


def test_f_the_order_is_the_same_every_time() -> None:
    """f: tie-breakers were called in the order of a Go map."""

    def order() -> list[str]:
        async def scenario(world: World) -> list[str]:
            world.fleet(m1=100)
            for name in ("one", "two", "three"):
                world.queue(name, {"m1": 10})
            for number in range(12):
                world.submit(f"w{number:02}", ("one", "two", "three")[number % 3], gpus=1 + number % 2)
            await world.start()
            await world.until(lambda: len(world.karmada.placed) == 12)
            return world.karmada.placed

        return run(scenario)

    assert order() == order() == order()


def test_h_health_is_no_end_and_the_phase_is() -> None:
    """h: what a Volcano Job's health was read from does not exist, so that it always was Healthy."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        await world.start()
        keys = []
        for name in ("first", "second"):
            world.add(
                "/apis/batch.volcano.sh/v1alpha1/namespaces/team/jobs",
                {"metadata": {"name": name, "labels": {"fairway.dev/queue": "main"}}, "spec": {}},
            )
            keys.append(world.bind(name, gpus=2, api_version="batch.volcano.sh/v1alpha1"))
            await world.passes(1.1)
        first, second = keys
        assert world.is_placed(first)

        def reported(phase: str) -> None:
            item = {"clusterName": "m1", "applied": True, "health": "Healthy"}
            status = {"state": {"phase": phase}}
            world.edit(first, lambda obj: obj["status"].update(aggregatedStatus=[item | {"status": status}]))

        for phase in ("", "Pending", "Running", "Restarting", "Aborted", "Completing", "Terminating"):
            reported(phase)
            await world.passes(1)
            assert charged(world) == 2
            assert world.is_held(second)
        # Its health is what it always was.
        reported("Failed")
        await world.until(lambda: world.is_placed(second), within_s=2)
        assert charged(world) == 2

    run(scenario)


def test_j_children_that_belong_together_start_together() -> None:
    """j: a HyperJob's children had bindings of their own, and no gang across them. See test_groups."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 8, "m2": 8})
        await world.start()
        said = {"fairway.dev/group": "hyper", "fairway.dev/group-size": "2"}
        first = world.submit("child-0", gpus=8, clusters=("m1",), said=said)
        await world.passes(2)
        assert world.is_held(first)
        second = world.submit("child-1", gpus=8, clusters=("m2",), said=said)
        await world.until(lambda: world.is_placed(first) and world.is_placed(second))

    run(scenario)


def test_k_a_follower_takes_over() -> None:
    """k: leader election was off in the sample. A follower is warm, and writes nothing until it leads."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        world.leads = False
        follower = await world.start()
        key = world.submit("train", gpus=2)
        await world.passes(5)
        assert world.is_held(key)
        assert not world.api.writes.entries
        assert kind(world, key) != "QueueNotFound"
        world.leads = True
        await world.until(lambda: world.is_placed(key), within_s=2)
        await follower.kill()
        await asyncio.sleep(0)

    run(scenario)


def test_the_finished_do_not_keep_their_quota_until_somebody_deletes_them() -> None:
    """Its worst leak: quota came back only when the binding was deleted."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        world.add(f"{FAIRWAY}/namespaces/team/localqueues", local_queue("alias", "main"))
        await world.start()
        for number in range(5):
            key = world.submit(f"w{number}", ("main", "alias")[number % 2], gpus=2)
            await world.until(lambda key=key: world.is_placed(key))  # type: ignore[misc]  # bound at once
            world.karmada.finish([key], failed=number % 2 == 1)
        await world.passes(1)
        assert charged(world) == 0

    run(scenario)
