"""Why an answer is not larger: one kind in a word for metrics, one sentence for people.

The same value travels to callers, so that metrics, logs, terminals and people read the same thing. A sentence
holds everything that its reason says; names from outside are cut short in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairway.resources import PODS, format_amount
from fairway.taints import UNSCHEDULABLE, Taint

_SHOWN = 5
_SHOWN_NAMES = 8
_DOMAINS = {"": "on each node", "*": "in the whole cluster"}

DOUBT = "doubt"
"""The kind of a reason which says that the true number is not known."""
NOT_KNOWN = "not_known"
"""The kind of a reason which says that the truth may be less."""
EITHER_WAY = "either_way"
"""The kind of a reason which says that the truth may be less or more."""
TOPOLOGY_CONFLICT = "topology_conflict"
"""The kind of a reason which says that what is asked for is not worked out."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. Of a doubt, ``cause`` is one word for metrics and ``detail`` says what to look at."""

    kind: str
    text: str
    cause: str = field(default="", compare=False)
    detail: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text


def in_doubt(cause: str, detail: str) -> Reason:
    """The true number is not known."""
    return Reason(DOUBT, f"in doubt ({cause}): {detail}", cause, detail)


# --- nodes, resources and quotas -------------------------------------------------------------------------

NO_NODES = Reason("no_nodes", "the cluster has no nodes")


def insufficient(resource: str, nodes: int) -> Reason:
    """On so many eligible nodes not one more pod fits, for want of this resource."""
    return Reason("insufficient", f"insufficient {shown(resource)} on {counted(nodes, 'node')}")


def never_fits(resource: str, needs: int, largest: int, among: str = "the largest eligible node") -> Reason:
    """No node ``among`` these could hold the pod even if it were empty."""
    has = format_amount(resource, largest)
    return Reason("never_fits", f"never fits: needs {needed(resource, needs)}, {among} has {has}")


def no_such_node(asked: str, nodes: int) -> Reason:
    """What is asked of a node is true of none; ``asked`` in the workload's own terms."""
    return Reason("no_such_node", f"0 of {counted(nodes, 'node')} match {asked[:200]}")


def too_few_tolerated(nodes: int, blocked: Sequence[Reason]) -> Reason:
    """All nodes that the pods could use by their labels carry taints that these do not tolerate."""
    taints = "; ".join(reason.text for reason in blocked if reason.kind == "taint")
    which = "the only node that matches has" if nodes == 1 else f"all {nodes} nodes that match have"
    return Reason("untolerated", f"{which} a taint that is not tolerated: {taints[:200]}")


def too_few_nodes(resource: str, amount: int, wanted: int, largest: int) -> Reason:
    """Even with nothing else running, the nodes would hold fewer pods than are wanted."""
    what = (
        f"{counted(wanted, 'pod')} of {needed(resource, amount)} each" if amount else counted(wanted, "pod")
    )
    return Reason("too_few_nodes", f"{what} needed at once; with nothing else running {_fit(largest)}")


def short_nodes(resource: str, amount: int, wanted: int, there: int) -> Reason:
    """Each pod needs a node of its own with so much free of a resource."""
    each = " each" if wanted > 1 else ""
    text = f"{counted(wanted, 'node')} with {needed(resource, amount)} free{each} needed, {there} there"
    return Reason("short", text)


def short_pods(resource: str, amount: int, wanted: int, there: int) -> Reason:
    """Room for so many pods is wanted, and there is less; ``amount`` 0: not for want of a resource."""
    of = f" of {needed(resource, amount)}" + " each" * (wanted > 1) if amount else ""
    return Reason("short", f"room for {counted(wanted, 'pod')}{of} needed, for {there} there")


def untolerated(taint: Taint, nodes: int) -> Reason:
    """So many nodes carry a taint that the pod does not tolerate, be it that of a cordon."""
    if taint == UNSCHEDULABLE:
        return cordoned(nodes)
    return Reason("taint", f"taint {taint} on {counted(nodes, 'node')}")


def cordoned(nodes: int) -> Reason:
    """So many nodes are marked unschedulable."""
    return Reason("cordoned", f"{counted(nodes, 'node')} cordoned")


def mismatched(nodes: int) -> Reason:
    """So many nodes do not match the node selector or the required node affinity."""
    return Reason("node_selector", f"node selector or affinity matches none of {counted(nodes, 'node')}")


def filtered(plugin: str, why: str, nodes: int) -> Reason:
    """A filter of kube-scheduler turns down so many nodes, in its own words."""
    return Reason(_snake(plugin), f"{counted(nodes, 'node')} {why}")


def refused_pods(why: str) -> Reason:
    """The member's API server creates no such pods, in its own words."""
    return Reason("refused", f"the member's API server creates no such pod: {why[:500]}")


def not_known(what: Sequence[str]) -> Reason:
    """Constraints that the answer leaves out because they cannot be known: the truth may be less."""
    return Reason(NOT_KNOWN, f"fewer may fit, not known: {'; '.join(what[:_SHOWN])}")


def either_way(what: Sequence[str]) -> Reason:
    """What is not known and moves the answer up or down."""
    return Reason(EITHER_WAY, f"more or fewer may fit, not known: {'; '.join(what[:_SHOWN])}")


def held_for_assumed(pods: int, workloads: int) -> Reason:
    """Room held back for workloads that Karmada has placed and whose pods are not bound yet."""
    whose = f"{counted(workloads, 'workload')} on {'its' if workloads == 1 else 'their'} way"
    return Reason("assumed", f"room held for {counted(pods, 'pod')} of {whose}")


def kept_for_waiting(workloads: int) -> Reason:
    """What is free of the nodes that workloads are to have which wait for more room than that."""
    whose = f"{counted(workloads, 'workload')} that {'waits' if workloads == 1 else 'wait'} for more"
    return Reason("assumed", f"room kept on the nodes of {whose}")


def held_for_promised(pods: int, workloads: int) -> Reason:
    """Room left out for workloads that a dispatcher has sent here and whose pods are not bound yet."""
    whose = f"{counted(workloads, 'workload')} that {'is' if workloads == 1 else 'are'} promised it"
    return Reason("promised", f"room held for {counted(pods, 'pod')} of {whose}")


def quota_limit(quota: str, resource: str, free: int, needs: int) -> Reason:
    """A ResourceQuota leaves this much of a resource."""
    left, each = format_amount(resource, free), format_amount(resource, needs)
    return Reason("quota", f"ResourceQuota {quota} leaves {left} {shown(resource)}, each needs {each}")


def not_heeded(problems: Sequence[str]) -> Reason:
    """The workload's template says things that could not be used; each problem names its field."""
    more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return Reason("template", f"of the template is not heeded: {'; '.join(problems[:_SHOWN])}{more}")


# --- devices ---------------------------------------------------------------------------------------------


def devices_full(scheme: str, nodes: int, problems: Sequence[str] = ()) -> Reason:
    """On so many eligible nodes no device has room for the share that the pod asks for."""
    if problems:
        return Reason("devices", f"the devices asked for ({scheme}) cannot be read: {'; '.join(problems)}")
    on = counted(nodes, "node")
    return Reason("devices", f"no device with room for the share asked for ({scheme}) on {on}")


def unhealthy_devices(
    resource: str, devices: int, nodes: int, why: Sequence[str], *, untold: bool = False
) -> Reason:
    """So many devices behind a resource do not work, by the agents of their nodes, whatever is allocatable.

    ``untold``: who runs on them is not known, so that all pods count against the devices that work.
    """
    which = f"{counted(devices, 'device')} of {shown(resource)} unhealthy on {counted(nodes, 'node')}"
    told = f"{which}: {_listed(why)}" if why else which
    counts = "; who runs on them is not told: all pods count against the others" if untold else ""
    return Reason("unhealthy_devices", told + counts)


def claims_unmet(classes: Sequence[str], nodes: int, details: Sequence[str] = ()) -> Reason:
    """On so many eligible nodes no further pod gets the devices of these classes that it claims, and why."""
    named = " and ".join(shown(name) for name in classes[:_SHOWN]) or "any class"
    why = f": {'; '.join(details[:_SHOWN])}" if details else ""
    return Reason("dra", f"no device of class {named} free on {counted(nodes, 'node')}{why}")


def claims_unknown(problems: Sequence[str]) -> Reason:
    """What the pods claim of devices cannot be known or had anywhere in the cluster."""
    return Reason("dra_unknown", f"the devices claimed cannot be promised: {'; '.join(problems[:_SHOWN])}")


def slices_in_use(accelerator: str, topology: str, slices: int) -> Reason:
    """TPU slices of one shape that are whole but not wholly free for this pod."""
    name = f"{shown(accelerator)} {shown(topology)}"
    return Reason("slices_in_use", f"{counted(slices, 'slice')} of {name} not wholly free")


def broken_slices(accelerator: str, topology: str, slices: int, hosts: int) -> Reason:
    """TPU slices of one shape that lack hosts or health, or whose hosts contradict each other."""
    told = f"{counted(slices, 'slice')} of {shown(accelerator)} {shown(topology)}"
    return Reason("broken_slices", f"{told} without all of {hosts} healthy hosts")


def part_of_host(asked: int, chips: int, nodes: int) -> Reason:
    """A pod in a multi-host TPU slice must ask for all chips of its host, and this one does not."""
    never = f"never fits on {counted(nodes, 'node')} of multi-host TPU slices"
    return Reason("tpu_chips", f"{never}: asks for {asked} google.com/tpu, expected all {chips} of a host")


def unreadable_tpu_labels(nodes: int, detail: str) -> Reason:
    """So many nodes have TPUs whose slice cannot be told from their labels, so none of it is promised."""
    return Reason("tpu_labels", f"TPU slice of {counted(nodes, 'node')} unknown: {detail}")


# --- gangs, topology and spreading -----------------------------------------------------------------------


def gang_limit(component: str, replicas: int, fits: int) -> Reason:
    """Whole sets are limited by this component."""
    needs = f"component {shown(component)} needs {counted(replicas, 'pod')} a set"
    return Reason("component", f"{needs}, {_fit(fits)} at all")


def gang_short(needs: int, fits: int) -> Reason:
    """A gang that starts whole or not at all needs more pods at once than fit."""
    return Reason("gang", f"the gang needs {counted(needs, 'pod')} at once, {_fit(fits)}")


def understated(detail: str) -> Reason:
    """The value is one that surely fits; the true number may be larger, up to the bound."""
    return Reason("understated", f"more may fit: {detail}")


def unknown_level(level: str, known: Sequence[str]) -> Reason:
    """The topology level asked for is none of this cluster's."""
    return Reason(
        "unknown_level",
        f"topology level {shown(level)!r} is unknown here: expected a label key that nodes carry, "
        f"or a short name of one of this cluster's levels ({_listed(known) if known else 'none'})",
    )


def ambiguous_level(level: str, keys: Sequence[str]) -> Reason:
    """The short name asked for stands for several levels of this cluster."""
    told = f"topology level {shown(level)!r} may be any of {_listed(keys)}"
    return Reason("ambiguous_level", f"{told}: name the level by its label key")


def outside_level(level: str, nodes: int, malformed: int = 0, example: str = "") -> Reason:
    """So many nodes are in no domain of a level, for want of its label or of a coarser one.

    On ``malformed`` of them a label is there and is no name of a domain; ``example`` is one such value.
    """
    text = f"{counted(nodes, 'node')} in no domain of {shown(level)}: label missing"
    if malformed:
        text += f" or, on {malformed} of them, malformed ({shown(example)!r})"
    return Reason("topology_label", text)


def domain_limit(level: str, pods: int, domains: int, largest: int) -> Reason:
    """Of the domains of a level, the roomiest holds ``largest`` of the ``pods`` that must be in one."""
    told = f"{counted(pods, 'pod')} must be in one domain of {shown(level)}"
    return Reason("topology", f"{told}; the roomiest of {domains} holds {largest}")


def one_domain(keys: Sequence[str], largest: int) -> Reason:
    """Pods that want their own company must all be in one domain of these labels."""
    told = f"all pods must share {' and '.join(shown(key) for key in keys)}"
    return Reason("topology", f"{told}; the roomiest domain takes {largest}")


def held_domains(level: str, domains: int) -> Reason:
    """So many domains belong to other workloads that want them for themselves, or are not wholly free."""
    return Reason("exclusive", f"{counted(domains, 'domain')} of {shown(level)} in use by others")


def fits_within(level: str) -> Reason:
    """One copy fits within a single domain of this level, and of no finer one that was asked for."""
    return Reason("fits_within", f"one copy fits within one domain of {shown(level)}")


def uneven_slices(component: str, replicas: int, size: int) -> Reason:
    """The pods of a component cannot be cut into slices of the size asked for."""
    has = f"component {shown(component)} has {counted(replicas, 'pod')}"
    uneven = f"which slices of {size} do not make up"
    return Reason("slice_size", f"{has}, {uneven}: expected a positive slice size that divides it")


def crossed_topologies(component: str, own: str, gang: str) -> Reason:
    """A component is tied to one level by itself and sliced over another, and neither implies the other."""
    return Reason(
        TOPOLOGY_CONFLICT,
        f"component {shown(component)} is tied to {shown(own)} inside a gang in slices over {shown(gang)}: "
        "expected whole slices within each domain of its own",
    )


def scarcest_domain(key: str, max_skew: int, domains: int, least: int) -> Reason:
    """Even spreading over the domains of a label: the scarcest of them holds ``least`` pods."""
    between = f"between {counted(domains, 'domain')} of {shown(key)}"
    return Reason(
        "spread", f"pods may differ by at most {max_skew} {between}, the scarcest of which takes {least}"
    )


def domain_cap(key: str, most: int) -> Reason:
    """At most so many pods in each domain: anti-affinity to each other, host ports, volumes for one pod."""
    where = _DOMAINS.get(key, f"in each domain of {shown(key)}")
    return Reason("per_domain", f"at most {counted(most, 'pod')} {where}")


# --- words -----------------------------------------------------------------------------------------------


def needed(resource: str, amount: int) -> str:
    """An amount of a resource in a sentence: ``8 nvidia.com/gpu``, and ``1 pod`` of what is named pods."""
    if resource == PODS:
        return counted(amount, "pod")
    return f"{format_amount(resource, amount)} {shown(resource)}"


def shown(name: str) -> str:
    """A name from outside, short enough for a sentence."""
    return name if len(name) <= 63 else name[:60] + "..."


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _fit(count: int) -> str:
    return f"{count} fits" if count == 1 else f"{count} fit"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    text = ", ".join(shown(name) for name in names[:_SHOWN_NAMES])
    return f"{text} and {more} more" if more > 0 else text
