import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.objects import (
    SelectorRequirement,
)
from fairway.kube.templates import (
    NodeSelector,
    NodeSelectorTerm,
)
from queue_dispatcher.workloads.node_claim import ANY_NODE, NodeClaim, node_claim
from tests.dispatcher.workloads.builders import LAW, claim

A100 = {"gpu": "A100"}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (claim(), True),
        (claim({"gpu": "A100"}), True),
        (claim({"gpu": "H100"}), False),
        (claim({"zone": "z1"}), True),  # nodes of the flavor may carry it
        (claim(None, (("gpu", "In", ("H100", "A100")),)), True),
        (claim(None, (("gpu", "In", ("H100",)),)), False),
        (claim(None, (("gpu", "In", ("H100",)),), (("gpu", "Exists", ()),)), True),  # terms are ORed
        (claim(None, (("gpu", "NotIn", ("A100",)),)), False),
        (claim(None, (("gpu", "DoesNotExist", ()),)), False),
        (claim(None, (("other", "DoesNotExist", ()),)), True),
        (claim({"other": "x"}, (("other", "DoesNotExist", ()),)), False),
        (claim({"other": "x"}, (("other", "NotIn", ("x",)),)), False),
        (claim(None, (("other", "In", ("x",)), ("other", "In", ("y",)))), False),
        (claim(None, (("other", "Exists", ()), ("other", "NotIn", ("0", "1")))), True),
        (claim(None, (("memory", "Gt", ("5",)), ("memory", "Lt", ("7",)))), True),
        (claim(None, (("memory", "Gt", ("5",)), ("memory", "Lt", ("6",)))), False),
        (
            claim(None, (("memory", "Gt", ("5",)), ("memory", "Lt", ("7",)), ("memory", "NotIn", ("6",)))),
            False,
        ),
        (claim(None, (("memory", "Lt", ("3",)), ("memory", "NotIn", ("2", "1")))), True),
        (claim(None, (("gpu", "Near", ("A100",)),)), False),  # malformed: matches nothing
        (claim(None, (("gpu", "Near", ()),), (("gpu", "Exists", ()),)), True),  # the others still count
        (claim(None, ()), False),  # an empty term matches nothing
    ],
)
def test_a_claim_allows_a_flavor_unless_no_node_with_its_labels_could_satisfy_it(
    stated: NodeClaim, expected: bool
) -> None:
    assert stated.allows(A100) is expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (claim(), False),
        (claim(A100), True),
        (claim({"gpu": "H100"}), False),
        (claim({"zone": "A100"}), False),
        (claim(None, (("gpu", "In", ("A100",)),)), True),
        (claim(None, (("gpu", "In", ("A100", "H100")),)), False),
        (claim(None, (("gpu", "Exists", ()),)), False),
        (claim(None, (("gpu", "NotIn", ("A100",)),)), False),
        # Each of the terms has to.
        (claim(None, (("gpu", "In", ("A100",)),), (("zone", "Exists", ()),)), False),
        (claim(None, (("gpu", "In", ("A100",)), ("zone", "Exists", ())), (("gpu", "In", ("A100",)),)), True),
        (claim(A100, (("zone", "Exists", ()),)), True),
        # No term that anything matches: whatever is said, nothing is where it should not be.
        (claim(None, ()), False),
    ],
)
def test_whether_a_claim_states_a_label(stated: NodeClaim, expected: bool) -> None:
    assert stated.states("gpu", "A100") is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("metadata.name", "In", "n1")], True),
        ([("metadata.name", "In", "n1"), ("metadata.name", "In", "n2")], False),
        ([("metadata.name", "In", "n1"), ("metadata.name", "NotIn", "n1")], False),
        ([("metadata.name", "NotIn", "n1")], True),
        ([("metadata.uid", "In", "x")], False),  # never set, as kube-scheduler sees it
    ],
)
def test_requirements_on_the_name_of_the_node(fields: list[tuple[str, str, str]], expected: bool) -> None:
    term = NodeSelectorTerm(match_fields=[SelectorRequirement(k, op, [v]) for k, op, v in fields])
    assert node_claim({}, NodeSelector([term])).allows({}) is expected


def test_affinity_without_terms_matches_no_node() -> None:
    assert not node_claim({}, NodeSelector([])).allows({})


def test_no_demands_are_one_object() -> None:
    assert node_claim({}, None) is ANY_NODE


_VALUES = ("1", "2", "x")
_REQUIREMENTS = st.one_of(
    st.tuples(
        st.sampled_from(("a", "b")),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3).map(tuple),
    ),
    st.tuples(st.sampled_from(("a", "b")), st.sampled_from(("Exists", "DoesNotExist")), st.just(())),
    st.tuples(
        st.sampled_from(("a", "b")),
        st.sampled_from(("Gt", "Lt")),
        st.sampled_from(_VALUES[:2]).map(lambda v: (v,)),
    ),
)


@LAW
@given(
    st.lists(st.lists(_REQUIREMENTS, max_size=4), min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(("a", "b")), st.sampled_from(_VALUES)),
    st.dictionaries(st.sampled_from(("a", "b")), st.sampled_from(_VALUES)),
)
def test_it_is_exactly_whether_a_node_with_at_least_the_labels_can_match(
    terms: list[list[tuple[str, str, tuple[str, ...]]]], labels: dict[str, str], selector: dict[str, str]
) -> None:
    stated = claim(selector, *(tuple(term) for term in terms))
    # Values that no requirement names, below and above the numbers, stand for all others.
    values = (None, *_VALUES, "0", "3", "9", "-1", "other")
    nodes = (
        {key: value for key, value in zip(("a", "b"), pair, strict=True) if value is not None}
        for pair in itertools.product(values, values)
    )
    assert stated.terms is not None
    possible = any(
        labels.items() <= node.items()
        and all(r.allows(node.get(r.key)) for r in stated.selector)
        and any(term.matches("", node) for term in stated.terms)
        for node in nodes
    )
    assert stated.allows(labels) is possible
