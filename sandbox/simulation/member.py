"""A member cluster: controllers make pods, its kube-scheduler gives them nodes, they come to their end.

Everything is as a member really is, and not as anybody believes it to be: what estimators and Karmada's
status say of it, they take from here, late or wrong.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from sandbox.simulation.errors import Unavailable
from sandbox.simulation.nodes import Node, Scoring, available, chosen, priority_of
from sandbox.simulation.objects import Obj
from sandbox.simulation.pods import Owner, Phase, Pod, owner_key
from sandbox.simulation.templates import FAILS, NEVER_STARTS, Request
from sandbox.simulation.timeline import Timeline, Timer

SCHEDULE_MS = 5
FIRST_BACKOFF_MS = 1_000
LAST_BACKOFF_MS = 10_000
"""kube-scheduler's backoff of a pod that found no node."""
POD_GC_MS = 60_000
"""How long the pods of a node that was deleted stay; measured."""
UNREACHABLE_MS = 300_000
"""How long pods tolerate a node that is not ready."""
JOB_RETRY_MS = 10_000
JOB_SYNC_MS = (1_000, 1_600)
"""From the end of a pod to that of its Job in the status: its controller looks once a second."""


class Member:
    """``changed`` hears the key of a workload whose status changed. ``start_ms``: from bound to running.
    ``first_nodes``: those it began with.

    ``is_reachable``: whether Karmada and estimators reach its API server; what runs goes on without.
    """

    def __init__(
        self,
        timeline: Timeline,
        name: str,
        nodes: Iterable[Node],
        rng: random.Random,
        *,
        scoring: Scoring = Scoring.LEAST_ALLOCATED,
        start_ms: tuple[int, int] = (50, 500),
    ) -> None:
        self.timeline, self.name, self.scoring = timeline, name, scoring
        self.nodes: dict[str, Node] = {node.name: node for node in nodes}
        self.first_nodes = dict(self.nodes)
        self.owners: dict[str, Owner] = {}
        self.is_reachable = True
        self.changed: Callable[[str], None] = lambda key: None
        self._rng, self._start_ms = rng, start_ms
        self._pending: deque[Pod] = deque()
        self._leaving: set[Pod] = set()
        self._made = 0
        self._pass: Timer | None = None

    # What Karmada does to it.

    def apply(self, template: Obj, replicas: int | None = None, completions: int | None = None) -> None:
        """Create the workload, or make it so. Raises Unavailable."""
        self._reach()
        key = owner_key(template)
        owner = self.owners.get(key)
        if owner is None:
            owner = Owner(template, replicas, completions, self.timeline.now_ms)
            self.owners[key] = owner
        else:
            is_rolled = owner.kind == "Deployment" and _pods_of(owner.template) != _pods_of(template)
            owner.template, owner.replicas, owner.completions = template, replicas, completions
            if is_rolled:
                self._shrink(owner, owner.live)
        self._reconcile(owner)

    def delete(self, key: str) -> None:
        """Delete the workload, and with it its pods. Nothing if it is not there. Raises Unavailable."""
        self._reach()
        owner = self.owners.pop(key, None)
        if owner is not None:
            owner.is_deleted = True
            self._shrink(owner, owner.live)

    def status(self, key: str) -> Obj | None:
        """The workload's status; None if it is not there. Raises Unavailable."""
        self._reach()
        owner = self.owners.get(key)
        return None if owner is None else owner.status()

    # What is there.

    def pods(self) -> Iterable[Pod]:
        """All that are not gone."""
        yield from self._leaving
        for owner in self.owners.values():
            yield from owner.live

    def available(self, spec: Obj, request: Request) -> int:
        """How many more such pods fit, of this kind alone."""
        return available(self.nodes.values(), spec, request)

    def summary(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """What Karmada sums up: allocatable of all nodes, requests of bound pods, and of unbound ones."""
        allocatable: dict[str, int] = {}
        allocated: dict[str, int] = {}
        for node in self.nodes.values():
            for name, amount in node.allocatable.items():
                allocatable[name] = allocatable.get(name, 0) + amount
                allocated[name] = allocated.get(name, 0) + amount - node.free[name]
        allocating: dict[str, int] = {}
        for pod in self._pending:
            for name, amount in pod.request:
                allocating[name] = allocating.get(name, 0) + amount
        return allocatable, allocated, allocating

    # What happens to it.

    def add_node(self, node: Node) -> None:
        """A node joins."""
        self.nodes[node.name] = node
        self._room_came()

    def remove_node(self, name: str) -> None:
        """A node is deleted; its pods are collected as garbage a minute later."""
        node = self.nodes.pop(name)
        self.timeline.after(POD_GC_MS, lambda: self._lose_pods(node))

    def fail_node(self, name: str) -> None:
        """A node stops answering; after five minutes its pods are given up."""
        node = self.nodes[name]
        node.is_ready = False
        self.timeline.after(UNREACHABLE_MS, lambda: None if node.is_ready else self._lose_pods(node))

    def recover_node(self, name: str) -> None:
        """It answers again."""
        self.nodes[name].is_ready = True
        self._room_came()

    def cordon(self, name: str, is_cordoned: bool) -> None:
        """An administrator keeps new pods away from a node, or lets them come again."""
        self.nodes[name].is_cordoned = is_cordoned
        self._room_came()

    def _reach(self) -> None:
        if not self.is_reachable:
            raise Unavailable(f"cluster {self.name} cannot be reached")

    # Its controllers.

    def _reconcile(self, owner: Owner) -> None:
        if owner.kind == "Job" and owner.is_complete and not (owner.finished or owner.live):
            # Nothing is left to do, as where Karmada gave it none of the completions.
            owner.finished = "Complete"
            self.timeline.after(self._rng.randint(*JOB_SYNC_MS), lambda: self._told(owner))
        for pod_set, count in owner.wanted():
            live = [pod for pod in owner.live if pod.set_name == pod_set.name]
            if len(live) > count:
                self._shrink(owner, owner.by_removal(pod_set.name)[: len(live) - count])
            elif len(live) < count and (owner.retry is None or not owner.retry.is_set):
                request, spec = pod_set.request, pod_set.template.get("spec") or {}
                for _ in range(count - len(live)):
                    self._made += 1
                    pod = Pod(self._made, owner, pod_set.name, spec, request)
                    owner.pods.append(pod)
                    self._pending.append(pod)
                self._schedule()
        self.changed(owner.key)

    def _shrink(self, owner: Owner, pods: list[Pod]) -> None:
        grace_ms = owner.fate.grace_ms
        for pod in pods:
            if pod.timer is not None:
                pod.timer.cancel()
            if pod.node is None:
                self._gone(pod)
                continue
            pod.phase = Phase.TERMINATING
            self._leaving.add(pod)
            pod.timer = self.timeline.after(grace_ms, partial(self._gone, pod))

    def _gone(self, pod: Pod) -> None:
        self._leaving.discard(pod)
        if pod in pod.owner.pods:
            pod.owner.pods.remove(pod)
        node, pod.node = pod.node, None
        if node is None:
            if pod in self._pending:
                self._pending.remove(pod)
            return
        node.release(pod.request)
        self._room_came()

    def _lose_pods(self, node: Node) -> None:
        for pod in [pod for pod in self.pods() if pod.node is node]:
            if pod.phase is Phase.TERMINATING:
                self._gone(pod)
            else:
                self._ended(pod, is_success=False)

    def _ended(self, pod: Pod, *, is_success: bool) -> None:
        owner = pod.owner
        if pod.timer is not None:
            pod.timer.cancel()
        self._gone(pod)
        if owner.kind == "Deployment":
            self._reconcile(owner)
            return
        if is_success:
            owner.done[pod.set_name] = owner.done.get(pod.set_name, 0) + 1
            if owner.is_complete:
                owner.finished = "Complete"
        else:
            owner.failed += 1
            if owner.failed > owner.backoff_limit:
                owner.finished = "Failed"
            else:
                delay_ms = JOB_RETRY_MS << min(owner.failed - 1, 5)
                owner.retry = self.timeline.after(delay_ms, lambda: self._reconcile(owner))
        if owner.finished:
            self._shrink(owner, owner.live)
        self.timeline.after(self._rng.randint(*JOB_SYNC_MS), lambda: self._told(owner))

    def _told(self, owner: Owner) -> None:
        owner.told = owner.finished
        self._reconcile(owner)

    # Its kube-scheduler and kubelets.

    def _room_came(self) -> None:
        if self._pending:
            self._schedule()

    def _schedule(self, after_ms: int = SCHEDULE_MS) -> None:
        at_ms = self.timeline.now_ms + after_ms
        if self._pass is not None and self._pass.is_set:
            if self._pass.at_ms <= at_ms:
                return
            self._pass.cancel()
        self._pass = self.timeline.at(at_ms, self._look)

    def _look(self) -> None:
        now_ms = self.timeline.now_ms
        waits: deque[Pod] = deque()
        refused: set[tuple[int, Request]] = set()
        retry_ms: int | None = None
        for pod in sorted(self._pending, key=lambda pod: (-priority_of(pod.spec), pod.number)):
            if pod.retry_ms > now_ms:
                retry_ms = pod.retry_ms if retry_ms is None else min(retry_ms, pod.retry_ms)
                waits.append(pod)
                continue
            shape = (id(pod.spec), pod.request)
            node = None
            if shape not in refused:
                node = chosen(self.nodes.values(), pod.spec, pod.request, self.scoring, self._rng)
            if node is None:
                refused.add(shape)
                pod.attempts += 1
                pod.retry_ms = now_ms + min(LAST_BACKOFF_MS, FIRST_BACKOFF_MS << min(pod.attempts - 1, 10))
                waits.append(pod)
            else:
                self._bind(pod, node)
        self._pending = waits
        if retry_ms is not None:
            # Room that came while they backed off is theirs when they are through.
            self._schedule(retry_ms - now_ms)

    def _bind(self, pod: Pod, node: Node) -> None:
        node.hold(pod.request)
        pod.node, pod.phase = node, Phase.STARTING
        if pod.owner.fate.ends != NEVER_STARTS:
            delay_ms = self._rng.randint(*self._start_ms)
            pod.timer = self.timeline.after(delay_ms, lambda: self._run(pod))

    def _run(self, pod: Pod) -> None:
        pod.phase = Phase.RUNNING
        fate = pod.owner.fate
        if fate.runs_ms is not None:
            is_success = fate.ends != FAILS
            pod.timer = self.timeline.after(fate.runs_ms, lambda: self._ended(pod, is_success=is_success))
        self.changed(pod.owner.key)


def _pods_of(template: Obj) -> Obj:
    found: Obj = template["spec"].get("template") or {}
    return found
