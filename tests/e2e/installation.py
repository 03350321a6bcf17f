"""Fairway installed: its objects everywhere, identities with its roles and no more, the processes."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairway.kube.errors import ServerError
from tests.e2e.api_server import ApiServer
from tests.e2e.fairway_programs import Factory, Ours, Ports
from tests.e2e.host import Host
from tests.e2e.karmada import Karmada
from tests.e2e.kubectl import apply_files, apply_labelled, schemas_established
from tests.e2e.member import Member
from tests.e2e.objects import PROBED, REGISTRATION
from tests.e2e.process import Programs
from tests.e2e.watching import eventually

MANIFESTS = Path(__file__).parents[2] / "manifests"
NAMESPACE = "fairway-system"
ON_KARMADA = ("fairway-webhook", "fairway-dispatcher", "fairway-estimator")
_HOUR_S = 3_600


@dataclass(slots=True)
class Installation:
    """``dispatchers`` by replica, ``estimators`` by cluster."""

    host: Host
    karmada: Karmada
    programs: Programs
    ports: Ports = field(default_factory=Ports)
    dispatchers: dict[str, Ours] = field(default_factory=dict)
    estimators: dict[str, Ours] = field(default_factory=dict)
    webhook: Ours | None = None
    _factory: Factory | None = None

    async def objects(self) -> None:
        """What `manifests` puts on the host and on Karmada's API server, and the identities there."""
        await self.host.install()
        await apply_files(self.karmada.api, [MANIFESTS / "crds"])
        await schemas_established(self.karmada.api)
        await apply_labelled(self.karmada.api, MANIFESTS / "karmada")
        kubeconfigs = {name: await identity(self.karmada.api, name) for name in ON_KARMADA}
        self._factory = Factory(self.host, self.programs, self.karmada.api.pki, kubeconfigs, self.ports)

    async def estimator(self, member: Member) -> Ours:
        """What `manifests/member` puts into a member cluster, and its estimator; it is ready then."""
        await apply_labelled(member.api, MANIFESTS / "member")
        kubeconfig = await identity(member.api, "fairway-estimator")
        made = self.estimators[member.name] = self.factory.estimator(member.name, kubeconfig)
        await made.start()
        return made

    async def start(self) -> None:
        """The webhook and the dispatchers; bindings are held from then on."""
        self.webhook = self.factory.webhook()
        for replica in map(str, range(self.host.replicas("fairway-dispatcher"))):
            self.dispatchers[replica] = self.factory.dispatcher(replica)
        await asyncio.gather(self.webhook.start(), *(each.start() for each in self.dispatchers.values()))
        await self.until_held()

    @property
    def factory(self) -> Factory:
        assert self._factory is not None, "Fairway's objects are not installed"
        return self._factory

    async def leader(self) -> str:
        """The replica that leads, once there is one."""
        found: list[str] = []

        async def known() -> bool:
            found[:] = [name for name, each in self.dispatchers.items() if await each.leads()]
            return bool(found)

        # The Lease would tell too, but only the process knows whether it is in force.
        await eventually(known, "a leader")
        return found[0]

    async def until_held(self, *, held: bool = True) -> None:
        """Wait until bindings are held at creation, or are not any more."""
        # Nothing tells when the API server has taken up what is registered.
        await eventually(lambda: self._is(held), "bindings held" if held else "bindings not held")

    async def _is(self, held: bool) -> bool:
        return await self._probe() is held

    async def _probe(self) -> bool | None:
        """Would a binding be held? None where it would be refused, because nobody reviews it yet."""
        path = f"/apis/work.karmada.io/v1alpha2/namespaces/{PROBED}/resourcebindings"
        try:
            made = await self.karmada.client.post(path, PROBE, dict[str, Any], {"dryRun": "All"})
        except ServerError:
            return None
        return bool((made["spec"].get("suspension") or {}).get("scheduling"))

    async def heal(self) -> None:
        """Start again what a test has left dead."""
        everything = [*self.estimators.values(), *self.dispatchers.values()]
        if self.webhook is not None:
            everything.append(self.webhook)
        await asyncio.gather(*(each.start() for each in everything if not each.program.runs))

    async def until_deleted(self) -> None:
        """Stop each program when its Deployment on the host is deleted, until there are none."""
        assert self.webhook is not None
        programs = {
            "fairway-webhook": [self.webhook],
            "fairway-dispatcher": list(self.dispatchers.values()),
            "fairway-estimator": list(self.estimators.values()),
        }
        async with asyncio.TaskGroup() as group:
            for component, each in programs.items():
                group.create_task(self._until_deleted(component, each))

    async def _until_deleted(self, component: str, programs: Iterable[Ours]) -> None:
        await self.host.until_deleted(component)
        for each in programs:
            await each.program.stop()

    async def registered(self) -> Mapping[str, Any]:
        """The webhook's configuration as it stands."""
        path = f"{REGISTRATION}/mutatingwebhookconfigurations/fairway-webhook"
        return await self.karmada.client.get_json(path, dict[str, Any])


PROBE = {
    "apiVersion": "work.karmada.io/v1alpha2",
    "kind": "ResourceBinding",
    "metadata": {"name": "probe", "namespace": PROBED},
    "spec": {
        "resource": {"apiVersion": "batch/v1", "kind": "Job", "name": "probe", "namespace": PROBED},
        "replicas": 1,
        "replicaRequirements": {"resourceRequest": {"nvidia.com/gpu": "1"}},
        "placement": {"clusterAffinity": {"clusterNames": ["a"]}},
    },
}


async def identity(api: ApiServer, account: str, namespace: str = NAMESPACE) -> Path:
    """A kubeconfig with a token that the server itself has made for the service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _HOUR_S},
    }
    answer = await api.client.post(path, asked, dict[str, Any])
    return api.kubeconfig_of(account, answer["status"]["token"])
