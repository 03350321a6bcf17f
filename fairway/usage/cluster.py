"""Who holds which device of a cluster, what was measured on it, and what is to be said about that.

Requests decide how much a pod holds, what kubelet allocated decides which devices. A device of which nothing
was measured is not measured: it is never taken for one that does nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.devices import NodeFacts
from fairway.kube.node_devices import Health, NodeDevices
from fairway.moments import moment_s
from fairway.usage.bound_pod import BoundPod
from fairway.usage.dealt import Dealer, use_of
from fairway.usage.definitions import THRESHOLDS, Thresholds
from fairway.usage.held import Held, HeldDevices, Inventory, stated_devices
from fairway.usage.judged import judged
from fairway.usage.measured import Measured, measured
from fairway.usage.owner import HASH, Owners
from fairway.usage.use import ClusterUsage, HoldingPod, SickDevice, Use

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Objects:
    """What is known of a cluster. ``agents``: None where it could not be asked for them."""

    nodes: tuple[NodeFacts, ...]
    pods: Iterable[BoundPod]
    agents: tuple[NodeDevices, ...] | None
    owners: Owners
    inventory: Inventory = stated_devices


def as_of_s(agents: Iterable[NodeDevices], now_s: float, age_s: float) -> float:
    """When the objects were read, in seconds since the epoch: by now, where their age is 0.

    Of a file, whose date a copy changes, and of a cluster out of contact it is when the last agent wrote.
    """
    if not age_s:
        return now_s
    written = [at_s for one in agents if (at_s := moment_s(one.observed_at)) is not None]
    return min(now_s, max(written, default=now_s - age_s))


def cluster_usage(
    cluster: str, objects: Objects, catalogue: Catalogue, now_s: float, limits: Thresholds = THRESHOLDS
) -> ClusterUsage:
    """Who uses what at ``now_s``, seconds since the epoch; pods that have ended hold nothing."""
    holdings = HeldDevices(objects.nodes, catalogue, objects.inventory)
    told = measured(objects.agents or (), now_s, limits)
    dealer = Dealer(told.found)
    notes: list[str] = []
    uses: list[Use] = []
    parts: dict[tuple[str, str], int] = {}
    openers: list[tuple[BoundPod, Held]] = []
    for pod in objects.pods:
        node, read = pod.node, holdings.of(pod)
        notes += read.problems
        for held in read.found:
            if held.opener:
                openers.append((pod, held))
            elif held.group:
                parts[node, held.group] = parts.get((node, held.group), 0) + held.milli
        if read.found or dealer.knows(pod):
            mine = [held for held in read.found if not held.opener]
            holding = _holding(pod, objects.owners, now_s)
            uses += judged(tuple(dealer.dealt(holding, pod.tenancy.uid, mine)), limits)
    for pod, held in openers:
        # What pods have parts of is theirs; the rest of the device is held for whoever comes.
        rest = held.milli - parts.get((pod.node, held.group), 0)
        if rest > 0:
            holding = _holding(pod, objects.owners, now_s)
            uses.append(use_of(holding, replace(held, milli=rest), 1, None))
    if dealer.unasked:
        notes.append(f"processes run on devices that their pods did not ask for: {_named(dealer.unasked)}")
    notes += _unmeasured(holdings.accelerators(), objects.agents)
    return ClusterUsage(cluster, tuple(uses), tuple(_sick(cluster, told.found)), (*notes, *told.problems))


def _holding(pod: BoundPod, owners: Owners, now_s: float) -> HoldingPod:
    namespace, stay = pod.namespace, pod.tenancy
    owner = owners.behind(namespace, pod.name, pod.controller, pod.labels.get(HASH, ""))
    age_s = None if stay.since_s is None else max(0, int(now_s - stay.since_s))
    return HoldingPod(namespace, pod.name, owner, owners.queue(namespace, stay.queue, owner), pod.node, age_s)


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
