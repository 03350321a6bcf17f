"""Leader election against the fake API server, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.election import Election, Leadership
from fairway.kube.lease import LEASES, Lease, Timing
from sandbox.fakeapi import Cut, FakeApi, requests
from sandbox.fakeapi.store import Obj
from sandbox.fakeapi.virtual_time import run
from tests.kube.conftest import ApiServer
from tests.kube.test_api_objects import new_namespace

PATH = LEASES.object_path("dispatcher", "fairway-system")


class Candidate:
    """One process: ``led`` lists its times of leadership; ``jump_s`` is what its clock is ahead."""

    def __init__(self, stage: "Stage", name: str) -> None:
        self.name, self._stage = name, stage
        self.jump_s = 0.0
        self.leadership: Leadership | None = None
        self.led: list[tuple[float, float]] = []
        self.failure: Exception | None = None
        self.ends = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def clock(self) -> float:
        return asyncio.get_running_loop().time() + self.jump_s

    @property
    def may_write(self) -> bool:
        return self.leadership is not None and self.leadership.may_write()

    async def lead(self, leadership: Leadership) -> None:
        self.leadership = leadership
        began_s = self._stage.now_s
        try:
            await self.ends.wait()
            if self.failure is not None:
                raise self.failure
        finally:
            self.led.append((began_s, self._stage.now_s))

    async def run(self) -> None:
        async with KubeClient.from_url(self._stage.api.url, token=self.name, qps=-1) as client:
            election = Election(
                client,
                "fairway-system",
                "dispatcher",
                self.name,
                clock=self.clock,
                wall_clock=lambda: 1e9 + self._stage.now_s,
                rng=random.Random(self.name),
            )
            await election.run(self.lead)

    def start(self) -> "Candidate":
        self.task = self._stage.group.create_task(self.run())
        return self

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class Stage:
    """Checks twice a second that at most one candidate may write."""

    def __init__(self, api: FakeApi, group: asyncio.TaskGroup) -> None:
        self.api, self.group = api, group
        self.candidates: list[Candidate] = []
        self.began_s = asyncio.get_running_loop().time()

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time() - self.began_s

    def candidate(self, name: str) -> Candidate:
        self.candidates.append(Candidate(self, name))
        return self.candidates[-1].start()

    @property
    def writers(self) -> list[str]:
        return [candidate.name for candidate in self.candidates if candidate.may_write]

    @property
    def spec(self) -> Obj:
        spec: Obj = self.api.store.get(
            self.api.store.collection("coordination.k8s.io/v1", "leases"), KEY
        ).decode()["spec"]
        return spec

    async def passes(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            await asyncio.sleep(max(0.01, min(0.5, until_s - self.now_s)))
            assert len(self.writers) < 2, self.writers

    async def until(self, *writers: str, within_s: float = 60.0) -> float:
        """Wait until exactly these may write; answers how long that took."""
        began_s = self.now_s
        while self.writers != list(writers):
            await self.passes(0.2)
            assert self.now_s - began_s < within_s, self.writers
        return self.now_s - began_s


KEY = ("fairway-system", "dispatcher")


def play(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    @asynccontextmanager
    async def staged() -> AsyncIterator[Stage]:
        async with FakeApi() as api, asyncio.TaskGroup() as group:
            stage = Stage(api, group)
            yield stage
            for candidate in stage.candidates:
                await candidate.stop()

    async def main() -> None:
        async with staged() as stage:
            await scenario(stage)

    run(main())


def test_the_first_leads_and_renews_and_the_second_waits() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        assert await stage.until("a") < 1
        first = stage.spec
        assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == (
            "a",
            15,
            0,
        )
        stage.candidate("b")
        await stage.passes(300)
        assert stage.writers == ["a"]
        renewed = stage.spec
        assert renewed["renewTime"] > first["renewTime"]
        assert renewed | {"renewTime": ""} == first | {"renewTime": ""}

    play(scenario)


def test_a_renewal_is_one_request() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        before = len(stage.api.seen)
        await stage.passes(60)
        assert {seen.verb for seen in stage.api.seen[before:]} == {"patch"}
        assert 28 <= len(stage.api.seen) - before <= 31

    play(scenario)


def test_two_that_start_together_elect_one() -> None:
    async def scenario(stage: Stage) -> None:
        for name in "abcd":
            stage.candidate(name)
        await stage.passes(60)
        assert len(stage.writers) == 1
        assert stage.spec["holderIdentity"] == stage.writers[0]
        assert stage.spec["leaseTransitions"] == 0

    play(scenario)


def test_who_is_cut_off_stops_before_another_begins() -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(20)
        stage.api.part(requests(user="a"))
        assert 8 <= await stage.until() <= 10.2
        assert first.leadership is not None
        assert first.leadership.lost.is_set()
        # Five seconds of margin less what the second took to see the last renewal, and at most a period more.
        assert 1 <= await stage.until("b") <= 10
        assert (stage.spec["holderIdentity"], stage.spec["leaseTransitions"]) == ("b", 1)
        stage.api.heal()
        await stage.passes(60)
        assert stage.writers == ["b"]

    play(scenario)


def test_a_late_renewal_of_who_was_cut_off_changes_nothing() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(20)
        stage.api.part(requests(user="a"))
        await stage.until("b")
        holder = stage.spec
        stage.api.heal()
        await stage.passes(1)
        assert stage.spec["acquireTime"] == holder["acquireTime"]

    play(scenario)


def test_a_dead_leader_is_replaced_after_the_duration() -> None:
    async def scenario(stage: Stage) -> None:
        spec = {
            "holderIdentity": "dead",
            "leaseDurationSeconds": 15,
            "renewTime": "2999-01-01T00:00:00.000000Z",
            "leaseTransitions": 7,
        }
        stage.api.create("/apis/coordination.k8s.io/v1/leases", {"metadata": lease_metadata(), "spec": spec})
        stage.candidate("a")
        assert 15 <= await stage.until("a") <= 20
        assert stage.spec["leaseTransitions"] == 8

    play(scenario)


def lease_metadata() -> Obj:
    return {"namespace": KEY[0], "name": KEY[1]}


def test_a_lease_without_anything_in_it_is_taken() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.create("/apis/coordination.k8s.io/v1/leases", {"metadata": lease_metadata()})
        stage.candidate("a")
        assert await stage.until("a") < 1

    play(scenario)


def test_a_clean_stop_lets_another_lead_at_once() -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(10)
        await first.stop()
        assert "holderIdentity" not in stage.spec
        assert await stage.until("b") <= 4.6
        assert stage.spec["leaseTransitions"] == 1

    play(scenario)


def test_a_stop_without_a_server_does_not_take_long() -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.candidate("a")
        await stage.until("a")
        stage.api.part(requests(user="a"))
        before_s = stage.now_s
        await first.stop()
        assert stage.now_s - before_s <= 3.1
        assert not first.may_write

    play(scenario)


def test_who_ends_by_itself_gives_the_lease_back() -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.candidate("a")
        await stage.until("a")
        first.ends.set()
        assert first.task is not None
        await first.task
        assert "holderIdentity" not in stage.spec
        assert not first.may_write

    play(scenario)


def test_a_failure_gives_the_lease_back_and_is_raised() -> None:
    async def main() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            election = Election(client, *KEY, "a", clock=asyncio.get_running_loop().time)

            async def fails(leadership: Leadership) -> None:
                assert leadership.may_write()
                raise LookupError("a defect")

            with pytest.raises(LookupError, match="a defect"):
                await election.run(fails)
            assert (await client.get_json(PATH, Lease)).spec.holder_identity is None

    run(main())


def test_a_clock_that_jumps_ends_leadership_without_any_event() -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.candidate("a")
        await stage.until("a")
        first.jump_s = 60.0
        assert stage.writers == []
        assert first.leadership is not None
        assert first.leadership.left_s == 0.0
        # The lease is still its own, so that it leads again; the work was begun anew.
        await stage.until("a", within_s=10)
        assert len(first.led) == 1

    play(scenario)


TROUBLE = {
    "409": lambda api: api.fail(409, 3, when=requests(verb="patch")),
    "429": lambda api: api.fail(429, 3, retry_after_s=1),
    "500": lambda api: api.fail(500, 3),
    "slow": lambda api: api.delay(1.5, 10),
    "the answer lost": lambda api: api.cut(Cut.AFTER, 3),
    "the request lost": lambda api: api.cut(Cut.BEFORE, 3),
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
def test_short_trouble_is_survived(trouble: Callable[[FakeApi], None]) -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(9.3)
        trouble(stage.api)
        await stage.passes(60)
        assert stage.writers == ["a"]
        assert stage.spec["leaseTransitions"] == 0

    play(scenario)


ENDLESS = 1_000_000


@pytest.mark.parametrize(
    "trouble",
    [
        lambda api: api.fail(409, ENDLESS, when=requests(user="a", verb="patch")),
        lambda api: api.fail(403, ENDLESS, when=requests(user="a")),
        lambda api: api.fail(500, ENDLESS, when=requests(user="a")),
        lambda api: api.delay(30.0, ENDLESS, when=requests(user="a")),
        lambda api: api.cut(Cut.BEFORE, ENDLESS, when=requests(user="a")),
    ],
    ids=["409", "403", "500", "slow", "cut"],
)
def test_lasting_trouble_passes_leadership_on(trouble: Callable[[FakeApi], None]) -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(10)
        trouble(stage.api)
        await stage.until("b", within_s=30)

    play(scenario)


def test_renewals_that_are_applied_but_never_answered_keep_everybody_else_out() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(10)
        stage.api.cut(Cut.AFTER, ENDLESS, when=requests(user="a", verb="patch"))
        await stage.until()
        stage.api.faults.clear()
        await stage.passes(30)
        assert stage.writers == ["a"]

    play(scenario)


def test_another_name_in_the_lease_ends_leadership_at_the_next_renewal() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.api.update(PATH, lambda lease: lease["spec"].update(holderIdentity="intruder"))
        assert await stage.until() <= 4.3
        assert 10 <= await stage.until("a") <= 20

    play(scenario)


def test_a_lease_that_is_deleted_stays_with_its_holder() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(10)
        for _ in range(5):
            stage.api.delete(PATH)
            await stage.passes(6)
        assert stage.writers == ["a"]

    play(scenario)


def test_a_server_that_is_away_for_long_is_waited_for() -> None:
    async def scenario(stage: Stage) -> None:
        stage.candidate("a")
        await stage.until("a")
        stage.candidate("b")
        await stage.passes(5)
        await stage.api.refuse()
        await stage.until(within_s=11)
        await stage.passes(120)
        assert stage.writers == []
        await stage.api.start()
        await stage.passes(20)
        assert len(stage.writers) == 1

    play(scenario)


def test_leadership_changes_hands_on_any_server(server: ApiServer) -> None:
    async def main() -> None:
        async with server.connect() as client:
            namespace = await new_namespace(client)
            timing = Timing(lease_duration_s=4, renew_deadline_s=3.0, retry_period_s=0.2)
            elections = [Election(client, namespace, "x", name, timing=timing) for name in "ab"]
            began: asyncio.Queue[str] = asyncio.Queue()
            ends = {name: asyncio.Event() for name in "ab"}

            async def leading(election: Election, name: str) -> None:
                async def lead(leadership: Leadership) -> None:
                    began.put_nowait(name)
                    await ends[name].wait()
                    assert leadership.may_write()

                await election.run(lead)

            async with asyncio.TaskGroup() as group, asyncio.timeout(20):
                for election, name in zip(elections, "ab", strict=True):
                    group.create_task(leading(election, name))
                first = await began.get()
                second = "b" if first == "a" else "a"
                held = await client.get_json(LEASES.object_path("x", namespace), Lease)
                assert (held.spec.holder_identity, held.spec.lease_transitions) == (first, 0)
                ends[first].set()
                assert await began.get() == second
                held = await client.get_json(LEASES.object_path("x", namespace), Lease)
                assert (held.spec.holder_identity, held.spec.lease_transitions) == (second, 1)
                ends[second].set()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_never_two(seed: int) -> None:
    async def scenario(stage: Stage) -> None:
        chance = random.Random(seed)
        names = "abc"
        for name in names:
            stage.candidate(name)
        for _ in range(25):
            victim = requests(user=chance.choice(names))
            match chance.randrange(7):
                case 0:
                    stage.api.part(victim)
                case 1:
                    stage.api.heal()
                case 2:
                    stage.api.fail(chance.choice((409, 429, 500)), chance.randrange(1, 8), when=victim)
                case 3:
                    stage.api.delay(chance.uniform(0.5, 14.0), chance.randrange(1, 4), when=victim)
                case 4:
                    stage.api.cut(chance.choice(list(Cut)), chance.randrange(1, 6), when=victim)
                case 5:
                    await chance.choice(stage.candidates).stop()
                case 6:
                    for candidate in stage.candidates:
                        if candidate.task is not None and candidate.task.done():
                            candidate.start()
            await stage.passes(chance.uniform(0.5, 15.0))
        stage.api.faults.clear()
        stage.api.heal()
        stage.candidate("z")
        await stage.passes(45)
        assert len(stage.writers) == 1

    play(scenario)
