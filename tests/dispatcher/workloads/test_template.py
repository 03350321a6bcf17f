import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.names import QUEUE, SERVICE_CLASS, SKIP, WORKLOAD_GROUP, WORKLOAD_GROUP_SIZE
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.workloads.template import KUEUE_QUEUE, VOLCANO_QUEUE, TemplateFacts, read_template
from tests.dispatcher.workloads.builders import LAW

Object = dict[str, object]

POD = {"containers": [{"name": "main"}]}


def facts(obj: Object) -> TemplateFacts:
    found = read_template(msgspec.json.encode(obj))
    assert isinstance(found, TemplateFacts), found
    return found


def labelled(**labels: str) -> Object:
    return {"metadata": {"name": "x", "labels": labels}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({}, TemplateFacts()),
        ({"metadata": None, "spec": None}, TemplateFacts()),
        ({"metadata": {"labels": {QUEUE: "team"}}}, TemplateFacts(queue="team")),
        ({"metadata": {"annotations": {QUEUE: "team"}}}, TemplateFacts(queue="team")),
        (
            {"metadata": {"labels": {QUEUE: "label"}, "annotations": {QUEUE: "annotation"}}},
            TemplateFacts(queue="label"),
        ),
        ({"metadata": {"labels": {SERVICE_CLASS: "urgent"}}}, TemplateFacts(service_class="urgent")),
        ({"metadata": {"annotations": {SKIP: ""}}}, TemplateFacts(is_skipped=True)),
        ({"metadata": {"labels": {KUEUE_QUEUE: "lq"}}}, TemplateFacts(kueue_queue="lq")),
        ({"metadata": {"annotations": {VOLCANO_QUEUE: "vq"}}}, TemplateFacts(volcano_queue="vq")),
        (
            {"metadata": {"labels": {WORKLOAD_GROUP: "g", WORKLOAD_GROUP_SIZE: "3"}}},
            TemplateFacts(group="g", group_size=3),
        ),
        ({"metadata": {"labels": {WORKLOAD_GROUP_SIZE: "3"}}}, TemplateFacts()),
        # Volcano's Job names its queue and priority in its spec, Kubeflow's in a policy.
        (
            {"spec": {"queue": "vq", "priorityClassName": "high"}},
            TemplateFacts(volcano_queue="vq", priority_class="high"),
        ),
        (
            {"spec": {"runPolicy": {"schedulingPolicy": {"queue": "vq", "priorityClass": "high"}}}},
            TemplateFacts(volcano_queue="vq", priority_class="high"),
        ),
        # Under Volcano a Deployment names its queue on its pods.
        (
            {"spec": {"template": {"metadata": {"annotations": {VOLCANO_QUEUE: "vq"}}}}},
            TemplateFacts(volcano_queue="vq"),
        ),
        (
            {"metadata": {"annotations": {VOLCANO_QUEUE: "own"}}, "spec": {"queue": "spec"}},
            TemplateFacts(volcano_queue="own"),
        ),
        ({"spec": {"template": {"spec": {"priorityClassName": "low"}}}}, TemplateFacts(priority_class="low")),
        # A spec of another shape says nothing, and is no reason to refuse the rest.
        ({"metadata": {"labels": {QUEUE: "team"}}, "spec": 7}, TemplateFacts(queue="team")),
        ({"metadata": {"labels": {QUEUE: "team"}}, "spec": {"queue": 7}}, TemplateFacts(queue="team")),
    ],
)
def test_facts(obj: Object, expected: TemplateFacts) -> None:
    assert facts(obj) == expected


def test_priority_class_of_the_first_pod_template_that_names_one() -> None:
    job_set: Object = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "spec": {
            "replicatedJobs": [
                {"name": "driver", "template": {"spec": {"template": {"spec": POD}}}},
                {
                    "name": "workers",
                    "template": {"spec": {"template": {"spec": {**POD, "priorityClassName": "high"}}}},
                },
            ]
        },
    }
    assert facts(job_set).priority_class == "high"


@pytest.mark.parametrize("size", ["", "0", "-1", "many", "10001", "9" * 40])
def test_a_group_without_a_usable_size_is_a_problem(size: str) -> None:
    found = facts({"metadata": {"labels": {WORKLOAD_GROUP: "g", WORKLOAD_GROUP_SIZE: size}}})
    (problem,) = found.problems
    assert WORKLOAD_GROUP_SIZE in problem
    assert found.group_size == 0


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"", "the object"),
        (b"[]", "the object"),
        (b'{"metadata": {"labels": {"a": 1}}}', "metadata.labels"),
        (b'{"metadata": 1}', "metadata"),
        (b"\xff", "the object"),
    ],
)
def test_metadata_that_cannot_be_read_says_where(raw: bytes, field: str) -> None:
    found = read_template(raw)
    assert isinstance(found, Reason)
    assert found.kind == "Unreadable"
    assert field in found.text


@LAW
@given(
    st.one_of(
        st.binary(max_size=64),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda x: st.dictionaries(
                st.sampled_from(("metadata", "spec", "labels", "queue", "template", "runPolicy", "kind")), x
            ),
        ).map(msgspec.json.encode),
    )
)
def test_it_never_raises(raw: bytes) -> None:
    assert isinstance(read_template(raw), TemplateFacts | Reason)
