"""Held bindings given back: how many at a time, and what is left alone."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from admin.install.performing import InstallError
from fairway.names import ADMISSION
from sandbox.fakeapi import requests
from sandbox.fakeapi.store import Obj
from tests.admin.install.fleet import BINDINGS, Fleet, binding, fleet

HELD = 40


def on(scenario: Callable[[Fleet], Awaitable[None]]) -> None:
    async def run() -> None:
        async with fleet(stock=False) as made:
            await scenario(made)

    asyncio.run(run())


def hold(made: Fleet, count: int = HELD) -> None:
    for number in range(count):
        made.apis["karmada"].create(BINDINGS, binding(f"job-{number:02}"))


def bindings(made: Fleet) -> dict[str, Obj]:
    records = made.apis["karmada"].store.collections["work.karmada.io/v1alpha2/resourcebindings"].records
    return {name: record.decode() for (_, name), record in records.items()}


def released(made: Fleet) -> list[str]:
    return [name for name, obj in bindings(made).items() if "suspension" not in obj["spec"]]


@pytest.mark.parametrize("in_flight", [1, 15, 20])
def test_no_more_are_in_flight_than_karmada_can_take(in_flight: int) -> None:
    async def scenario(made: Fleet) -> None:
        made.scheduler = False
        hold(made)
        seen = []
        sleep = made.sleep

        async def watched(seconds: float) -> None:
            # Whoever waits has just filled the window of the last ten seconds.
            seen.append((made.time_s, len(released(made))))
            await sleep(seconds)

        made.sleep = watched  # type: ignore[method-assign]  # time passes as before, and is looked at
        gone = await made.uninstall(in_flight=in_flight)
        assert len(gone.given_back.released) == HELD
        for at_s, count in seen:
            before = max((each for moment, each in seen if moment <= at_s - 10.5), default=0)
            assert count - before <= 2 * in_flight
        assert seen[0][1] == in_flight

    on(scenario)


def test_a_scheduler_that_places_is_not_waited_for() -> None:
    async def scenario(made: Fleet) -> None:
        hold(made)
        await made.uninstall()
        assert len(made.placed) == HELD
        assert made.time_s == 0

    on(scenario)


def test_what_is_kept_and_what_is_others_stays_as_it_is_and_is_told() -> None:
    async def scenario(made: Fleet) -> None:
        hold(made, 2)
        fields: Obj = {"f:spec": {"f:suspension": {"f:scheduling": {}}}}
        theirs = binding("theirs")
        theirs["metadata"]["managedFields"] = [{"manager": "kubectl-edit", "fieldsV1": fields}]
        made.apis["karmada"].create(BINDINGS, theirs)
        before = bindings(made)
        kept = await made.uninstall(keep_held=True)
        assert bindings(made) == before
        assert kept.left[0] == "2 held bindings, as asked for: team/job-00, team/job-01"
        gone = await made.uninstall()
        assert bindings(made)["theirs"] == before["theirs"]
        assert gone.left[0].startswith("1 held bindings, not by Fairway: team/theirs")

    on(scenario)


def test_records_go_from_what_runs_without_waking_anybody() -> None:
    async def scenario(made: Fleet) -> None:
        running = binding("runs", suspension={"scheduling": False})
        running["metadata"]["annotations"] = {ADMISSION: "{}", "theirs": "stays"}
        made.apis["karmada"].create(BINDINGS, running)
        generation = bindings(made)["runs"]["metadata"]["generation"]
        gone = await made.uninstall()
        after = bindings(made)["runs"]["metadata"]
        assert after["annotations"] == {"theirs": "stays"}
        assert (after["generation"], gone.given_back.cleared) == (generation, 1)

    on(scenario)


def test_a_binding_that_cannot_be_written_keeps_the_dispatcher_and_not_the_others() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        hold(made, 3)
        made.apis["karmada"].fail(403, 1, when=requests(verb="patch", path="job-01"))
        with pytest.raises(InstallError, match=r"team/job-01: .*403.*\n.*dispatcher is left running"):
            await made.uninstall()
        assert released(made) == ["job-00", "job-02"]
        deployments = made.apis["host"].store.collections["apps/v1/deployments"].records
        assert ("fairway-system", "fairway-dispatcher") in deployments
        await made.uninstall()
        assert released(made) == ["job-00", "job-01", "job-02"]

    on(scenario)


def test_a_binding_that_cannot_be_read_is_told_and_left() -> None:
    async def scenario(made: Fleet) -> None:
        hold(made, 1)
        made.apis["karmada"].create(BINDINGS, binding("broken", clusters="east"))
        gone = await made.uninstall()
        assert released(made) == ["job-00"]
        assert "team/broken: Expected `array | null`, got `str`" in gone.left[0]

    on(scenario)
