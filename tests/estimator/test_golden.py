from collections.abc import Iterable
from dataclasses import replace

import pytest

from estimator.capacity.request import (
    AssumedWorkload,
    Question,
    ReplicasQuestion,
    SetsQuestion,
    UnschedulableQuestion,
    WorkloadReference,
)
from estimator.capacity.request import Component as ReadComponent
from estimator.fit.pod_shape import (
    NodeClaim,
    PodShape,
)
from estimator.wire import parse_object
from fairway.selectors import Requirement, Term, equality, field_requirement, label_requirement
from fairway.taints import Toleration
from tests import oracle
from tests.estimator import golden

RECORDED = golden.recorded()


def amounts(resources: dict[str, str]) -> tuple[tuple[str, int], ...]:
    """All that was asked for and is more than nothing: every name in the recording is one that counts."""
    read = ((name, oracle.amount(name, text)) for name, text in resources.items())
    return tuple(sorted((name, amount) for name, amount in read if amount > 0))


def term(stated: golden.Term) -> Term:
    return Term(
        tuple(label_requirement(e.key, e.operator, e.values) for e in stated.match_expressions),
        tuple(field_requirement(e.key, e.operator, e.values) for e in stated.match_fields),
    )


def claim(stated: golden.Requirements) -> NodeClaim:
    selector = (equality(key, value) for key, value in stated.node_selector.items())
    readable = (one for one in stated.affinity if is_readable(one))
    return NodeClaim(
        tuple(sorted(selector, key=by_key)),
        tuple(term(one) for one in readable) if stated.affinity else None,
        tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in stated.tolerations),
    )


def by_key(requirement: Requirement) -> str:
    return requirement.key


def is_readable(stated: golden.Term) -> bool:
    """Kubernetes reads no comparison with a negative number and no key or value that is not in ASCII."""
    texts = [text for e in stated.match_expressions for text in (e.key, *e.values)]
    return bool(texts or stated.match_fields) and all(
        t.isascii() and t[:1] != "-" and len(t) < 64 for t in texts
    )


def shape(stated: golden.Requirements) -> PodShape:
    return PodShape(amounts(stated.resources), claim(stated), stated.priority_class_name)


def components(stated: Iterable[golden.Component]) -> tuple[ReadComponent, ...]:
    return tuple(ReadComponent(c.name, c.replicas, shape(c.requirements)) for c in stated)


@pytest.mark.parametrize("generation", sorted({one.generation for one in RECORDED}))
def test_recorded_requests_say_what_was_sent(generation: str) -> None:
    for request_ in (one for one in RECORDED if one.generation == generation):
        _says_what_was_sent(request_)


def _says_what_was_sent(request_: golden.Recorded) -> None:
    reading, question = request_.reading, request_.decode()
    assert question.cluster == reading.cluster
    match question:
        case ReplicasQuestion():
            assert reading.requirements is not None
            assert question.shape == shape(reading.requirements)
            workload = parse_object(request_.metadata_object)
            assert workload is not None
            assert question.namespace == (reading.requirements.namespace or workload.namespace)
        case SetsQuestion():
            assert question.components == components(reading.components)
            assert question.namespace == reading.namespace
        case UnschedulableQuestion():
            stated = reading.resource
            assert stated is not None
            group = stated.api_version.rpartition("/")[0]
            assert question.workload == WorkloadReference(stated.kind, stated.namespace, stated.name, group)
            assert question.threshold_s == reading.unschedulable_threshold / 1e9
            return
    assert question.workload == parse_object(request_.metadata_object)
    assert question.workload is not None
    placed = [
        AssumedWorkload(workload.namespace, components(workload.components)) for workload in reading.assumed
    ]
    assert len(question.assumed) == len(placed)
    assert set(question.assumed) == set(placed)


def test_the_recording_is_whole() -> None:
    assert len(RECORDED) == 156
    assert {r.generation for r in RECORDED} == {"v1.15", "v1.17", "v1.18", "v1.19"}
    assert {r.method for r in RECORDED} == {
        "MaxAvailableReplicas",
        "MaxAvailableComponentSets",
        "GetUnschedulableReplicas",
    }


CASES = sorted({r.case for r in RECORDED})


def test_the_same_case_is_the_same_question_in_every_generation() -> None:
    for case in CASES:
        of_case = [r for r in RECORDED if r.case == case]
        if case == "components-1":
            # 1.17 knows component sets of two and more only, and asks for replicas here.
            of_case = [r for r in of_case if r.generation != "v1.17"]
        first, *others = (normal(r.decode()) for r in of_case)
        assert others, case
        assert all(other == first for other in others), case


def normal(question: Question) -> tuple[Question, set[AssumedWorkload]]:
    """The question with what is assumed apart, since its order changes from call to call."""
    if isinstance(question, UnschedulableQuestion):
        return question, set()
    return replace(question, assumed=()), set(question.assumed)


def test_every_sender_is_heard_in_every_generation() -> None:
    versions = {(r.generation, r.sender): r.sender_version for r in RECORDED}
    assert len(versions) == 8
    assert all(version.startswith(generation) for (generation, _), version in versions.items())
