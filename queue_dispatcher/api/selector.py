"""Label selectors of whole objects: namespaces and Karmada's Clusters.

Mirrors metav1.LabelSelector of Kubernetes 1.36: requirements are ANDed, an empty selector selects everything.
What an absent selector means is for its field to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.kube.objects import (
    LabelSelector,
)
from fairway.selectors import Operator, Requirement, SelectorError, label_requirement


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: all requirements must hold."""

    requirements: tuple[Requirement, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.allows(labels.get(requirement.key)) for requirement in self.requirements)


EVERYTHING = Selector()
"""Selects every object."""

NOTHING = Selector((Requirement("", frozenset(), complement=False, allows_absent=False),))
"""Selects no object: what a selector that cannot be read is taken for."""


def read_selector(stated: LabelSelector) -> Selector:
    """The selector that an object states. Raises SelectorError."""
    labels = (stated.match_labels or {}).items()
    return Selector(
        (
            *(label_requirement(key, Operator.IN, (value,)) for key, value in labels),
            *(_expression(r.key, r.operator, tuple(r.values or ())) for r in stated.match_expressions or ()),
        )
    )


def _expression(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator in (Operator.GT, Operator.LT):
        raise SelectorError(f"{operator} on {key[:63]}: expected In, NotIn, Exists or DoesNotExist")
    return label_requirement(key, operator, values)
