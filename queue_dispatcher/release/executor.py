"""Makes the writes that were decided, each as one patch that holds only for the object it was decided on.

Writes come in sequences: those of one are made one after the other in the order they were decided, so that a
queue is released in its order even if we are killed half-way; sequences go on side by side. A write is
prepared at the moment it is sent, against the object as it is known then, since the object may have changed
while the write waited for its turn; and one that is no longer wanted is not made.

What the answers mean: changed or gone is ordinary, and the object is read again. No answer leaves open
whether the patch was applied; nothing else happens in that sequence until reading the object has told. When a
write fails for good, what was decided after it in its sequence is dropped as well, to be decided anew.

An object at which the server fails while others get through, or about which it does not answer in time, holds
up nobody: it is given up, to be tried again ever more seldom, and its sequence goes on without it. Where it
cannot be read either, whether the patch was applied stays open: until reading has told, nothing else happens
to that object, and to it alone.

What has to be there before a write is made out of its turn, by others than those who make writes: one that
hangs keeps no write from being made that needs none. It gets a moment to become known: Karmada reads policies
and bindings from two caches, and a Work that is made without a policy cannot be changed to what that says.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

from fairway.kube.backoff import Backoff
from fairway.kube.errors import (
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Refused,
    ServerError,
)
from fairway.kube.patching import Gone, OutcomeUnknown, Patched, PatchResult
from fairway.kube.preconditions import Preconditions
from fairway.kube.transport import TimedOut
from queue_dispatcher.release.sequences import NOTHING, First, Queued, Sequences
from queue_dispatcher.release.troubles import Troubles
from queue_dispatcher.turn.writes import Companion, Fate, Prepared, Write

logger = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

GUIDE = "guide"
"""As what the companions of writes are observed."""
WORKERS = 32
"""As many writes at once, and as many companions."""
PAUSE_S = 0.05
FINDERS: Final = 4
"""As many objects at once are read of which nobody can tell whether they were written."""
ATTEMPTS = 8
SETTLES_S: Final = 0.2
"""For what comes first to become known to Karmada."""
LATE_S: Final = 5.0
"""For what had no answer, or one that leaves it open, to be made all the same, or dropped by the server."""
UNREADABLE_S = 5.0
"""For how long what may not be read is left alone."""


class Reconciler(Protocol[T_contra]):
    """Who decided the writes, and is told what became of them. Called on the event loop; never raises."""

    async def at_rest(self) -> None:
        """Return once writes may be prepared."""

    def prepare(self, write: Write) -> Prepared | None:
        """The patch for the object as it is known now; None if it is done already, or no longer wanted."""

    def saw(self, obj: T_contra) -> None:
        """The object as it is on the server: the answer to a patch, or read again."""

    def wrote(self, write: Write, fate: Fate, message: str = "") -> None:
        """What became of the write; of one that was applied, `saw` has been told of the object."""


class Api(Protocol[T]):
    """What is asked of the API server."""

    async def patch(self, path: str, body: Mapping[str, object], when: Preconditions) -> PatchResult[T]:
        """See `fairway.kube.patching.merge_patch`."""

    async def read(self, path: str) -> T:
        """The object. Raises KubeError, NotFound if there is none."""

    async def ensure(self, companion: Companion) -> None:
        """See to it that it is as it says, or not there. Raises KubeError; may simply be done again."""


@dataclass(frozen=True, slots=True)
class Open:
    """A write of which nobody can tell whether it was made. ``told``: why; ``due_s``: when its object is to
    be read again, monotonic.
    """

    write: Write
    path: str
    told: str
    due_s: float


_DEFECT: Final = "a defect of the dispatcher; see its log"


class Executor(Generic[T]):
    """The writes of one dispatcher.

    ``may_write`` is asked before each of them: whether this process leads. ``observe`` is told the purpose
    and the outcome of each attempt. ``clock`` is monotonic, in seconds.
    """

    def __init__(
        self,
        api: Api[T],
        reconciler: Reconciler[T],
        may_write: Callable[[], bool],
        *,
        observe: Callable[[str, str], None] = lambda purpose, outcome: None,
        workers: int = WORKERS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._api = api
        self._reconciler = reconciler
        self._may_write = may_write
        self._observe = observe
        self._workers = workers
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._backoff = Backoff(self._rng)
        self._not_before_s = 0.0
        self._troubles = Troubles()
        self.sequences = Sequences()
        self.left_open: asyncio.Queue[Open] = asyncio.Queue()

    @property
    def waiting(self) -> int:
        """How many writes have not been made yet, those under way included."""
        return len(self.sequences)

    def submit(self, writes: Iterable[Write]) -> None:
        """Make the writes, after those of the same sequence that were submitted before."""
        for write in writes:
            self.sequences.put(write)

    async def run(self) -> None:
        """Make writes until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"writes/{number}")
                group.create_task(self._guide(), name=f"companions/{number}")
            for number in range(FINDERS):
                group.create_task(self._find_out(), name=f"open/{number}")

    async def _work(self) -> None:
        while True:
            name = await self.sequences.ready.get()
            queued = self.sequences.next(name)
            goes_on = queued.is_over or await self._take(
                queued.write, self._make(queued.write, queued.first or NOTHING)
            )
            for dropped in self.sequences.made(name, goes_on=goes_on):
                self._reconciler.wrote(dropped, Fate.DROPPED)

    async def _guide(self) -> None:
        while True:
            queued = await self.sequences.firsts.get()
            if self.sequences.begin(queued):
                self.sequences.begun(queued, await self._make_first(queued))

    async def _take(self, write: Write, making: Awaitable[bool]) -> bool:
        """Take one write to its end, whatever happens; whether the next of its sequence may be made."""
        try:
            return await making
        except Exception:
            logger.exception("%s of binding %s failed", write.purpose, write.uid)
            self._observe(write.purpose, "internal")
            self._reconciler.wrote(write, Fate.REFUSED, _DEFECT)
            return False

    async def _make_first(self, queued: Queued) -> First | None:
        """See to it that what comes before the write is there; None if it was dropped meanwhile."""
        write, first = queued.write, NOTHING
        await self._pause()
        await self._reconciler.at_rest()
        if queued.is_over:
            return None
        try:
            if self._may_write():
                prepared = self._reconciler.prepare(write)
                if prepared is None:
                    # It only keeps its place until its turn has come: whoever decided it may do so again.
                    queued.is_over = True
                    return NOTHING
                if prepared.first is not None:
                    failed = await self._ensure(prepared.first)
                    first = First(prepared.first, failed, self._clock() + SETTLES_S)
        except Exception:
            logger.exception("what comes before the %s of binding %s failed", write.purpose, write.uid)
            first = First(failed=(Fate.REFUSED, _DEFECT))
        return None if queued.is_over else first

    async def _make(self, write: Write, first: First) -> bool:
        """Make one write; whether the next of its sequence may be made."""
        if (wait_s := first.known_s - self._clock()) > 0:
            await self._sleep(wait_s)
        if first.failed is not None:
            self._reconciler.wrote(write, *first.failed)
            return False
        ensured = first.companion
        # The object at which an attempt was made of which nobody can tell whether it was applied.
        doubted = ""
        for attempt in range(ATTEMPTS):
            await self._pause()
            await self._reconciler.at_rest()
            if not self._may_write():
                self._observe(write.purpose, "not_leading")
                fate, told = Fate.DROPPED, ""
                break
            prepared = self._reconciler.prepare(write)
            if prepared is None:
                return True
            if prepared.first is not None and prepared.first != ensured:
                purpose = GUIDE if prepared.body is not None else write.purpose
                failed = await self._ensure(prepared.first, purpose)
                if failed is not None:
                    fate, told = failed
                    break
                # That takes a while: somebody else may lead by then, or it may be wanted no more.
                ensured = prepared.first
                if prepared.body is not None:
                    await self._sleep(SETTLES_S)
                    continue
            if prepared.body is None:
                self._reconciler.wrote(write, Fate.APPLIED)
                return True
            try:
                result = await self._api.patch(prepared.path, prepared.body, prepared.when)
            except (Forbidden, Invalid) as error:
                self._observe(write.purpose, error.label)
                # What is not allowed has been told by the client, once for all bindings.
                level = logging.DEBUG if isinstance(error, Denied) else logging.WARNING
                logger.log(level, "%s: %s", write.purpose, error)
                fate, told = Fate.REFUSED, str(error)
                break
            except KubeError as error:
                # Flow control, no connection, no credentials: nothing was applied, and most fail alike.
                self._observe(write.purpose, error.label)
                fate, told = Fate.DROPPED, ""
                if self._fails_alone(write, error):
                    fate, told = Fate.FAILED, str(error)
                break
            if isinstance(result, Patched):
                self._backoff.reset()
                self._troubles.got_through(write.uid)
                self._observe(write.purpose, "applied")
                self._reconciler.saw(result.object)
                self._reconciler.wrote(write, Fate.APPLIED)
                return True
            if isinstance(result, Gone):
                self._observe(write.purpose, "gone")
                self._reconciler.wrote(write, Fate.GONE)
                return True
            if isinstance(result, OutcomeUnknown):
                self._observe(write.purpose, "unknown")
                doubted = prepared.path
                if self._fails_alone(write, result.error) or isinstance(result.error, TimedOut):
                    # Once more could take as long again.
                    fate, told = Fate.FAILED, str(result.error)
                    break
            else:
                self._observe(write.purpose, "stale")
            try:
                is_there = await self._read_again(write, prepared.path)
            except KubeError as error:
                if doubted:
                    return self._leave_open(write, doubted, str(error))
                fate = Fate.REFUSED if isinstance(error, Forbidden) else Fate.FAILED
                return self._give_up(write, fate, str(error))
            if not is_there:
                return True
            # Karmada writes in bursts of a few tenths of a second: not in step with it.
            await self._sleep(PAUSE_S * attempt * self._rng.random())
        else:
            fate = Fate.GIVEN_UP
            told = f"the object changed {ATTEMPTS} times while it was to be patched"
        if doubted:
            # It may be stored a moment after an answer that left it open.
            await self._sleep(LATE_S)
            try:
                if await self._is_over(write, doubted):
                    return True
            except KubeError as error:
                return self._leave_open(write, doubted, str(error))
        return self._give_up(write, fate, told)

    def _give_up(self, write: Write, fate: Fate, told: str) -> bool:
        """It is to be tried again later, by another decision; nothing follows it in its sequence."""
        if fate in (Fate.FAILED, Fate.GIVEN_UP):
            self._observe(write.purpose, "given_up")
        self._reconciler.wrote(write, fate, told)
        return False

    async def _is_over(self, write: Write, path: str) -> bool:
        """Whether the write was made after all, or is called for no more, as is told then; once it is known.

        Raises as `_read_again` does.
        """
        if not await self._read_again(write, path):
            return True
        await self._reconciler.at_rest()
        return self._reconciler.prepare(write) is None

    async def _ensure(self, companion: Companion, purpose: str = GUIDE) -> tuple[Fate, str] | None:
        """What becomes of the write, and why; None where it may be made. Guidance that is refused is gone
        without.

        So is what the server fails at, or does not answer in time: it may do so again and again for this one
        alone. ``purpose``: as what it is observed.
        """
        try:
            await self._api.ensure(companion)
        except (Forbidden, Invalid, NotFound, Conflict, ServerError, TimedOut) as error:
            self._observe(purpose, error.label)
            level = logging.DEBUG if isinstance(error, Denied) else logging.WARNING
            logger.log(level, "%s: %s", purpose, error)
            if companion.is_needed:
                return Fate.REFUSED, f"nothing would {companion.without}: {error}"
        except KubeError as error:
            self._slow_down(error)
            self._observe(purpose, error.label)
            return Fate.DROPPED, ""
        else:
            self._observe(purpose, "applied" if companion.body is not None else "gone")
        return None

    async def _read_again(self, write: Write, path: str) -> bool:
        """Tell the reconciler how the object is, however long the server is away; False if it is gone.

        Raises KubeError where it may not be read, or the server fails at it alone.
        """
        while True:
            await self._pause()
            try:
                self._reconciler.saw(await self._api.read(path))
            except NotFound:
                self._reconciler.wrote(write, Fate.GONE)
                return False
            except Forbidden:
                raise
            except KubeError as error:
                if self._troubles.failed(write.uid):
                    raise
                self._slow_down(error)
            else:
                return True

    def _leave_open(self, write: Write, path: str, told: str) -> bool:
        """Nobody can tell yet whether the write was made: that is found out without its sequence."""
        self._observe(write.purpose, "open")
        self._reconciler.wrote(write, Fate.OPEN, f"nobody can tell yet whether it was made: {told}")
        self.left_open.put_nowait(Open(write, path, told, self._clock() + UNREADABLE_S))
        return False

    async def _find_out(self) -> None:
        """Tell what became of writes that were left open, however long that takes."""
        while True:
            one = await self.left_open.get()
            if (wait_s := one.due_s - self._clock()) > 0:
                await self._sleep(wait_s)
            await self._take(one.write, self._look_again(one))

    async def _look_again(self, one: Open) -> bool:
        """Tell what became of it if its object can be read now; whether it is over."""
        try:
            return await self._is_over(one.write, one.path) or self._give_up(one.write, Fate.FAILED, one.told)
        except KubeError:
            self.left_open.put_nowait(replace(one, due_s=self._clock() + UNREADABLE_S))
            return False

    def _fails_alone(self, write: Write, error: KubeError) -> bool:
        """Whether others are not to wait for the object of the write, at which the server has failed; if it
        may be the server's trouble, all of them do for a moment.
        """
        is_its_own = self._troubles.failed(write.uid)
        if not is_its_own:
            self._slow_down(error)
        return is_its_own or self._troubles.is_hopeless(write.uid)

    def _slow_down(self, error: KubeError) -> None:
        if self._clock() < self._not_before_s:
            # One outage fails all that is under way, and counts once.
            return
        pause_s = self._backoff.next_s(error.retry_after_s if isinstance(error, Refused) else None)
        self._not_before_s = self._clock() + pause_s
        logger.warning("writing again in %.1f s: %s", pause_s, error)

    async def _pause(self) -> None:
        while (wait_s := self._not_before_s - self._clock()) > 0:
            await self._sleep(wait_s)
