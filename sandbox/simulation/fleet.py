"""A whole installation: one control plane, its members with their estimators, and dispatchers before it.

What `World` tells from a story, this one leaves to whoever holds it: workloads of every kind, members with
nodes of their own, Karmada as it was measured.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from fairway.accelerators.builtin import builtin_catalogue
from sandbox.simulation.api_server import Admission, ApiServer
from sandbox.simulation.estimators import Estimators
from sandbox.simulation.following import Decoder
from sandbox.simulation.gate import gate
from sandbox.simulation.karmada.control_plane import Karmada, Limits
from sandbox.simulation.member import Member
from sandbox.simulation.nodes import Scoring, gpu_nodes
from sandbox.simulation.objects import Obj, rfc3339
from sandbox.simulation.replica import Replica
from sandbox.simulation.templates import GPU, RESOURCES
from sandbox.simulation.timeline import EPOCH_MS, Timeline

FLAVOR = "gpus"


class Fleet:
    """``gpus``: of the nodes of each member. ``dispatchers``: how many; without any, ``hold`` may hold.

    ``asks``: whether karmada-scheduler asks the estimators; a dispatcher does. ``preplaces``, ``guides``: see
    `Replica`.
    """

    def __init__(
        self,
        gpus: Mapping[str, Sequence[int]],
        *,
        seed: int = 1,
        dispatchers: int = 0,
        hold: Admission | None = None,
        asks: bool = True,
        limits: Limits | None = None,
        scoring: Scoring = Scoring.LEAST_ALLOCATED,
        start_ms: tuple[int, int] = (50, 500),
        has_failover: bool = False,
        preplaces: bool = True,
        guides: bool = True,
    ) -> None:
        rng = random.Random(seed)

        def chance() -> random.Random:
            return random.Random(rng.random())

        self.timeline = Timeline()
        self.api = ApiServer(self.timeline)
        self.members = {
            name: Member(
                self.timeline, name, gpu_nodes(name, *nodes), chance(), scoring=scoring, start_ms=start_ms
            )
            for name, nodes in gpus.items()
        }
        self.estimators = Estimators(self.members, chance())
        self.karmada = Karmada(
            self.api,
            self.members,
            chance(),
            accurate=self.estimators if asks else None,
            limits=limits or Limits(),
            has_failover=has_failover,
        )
        self.replicas: dict[str, Replica] = {}
        if dispatchers:
            catalogue, decoder = builtin_catalogue(), Decoder()
            hold = hold or gate(catalogue, lambda: rfc3339(self.timeline.now_ms))
            for number in range(dispatchers):
                name = f"dispatcher-{number}"
                self.replicas[name] = Replica(
                    name,
                    self.api,
                    catalogue,
                    decoder,
                    chance(),
                    estimators=self.estimators,
                    preplaces=preplaces,
                    guides=guides,
                )
        if hold is not None:
            self.api.admission["resourcebindings"] = [hold]
        self.api.create("resourceflavors", {"metadata": {"name": FLAVOR}, "spec": {}})

    def start(self) -> None:
        """Let everything come up."""
        self.karmada.start()
        for number, replica in enumerate(self.replicas.values()):
            self.timeline.after(10 * number, replica.start)

    @property
    def now_ms(self) -> int:
        """Since the beginning."""
        return self.timeline.now_ms - EPOCH_MS

    def wait(self, for_ms: int) -> None:
        """Time passes."""
        self.timeline.run_until(self.timeline.now_ms + for_ms)

    def until(self, holds: Callable[[], bool], within_ms: int = 600_000) -> int:
        """Time passes until the condition holds; how long that took. Raises TimeoutError."""
        began_ms = self.timeline.now_ms
        while not holds():
            if self.timeline.now_ms - began_ms > within_ms or not self.timeline.step():
                raise TimeoutError(f"not within {within_ms} ms")
        return self.timeline.now_ms - began_ms

    # People.

    def submit(self, workload: Obj, user: str = "tenant") -> str:
        """Create a workload; the key that its binding will have."""
        self.api.create(RESOURCES[workload["kind"]][1], workload, user=user)
        metadata = workload["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}-{workload['kind'].lower()}"

    def queue(
        self, name: str, namespaces: Sequence[str] = (), *, gpus: int, parent: str = "", **spec: object
    ) -> None:
        """A ClusterQueue with so many GPUs, and the LocalQueues of its name that lead to it."""
        quota = {"name": GPU, "nominalQuota": str(gpus)}
        group = {"coveredResources": [GPU], "flavors": [{"name": FLAVOR, "resources": [quota]}]}
        stated: Obj = {"resourceGroups": [group], **spec}
        if parent:
            stated["parent"] = parent
        self.api.create("clusterqueues", {"metadata": {"name": name}, "spec": stated})
        for namespace in namespaces:
            metadata = {"namespace": namespace, "name": name}
            self.api.create("localqueues", {"metadata": metadata, "spec": {"clusterQueue": name}})

    # What there is.

    def binding(self, key: str) -> Obj | None:
        """As it is on the server; None where there is none."""
        return self.api.collection("resourcebindings").objects.get(key)

    def free(self, cluster: str) -> int:
        """GPUs that no pod holds."""
        return sum(node.free[GPU] for node in self.members[cluster].nodes.values())

    @property
    def used(self) -> int:
        """GPUs of all members that pods hold."""
        return sum(
            node.allocatable[GPU] - node.free[GPU]
            for member in self.members.values()
            for node in member.nodes.values()
        )
