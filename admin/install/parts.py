"""What all steps are made of: the packaged manifests with the settings in them, and objects of our own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from admin.install.customizing import (
    marked,
    with_arguments,
    with_egress,
    with_flag,
    with_images,
    with_namespaces,
    with_volume,
    without_aggregated_rules,
)
from admin.install.kinds import KINDS, the
from admin.install.layouts import Layout
from admin.install.manifest import COMPONENT, FAIRWAY, INSTALLER, MANAGED_BY, PART_OF, Json, Manifest, built
from admin.install.package import DISPATCHER, Package, component_of
from admin.install.settings import KARMADA_NAMESPACE, NAMESPACE, EstimatorMode, Settings
from admin.install.step import HOST, KARMADA, Action, Apply, IssueKubeconfig
from fairway.scope import Scope

LABELS: Final = {PART_OF: FAIRWAY, MANAGED_BY: INSTALLER}
"""Of every object that is made here."""
CATALOGUE: Final = "fairway-catalogue"
CATALOGUE_FILE: Final = "catalogue.yaml"
_CATALOGUE_FOLDER: Final = "/etc/fairway/catalogue"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was found before anything is planned.

    ``karmada_server``: the URL of Karmada's API server as pods of the host reach it; ``members``: those of
    the member clusters, in the order in which they are dealt with. ``layout``: None where no estimators are
    to be installed. ``scope``: what the policies hold. ``interpreted``: kinds that others' interpreters are
    about, as ``group/kind``.
    """

    karmada_server: str
    members: tuple[tuple[str, str], ...]
    layout: Layout | None
    scope: Scope
    interpreted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Parts:
    """Manifests and objects for these settings in these surroundings."""

    package: Package
    settings: Settings
    around: Surroundings

    def planes(self) -> Iterator[tuple[str, list[Manifest]]]:
        """Each API server with the packaged manifests that belong to it."""
        yield HOST, self.ours(self.package.host)
        yield KARMADA, self.ours(self.package.karmada)
        for cluster, _ in self.estimated():
            yield cluster, self.ours(self.package.member)

    def estimated(self) -> tuple[tuple[str, str], ...]:
        """Clusters that get an estimator of ours, each with its server."""
        return () if self.settings.estimator is EstimatorMode.NONE else self.around.members

    def of(self, component: str) -> list[Manifest]:
        """The host's objects of one program; those of none belong to the dispatcher, which comes first."""
        return [
            each
            for each in self.ours(self.package.host)
            if each.kind.kind != "Namespace" and (component_of(each) or DISPATCHER) == component
        ]

    def scoped(self, manifest: Manifest) -> Manifest:
        """A Deployment of the webhook or the dispatcher, told what waits in queues; all else as it is."""
        if manifest.kind.kind != "Deployment":
            return manifest
        settings = self.settings
        arguments = [f"--hold-kind={kind}" for kind in sorted(settings.hold_kinds)]
        manifest = with_flag(manifest, "hold-namespaces", settings.hold_namespaces)
        return with_arguments(manifest, [*arguments, *(["--observe"] if settings.observe else [])])

    def reaching_karmada(self, manifest: Manifest) -> Manifest:
        """A NetworkPolicy that lets its pods call Karmada's API server, wherever it is; all else as it is."""
        return self.reaching(manifest, [port_of(self.around.karmada_server)])

    def reaching(self, manifest: Manifest, ports: Iterable[int]) -> Manifest:
        """A NetworkPolicy that lets its pods call these ports; all else as it is."""
        return with_egress(manifest, ports) if manifest.kind.kind == "NetworkPolicy" else manifest

    def issued(self, secret: Manifest, entry: str, plane: str, account: str, server: str) -> IssueKubeconfig:
        """A kubeconfig out of the token of an account on ``plane``."""
        token = f"/api/v1/namespaces/{self.settings.namespace}/secrets/{token_name(account)}"
        return IssueKubeconfig(secret, entry, plane, token, server, plane)

    def ours(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        """Packaged manifests with our label, images and namespaces, in the order to apply them in."""
        settings = self.settings
        renamed = {NAMESPACE: settings.namespace, KARMADA_NAMESPACE: settings.karmada_namespace}
        return [
            self._with_catalogue(
                without_aggregated_rules(
                    marked(with_images(with_namespaces(each, renamed), settings.registry, settings.tag))
                )
            )
            for each in sorted(manifests, key=lambda each: KINDS.index(each.kind))
        ]

    def _with_catalogue(self, manifest: Manifest) -> Manifest:
        if manifest.kind.kind != "Deployment" or not self.settings.catalogue:
            return manifest
        mounted = with_volume(manifest, "catalogue", {"configMap": {"name": CATALOGUE}}, _CATALOGUE_FOLDER)
        return with_arguments(mounted, [f"--catalogue={_CATALOGUE_FOLDER}/{CATALOGUE_FILE}"])

    def built(self, kind: str, namespace: str, name: str, body: Json, component: str = "") -> Manifest:
        """An object with our label; ``body`` without apiVersion, kind and metadata."""
        labels = {**LABELS, COMPONENT: component} if component else dict(LABELS)
        return built(the(kind), namespace, name, body, labels)


def port_of(server: str) -> int:
    """The port of an API server's URL."""
    return urlsplit(server).port or (443 if server.startswith("https:") else 80)


def token_name(account: str) -> str:
    """The Secret of a ServiceAccount's token."""
    return f"{account}-token"


def applied(manifests: Iterable[Manifest]) -> tuple[Action, ...]:
    """Each of them applied."""
    return tuple(Apply(each) for each in manifests)
