"""Volumes that lie ready for pods to come: how many of them each node reaches.

Local volumes are many and each on one node, named by one label: these are counted by the label's values, all
rows at once. Others are few, and counted set of nodes by set of nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from estimator.cluster.columns import IntVector, NodeColumns
from estimator.cluster.volumes import Reached
from estimator.fit.eligibility import rows_reached


@dataclass(frozen=True, slots=True, eq=False)
class ReadyVolumes:
    """How many volumes each row reaches, and how many any row does.

    ``is_exact``: whether as many can be used at the same time as these two numbers allow: each volume is on
    one node, or all of them on the same nodes.
    """

    counts: IntVector
    reachable: int
    is_exact: bool


def ready_volumes(nodes: NodeColumns, volumes: Mapping[Reached, int]) -> ReadyVolumes:
    """How many volumes the nodes reach; ``volumes``: how many there are, by who reaches them."""
    counts = np.zeros(len(nodes.rows), dtype=np.int64)
    by_value: dict[str, Counter[str]] = defaultdict(Counter)
    others: dict[Reached, int] = {}
    for reached, count in volumes.items():
        place = _place(reached)
        if place is None:
            others[reached] = count
        else:
            by_value[place[0]][place[1]] += count
    reachable = sets = wide = 0
    for key, wanted in by_value.items():
        codes, code_of = nodes.labels.codes(key)[: len(nodes.rows)], nodes.labels.values(key)
        per_code = np.zeros(max(code_of, default=0) + 1, dtype=np.int64)
        for code, value in code_of.items():
            per_code[code] = wanted.get(value, 0)
        rows = np.bincount(codes[nodes.present], minlength=len(per_code))
        counts += per_code[codes]
        reachable += int(per_code[rows > 0].sum())
        sets += int(np.count_nonzero((per_code > 0) & (rows > 0)))
        wide += int(np.count_nonzero((per_code > 0) & (rows > 1)))
    for terms, count in others.items():
        mask = nodes.present if terms is None else rows_reached(nodes, terms)
        size = int(np.count_nonzero(mask))
        counts[mask] += count
        reachable += count if size else 0
        sets += size > 0
        wide += size > 1
    return ReadyVolumes(counts, reachable, not wide or sets == 1)


def _place(terms: Reached) -> tuple[str, str] | None:
    """The label and its value that alone say where the volume is."""
    if terms is None or len(terms) != 1 or terms[0].fields or len(terms[0].labels) != 1:
        return None
    (requirement,) = terms[0].labels
    if requirement.complement or requirement.bound is not None or len(requirement.values) != 1:
        return None
    (value,) = requirement.values
    return requirement.key, value
