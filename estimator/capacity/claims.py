"""Node claims in one canonical form, whoever states them: Karmada on the wire or a pod template.

The same text always gives the same claim, so that what is remembered by claim (eligibility) is shared
between a question and the template that it is about. Small claims are themselves remembered, because a
scheduler asks the same thing again and again. What Kubernetes cannot parse matches nothing, as there.
"""

from collections.abc import Callable
from functools import lru_cache

from estimator.fit.pod_shape import NodeClaim
from fairway.selectors import Requirement, SelectorError, Term, equality, field_requirement, label_requirement
from fairway.taints import Toleration

RawRequirement = tuple[str, str, tuple[str, ...]]
"""Key, operator, values."""

RawTerm = tuple[tuple[RawRequirement, ...], tuple[RawRequirement, ...]]
"""Requirements on labels, requirements on fields."""

RawToleration = tuple[str, str, str, str]
"""Key, operator, value, effect."""

_REMEMBERED_BYTES = 16384


def node_claim(
    selector: tuple[tuple[str, str], ...],
    affinity: tuple[RawTerm, ...],
    tolerations: tuple[RawToleration, ...],
    size_bytes: int,
) -> NodeClaim:
    """The claim that these texts state; ``selector`` sorted, an ``affinity`` without terms accepts any node.

    ``size_bytes``: how much text that is; what is very large is worked out anew each time.
    """
    build = _build if size_bytes <= _REMEMBERED_BYTES else _build.__wrapped__
    return build(selector, affinity, tolerations, size_bytes)


@lru_cache(maxsize=1024)
def _build(
    selector: tuple[tuple[str, str], ...],
    affinity: tuple[RawTerm, ...],
    tolerations: tuple[RawToleration, ...],
    size_bytes: int,
) -> NodeClaim:
    terms: list[Term] = []
    for labels, fields in affinity:
        if not labels and not fields:
            continue  # an empty term matches nothing
        try:
            terms.append(
                Term(_requirements(labels, label_requirement), _requirements(fields, field_requirement))
            )
        except SelectorError:
            continue  # nor does one that Kubernetes cannot parse, while the others still count
    return NodeClaim(
        tuple(equality(key, value) for key, value in selector),
        tuple(terms) if affinity else None,
        tuple(Toleration(*fields) for fields in tolerations),
        size_bytes,
    )


def _requirements(
    raw: tuple[RawRequirement, ...], parse: Callable[[str, str, tuple[str, ...]], Requirement]
) -> tuple[Requirement, ...]:
    return tuple(parse(key, operator, values) for key, operator, values in raw)
