"""Karmada's own estimator of a cluster put back, from what was written down before it was replaced."""

from typing import Final

import msgspec

from admin.install import stock
from admin.install.difference import differences
from admin.install.estimator_steps import kubeconfig_secret
from admin.install.kinds import Kind, kind_named, the
from admin.install.manifest import (
    COMPONENT,
    INSTALLER,
    MANAGED_BY,
    Manifest,
    ManifestError,
    called,
    object_path,
)
from admin.install.performing import InstallError
from admin.install.removing import Remover
from admin.install.step import HOST
from admin.install.writing import created, read, replaced
from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, KubeError
from fairway.kube.objects import KubeStruct, ObjectMeta

RECORDS: Final = f"{MANAGED_BY}={INSTALLER},{COMPONENT}={stock.REMEMBERED}"
_PREFIX: Final = "fairway-stock-"
_TRIES: Final = 5


class Record(KubeStruct, frozen=True):
    """A ConfigMap that remembers what was replaced of one cluster."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] | None = None

    @property
    def cluster(self) -> str:
        """The cluster that it is about."""
        return self.metadata.name.removeprefix(_PREFIX)


class _Identity(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


async def read_record(client: KubeClient, namespace: str, cluster: str) -> Record:
    """What is remembered of a cluster's estimator. Raises InstallError where nothing is."""
    body = await read(client, stock.record_of(namespace, cluster).path)
    if body is None:
        raise InstallError(
            f"{HOST}: ConfigMap {namespace}/{_PREFIX}{cluster}: expected what was there before; "
            f"Karmada had no estimator of {cluster}, or it was given back already"
        )
    return msgspec.convert(body, Record)


async def give_back(client: KubeClient, record: Record, remover: Remover) -> list[str]:
    """Put everything back that the record remembers, then forget it; what was put back, as people call it.

    Raises InstallError.
    """
    given = []
    namespace = record.metadata.namespace
    for entry, text in sorted((record.data or {}).items()):
        where = f"{HOST}: ConfigMap {namespace}/{record.metadata.name}: data[{entry}]"
        try:
            given.append(await _given_back(client, text, where, dry_run=remover.dry_run))
        except ManifestError as error:
            raise InstallError(f"{error}; put it right by hand, then delete the ConfigMap") from None
        except KubeError as error:
            raise InstallError(f"{where}: {error}") from None
    cluster = record.cluster
    for kind, name in (
        (the("PodDisruptionBudget"), f"karmada-scheduler-estimator-{cluster}"),
        (the("Secret"), kubeconfig_secret(cluster)),
        (the("ConfigMap"), record.metadata.name),
    ):
        await remover.remove_ours(HOST, client, kind, namespace, name)
    return given


async def _given_back(client: KubeClient, text: str, where: str, *, dry_run: bool) -> str:
    kind, identity = _identified(text, where)
    path = object_path(kind, identity.namespace, identity.name)
    for attempt in range(_TRIES):
        live = await read(client, path)
        body = stock.given_back(text, live, where)
        if live is None:
            if not dry_run:
                await created(client, path.rpartition("/")[0], body)
            break
        try:
            after = await replaced(client, path, body, dry_run=True)
            if differences(live, after) and not dry_run:
                await replaced(client, path, body, dry_run=False)
            break
        except Conflict:
            # Its controller writes its status all the time.
            if attempt == _TRIES - 1:
                raise
    return called(kind, identity.namespace, identity.name)


def _identified(text: str, where: str) -> tuple[Kind, _Identity]:
    try:
        identity = msgspec.json.decode(text, type=_Identity)
    except msgspec.DecodeError as error:
        raise ManifestError(f"{where}: {error}; expected an object as JSON") from None
    kind = kind_named(identity.api_version, identity.kind)
    if kind is None or not identity.name:
        raise ManifestError(f"{where}: expected a Deployment or a Service with its name")
    return kind, identity


def deployment_in(record: Record) -> Manifest | None:
    """The Deployment that a record remembers, as far as waiting for it goes; None where there was none."""
    text = (record.data or {}).get("deployment.json")
    if text is None:
        return None
    kind, identity = _identified(text, record.metadata.name)
    return Manifest(kind, identity.namespace, identity.name, {}, {})
