"""Karmada's Cluster objects as the doctor reads them: cluster.karmada.io/v1alpha1."""

from typing import Final

from fairway.kube.objects import Condition, KubeStruct, ObjectMeta, RawResources

PULL: Final = "Pull"


class ModelRange(KubeStruct, frozen=True):
    """How much of one resource the nodes of a grade have."""

    name: str = ""


class ResourceModel(KubeStruct, frozen=True):
    """A grade: nodes of about the same size."""

    grade: int = 0
    ranges: list[ModelRange] | None = None


class ModelCount(KubeStruct, frozen=True):
    """How many nodes a grade has."""

    grade: int = 0
    count: int = 0


class ResourceSummary(KubeStruct, frozen=True):
    """What the cluster has in all, what of it pods hold, and what pods wait for that have no node."""

    allocatable: RawResources | None = None
    allocated: RawResources | None = None
    allocating: RawResources | None = None
    allocatable_modelings: list[ModelCount] | None = None


class ClusterSpec(KubeStruct, frozen=True):
    """The spec of a Cluster."""

    sync_mode: str = ""
    resource_models: list[ResourceModel] | None = None


class ApiResource(KubeStruct, frozen=True):
    """A kind that is served."""

    kind: str = ""


class ApiEnablement(KubeStruct, frozen=True):
    """What is served of one API group and version."""

    group_version: str = ""
    resources: list[ApiResource] | None = None


class ClusterStatus(KubeStruct, frozen=True):
    """The status of a Cluster."""

    kubernetes_version: str = ""
    conditions: list[Condition] | None = None
    resource_summary: ResourceSummary | None = None
    api_enablements: list[ApiEnablement] | None = None


class MemberCluster(KubeStruct, frozen=True):
    """A Cluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.metadata.name

    @property
    def is_ready(self) -> bool:
        """Whether Karmada reaches it."""
        return self._says("Ready")

    def serves(self, group: str, kind: str) -> bool | None:
        """Whether it serves a kind of an API group, in any version; None for a kind that was not seen while
        Karmada has not read all that it serves.
        """
        if any(
            one.group_version.rpartition("/")[0] == group and each.kind == kind
            for one in self.status.api_enablements or ()
            for each in one.resources or ()
        ):
            return True
        return False if self._says("CompleteAPIEnablements") else None

    def _says(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions or ())
