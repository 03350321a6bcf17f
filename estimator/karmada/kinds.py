"""The kinds whose templates are watched on Karmada's API server, and where they are served.

Those that `fairway.workloads` reads as gangs. A group that the API server does not serve costs one request
now and then, until somebody installs it.
"""

from dataclasses import dataclass

import msgspec

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind


class WorkloadObject(KubeStruct, frozen=True):
    """Any workload: its metadata typed, its ``spec`` as it came, to be read by its kind's own rules."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """One kind in one version."""

    kind: str
    group: str
    version: str
    plural: str

    @property
    def api_version(self) -> str:
        """As objects state it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> ResourceKind[WorkloadObject]:
        """What a reflector follows."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return ResourceKind(name, f"{root}/{self.plural}", WorkloadObject)


_KUBEFLOW = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")

KINDS: tuple[WatchedKind, ...] = (
    WatchedKind("Deployment", "apps", "v1", "deployments"),
    WatchedKind("StatefulSet", "apps", "v1", "statefulsets"),
    WatchedKind("Job", "batch", "v1", "jobs"),
    WatchedKind("Job", "batch.volcano.sh", "v1alpha1", "jobs"),
    WatchedKind("JobSet", "jobset.x-k8s.io", "v1alpha2", "jobsets"),
    WatchedKind("LeaderWorkerSet", "leaderworkerset.x-k8s.io", "v1", "leaderworkersets"),
    *(WatchedKind(kind, "kubeflow.org", "v1", f"{kind.lower()}s") for kind in _KUBEFLOW),
    WatchedKind("MPIJob", "kubeflow.org", "v2beta1", "mpijobs"),
    WatchedKind("TrainJob", "trainer.kubeflow.org", "v1alpha1", "trainjobs"),
    WatchedKind("RayJob", "ray.io", "v1", "rayjobs"),
    WatchedKind("RayCluster", "ray.io", "v1", "rayclusters"),
    WatchedKind("RayService", "ray.io", "v1", "rayservices"),
)
