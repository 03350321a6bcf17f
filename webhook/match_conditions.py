"""The scope and the growth rule as CEL, for the API server to decide whom to ask, or to decide all by itself.

The scope is `fairway.scope.Scope` itself, term by term.

Written once, for the webhook configuration (``matchConditions`` keep everything else away from the webhook)
and for the MutatingAdmissionPolicies (the same conditions, no webhook).

An API server spends a bounded effort on the conditions of a request and fails the request beyond it. Hence
components are compared one by one up to 64 of them, and as a whole beyond, where any change counts as growth.

Mirrors the environment of k8s.io/apiserver/pkg/cel/environment of Kubernetes 1.28 and newer: optional types,
and quantities.
"""

from dataclasses import dataclass
from textwrap import indent
from typing import Final, assert_never

from fairway.names import QUEUE, SKIP
from fairway.scope import AsksAccelerator, IsOfKind, NamesQueue, Scope, Term, WorkloadKind
from webhook.accelerator_expression import accelerator_expression

MAX_COMPARED_COMPONENTS: Final = 64

_STEP: Final = "  "


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """One entry of ``matchConditions``; a request matches where all are true."""

    name: str
    expression: str


def creation_conditions(scope: Scope) -> tuple[MatchCondition, ...]:
    """Of a binding that is created: hold it."""
    return (*_MAY_BE_HELD, MatchCondition("in-scope", _in_scope(scope)))


def growth_conditions(scope: Scope) -> tuple[MatchCondition, ...]:
    """Of a binding that is updated: hold what it grew by."""
    return (*_MAY_BE_HELD, _GROWS, MatchCondition("in-scope", _in_scope(scope)))


def managed_creation_conditions() -> tuple[MatchCondition, ...]:
    """As `creation_conditions` where a namespace selector has put everything in scope."""
    return _MAY_BE_HELD


def managed_growth_conditions() -> tuple[MatchCondition, ...]:
    """As `growth_conditions` where a namespace selector has put everything in scope."""
    return (*_MAY_BE_HELD, _GROWS)


def _any(*terms: str) -> str:
    return " ||\n".join(terms)


_COMPONENTS: Final = "object.spec.?components.orValue([])"
_OLD_COMPONENTS: Final = "oldObject.spec.?components.orValue([])"
_REQUESTS: Final = ".?replicaRequirements.?resourceRequest.orValue({})"


def _marked(name: str) -> str:
    return (
        f"'{name}' in object.metadata.?labels.orValue({{}}) ||\n"
        f"'{name}' in object.metadata.?annotations.orValue({{}})"
    )


def positive(quantity: str) -> str:
    """Whether it asks for anything; what is no quantity might, and the dispatcher says what is wrong."""
    return f"(!isQuantity(string({quantity})) || quantity(string({quantity})).isGreaterThan(quantity('0')))"


def _more(old: str, new: str) -> str:
    """Whether the requests in the CEL map ``new`` are more of anything than those in ``old``."""
    return f"""\
[{new}].exists(now, [{old}].exists(was, now.exists(k, k in was
  ? string(now[k]) != string(was[k]) && (
    !isQuantity(string(was[k])) || !isQuantity(string(now[k])) ||
    quantity(string(now[k])).isGreaterThan(quantity(string(was[k]))))
  : {positive("now[k]")})))"""


_COMPONENT_GREW: Final = f"""\
{_COMPONENTS}.exists(c, !{_OLD_COMPONENTS}.exists(o,
  o.name == c.name && o.?replicas.orValue(0) >= c.?replicas.orValue(0) && !(
{indent(_more(f"o{_REQUESTS}", f"c{_REQUESTS}"), "    ")})))"""

_GROWS: Final = MatchCondition(
    "grows",
    f"""\
object.spec.?replicas.orValue(0) > oldObject.spec.?replicas.orValue(0) ||
{_more(f"oldObject.spec{_REQUESTS}", f"object.spec{_REQUESTS}")} ||
{_COMPONENTS} != {_OLD_COMPONENTS} && (
  size({_COMPONENTS}) > size({_OLD_COMPONENTS}) ||
  size({_COMPONENTS}) > {MAX_COMPARED_COMPONENTS} ||
{indent(_COMPONENT_GREW, _STEP)})""",
)

_MAY_BE_HELD: Final = (
    MatchCondition(
        "is-workload",
        _any(
            "object.spec.?replicas.orValue(0) > 0",
            "has(object.spec.replicaRequirements)",
            f"size({_COMPONENTS}) > 0",
        ),
    ),
    MatchCondition("has-placement", "has(object.spec.placement)"),
    MatchCondition("not-held-yet", "!object.spec.?suspension.?scheduling.orValue(false)"),
    MatchCondition("not-skipped", f"!(\n{indent(_marked(SKIP), _STEP)})"),
)


def _in_scope(scope: Scope) -> str:
    return _any(*map(_term, scope.terms))


def _term(term: Term) -> str:
    match term:
        case NamesQueue():
            return _marked(QUEUE)
        case IsOfKind(kind=kind):
            return _of_kind(kind)
        case AsksAccelerator(catalogue=catalogue):
            return f"""\
([object.spec{_REQUESTS}] +
  {_COMPONENTS}.map(c, c{_REQUESTS})).exists(r, r.exists(k,
  {positive("r[k]")} &&
{indent(accelerator_expression(catalogue, "k"), "  ")}))"""
    assert_never(term)


def _of_kind(kind: WorkloadKind) -> str:
    version = "object.spec.resource.?apiVersion.orValue('')"
    group = f"{version}.startsWith('{kind.group}/')" if kind.group else f"!{version}.contains('/')"
    return f"object.spec.resource.?kind.orValue('') == '{kind.kind}' && {group}"
