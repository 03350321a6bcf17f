"""Others who set or clear the flag, or edit our annotations; and what slipped through."""

import json

import pytest

from fairway.names import ADMISSION, REQUEUE
from tests.dispatcher.scenarios.objects import GPU, Obj
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run


def released_by_hand(obj: Obj) -> None:
    obj["spec"]["suspension"]["scheduling"] = False


def test_what_slipped_through_is_charged_and_left_alone() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        key = world.submit("leak", gpus=3, held=False)
        await world.start()
        await world.until(lambda: world.is_placed(key))
        await world.passes(2)
        assert charged(world) == 3
        assert world.record(key) is None
        other = world.submit("other", gpus=2)
        await world.passes(3)
        assert world.is_held(other)

    run(scenario)


def test_a_flag_cleared_by_hand_is_adoption() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 1})
        await world.start()
        key = world.submit("impatient", gpus=3)
        await world.passes(2)
        assert world.is_held(key)
        world.edit(key, released_by_hand)
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert charged(world) == 3
        assert not world.is_held(key)

    run(scenario)


BY_HAND: Obj = {"suspension": {"scheduling": True}}


def held_by_hand(obj: Obj) -> None:
    obj["spec"]["suspension"] = {"scheduling": True}


def test_a_hold_of_what_is_in_nobodys_queue_is_not_touched() -> None:
    """The gate holds nothing of the kind, so whoever holds it is somebody else."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        runs = world.submit("runs", "", gpus=0, held=False)
        await world.until(lambda: world.is_placed(runs))
        world.edit(runs, held_by_hand)
        waits = world.submit("waits", "", gpus=0, held=False, more=BY_HAND)
        await world.passes(5)
        assert world.is_held(runs)
        assert world.is_held(waits)
        assert not world.api.writes.entries
        assert charged(world) == 0

    run(scenario)


@pytest.mark.parametrize(
    ("is_skipped", "stays"),
    [
        pytest.param(False, False, id="the flag is Fairway's"),
        pytest.param(True, True, id="its owner keeps Fairway off"),
    ],
)
def test_a_hold_by_hand_of_what_runs_in_a_queue(is_skipped: bool, stays: bool) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        notes = {"fairway.dev/skip": "mine"} if is_skipped else {}
        key = world.submit("runs", gpus=2, held=False, annotations=notes)
        await world.until(lambda: world.is_placed(key))
        world.edit(key, held_by_hand)
        await world.passes(5)
        assert world.is_held(key) is stays

    run(scenario)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda notes: notes.pop(ADMISSION), id="gone"),
        pytest.param(lambda notes: notes.update({ADMISSION: "{"}), id="no JSON"),
        pytest.param(lambda notes: notes.update({ADMISSION: "x" * 100_000}), id="huge"),
        pytest.param(lambda notes: notes.update({ADMISSION: '{"id": 5}'}), id="wrong type"),
        pytest.param(
            lambda notes: notes.update(
                {ADMISSION: json.dumps(json.loads(notes[ADMISSION]) | {"id": "another"})}
            ),
            id="of another binding",
        ),
        pytest.param(
            lambda notes: notes.update(
                {ADMISSION: json.dumps(json.loads(notes[ADMISSION]) | {"requests": {GPU: 0}})}
            ),
            id="says less than is placed",
        ),
        pytest.param(lambda notes: notes.update({REQUEUE: "nonsense"}), id="requeue"),
    ],
)
def test_an_edited_record_does_not_free_what_is_placed(edit: object) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        world.edit(key, lambda obj: edit(obj["metadata"]["annotations"]))  # type: ignore[operator]  # of parametrize
        await world.passes(2)
        assert world.is_placed(key)
        assert charged(world) == 4
        other = world.submit("other", gpus=1)
        await world.passes(2)
        assert world.is_held(other)

    run(scenario)


def test_a_record_copied_to_a_new_binding_admits_nothing() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: world.is_placed(key))
        copied = world.binding(key)["metadata"]["annotations"]
        clone = world.submit("clone", gpus=4, annotations=copied)
        await world.passes(3)
        assert world.is_held(clone)
        assert charged(world) == 4

    run(scenario)


def test_a_policys_own_suspension_stays_byte_for_byte() -> None:
    """volcano-global replaced it."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        own = {"dispatchingOnClusters": {"clusterNames": ["m2", "m1"]}, "scheduling": True}
        key = world.submit("train", gpus=2, more={"suspension": own})
        await world.until(lambda: world.is_placed(key))
        assert world.binding(key)["spec"]["suspension"] == own | {"scheduling": False}

    run(scenario)


def test_what_is_skipped_is_not_touched_and_what_it_holds_is_charged() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        skipped = {"fairway.dev/skip": "yes"}
        key = world.submit("own-way", gpus=4, held=False, annotations=skipped, more=BY_HAND)
        await world.passes(3)
        assert world.is_held(key)
        assert world.record(key) is None
        train = world.submit("train", gpus=4)
        await world.until(lambda: world.is_placed(train))
        world.edit(train, lambda obj: obj["metadata"]["annotations"].update({"fairway.dev/skip": ""}))
        await world.passes(2)
        assert charged(world) == 4

    run(scenario)
