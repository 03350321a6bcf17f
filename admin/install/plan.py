"""From settings and surroundings to the steps of an installation. Pure.

The order is the point of it: what holds workloads comes last, after the dispatcher that releases them is up;
estimators are replaced one cluster after the other, each only when the one before serves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from admin.install.customizing import marked, with_arguments, with_volume
from admin.install.estimator_steps import EstimatorSteps
from admin.install.identity_steps import IdentitySteps
from admin.install.kinds import the
from admin.install.manifest import Manifest, built, manifest_of
from admin.install.package import DISPATCHER, WEBHOOK, Package
from admin.install.parts import CATALOGUE, CATALOGUE_FILE, LABELS, Parts, Surroundings, applied
from admin.install.retirement_steps import RetirementSteps
from admin.install.settings import Hold, Interpreters, Settings
from admin.install.step import (
    HOST,
    KARMADA,
    Action,
    Available,
    CopyCertificates,
    Established,
    Registered,
    Step,
)
from webhook.configuration import NAME
from webhook.policies import policies

ESTIMATOR_CLIENT: Final = "fairway-estimator-client"
"""The Secret that the dispatcher shows to estimators."""
_CLIENT_PKI: Final = "/etc/fairway/estimator-client"


def plan(package: Package, settings: Settings, around: Surroundings) -> tuple[Step, ...]:
    """All steps, in order; also those that would remove what is not there. Raises ManifestError."""
    parts = Parts(package, settings, around)
    identities = IdentitySteps(parts)
    planner = _Planner(parts, identities, EstimatorSteps(parts), RetirementSteps(parts, identities))
    return tuple(planner.steps())


@dataclass(frozen=True, slots=True)
class _Planner:
    parts: Parts
    identities: IdentitySteps
    estimators: EstimatorSteps
    retirements: RetirementSteps

    def steps(self) -> Iterator[Step]:
        yield from self.identities.namespaces()
        if self.parts.settings.catalogue:
            yield self._catalogue()
        yield self._definitions()
        yield from self.identities.identities()
        yield from self._gang_classes()
        yield self.identities.kubeconfigs()
        yield from self._interpreters()
        yield from self.estimators.steps()
        yield self._dispatcher()
        yield from self.retirements.estimators()
        yield from self._hold()
        yield from self.retirements.holds()
        if self.parts.settings.sample_queue:
            yield self._sample()

    def _catalogue(self) -> Step:
        namespaces = [self.parts.settings.namespace]
        if self.parts.estimated():
            namespaces.append(self.parts.settings.karmada_namespace)
        data = {"data": {CATALOGUE_FILE: self.parts.settings.catalogue}}
        made = [self.parts.built("ConfigMap", namespace, CATALOGUE, data) for namespace in namespaces]
        return Step("catalogue", "say what further resource names mean", HOST, applied(made))

    def _definitions(self) -> Step:
        crds = self.parts.ours(self.parts.package.crds)
        return Step(
            "queue-kinds",
            "define ResourceFlavor, ClusterQueue, LocalQueue and ServiceClass",
            KARMADA,
            applied(crds),
            tuple(Established(each) for each in crds),
            "deleted by fairway uninstall --delete-queues, with all queues",
        )

    def _gang_classes(self) -> Iterator[Step]:
        for plane, manifests in self.parts.planes():
            classes = [each for each in manifests if each.kind.kind == "PriorityClass"]
            if classes:
                does = "let the larger pods of a gang have their turn first"
                undone = "deleted by fairway uninstall where no pod names them"
                yield Step("gang-classes", does, plane, applied(classes), undone=undone)

    def _interpreters(self) -> Iterator[Step]:
        chosen = [each for each in self.parts.ours(self.parts.package.interpreters) if self._is_chosen(each)]
        if chosen:
            does = "tell Karmada what the kinds of AI workloads ask for"
            yield Step("interpreters", does, KARMADA, applied(chosen))
        yield from self.retirements.interpreters(chosen)

    def _is_chosen(self, interpreter: Manifest) -> bool:
        if self.parts.settings.interpreters is Interpreters.NONE:
            return False
        if interpreted_kind(interpreter) in self.parts.around.interpreted:
            return False
        replaces = interpreter.labels.get(REPLACES_BUILT_IN) == "true"
        return self.parts.settings.interpreters is Interpreters.ALL or not replaces

    def _dispatcher(self) -> Step:
        manifests = [
            self.parts.scoped(self.parts.reaching_karmada(each)) for each in self.parts.of(DISPATCHER)
        ]
        actions: list[Action] = []
        layout = self.parts.around.layout
        if layout is not None and self.parts.estimated():
            namespace, component = self.parts.settings.namespace, DISPATCHER
            secret = self.parts.built("Secret", namespace, ESTIMATOR_CLIENT, {"type": "Opaque"}, component)
            source = (
                f"/api/v1/namespaces/{self.parts.settings.karmada_namespace}/secrets/{layout.client.secret}"
            )
            actions.append(CopyCertificates(secret, source, layout.client))
            manifests = [
                self._asking_estimators(each) if each.kind.kind == "Deployment" else each
                for each in manifests
            ]
        flags = self.parts.settings.dispatcher_flags
        manifests = [
            with_arguments(each, flags) if each.kind.kind == "Deployment" else each for each in manifests
        ]
        until = tuple(Available(each) for each in manifests if each.kind.kind == "Deployment")
        does = "run the dispatcher, which releases held workloads"
        return Step("dispatcher", does, HOST, (*actions, *applied(manifests)), until)

    def _asking_estimators(self, dispatcher: Manifest) -> Manifest:
        """Ours alone: a stock estimator cannot answer the dispatcher's questions."""
        arguments = [
            f"--scheduler-estimator-ca-file={_CLIENT_PKI}/ca.crt",
            f"--scheduler-estimator-cert-file={_CLIENT_PKI}/tls.crt",
            f"--scheduler-estimator-key-file={_CLIENT_PKI}/tls.key",
            *(
                f"--estimator={cluster}={self.estimators.address(cluster)}"
                for cluster, _ in self.parts.around.members
            ),
        ]
        source = {"secret": {"secretName": ESTIMATOR_CLIENT}}
        return with_arguments(with_volume(dispatcher, "estimator-client", source, _CLIENT_PKI), arguments)

    def _hold(self) -> Iterator[Step]:
        if self.parts.settings.hold is Hold.WEBHOOK:
            manifests = [
                self.parts.scoped(self.parts.reaching_karmada(each)) for each in self.parts.of(WEBHOOK)
            ]
            until = tuple(Available(each) for each in manifests if each.kind.kind == "Deployment")
            does = "run the webhook, which holds workloads from now on"
            yield Step("webhook", does, HOST, applied(manifests), until)
            configuration = self.parts.built("MutatingWebhookConfiguration", "", NAME, {})
            registered = Registered(configuration, webhook_url(self.parts.settings.namespace))
            does = "see that the webhook has registered itself, so that it is asked"
            yield Step("registration", does, KARMADA, (), (registered,))
        elif self.parts.settings.hold is Hold.POLICIES:
            made = [
                marked(manifest_of(each, "webhook policies")) for each in policies(self.parts.around.scope)
            ]
            does = "let Karmada's API server hold workloads from now on"
            yield Step("policies", does, KARMADA, applied(made))

    def _sample(self) -> Step:
        does = "make a queue to begin with"
        return Step("sample-queue", does, KARMADA, applied(sample_queue()))


REPLACES_BUILT_IN: Final = "fairway.dev/replaces-built-in"
"""Label of an interpreter: Karmada has one of its own for the kind."""


def interpreted_kind(interpreter: Manifest) -> str:
    """The kind that a ResourceInterpreterCustomization is about, as ``group/kind``."""
    spec = interpreter.body.get("spec")
    target = spec.get("target") if isinstance(spec, dict) else None
    if not isinstance(target, dict):
        return ""
    return f"{str(target.get('apiVersion', '')).rpartition('/')[0]}/{target.get('kind', '')}"


def webhook_url(namespace: str) -> str:
    """Where Karmada's API server asks the webhook, without a path, as the packaged Deployment says it."""
    return f"https://fairway-webhook.{namespace}.svc:443"


def sample_queue() -> list[Manifest]:
    """A flavor of all clusters, a queue without limits of its own, and a name for it in ``default``."""
    flavor = {"spec": {"clusterSelector": {}, "capacityPolicy": {"type": "FromClusters"}}}
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "100%"}
    groups = [
        {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "everything", "resources": [quota]}]}
    ]
    return [
        built(the("ResourceFlavor"), "", "everything", flavor, LABELS),
        built(the("ClusterQueue"), "", "all", {"spec": {"resourceGroups": groups}}, LABELS),
        built(the("LocalQueue"), "default", "main", {"spec": {"clusterQueue": "all"}}, LABELS),
    ]
