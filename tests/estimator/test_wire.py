from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.answer import NO_BOUND, UNBOUNDED
from estimator.capacity.doubt import NO_OPINION
from estimator.capacity.request import (
    Question,
    ReplicasQuestion,
    WorkloadReference,
)
from estimator.fit.pod_shape import (
    ANY_NODE,
    PodShape,
)
from estimator.pb import estimator_pb2 as pb
from estimator.wire import (
    WireError,
    decode_replicas,
    decode_sets,
    decode_unschedulable,
    encode_replicas,
    encode_sets,
    encode_unschedulable,
    parse_object,
)
from fairway.selectors import Term, equality, field_requirement, label_requirement
from fairway.taints import Toleration
from tests.builders import component, requirements, shape, term, toleration

CI = settings(max_examples=200, derandomize=True, deadline=None)
GI = 1 << 30


def replicas(requirements: pb.ReplicaRequirements | None = None, **fields: object) -> ReplicasQuestion:
    message = pb.MaxAvailableReplicasRequest(cluster="m", replica_requirements=requirements, **fields)  # type: ignore[arg-type]  # fields of the message
    return decode_replicas(message.SerializeToString(), None)


def quantity(text: str) -> bytes:
    return pb.Quantity(string=text).SerializeToString()


# --- what a request says -----------------------------------------------------------------------------------


def test_an_absent_claim_accepts_any_node() -> None:
    """H1"""
    assert replicas(pb.ReplicaRequirements()).shape == PodShape(claim=ANY_NODE)
    assert replicas(None).shape == PodShape(claim=ANY_NODE)


def test_an_empty_claim_accepts_any_node() -> None:
    """H2"""
    claim = replicas(pb.ReplicaRequirements(node_claim=pb.NodeClaim())).shape.claim
    assert (claim.selector, claim.affinity, claim.tolerations) == ((), None, ())
    assert claim == ANY_NODE


def test_bytes_carry_affinity_tolerations_and_amounts() -> None:
    """H3"""
    asked = shape(
        cpu="100m",
        memory="256Mi",
        affinity=[
            term(("zone", "In", ["a", "b"]), fields=[("metadata.name", "NotIn", ["n1"])]),
            term(("gpu", "Exists", [])),
        ],
        tolerations=["b:NoSchedule", "a=x:NoExecute"],
    )
    assert asked.requests == (("cpu", 100), ("memory", 256 << 20))
    assert asked.claim.affinity == (
        Term(
            (label_requirement("zone", "In", ("a", "b")),),
            (field_requirement("metadata.name", "NotIn", ("n1",)),),
        ),
        Term((label_requirement("gpu", "Exists", ()),)),
    )
    # their order is kept
    assert asked.claim.tolerations == (
        Toleration("b", "Exists", "", "NoSchedule"),
        Toleration("a", "Equal", "x", "NoExecute"),
    )


def test_a_quantity_on_the_wire() -> None:
    """H8"""
    assert quantity("100m") == bytes.fromhex("0a04 3130306d")
    sent = pb.ReplicaRequirements(resource_request_bytes={"cpu": bytes.fromhex("0a04 3130306d")})
    assert replicas(sent).shape.requests == (("cpu", 100),)


def test_amounts_are_sorted_positive_and_of_names_that_count() -> None:
    asked = shape(
        {
            "hugepages-2Mi": "4Mi",
            "foo": 5,
            "storage": 1,
            "pods": 3,
            "requests.cpu": 1,
            "example.com/none": "-1",
        },
        gpu="0.5",
        memory="0",
        cpu="0.1m",
    )
    assert asked.requests == (("cpu", 1), ("hugepages-2Mi", 4 << 20), ("nvidia.com/gpu", 1))


def test_an_affinity_keeps_the_terms_that_can_match() -> None:
    terms = [term(), term(("zone", "Like", ["a"])), term(("zone", "In", ["a"]), ("n", "Gt", ["x"]))]
    good = term(("zone", "In", ["a"]))
    assert shape(affinity=[]).claim.affinity is None
    assert shape(affinity=[term()]).claim.affinity == ()
    assert shape(affinity=terms).claim.affinity == ()
    expected = (Term((label_requirement("zone", "In", ("a",)),)),)
    assert shape(affinity=[*terms, good]).claim.affinity == expected


def test_a_node_selector_is_read_as_it_is_and_in_no_order() -> None:
    claims = [shape(selector=selector).claim for selector in ({"b": "", "a": "x!"}, {"a": "x!", "b": ""})]
    assert claims[0] == claims[1]
    assert claims[0].selector == (equality("a", "x!"), equality("b", ""))


def test_priority_and_namespace() -> None:
    question = replicas(pb.ReplicaRequirements(namespace="team", priority_class_name="high"))
    assert (question.namespace, question.shape.priority_class) == ("team", "high")


@pytest.mark.parametrize(
    ("stated", "object_text", "namespace"),
    [
        ("team", "kind=Deployment, name=default/web", "team"),
        ("", "kind=Deployment, name=default/web", "default"),
        ("", "kind=GpuJob, name=/web", ""),
        ("", None, ""),
        ("", "garbage", ""),
    ],
)
def test_the_namespace_of_replicas_may_come_from_the_object(
    stated: str, object_text: str | None, namespace: str
) -> None:
    message = pb.MaxAvailableReplicasRequest(replica_requirements=pb.ReplicaRequirements(namespace=stated))
    assert decode_replicas(message.SerializeToString(), object_text).namespace == namespace


def test_sets_and_what_is_assumed() -> None:
    worker = pb.Component(
        name="worker", replicas=2, replica_requirements=requirements(gpu=1, priority="high")
    )
    bare = pb.Component(name="bare", replicas=-1)
    message = pb.MaxAvailableComponentSetsRequest(
        cluster="m",
        components=[worker, bare],
        namespace="team",
        assumed_workloads=[
            pb.AssumedWorkload(namespace="other", components=[bare, worker]),
            pb.AssumedWorkload(namespace="empty"),
        ],
    )
    question = decode_sets(message.SerializeToString(), "kind=Job, name=team/train")
    expected = (component("worker", 2, gpu=1, priority="high"), component("bare", -1))
    assert question.components == expected
    assert [(w.namespace, w.components) for w in question.assumed] == [("other", (expected[1], expected[0]))]
    assert (question.cluster, question.namespace) == ("m", "team")
    assert question.workload == WorkloadReference("Job", "team", "train")


@pytest.mark.parametrize(("api_version", "group"), [("apps/v1", "apps"), ("v1", ""), ("", "")])
def test_unschedulable_replicas_name_a_workload_and_a_threshold(api_version: str, group: str) -> None:
    resource = pb.ObjectReference(api_version=api_version, kind="Deployment", namespace="d", name="web")
    message = pb.UnschedulableReplicasRequest(
        cluster="m", resource=resource, unschedulable_threshold=-90_000_000_000
    )
    question = decode_unschedulable(message.SerializeToString())
    assert question.workload == WorkloadReference("Deployment", "d", "web", group)
    assert question.threshold_s == -90.0
    assert not question.names_device


# --- generations -------------------------------------------------------------------------------------------

OLD_AFFINITY = pb.NodeSelector(node_selector_terms=[term(("old", "Exists", []))])
NEW_AFFINITY = pb.NodeSelector(node_selector_terms=[term(("new", "Exists", []))])


def of_generation(old: bool, new: bool) -> PodShape:
    """A request whose older fields say "old" and whose bytes say "new"."""
    message = pb.ReplicaRequirements()
    if old:
        message.resource_request["cpu"].string = "1"
        message.resource_request["memory"].string = "1"
        message.node_claim.node_affinity.CopyFrom(OLD_AFFINITY)
        message.node_claim.tolerations.append(toleration("old"))
    if new:
        message.resource_request_bytes["cpu"] = quantity("2")
        message.node_claim.node_affinity_bytes = NEW_AFFINITY.SerializeToString()
        message.node_claim.tolerations_bytes.append(toleration("new").SerializeToString())
    return replicas(message).shape


def said(asked: PodShape) -> tuple[dict[str, int], list[str], list[str]]:
    terms = asked.claim.affinity or ()
    return (
        dict(asked.requests),
        [term.labels[0].key for term in terms],
        [t.key for t in asked.claim.tolerations],
    )


def test_older_fields_are_read_alone() -> None:
    assert said(of_generation(old=True, new=False)) == ({"cpu": 1000, "memory": 1}, ["old"], ["old"])


def test_bytes_win_where_both_are_present() -> None:
    assert said(of_generation(old=True, new=True)) == ({"cpu": 2000}, ["new"], ["new"])
    assert of_generation(old=True, new=True) == of_generation(old=False, new=True)


def test_each_kind_of_bytes_wins_for_itself() -> None:
    message = pb.ReplicaRequirements()
    message.resource_request["cpu"].string = "1"
    message.node_claim.tolerations.append(toleration("old"))
    message.node_claim.node_affinity_bytes = NEW_AFFINITY.SerializeToString()
    assert said(replicas(message).shape) == ({"cpu": 1000}, ["new"], ["old"])


def test_components_are_read_by_the_same_rules() -> None:
    message = pb.ComponentReplicaRequirements()
    message.resource_request["cpu"].string = "1"
    request = pb.MaxAvailableComponentSetsRequest(components=[pb.Component(replica_requirements=message)])
    assert decode_sets(request.SerializeToString(), None).components[0].shape.requests == (("cpu", 1000),)
    message.resource_request_bytes["cpu"] = quantity("2")
    request = pb.MaxAvailableComponentSetsRequest(components=[pb.Component(replica_requirements=message)])
    assert decode_sets(request.SerializeToString(), None).components[0].shape.requests == (("cpu", 2000),)


def test_fields_of_the_future_are_ignored() -> None:
    """H7: a varint, a text and a nested message under numbers that nobody knows yet, at every level."""
    future = b"\xa0\x06\x2a" + b"\xaa\x06\x03abc" + b"\xb2\x06\x02\x08\x01"
    asked = pb.ReplicaRequirements.FromString(
        pb.ReplicaRequirements(
            node_claim=pb.NodeClaim.FromString(
                pb.NodeClaim(node_selector={"a": "b"}).SerializeToString() + future
            ),
            resource_request_bytes={"cpu": quantity("1") + future},
        ).SerializeToString()
        + future
    )
    data = (
        pb.MaxAvailableReplicasRequest(cluster="m", replica_requirements=asked).SerializeToString() + future
    )
    question = decode_replicas(data, None)
    assert question.cluster == "m"
    assert question.shape == shape(cpu=1, selector={"a": "b"})


# --- what cannot be read -----------------------------------------------------------------------------------

GPU = {"nvidia.com/gpu": quantity("1")}
GARBAGE = b"\xff\xff\xff"


def bad_requirements(devices: bool, **resources: bytes) -> pb.ReplicaRequirements:
    return pb.ReplicaRequirements(resource_request_bytes={**(GPU if devices else {}), **resources})


def with_claim(devices: bool, claim: pb.NodeClaim) -> pb.ReplicaRequirements:
    return pb.ReplicaRequirements(node_claim=claim, resource_request_bytes=GPU if devices else {})


UNREADABLE: dict[str, tuple[Callable[[bool], pb.ReplicaRequirements], str]] = {
    "amount that is no protobuf": (
        lambda devices: bad_requirements(devices, cpu=GARBAGE),
        "replicaRequirements.resourceRequestBytes[cpu]: ",
    ),
    "amount that is no quantity": (
        lambda devices: bad_requirements(devices, memory=quantity("lots")),
        "replicaRequirements.resourceRequestBytes[memory]: 'lots' is not a Kubernetes quantity",
    ),
    "amount that is very long": (
        lambda devices: bad_requirements(devices, memory=quantity("1" * 100_000)),
        "replicaRequirements.resourceRequestBytes[memory]: '1111",
    ),
    "older amount that is no quantity": (
        lambda devices: pb.ReplicaRequirements(
            resource_request={"cpu": pb.Quantity(string="1K")}
            | ({"nvidia.com/gpu": pb.Quantity(string="1")} if devices else {})
        ),
        "replicaRequirements.resourceRequest[cpu]: '1K' is not a Kubernetes quantity",
    ),
    "affinity": (
        lambda devices: with_claim(devices, pb.NodeClaim(node_affinity_bytes=GARBAGE)),
        "replicaRequirements.nodeClaim: ",
    ),
    "toleration": (
        lambda devices: with_claim(devices, pb.NodeClaim(tolerations_bytes=[b"", GARBAGE])),
        "replicaRequirements.nodeClaim: ",
    ),
    "text that is no UTF-8": (
        lambda devices: with_claim(devices, pb.NodeClaim(tolerations_bytes=[b"\x0a\x01\xff"])),
        "replicaRequirements.nodeClaim: ",
    ),
}


@pytest.mark.parametrize("devices", [True, False])
@pytest.mark.parametrize(("build", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_garbage_is_an_error_that_names_the_field(
    build: Callable[[bool], pb.ReplicaRequirements], message: str, devices: bool
) -> None:
    """H4, and what is asked for is seen all the same, because the answer in doubt depends on it."""
    with pytest.raises(WireError) as caught:
        replicas(build(devices))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 250
    assert caught.value.names_device is devices


def test_garbage_in_a_component_names_the_component() -> None:
    good = pb.Component(replica_requirements=requirements(gpu=1))
    bad = pb.Component(replica_requirements=requirements(cpu="x"))
    message = pb.MaxAvailableComponentSetsRequest(components=[good, bad])
    with pytest.raises(
        WireError, match=r"^components\[1\]\.replicaRequirements\.resourceRequestBytes\[cpu\]: "
    ) as caught:
        decode_sets(message.SerializeToString(), None)
    assert caught.value.names_device


def test_garbage_in_an_assumed_workload_names_it_and_looks_at_the_question_for_devices() -> None:
    bad = pb.AssumedWorkload(components=[pb.Component(replica_requirements=requirements(cpu="x", gpu=1))])
    path = r"^assumedWorkloads\[1\]\.components\[0\]\.replicaRequirements\.resourceRequestBytes\[cpu\]: "
    fine = pb.AssumedWorkload(components=[pb.Component()])
    message = pb.MaxAvailableReplicasRequest(assumed_workloads=[fine, bad])
    with pytest.raises(WireError, match=path) as caught:
        decode_replicas(message.SerializeToString(), None)
    assert not caught.value.names_device


@pytest.mark.parametrize(
    ("decode", "name"),
    [
        (lambda data: decode_replicas(data, None), "MaxAvailableReplicasRequest"),
        (lambda data: decode_sets(data, None), "MaxAvailableComponentSetsRequest"),
        (decode_unschedulable, "UnschedulableReplicasRequest"),
    ],
)
def test_bytes_that_are_no_request_say_so(decode: Callable[[bytes], Question], name: str) -> None:
    with pytest.raises(
        WireError, match=rf"^3 bytes are not a {name}: expected protobuf as Karmada"
    ) as caught:
        decode(GARBAGE)
    assert not caught.value.names_device


@pytest.mark.parametrize(
    "resource",
    [None, pb.ObjectReference(), pb.ObjectReference(kind="Deployment"), pb.ObjectReference(name="web")],
)
def test_unschedulable_replicas_of_nothing_are_an_error(resource: pb.ObjectReference | None) -> None:
    """G10: an error inside, which the service turns into doubt."""
    message = pb.UnschedulableReplicasRequest(cluster="m", resource=resource)
    with pytest.raises(WireError, match=r"^resource: expected the kind and name of a workload"):
        decode_unschedulable(message.SerializeToString())


# --- the object that the metadata name ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        ("kind=Deployment, name=default/web", WorkloadReference("Deployment", "default", "web")),
        ("kind=GpuJob, name=/web", WorkloadReference("GpuJob", "", "web")),
        ("kind=Job, name=a/b/c", WorkloadReference("Job", "a", "b/c")),
        ("kind=Job, name=a/b, name=c/d", WorkloadReference("Job", "a", "b, name=c/d")),
        (None, None),
        ("", None),
        ("Deployment default/web", None),
        ("kind=, name=default/web", None),
        ("kind=Deployment", None),
        ("kind=Deployment, name=", None),
        ("kind=Deployment, name=web", None),
        ("kind=Deployment, name=default/", None),
        ("kind=Deployment,name=default/web", None),
        ("Kind=Deployment, name=default/web", None),
        ("name=default/web, kind=Deployment", None),
        ("kind=Deployment, name=default/" + "w" * 2000, None),
    ],
)  # fmt: skip
def test_the_object_metadata_names_a_workload_or_nothing(
    text: str | None, workload: WorkloadReference | None
) -> None:
    assert parse_object(text) == workload


# --- answers -----------------------------------------------------------------------------------------------

READ: dict[Callable[[int], bytes], Callable[[bytes], int]] = {
    encode_replicas: lambda data: pb.MaxAvailableReplicasResponse.FromString(data).max_replicas,
    encode_sets: lambda data: pb.MaxAvailableComponentSetsResponse.FromString(data).max_sets,
    encode_unschedulable: lambda data: (
        pb.UnschedulableReplicasResponse.FromString(data).unschedulable_replicas
    ),
}


@pytest.mark.parametrize("encode", READ)
@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (0, 0),
        (1, 1),
        (NO_BOUND - 1, NO_BOUND - 1),
        (NO_BOUND, NO_BOUND),
        (UNBOUNDED, NO_BOUND),
        (2**31, NO_BOUND),
        (2**64, NO_BOUND),
        (-1, NO_OPINION),
        (-2, NO_OPINION),
        (-(2**63), NO_OPINION),
    ],
)
def test_answers_stay_clear_of_the_numbers_with_a_meaning(
    encode: Callable[[int], bytes], value: int, sent: int
) -> None:
    assert READ[encode](encode(value)) == sent


@CI
@given(st.integers(), st.sampled_from(list(READ)))
def test_no_answer_is_the_sentinel_or_another_negative(value: int, encode: Callable[[int], bytes]) -> None:
    assert -1 <= READ[encode](encode(value)) < 2**31 - 1


# --- laws --------------------------------------------------------------------------------------------------


@CI
@given(st.binary(max_size=60), st.none() | st.text(max_size=40))
def test_no_bytes_raise_anything_but_a_wire_error(data: bytes, object_text: str | None) -> None:
    decoders: tuple[Callable[[], Question], ...] = (
        lambda: decode_replicas(data, object_text),
        lambda: decode_sets(data, object_text),
        lambda: decode_unschedulable(data),
    )
    for decode in decoders:
        try:
            question = decode()
        except WireError:
            continue
        hash(question)


TEXTS = st.sampled_from(["", "a", "zone", "In", "Gt", "1", "-1", "é", "\x00", "x" * 300])
REQUIREMENTS = st.builds(
    lambda key, operator, values: pb.NodeSelectorRequirement(key=key, operator=operator, values=values),
    TEXTS,
    TEXTS,
    st.lists(TEXTS, max_size=2),
)
TERMS = st.builds(
    lambda labels, fields: pb.NodeSelectorTerm(match_expressions=labels, match_fields=fields),
    st.lists(REQUIREMENTS, max_size=2),
    st.lists(REQUIREMENTS, max_size=2),
)
CLAIMS = st.builds(
    lambda affinity, tolerations, selector: pb.NodeClaim(
        node_affinity_bytes=affinity, tolerations_bytes=tolerations, node_selector=selector
    ),
    st.one_of(
        st.binary(max_size=10),
        st.lists(TERMS, max_size=3).map(
            lambda terms: pb.NodeSelector(node_selector_terms=terms).SerializeToString()
        ),
    ),
    st.lists(st.binary(max_size=10), max_size=2),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
)
RESOURCES = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu", "foo", "", "../../x", "é/é"]),
    st.one_of(st.binary(max_size=10), st.sampled_from(["1", "-1", "1e9", "", "x"]).map(quantity)),
    max_size=3,
)


@CI
@given(RESOURCES, CLAIMS)
def test_no_well_formed_message_raises_anything_but_a_wire_error(
    resources: dict[str, bytes], claim: pb.NodeClaim
) -> None:
    sent = pb.ReplicaRequirements(resource_request_bytes=resources, node_claim=claim)
    failed = None
    try:
        question = replicas(sent)
    except WireError as error:
        failed = error
    if failed:
        assert failed.names_device is ("nvidia.com/gpu" in resources)
    else:
        assert all(amount > 0 for _, amount in question.shape.requests)
        assert question.names_device is ("nvidia.com/gpu" in dict(question.shape.requests))


def test_a_quantity_message_without_text_asks_for_nothing() -> None:
    empty = pb.ReplicaRequirements(resource_request_bytes={"cpu": b"", "memory": quantity("1Gi")})
    message = pb.MaxAvailableReplicasRequest(cluster="m", replica_requirements=empty)
    assert decode_replicas(message.SerializeToString(), None).shape.requests == (("memory", 1 << 30),)
    empty = pb.ReplicaRequirements(
        resource_request={"cpu": pb.Quantity(), "memory": pb.Quantity(string="1Gi")}
    )
    message = pb.MaxAvailableReplicasRequest(cluster="m", replica_requirements=empty)
    assert decode_replicas(message.SerializeToString(), None).shape.requests == (("memory", 1 << 30),)
