"""Who holds which device of a cluster, what was measured on it, and what is to be said about that.

Requests decide how much a pod holds, what kubelet allocated decides which devices. A device of which nothing
was measured is not measured: it is never taken for one that does nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.devices import NodeFacts, Read
from fairway.accelerators.listed import Listed
from fairway.accelerators.product_names import spelled
from fairway.kube.node_devices import Health, NodeDevices
from fairway.moments import moment_s
from fairway.usage.bound_pod import BoundPod
from fairway.usage.dealt import Dealer
from fairway.usage.definitions import THRESHOLDS, Thresholds
from fairway.usage.held import Held, HeldDevices, Inventory, stated_devices
from fairway.usage.judged import judged
from fairway.usage.measured import Measured, MeasuredNode, measured
from fairway.usage.no_agents import COULD_NOT_READ, NO_AGENTS
from fairway.usage.owner import HASH, Owner, Owners
from fairway.usage.use import ClusterUsage, HoldingPod, SickDevice, Use

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Objects:
    """What is known of a cluster. ``pods``, ``agents``: by node; None where it could not be asked for agents.

    ``no_agents``: what is said where it has none.
    """

    nodes: Iterable[NodeFacts]
    pods: Mapping[str, Iterable[BoundPod]]
    agents: Mapping[str, NodeDevices] | None
    owners: Owners
    inventory: Inventory = stated_devices
    no_agents: str = NO_AGENTS


def by_node(agents: Iterable[NodeDevices]) -> dict[str, NodeDevices]:
    """The objects of agents by the names of their nodes, which are their own."""
    return {agent.metadata.name: agent for agent in agents}


def as_of_s(observed_s: Iterable[float | None], now_s: float, age_s: float) -> float:
    """When the objects were read, in seconds since the epoch: by now, where their age is 0.

    Of a file, whose date a copy changes, and of a cluster out of contact it is when the last agent wrote;
    ``observed_s``: when each of them did, None where that is no moment.
    """
    if not age_s:
        return now_s
    written = (at_s for at_s in observed_s if at_s is not None)
    return min(now_s, max(written, default=now_s - age_s))


def cluster_usage(
    cluster: str, objects: Objects, catalogue: Catalogue, now_s: float, limits: Thresholds = THRESHOLDS
) -> ClusterUsage:
    """Who uses what at ``now_s``, seconds since the epoch.

    Pods that have ended hold nothing, nor do those that wait for others to leave the node they are nominated
    to: every device counts once.
    """
    return joined(cluster, usage_parts(cluster, objects, catalogue, now_s, limits))


def usage_parts(
    cluster: str, objects: Objects, catalogue: Catalogue, now_s: float, limits: Thresholds = THRESHOLDS
) -> Iterator[ClusterUsage]:
    """The same node by node, and at last what is to be said of all of them.

    Nothing of a node is needed for another, so that whoever takes the parts in turn never has all at once.
    """
    lists: dict[str, Listed] = {}
    holdings = HeldDevices(objects.nodes, catalogue, objects.inventory, lists)
    agents = objects.agents or {}
    unasked: list[str] = []
    for node in dict.fromkeys((*objects.pods, *agents)):
        agent = agents.get(node)
        told = Read(MeasuredNode()) if agent is None else measured(agent, now_s, limits)
        dealer = Dealer(told.found.devices)
        if told.found.listed is not None:
            lists[node] = told.found.listed
        uses, problems = _uses(objects.pods.get(node, ()), holdings, dealer, objects.owners, now_s, limits)
        unasked += dealer.unasked
        sick = tuple(_sick(cluster, told.found.devices))
        if uses or sick or problems or told.problems:
            yield ClusterUsage(cluster, uses, sick, (*problems, *told.problems))
    known = None if objects.agents is None else agents.keys()
    notes = [*_unmeasured(holdings.accelerators(), known, objects.no_agents)]
    if unasked:
        said = "processes run on devices that their pods did not ask for"
        notes.append(f"{said}: {_named(sorted(unasked))}")
    yield ClusterUsage(cluster, (), (), tuple(notes))


def joined(cluster: str, parts: Iterable[ClusterUsage]) -> ClusterUsage:
    """One cluster of its parts."""
    uses: list[Use] = []
    sick: list[SickDevice] = []
    notes: list[str] = []
    for part in parts:
        uses += part.uses
        sick += part.sick
        notes += part.notes
    return ClusterUsage(cluster, tuple(uses), tuple(sick), tuple(notes))


def _uses(
    pods: Iterable[BoundPod],
    holdings: HeldDevices,
    dealer: Dealer,
    owners: Owners,
    now_s: float,
    limits: Thresholds,
) -> tuple[tuple[Use, ...], tuple[str, ...]]:
    """What the pods of one node hold, and what of them could not be read."""
    problems: list[str] = []
    uses: list[Use] = []
    parts: Counter[str] = Counter()
    openers: list[tuple[BoundPod, Held]] = []
    holders: list[tuple[BoundPod, tuple[Held, ...]]] = []
    for pod in pods:
        read = holdings.of(pod)
        problems += read.problems
        if read.found or dealer.knows(pod):
            holders.append((pod, read.found))
    # Whatever order the pods are listed in, the same ones get what cannot be divided.
    for pod, found in sorted(holders, key=lambda holder: (holder[0].namespace, holder[0].name)):
        for held in found:
            if held.opener:
                openers.append((pod, held))
            elif held.group:
                parts[held.group] += held.nano
        holding = _holding(pod, owners, now_s)
        uses += judged(tuple(dealer.dealt(holding, pod.tenancy.uid, found)), limits)
    for pod, held in openers:
        # What pods have parts of is theirs; the rest of the device is held for whoever comes.
        rest = held.nano - parts[held.group]
        if rest > 0:
            left = msgspec.structs.replace(held, nano=rest)
            uses.append(dealer.use_of(_holding(pod, owners, now_s), left, 1, None))
    return tuple(uses), tuple(problems)


def _holding(pod: BoundPod, owners: Owners, now_s: float) -> HoldingPod:
    namespace, stay = pod.namespace, pod.tenancy
    own = Owner("Pod", pod.name, "v1", stay.uid)
    owner = owners.behind(namespace, own, pod.controller, pod.labels.get(HASH, ""))
    since_s = moment_s(stay.since)
    age_s = None if since_s is None else max(0, int(now_s - since_s))
    return HoldingPod(namespace, pod.name, owner, owners.queue(namespace, stay.queue, owner), pod.node, age_s)


def _sick(cluster: str, devices: Iterable[Measured]) -> Iterator[SickDevice]:
    for device in devices:
        if device.health is not Health.HEALTHY:
            pods = sorted({f"{holds.namespace}/{holds.pod}" for holds in device.holders})
            yield SickDevice(
                cluster,
                device.node,
                device.id,
                device.index,
                spelled(device.product),
                device.health.value,
                device.problems,
                tuple(pods),
            )


def _unmeasured(nodes: tuple[str, ...], written: Collection[str] | None, no_agents: str) -> Iterator[str]:
    """Whose devices nobody measures. ``written``: the nodes whose agents have; None where nobody knows."""
    if not nodes:
        return
    if not written:
        yield f"{COULD_NOT_READ if written is None else no_agents}; no device is measured"
        return
    without = [node for node in nodes if node not in written]
    if without:
        yield f"no agent has written of {_named(without)}; the devices there are not measured"


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
