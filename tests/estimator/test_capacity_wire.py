"""Values of the capacity service to messages and back, and requests of all kinds, most of them bad."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.capacity.answer import Answer
from estimator.capacity.gangs.placements import (
    Assignment,
    Blocked,
    ClusterExplanation,
    ClusterPlacement,
    EarliestRoom,
    Explanation,
    NearMiss,
    Placed,
    told,
)
from estimator.capacity.request import GangQuestion
from estimator.capacity.summary import (
    Chunk,
    Domain,
    Fractions,
    LargestGang,
    Level,
    Partition,
    Placeable,
    Product,
    SliceShape,
    StrandedNode,
    Summary,
)
from estimator.capacity_requests import (
    MAX_ASSUMED,
    MAX_CLUSTERS,
    MAX_JSON_BYTES,
    CapacityQuestion,
    read_explain,
    read_place,
)
from estimator.capacity_wire import (
    encode_explanation,
    encode_placement,
    encode_summary,
    explanation_of,
    placement_of,
    summary_of,
)
from estimator.reasons import Reason, cordoned, insufficient
from estimator.workload_requests import MAX_WORKLOADS, RequestError
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.gang import TopologyMode, TopologyRequest
from fairway.workloads.workload_name import WorkloadName
from tests.builders import shape

GPU = "nvidia.com/gpu"

# --- there and back --------------------------------------------------------------------------------------

texts = st.text(max_size=20)
small = st.integers(-(2**31), 2**31 - 1)
large = st.integers(-(2**63), 2**63 - 1)
ages = st.floats(allow_nan=False)


def some(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


products = st.builds(
    Product,
    product=texts,
    resource=texts,
    device_class=texts,
    nodes=small,
    total=large,
    unhealthy=large,
    cordoned=large,
    allocated=large,
    free=large,
    stranded=large,
    placeable=some(st.builds(Placeable, small, large)),
    chunks=some(st.builds(Chunk, large, small)),
    gangs=some(st.builds(LargestGang, small, texts, texts, large)),
    partitions=some(st.builds(Partition, texts, texts, large, large, large)),
    fractions=some(st.builds(Fractions, texts, large, large, large, large, large)),
    advertised_per_device=st.integers(1, 2**31 - 1),
)
summaries = st.builds(
    Summary,
    cluster=texts,
    nodes=small,
    pods=small,
    products=some(products),
    stranded=some(st.builds(StrandedNode, texts, texts, large, texts, texts)),
    slices=some(st.builds(SliceShape, texts, texts, small, small, small, small, small)),
    levels=some(
        st.builds(
            Level, texts, texts, some(st.builds(Domain, some(texts), small, large, large, small)), small
        )
    ),
    uncatalogued=some(texts),
    age_s=ages,
    doubt=texts,
    problems=some(texts),
)
causes = st.builds(Reason, texts, texts)
placements = st.builds(
    ClusterPlacement,
    cluster=texts,
    fits=small,
    upper_bound=small,
    proven=st.booleans(),
    spread_fits=st.none() | st.integers(0, 2**31 - 1),
    empty_bound=st.none() | st.integers(0, 2**31 - 1),
    level=texts,
    reasons=some(causes),
    placement=some(st.builds(Assignment, texts, texts, small, st.booleans())),
    age_s=ages,
    ranks_by_size=st.booleans(),
    earliest=st.none()
    | st.builds(
        EarliestRoom,
        st.none() | large,
        small,
        some(st.builds(Assignment, texts, texts, small)),
        some(st.builds(WorkloadName, texts, texts, texts, texts)),
        st.booleans(),
    ),
)
explanations = st.builds(
    ClusterExplanation,
    placements,
    some(
        st.builds(
            Explanation,
            texts,
            small,
            some(st.builds(Blocked, causes, small)),
            some(st.builds(NearMiss, texts, texts, texts)),
        )
    ),
)


@given(summaries)
def test_a_summary_comes_back_as_it_was(summary: Summary) -> None:
    sent = encode_summary(summary).SerializeToString()
    assert summary_of(pb.ClusterSummary.FromString(sent)) == summary


@given(placements)
def test_a_placement_comes_back_as_it_was(placement: ClusterPlacement) -> None:
    sent = encode_placement(placement).SerializeToString()
    assert placement_of(pb.ClusterPlacement.FromString(sent)) == placement


@given(explanations)
def test_an_explanation_comes_back_as_it_was(explanation: ClusterExplanation) -> None:
    sent = encode_explanation(explanation).SerializeToString()
    assert explanation_of(pb.ClusterExplanation.FromString(sent)) == explanation


def test_every_field_of_a_message_is_filled_and_read() -> None:
    # A field that is added to the proto file and forgotten here would come back empty for ever.
    for value, message in (
        (Summary, pb.ClusterSummary),
        (Product, pb.Product),
        (Partition, pb.Partition),
        (Fractions, pb.Fractions),
        (StrandedNode, pb.StrandedNode),
        (SliceShape, pb.SliceShape),
        (Level, pb.Level),
        (Domain, pb.Domain),
        (ClusterPlacement, pb.ClusterPlacement),
        (EarliestRoom, pb.EarliestRoom),
        (Explanation, pb.PodSetExplanation),
    ):
        assert [field.name for field in fields(value)] == [f.name for f in message.DESCRIPTOR.fields]


def test_numbers_beyond_a_field_saturate() -> None:
    product = Product(
        "p",
        GPU,
        "whole",
        2**40,
        2**70,
        0,
        0,
        0,
        2**63,
        0,
        advertised_per_device=2**31,
        chunks=(Chunk(1, 2**31),),
    )
    back = summary_of(encode_summary(Summary("c", 2**31, 0, (product,)))).products[0]
    assert (back.nodes, back.total, back.free) == (2**31 - 1, 2**63 - 1, 2**63 - 1)
    assert (back.advertised_per_device, back.chunks) == (2**31 - 1, (Chunk(1, 2**31 - 1),))


def test_a_server_that_does_not_say_how_often_devices_are_advertised_advertises_them_once() -> None:
    back = summary_of(pb.ClusterSummary(products=[pb.Product(product="p")]))
    assert back.products[0].advertised_per_device == 1


def test_an_answer_is_told_with_its_reasons_and_assignments() -> None:
    placed = Placed(
        Answer(2, 3, False, (insufficient(GPU, 4), cordoned(1))), 1, "rack", (Assignment("worker", "a", 2),)
    )
    assert told("alpha", placed, 1.5) == ClusterPlacement(
        "alpha",
        2,
        3,
        False,
        1,
        "rack",
        (Reason("insufficient", f"insufficient {GPU} on 4 nodes"), Reason("cordoned", "1 node cordoned")),
        (Assignment("worker", "a", 2),),
        1.5,
    )


# --- requests --------------------------------------------------------------------------------------------


def template(**requests: str) -> bytes:
    amounts = {GPU if name == "gpu" else name: amount for name, amount in requests.items()}
    return json.dumps({"spec": {"containers": [{"resources": {"requests": amounts}}]}}).encode()


def pod_set(name: str = "worker", count: int = 4, raw: bytes | None = None, **more: pb.Topology) -> pb.PodSet:
    return pb.PodSet(name=name, count=count, template_json=template(gpu="8") if raw is None else raw, **more)


def place(gang: pb.Gang, **more: object) -> CapacityQuestion:
    request = pb.PlaceRequest(gang=gang, **more)  # type: ignore[arg-type]  # fields of the message
    return read_place(pb.PlaceRequest.FromString(request.SerializeToString()))


def job(**more: object) -> bytes:
    spec = {"parallelism": 2, "template": json.loads(template(gpu="4"))}
    metadata = {"name": "train", "namespace": "research"}
    return json.dumps(
        {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": spec, **more}
    ).encode()


def test_pod_sets_become_the_components_of_a_gang() -> None:
    rack = pb.Topology(mode=pb.Topology.REQUIRED, level="rack")
    slices = pb.Topology(mode=pb.Topology.SLICED, level="host", slice_size=2)
    asked = place(
        pb.Gang(
            namespace="research",
            pod_sets=[pod_set("driver", 1, template(cpu="4")), pod_set("worker", 4, topology=slices)],
            topology=rack,
            copies=3,
        ),
        clusters=["a", "b", "a"],
        search_ms=250,
        want_placement=True,
    )
    assert (asked.clusters, asked.search_s, asked.placements, asked.copies) == (("a", "b"), 0.25, 1, 1)
    assert asked.problems == ()
    question = asked.about("alpha")
    assert (question.cluster, question.namespace, question.wanted) == ("alpha", "research", 3)
    assert question.topology == TopologyRequest(TopologyMode.REQUIRED, "rack")
    driver, worker = question.components
    assert (driver.name, driver.replicas, driver.topology) == ("driver", 1, None)
    assert driver.shape.requests == shape(cpu="4").requests
    assert (worker.name, worker.replicas) == ("worker", 4)
    assert worker.shape.requests == shape(gpu=8).requests
    assert worker.topology == TopologyRequest(TopologyMode.SLICED, "host", 2)


def test_a_workload_is_read_by_its_kind() -> None:
    asked = place(pb.Gang(workload_json=job()))
    (component,) = asked.gang.components
    assert (asked.gang.namespace, component.replicas) == ("research", 2)
    assert component.shape.requests == shape(gpu=4).requests


def test_a_namespace_in_the_request_goes_before_that_of_the_workload() -> None:
    assert place(pb.Gang(workload_json=job(), namespace="elsewhere")).gang.namespace == "elsewhere"


def test_an_explain_request_is_read_the_same_way() -> None:
    gang = pb.Gang(pod_sets=[pod_set()])
    assert read_explain(pb.ExplainRequest(gang=gang, search_ms=10)) == place(gang, search_ms=10)


def test_gangs_on_their_way_hold_the_room_of_all_their_copies() -> None:
    on_its_way = pb.Gang(namespace="x", pod_sets=[pod_set(count=2), pod_set("driver", 1)], copies=3)
    asked = place(pb.Gang(pod_sets=[pod_set()]), assumed=[on_its_way, pb.Gang(workload_json=job())])
    assert [
        (one.namespace, [(part.name, part.replicas) for part in one.components]) for one in asked.gang.assumed
    ] == [("x", [("worker", 6), ("driver", 3)]), ("research", [("train", 2)])]


def test_what_a_template_says_and_nobody_uses_is_a_problem_and_no_error() -> None:
    raw = json.loads(template(gpu="8"))
    raw["spec"]["schedulingGates"] = [{"name": "example.com/review"}]
    asked = place(pb.Gang(pod_sets=[pod_set(raw=json.dumps(raw).encode())]))
    assert isinstance(asked.gang, GangQuestion)
    (problem,) = asked.problems
    assert problem.startswith("pod set worker.spec.schedulingGates")


def test_a_gang_of_a_hundred_thousand_pods_is_a_question_like_any_other() -> None:
    assert place(pb.Gang(pod_sets=[pod_set(count=100_000)])).gang.components[0].replicas == 100_000


UNKNOWN_MODE = pb.Topology(level="rack")
ONE = pb.Gang(pod_sets=[pod_set()])
TRAIN = pb.WorkloadName(namespace="team", group="batch", kind="Job", name="train")
MINUS = pb.Assignment(pod_set="worker", node="a", pods=-1)


def giving(surplus: int, kept: int, *, of_choice: bool = True) -> pb.PlaceRequest:
    one = pb.Ending(workload=TRAIN, surplus=surplus, kept=kept)
    return pb.PlaceRequest(gang=ONE, endings=pb.Endings(endings=[one], of_choice=of_choice))


def ending(*ends: tuple[pb.WorkloadName, int]) -> pb.PlaceRequest:
    endings = [pb.Ending(workload=name, at_ms=at_ms) for name, at_ms in ends]
    return pb.PlaceRequest(gang=ONE, endings=pb.Endings(endings=endings))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (giving(3, 2), "endings.endings[0].surplus: 3: expected none, or some of 2 kept"),
        (giving(-1, 2), "endings.endings[0].surplus: -1: expected none, or some of 2 kept"),
        (giving(1, 0), "endings.endings[0].surplus: 1: expected none, or some of 0 kept"),
        (
            giving(1, 2, of_choice=False),
            "endings.endings: a surplus without of_choice: expected one only with it",
        ),
        (pb.PlaceRequest(), "gang: is missing: expected pod_sets or workload_json"),
        (pb.PlaceRequest(gang=pb.Gang()), "gang: has no pods: expected pod_sets or workload_json"),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(count=0)])),
            "gang: has no pods: expected at least one pod set with a count above 0",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(count=-1)])),
            "gang.pod_sets[0].count: -1: expected a number of pods",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set()], copies=-2)),
            "gang.copies: -2: expected a number of gangs, or 0",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(), pod_set("b"), pod_set()])),
            "gang.pod_sets[2].name: 'worker' is there twice: expected it once",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set()], workload_json=job())),
            "gang: has workload_json and pod_sets or topology: expected one or the other",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(f"n{i}") for i in range(257)])),
            "gang.pod_sets: 257 pod sets: expected at most 256",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(raw=b" " * (MAX_JSON_BYTES + 1))])),
            f"gang.pod_sets[0].template_json: {MAX_JSON_BYTES + 1} bytes: expected at most {MAX_JSON_BYTES}",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(raw=b"{")])),
            "gang.pod_sets[0].template_json: Input data was truncated; expected JSON in UTF-8",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(raw=b"")])),
            "gang.pod_sets[0].template_json: Input data was truncated; expected JSON in UTF-8",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(raw=b'{"spec": {"containers": 3}}')])),
            "gang.pod_sets[0].template_json.spec.containers: expected",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set(raw=b"{}")])),
            "gang.pod_sets[0].template_json: expected a pod template with containers, found none",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(workload_json=b'{"kind": "Poem", "apiVersion": "v1"}')),
            "gang.workload_json: kind Poem of group core is not known",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(workload_json=b"[" * 100_000)),
            "gang.workload_json: ",
        ),
        (
            pb.PlaceRequest(gang=pb.Gang(pod_sets=[pod_set()], topology=UNKNOWN_MODE)),
            "gang.topology.mode: 0: expected REQUIRED, PREFERRED, EXCLUSIVE, SLICED",
        ),
        (
            pb.PlaceRequest(
                gang=pb.Gang(pod_sets=[pod_set(topology=pb.Topology(mode=pb.Topology.REQUIRED))])
            ),
            "gang.pod_sets[0].topology.level: is empty: expected a label key or a level's short name",
        ),
        (
            pb.PlaceRequest(
                gang=pb.Gang(
                    pod_sets=[pod_set()], topology=pb.Topology(mode=pb.Topology.SLICED, level="rack")
                )
            ),
            "gang.topology.slice_size: 0: expected how many pods share a domain",
        ),
        (
            pb.PlaceRequest(
                gang=pb.Gang(
                    pod_sets=[pod_set()],
                    topology=pb.Topology(mode=pb.Topology.REQUIRED, level="rack", slice_size=2),
                )
            ),
            "gang.topology.slice_size: 2: expected 0 unless SLICED or EXCLUSIVE",
        ),
        (
            pb.PlaceRequest(gang=ONE, assumed=[pb.Gang(pod_sets=[pod_set(raw=b"1")])]),
            "assumed[0].pod_sets[0].template_json",
        ),
        (
            pb.PlaceRequest(gang=ONE, assumed=[pb.Gang()] * (MAX_ASSUMED + 1)),
            f"assumed: expected at most {MAX_ASSUMED} gangs and pod sets of them",
        ),
        (
            pb.PlaceRequest(gang=ONE, clusters=map(str, range(MAX_CLUSTERS + 1))),
            f"clusters: {MAX_CLUSTERS + 1} names: expected at most {MAX_CLUSTERS}",
        ),
        (
            pb.PlaceRequest(gang=ONE, search_ms=-1),
            "search_ms: -1: expected milliseconds, or 0 for the server's own",
        ),
        (
            pb.PlaceRequest(gang=ONE, without=[TRAIN] * (MAX_WORKLOADS + 1)),
            f"without: {MAX_WORKLOADS + 1} workloads: expected at most {MAX_WORKLOADS}",
        ),
        (
            pb.PlaceRequest(gang=ONE, without=[TRAIN, pb.WorkloadName(kind="Job")]),
            "without[1]: expected the kind and name of a workload, found none",
        ),
        (
            pb.PlaceRequest(gang=ONE, without=[pb.WorkloadName(kind="Job", name="n" * 254)]),
            "without[0]: expected names of at most 253 characters",
        ),
        (
            ending(*[(TRAIN, 1)] * (MAX_WORKLOADS + 1)),
            f"endings.endings: {MAX_WORKLOADS + 1} workloads: expected at most {MAX_WORKLOADS}",
        ),
        (
            ending((TRAIN, 1), (TRAIN, -1)),
            "endings.endings[1].at_ms: -1: expected milliseconds since the epoch",
        ),
        (
            ending((pb.WorkloadName(name="train"), 1)),
            "endings.endings[0].workload: expected the kind and name of a workload, found none",
        ),
        (
            pb.PlaceRequest(gang=ONE, assumed=[pb.Gang(pod_sets=[pod_set()], where=[MINUS], waits=True)]),
            "assumed[0].where: expected a number of pods",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_that_cannot_be_read_is_refused_by_field(request_: pb.PlaceRequest, message: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_place(request_)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value)) < 1000


@given(st.binary(max_size=200), st.integers(-(2**31), 2**31 - 1), st.text(max_size=5))
def test_no_template_or_workload_does_more_than_be_refused(raw: bytes, count: int, name: str) -> None:
    for gang in (pb.Gang(pod_sets=[pod_set(name, count, raw)]), pb.Gang(workload_json=raw)):
        assert refusal(gang).startswith("gang")


def refusal(gang: pb.Gang) -> str:
    """Why the gang is refused; what it is where it is not."""
    try:
        return f"gang of {len(place(gang).gang.components)}"
    except RequestError as error:
        return str(error)


def test_a_question_about_one_cluster_differs_in_nothing_else() -> None:
    asked = place(ONE)
    assert replace(asked.about("alpha"), cluster="") == asked.gang


def test_workloads_that_are_named_twice_are_gone_once_and_end_by_the_earlier_time() -> None:
    other = pb.WorkloadName(namespace="team", group="apps", kind="Deployment", name="train")
    request = ending((TRAIN, 7), (other, 2**63 - 1), (TRAIN, 5), (TRAIN, 6))
    request.without.extend([other, TRAIN, other])
    question = read_place(request)
    job = WorkloadName("team", "train", "Job", "batch")
    deployment = WorkloadName("team", "train", "Deployment", "apps")
    assert question.without == (deployment, job)
    assert question.endings == {job: 5, deployment: 2**63 - 1}


def test_that_nobody_asks_when_is_told_from_that_nobody_knows() -> None:
    assert read_place(pb.PlaceRequest(gang=ONE)).endings is None
    assert read_place(ending()).endings == {}


def test_who_can_end_workloads_says_so_and_they_stay_in_order() -> None:
    other = pb.WorkloadName(group="batch", kind="Job", name="other")
    request = ending((TRAIN, 7), (other, 7))
    assert not read_place(request).of_choice
    request.endings.of_choice = True
    question = read_place(request)
    assert question.of_choice
    assert [name.name for name in question.endings or ()] == ["train", "other"]
