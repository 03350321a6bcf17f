"""A Karmada installation with its members, and a hand that holds and releases: no dispatcher."""

from collections.abc import Mapping, Sequence

from sandbox.simulation.fleet import Fleet
from sandbox.simulation.karmada.control_plane import Limits
from sandbox.simulation.karmada.policies import placed, policy
from sandbox.simulation.objects import Obj, at, condition
from sandbox.simulation.templates import GPU, RESOURCES, deployment, fated, job, pod_template

KINDS = [(version, kind) for kind, (version, _) in RESOURCES.items()]
TEAM = "team"


class Installation(Fleet):
    """``gpus``: of the nodes of each member. All bindings are suspended at birth."""

    def __init__(
        self,
        gpus: Mapping[str, Sequence[int]],
        *,
        seed: int = 1,
        placement: Obj | None = None,
        limits: Limits | None = None,
        has_failover: bool = False,
        asks: bool = True,
        policy_spec: Obj | None = None,
    ) -> None:
        super().__init__(gpus, seed=seed, hold=_hold, asks=asks, limits=limits, has_failover=has_failover)
        everything = policy("all", TEAM, KINDS, placed() if placement is None else placement)
        everything["spec"] |= policy_spec or {}
        self.api.create("propagationpolicies", everything)
        self.start()
        self.wait(100)

    # People.

    def job(
        self,
        name: str,
        pods: int = 1,
        gpus: int = 1,
        *,
        runs_ms: int | None = None,
        ends: str = "completes",
    ) -> str:
        """Create a Job; the key of its binding, once that is there."""
        made = job(name, TEAM, pod_template({GPU: gpus}), pods=pods)
        made["metadata"]["annotations"] = fated(runs_ms, ends)
        return self._born(made)

    def deployment(self, name: str, replicas: int = 1, gpus: int = 1, *, grace_ms: int = 0) -> str:
        """Create a Deployment; the key of its binding, once that is there."""
        made = deployment(name, TEAM, pod_template({GPU: gpus}), replicas=replicas)
        made["metadata"]["annotations"] = fated(grace_ms=grace_ms)
        return self._born(made)

    def _born(self, made: Obj) -> str:
        key = self.submit(made)
        self.until(lambda: self.binding(key) is not None)
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

    def stated(self, key: str) -> Obj:
        """The binding as it is on the server."""
        return self.api.collection("resourcebindings").objects[key]

    def clusters(self, key: str) -> dict[str, int]:
        """Replicas by cluster, as placed."""
        return {
            one["name"]: one.get("replicas", 0)
            for one in at(self.stated(key), "spec", "clusters", default=())
        }

    def scheduled(self, key: str) -> str:
        """The reason of its condition Scheduled; empty where there is none."""
        found = condition(self.stated(key), "Scheduled")
        return "" if found is None else str(found["reason"])

    def is_settled(self, key: str) -> bool:
        """Whether the scheduler has dealt with it as it is now."""
        binding = self.stated(key)
        observed: int = at(binding, "status", "schedulerObservedGeneration", default=0)
        return observed == int(binding["metadata"]["generation"])

    def statuses(self, key: str) -> dict[str, Obj]:
        """The aggregated status by cluster."""
        items = at(self.stated(key), "status", "aggregatedStatus", default=())
        return {item["clusterName"]: item.get("status") or {} for item in items}

    def ended(self, key: str) -> set[str]:
        """Types of the conditions that its workload has, in any cluster."""
        return {one["type"] for status in self.statuses(key).values() for one in status.get("conditions", ())}

    def running(self, cluster: str) -> int:
        """Pods there that have a node, those on their way out left aside."""
        return sum(
            pod.node is not None for owner in self.members[cluster].owners.values() for pod in owner.live
        )


def _hold(operation: str, before: Obj | None, after: Obj) -> Obj:
    if operation != "CREATE":
        return after
    return {**after, "spec": {**after["spec"], "suspension": {"scheduling": True}}}
