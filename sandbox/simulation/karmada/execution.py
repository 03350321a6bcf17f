"""From a binding's clusters to objects in members, and from their status back: four controllers, one limit.

Karmada's controller-manager does it with one throttled client: 4.5 objects a second reach the members at its
default 40 requests a second, about 9 to each, and nothing is refused, only later; so what ends is
known late when much is begun, and the other way round. In quiet all of it takes tens of
milliseconds: a member object 24-41 ms after the placement, the end of a Job 10 ms after it.

A Work goes before the pods do: they hold what they have for their grace period.
"""

import random
from collections.abc import Callable, Iterable, Mapping

from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError, Conflict, NotFound
from sandbox.simulation.karmada.controller import Controller
from sandbox.simulation.karmada.detector import BINDINGS, Detector
from sandbox.simulation.karmada.informer import Informer
from sandbox.simulation.karmada.overriding import OVERRIDE_POLICIES, overridden, owned_by
from sandbox.simulation.karmada.throttle import Throttle
from sandbox.simulation.karmada.works import (
    Share,
    Work,
    aggregated,
    fully_applied,
    is_dispatching_suspended,
    shares,
    template_status,
)
from sandbox.simulation.member import Member
from sandbox.simulation.objects import Obj, at, condition, key_of, rfc3339, with_condition
from sandbox.simulation.pods import owner_key
from sandbox.simulation.templates import RESOURCES

GC_MS = 300
WORK_COST = 2_300
APPLY_COST = 3_000
DELETE_COST = 900
COLLECT_COST = 2_000
AGGREGATE_COST = 2_200
"""Thousandths of a request: about 9 from placed to running, and 4 for each further change of status."""


class Execution:
    """``works`` by binding and cluster. A member that is not reachable is tried again, with backoff."""

    def __init__(
        self,
        client: Client,
        rng: random.Random,
        throttle: Throttle,
        detector: Detector,
        members: Mapping[str, Member],
    ) -> None:
        self.works: dict[str, dict[str, Work]] = {}
        self._client, self._timeline, self._detector, self._members = (
            client,
            client.timeline,
            detector,
            members,
        )
        self._by_owner: dict[tuple[str, str], Work] = {}

        def controller(cost: Callable[[str], int], reconcile: Callable[[str], None]) -> Controller:
            return Controller(client.timeline, throttle, cost, reconcile, took_ms=lambda: rng.randint(2, 8))

        self._bindings = Informer(client, BINDINGS, self._heard)
        self._overrides = Informer(client, OVERRIDE_POLICIES, self._told)
        self.sync = controller(self._sync_cost, self._sync)
        self.apply = controller(self._apply_cost, self._apply)
        self.collect = controller(lambda key: COLLECT_COST, self._collect)
        self.aggregate = controller(lambda key: AGGREGATE_COST, self._aggregate)
        for name, member in members.items():
            self._hear(name, member)

    def start(self) -> None:
        """Begin to follow bindings, and what their Works are made of besides."""
        self._bindings.start()
        self._overrides.start()

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """All of them."""
        return self.sync, self.apply, self.collect, self.aggregate

    def found(self, cluster: str) -> None:
        """The member can be reached again: what it says now is collected."""
        for works in self.works.values():
            if cluster in works:
                self.collect.enqueue(works[cluster].key)

    def _hear(self, name: str, member: Member) -> None:
        def changed(owner: str) -> None:
            work = self._by_owner.get((name, owner))
            if work is not None and member.is_reachable:
                self.collect.enqueue(work.key)

        member.changed = changed

    def _told(self, key: str, before: Obj | None, now: Obj | None) -> None:
        """Works are made anew whatever becomes of a policy about them, also while scheduling is suspended."""
        for policy in (before, now):
            selectors: Iterable[Obj] = at(policy or {}, "spec", "resourceSelectors", default=())
            for one in selectors:
                owner = f"{one.get('kind')}/{key.partition('/')[0]}/{one.get('name')}"
                for cluster in self._members:
                    if (work := self._by_owner.get((cluster, owner))) is not None:
                        self.apply.enqueue(work.key)

    def _heard(self, key: str, before: Obj | None, now: Obj | None) -> None:
        if before is None or now is None or _version(before) != _version(now):
            self.sync.enqueue(key)

    # binding-controller: Works of a binding.

    def _wanted(self, key: str) -> tuple[Obj | None, Obj | None, dict[str, Share]]:
        binding = self._bindings.objects.get(key)
        if binding is None:
            return None, None, {}
        resource: Obj = binding["spec"]["resource"]
        _, plural = RESOURCES.get(resource["kind"], ("", ""))
        namespace = resource.get("namespace", "")
        name = f"{namespace}/{resource['name']}" if namespace else resource["name"]
        template = self._detector.template(plural, name) if plural else None
        if template is None or template["metadata"]["uid"] != resource.get("uid"):
            return binding, None, {}
        return binding, template, shares(binding, template)

    def _sync_cost(self, key: str) -> int:
        binding, template, wanted = self._wanted(key)
        known = self.works.get(key, {})
        cost = 0
        for cluster in known.keys() - wanted.keys():
            cost += DELETE_COST if known[cluster].template is not None else 0
        for cluster, share in wanted.items():
            work = known.get(cluster)
            if work is None or not _is_current(work, template, share):
                cost += WORK_COST
        if binding is not None and "deletionTimestamp" in binding["metadata"]:
            cost = cost or DELETE_COST
        return cost

    def _sync(self, key: str) -> None:
        binding, template, wanted = self._wanted(key)
        known = self.works.setdefault(key, {})
        keeps = bool(binding and binding["spec"].get("preserveResourcesOnDeletion"))
        is_changed = False
        for cluster in known.keys() - wanted.keys():
            work = known[cluster]
            if work.template is not None:
                work.template, work.keeps, work.status = None, keeps, None
                is_changed = True
                self.apply.enqueue(work.key)
        for cluster, share in wanted.items():
            assert template is not None
            if cluster not in known:
                work = known[cluster] = Work(key, cluster, owner_key(template), template)
                self._by_owner[cluster, work.owner] = work
            elif (work := known[cluster]).template is None:
                raise Conflict(f"works {work.key}: is still being deleted")
            elif _is_current(work, template, share):
                continue
            work.template, work.replicas, work.completions = template, share.replicas, share.completions
            self.apply.enqueue(work.key)
        if is_changed:
            self.aggregate.enqueue(key)
        self._finalize(key)

    def _finalize(self, key: str) -> None:
        """The last Work of a deleted binding is gone: so is the binding."""
        if self.works.get(key):
            return
        self.works.pop(key, None)
        binding = self._bindings.objects.get(key)
        if binding is not None and "deletionTimestamp" in binding["metadata"]:
            try:
                self._client.delete(BINDINGS, key, uid=binding["metadata"]["uid"])
            except (NotFound, Conflict):
                return
            uid = binding["metadata"]["uid"]
            self._timeline.after(GC_MS, lambda: self._collect_policies(uid))

    def _policies(self) -> list[Obj]:
        return list(self._client.api.collection(OVERRIDE_POLICIES).objects.values())

    def _collect_policies(self, uid: str) -> None:
        """Garbage collection, which goes on until it has succeeded."""
        for policy in owned_by(self._policies(), uid):
            try:
                self._client.delete(OVERRIDE_POLICIES, key_of(policy))
            except ApiError:
                self._timeline.after(GC_MS, lambda: self._collect_policies(uid))

    # execution-controller: Works to members.

    def _work(self, key: str) -> Work | None:
        binding, _, cluster = key.partition("|")
        return self.works.get(binding, {}).get(cluster)

    def _apply_cost(self, key: str) -> int:
        work = self._work(key)
        if work is None:
            return 0
        return DELETE_COST if work.template is None else APPLY_COST

    def _apply(self, key: str) -> None:
        work = self._work(key)
        if work is None:
            return
        member = self._members.get(work.cluster)
        if work.template is None:
            if member is not None and not work.keeps:
                member.delete(work.owner)
            self.works[work.binding].pop(work.cluster, None)
            if self._by_owner.get((work.cluster, work.owner)) is work:
                del self._by_owner[work.cluster, work.owner]
            if not self.works[work.binding]:
                self.sync.enqueue(work.binding)
                self._finalize(work.binding)
            return
        binding = self._bindings.objects.get(work.binding)
        if member is None or binding is None or is_dispatching_suspended(binding["spec"], work.cluster):
            return
        if work.status is None and work.owner in member.owners:
            work.problem = (
                "already exists in the cluster and conflict-resolution strategy value is empty, "
                "Karmada will not manage this resource"
            )
            self.aggregate.enqueue(work.binding)
            return
        work.problem = ""
        work.status = work.status or {}
        guided = overridden(work.template, work.cluster, self._policies())
        member.apply(guided, work.replicas, work.completions)
        self.collect.enqueue(key)

    # work-status-controller and rb-status-controller: status back.

    def _collect(self, key: str) -> None:
        work = self._work(key)
        member = None if work is None else self._members.get(work.cluster)
        if work is None or work.template is None or member is None or not member.is_reachable:
            return
        status = member.status(work.owner)
        if status is not None and status != work.status:
            work.status = status
            self.aggregate.enqueue(work.binding)

    def _aggregate(self, key: str) -> None:
        try:
            binding = self._client.get(BINDINGS, key)
        except NotFound:
            return
        works = self.works.get(key, {})
        items = aggregated(works.values())
        clusters = len(binding["spec"].get("clusters") or ())
        state, reason = fully_applied(items, clusters)
        before = condition(binding, "FullyApplied")
        status: Obj = {**at(binding, "status", default={}), "aggregatedStatus": items}
        if before is None or before["status"] != state:
            stated = {"type": "FullyApplied", "status": state, "reason": reason, "message": ""}
            stated["lastTransitionTime"] = rfc3339(self._timeline.now_ms)
            status["conditions"] = with_condition(binding, stated)
        self._client.update(BINDINGS, {**binding, "status": status}, status=True)
        resource: Obj = binding["spec"]["resource"]
        told = template_status(resource["kind"], items, clusters)
        if told is not None and resource["kind"] in RESOURCES:
            namespace = resource.get("namespace", "")
            name = f"{namespace}/{resource['name']}" if namespace else resource["name"]
            plural = RESOURCES[resource["kind"]][1]
            try:
                template = self._client.get(plural, name)
                self._client.update(plural, {**template, "status": told}, status=True)
            except NotFound:
                return


def _version(binding: Obj) -> tuple[int, bool]:
    metadata = binding["metadata"]
    return metadata["generation"], "deletionTimestamp" in metadata


def _is_current(work: Work, template: Obj | None, share: Share) -> bool:
    return (
        work.template is not None
        and template is not None
        and (work.replicas, work.completions) == (share.replicas, share.completions)
        and work.template["metadata"]["uid"] == template["metadata"]["uid"]
        and work.template["metadata"]["generation"] == template["metadata"]["generation"]
    )
