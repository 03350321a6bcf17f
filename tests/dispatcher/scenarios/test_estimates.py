"""Queue heads that wait until the estimators say that they fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.dispatcher import Estimation
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Departures
from queue_dispatcher.estimates.questions import StatedBinding
from tests.dispatcher.scenarios.test_growth import replicas_of, scaled
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.test_queues import reason
from tests.dispatcher.scenarios.world import World, run


@dataclass
class Estimators:
    """``room``: by cluster, copies of whatever is asked; clusters left out do not answer."""

    world: World
    room: dict[str, int]
    most: int | None = None
    asked: list[tuple[tuple[str, ...], pb.Gang]] = field(default_factory=list)
    assumed: list[Mapping[str, list[pb.Gang]]] = field(default_factory=list)

    async def ask(
        self,
        clusters: tuple[str, ...],
        gang: pb.Gang,
        assumed: Mapping[str, list[pb.Gang]],
        want_placement: bool,
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        self.asked.append((clusters, gang))
        self.assumed.append({name: list(gangs) for name, gangs in assumed.items()})
        return tuple(
            ClusterRoom(name, self.room[name], why="too few GPUs", most=self.most)
            if name in self.room
            else ClusterRoom(name, 0, unknown=f"estimator of {name}: unavailable")
            for name in clusters
        )

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        assert self.world.running is not None
        return await self.world.running.sources.template(binding)

    def estimation(self, wait_s: float = 60.0) -> Estimation:
        return Estimation(self.ask, self, wait_s)


def test_a_workload_waits_with_its_reason_until_it_fits() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        estimators = Estimators(world, {"m1": 1})
        await world.start(estimation=estimators.estimation())
        key = world.submit("train", gpus=2, replicas=2)
        await world.passes(5)
        assert world.is_held(key)
        told = reason(world, key)
        assert told is not None
        assert told.kind == "WaitingForCapacity"
        assert "m1: 1 of 2 fit: too few GPUs" in told.text
        estimators.room["m1"] = 2
        await world.until(lambda: world.is_placed(key), within_s=60)
        # As often as needed, and ever more seldom.
        assert len(estimators.asked) <= 12

    run(scenario)


def test_what_would_fit_nowhere_even_if_nothing_ran_waits_as_such_until_there_are_other_nodes() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        estimators = Estimators(world, {"m1": 0}, most=0)
        await world.start(estimation=estimators.estimation())
        key = world.submit("train", gpus=2)
        await world.passes(5)
        told = reason(world, key)
        assert told is not None
        assert (told.kind, told.text) == ("NeverFits", "m1: too few GPUs")
        assert "such nodes are added" in told.unblock
        estimators.room["m1"], estimators.most = 2, None
        await world.until(lambda: world.is_placed(key), within_s=60)

    run(scenario)


def test_room_that_appears_is_asked_about_at_once() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        estimators = Estimators(world, {"m1": 1})
        await world.start(estimation=estimators.estimation())
        first = world.submit("first", gpus=4)
        await world.until(lambda: world.is_placed(first))
        estimators.room["m1"] = 0
        second = world.submit("second", gpus=4)
        await world.passes(100)
        assert world.is_held(second)
        estimators.room["m1"] = 4
        world.karmada.finish([first])
        await world.until(lambda: world.is_placed(second), within_s=1)

    run(scenario)


def test_alike_workloads_are_one_question() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        world.queue("main", {"m1": 100})
        estimators = Estimators(world, {"m1": 0})
        await world.start(estimation=estimators.estimation())
        for number in range(30):
            world.submit(f"w{number}", gpus=2)
        await world.passes(1)
        assert len(estimators.asked) == 1

    run(scenario)


def test_what_is_on_its_way_is_told() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        world.queue("main", {"m1": 100})
        estimators = Estimators(world, {"m1": 1})
        world.karmada.is_stopped = True
        await world.start(estimation=estimators.estimation())
        world.submit("first", gpus=2)
        await world.passes(1)
        world.submit("second", gpus=4)
        await world.passes(1)
        assert [len(gangs) for gangs in estimators.assumed[-1].values()] == [1]

    run(scenario)


def test_estimators_that_do_not_answer_delay_but_never_for_ever() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        estimators = Estimators(world, {})
        await world.start(estimation=estimators.estimation(wait_s=30))
        key = world.submit("train", gpus=2)
        await world.passes(9)
        told = reason(world, key)
        assert told is not None
        assert told.kind == "WaitingForEstimate"
        assert "estimator of m1: unavailable" in told.text
        assert told.unblock == "that estimator answers"
        await world.passes(15)
        assert world.is_held(key)
        await world.until(lambda: world.is_placed(key), within_s=60)

    run(scenario)


def test_one_estimator_that_says_yes_is_enough() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 8, "m2": 8})
        await world.start(estimation=Estimators(world, {"m1": 4}).estimation())
        key = world.submit("train", gpus=2, replicas=4)
        await world.until(lambda: world.is_placed(key), within_s=2)

    run(scenario)


def test_duplicated_work_needs_room_on_every_cluster() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 8, "m2": 8})
        estimators = Estimators(world, {"m1": 4, "m2": 0})
        await world.start(estimation=estimators.estimation())
        key = world.submit("copies", gpus=2, duplicated=True)
        await world.passes(5)
        assert world.is_held(key)
        estimators.room["m2"] = 1
        await world.until(lambda: world.is_placed(key), within_s=60)

    run(scenario)


def test_a_group_is_asked_about_one_beside_the_other() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        estimators = Estimators(world, {"m1": 1})
        await world.start(estimation=estimators.estimation())
        said = {"fairway.dev/group": "ring", "fairway.dev/group-size": "2"}
        keys = [world.submit(f"w{number}", gpus=2, said=said) for number in range(2)]
        await world.until(lambda: all(map(world.is_placed, keys)))
        assert [len(assumed.get("m1", ())) for assumed in estimators.assumed] == [0, 1]

    run(scenario)


def test_what_needs_no_accelerator_is_not_asked_about() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {})
        world.namespace("team", "named")
        estimators = Estimators(world, {})
        await world.start(estimation=estimators.estimation())
        key = world.submit("plain", gpus=0)
        await world.until(lambda: world.is_placed(key))
        assert estimators.asked == []

    run(scenario)


def test_growth_waits_until_the_estimators_find_room_for_the_difference() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16, m2=16)
        world.queue("main", {"m1": 16, "m2": 16})
        estimators = Estimators(world, {"m1": 4, "m2": 0})
        await world.start(estimation=estimators.estimation())
        key = world.submit("web", gpus=1, replicas=2, clusters=("m1",))
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        estimators.room["m1"] = 2
        estimators.asked.clear()
        scaled(world, key, 5, held=True)
        await world.passes(5)
        assert world.is_held(key)
        told = reason(world, key)
        assert told is not None
        assert told.kind == "WaitingForCapacity"
        assert "m1: 2 of 3 fit" in told.text
        ((clusters, gang), *_) = estimators.asked
        assert (clusters, gang.copies) == (("m1",), 3)
        estimators.room["m1"] = 3
        await world.until(lambda: replicas_of(world, key) == 5, within_s=60)
        assert charged(world) == 5

    run(scenario)


def test_growth_on_its_way_is_told_without_a_name_that_is_of_what_runs() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        estimators = Estimators(world, {"m1": 4})
        await world.start(estimation=estimators.estimation())
        key = world.submit("web", gpus=1, replicas=2)
        await world.until(lambda: world.is_placed(key))
        await world.passes(10)
        world.karmada.is_stopped = True
        scaled(world, key, 5, held=True)
        await world.passes(2)
        assert not world.is_held(key)
        world.submit("other", gpus=2)
        await world.passes(1)
        ((growth,),) = estimators.assumed[-1].values()
        assert (growth.copies, growth.name) == (3, "")

    run(scenario)


def test_growth_that_the_estimators_do_not_know_of_goes_without_in_the_end() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        estimators = Estimators(world, {"m1": 4})
        await world.start(estimation=estimators.estimation(wait_s=30))
        key = world.submit("web", gpus=1, replicas=2)
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        estimators.room.clear()
        scaled(world, key, 5, held=True)
        await world.passes(9)
        assert world.is_held(key)
        await world.until(lambda: replicas_of(world, key) == 5, within_s=60)

    run(scenario)
