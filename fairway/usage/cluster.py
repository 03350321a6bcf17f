"""Who holds which device of a cluster, what was measured on it, and what is to be said about that.

Requests decide how much a pod holds, what kubelet allocated decides which devices. A device of which nothing
was measured is not measured: it is never taken for one that does nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.listed import listed
from fairway.kube.node_devices import Health, NodeDevices
from fairway.kube.objects import Node, Pod
from fairway.kube.plausible_devices import plausible
from fairway.usage.bound import bound_s
from fairway.usage.dealt import Dealer, use_of
from fairway.usage.definitions import THRESHOLDS, Thresholds
from fairway.usage.held import Held, HeldDevices
from fairway.usage.judged import judged
from fairway.usage.measured import Measured, measured
from fairway.usage.owner import Owners
from fairway.usage.use import ClusterUsage, HoldingPod, SickDevice, Use

_ENDED = ("Succeeded", "Failed")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Objects:
    """What is known of a cluster. ``agents``: None where it could not be asked for them."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    agents: tuple[NodeDevices, ...] | None
    owners: Owners


def cluster_usage(
    cluster: str, objects: Objects, catalogue: Catalogue, now_s: float, limits: Thresholds = THRESHOLDS
) -> ClusterUsage:
    """Who uses what at ``now_s``, seconds since the epoch.

    Pods that have ended hold nothing, nor do those that wait for others to leave the node they are nominated
    to: every device counts once.
    """
    told = measured(objects.agents or (), now_s, limits)
    fresh = (agent for agent in objects.agents or () if agent.metadata.name in told.found)
    lists = {agent.metadata.name: listed(plausible(agent)[0]) for agent in fresh}
    holdings = HeldDevices(objects.nodes, catalogue, lists)
    dealer = Dealer(told.found)
    notes: list[str] = []
    uses: list[Use] = []
    parts: dict[tuple[str, str], int] = {}
    openers: list[tuple[Pod, str, Held]] = []
    for pod in objects.pods:
        node = pod.spec.node_name
        if not node or pod.status.phase in _ENDED:
            continue
        read = holdings.of(pod, node)
        notes += read.problems
        for held in read.found:
            if held.opener:
                openers.append((pod, node, held))
            elif held.group:
                parts[node, held.group] = parts.get((node, held.group), 0) + held.milli
        if read.found or dealer.knows(pod, node):
            holding = _holding(pod, node, objects.owners, now_s)
            uses += judged(tuple(dealer.dealt(holding, pod.metadata.uid, read.found)), limits)
    for pod, node, held in openers:
        # What pods have parts of is theirs; the rest of the device is held for whoever comes.
        rest = held.milli - parts.get((node, held.group), 0)
        if rest > 0:
            holding = _holding(pod, node, objects.owners, now_s)
            uses.append(use_of(holding, replace(held, milli=rest), 1, None))
    if dealer.unasked:
        notes.append(f"processes run on devices that their pods did not ask for: {_named(dealer.unasked)}")
    notes += _unmeasured(holdings.accelerators(), objects.agents)
    return ClusterUsage(cluster, tuple(uses), tuple(_sick(cluster, told.found)), (*notes, *told.problems))


def _holding(pod: Pod, node: str, owners: Owners, now_s: float) -> HoldingPod:
    owner, since_s = owners.owner(pod), bound_s(pod.metadata, pod.status.conditions)
    age_s = None if since_s is None else max(0, int(now_s - since_s))
    return HoldingPod(pod.metadata.namespace, pod.metadata.name, owner, owners.queue(pod, owner), node, age_s)


def _sick(cluster: str, found: Mapping[str, tuple[Measured, ...]]) -> Iterator[SickDevice]:
    for node, devices in sorted(found.items()):
        for device in devices:
            if device.health is not Health.HEALTHY:
                pods = sorted({f"{holds.namespace}/{holds.pod}" for holds in device.holders})
                yield SickDevice(
                    cluster,
                    node,
                    device.id,
                    device.index,
                    device.product,
                    device.health.value,
                    device.problems,
                    tuple(pods),
                )


def _unmeasured(nodes: tuple[str, ...], agents: tuple[NodeDevices, ...] | None) -> Iterator[str]:
    """Whose devices nobody measures."""
    if not nodes:
        return
    if not agents:
        why = "could not be read" if agents is None else "there are none (does the node agent run here?)"
        yield f"NodeDevices: {why}; no device is measured"
        return
    written = {agent.metadata.name for agent in agents}
    without = [node for node in nodes if node not in written]
    if without:
        yield f"no agent has written of {_named(without)}; the devices there are not measured"


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
