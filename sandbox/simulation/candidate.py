"""A candidate for a Lease, by the rules of `fairway.kube.lease`, in the rhythm of `fairway.kube.election`."""

import random
from collections.abc import Callable
from typing import Final

from fairway.kube.lease import Claim, Held, Lease, Observation, Timing, decide, first_claim
from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError, Conflict, NotFound
from sandbox.simulation.following import Decoder
from sandbox.simulation.objects import Obj
from sandbox.simulation.process import Process

KEY: Final = "fairway-system/fairway-dispatcher"
_JITTER: Final = 1.2
_ANSWER_MS: Final = 10


class Candidate:
    """``elected`` and ``lost`` are called as leadership begins and as its end is noticed."""

    def __init__(
        self,
        process: Process,
        client: Client,
        identity: str,
        decoder: Decoder,
        rng: random.Random,
        elected: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self.identity = identity
        self._process, self._client, self._decoder, self._rng = process, client, decoder, rng
        self._elected, self._lost = elected, lost
        self._timing = Timing()
        self._observed: Observation | None = None
        self._leads = False
        self._until_s = 0.0

    @property
    def leader(self) -> str:
        """Who led when the Lease was last read; empty if nobody did."""
        return "" if self._observed is None else self._observed.lease.spec.holder_identity or ""

    def may_write(self) -> bool:
        """Whether this one leads at this moment."""
        return self._leads and self._process.host.elapsed_s() < self._until_s

    def begin(self) -> None:
        """Campaign for ever."""
        self._process.after(_ANSWER_MS, self._attempt)

    def _attempt(self) -> None:
        sent_s = self._process.host.elapsed_s()
        try:
            held = self._claim(sent_s)
        except ApiError:
            held = None
        # The answer is on its way; what it says holds from when the claim was sent.
        self._process.after(_ANSWER_MS, lambda: self._answered(held, sent_s))

    def _answered(self, held: Held | float | None, sent_s: float) -> None:
        period_s = self._timing.retry_period_s
        if isinstance(held, float):
            self._until_s = sent_s + self._timing.renew_deadline_s
            if not self._leads:
                self._leads = True
                self._elected()
        elif self._leads and (isinstance(held, Held) or not self.may_write()):
            self._leads = False
            self._lost()
        if not self._leads:
            period_s += self._rng.uniform(0.0, _JITTER * period_s)
        self._process.after(int(period_s * 1000), self._attempt)

    def _claim(self, sent_s: float) -> Held | float | None:
        """When the claim was sent if it was heeded, who leads instead, or None if there is no telling."""
        wall_s = self._process.host.wall_s()
        try:
            self._see(self._client.get("leases", KEY))
        except NotFound:
            namespace, _, name = KEY.partition("/")
            spec = first_claim(self.identity, self._timing, wall_s).spec
            made = {"metadata": {"namespace": namespace, "name": name}, "spec": spec}
            self._see(self._client.create("leases", made))
            return sent_s
        observed = self._observed
        assert observed is not None
        decision = decide(observed, self.identity, self._timing, sent_s, wall_s)
        if not isinstance(decision, Claim):
            return decision
        version = observed.lease.metadata.resource_version
        try:
            self._see(self._client.patch("leases", KEY, {"spec": decision.spec}, resource_version=version))
        except Conflict:
            return None
        return sent_s

    def _see(self, obj: Obj) -> None:
        lease, now_s = self._decoder.read(obj, Lease), self._process.host.elapsed_s()
        self._observed = (
            Observation(lease, now_s) if self._observed is None else self._observed.next(lease, now_s)
        )
