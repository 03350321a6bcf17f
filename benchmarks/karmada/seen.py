"""What is seen of workloads on a fleet over time: who waits, what is used, what is held for nothing."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tests.e2e.objects import Binding, Pod
from tests.e2e.workloads import Workload


@dataclass(slots=True)
class Submitted:
    """One workload. ``size``: what it is counted among. ``pods``: how many by the GPUs that each asks for.

    It is created ``at_s`` after the beginning, and ends ``runs_s`` after all of it has been running. All
    other times are of the monotonic clock, None while there is none.
    """

    workload: Workload
    team: str
    size: str
    pods: Mapping[int, int]
    at_s: float
    runs_s: float
    created_s: float | None = None
    started_s: float | None = None

    @property
    def gpus(self) -> int:
        """Of all its pods."""
        return sum(gpus * pods for gpus, pods in self.pods.items())

    @property
    def count(self) -> int:
        """How many pods it has."""
        return sum(self.pods.values())

    @property
    def key(self) -> str:
        """Of its binding."""
        return f"{self.team}/{self.workload.binding}"


@dataclass(frozen=True, slots=True)
class State:
    """The pods of one workload, and the GPUs that are charged for it."""

    bound: int
    held: int
    running: int
    charged: int


def states(pods: Iterable[Pod], bindings: Mapping[str, Binding], of: Iterable[Submitted]) -> dict[str, State]:
    """By the key of the binding; of all that were created. Pods that ended count as bound and running."""
    counted: dict[tuple[str, str], list[int]] = {}
    for pod in pods:
        name = (pod.metadata.labels or {}).get("app", "")
        sums = counted.setdefault((pod.metadata.namespace or "", name), [0, 0, 0])
        sums[0] += bool(pod.spec.node_name)
        sums[1] += pod.gpus * pod.holds_node
        sums[2] += pod.runs or pod.status.phase == "Succeeded"
    found: dict[str, State] = {}
    for one in of:
        if one.created_s is not None:
            bound, held, running = counted.get((one.team, one.workload.name), (0, 0, 0))
            binding = bindings.get(one.key)
            charged = binding.charge if binding is not None and binding.is_released else 0
            found[one.key] = State(bound, held, running, charged)
    return found


@dataclass(slots=True)
class Sums:
    """GPU-seconds, but for the seconds themselves.

    ``used``: of pods with nodes. ``unbound``: charged for workloads not all of whose pods have had nodes, and
    not held by pods. ``half``: held by pods of these. ``ended``: charged for work that has ended. ``crumbs``:
    free on nodes of which some are in use, in the ``whole_s`` in which a pod waited that needs a whole node.
    ``waiting_s``, ``used_waiting``: while anything waited. ``half_for_s``: for how long at a time, at most,
    pods of a workload held nodes without the others, by its key.
    """

    seconds: float = 0.0
    used: float = 0.0
    waiting_s: float = 0.0
    used_waiting: float = 0.0
    whole_s: float = 0.0
    crumbs: float = 0.0
    charged: float = 0.0
    unbound: float = 0.0
    half: float = 0.0
    ended: float = 0.0
    half_for_s: dict[str, float] = field(default_factory=dict)
    _half_since_s: dict[str, float] = field(default_factory=dict)

    def add(
        self,
        now_s: float,
        took_s: float,
        of: Collection[Submitted],
        found: Mapping[str, State],
        broken: int,
        whole: int,
    ) -> None:
        """What was so for the last ``took_s``. ``broken``: free GPUs on nodes that are used in part.

        ``whole``: GPUs of a whole node.
        """
        held = sum(state.held for state in found.values())
        waiting = [one for one in of if one.created_s is not None and one.started_s is None]
        self.seconds += took_s
        self.used += took_s * held
        if waiting:
            self.waiting_s += took_s
            self.used_waiting += took_s * held
        if any(whole in one.pods for one in waiting):
            self.whole_s += took_s
            self.crumbs += took_s * broken
        for one in of:
            state = found.get(one.key)
            if state is None:
                continue
            unused = took_s * max(0, state.charged - state.held)
            self.charged += took_s * state.charged
            if one.started_s is not None or state.bound >= one.count:
                self.ended += unused
                self._half_since_s.pop(one.key, None)
                continue
            self.unbound += unused
            self.half += took_s * state.held
            if state.held:
                since_s = self._half_since_s.setdefault(one.key, now_s - took_s)
                self.half_for_s[one.key] = max(self.half_for_s.get(one.key, 0.0), now_s - since_s)
            else:
                self._half_since_s.pop(one.key, None)


def broken_gpus(pods: Iterable[Pod], nodes: Mapping[str, int]) -> int:
    """GPUs that are free on nodes of which some are in use; ``nodes``: what each of a cluster has."""
    used = dict.fromkeys(nodes, 0)
    for pod in pods:
        if pod.holds_node:
            used[pod.spec.node_name] += pod.gpus
    return sum(nodes[name] - taken for name, taken in used.items() if taken > 0)
