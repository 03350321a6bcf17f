"""Clusters as Karmada reports them: ready or not, what they have in all, and what happens when one is lost.

The status is written every ten seconds by default, so the general estimate is up to ten seconds old. A
member that does not answer is NotReady after half a minute, and gets a taint. With failover (off by default,
gate Failover) its workloads are evicted five minutes later: out of spec.clusters, with a graceful eviction
task.
"""

import random
from collections.abc import Mapping
from functools import partial

from fairway.resources import format_amount
from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError, NotFound
from sandbox.simulation.karmada.detector import BINDINGS
from sandbox.simulation.karmada.execution import Execution
from sandbox.simulation.member import Member
from sandbox.simulation.objects import Obj, at, condition, rfc3339, with_condition

REPORT_MS = 10_000
FAILURE_MS = 30_000
TOLERATION_MS = 300_000
GRACE_MS = 600_000
_NOT_READY: Obj = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}


class Clusters:
    """``has_failover``: whether workloads of a lost cluster are evicted; ``purge_mode`` of their tasks."""

    def __init__(
        self,
        client: Client,
        rng: random.Random,
        members: Mapping[str, Member],
        execution: Execution,
        *,
        report_ms: int = REPORT_MS,
        has_failover: bool = False,
        purge_mode: str = "Gracefully",
    ) -> None:
        self.has_failover, self._purge_mode = has_failover, purge_mode
        self._report_ms = report_ms
        self._client, self._timeline, self._rng = client, client.timeline, rng
        self._members, self._execution = members, execution
        self._failing_since: dict[str, int] = {}

    def join(self, labels: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Create the Cluster objects, as they are now, and report from now on."""
        for name, member in self._members.items():
            metadata: Obj = {"name": name, "labels": dict((labels or {}).get(name, {}))}
            status = {"conditions": [self._ready(True)], **_summary(member)}
            self._client.create(
                "clusters", {"metadata": metadata, "spec": {"syncMode": "Push"}, "status": status}
            )
            self._timeline.after(self._rng.randint(1, self._report_ms), partial(self._report, name))

    def _report(self, name: str) -> None:
        self._timeline.after(self._report_ms, lambda: self._report(name))
        member, now_ms = self._members[name], self._timeline.now_ms
        if member.is_reachable:
            was_failing = self._failing_since.pop(name, None) is not None
            is_ready = True
        else:
            since_ms = self._failing_since.setdefault(name, now_ms)
            if now_ms - since_ms < FAILURE_MS:
                return
            was_failing, is_ready = False, False
        try:
            self._write(name, member, is_ready)
            evicts_ms = self._failing_since.get(name, now_ms) + FAILURE_MS + TOLERATION_MS
            if not is_ready and self.has_failover and now_ms >= evicts_ms:
                self._evict(name)
        except NotFound:
            return
        except ApiError:
            # The next report says it again.
            return
        if was_failing:
            self._execution.found(name)

    def _write(self, name: str, member: Member, is_ready: bool) -> None:
        cluster = self._client.get("clusters", name)
        before = condition(cluster, "Ready")
        status: Obj = {**at(cluster, "status", default={}), **(_summary(member) if is_ready else {})}
        stated = self._ready(is_ready)
        if before is None or before["status"] != stated["status"]:
            status["conditions"] = with_condition(cluster, stated)
        self._client.update("clusters", {**cluster, "status": status}, status=True)
        taints: list[Obj] = at(cluster, "spec", "taints", default=[])
        others = [taint for taint in taints if taint.get("key") != _NOT_READY["key"]]
        wanted = others if is_ready else [*others, _NOT_READY]
        if wanted != taints:
            self._client.patch("clusters", name, {"spec": {"taints": wanted}})

    def _ready(self, is_ready: bool) -> Obj:
        return {
            "type": "Ready",
            "status": "True" if is_ready else "False",
            "reason": "ClusterReady" if is_ready else "ClusterNotReachable",
            "lastTransitionTime": rfc3339(self._timeline.now_ms),
        }

    def _evict(self, name: str) -> None:
        """What Karmada's taint manager does, one binding after the other."""
        for binding in self._client.list(BINDINGS)[0]:
            spec = binding["spec"]
            shares: list[Obj] = spec.get("clusters") or []
            lost = next((share for share in shares if share["name"] == name), None)
            if lost is None:
                continue
            task: Obj = {
                "fromCluster": name,
                "purgeMode": self._purge_mode,
                "reason": "TaintUntolerated",
                "producer": "TaintManager",
                "creationTimestamp": rfc3339(self._timeline.now_ms),
            }
            if lost.get("replicas") is not None:
                task["replicas"] = lost["replicas"]
            tasks = [*(spec.get("gracefulEvictionTasks") or ()), task]
            changed = {**spec, "clusters": [share for share in shares if share is not lost]}
            changed["gracefulEvictionTasks"] = tasks
            self._client.update(BINDINGS, {**binding, "spec": changed})
            key = f"{binding['metadata'].get('namespace', '')}/{binding['metadata']['name']}".lstrip("/")
            self._timeline.after(GRACE_MS, partial(self._task_over, key, name))

    def _task_over(self, key: str, cluster: str) -> None:
        """A task ends after ten minutes, whatever became of it."""
        try:
            binding = self._client.get(BINDINGS, key)
            tasks: list[Obj] = at(binding, "spec", "gracefulEvictionTasks", default=[])
            left = [task for task in tasks if task["fromCluster"] != cluster]
            if left != tasks:
                spec = {**binding["spec"], "gracefulEvictionTasks": left}
                self._client.update(BINDINGS, {**binding, "spec": spec})
        except NotFound:
            return
        except ApiError:
            self._timeline.after(1_000, lambda: self._task_over(key, cluster))


def _summary(member: Member) -> Obj:
    allocatable, allocated, allocating = (
        {name: format_amount(name, amount) for name, amount in part.items()} for part in member.summary()
    )
    summary = {"allocatable": allocatable, "allocated": allocated, "allocating": allocating}
    ready = sum(node.is_ready for node in member.nodes.values())
    return {
        "resourceSummary": summary,
        "nodeSummary": {"totalNum": len(member.nodes), "readyNum": ready},
    }
