"""Programs as pods run them: which of Karmada's or ours, from which image, with which arguments and files."""

import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from admin.doctor.arguments import Arguments, read_arguments
from admin.doctor.evidence import NotRead, Plane
from admin.doctor.finding import Patch
from admin.doctor.gates import is_on
from admin.doctor.kinds import DEPLOYMENTS, PODS, SECRETS
from admin.doctor.running import Container, Deployment, Pod, PodSpec, Secret
from admin.doctor.version import Version, parse_version
from admin.yaml_text import yaml_text
from fairway.kube.objects import object_key

SCHEDULER: Final = "karmada-scheduler"
CONTROLLERS: Final = "karmada-controller-manager"
KARMADA_WEBHOOK: Final = "karmada-webhook"
STOCK_ESTIMATOR: Final = "karmada-scheduler-estimator"
OUR_ESTIMATOR: Final = "fairway-estimator"
OUR_WEBHOOK: Final = "fairway-webhook"
DISPATCHER: Final = "fairway-dispatcher"
ESTIMATORS: Final = (STOCK_ESTIMATOR, OUR_ESTIMATOR)
KARMADA: Final = (
    SCHEDULER,
    CONTROLLERS,
    KARMADA_WEBHOOK,
    "karmada-aggregated-apiserver",
    "karmada-descheduler",
)
OURS: Final = (OUR_WEBHOOK, DISPATCHER, OUR_ESTIMATOR)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a container that comes from a Secret: its name, and the key in it."""

    secret: str
    key: str


@dataclass(frozen=True, slots=True)
class Program:
    """One container that runs one of the programs.

    ``name``: which one. ``subject``: the object, for people. ``owner``: the Deployment, None for a bare pod.
    """

    name: str
    subject: str
    namespace: str
    container: Container
    pod: PodSpec
    arguments: Arguments
    owner: Deployment | None = None

    @property
    def tag(self) -> str:
        """The tag of its image, empty where a digest alone or nothing is stated."""
        image = self.container.image.partition("@")[0]
        return image.rpartition("/")[2].partition(":")[2]

    @property
    def version(self) -> Version | None:
        """The version that the tag tells."""
        return parse_version(self.tag)

    @property
    def is_ours(self) -> bool:
        """Whether its image is one of Fairway's."""
        return _basename(self.container.image).startswith("fairway")

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters that an estimator is told to serve; ours may serve several."""
        several = [each.partition("=")[0] for each in self.arguments.values.get("cluster", ())]
        one = self.arguments.text("cluster-name")
        return tuple(dict.fromkeys(filter(None, (one, *several))))

    def gate(self, gate: str) -> bool:
        """Whether a feature gate is on, as stated or by the default of its release; ours know the newest."""
        return is_on(gate, self.arguments.gates(), None if self.is_ours else self.version)

    def file(self, flag: str) -> File | None:
        """The Secret behind the file that a flag names; None where it names none, or not from a Secret."""
        path = self.arguments.text(flag)
        mounts = sorted(self.container.volume_mounts or (), key=lambda mount: -len(mount.mount_path))
        for mount in mounts:
            root = mount.mount_path.rstrip("/")
            if path == root and mount.sub_path:
                return self._of_volume(mount.name, mount.sub_path)
            if path.startswith(f"{root}/"):
                inner = path.removeprefix(f"{root}/")
                return self._of_volume(mount.name, posixpath.join(mount.sub_path, inner))
        return None

    def with_flag(self, flag: str, value: str) -> Patch | None:
        """A change of this one flag, all others as they are; None for a bare pod."""
        return self.with_flags({flag: value})

    def with_flags(self, flags: Mapping[str, str]) -> Patch | None:
        """The same for several."""
        if self.owner is None:
            return None
        container = self.container
        field = "args" if container.args or not container.command else "command"
        words = list((container.args if field == "args" else container.command) or ())
        stated = [f"--{flag}={value}" for flag, value in flags.items()]
        body = {
            "spec": {
                "template": {
                    "spec": {
                        "containers": [{"name": container.name, field: [*_without(words, flags), *stated]}],
                    }
                }
            }
        }
        target = f"deployment/{self.owner.metadata.name} -n {self.namespace}"
        return Patch("host", yaml_text(body, width=1000), target, strategic=True)

    def with_gate(self, gate: str, on: bool) -> Patch | None:
        """The same for one feature gate."""
        gates = self.arguments.gates() | {gate: on}
        return self.with_flag("feature-gates", ",".join(f"{k}={str(v).lower()}" for k, v in gates.items()))

    def _of_volume(self, volume: str, path: str) -> File | None:
        for each in self.pod.volumes or ():
            if each.name == volume and each.secret is not None:
                keys = {item.path: item.key for item in each.secret.items or ()}
                return File(each.secret.secret_name, keys.get(path, path))
        return None


def programs(plane: Plane, names: Iterable[str]) -> tuple[Program, ...]:
    """All containers that run one of the programs: of Deployments, or where there are none of pods.

    Raises NotRead where neither could be read.
    """
    wanted = tuple(names)
    try:
        found = tuple(_of_deployments(plane.listed(DEPLOYMENTS), wanted))
    except NotRead:
        return tuple(_of_pods(plane.listed(PODS), wanted))
    if found or PODS.name in plane.unread:
        return found
    return tuple(_of_pods(plane.listed(PODS), wanted))


def needed(plane: Plane, name: str) -> tuple[Program, ...]:
    """The same for one program that must be there. Raises NotRead where it is not."""
    found = programs(plane, (name,))
    if not found:
        raise NotRead(
            plane.name,
            f"no Deployment or pod runs {name}",
            f"check that it runs there; with --karmada-namespace say where, and that --{plane.role} is the "
            "cluster that runs Karmada's pods",
        )
    return found


def asks_estimators(dispatcher: Program) -> bool:
    """Whether a dispatcher asks any estimator before it releases."""
    flags = dispatcher.arguments
    return flags.switch("enable-scheduler-estimator") or flags.is_set("estimator")


def chooses_clusters(dispatcher: Program) -> bool:
    """Whether a dispatcher's releases say to which clusters, as far as its policies let it."""
    flags = dispatcher.arguments
    stays_out = flags.text("placement") == "karmada" or flags.switch("observe")
    return asks_estimators(dispatcher) and not stays_out


def secret_of(plane: Plane, program: Program, file: File) -> Secret | None:
    """The Secret, None where there is none. Raises NotRead."""
    for secret in plane.listed(SECRETS):
        if (secret.metadata.namespace, secret.metadata.name) == (program.namespace, file.secret):
            return secret
    return None


def _of_deployments(deployments: Iterable[Deployment], wanted: tuple[str, ...]) -> Iterable[Program]:
    for deployment in deployments:
        subject = f"Deployment {object_key(deployment.metadata)}"
        pod = deployment.spec.template.spec
        for name, container in _running(pod, wanted):
            namespace = deployment.metadata.namespace
            yield Program(name, subject, namespace, container, pod, _arguments(container), deployment)


def _of_pods(pods: Iterable[Pod], wanted: tuple[str, ...]) -> Iterable[Program]:
    for pod in pods:
        for name, container in _running(pod.spec, wanted):
            subject = f"Pod {object_key(pod.metadata)}"
            yield Program(name, subject, pod.metadata.namespace, container, pod.spec, _arguments(container))


def _running(pod: PodSpec, wanted: tuple[str, ...]) -> Iterable[tuple[str, Container]]:
    for container in pod.containers or ():
        command = posixpath.basename((container.command or [""])[0])
        image = _basename(container.image)
        # Our estimator answers to the stock name as well, so the image is the better witness.
        for name in dict.fromkeys((image if image in OURS else command, command, image)):
            if name in wanted:
                yield name, container
                break


def _arguments(container: Container) -> Arguments:
    return read_arguments([*(container.command or ())[1:], *(container.args or ())])


def _basename(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _without(words: Iterable[str], flags: Collection[str]) -> list[str]:
    kept: list[str] = []
    dropped = False
    for word in words:
        if dropped and not word.startswith("-"):
            dropped = False
            continue
        name, equals, _ = word.lstrip("-").partition("=")
        is_meant = word.startswith("-") and name in flags
        dropped = is_meant and not equals
        if not is_meant:
            kept.append(word)
    return kept
