"""Who our programs are: namespaces, accounts with what they may do, their credentials as kubeconfigs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from admin.install.kinds import the
from admin.install.manifest import COMPONENT, Manifest, built, manifest_of
from admin.install.package import DISPATCHER, ESTIMATOR, WEBHOOK, component_of
from admin.install.parts import LABELS, Parts, applied, token_name
from admin.install.settings import EstimatorMode, Hold
from admin.install.step import HOST, KARMADA, IssueKubeconfig, Step, TokenMinted

_OTHERS: Final = ("Namespace", "PriorityClass")
"""Kinds that stand in steps of their own."""
_TOKEN: Final = "kubernetes.io/service-account-token"


@dataclass(frozen=True, slots=True)
class IdentitySteps:
    """The steps about identities."""

    parts: Parts

    def namespaces(self) -> Iterator[Step]:
        """A namespace on each API server."""
        for plane, manifests in self.parts.planes():
            found = [each for each in manifests if each.kind.kind == "Namespace"]
            wanted = found or [self.parts.built("Namespace", "", self.parts.settings.namespace, {})]
            undone = "deleted by fairway uninstall where it was made here"
            yield Step("namespace", "make a namespace for Fairway", plane, applied(wanted), undone=undone)

    def identities(self) -> Iterator[Step]:
        """Accounts and permissions on Karmada's API server and on members."""
        for plane, manifests in self.parts.planes():
            if plane == HOST:
                continue
            wanted = [each for each in manifests if each.kind.kind not in _OTHERS and self._is_wanted(each)]
            wanted += self._missing_tokens(wanted)
            tokens = tuple(TokenMinted(each) for each in wanted if each.body.get("type") == _TOKEN)
            does = "make the identities of our programs, with what they may do"
            yield Step("identities", does, plane, applied(wanted), tokens)

    def of(self, component: str) -> list[Manifest]:
        """What one program is and may do on Karmada's API server, its token too."""
        found = [
            each for each in self.parts.ours(self.parts.package.karmada) if component_of(each) == component
        ]
        return [*found, *self._missing_tokens(found)]

    def _is_wanted(self, manifest: Manifest) -> bool:
        """Whether an object on Karmada's API server or a member serves a program that is installed."""
        component = component_of(manifest)
        if component == WEBHOOK:
            return self.parts.settings.hold is Hold.WEBHOOK
        return component != ESTIMATOR or self.parts.settings.estimator is not EstimatorMode.NONE

    def _missing_tokens(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        present = list(manifests)
        names = {each.name for each in present if each.kind.kind == "Secret"}
        accounts = [each for each in present if each.kind.kind == "ServiceAccount"]
        return [self._token(each) for each in accounts if token_name(each.name) not in names]

    def _token(self, account: Manifest) -> Manifest:
        labels = {**LABELS, COMPONENT: component_of(account)}
        body = {"type": _TOKEN}
        secret = built(the("Secret"), account.namespace, token_name(account.name), body, labels)
        metadata = secret.body.get("metadata")
        annotations = {"kubernetes.io/service-account.name": account.name}
        whole = {**(metadata if isinstance(metadata, dict) else {}), "annotations": annotations}
        return manifest_of({**secret.body, "metadata": whole}, str(secret))

    def kubeconfigs(self) -> Step:
        """Their tokens, for the pods on the host."""
        names = [DISPATCHER]
        if self.parts.settings.hold is Hold.WEBHOOK:
            names.append(WEBHOOK)
        made = [self.karmada_kubeconfig(name, self.parts.settings.namespace) for name in names]
        if self.parts.estimated():
            made.append(self.karmada_kubeconfig(ESTIMATOR, self.parts.settings.karmada_namespace))
        does = "hand our programs their credentials for Karmada's API server"
        return Step("kubeconfigs", does, HOST, tuple(made))

    def karmada_kubeconfig(self, component: str, namespace: str) -> IssueKubeconfig:
        """The Secret on the host that one program reaches Karmada's API server with."""
        return self.parts.issued(
            self.parts.built(
                "Secret", namespace, f"fairway-karmada-{component}", {"type": "Opaque"}, component
            ),
            "kubeconfig",
            KARMADA,
            f"fairway-{component}",
            self.parts.around.karmada_server,
        )
