"""What a step waits for: whether it is there, and what is missing where it is not."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.install.kubeconfig import has_token
from admin.install.listing import listed
from admin.install.performing import InstallError
from admin.install.step import Available, Condition, Ended, Established, Registered, TokenMinted
from admin.install.writing import Body, read
from admin.printable import counted
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError, ServerError, TooManyRequests, Unreachable
from fairway.kube.objects import KubeStruct, ObjectMeta

_LOOK_EVERY_S: Final = 1.0


class _Condition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(KubeStruct, frozen=True):
    conditions: list[_Condition] | None = None
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class _Spec(KubeStruct, frozen=True):
    replicas: int = 1


class _Meta(KubeStruct, frozen=True):
    generation: int = 0


class _Deployment(KubeStruct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Pod(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _ClientConfig(KubeStruct, frozen=True):
    url: str = ""
    ca_bundle: str = ""


class _Webhook(KubeStruct, frozen=True):
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(KubeStruct, frozen=True):
    webhooks: list[_Webhook] | None = None


class _Definition(KubeStruct, frozen=True):
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class Waiting:
    """How to wait: for how long in seconds, with which clock (monotonic) and pauses; who is told what."""

    timeout_s: float
    clock: Callable[[], float]
    seen: Callable[[str], None]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def ready(planes: Mapping[str, KubeClient], plane: str, condition: Condition, waiting: Waiting) -> None:
    """Return when the condition is met. Raises InstallError when the time is up, with what is missing."""
    deadline_s = waiting.clock() + waiting.timeout_s
    manifest = condition.manifest
    while True:
        try:
            missing = await _missing(planes[plane], condition)
        except (Unreachable, ServerError, TooManyRequests) as error:
            missing = str(error)
        except KubeError as error:
            raise InstallError(f"{plane}: {manifest}: {error}") from None
        if not missing:
            return
        if waiting.clock() >= deadline_s:
            raise InstallError(
                f"{plane}: {manifest}: after {waiting.timeout_s:.0f} s: {missing}; {_remedy(condition)}, "
                "then run the same command again: it goes on from here"
            )
        waiting.seen(f"{manifest}: {missing}")
        await waiting.sleep(_LOOK_EVERY_S)


async def _missing(client: KubeClient, condition: Condition) -> str:
    if not isinstance(condition, Ended):
        return lacking(condition, await read(client, condition.manifest.path))
    path = f"/api/v1/namespaces/{condition.manifest.namespace}/pods"
    pods = await listed(client, path, _Pod, label_selector=f"app.kubernetes.io/name={condition.program}")
    if not pods:
        return ""
    return f"{counted(len(pods), 'pod')} of {condition.program} still run, such as {pods[0].metadata.name}"


def lacking(condition: Established | TokenMinted | Available | Registered, obj: Body | None) -> str:
    """What is missing, empty where the condition is met."""
    if obj is None:
        return "it is not there"
    match condition:
        case Established():
            conditions = msgspec.convert(obj, _Definition).status.conditions or []
            is_served = any(each.type == "Established" and each.status == "True" for each in conditions)
            return "" if is_served else "it is not served yet"
        case TokenMinted():
            return "" if has_token(obj) else "its token has not been filled in"
        case Available():
            return _missing_pods(msgspec.convert(obj, _Deployment))
        case Registered():
            return _unregistered(msgspec.convert(obj, _Configuration), condition.url)


def _unregistered(configuration: _Configuration, url: str) -> str:
    found = [each.client_config for each in configuration.webhooks or ()]
    if not found:
        return "it has no entries"
    elsewhere = [each.url for each in found if not f"{each.url}/".startswith(f"{url}/")]
    if elsewhere:
        return f"it sends to {elsewhere[0] or 'a Service'} and not to {url}"
    return "" if all(each.ca_bundle for each in found) else "it says no authority to trust"


def _missing_pods(deployment: _Deployment) -> str:
    wanted, status = deployment.spec.replicas, deployment.status
    if status.observed_generation < deployment.metadata.generation:
        return "its controller has not looked at it"
    if status.updated_replicas >= wanted and status.available_replicas >= wanted == status.replicas:
        return ""
    told = [each.message for each in status.conditions or () if each.status != "True" and each.message]
    ready_pods = min(status.updated_replicas, status.available_replicas)
    return "; ".join([f"{ready_pods} of {wanted} pods are ready", *told])


def _remedy(condition: Condition) -> str:
    manifest = condition.manifest
    match condition:
        case Established():
            return f"look at its conditions: kubectl describe crd {manifest.name}"
        case TokenMinted():
            return "let its kube-controller-manager run the controller serviceaccount-token"
        case Registered():
            return "look at the log of fairway-webhook, which registers itself, and at fairway doctor"
        case Ended():
            return "end them"
        case Available():
            return f"look at its pods: kubectl -n {manifest.namespace} describe deployment,pods"
