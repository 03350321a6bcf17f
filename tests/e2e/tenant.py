"""One test's share of the plane: a namespace with a queue, and what is submitted there."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from fairway.kube.errors import Conflict, NotFound
from fairway.names import QUEUEING
from fairway.visibility import WorkloadView
from tests.e2e.objects import FAIRWAY, GPU, MERGE, POLICIES, STRICT, WORK, Binding, Obj
from tests.e2e.plane import Plane
from tests.e2e.watching import PATIENCE_S, eventually
from tests.e2e.workloads import LOCAL_QUEUE, Workload, policy


@dataclass(slots=True)
class Tenant:
    """``namespace`` has the LocalQueue ``main`` of a ClusterQueue and a flavor that are named as it is."""

    plane: Plane
    namespace: str
    submitted: dict[str, Workload] = field(default_factory=dict)

    async def begin(self, quota: int) -> None:
        """Make them all; the quota is in GPUs, of whatever cluster."""
        client = self.plane.karmada.client
        await self.begin_without_queue()
        await self.queueing("enabled")
        for path, kind, name, spec in (
            ("resourceflavors", "ResourceFlavor", self.namespace, {}),
            ("clusterqueues", "ClusterQueue", self.namespace, self._queue(quota)),
            (
                f"namespaces/{self.namespace}/localqueues",
                "LocalQueue",
                LOCAL_QUEUE,
                {"clusterQueue": self.namespace},
            ),
        ):
            made = {
                "apiVersion": "fairway.dev/v1alpha1",
                "kind": kind,
                "metadata": {"name": name},
                "spec": spec,
            }
            await client.post(f"{FAIRWAY}/{path}", made, dict, STRICT)

    async def begin_without_queue(self) -> None:
        """Make the namespace alone, without any label."""
        body = {"metadata": {"name": self.namespace}}
        await self.plane.karmada.client.post("/api/v1/namespaces", body, dict)

    async def quota(self, gpus: int) -> None:
        """Change it."""
        path = f"{FAIRWAY}/clusterqueues/{self.namespace}"
        await self.plane.karmada.client.patch(path, {"spec": self._queue(gpus)}, dict, content_type=MERGE)

    async def queueing(self, value: str | None) -> None:
        """How far queues reach into the namespace; None takes the label off."""
        path = f"/api/v1/namespaces/{self.namespace}"
        labels = {"metadata": {"labels": {QUEUEING: value}}}
        await self.plane.karmada.client.patch(path, labels, dict, content_type=MERGE)

    async def end(self) -> None:
        """Remove everything, and wait until its GPUs are free again."""
        client = self.plane.karmada.client
        # What waits goes first, so that nothing starts in the room of what ran.
        for name in sorted(self.submitted, key=self._is_placed):
            await self.delete(name)
        await self.empty()
        for path in (
            f"{FAIRWAY}/clusterqueues/{self.namespace}",
            f"{FAIRWAY}/resourceflavors/{self.namespace}",
            f"/api/v1/namespaces/{self.namespace}",
        ):
            with suppress(NotFound):
                await client.delete(path, dict)

    async def empty(self) -> None:
        """Wait until nothing is left of what was deleted; something that was not is waited for in vain."""
        bindings, members = self.plane.karmada.bindings, self.plane.members.values()
        await self.plane.changes.until(
            lambda: not list(bindings.within(self.namespace)), "bindings gone with their templates"
        )
        await self.plane.changes.until(
            lambda: not any(list(member.kubelet.pods.within(self.namespace)) for member in members),
            "pods gone with their workloads",
        )

    # What tenants do.

    async def submit(self, workload: Workload, placement: Obj, scheduler: str = "") -> str:
        """Its policy and its template; the key of the binding that Karmada is going to make."""
        await self._policy(workload, placement, scheduler)
        return await self.create(workload)

    async def submit_all(self, workloads: Sequence[Workload], placement: Obj) -> None:
        """All of them at the same moment, when their policies are there."""
        await asyncio.gather(*(self._policy(workload, placement) for workload in workloads))
        await asyncio.gather(*map(self.create, workloads))

    async def _policy(self, workload: Workload, placement: Obj, scheduler: str = "") -> None:
        path = f"{POLICIES}/namespaces/{self.namespace}/propagationpolicies"
        made = policy(self.namespace, workload, placement, scheduler)
        with suppress(Conflict):
            await self.plane.karmada.client.post(path, made, dict, STRICT)

    async def create(self, workload: Workload) -> str:
        """Its template alone, where there is a policy for it; the key of its binding."""
        path = workload.path(self.namespace)
        await self.plane.karmada.client.post(path, workload.body, dict, STRICT)
        self.submitted[workload.binding] = workload
        return self.key(workload)

    def key(self, workload: Workload) -> str:
        return f"{self.namespace}/{workload.binding}"

    async def scale(self, workload: Workload, replicas: int) -> None:
        """Change the template."""
        path = f"{workload.path(self.namespace)}/{workload.name}"
        await self.plane.karmada.client.patch(
            path, {"spec": {"replicas": replicas}}, dict, content_type=MERGE
        )

    async def delete(self, binding: str) -> None:
        """Take a template away, once it has arrived wherever it was placed.

        Karmada deletes in a cluster only what its cache of that cluster has: what was made there a moment ago
        would stay for ever.
        """
        workload = self.submitted.pop(binding)
        key = self.key(workload)
        await self.plane.changes.until(
            lambda: not self.knows(key) or self.binding(key).has_arrived,
            f"{key} seen by Karmada where it was placed",
        )
        with suppress(NotFound):
            await self.plane.karmada.client.delete(
                f"{workload.path(self.namespace)}/{workload.name}",
                dict,
                params={"propagationPolicy": "Background"},
            )

    async def finish(self, workload: Workload, *, well: bool = True) -> None:
        """Let a Job's pods end, in whatever cluster they run; all of them run already."""
        ended = 0
        for member in self.plane.members.values():
            ended += await member.kubelet.finish(self.namespace, workload.name, well=well)
        assert ended, f"{workload.name}: no pod runs"

    # What is seen.

    def binding(self, key: str) -> Binding:
        return self.plane.karmada.bindings.now[key]

    def knows(self, key: str) -> bool:
        """Is there such a binding?"""
        return key in self.plane.karmada.bindings.now

    def versions(self, key: str) -> list[Binding]:
        """The binding as it stood, in order."""
        return self.plane.karmada.bindings.versions(key)

    async def born_held(self, key: str) -> Binding:
        """Its first version, which must be held."""
        bindings = self.plane.karmada.bindings
        await self.plane.changes.until(lambda: bindings.past.get(key), f"binding {key}")
        first = bindings.past[key][0].object
        assert first.is_held, f"{key} was not held when it was made"
        assert not first.is_placed
        return first

    async def placed(self, key: str, within_s: float = PATIENCE_S) -> dict[str, int]:
        """Wait until Karmada has placed all of it; replicas by cluster."""
        await self.plane.karmada.bindings.until_of(
            key, lambda binding: binding.is_placed and not binding.is_held, "placed", within_s
        )
        return self.binding(key).shares

    async def running(self, workload: Workload, pods: int) -> dict[str, int]:
        """Wait until so many pods of it run; how many in each cluster."""
        await self.plane.changes.until(
            lambda: sum(self.pods(workload).values()) == pods,
            f"{pods} pods of {workload.name} running",
        )
        return self.pods(workload)

    def pods(self, workload: Workload | None = None) -> dict[str, int]:
        """Running pods by cluster, of one workload or of all, without clusters that have none."""
        name = workload.name if workload is not None else ""
        counts = {
            cluster: len(member.kubelet.running(self.namespace, name))
            for cluster, member in self.plane.members.items()
        }
        return {cluster: count for cluster, count in counts.items() if count}

    def pod_uids(self, workload: Workload) -> set[str]:
        """Of its running pods: a pod that was replaced has another."""
        return {
            pod.metadata.uid
            for member in self.plane.members.values()
            for pod in member.kubelet.running(self.namespace, workload.name)
        }

    async def waits_for(self, workload: Workload, *kinds: str, saying: str = "") -> str:
        """Wait until people are told that it waits for one of these; the text that they read."""
        texts: list[str] = []

        async def told() -> bool:
            waiting = [view.waiting for view in await self.views(workload) if view.waiting is not None]
            texts[:] = [f"{each.kind}: {each.text}" for each in waiting]
            return any(each.kind in kinds and saying in each.text for each in waiting)

        try:
            # What a cycle finds is written nowhere that could be watched.
            await eventually(told, f"{workload.name} waits for one of {kinds}")
        except AssertionError as error:
            raise AssertionError(f"{error}; people are told {texts}") from None
        return texts[0]

    async def views(self, workload: Workload) -> list[WorkloadView]:
        """What people are told of it."""
        # By the one that leads: the other one does not ask the estimators.
        dispatcher = self.plane.fairway.dispatchers[await self.plane.fairway.leader()]
        return await dispatcher.workloads(self.namespace, workload.name)

    async def told_to_be(self, workload: Workload, state: str) -> None:
        """Wait until people are told that it is in that state, and no other."""
        states: list[str] = []

        async def told() -> bool:
            states[:] = [view.state for view in await self.views(workload)]
            return states == [state]

        try:
            await eventually(told, f"{workload.name} told to be {state}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is told to be {states}") from None

    async def until_growth_is_held(self, workload: Workload, replicas: int) -> None:
        """Wait until asking for so many replicas would be held; nothing is asked for."""
        path = f"{WORK}/namespaces/{self.namespace}/resourcebindings/{workload.binding}"
        grown = {"spec": {"replicas": replicas}}

        async def held() -> bool:
            answer = await self.plane.karmada.client.patch(
                path, grown, Binding, params={"dryRun": "All"}, content_type=MERGE
            )
            return answer.is_held

        # Nothing tells when the API server has taken up what holds growth.
        await eventually(held, f"growth of {workload.name} held")

    def most_charged(self, since_s: float = 0.0) -> int:
        """The largest sum of charges of this namespace's bindings at any moment, in GPUs."""
        past = self.plane.karmada.bindings.past
        versions = sorted(
            (version.at_s, key, version.object.charge)
            for key, history in past.items()
            if key.startswith(f"{self.namespace}/")
            for version in history
        )
        charges: dict[str, int] = {}
        most = 0
        for at_s, key, charge in versions:
            charges[key] = charge
            if at_s >= since_s:
                most = max(most, sum(charges.values()))
        return most

    def admissions(self, key: str) -> int:
        """How often it was released with another record than before."""
        versions = self.versions(key)
        return sum(
            after.is_released and after.record != before.record for before, after in pairwise(versions)
        )

    def _is_placed(self, binding: str) -> bool:
        key = f"{self.namespace}/{binding}"
        return self.knows(key) and self.binding(key).is_placed

    def _queue(self, quota: int) -> Obj:
        resources = [{"name": GPU, "nominalQuota": str(quota)}]
        flavors = [{"name": self.namespace, "resources": resources}]
        return {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}
