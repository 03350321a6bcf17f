"""Node selector terms, tested on all rows at once."""

from collections.abc import Iterable

import numpy as np

from estimator.cluster.columns import BoolVector, NodeColumns
from fairway.selectors import Term


def rows_reached(nodes: NodeColumns, terms: Iterable[Term]) -> BoolVector:
    """The rows of nodes that any of the terms matches; fields are those of a node without a name.

    Mirrors CheckNodeAffinity of component-helpers/storage/volume, which shows the terms nothing but labels.
    """
    found = np.zeros(len(nodes.rows), dtype=np.bool_)
    for term in terms:
        if all(requirement.allows("") for requirement in term.fields):
            found |= _labelled(nodes, term)
    return found & nodes.present


def _labelled(nodes: NodeColumns, term: Term) -> BoolVector:
    mask = np.ones(len(nodes.rows), dtype=np.bool_)
    for requirement in term.labels:
        mask &= nodes.labels.matching(requirement)[: len(nodes.rows)]
    return mask
