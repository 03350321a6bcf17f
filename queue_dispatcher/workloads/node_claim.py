"""What pods demand of their node, as Karmada's bindings state it, and whether a kind of node can meet it.

A flavor says only what all its nodes carry, never what else they may carry. So a claim rules a flavor out
where no node with at least these labels could satisfy it, or its taints are not tolerated; all else is for
the estimators and kube-scheduler to find out. A label that the flavor does not state rules nothing out,
whichever other flavor states it: Kueue's rule since 0.19 (pkg/scheduler/flavorassigner).

Node affinity is read as kube-scheduler reads it (Kubernetes 1.36, component-helpers/scheduling/corev1/
nodeaffinity): terms are ORed, an empty or malformed term matches nothing while the others still count.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fairway.kube.objects import (
    SelectorRequirement,
)
from fairway.kube.templates import (
    NodeSelector,
    NodeSelectorTerm,
)
from fairway.selectors import (
    FIELD_NAME,
    Requirement,
    SelectorError,
    Term,
    equality,
    field_requirement,
    label_requirement,
)
from fairway.taints import Taint, Toleration, first_untolerated


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """Node selector, required node affinity (``terms``, None where none is stated) and tolerations."""

    selector: tuple[Requirement, ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Whether there can be a node with at least these labels that satisfies the claim."""
        if self.terms is None:
            return _can_hold(self.selector, labels)
        return any(
            _can_hold((*self.selector, *term.labels), labels) and _can_be_named(term.fields)
            for term in self.terms
        )

    def states(self, key: str, value: str) -> bool:
        """Whether only nodes with this label satisfy the claim, as far as that is plain."""
        if any(_is_only(one, key, value) for one in self.selector):
            return True
        return bool(self.terms) and all(
            any(_is_only(one, key, value) for one in term.labels) for term in self.terms or ()
        )

    def untolerated(self, taints: Iterable[Taint]) -> Taint | None:
        """The first of the taints that keeps the pods off."""
        return first_untolerated(taints, self.tolerations)


ANY_NODE = NodeClaim()
"""No demands."""


def node_claim(
    selector: Mapping[str, str], affinity: NodeSelector | None, tolerations: Iterable[Toleration] = ()
) -> NodeClaim:
    """The claim that a nodeSelector, a required node affinity and tolerations state; never raises."""
    equalities = tuple(equality(key, value) for key, value in sorted(selector.items()))
    tolerated = tuple(sorted(tolerations))
    if affinity is None:
        return NodeClaim(equalities, tolerations=tolerated) if equalities or tolerated else ANY_NODE
    terms = (_term(term) for term in affinity.node_selector_terms or ())
    return NodeClaim(equalities, tuple(term for term in terms if term is not None), tolerated)


def _is_only(requirement: Requirement, key: str, value: str) -> bool:
    return (
        requirement.key == key
        and not (requirement.complement or requirement.allows_absent or requirement.bound is not None)
        and requirement.values == {value}
    )


def _term(stated: NodeSelectorTerm) -> Term | None:
    if not stated.match_expressions and not stated.match_fields:
        return None
    try:
        return Term(
            _requirements(stated.match_expressions or (), label_requirement),
            _requirements(stated.match_fields or (), field_requirement),
        )
    except SelectorError:
        return None


def _requirements(
    stated: Iterable[SelectorRequirement], parse: Callable[[str, str, tuple[str, ...]], Requirement]
) -> tuple[Requirement, ...]:
    return tuple(parse(r.key, r.operator, tuple(r.values or ())) for r in stated)


def _can_hold(requirements: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement.key, []).append(requirement)
    return all(
        all(r.allows(labels[key]) for r in together)
        if key in labels
        else all(r.allows_absent for r in together) or _can_have_value(together)
        for key, together in by_key.items()
    )


def _can_be_named(fields: tuple[Requirement, ...]) -> bool:
    """Whether a node can satisfy requirements on its fields, of which only its name is ever set."""
    names = [r for r in fields if r.key == FIELD_NAME]
    return all(r.allows("") for r in fields if r.key != FIELD_NAME) and _can_have_value(names)


def _can_have_value(together: list[Requirement]) -> bool:
    """Whether some value satisfies all requirements on one label."""
    return any(all(r.allows(value) for r in together) for value in _witnesses(together))


def _witnesses(together: list[Requirement]) -> Iterable[str]:
    """Values of which one satisfies the requirements if any does."""
    finite = [r.values for r in together if r.bound is None and not r.complement and r.values]
    if finite:
        yield from min(finite, key=len)
        return
    excluded = {value for r in together if r.bound is None for value in r.values}
    above = [r.bound for r in together if r.bound is not None and not r.complement]
    below = [r.bound for r in together if r.bound is not None and r.complement]
    if above or below:
        # Of so many integers in a row at least one is not excluded; written plainly, each is one text.
        start = max(above) + 1 if above else min(below) - 1 - len(excluded)
        yield from (str(start + offset) for offset in range(len(excluded) + 1))
        return
    yield next(text for text in map(str, range(len(excluded) + 1)) if text not in excluded)
