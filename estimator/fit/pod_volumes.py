"""The claims on persistent volumes that each pod of a template makes or shares with others."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from estimator.cluster.storage import Tell, VolumeAsk, read_ask
from fairway.kube.objects import VolumeClaimSpec
from fairway.kube.templates import TemplateSpec

_NO_CLAIMS: Mapping[str, VolumeClaimSpec] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A claim of a pod: one that exists under ``key`` and all pods share, or (``ask``) one of each pod's own.

    ``key``: ``namespace/name``; of an own claim the name that its volume has in the pod.
    """

    key: str
    ask: VolumeAsk | None = None

    @property
    def own(self) -> bool:
        """Whether each pod has one of its own, which does not exist yet."""
        return self.ask is not None

    @property
    def name(self) -> str:
        """The claim's name, as messages may show it."""
        return self.key.rpartition("/")[2][:253]


def pod_volumes(
    spec: TemplateSpec,
    namespace: str,
    claim_templates: Mapping[str, VolumeClaimSpec] = _NO_CLAIMS,
    tell: Tell = lambda problem: None,
) -> tuple[PodVolume, ...]:
    """The claims of each pod made from the template; ``claim_templates``: those of a StatefulSet, by name.

    What cannot be read of them is told.
    """
    found: list[PodVolume] = []
    for volume in spec.volumes or ():
        if volume.name in claim_templates:
            continue  # the StatefulSet's own takes its place
        if volume.persistent_volume_claim is not None:
            found.append(PodVolume(f"{namespace}/{volume.persistent_volume_claim.claim_name}"))
        elif volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
            ask = read_ask(volume.ephemeral.volume_claim_template.spec, tell)
            found.append(PodVolume(f"{namespace}/{volume.name}", ask))
    found += [
        PodVolume(f"{namespace}/{name}", read_ask(stated, tell)) for name, stated in claim_templates.items()
    ]
    return tuple(dict.fromkeys(found))
