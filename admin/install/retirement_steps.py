"""What held workloads before, or interpreted kinds, and these settings want no longer: removed.

After what takes its place, so that nothing slips through in between. A webhook goes as it does when
everything goes: first its right to register itself, then its registration, then its pods, and when they have
ended the registration once more; one that stayed would keep all bindings from being written.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from admin.install.identity_steps import IdentitySteps
from admin.install.manifest import Manifest, manifest_of
from admin.install.package import WEBHOOK
from admin.install.parts import Parts
from admin.install.settings import EstimatorMode, Hold
from admin.install.step import HOST, KARMADA, Ended, Remove, Step
from webhook.configuration import NAME
from webhook.policies import policies

_UNDONE = "made again by fairway install with the flags of before"


@dataclass(frozen=True, slots=True)
class RetirementSteps:
    """The steps about what other settings have left."""

    parts: Parts
    identities: IdentitySteps

    def holds(self) -> Iterator[Step]:
        """Without the webhook, or the policies, where the settings say otherwise."""
        if self.parts.settings.hold is not Hold.WEBHOOK:
            yield from self._webhook()
        if self.parts.settings.hold is not Hold.POLICIES:
            made = [manifest_of(each, "webhook policies") for each in policies(self.parts.around.scope)]
            yield _removing("policies-removed", "let policies hold no longer", KARMADA, reversed(made))

    def _webhook(self) -> Iterator[Step]:
        registration = Remove(
            self.parts.built("MutatingWebhookConfiguration", "", NAME, {}), is_unlabelled=True
        )
        identities = self.identities.of(WEBHOOK)
        rights = [each for each in identities if each.kind.kind.startswith("ClusterRole")]
        does = "ask the webhook no longer"
        # The role goes last: as long as it is there, a run that was cut off comes back here.
        *bindings, role = [Remove(each) for each in reversed(rights)]
        yield Step("webhook-silenced", does, KARMADA, (*bindings, registration, role), (), _UNDONE)
        programs = self.parts.of(WEBHOOK)
        credentials = self.identities.karmada_kubeconfig(WEBHOOK, self.parts.settings.namespace).manifest
        until = tuple(
            Ended(each, f"fairway-{WEBHOOK}") for each in programs if each.kind.kind == "Deployment"
        )
        yield _removing("webhook-removed", "end the webhook", HOST, (*reversed(programs), credentials), until)
        certificates = Remove(
            self.parts.built("Secret", self.parts.settings.namespace, f"fairway-{WEBHOOK}", {}),
            is_unlabelled=True,
        )
        rest = [Remove(each) for each in reversed(identities) if each not in rights]
        does = "forget the webhook's identity and certificates"
        yield Step("webhook-forgotten", does, KARMADA, (registration, certificates, *rest), (), _UNDONE)

    def estimators(self) -> Iterator[Step]:
        """Without the estimator for all members, when nobody is sent to it."""
        if self.parts.settings.estimator is not EstimatorMode.SHARED:
            programs = self.parts.ours(self.parts.package.for_many)
            does = "end the estimator for all members"
            yield _removing("estimator-for-many-removed", does, HOST, reversed(programs))

    def interpreters(self, kept: Iterable[Manifest]) -> Iterator[Step]:
        """Without the interpreters that are not among those to be kept."""
        paths = {each.path for each in kept}
        gone = [each for each in self.parts.ours(self.parts.package.interpreters) if each.path not in paths]
        if gone:
            does = "leave to Karmada what it asks about these kinds"
            yield _removing("interpreters-removed", does, KARMADA, gone)


def _removing(
    name: str, does: str, plane: str, manifests: Iterable[Manifest], until: tuple[Ended, ...] = ()
) -> Step:
    return Step(name, does, plane, tuple(Remove(each) for each in manifests), until, _UNDONE)
