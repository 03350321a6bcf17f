"""What goes wrong: the faults of a story, each begun at its time and counted by its kind when it bites."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sandbox.simulation.api_server import ApiServer, Call
from sandbox.simulation.errors import Timeout, TooMany, Unavailable
from sandbox.simulation.replica import Replica
from sandbox.simulation.story import FaultLine
from sandbox.simulation.watch import Watch

SOMEBODY = "somebody"
_RESTART_MS = 2_000
_RECOVERY_MS = 100_000
"""After so long nothing is felt of a fault that is over: a watch that died is noticed after 90 s."""
_AT_REQUESTS = {
    "conflict",
    "too_many",
    "server_error",
    "timeout_before",
    "timeout_after",
    "kill_before_write",
    "kill_after_write",
}


class Models(Protocol):
    """The parts of the world that are not ours, as far as faults reach them."""

    def trouble(self, kind: str, whom: str, amount: int, begins: bool) -> bool:
        """A fault of this kind begins or ends; whether there is anything that it concerns."""


@dataclass(slots=True)
class _Armed:
    """A fault that waits for requests. ``left``: how many it still hits."""

    line: FaultLine
    until_ms: int
    left: int


class Faults:
    """The `Trouble` of the API server, and whoever stops processes, watches and clocks."""

    def __init__(
        self, api: ApiServer, replicas: Mapping[str, Replica], models: Models, rng: random.Random
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._api, self._replicas, self._models, self._rng = api, replicas, models, rng
        self._armed: list[_Armed] = []
        self._lags: list[FaultLine] = []
        self._away = 0
        self._active = 0
        self._recovers_ms = 0
        self._paused: dict[int, list[Replica]] = {}
        self._scribbles = 0

    def is_calm(self) -> bool:
        """Whether nothing goes wrong that keeps the dispatcher from what it ought to do by now."""
        return not (self._armed or self._lags or self._active) and (
            self._api.timeline.now_ms >= self._recovers_ms
        )

    def begin(self, line: FaultLine) -> None:
        """Let it go wrong, from now on for as long as the line says."""
        timeline, for_ms = self._api.timeline, 1000 * line.for_s
        kind = line.kind
        if kind in _AT_REQUESTS:
            self._armed.append(_Armed(line, timeline.now_ms + for_ms, max(1, line.amount)))
            timeline.after(for_ms, self._disarm)
            return
        if not self._begun(line):
            return
        self.counts[kind] += 1
        if not kind.startswith(("estimator", "karmada")):
            self._active += 1
            self._recovers_ms = timeline.now_ms + for_ms + _RECOVERY_MS
        timeline.after(for_ms, lambda: self._end(line))

    def _begun(self, line: FaultLine) -> bool:
        """Whether there was anything to go wrong."""
        kind, hit = line.kind, self._hit(line)
        match kind:
            case "watch_lag" | "watch_split":
                self._lags.append(line)
            case "watch_silent":
                return self._silence(line)
            case "watch_compacted":
                self._api.compact()
                for watch in self._watches(line):
                    watch.close()
            case "kill":
                for replica in hit:
                    replica.restart_after(max(_RESTART_MS, 1000 * line.for_s))
            case "pause":
                self._paused[id(line)] = hit
                for replica in hit:
                    replica.pause()
            case "clock_apart" | "clock_jump":
                for replica in hit:
                    replica.host.offset_ms += line.amount
            case "slow_writes":
                for replica in self._replicas.values():
                    replica.slow_ms = line.amount
                return True
            case "api_away":
                self._away += 1
                for watch in self._api.watches():
                    watch.close()
            case _:
                return self._models.trouble(kind, line.whom, line.amount, True)
        return bool(hit) or kind.startswith(("watch", "api"))

    def _end(self, line: FaultLine) -> None:
        self._active -= not line.kind.startswith(("estimator", "karmada"))
        match line.kind:
            case "watch_lag" | "watch_split":
                self._lags.remove(line)
            case "pause":
                for replica in self._paused.pop(id(line)):
                    replica.go_on()
            case "slow_writes":
                for replica in self._replicas.values():
                    replica.slow_ms = 0
            case "api_away":
                self._away -= 1
            case "watch_silent" | "watch_compacted" | "kill" | "clock_apart" | "clock_jump":
                pass
            case _:
                self._models.trouble(line.kind, line.whom, line.amount, False)

    def watch_delay_ms(self, watch: Watch) -> int:
        """How long the next event takes to this watch."""
        delay_ms = watch.delay_ms
        for line in self._lags:
            if _concerns(line, watch):
                delay_ms += self._rng.randint(0, line.amount)
        return delay_ms

    # As the API server's trouble.

    def before(self, call: Call) -> None:
        """See `Trouble`."""
        if self._away and call.user != SOMEBODY:
            self.counts["requests while away"] += 1
            raise Unavailable("connection refused")
        armed = self._armed_for(call, "timeout_after", "kill_after_write")
        if armed is None:
            return
        match armed.line.kind:
            case "conflict":
                self._scribbles += 1
                body = {"metadata": {"annotations": {"example.com/note": str(self._scribbles)}}}
                self._api.patch(call.resource, call.key, body, user=SOMEBODY)
            case "too_many":
                raise TooMany
            case "server_error":
                raise Unavailable("internal error")
            case "timeout_before":
                raise Timeout(applied=False)
            case "kill_before_write":
                self._kill(call)
                raise Timeout(applied=False)
            case _:
                return

    def after(self, call: Call) -> None:
        """See `Trouble`."""
        armed = self._armed_for(call, *(_AT_REQUESTS - {"timeout_after", "kill_after_write"}))
        if armed is None:
            return
        if armed.line.kind == "kill_after_write":
            self._kill(call)
        raise Timeout(applied=True)

    def _armed_for(self, call: Call, *but: str) -> _Armed | None:
        """The fault that hits this request of a dispatcher; one hit less is left of it."""
        if not self._armed or call.verb != "patch" or call.user not in self._replicas:
            return None
        if call.resource not in ("resourcebindings", "clusterresourcebindings"):
            return None
        for armed in self._armed:
            if armed.line.kind not in but and armed.line.whom in ("", call.user):
                armed.left -= 1
                if armed.left and armed.line.kind.startswith("kill"):
                    # It is to die at a later one.
                    return None
                self.counts[armed.line.kind] += 1
                self._recovers_ms = self._api.timeline.now_ms + _RECOVERY_MS
                self._disarm()
                return armed
        return None

    def _disarm(self) -> None:
        now_ms = self._api.timeline.now_ms
        self._armed = [armed for armed in self._armed if armed.left > 0 and armed.until_ms > now_ms]

    def _kill(self, call: Call) -> None:
        self._replicas[call.user].restart_after(_RESTART_MS)

    def _hit(self, line: FaultLine) -> list[Replica]:
        """The replicas that the fault is for: the named one, else the one that leads."""
        if line.whom in self._replicas:
            return [self._replicas[line.whom]]
        return [replica for replica in self._replicas.values() if replica.is_leading][:1]

    def _watches(self, line: FaultLine) -> list[Watch]:
        return [
            watch for watch in self._api.watches() if watch.user in self._replicas and _concerns(line, watch)
        ]

    def _silence(self, line: FaultLine) -> bool:
        watches = self._watches(line)
        for watch in watches:
            watch.is_silent = True
        return bool(watches)


def _concerns(line: FaultLine, watch: Watch) -> bool:
    """``whom``: a dispatcher, a resource, or one resource of one dispatcher with a slash between them."""
    if not watch.user.startswith("dispatcher"):
        return False
    return line.whom in ("", watch.user, watch.resource, f"{watch.user}/{watch.resource}")
