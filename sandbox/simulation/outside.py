"""What goes wrong with Karmada, the members and the estimators: the faults of a story that reach them."""

from collections.abc import Iterable, Mapping

from sandbox.simulation.estimators import Estimators, Failing
from sandbox.simulation.karmada.control_plane import Karmada, Limits
from sandbox.simulation.member import Member


class Outside:
    """See `sandbox.simulation.faults.Models`."""

    def __init__(self, karmada: Karmada, members: Mapping[str, Member], estimators: Estimators) -> None:
        self._karmada, self._members, self._estimators = karmada, members, estimators
        self._away = 0

    def trouble(self, kind: str, whom: str, amount: int, begins: bool) -> bool:
        """See `Models`. ``amount``: how many times slower, milliseconds, or pods too many."""
        match kind:
            case "karmada_slow":
                self._karmada.scheduler.throttle.qps = (
                    max(1, Limits().scheduler_qps // max(1, amount)) if begins else Limits().scheduler_qps
                )
            case "karmada_away":
                self._away += 1 if begins else -1
                self._stand_by()
            case "cluster_lost":
                for member in self._named(whom):
                    member.is_reachable = not begins
            case "estimator_slow" | "estimator_wrong" | "estimator_gone":
                for member in self._named(whom):
                    self._estimators.failing[member.name] = _failing(kind, amount) if begins else Failing()
            case _:
                return False
        return True

    def _named(self, whom: str) -> Iterable[Member]:
        return [member for name, member in self._members.items() if whom in ("", name)]

    def _stand_by(self) -> None:
        if self._away:
            self._karmada.scheduler.pause()
            self._karmada.stop_manager()
        else:
            self._karmada.scheduler.resume()
            self._karmada.resume_manager()


def _failing(kind: str, amount: int) -> Failing:
    match kind:
        case "estimator_slow":
            return Failing(delay_ms=amount)
        case "estimator_wrong":
            return Failing(extra=amount)
        case _:
            return Failing(is_gone=True)
