"""The host cluster: the API server that the manifests of our programs are applied to.

Its Deployments are run by nobody but these tests: with the flags that stand in them, until they are deleted.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from tests.e2e.api_server import ApiServer
from tests.e2e.kubectl import apply_labelled
from tests.e2e.watching import Changes, Watched

OVERLAY: Final = Path(__file__).parents[2] / "manifests" / "overlays" / "estimator-per-member"
DEPLOYMENTS: Final = {
    "fairway-webhook": "fairway-system/fairway-webhook",
    "fairway-dispatcher": "fairway-system/fairway-dispatcher",
    # The overlay's example; of each estimator's flags only the name of its cluster differs.
    "fairway-estimator": "karmada-system/karmada-scheduler-estimator-member1",
}


class Container(KubeStruct, frozen=True):
    args: list[str] | None = None


class PodSpec(KubeStruct, frozen=True):
    containers: list[Container] | None = None


class PodTemplate(KubeStruct, frozen=True):
    spec: PodSpec = PodSpec()


class DeploymentSpec(KubeStruct, frozen=True):
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class Deployment(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()


@dataclass(slots=True)
class Host:
    """``deployments`` as they are."""

    api: ApiServer
    changes: Changes
    deployments: Watched[Deployment] = field(init=False)

    def __post_init__(self) -> None:
        kind = ResourceKind("deployments", "/apis/apps/v1/deployments", Deployment)
        self.deployments = Watched(kind, self.changes)

    async def begin(self) -> None:
        """Karmada's own namespace is there already."""
        await self.api.ready()
        self.api.controllers("namespace,garbagecollector")
        await self.api.client.post("/api/v1/namespaces", {"metadata": {"name": "karmada-system"}}, dict)
        self.deployments.start(self.api.client)

    async def install(self) -> None:
        """Apply the overlay with an estimator for each member cluster."""
        await apply_labelled(self.api, OVERLAY)
        await self.changes.until(
            lambda: self.deployments.now.keys() >= set(DEPLOYMENTS.values()), "our Deployments on the host"
        )

    def flags(self, component: str) -> list[str]:
        """What its Deployment starts it with."""
        deployment = self.deployments.now[DEPLOYMENTS[component]]
        containers = deployment.spec.template.spec.containers or []
        assert len(containers) == 1, f"{component}: {containers}"
        return containers[0].args or []

    def replicas(self, component: str) -> int:
        """How many its Deployment wants."""
        return self.deployments.now[DEPLOYMENTS[component]].spec.replicas

    async def until_deleted(self, component: str) -> None:
        """Wait until its Deployment is gone, for as long as the test lasts."""
        key = DEPLOYMENTS[component]
        await self.changes.until(lambda: key not in self.deployments.now, f"{key} deleted", 300.0)

    async def end(self) -> None:
        """Stop looking."""
        await self.deployments.stop()
        await self.api.client.close()
