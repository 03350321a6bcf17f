"""The way back, in the one order in which no workload is stuck at any moment.

First nothing new is held; then everything held is given back, while the dispatcher still runs, so that a run
that is cut off leaves nobody waiting for ever; then the dispatcher goes, and what it wrote last is given
back too; then Karmada's estimators return; the rest is only deleted. Each phase looks for what is there, so
the same command goes on after an interruption, and says at the end what it left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from admin.install.gang_classes import needed_classes
from admin.install.giving_back import GivenBack, GivingBack, Wanted, names
from admin.install.kinds import KINDS, Kind, the
from admin.install.listing import listed
from admin.install.manifest import Manifest
from admin.install.package import DISPATCHER, ESTIMATOR, WEBHOOK
from admin.install.performing import InstallError
from admin.install.readiness import Waiting, ready
from admin.install.removing import Remover
from admin.install.restoring import RECORDS, Record, deployment_in, give_back
from admin.install.rights import missing_rights
from admin.install.step import HOST, KARMADA, Available, Ended
from admin.install.uninstall_rights import rights_to_uninstall
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from webhook.bindings import GROUP, NAMESPACED
from webhook.configuration import COLLECTION, NAME, Rule
from webhook.suspend import CREATE

_KARMADAS: Final = "mutating-config"
_PASSES: Final = 5
_PROGRAMS: Final = ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
_OF_KARMADA: Final = (
    "ResourceInterpreterCustomization",
    "MutatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "Lease",
)
_QUEUES: Final = ("LocalQueue", "ClusterQueue", "ResourceFlavor", "ServiceClass", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class Way:
    """How to uninstall. ``namespace``: Fairway's; ``karmada_namespace``: of Karmada's pods on the host."""

    namespace: str
    karmada_namespace: str
    holds: Wanted
    delete_queues: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """What became of it. ``left``: what is still there, and why."""

    given_back: GivenBack
    estimators: tuple[str, ...]
    left: tuple[str, ...]


class _Webhook(KubeStruct, frozen=True):
    rules: list[Rule] | None = None


class _Configuration(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: list[_Webhook] | None = None

    @property
    def changes_new_bindings(self) -> bool:
        rules = (rule for webhook in self.webhooks or () for rule in webhook.rules or ())
        return any(
            {GROUP, "*"} & {*rule.api_groups}
            and {NAMESPACED, "*"} & {*rule.resources}
            and {CREATE, "*"} & {*rule.operations}
            for rule in rules
        )


class Uninstaller:
    """Uninstalls once. ``planes``: a client for each API server, by name; those of members may be missing."""

    def __init__(
        self, planes: Mapping[str, KubeClient], way: Way, waiting: Waiting, remover: Remover
    ) -> None:
        self._planes = planes
        self._way = way
        self._waiting = waiting
        self._remover = remover

    async def run(self) -> Gone:
        """All of it. Raises InstallError; then the same call goes on from there."""
        host, karmada = self._planes[HOST], self._planes[KARMADA]
        await self._ask_for_rights()
        await self._stop_holding(karmada)
        await self._programs(host, WEBHOOK)
        await self._remover.remove_named(KARMADA, karmada, the("MutatingWebhookConfiguration"), "", NAME)
        given = await self._give_back(karmada)
        await self._programs(host, DISPATCHER)
        if not self._remover.dry_run:
            given = _both(given, await self._sweep(karmada))
        estimators = await self._estimators(host)
        await self._rest()
        keeps_queues = not self._way.delete_queues and await self._has_queue_kinds(karmada)
        return Gone(given, estimators, tuple(self._left(given, keeps_queues=keeps_queues)))

    async def _ask_for_rights(self) -> None:
        """All that is missing is told at once, before anything is half-way gone."""
        way = self._way
        kinds = {plane: kinds_on(plane) for plane in self._planes}
        queues = [the(kind) for kind in _QUEUES] if way.delete_queues else []
        wanted = rights_to_uninstall(kinds, way.namespace, way.karmada_namespace, queues)
        try:
            problems = await missing_rights(self._planes, wanted)
        except KubeError as error:
            raise InstallError(f"{error}") from None
        if problems:
            told = "\n".join(f"  {problem}" for problem in problems)
            raise InstallError(f"nothing was written, because:\n{told}")

    async def _stop_holding(self, karmada: KubeClient) -> None:
        """The webhook first loses its right to register itself, so that its configuration stays away."""
        self._waiting.seen("letting new workloads through")
        remover = self._remover
        policies = (the("MutatingAdmissionPolicyBinding"), the("MutatingAdmissionPolicy"))
        await remover.remove_labelled(KARMADA, karmada, policies)
        await remover.remove_ours(KARMADA, karmada, the("ClusterRoleBinding"), "", "fairway-webhook")
        await remover.remove_named(KARMADA, karmada, the("MutatingWebhookConfiguration"), "", NAME)

    async def _programs(self, host: KubeClient, component: str) -> None:
        kinds = [the(kind) for kind in _PROGRAMS]
        await self._remover.remove_labelled(HOST, host, kinds, component)
        if self._remover.dry_run:
            return
        program = f"fairway-{component}"
        deployment = Manifest(the("Deployment"), self._way.namespace, program, {}, {})
        await ready(self._planes, HOST, Ended(deployment, program), self._waiting)

    async def _give_back(self, karmada: KubeClient) -> GivenBack:
        others = await self._others_hold(karmada)
        wanted = replace(self._way.holds, others_hold=others, dry_run=self._remover.dry_run)
        waiting = self._waiting
        giving = GivingBack(karmada, wanted, waiting.clock, waiting.seen, waiting.sleep)
        try:
            given = await giving.run()
        except KubeError as error:
            raise InstallError(f"{KARMADA}: bindings: {error}") from None
        if given.failed:
            told = "\n".join(f"{KARMADA}: {failure}" for failure in given.failed)
            raise InstallError(f"{told}\nthe dispatcher is left running for them; run the same command again")
        return given

    async def _others_hold(self, karmada: KubeClient) -> bool:
        """Whether a webhook that is neither ours nor Karmada's changes bindings when they are created."""
        try:
            found = await listed(karmada, COLLECTION, _Configuration)
        except KubeError as error:
            raise InstallError(f"{KARMADA}: {COLLECTION}: {error}") from None
        return any(each.changes_new_bindings for each in found if each.metadata.name not in (NAME, _KARMADAS))

    async def _sweep(self, karmada: KubeClient) -> GivenBack:
        """What the dispatcher still wrote while bindings were given back."""
        total = GivenBack()
        for _ in range(_PASSES):
            given = await self._give_back(karmada)
            total = _both(total, given)
            if not given.released and not given.cleared:
                break
        return total

    async def _estimators(self, host: KubeClient) -> tuple[str, ...]:
        given = []
        path = f"/api/v1/namespaces/{self._way.karmada_namespace}/configmaps"
        try:
            records = await listed(host, path, Record, label_selector=RECORDS)
        except KubeError as error:
            raise InstallError(f"{HOST}: ConfigMaps: {error}") from None
        for record in records:
            self._waiting.seen(f"giving back Karmada's estimator of {record.cluster}")
            given += await give_back(host, record, self._remover)
            deployment = deployment_in(record)
            if deployment is not None and not self._remover.dry_run:
                try:
                    await ready(self._planes, HOST, Available(deployment), self._waiting)
                except InstallError as error:
                    # It is as it was before; the way back does not stop for that.
                    self._remover.leave(str(error))
        await self._remover.remove_labelled(HOST, host, [the(kind) for kind in _PROGRAMS], ESTIMATOR)
        return tuple(given)

    async def _rest(self) -> None:
        self._waiting.seen("deleting the rest")
        karmada = self._planes[KARMADA]
        namespace = self._way.namespace
        await self._remover.remove_named(KARMADA, karmada, the("Lease"), namespace, "fairway-dispatcher")
        await self._remover.remove_named(KARMADA, karmada, the("Secret"), namespace, "fairway-webhook")
        if self._way.delete_queues:
            await self._remover.remove_labelled(KARMADA, karmada, [the(kind) for kind in _QUEUES])
        for plane, client in self._planes.items():
            kinds = kinds_on(plane)
            if plane not in (HOST, KARMADA):
                told = await needed_classes(plane, client)
                if told:
                    self._remover.leave(told)
                    kinds.remove(the("PriorityClass"))
            await self._remover.remove_labelled(plane, client, kinds)

    async def _has_queue_kinds(self, karmada: KubeClient) -> bool:
        try:
            await listed(karmada, the("ClusterQueue").path, KubeStruct)
        except NotFound:
            return False
        except KubeError:
            # Nothing but not being there says that they are not.
            return True
        return True

    def _left(self, given: GivenBack, *, keeps_queues: bool) -> list[str]:
        left = list(self._remover.left)
        if given.kept:
            left.append(f"{len(given.kept)} held bindings, as asked for: {names(given.kept)}")
        left += [f"{KARMADA}: binding {unreadable}; it stays as it is" for unreadable in given.unreadable]
        if given.others:
            left.append(
                f"{len(given.others)} held bindings, not by Fairway: {names(given.others)}; to let one go: "
                """kubectl patch rb NAME --type merge -p '{"spec":{"suspension":{"scheduling":null}}}'"""
            )
        if keeps_queues:
            left.append("queue kinds and queues on Karmada's API server; --delete-queues deletes them")
        return left


def kinds_on(plane: str) -> list[Kind]:
    """The kinds of what is deleted in the end, the last made first; without queues."""
    elsewhere = {HOST: _OF_KARMADA, KARMADA: _PROGRAMS}.get(plane, (*_OF_KARMADA, *_PROGRAMS))
    return [kind for kind in reversed(KINDS) if kind.kind not in (*_QUEUES, *elsewhere)]


def _both(first: GivenBack, second: GivenBack) -> GivenBack:
    """Two passes as one; what is left is what the later one found."""
    return GivenBack(
        [*first.released, *second.released],
        second.kept,
        second.others,
        second.unreadable,
        first.cleared + second.cleared,
        second.failed,
    )
