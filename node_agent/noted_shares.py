"""The devices of a pod's shares, as its sharing scheme noted them on it.

kubelet allocates HAMi's, Volcano's, gpushare's and Alnair's shares by ids of which it picks any: which device
a pod got has been decided before, by the scheme's scheduler, and stands in an annotation. HAMi and Volcano
write a part for each container, in the order of the pod's containers; the others write of the pod.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fairway.accelerators.devices import PodFacts
from fairway.accelerators.schemes import SCHEMES
from node_agent.device_ids import DeviceIds
from node_agent.local_pods import LocalPod


@dataclass(frozen=True, slots=True)
class NotedShare:
    """A share of a device that was read; ``container`` is empty where the pod does not say whose it is."""

    device: str
    container: str = ""


def noted_shares(pod: LocalPod, containers: Sequence[str], devices: DeviceIds) -> tuple[NotedShare, ...]:
    """What the pod's annotations say of devices of this node; nothing where none can be read.

    ``containers``: those to which kubelet gave such ids, in its order. They are told apart where there are as
    many parts as containers, those of devices that are not here included.
    """
    for mark, text in pod.marks.items():
        parts = [names for part in text.split(";") if (names := _names(pod.namespace, mark, part))]
        owners = containers if len(parts) == len(containers) else [""] * len(parts)
        found = tuple(
            NotedShare(share.device, container)
            for container, names in zip(owners, parts, strict=True)
            for name in names
            if (share := devices.noted(name)) is not None
        )
        if found:
            return found
    return ()


def _names(namespace: str, mark: str, part: str) -> list[str]:
    facts = PodFacts(namespace, annotations={mark: part})
    return [use.device for scheme in SCHEMES if mark in scheme.marks for use in scheme.uses(facts).found]
