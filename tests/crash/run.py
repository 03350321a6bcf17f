"""Runs one schedule from its beginning to where everything has come to rest."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.fakeapi import Cut, FakeApi, Seen, Write
from sandbox.processes import free_ports
from tests.crash.fleet import Fleet
from tests.crash.guard import Guard
from tests.crash.karmada import Karmada
from tests.crash.killer import Killer
from tests.crash.objects import fixed_objects
from tests.crash.observer import Observer
from tests.crash.processes import Launcher
from tests.crash.reasons import unexplained
from tests.crash.schedule import Schedule

_LOOK_S = 0.03
_SETTLE_S = 0.4
_STUCK_S = 45.0
"""Nothing has moved for so long: it never will."""
_PAIR_KILLS_EVERY = 3
"""With two replicas each kill costs the time that a Lease takes to run out."""


@dataclass(slots=True)
class Outcome:
    """How a run went. ``faults``: what was wrong, in order; ``log``: the writes of the dispatcher."""

    ending: dict[str, str]
    faults: list[str]
    log: list[str]
    last_words: str
    took_s: float
    take_backs: int
    kills: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Both runs of a schedule, and what is wrong; nothing if ``faults`` is empty."""

    schedule: Schedule
    peaceful: Outcome
    deadly: Outcome

    @property
    def faults(self) -> list[str]:
        found = [f"without kills: {fault}" for fault in self.peaceful.faults]
        found += [f"with kills: {fault}" for fault in self.deadly.faults]
        if not found and self.peaceful.ending != self.deadly.ending:
            found.append(f"ends as {self.deadly.ending}, and without kills as {self.peaceful.ending}")
        return found

    def report(self) -> str:
        """One line, and where something is wrong, all that helps to find out why."""
        kills, schedule = self.deadly.kills, self.schedule
        line = (
            f"seed {schedule.seed}: {len(schedule.workloads)} workloads, "
            f"{'2 replicas, ' if schedule.replicas > 1 else ''}{len(self.deadly.log)} writes, "
            f"killed {kills['before']} times before and {kills['after']} after one, "
            f"{self.deadly.take_backs} taken back, {self.deadly.took_s:.1f} s: "
        )
        if not self.faults:
            return line + "as it has to be"
        worse = self.peaceful if self.peaceful.faults else self.deadly
        return "\n  ".join(
            (
                line + "WRONG",
                *self.faults[:10],
                "the last writes:",
                *(f"  {write}" for write in worse.log[-30:]),
                "the last words:",
                *(f"  {words}" for words in worse.last_words.splitlines()[-25:]),
            )
        )


async def run_both(schedule: Schedule, launcher: Launcher, folder: Path) -> Verdict:
    """In peace, and with kills; ``folder`` is for logs and kubeconfigs."""
    runs = []
    for name, deadly in (("peaceful", False), ("deadly", True)):
        place = folder / f"{schedule.seed}-{schedule.replicas}-{name}"
        await asyncio.to_thread(place.mkdir, parents=True)
        runs.append(await run(schedule, launcher, place, deadly=deadly))
    return Verdict(schedule, *runs)


async def run(schedule: Schedule, launcher: Launcher, folder: Path, *, deadly: bool) -> Outcome:
    """Once; with ``deadly`` each write of the dispatcher kills it twice.

    ``folder`` exists and is empty.
    """
    began_s = time.monotonic()
    async with FakeApi() as api:
        for path, obj in fixed_objects(schedule):
            api.create(path, obj)
        observer, karmada = Observer(api, schedule), Karmada(api, schedule)
        ports = free_ports(schedule.replicas)
        fleet = Fleet(launcher, folder, api.url, ports, observer.faults, events=schedule.events)
        guard = Guard(api, observer.faults, elects=schedule.replicas > 1)
        killer = Killer(
            api, fleet.kill, every=_PAIR_KILLS_EVERY if schedule.replicas > 1 else 1, is_armed=deadly
        )
        _watch_writes(api, guard, killer)
        tasks = [
            asyncio.create_task(work)
            for work in (observer.run(), karmada.run(), fleet.run(), _trouble(api, schedule))
        ]
        try:
            await _rest(schedule, observer, karmada, killer, tasks)
            if not observer.faults:
                observer.faults += await unexplained(schedule, ports)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await fleet.end()
        _raise_defects(tasks)
    return Outcome(
        observer.ending(),
        observer.faults,
        killer.log,
        fleet.last_words(),
        time.monotonic() - began_s,
        observer.take_backs,
        killer.kills,
    )


def _watch_writes(api: FakeApi, guard: Guard, killer: Killer) -> None:
    def before(write: Write) -> None:
        guard.before(write)
        killer.before(write)

    def after(write: Write) -> None:
        guard.after(write)
        killer.after(write)

    api.writes.before, api.writes.after = before, after


async def _rest(
    schedule: Schedule,
    observer: Observer,
    karmada: Karmada,
    killer: Killer,
    tasks: list[asyncio.Task[None]],
) -> None:
    """Wait until it is as it has to be, and stays so; or until it is clear that it never will be."""
    moved, moved_s, right_s = (0, 0), time.monotonic(), None
    while not observer.faults:
        await asyncio.sleep(_LOOK_S)
        now_s = time.monotonic()
        _raise_defects(task for task in tasks if task.done())
        if moved != (movement := (observer.seen, killer.kills.total())):
            moved, moved_s, right_s = movement, now_s, None
        is_right = observer.ending() == schedule.ending and not any(observer.idle())
        if karmada.is_idle and is_right:
            right_s = right_s or now_s
            if now_s - right_s >= _SETTLE_S:
                observer.faults += observer.wrong_at_rest()
                return
        elif now_s - moved_s > _STUCK_S:
            wrong = {
                key: (observer.ending().get(key, "lost"), wanted)
                for key, wanted in schedule.ending.items()
                if observer.ending().get(key) != wanted
            }
            observer.faults += (
                f"{key}: comes to rest as {is_now}, not as {wanted}"
                for key, (is_now, wanted) in wrong.items()
            )
            observer.faults += observer.idle()
            if not observer.faults:
                raise RuntimeError(f"seed {schedule.seed}: Karmada's stand-in does not come to rest")
            return


async def _trouble(api: FakeApi, schedule: Schedule) -> None:
    """Errors of the API server, now and then."""
    chance = random.Random(f"{schedule.seed}/troubles")

    def concerns(seen: Seen) -> bool:
        return seen.user.startswith("dispatcher") and not seen.is_watch

    for _ in range(schedule.troubles):
        await asyncio.sleep(chance.uniform(0.05, 0.8))
        match chance.randrange(5):
            case 0:
                api.fail(429, times=2, when=concerns, retry_after_s=1)
            case 1:
                api.cut(Cut.AFTER, when=concerns)
            case 2:
                api.cut(Cut.BEFORE, when=concerns)
            case 3:
                api.end_watches()
            case _:
                api.fail(500, times=2, when=concerns)


def _raise_defects(tasks: "Iterator[asyncio.Task[None]] | list[asyncio.Task[None]]") -> None:
    """A task of the harness that fails is a defect of the harness."""
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
