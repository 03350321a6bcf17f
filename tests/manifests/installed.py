"""A rendered Deployment as its program sees it: the settings that its arguments come to, and its files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from estimator import flags as estimator_flags
from estimator.settings import Settings as EstimatorSettings
from fairway.service.common_flags import EndpointSettings
from queue_dispatcher import flags as dispatcher_flags
from queue_dispatcher.settings import Settings as DispatcherSettings
from tests.manifests.objects import ROOT, Json, container_of, pod_of
from webhook import flags as webhook_flags
from webhook.settings import Settings as WebhookSettings

AnySettings = EstimatorSettings | DispatcherSettings | WebhookSettings

_PAGE = ROOT / "docs" / "install-manifests.md"
_SECRET = re.compile(r"^\| `([\w-]+)/([\w<>-]+)` \| (`[^|]+`) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a container, and where its content comes from."""

    path: PurePosixPath
    secret: str
    key: str


def program_of(deployment: Json) -> str:
    """The component's name: estimator, dispatcher or webhook."""
    component: str = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
    return component


def settings_of(deployment: Json) -> AnySettings:
    """What the program makes of its arguments, with the files that are mounted. Raises FlagError."""
    arguments = container_of(deployment)["args"]
    paths = {Path(file.path) for file in files_of(deployment)}
    match program_of(deployment):
        case "estimator":
            estimator = estimator_flags.parse(arguments, version="", is_file=paths.__contains__)
            assert isinstance(estimator, EstimatorSettings)
            return estimator
        case "dispatcher":
            dispatcher = dispatcher_flags.parse(
                arguments, version="", identity="a", is_file=paths.__contains__
            )
            assert isinstance(dispatcher, DispatcherSettings)
            return dispatcher
        case _:
            webhook = webhook_flags.parse(arguments, version="", is_file=paths.__contains__)
            assert isinstance(webhook, WebhookSettings)
            return webhook


def ports_of(settings: AnySettings) -> dict[str, int]:
    """The ports that the program listens on, by the names that they have in its container."""
    endpoints: EndpointSettings = settings.endpoints
    assert endpoints.health is not None
    assert endpoints.metrics is not None
    shared = {"health": endpoints.health.port, "metrics": endpoints.metrics.port}
    if isinstance(settings, EstimatorSettings):
        return shared | {"grpc": settings.server_port}
    if isinstance(settings, WebhookSettings):
        return shared | {"https": settings.address.port}
    assert settings.visibility is not None
    address = settings.visibility.address
    # On loopback it is nobody's but the port-forward's.
    return shared if address.host else shared | {"visibility": address.port}


def files_of(deployment: Json) -> Iterator[File]:
    """Every file that Secrets put into the container; without a list of keys, the documented ones."""
    volumes = {volume["name"]: volume for volume in pod_of(deployment)["volumes"]}
    namespace = deployment["metadata"]["namespace"]
    for mount in container_of(deployment)["volumeMounts"]:
        for source in _secrets_of(volumes[mount["name"]]):
            secret = f"{namespace}/{source.get('secretName') or source['name']}"
            items = source.get("items") or [{"key": key, "path": key} for key in documented().get(secret, ())]
            for item in items:
                yield File(PurePosixPath(mount["mountPath"]) / item["path"], secret, item["key"])


def secrets_of(deployment: Json) -> set[str]:
    """Every Secret that is mounted, as NAMESPACE/NAME."""
    namespace = deployment["metadata"]["namespace"]
    sources = [source for volume in pod_of(deployment)["volumes"] for source in _secrets_of(volume)]
    return {f"{namespace}/{source.get('secretName') or source['name']}" for source in sources}


def _secrets_of(volume: Json) -> list[Json]:
    if "secret" in volume:
        return [volume["secret"]]
    return [source["secret"] for source in volume.get("projected", {}).get("sources", ())]


def documented() -> dict[str, tuple[str, ...]]:
    """Keys of the Secrets that docs/install-manifests.md tells people to have, by NAMESPACE/NAME."""
    return {
        f"{namespace}/{name}": tuple(re.findall(r"`([^`]+)`", keys))
        for namespace, name, keys in _SECRET.findall(_PAGE.read_text())
    }
