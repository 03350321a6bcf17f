"""Leads while the Lease is ours: campaigns, renews, and tells the writer at any moment whether it may write.

The one idea: leadership ends by our own clock, before anybody else can begin. It lasts until the renew
deadline after the moment at which the last successful renewal was *sent*; others wait the whole lease
duration after the moment at which they saw it, which is later. Nothing has to happen for leadership to end: a
process that was stopped for a minute finds, when it asks, that it no longer leads.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, KubeError, NotFound
from fairway.kube.lease import LEASES, Claim, Held, Lease, Observation, Timing, decide, first_claim, release
from fairway.kube.patching import Patched, merge_patch
from fairway.kube.preconditions import Preconditions

logger = logging.getLogger(__name__)

_JITTER = 1.2
_RELEASE_WITHIN_S = 3.0


class Leadership:
    """The time for which we lead; ask `may_write` before every batch of writes.

    ``lost`` is set as soon as the end is noticed, which may be after the end itself.
    """

    def __init__(self, clock: Callable[[], float], until_s: float) -> None:
        self._clock = clock
        self._until_s = until_s
        self.lost = asyncio.Event()

    @property
    def left_s(self) -> float:
        """For how many seconds more we lead; a time limit for what is sent now."""
        return 0.0 if self.lost.is_set() else max(0.0, self._until_s - self._clock())

    def may_write(self) -> bool:
        """Whether we lead at this moment."""
        return self.left_s > 0

    def extend(self, until_s: float) -> None:
        """The Lease was renewed."""
        self._until_s = max(self._until_s, until_s)

    def end(self) -> None:
        """We lead no more."""
        self.lost.set()


class Election:
    """One candidate for the Lease ``namespace/name``.

    ``identity`` is unique to this process (`new_identity`). ``clock`` is monotonic and the one of the event
    loop; ``wall_clock``, in seconds since the epoch, is only written down.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self._path = LEASES.object_path(name, namespace)
        self._identity = identity
        self._timing = timing or Timing()
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._observed: Observation | None = None
        self._is_current = False
        self._problem = ""
        self._reported = ""

    @property
    def leader(self) -> str:
        """Who led when the Lease was last read; empty if nobody did."""
        return "" if self._observed is None else self._observed.lease.spec.holder_identity or ""

    async def run(self, lead: Callable[[Leadership], Awaitable[None]]) -> None:
        """Campaign; lead when elected; campaign again when that is lost; until ``lead`` returns.

        ``lead`` is cancelled when leadership is lost, and waited for. What it raises is raised here. When it
        returns or raises, or when this is cancelled, the Lease is given back: another can lead at once.
        """
        while True:
            leadership = await self._campaign()
            if await self._lead(leadership, lead):
                return

    async def _campaign(self) -> Leadership:
        period_s = self._timing.retry_period_s
        while True:
            outcome = await self._attempt(self._timing.renew_deadline_s)
            if isinstance(outcome, float):
                logger.info("%s: leading as %s", self._path, self._identity)
                return Leadership(self._clock, outcome + self._timing.renew_deadline_s)
            await self._sleep(period_s + self._rng.uniform(0.0, _JITTER * period_s))

    async def _lead(self, leadership: Leadership, lead: Callable[[Leadership], Awaitable[None]]) -> bool:
        """Whether ``lead`` came to its own end."""
        work = asyncio.ensure_future(lead(leadership))
        holding = asyncio.create_task(self._hold(leadership), name="lease")
        try:
            await asyncio.wait((work, holding), return_when=asyncio.FIRST_COMPLETED)
            finished = work.done()
        finally:
            # Held until the work has wound down, whose last writes it guards.
            work.cancel()
            await asyncio.wait((work,))
            holding.cancel()
            await asyncio.wait((holding,))
            if leadership.may_write():
                leadership.end()
                await self._give_back()
        if not work.cancelled():
            # A failure counts, also one while winding down.
            work.result()
        if not holding.cancelled():
            holding.result()
        return finished

    async def _hold(self, leadership: Leadership) -> None:
        """Renew until that fails for too long, or another leads."""
        while True:
            await self._sleep(min(self._timing.retry_period_s, leadership.left_s))
            outcome = await self._attempt(leadership.left_s)
            if isinstance(outcome, float):
                leadership.extend(outcome + self._timing.renew_deadline_s)
            elif isinstance(outcome, Held) or not leadership.may_write():
                leadership.end()
                logger.warning(
                    "%s: no longer leading as %s: %s",
                    self._path,
                    self._identity,
                    f"{outcome.holder} leads" if isinstance(outcome, Held) else "not renewed in time",
                )
                return

    async def _attempt(self, within_s: float) -> float | Held | None:
        """When a successful claim was sent, who leads instead, or None if there is no telling."""
        try:
            async with asyncio.timeout(within_s):
                outcome = await self._claim()
            self._problem = ""
        except (KubeError, TimeoutError) as error:
            self._is_current = False
            self._note(
                str(error) or f"{self._path}: no answer within {within_s:.1f} s; expected one: retrying"
            )
            return None
        if isinstance(outcome, Held) and outcome.holder != self._reported:
            logger.info("%s: led by %s", self._path, outcome.holder)
            self._reported = outcome.holder
        return outcome

    async def _claim(self) -> float | Held | None:
        if not self._is_current:
            try:
                self._see(await self._client.get_json(self._path, Lease))
            except NotFound:
                return await self._create()
        observed = self._observed
        assert observed is not None
        sent_s = self._clock()
        decision = decide(observed, self._identity, self._timing, sent_s, self._wall_clock())
        if isinstance(decision, Held):
            self._is_current = False
            return decision
        when = Preconditions.exactly(observed.lease.metadata)
        result = await merge_patch(self._client, self._path, {"spec": decision.spec}, Lease, when)
        # As long as nobody else writes, what we wrote need not be read again.
        self._is_current = isinstance(result, Patched)
        if not isinstance(result, Patched):
            return None
        self._see(result.object)
        return sent_s

    async def _create(self) -> float | Held | None:
        """There is no Lease; but whoever led a moment ago may not know that yet, and keeps its time."""
        sent_s = self._clock()
        claim: Held | Claim = first_claim(self._identity, self._timing, self._wall_clock())
        if self._observed is not None:
            former = decide(self._observed, self._identity, self._timing, sent_s, self._wall_clock())
            claim = former if isinstance(former, Held) else claim
        if isinstance(claim, Held):
            return claim
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": claim.spec,
        }
        try:
            self._see(await self._client.post(self._path.rpartition("/")[0], body, Lease))
        except Conflict:
            # Another was faster.
            return None
        self._is_current = True
        return sent_s

    async def _give_back(self) -> None:
        body = {"spec": release(self._wall_clock())}
        try:
            async with asyncio.timeout(_RELEASE_WITHIN_S):
                lease = await self._client.get_json(self._path, Lease)
                if lease.spec.holder_identity == self._identity:
                    when = Preconditions.exactly(lease.metadata)
                    await merge_patch(self._client, self._path, body, Lease, when)
        except (KubeError, TimeoutError) as error:
            self._note(f"{self._path}: not given back: {error}; another leads when it has run out")
        self._is_current = False

    def _see(self, lease: Lease) -> None:
        now_s = self._clock()
        self._observed = (
            Observation(lease, now_s) if self._observed is None else self._observed.next(lease, now_s)
        )

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem
