"""What the devices of all nodes are, asked once for each kind of node instead of once for each node.

Labels and allocatable together tell what stands behind a resource (`fairway.accelerators.products`), and that
costs microseconds: too much for thousands of nodes a hundred times a minute. But a cluster has few kinds of
nodes. Rows that agree on every label that matters and on the numbers are one kind; one of them is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from estimator.capacity.topology.domains import combined
from estimator.cluster.columns import IntVector, NodeColumns
from fairway.accelerators.catalogue import Entry
from fairway.accelerators.devices import Read
from fairway.accelerators.products import NodeProduct, node_product

# Far more than a real cluster has; beyond, labels that differ on every node would make a report of nodes.
_MOST_KINDS = 512


@dataclass(frozen=True, slots=True)
class Kind:
    """The devices behind one resource on these rows, the same on all of them."""

    entry: Entry
    product: NodeProduct
    rows: IntVector


def kinds_of(columns: NodeColumns, entry: Entry, rows: IntVector) -> Read[tuple[Kind, ...]]:
    """The kinds of devices that the entry's resource stands for on these rows, each row in one of them.

    Rows beyond the first `_MOST_KINDS` kinds are read without their labels. Problems name a node each.
    """
    if not len(rows):
        return Read(())
    has, unhealthy = columns.allocatable(entry.resource)[rows], columns.unhealthy(entry.resource)[rows]
    labels = tuple(_labels(columns, entry, rows))
    numbers = (np.unique(number, return_inverse=True)[1] for number in (has, unhealthy))
    alike = combined((code, int(code.max())) for code in (*numbers, *(codes for _, codes, _ in labels)))
    _, example, kind_of = np.unique(alike, return_index=True, return_inverse=True)
    found: list[Kind] = []
    problems: list[str] = []
    if len(example) > _MOST_KINDS:
        problems.append(
            f"{entry.resource}: nodes are of {len(example)} kinds by label, of which {_MOST_KINDS} are told "
            "apart: expected labels that name products, not nodes"
        )
    order = np.argsort(kind_of, kind="stable")
    ends = np.cumsum(np.bincount(kind_of))
    for kind, (first, end) in enumerate(zip(example.tolist(), ends.tolist(), strict=True)):
        members = rows[order[ends[kind - 1] if kind else 0 : end]]
        carried = (
            {} if kind >= _MOST_KINDS else {key: values[int(codes[first])] for key, codes, values in labels}
        )
        stated = {key: value for key, value in carried.items() if value is not None}
        healthy = int(has[first])
        read = node_product(entry, stated, healthy, healthy + int(unhealthy[first]))
        found.append(Kind(entry, read.found, members))
        problems += [f"{_nodes(columns, members)}: {problem}" for problem in read.problems]
    return Read(tuple(found), tuple(problems))


def label_numbers(columns: NodeColumns, key: str, rows: IntVector) -> IntVector:
    """The label's value on each of the rows as a number, 0 where it is absent or none."""
    codes = columns.described.codes(key)
    number_of = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    for code, value in columns.described.values(key).items():
        number_of[code] = int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else 0
    return number_of[codes[rows]]


def node_name(columns: NodeColumns, row: int) -> str:
    """The name of the node on this row, empty where there is none."""
    node = columns.rows[row]
    return "" if node is None else node.name


def _labels(
    columns: NodeColumns, entry: Entry, rows: IntVector
) -> Iterator[tuple[str, IntVector, dict[int, str | None]]]:
    """The labels that some of the rows carry, of those that say anything about one node's devices."""
    stated = entry.labels
    for key in dict.fromkeys(
        (
            *stated.product,
            *stated.partition,
            *stated.memory,
            *stated.count,
            *stated.multiplier,
            *stated.sharing,
        )
    ):
        if key not in columns.described.keys:
            continue
        codes = columns.described.codes(key)[rows].astype(np.int64)
        if codes.any():
            yield key, codes, {0: None, **columns.described.values(key)}


def _nodes(columns: NodeColumns, rows: IntVector) -> str:
    name = node_name(columns, int(rows[0]))
    return f"node {name}" if len(rows) == 1 else f"node {name} and {len(rows) - 1} more like it"
