"""One plane for all tests of a run, a tenant for each test, coroutines as tests, and times at the end."""

import asyncio
import inspect
import os
import re
from collections.abc import Iterator

import pytest

from tests.e2e import assets, plane
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.times import Times

WITHIN_S = 600.0
_TIMES = pytest.StashKey[Times]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TIMES] = Times()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine on the loop on which the plane is watched, within bounded time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def bounded() -> None:
        async with asyncio.timeout(WITHIN_S):
            await pyfuncitem.obj(**arguments)

    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)
    runner.run(bounded())
    return True


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The loop of all tests; between two of them nothing on it moves."""
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="session")
def whole(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Karmada, its members and Fairway, for all tests."""
    try:
        found = assets.find()
    except assets.MissingAssets as error:
        pytest.skip(str(error))
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("the end-to-end suite wants a machine for itself: run it with -n 0")
    folder = tmp_path_factory.mktemp("e2e")

    async def made() -> Plane:
        return plane.create(found, folder)

    created = runner.run(made())
    try:
        runner.run(created.begin())
        yield created
    finally:
        runner.run(created.end())


@pytest.fixture
def stage(whole: Plane, runner: asyncio.Runner) -> Plane:
    """The plane with all programs running and nothing in its clusters."""

    async def cleared() -> None:
        await whole.fairway.heal()
        await whole.fairway.until_held()
        await whole.karmada.until_room_is_known((name, 0) for name in plane.NODES)

    runner.run(cleared())
    return whole


@pytest.fixture
def tenant(stage: Plane, runner: asyncio.Runner, request: pytest.FixtureRequest) -> Iterator[Tenant]:
    """A namespace with a quota of 8 GPUs in all clusters, named after the test; emptied afterwards."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    made = Tenant(stage, name[:50].strip("-"))
    try:
        runner.run(made.begin(8))
        yield made
    finally:
        runner.run(made.end())


@pytest.fixture
def times(request: pytest.FixtureRequest) -> Times:
    """Where durations are collected for the report."""
    return request.config.stash[_TIMES]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The times, where there are any."""
    lines = list(config.stash[_TIMES].lines())
    if lines:
        terminalreporter.section("times")
        for line in lines:
            terminalreporter.write_line(line)
