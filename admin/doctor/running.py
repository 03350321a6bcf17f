"""Deployments, their pods, Services and Secrets as the doctor reads them: which program runs with which
arguments, and how it fares.

apps/v1 and v1 of Kubernetes. Secrets are taken whole, because the certificates in them are looked at; nothing
of them is ever shown, so that they do not even print themselves.
"""

from fairway.kube.objects import KubeStruct, ObjectMeta


class KeyToPath(KubeStruct, frozen=True):
    """One key of a Secret that is mounted under another name."""

    key: str = ""
    path: str = ""


class SecretVolume(KubeStruct, frozen=True):
    """A Secret as a folder of files."""

    secret_name: str = ""
    items: list[KeyToPath] | None = None
    optional: bool | None = None


class Volume(KubeStruct, frozen=True):
    """A volume of a pod; only Secrets are told apart."""

    name: str = ""
    secret: SecretVolume | None = None


class VolumeMount(KubeStruct, frozen=True):
    """Where a container sees a volume, or one file of it."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""


class Container(KubeStruct, frozen=True):
    """A container: its image and the command line, which may come from the image."""

    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    volume_mounts: list[VolumeMount] | None = None


class PodSpec(KubeStruct, frozen=True):
    """The spec of a pod."""

    containers: list[Container] | None = None
    volumes: list[Volume] | None = None


class PodTemplate(KubeStruct, frozen=True):
    """What a Deployment makes its pods of."""

    spec: PodSpec = PodSpec()


class DeploymentSpec(KubeStruct, frozen=True):
    """The spec of a Deployment; one replica where none is said."""

    replicas: int | None = None
    template: PodTemplate = PodTemplate()


class DeploymentStatus(KubeStruct, frozen=True):
    """How many of its pods are ready, and how many of the newest template."""

    ready_replicas: int = 0
    updated_replicas: int = 0


class Deployment(KubeStruct, frozen=True):
    """An apps/v1 Deployment."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class Waiting(KubeStruct, frozen=True):
    """Why a container does not run."""

    reason: str = ""
    message: str = ""


class Terminated(KubeStruct, frozen=True):
    """How a container ended."""

    reason: str = ""
    exit_code: int = 0


class ContainerState(KubeStruct, frozen=True):
    """At most one of them is there."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(KubeStruct, frozen=True):
    """How a container of a pod fares."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(KubeStruct, frozen=True):
    """The status of a pod."""

    phase: str = ""
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(KubeStruct, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ServicePort(KubeStruct, frozen=True):
    """A port of a Service; ``target_port`` may name a port of the pods."""

    port: int = 0
    target_port: int | str | None = None


class ServiceSpec(KubeStruct, frozen=True):
    """The spec of a Service."""

    type: str = "ClusterIP"
    external_name: str = ""
    ports: list[ServicePort] | None = None


class Service(KubeStruct, frozen=True):
    """A Service."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class Secret(KubeStruct, frozen=True):
    """A Secret, decoded from base64."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        keys = ", ".join(self.data or ())
        return f"Secret({self.metadata.namespace}/{self.metadata.name}: {keys})"
