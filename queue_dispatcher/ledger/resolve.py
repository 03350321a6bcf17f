"""From ClusterQueues as they were written to a tree of quotas in amounts.

Nothing that administrators write stops more than it has to: a queue whose place in the tree cannot be told
admits nothing, and neither do those below it, while all others go on. Such a queue is kept as a root of its
own, so that what runs in it still counts and can be seen.

Percentages are rounded down, queue by queue. What that loses among the children of one parent, whole units of
it, goes to the parent, where all of them can borrow it: of 150 GPUs shared out to 100 queues by 1 % each,
every queue owns 1, and 50 are there for whoever needs them instead of for nobody (volcano#1096).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from queue_dispatcher.api.cluster_queue import ClusterQueue, StopPolicy
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.quota import WHOLE_MILLI_PERCENT, Amount, Percent, Quota, ResourceQuota
from queue_dispatcher.ledger.cells import Cell, CellTable
from queue_dispatcher.ledger.tree import CellQuota, QuotaNode, QuotaTree

PIECE = 500
"""Queues whose quotas are worked out at once."""

Capacities = Mapping[str, Mapping[str, int]]
"""By flavor and resource; a flavor is left out while its capacity is not known."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The tree, and what is wrong.

    ``stopped``: why a queue, and all below it, admits nothing, by name. ``inner``: the queues that have
    others below them; workloads wait in leaves. ``problems``: by name, what their authors should mend.
    ``drained``: the queues of which what runs is taken back, each with the one that says so, be it one above.
    """

    tree: QuotaTree
    stopped: Mapping[str, str]
    inner: frozenset[str]
    problems: Mapping[str, tuple[Problem, ...]]
    drained: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, queue: str) -> str:
        """Why workloads that name the queue are not admitted; empty if they are."""
        if queue in self.stopped:
            return self.stopped[queue]
        if queue in self.inner:
            return (
                f"ClusterQueue {queue} has queues below it, and workloads wait in queues that have none; let "
                "the LocalQueue name one of those"
            )
        return ""


def resolve(queues: Iterable[ClusterQueue], capacities: Capacities, table: CellTable) -> Resolved:
    """Build the tree. Of several queues of one name the last is taken."""
    for found in resolving(queues, capacities, table):
        if found is not None:
            return found
    raise AssertionError("resolving ends with what it has found")


def resolving(
    queues: Iterable[ClusterQueue], capacities: Capacities, table: CellTable
) -> Iterator[Resolved | None]:
    """`resolve` in pieces of some milliseconds, however many queues there are; the last gives the tree."""
    by_name = {queue.name: queue for queue in queues}
    problems: dict[str, list[Problem]] = {}
    misplaced = _misplaced(by_name)
    for name, problem in misplaced.items():
        problems.setdefault(name, []).append(problem)
    parents = {name: "" if name in misplaced else queue.parent for name, queue in by_name.items()}
    has_children = set(parents.values())
    quotas = {}
    for number, (name, queue) in enumerate(by_name.items(), 1):
        told: list[Problem] = []
        quotas[name] = _quotas(queue, name not in has_children, capacities, table, told)
        if told:
            problems.setdefault(name, []).extend(told)
        if number % PIECE == 0:
            yield None
    for name, rests in _rests(by_name, parents, capacities, table).items():
        for cell, rest in rests.items():
            own = quotas[name].get(cell, CellQuota())
            quotas[name][cell] = CellQuota(own.nominal + rest, own.borrowing_limit, own.lending_limit)
    yield None
    nodes = [
        QuotaNode(name, parents[name], queue.weight_milli, quotas[name]) for name, queue in by_name.items()
    ]
    yield None
    tree = QuotaTree(nodes, table)
    stopped = _stopped(by_name, parents, tree, misplaced)
    yield None
    shown = {name: tuple(found) for name, found in problems.items()}
    drained = _drained(by_name, parents, tree)
    yield Resolved(tree, stopped, frozenset(has_children & by_name.keys()), shown, drained)


def _misplaced(queues: Mapping[str, ClusterQueue]) -> dict[str, Problem]:
    """The queues whose parent is not there, or that are above themselves."""
    found: dict[str, Problem] = {}
    settled: set[str] = set()
    for start in queues:
        walked: dict[str, int] = {}
        name = start
        while name and name not in settled and name not in walked:
            walked[name] = len(walked)
            parent = queues[name].parent
            if parent and parent not in queues:
                found[name] = _problem(
                    f"{parent[:253]}: no ClusterQueue of that name; create it, or name another; "
                    "until then nothing is admitted here or below"
                )
                break
            name = parent
        if name in walked and name not in found:
            cycle = list(walked)[walked[name] :]
            first = cycle.index(min(cycle))
            shown = [*cycle[first:], *cycle[:first]]
            for member in cycle:
                found[member] = _problem(
                    f"{' -> '.join([*shown[:8], *(['...'] if len(shown) > 8 else []), shown[0]])}: a queue "
                    "cannot be above itself; give one of them another parent; until then nothing is admitted "
                    "in them or below"
                )
        settled.update(walked)
    return found


def _problem(message: str) -> Problem:
    return Problem("spec.parent", message)


def _stopped(
    queues: Mapping[str, ClusterQueue],
    parents: Mapping[str, str],
    tree: QuotaTree,
    misplaced: Mapping[str, Problem],
) -> dict[str, str]:
    stopped: dict[str, str] = {}
    # Parents come before their children.
    for node in tree.nodes:
        name, policy = node.name, queues[node.name].stop_policy
        if name in misplaced:
            stopped[name] = f"spec.parent of ClusterQueue {name} is {misplaced[name].message}"
        elif policy is not StopPolicy.NONE:
            stopped[name] = f"spec.stopPolicy of ClusterQueue {name} is {policy}"
        elif parents[name] in stopped:
            stopped[name] = stopped[parents[name]]
    return stopped


def _drained(
    queues: Mapping[str, ClusterQueue], parents: Mapping[str, str], tree: QuotaTree
) -> dict[str, str]:
    drained: dict[str, str] = {}
    for node in tree.nodes:
        name = node.name
        if queues[name].stop_policy is StopPolicy.HOLD_AND_DRAIN:
            drained[name] = name
        elif parents[name] in drained:
            drained[name] = drained[parents[name]]
    return drained


def _quotas(
    queue: ClusterQueue, is_leaf: bool, capacities: Capacities, table: CellTable, problems: list[Problem]
) -> dict[Cell, CellQuota]:
    quotas = {}
    for group_index, group in enumerate(queue.groups):
        for index, flavor in enumerate(group.flavors):
            field = partial("spec.resourceGroups[{}].flavors[{}]".format, group_index, index)
            shares = [name for name, quota in flavor.quotas.items() if _is_percent(quota)]
            if shares and flavor.flavor not in capacities:
                problems.append(
                    Problem(
                        field(),
                        f"{', '.join(shares)} as a percentage of flavor {flavor.flavor}, whose capacity is "
                        "not known; read as 0 until it is: see the ResourceFlavor, or state amounts",
                    )
                )
            capacity = capacities.get(flavor.flavor, {})
            for resource, quota in flavor.quotas.items():
                of = capacity.get(resource, 0)
                resolved = CellQuota(
                    _amount(quota.nominal, of),
                    None if quota.borrowing_limit is None else _amount(quota.borrowing_limit, of),
                    None if quota.lending_limit is None else _amount(quota.lending_limit, of),
                )
                quotas[table.cell(flavor.flavor, resource)] = resolved
                # Of a capacity that is 0, or not known, a share is 0 however large it is meant to be.
                is_meant = of > 0 or isinstance(quota.nominal, Amount)
                if (
                    is_leaf
                    and is_meant
                    and resolved.lending_limit is not None
                    and resolved.lending_limit > resolved.nominal
                ):
                    problems.append(
                        Problem(
                            f"{field()}.resources",
                            f"lendingLimit of {resource} is more than its nominalQuota, which is all that a "
                            "queue without children can lend; lower it, or remove it to lend everything",
                        )
                    )
    return quotas


def _rests(
    queues: Mapping[str, ClusterQueue], parents: Mapping[str, str], capacities: Capacities, table: CellTable
) -> dict[str, dict[Cell, int]]:
    """By parent: the whole units that its children's percentages lose by rounding down, together."""
    lost: dict[str, dict[Cell, int]] = {}
    for name, queue in queues.items():
        if not parents[name]:
            continue
        rests = lost.setdefault(parents[name], {})
        for group in queue.groups:
            for flavor in group.flavors:
                for resource, quota in flavor.quotas.items():
                    if isinstance(quota.nominal, Percent):
                        of = capacities.get(flavor.flavor, {}).get(resource, 0)
                        cell = table.cell(flavor.flavor, resource)
                        rest = of * quota.nominal.milli % WHOLE_MILLI_PERCENT
                        rests[cell] = rests.get(cell, 0) + rest
    return {
        name: {
            cell: rest // WHOLE_MILLI_PERCENT for cell, rest in rests.items() if rest >= WHOLE_MILLI_PERCENT
        }
        for name, rests in lost.items()
    }


def _is_percent(quota: ResourceQuota) -> bool:
    return (
        isinstance(quota.nominal, Percent)
        or isinstance(quota.borrowing_limit, Percent)
        or isinstance(quota.lending_limit, Percent)
    )


def _amount(quota: Quota, capacity: int) -> int:
    return quota.value if isinstance(quota, Amount) else quota.of(capacity)
