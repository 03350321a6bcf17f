"""A story played to its end under all laws, and what came of it."""

import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import is_ended, is_held
from tests.simulation.known import Broken
from tests.simulation.losses import Losses
from tests.simulation.suspended import Suspensions

QUIET_MS = 900_000
"""Faults over and nothing begun any more, so long until whatever waits has to have a lasting reason."""
_LOOK_MS = 5_000
_STILL_MS = 400_000
"""Longer than Karmada leaves aside what found no room."""
_MOST_EVENTS = 1_000
_EVENTS_A_WRITE = 50


class Spinning(Exception):
    """Somebody is busy with nothing."""


@dataclass
class Played:
    """What came of a story. ``ended``: workloads that ran to their end; ``stopped``: how often each was
    displaced, or taken back because its queue was drained.
    """

    story: Story
    broken: list[Broken]
    events: int
    cpu_s: float
    faults: Counter[str] = field(default_factory=Counter)
    ended: frozenset[str] = frozenset()
    stopped: Counter[str] = field(default_factory=Counter)

    @property
    def laws(self) -> frozenset[str]:
        """Names of the laws that were broken."""
        return frozenset(one.law for one in self.broken)


def play(story: Story) -> Played:
    """Play the story; an exception is a defect like any other."""
    started_s = time.process_time()
    world = World(story)
    laws = Suspensions(world)
    try:
        run(world, laws)
    except Spinning as error:
        laws.broken.append(Broken("nobody is busy with nothing", "somebody", str(error), world.now_s))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the story
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})"
        laws.broken.append(Broken("no defects", where.name, told, world.now_s))
    ended = frozenset(
        key for key, one in world.api.collection("resourcebindings").objects.items() if is_ended(one)
    )
    return Played(
        story,
        laws.broken,
        world.timeline.events,
        time.process_time() - started_s,
        world.faults.counts,
        ended,
        laws.stopped,
    )


def run(world: World, laws: Losses) -> None:
    """The story of the world to its end, under the laws."""
    timeline = world.timeline
    until_ms = world.at_ms(story_end_s(world.story))
    while timeline.now_ms < until_ms:
        _look(world, laws)
    end_ms = until_ms + QUIET_MS
    written, still_ms = -1, until_ms
    while timeline.now_ms < end_ms:
        _look(world, laws)
        if _is_over(world):
            break
        now = sum(one.resource != "leases" for one in world.api.writes)
        if now != written:
            written, still_ms = now, timeline.now_ms
        elif timeline.now_ms - still_ms >= _STILL_MS:
            break
    if is_busy(world):
        _look(world, laws)
    laws.quiet()


def story_end_s(story: Story) -> int:
    """When the last fault of the story is over, and the last line begun."""
    lasting = [line.at_s + getattr(line, "for_s", 0) for line in story.lines]
    return max([story.until_s, *lasting])


def _look(world: World, laws: Losses) -> None:
    """A few seconds pass, every step under the laws."""
    timeline, until_ms = world.timeline, world.timeline.now_ms + _LOOK_MS
    events, writes = timeline.events, len(world.api.writes)
    while (next_ms := timeline.next_ms()) is not None and next_ms <= until_ms:
        timeline.step()
        laws.step()
        if timeline.events - events > _MOST_EVENTS + _EVENTS_A_WRITE * (len(world.api.writes) - writes):
            raise Spinning(
                f"{timeline.events - events} events since {timeline.now_ms - until_ms + _LOOK_MS} ms"
            )
    timeline.run_until(until_ms)
    laws.look()


def is_busy(world: World) -> bool:
    """Whether something is about to be known, within seconds: an answer had become old and is asked for
    anew, or a release is being written, and nobody says any more why it waits.
    """
    leader, bindings = world.leader, world.api.collection("resourcebindings").objects
    if leader is None:
        return False
    if any(why.kind == "WaitingForEstimate" for why in leader.waits().values()):
        return True
    states = leader.states()
    return any(is_held(one) and states.get(key, "").startswith("Admitted: ") for key, one in bindings.items())


def _is_over(world: World) -> bool:
    """Whether every workload has come to its end, and somebody leads."""
    bindings = world.api.collection("resourcebindings").objects.values()
    return world.leader is not None and all(is_ended(one) for one in bindings if "placement" in one["spec"])
