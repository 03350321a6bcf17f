"""Our estimators in the place of Karmada's, cluster by cluster, or one for all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from admin.install import stock
from admin.install.customizing import with_arguments, with_names, with_volume
from admin.install.manifest import Manifest
from admin.install.package import ESTIMATOR, EXAMPLE_CLUSTER
from admin.install.parts import Parts, applied, port_of
from admin.install.settings import EstimatorMode
from admin.install.step import (
    HOST,
    Action,
    Apply,
    Available,
    Condition,
    IssueKubeconfig,
    Protect,
    Replace,
    Step,
)

_MEMBERS: Final = "/etc/fairway/members"
_STOCK: Final = "karmada-scheduler-estimator"
_PORT: Final = 10352


def kubeconfig_secret(cluster: str) -> str:
    """The Secret with our own credentials for a member.

    Not the stock one: that holds an administrator's, which is neither ours to use nor to replace, and which
    the stock estimator needs again when it is given back.
    """
    return f"fairway-{cluster}-kubeconfig"


@dataclass(frozen=True, slots=True)
class EstimatorSteps:
    """The steps about estimators."""

    parts: Parts

    def steps(self) -> Iterator[Step]:
        """First what they share, then one cluster after the other."""
        if not self.parts.estimated():
            return
        yield self._what_estimators_share()
        if self.parts.settings.estimator is EstimatorMode.PER_MEMBER:
            for cluster, _ in self.parts.around.members:
                yield self._estimator_of(cluster)
        else:
            yield self._estimator_of_all()
            for cluster, _ in self.parts.around.members:
                yield self._redirected(cluster)

    def _what_estimators_share(self) -> Step:
        members = self.parts.around.members
        ports = [port_of(self.parts.around.karmada_server), *(port_of(server) for _, server in members)]
        actions: list[Action] = [self._member_kubeconfig(*member) for member in members]
        actions += applied(
            self.parts.reaching(each, ports) for each in self.parts.ours(self.parts.package.estimators)
        )
        does = "hand estimators their credentials for the members"
        return Step("estimators", does, HOST, tuple(actions))

    def _member_kubeconfig(self, cluster: str, server: str) -> IssueKubeconfig:
        namespace, name = self.parts.settings.karmada_namespace, kubeconfig_secret(cluster)
        secret = self.parts.built("Secret", namespace, name, {"type": "Opaque"}, ESTIMATOR)
        return self.parts.issued(secret, "kubeconfig", cluster, "fairway-estimator", server)

    def _estimator_of(self, cluster: str) -> Step:
        names = {EXAMPLE_CLUSTER: cluster, f"{_STOCK}-{EXAMPLE_CLUSTER}": f"{_STOCK}-{cluster}"}
        record = stock.record_of(self.parts.settings.karmada_namespace, cluster)
        actions: list[Action] = []
        until: list[Condition] = []
        manifests = [with_names(each, names) for each in self.parts.ours(self.parts.package.per_member)]
        deployment = next(each for each in manifests if each.kind.kind == "Deployment")
        for manifest in manifests:
            if manifest.kind.kind == "Deployment":
                secret = {"secret": _secret(kubeconfig_secret(cluster), {"kubeconfig": "kubeconfig"})}
                with_certificates = self._serving(with_volume(manifest, "member", secret))
                actions.append(Replace(with_certificates, stock.our_pods_in, record, "deployment.json"))
                until.append(Available(manifest))
            elif manifest.kind.kind == "PodDisruptionBudget":
                actions.append(Protect(manifest, deployment))
            elif manifest.kind.kind == "Service":
                actions.append(Replace(manifest, stock.as_it_is, record, "service.json"))
            else:
                actions.append(Apply(manifest))
        return Step(
            f"estimator-{cluster}",
            f"let Fairway estimate for {cluster}, in the place of Karmada's estimator if there is one",
            HOST,
            tuple(actions),
            tuple(until),
            f"Karmada's own is put back by fairway uninstall, or install --restore-estimator {cluster}",
        )

    def _serving(self, deployment: Manifest) -> Manifest:
        """With the certificates that are there."""
        layout = self.parts.around.layout
        if layout is None:
            return deployment
        files = layout.server
        items = {files.certificate: "tls.crt", files.key: "tls.key", files.authority: "ca.crt"}
        return with_volume(deployment, "pki", {"secret": _secret(files.secret, items)})

    def _estimator_of_all(self) -> Step:
        manifests = [
            self._serving_all(each) if each.kind.kind == "Deployment" else each
            for each in self.parts.ours(self.parts.package.for_many)
        ]
        until = tuple(Available(each) for each in manifests if each.kind.kind == "Deployment")
        does = "let one estimator answer for all members"
        return Step("estimator-for-many", does, HOST, applied(manifests), until)

    def _serving_all(self, deployment: Manifest) -> Manifest:
        clusters = [cluster for cluster, _ in self.parts.around.members]
        sources = [
            {"secret": _projected(kubeconfig_secret(cluster), f"{cluster}/kubeconfig")}
            for cluster in clusters
        ]
        deployment = with_volume(self._serving(deployment), "members", {"projected": {"sources": sources}})
        arguments = [f"--cluster={cluster}={_MEMBERS}/{cluster}/kubeconfig" for cluster in clusters]
        return with_arguments(deployment, arguments)

    def _redirected(self, cluster: str) -> Step:
        names = {EXAMPLE_CLUSTER: cluster, f"{_STOCK}-{EXAMPLE_CLUSTER}": f"{_STOCK}-{cluster}"}
        record = stock.record_of(self.parts.settings.karmada_namespace, cluster)
        actions: list[Action] = [
            Replace(with_names(each, names), stock.our_pods_behind, record, "service.json")
            for each in self.parts.ours(self.parts.package.redirections)
        ]
        stock_deployment = self.parts.built(
            "Deployment", self.parts.settings.karmada_namespace, f"{_STOCK}-{cluster}", {}, ESTIMATOR
        )
        actions.append(Replace(stock_deployment, stock.nobody_in, record, "deployment.json"))
        return Step(
            f"estimator-{cluster}",
            f"send questions about {cluster} to it",
            HOST,
            tuple(actions),
            undone=f"sent back by fairway uninstall, or install --restore-estimator {cluster}",
        )

    def address(self, cluster: str) -> str:
        """Where the estimator of a cluster is asked."""
        is_shared = self.parts.settings.estimator is EstimatorMode.SHARED
        service = "fairway-estimator" if is_shared else f"{_STOCK}-{cluster}"
        return f"{service}.{self.parts.settings.karmada_namespace}.svc:{_PORT}"


def _secret(name: str, items: Mapping[str, str]) -> dict[str, object]:
    return {"secretName": name, "items": [{"key": key, "path": path} for key, path in items.items()]}


def _projected(name: str, path: str) -> dict[str, object]:
    return {"name": name, "items": [{"key": "kubeconfig", "path": path}]}
