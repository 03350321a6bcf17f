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
        """See `Models`. ``amount``: how many times slower, milliseconds, pods too many, or which node."""
        match kind:
            case "karmada_slow":
                throttle, usual, times = self._karmada.scheduler.throttle, Limits(), max(1, amount)
                throttle.qps = max(1, usual.scheduler_qps // times) if begins else usual.scheduler_qps
                throttle.burst = max(1, usual.scheduler_burst // times) if begins else usual.scheduler_burst
            case "karmada_away":
                self._away += 1 if begins else -1
                self._stand_by()
            case "cluster_lost":
                for member in self._named(whom):
                    member.is_reachable = not begins
            case "estimator_frozen":
                for member in self._named(whom):
                    if begins:
                        self._estimators.freeze(member.name)
                    else:
                        self._estimators.failing[member.name] = Failing()
            case "node_failed" | "node_deleted" | "node_cordoned":
                return sum(_node(kind, member, amount, begins) for member in self._named(whom)) > 0
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


def _node(kind: str, member: Member, number: int, begins: bool) -> bool:
    """A node fails, goes or is cordoned, or the trouble with it is over; whether there is that node.

    ``number``: counted around, so that every number means one.
    """
    name = tuple(member.first_nodes)[number % len(member.first_nodes)]
    if kind == "node_deleted":
        if begins and name in member.nodes:
            member.remove_node(name)
            return True
        if not begins and name not in member.nodes:
            member.add_node(member.first_nodes[name].renewed())
        return not begins
    node = member.nodes.get(name)
    if node is None:
        return False
    if kind == "node_cordoned":
        member.cordon(name, begins)
    elif begins:
        member.fail_node(name)
    else:
        member.recover_node(name)
    return True


def _failing(kind: str, amount: int) -> Failing:
    match kind:
        case "estimator_slow":
            return Failing(delay_ms=amount)
        case "estimator_wrong":
            return Failing(extra=amount)
        case _:
            return Failing(is_gone=True)
