"""An API server that is busy, slow, confused or away."""

import asyncio
from collections.abc import Generator

import pytest

from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.release.executor import ATTEMPTS
from sandbox.fakeapi.faults import Cut
from sandbox.fakeapi.seen import Seen
from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.scenarios.test_groups import group
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run


def is_patch(seen: Seen) -> bool:
    return seen.method == "PATCH" and "resourcebindings" in seen.path


def is_of(seen: Seen, name: str) -> bool:
    return seen.path.endswith(f"/{name}-job") and "resourcebindings" in seen.path


def is_first(seen: Seen) -> bool:
    return seen.path.endswith("/first-job") and "resourcebindings" in seen.path


async def waiting(world: World, count: int = 3) -> list[str]:
    world.fleet(m1=8)
    world.queue("main", {"m1": 2 * count})
    await world.start()
    await world.passes(1)
    return [world.submit(f"w{number}", gpus=2) for number in range(count)]


@pytest.mark.parametrize(
    ("code", "retry_after_s"), [(409, None), (429, 3), (429, None), (500, None), (503, 2), (504, None)]
)
def test_refused_for_now_is_tried_again(code: int, retry_after_s: int | None) -> None:
    async def scenario(world: World) -> None:
        world.api.fail(code, 3, when=is_patch, retry_after_s=retry_after_s)
        keys = await waiting(world)
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(1)
        assert charged(world) == 6

    run(scenario)


def test_refused_for_good_is_told_and_the_others_go_on() -> None:
    async def scenario(world: World) -> None:
        world.api.fail(403, 1000, when=lambda seen: is_patch(seen) and seen.path.endswith("/w0-job"))
        keys = await waiting(world)
        await world.until(lambda: all(map(world.is_placed, keys[1:])))
        assert world.is_held(keys[0])
        entry = world.dispatcher.cache.bindings.entries[keys[0]]
        assert "403" in entry.note
        # What is not admitted is not charged.
        assert charged(world) == 4
        before = len([seen for seen in world.api.seen if is_patch(seen)])
        await world.passes(120)
        assert len([seen for seen in world.api.seen if is_patch(seen)]) - before <= 8

    run(scenario)


@pytest.mark.parametrize(("code", "retry_after_s"), [(429, None), (429, 3), (500, None), (503, 3)])
def test_a_server_that_fails_at_one_object_for_long_holds_up_nobody_else(
    code: int, retry_after_s: int | None
) -> None:
    """An admission webhook of somebody's that does not answer for one namespace."""

    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        world.queue("main", {"m1": 50})
        world.queue("other", {"m1": 50})
        world.api.fail(
            code,
            10_000,
            when=lambda seen: is_patch(seen) and seen.path.endswith("/first-job"),
            retry_after_s=retry_after_s,
        )
        await world.start()
        await world.passes(1)
        first = world.submit("first", gpus=1)
        await world.passes(20)
        for number in range(10):
            keys = [world.submit(f"{queue}{number}", queue, gpus=1) for queue in ("main", "other")]
            await world.until(lambda: all(map(world.is_placed, keys)), within_s=5)  # noqa: B023 - at once
            await world.passes(5)
        assert world.is_held(first)
        assert str(code) in world.dispatcher.cache.bindings.entries[first].note
        assert ("first-job", "WriteFailed") in world.told.told
        world.api.faults.clear()
        await world.until(lambda: world.is_placed(first), within_s=120)

    run(scenario)


@pytest.mark.parametrize("queues", [("main",), ("main", "other")])
def test_a_binding_whose_patch_hangs_costs_its_queue_one_time_limit_once(queues: tuple[str, ...]) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        for queue in queues:
            world.queue(queue, {"m1": 50})
        await world.start()
        await world.passes(1)
        world.api.part(lambda seen: is_patch(seen) and is_first(seen))
        first = world.submit("first", gpus=1)
        await world.passes(1)
        late = world.submit("late", gpus=1)
        await world.until(lambda: world.is_placed(late), within_s=70)
        for number in range(30):
            keys = [world.submit(f"{queue}{number}", queue, gpus=1) for queue in queues]
            await world.until(lambda: all(map(world.is_placed, keys)), within_s=5)  # noqa: B023 - at once
            await world.passes(10)
        entry = world.dispatcher.cache.bindings.entries[first]
        assert world.is_held(first)
        assert "no answer in time" in entry.note
        assert ("first-job", "WriteFailed") in world.told.told
        world.api.heal()
        await world.until(lambda: world.is_placed(first), within_s=600)
        await world.passes(10)
        assert entry.note == ""

    run(scenario)


@pytest.mark.parametrize("cut", [None, Cut.AFTER])
@pytest.mark.parametrize("queues", [("main",), ("main", "other")])
def test_an_object_that_can_be_neither_written_nor_read_keeps_its_room_and_nobody_waiting(
    cut: Cut | None, queues: tuple[str, ...]
) -> None:
    """Storage that cannot read one value any more, in the second case since it was released."""

    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        for queue in queues:
            world.queue(queue, {"m1": 6})
        if cut is not None:
            world.api.cut(cut, 1, when=lambda seen: is_patch(seen) and is_first(seen))
        world.api.fail(500, 10_000, when=lambda seen: is_first(seen) and (cut is None or not is_patch(seen)))
        await world.start()
        await world.passes(1)
        first = world.submit("first", gpus=2)
        await world.passes(30)
        keys = [world.submit(f"{queue}{n}", queue, gpus=2) for queue in queues for n in range(3)]
        await world.passes(120)
        # What may have been released is charged until it is known.
        assert [key for key in keys if not world.is_placed(key)] == ["team/main2-job"]
        assert charged(world) == 6 * len(queues)
        entry = world.dispatcher.cache.bindings.entries[first]
        assert "500" in entry.note
        assert world.told.told.count(("first-job", "WriteFailed")) == 1
        world.api.faults.clear()
        world.karmada.finish(world.released(keys))
        await world.until(lambda: all(map(world.is_placed, (first, *keys))), within_s=120)
        await world.passes(10)
        assert entry.note == ""

    run(scenario)


@pytest.mark.parametrize("cut", [None, Cut.AFTER])
def test_the_group_of_one_that_may_have_been_released_follows_it(cut: Cut | None) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        world.queue("main", {"m1": 6})
        if cut is not None:
            world.api.cut(cut, 1, when=lambda seen: is_patch(seen) and is_first(seen))
        world.api.fail(500, 10_000, when=lambda seen: is_first(seen) and (cut is None or not is_patch(seen)))
        await world.start()
        await world.passes(1)
        ring = [world.submit(name, gpus=2, said=group("ring", 2)) for name in ("first", "second")]
        await world.passes(2)
        alone = [world.submit(f"alone{number}", gpus=2) for number in range(2)]
        await world.until(lambda: all(map(world.is_placed, (ring[1], alone[0]))), within_s=120)
        await world.passes(60)
        assert not world.is_placed(alone[1])
        assert charged(world) == 6
        world.api.faults.clear()
        await world.until(lambda: world.is_placed(ring[0]), within_s=120)
        await world.passes(10)
        assert charged(world) == 6

    run(scenario)


@pytest.mark.parametrize(("code", "is_told"), [(403, True), (409, False)])
def test_people_are_told_of_what_is_refused_and_not_of_what_only_keeps_changing(
    code: int, is_told: bool
) -> None:
    """A binding that others keep writing is as it should be: there is nothing to mend."""

    async def scenario(world: World) -> None:
        world.api.fail(code, ATTEMPTS, when=lambda seen: is_patch(seen) and seen.path.endswith("/w0-job"))
        keys = await waiting(world)
        entries = world.dispatcher.cache.bindings.entries
        await world.until(lambda: keys[0] in entries and bool(entries[keys[0]].failures))
        assert world.is_held(keys[0])
        assert (("w0-job", "WriteRefused") in world.told.told) is is_told
        # It is tried again all the same.
        await world.until(lambda: world.is_placed(keys[0]), within_s=300)
        assert entries[keys[0]].failures == 0

    run(scenario)


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
def test_a_patch_without_an_answer_is_made_once(cut: Cut) -> None:
    async def scenario(world: World) -> None:
        world.api.cut(cut, 2, when=is_patch)
        keys = await waiting(world)
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(1)
        assert charged(world) == 6
        ours = [write.path for write in world.api.writes.entries if is_patch(write.seen)]
        assert len(ours) == len(set(ours)) == 3

    run(scenario)


def test_a_slow_server_delays_and_nothing_else() -> None:
    async def scenario(world: World) -> None:
        world.api.delay(5.0, 3, when=is_patch)
        keys = await waiting(world)
        await world.until(lambda: all(map(world.is_placed, keys)), within_s=60)
        assert charged(world) == 6

    run(scenario)


def test_a_partition_charges_what_may_have_been_released() -> None:
    async def scenario(world: World) -> None:
        keys = await waiting(world)
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(1)
        world.api.part(lambda seen: True)
        for key in keys:
            world.karmada.finish([key])
        await world.passes(30)
        assert charged(world) == 6
        world.api.heal()
        await world.until(lambda: charged(world) == 0, within_s=120)

    run(scenario)


def test_a_server_that_was_away_and_forgot_its_history() -> None:
    """410: the reflectors list anew."""

    async def scenario(world: World) -> None:
        keys = await waiting(world)
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.api.refuse()
        world.karmada.finish(keys)
        late = world.submit("late", gpus=6)
        gone = world.submit("gone", gpus=6)
        world.delete(gone)
        await world.passes(5)
        world.api.compact()
        await world.api.start()
        await world.until(lambda: world.is_placed(late), within_s=120)
        await world.passes(1)
        assert charged(world) == 6

    run(scenario)


def test_a_watch_that_lags_behind_our_own_write_does_not_undo_it() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        await world.start()
        await world.passes(1)
        cache = world.dispatcher.cache
        held_up: list[object] = []
        upsert = cache.bindings.upsert
        cache.bindings.upsert = held_up.append  # type: ignore[assignment]  # the watch is held up
        key = world.submit("train", gpus=2)
        await world.until(lambda: bool(held_up))
        upsert(held_up[0])  # type: ignore[arg-type]  # what the watch gave
        await world.until(lambda: not world.is_held(key))
        await world.passes(0.2)
        # What was there before our write comes after its answer.
        upsert(held_up[0])  # type: ignore[arg-type]  # what the watch gave
        await world.passes(0.2)
        assert charged(world) == 2
        patches = len([seen for seen in world.api.seen if is_patch(seen)])
        await world.passes(3)
        assert len([seen for seen in world.api.seen if is_patch(seen)]) == patches == 1

    run(scenario)


def test_a_server_restored_from_a_backup_counts_in_the_end() -> None:
    async def scenario(world: World) -> None:
        keys = await waiting(world, 1)
        await world.until(lambda: world.is_placed(keys[0]))
        cache = world.dispatcher.cache
        entry = cache.bindings.entries[keys[0]]
        await world.passes(1)
        # The answer to our last write is from a history that is no more.
        entry.written = "99999999"
        cache.guarded.add(entry.uid)
        world.karmada.finish(keys)
        await world.passes(5)
        assert charged(world) == 2
        await world.passes(60)
        assert charged(world) == 0

    run(scenario)


def test_one_broken_binding_stops_nobody() -> None:
    async def scenario(world: World) -> None:
        keys = await waiting(world)
        broken: list[Obj] = [
            {"spec": "nonsense"},
            {"spec": {"replicas": "many", "suspension": 5, "placement": {}}},
            {
                "spec": {
                    "replicas": 1,
                    "placement": {},
                    "replicaRequirements": {"resourceRequest": {"x": "1q"}},
                }
            },
            {"spec": {"placement": {}, "components": [{"name": f"c{n}", "replicas": 1} for n in range(500)]}},
            {"spec": None, "status": {"conditions": "none"}},
            {},
        ]
        path = "/apis/work.karmada.io/v1alpha2/namespaces/team/resourcebindings"
        for number, body in enumerate(broken):
            world.add(path, {"metadata": {"name": f"broken{number}"}, **body})
        await world.until(lambda: all(map(world.is_placed, keys)))
        late = world.submit("late", gpus=2)
        world.karmada.finish(keys)
        await world.until(lambda: world.is_placed(late))

    run(scenario)


def test_a_cycle_that_fails_by_a_defect_is_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        await world.start()
        await world.passes(1)
        failures = [0]

        real = AdmissionCycles.steps

        def broken(self: AdmissionCycles, snapshot: Snapshot, now_ms: int) -> Generator[None, None, Decision]:
            failures[0] += 1
            if failures[0] <= 2:
                raise ZeroDivisionError
            return real(self, snapshot, now_ms)

        monkeypatch.setattr(AdmissionCycles, "steps", broken)
        key = world.submit("train", gpus=2)
        await world.until(lambda: world.is_placed(key), within_s=30)
        await asyncio.sleep(0)

    run(scenario)
    assert "an admission cycle failed" in caplog.text


def test_leadership_lost_in_the_middle_of_a_write_and_won_again() -> None:
    async def scenario(world: World) -> None:
        keys = await waiting(world)
        dispatcher = world.dispatcher
        await world.until(lambda: all(map(world.is_placed, keys)))
        world.karmada.finish(keys)
        world.api.part(is_patch)
        more = [world.submit(f"more{number}", gpus=2) for number in range(3)]
        await world.passes(1)
        assert dispatcher.executor is not None
        assert dispatcher.executor.waiting == 3
        assert world.running is not None
        leading = world.running._tasks.pop()
        leading.cancel()
        await asyncio.wait((leading,))
        world.api.heal()
        await world.passes(1)
        assert not dispatcher.controller.is_leading
        assert charged(world) == sum(2 for key in more if not world.is_held(key))
        world.running._tasks.append(asyncio.create_task(dispatcher.lead(lambda: True)))
        await world.until(lambda: all(map(world.is_placed, more)))
        await world.passes(1)
        assert charged(world) == 6

    run(scenario)
