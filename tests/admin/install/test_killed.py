"""Runs that are killed right after a write, whichever it is: the next run completes them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from admin.install.performing import InstallError
from admin.install.settings import Hold
from sandbox.fakeapi.store import Obj
from tests.admin.install.fleet import BINDINGS, SETTINGS, Fleet, binding, fleet

SHARES = 4
"""Into how many tests the writes are dealt out, so that they can run side by side."""
SAMPLE, SWITCH_SAMPLE = 12, 4
"""At how many writes, drawn with a fixed seed: every one would take too long, and many are alike."""
POLICIES = replace(SETTINGS, hold=Hold.POLICIES)
SWITCHES = [(SETTINGS, POLICIES), (POLICIES, SETTINGS)]
COLLECTION = "work.karmada.io/v1alpha2/resourcebindings"
Scenario = Callable[[Fleet], Awaitable[None]]


def drawn(total: int) -> list[int]:
    """Of so many writes those at which a run is killed: the first, the last and some between."""
    return [0, *sorted(Random(1).sample(range(1, total - 1), SAMPLE - 2)), total - 1]


def on(scenario: Scenario) -> None:
    async def run() -> None:
        async with fleet() as made:
            await scenario(made)

    asyncio.run(run())


@cache
def wholly_installed() -> tuple[int, dict[str, Obj]]:
    """How many writes an installation is, and what comes of it."""
    found = []

    async def scenario(made: Fleet) -> None:
        await made.install()
        found.append((made.written, made.state()))

    on(scenario)
    return found[0]


async def with_held_bindings(made: Fleet) -> tuple[dict[str, Obj], int]:
    """What was there before an installation that holds three bindings, and how many writes there were."""
    before = made.state()
    await made.install()
    for number in range(3):
        made.apis["karmada"].create(BINDINGS, binding(f"job-{number}"))
    return before, made.written


@cache
def writes_of_an_uninstallation() -> int:
    found = []

    async def scenario(made: Fleet) -> None:
        _, installed = await with_held_bindings(made)
        await made.uninstall()
        found.append(made.written - installed)

    on(scenario)
    return found[0]


@pytest.mark.parametrize("share", range(SHARES))
def test_an_installation_that_is_killed_at_a_write_is_completed_by_the_next(share: int) -> None:
    total, complete = wholly_installed()
    for cut_at in drawn(total)[share::SHARES]:

        async def scenario(made: Fleet, cut_at: int = cut_at) -> None:
            made.cut_at = cut_at
            # An answer that is lost while something of Karmada's is replaced is looked up at once.
            with suppress(InstallError):
                await made.install()
            assert made.written > cut_at
            await made.install()
            assert made.state() == complete

        on(scenario)


@pytest.mark.parametrize("share", range(SHARES))
def test_an_uninstallation_that_is_killed_at_a_write_is_completed_by_the_next(share: int) -> None:
    for cut_at in drawn(writes_of_an_uninstallation())[share::SHARES]:

        async def scenario(made: Fleet, cut_at: int = cut_at) -> None:
            before, installed = await with_held_bindings(made)
            made.cut_at = installed + cut_at
            # An answer that is lost while a binding is given back is looked up at once.
            with suppress(InstallError):
                await made.uninstall()
            await made.uninstall()
            assert made.state(without=[COLLECTION]) == before
            held = made.apis["karmada"].store.collections[COLLECTION].records.values()
            assert not any("suspension" in record.decode()["spec"] for record in held)

        on(scenario)


@pytest.mark.parametrize("number", range(len(SWITCHES)))
def test_a_switch_that_is_killed_at_a_write_is_completed_by_the_next(number: int) -> None:
    first, second = SWITCHES[number]
    found = []

    async def uncut(made: Fleet) -> None:
        await made.install(first)
        written = made.written
        await made.install(second)
        found.append((made.written - written, made.state()))

    on(uncut)
    total, complete = found[0]
    for cut_at in sorted(Random(number).sample(range(total), SWITCH_SAMPLE)):

        async def scenario(made: Fleet, cut_at: int = cut_at) -> None:
            await made.install(first)
            made.cut_at = made.written + cut_at
            with suppress(InstallError):
                await made.install(second)
            await made.install(second)
            assert made.state() == complete

        on(scenario)
