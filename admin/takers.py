"""What takes the CPU and memory of nodes whose free devices are of no use for want of it."""

from collections.abc import Collection
from dataclasses import dataclass

from estimator.capacity.summary import Summary
from fairway.kube.dumps import Dump
from fairway.kube.objects import Deployment, Pod, ReplicaSet
from fairway.resources import Amounts, ResourceError, is_extended, parse_amounts, pod_request
from fairway.usage.owner import Owners

MOST = 5
WITH_DEVICES, WITHOUT_DEVICES = "pods with devices", "pods without devices"
_SCARCE = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Taker:
    """A workload that holds ``amount`` of the resource ``cause`` on nodes that lack it.

    ``percent``: of what these nodes have together. Cpu in milli-cores, memory in bytes. Several pods of a
    namespace that nobody controls are one workload, without a name. Without a namespace it is the sum over
    all pods that hold devices (``owner`` `WITH_DEVICES`), or over all that do not.
    """

    cause: str
    namespace: str
    owner: str
    pods: int
    amount: int
    percent: int


def takers(dump: Dump, summary: Summary) -> tuple[Taker, ...]:
    """For each of cpu and memory who holds it where it is scarce.

    First the sums, then the `MOST` workloads that hold most, from 1 % on.
    """
    of = {cause: {node.node for node in summary.stranded if node.cause == cause} for cause in _SCARCE}
    if not any(of.values()):
        return ()
    owners = Owners(dump.of(ReplicaSet), dump.of(Deployment))
    return tuple(taker for cause in _SCARCE for taker in _of(cause, of[cause], dump, owners))


def _of(cause: str, nodes: Collection[str], dump: Dump, owners: Owners) -> list[Taker]:
    has = sum(_allocatable(dump, cause, nodes))
    held: dict[tuple[str, str], list[int]] = {}
    names: dict[tuple[str, str], str] = {}
    sums: dict[str, list[int]] = {WITH_DEVICES: [], WITHOUT_DEVICES: []}
    for pod in dump.pods:
        if (pod.spec.node_name or pod.status.nominated_node_name) not in nodes:
            continue
        request = _request(pod)
        amount = request.get(cause, 0)
        if amount:
            owner = owners.owner(pod)
            key = (pod.metadata.namespace, "" if owner.kind == "Pod" else str(owner))
            held.setdefault(key, []).append(amount)
            names[key] = str(owner)
            sums[WITH_DEVICES if any(map(is_extended, request)) else WITHOUT_DEVICES].append(amount)
    most = sorted(held.items(), key=lambda item: (-sum(item[1]), item[0]))[:MOST]
    every = [
        *((("", owner), amounts) for owner, amounts in sums.items()),
        *(((key[0], names[key] if len(amounts) == 1 else key[1]), amounts) for key, amounts in most),
    ]
    found = [
        Taker(cause, *key, len(amounts), sum(amounts), 100 * sum(amounts) // has if has else 0)
        for key, amounts in every
    ]
    return [taker for taker in found if taker.percent]


def _allocatable(dump: Dump, resource: str, nodes: Collection[str]) -> list[int]:
    found = []
    for node in dump.nodes:
        if node.metadata.name in nodes:
            try:
                found.append(parse_amounts(node.status.allocatable).get(resource, 0))
            except ResourceError:
                # Whoever counts the node's devices has told it.
                continue
    return found


def _request(pod: Pod) -> Amounts:
    """What a pod that has not ended holds; nothing where that cannot be read, which the summary has told."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return {}
    try:
        return pod_request(pod)
    except ResourceError:
        return {}
