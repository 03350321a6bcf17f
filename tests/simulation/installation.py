"""A Karmada installation with its members, and a hand that holds and releases: no dispatcher."""

import random
from collections.abc import Callable, Mapping, Sequence

from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.estimators import Estimators
from sandbox.simulation.karmada.control_plane import Karmada, Limits
from sandbox.simulation.karmada.policies import placed, policy
from sandbox.simulation.member import Member
from sandbox.simulation.nodes import gpu_nodes
from sandbox.simulation.objects import Obj, at, condition
from sandbox.simulation.templates import GPU, RESOURCES, deployment, fated, job, pod_template
from sandbox.simulation.timeline import EPOCH_MS, Timeline

KINDS = [(version, kind) for kind, (version, _) in RESOURCES.items()]
TEAM = "team"


class Installation:
    """``gpus``: of the nodes of each member. ``holds``: whether bindings are suspended at birth."""

    def __init__(
        self,
        gpus: Mapping[str, Sequence[int]],
        *,
        seed: int = 1,
        holds: bool = True,
        placement: Obj | None = None,
        limits: Limits | None = None,
        has_failover: bool = False,
        estimators: bool = True,
        policy_spec: Obj | None = None,
    ) -> None:
        rng = random.Random(seed)
        self.timeline = Timeline()
        self.api = ApiServer(self.timeline)
        self.members = {
            name: Member(self.timeline, name, gpu_nodes(name, *nodes), random.Random(rng.random()))
            for name, nodes in gpus.items()
        }
        self.estimators = Estimators(self.members, random.Random(rng.random()))
        self.karmada = Karmada(
            self.api,
            self.members,
            random.Random(rng.random()),
            accurate=self.estimators if estimators else None,
            limits=limits or Limits(),
            has_failover=has_failover,
        )
        if holds:
            self.api.admission["resourcebindings"] = [_hold]
        everything = policy("all", TEAM, KINDS, placed() if placement is None else placement)
        everything["spec"] |= policy_spec or {}
        self.api.create("propagationpolicies", everything)
        self.karmada.start()
        self.wait(100)

    @property
    def now_ms(self) -> int:
        """Since the beginning."""
        return self.timeline.now_ms - EPOCH_MS

    def wait(self, for_ms: int) -> None:
        """Time passes."""
        self.timeline.run_until(self.timeline.now_ms + for_ms)

    def until(self, holds: Callable[[], bool], within_ms: int = 600_000) -> int:
        """Time passes until the condition holds; how long that took."""
        began_ms = self.timeline.now_ms
        while not holds():
            assert self.timeline.now_ms - began_ms <= within_ms, "it never came to that"
            self.timeline.step()
        return self.timeline.now_ms - began_ms

    # People.

    def job(
        self,
        name: str,
        pods: int = 1,
        gpus: int = 1,
        *,
        runs_ms: int | None = None,
        ends: str = "completes",
        **more: int,
    ) -> str:
        """Create a Job; the key of its binding."""
        made = job(name, TEAM, pod_template({GPU: gpus}), pods=pods)
        made["metadata"]["annotations"] = fated(runs_ms, ends, **more)
        return self._create(made)

    def deployment(self, name: str, replicas: int = 1, gpus: int = 1, *, grace_ms: int = 0) -> str:
        """Create a Deployment; the key of its binding."""
        made = deployment(name, TEAM, pod_template({GPU: gpus}), replicas=replicas)
        made["metadata"]["annotations"] = fated(grace_ms=grace_ms)
        return self._create(made)

    def _create(self, made: Obj) -> str:
        resource = RESOURCES[made["kind"]][1]
        self.api.create(resource, made)
        key = f"{TEAM}/{made['metadata']['name']}-{made['kind'].lower()}"
        self.until(lambda: key in self.api.collection("resourcebindings").objects)
        return key

    # Whoever dispatches.

    def release(self, key: str, **spec: object) -> None:
        """Let Karmada have it."""
        self.patch(key, {"suspension": {"scheduling": False}, **spec})

    def suspend(self, key: str, **spec: object) -> None:
        """Hold it (again)."""
        self.patch(key, {"suspension": {"scheduling": True}, **spec})

    def evict(self, key: str) -> None:
        """Hold it and take its clusters."""
        self.suspend(key, clusters=[])

    def patch(self, key: str, spec: Obj) -> None:
        """A merge patch of its spec."""
        self.api.patch("resourcebindings", key, {"spec": spec}, user="dispatcher")

    # What there is.

    def binding(self, key: str) -> Obj:
        """As it is on the server."""
        return self.api.collection("resourcebindings").objects[key]

    def clusters(self, key: str) -> dict[str, int]:
        """Replicas by cluster, as placed."""
        return {
            one["name"]: one.get("replicas", 0)
            for one in at(self.binding(key), "spec", "clusters", default=())
        }

    def scheduled(self, key: str) -> str:
        """The reason of its condition Scheduled; empty where there is none."""
        found = condition(self.binding(key), "Scheduled")
        return "" if found is None else str(found["reason"])

    def is_settled(self, key: str) -> bool:
        """Whether the scheduler has dealt with it as it is now."""
        binding = self.binding(key)
        observed: int = at(binding, "status", "schedulerObservedGeneration", default=0)
        return observed == int(binding["metadata"]["generation"])

    def statuses(self, key: str) -> dict[str, Obj]:
        """The aggregated status by cluster."""
        items = at(self.binding(key), "status", "aggregatedStatus", default=())
        return {item["clusterName"]: item.get("status") or {} for item in items}

    def ended(self, key: str) -> set[str]:
        """Types of the conditions that its workload has, in any cluster."""
        return {one["type"] for status in self.statuses(key).values() for one in status.get("conditions", ())}

    def running(self, cluster: str) -> int:
        """Pods there that have a node, those on their way out left aside."""
        return sum(
            pod.node is not None for owner in self.members[cluster].owners.values() for pod in owner.live
        )

    def free(self, cluster: str) -> int:
        """GPUs that no pod holds."""
        return sum(node.free[GPU] for node in self.members[cluster].nodes.values())


def _hold(operation: str, before: Obj | None, after: Obj) -> Obj:
    if operation != "CREATE":
        return after
    return {**after, "spec": {**after["spec"], "suspension": {"scheduling": True}}}
