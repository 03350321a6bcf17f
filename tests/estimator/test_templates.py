"""Pod templates as shapes: the same as by Karmada's request where that says it, and more where it cannot."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.gangs.templates import DEVICE_ANNOTATIONS, shape_of
from estimator.fit.pod_shape import (
    ALONE,
    EACH_NODE,
    InterPod,
    NodeClaim,
    PodShape,
    Spread,
)
from estimator.pb import estimator_pb2 as pb
from fairway.accelerators.hami_vendors import VENDORS
from fairway.kube.templates import PodTemplate
from fairway.pod_terms import PodTerm
from fairway.selectors import Term, field_requirement, label_requirement
from tests.builders import cluster, node, replicas_of, shape, term
from tests.builders import toleration as wire_toleration

CI = settings(max_examples=100, derandomize=True, deadline=None)

Json = dict[str, object]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def parsed(spec: Mapping[str, object], labels: object = None, annotations: object = None) -> PodTemplate:
    data = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return msgspec.json.decode(msgspec.json.encode(data), type=PodTemplate)


def read(
    spec: Mapping[str, object], labels: object = None, annotations: object = None
) -> tuple[PodShape, list[str]]:
    problems: list[str] = []
    return shape_of(parsed(spec, labels, annotations), "template", problems), problems


def container(requests: object = None, limits: object = None, **fields: object) -> Json:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}, **fields}


def gpus(count: int = 1) -> Json:
    return container(limits={"nvidia.com/gpu": count})


# --- what Karmada's request says too -----------------------------------------------------------------------

Expression = tuple[str, str, tuple[str, ...]]


def as_json(terms: Sequence[pb.NodeSelectorTerm]) -> list[Json]:
    """Node selector terms as a template has them."""

    def requirements(listed: Sequence[pb.NodeSelectorRequirement]) -> list[Json]:
        return [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in listed]

    return [
        {"matchExpressions": requirements(t.match_expressions), "matchFields": requirements(t.match_fields)}
        for t in terms
    ]


def both_ways(
    containers: Sequence[tuple[Json, Json]],
    selector: Mapping[str, str],
    terms: Sequence[pb.NodeSelectorTerm] | None,
    tolerations: Sequence[str],
    priority: str,
) -> tuple[PodShape, PodShape]:
    """The shape by the template of a Deployment, and by what Karmada sends for it.

    Karmada fills requests from limits container by container, and adds the containers up.
    """
    required = {"nodeSelectorTerms": as_json(terms or ())}
    spec: Json = {
        "containers": [container(requests, limits) for requests, limits in containers],
        "nodeSelector": dict(selector),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        if terms is not None
        else None,
        "tolerations": [
            {"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect}
            for t in map(wire_toleration, tolerations)
        ],
        "priorityClassName": priority,
    }
    total: dict[str, int] = {}
    for requests, limits in containers:
        for name, amount in {**limits, **requests}.items():
            assert isinstance(amount, int)
            total[name] = total.get(name, 0) + amount
    sent = shape(dict(total), selector=selector, affinity=terms, tolerations=tolerations, priority=priority)
    found, problems = read(spec)
    assert problems == []
    assert found.inter_pod == InterPod("default")
    return replace(found, containers=(), inter_pod=ALONE), sent


@pytest.mark.parametrize(
    ("containers", "selector", "terms", "tolerations", "priority"),
    [
        ([], {}, None, [], ""),
        ([({"cpu": 2, "memory": 4096}, {})], {}, None, [], "high"),
        ([({"cpu": 2}, {"cpu": 4, "nvidia.com/gpu": 8})], {"b": "", "a": "x!"}, None, ["*"], ""),
        ([({}, {"nvidia.com/gpu": 1}), ({"nvidia.com/gpu": 1, "pods": 3}, {})], {}, [], ["a:NoSchedule"], ""),
        ([({"cpu": 0, "foo": 1}, {})], {}, [term()], ["a=b:NoExecute", "c:"], ""),
        (
            [({"cpu": 1}, {})],
            {"pool": "gpu"},
            [
                term(("zone", "In", ["a", "b"]), fields=[("metadata.name", "NotIn", ["n1"])]),
                term(("zone", "Like", ["a"])),
                term(("gpu", "Exists", []), ("memory", "Gt", ["40000"])),
                term(),
            ],
            [],
            "",
        ),
    ],
)
def test_a_template_and_karmadas_request_for_it_are_the_same_shape(
    containers: list[tuple[Json, Json]],
    selector: dict[str, str],
    terms: list[pb.NodeSelectorTerm] | None,
    tolerations: list[str],
    priority: str,
) -> None:
    by_template, by_wire = both_ways(containers, selector, terms, tolerations, priority)
    assert by_template == by_wire


NAMES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "rdma/ib", "foo", "hugepages-2Mi", "pods"])
AMOUNTS = st.dictionaries(NAMES, st.integers(0, 2**40), max_size=4)
WORDS = st.sampled_from(["a", "b/c", "zone", "A_", "not a label", "", "x" * 64])
EXPRESSIONS = st.tuples(
    WORDS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like", ""]),
    st.lists(WORDS | st.sampled_from(["1", "-3"]), max_size=2),
)
TERMS = st.lists(
    st.tuples(st.lists(EXPRESSIONS, max_size=2), st.lists(EXPRESSIONS, max_size=1)).map(
        lambda both: term(*both[0], fields=both[1])
    ),
    max_size=3,
)


@CI
@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS), max_size=3),
    st.dictionaries(WORDS, WORDS, max_size=3),
    st.none() | TERMS,
    st.lists(st.sampled_from(["*", "a", "a:NoSchedule", "a=b:NoExecute", "c=:"]), max_size=3),
    WORDS,
)
def test_any_template_and_karmadas_request_for_it_are_the_same_shape(
    containers: list[tuple[Json, Json]],
    selector: dict[str, str],
    terms: list[pb.NodeSelectorTerm] | None,
    tolerations: list[str],
    priority: str,
) -> None:
    by_template, by_wire = both_ways(containers, selector, terms, tolerations, priority)
    assert by_template == by_wire


# --- devices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "containers"),
    [
        ({"containers": [container({"cpu": "1"})]}, ()),
        (
            {"containers": [gpus(2), container(), gpus(1)]},
            ((("nvidia.com/gpu", 2),), (("nvidia.com/gpu", 1),)),
        ),
        (
            {
                "containers": [
                    container(limits={"nvidia.com/gpumem": 4000, "nvidia.com/gpu": 1, "memory": "1Gi"})
                ]
            },
            ((("nvidia.com/gpu", 1), ("nvidia.com/gpumem", 4000)),),
        ),
        # a zero is an amount that sharing schemes look at
        ({"containers": [gpus(0)]}, ((("nvidia.com/gpu", 0),),)),
        # sidecars hold their devices as long as the pod lives
        (
            {"initContainers": [{**gpus(1), "restartPolicy": "Always"}], "containers": [gpus(2)]},
            ((("nvidia.com/gpu", 1),), (("nvidia.com/gpu", 2),)),
        ),
        # an init container that asks for no more than the others adds nothing
        ({"initContainers": [gpus(2)], "containers": [gpus(2)]}, ((("nvidia.com/gpu", 2),),)),
        # one that asks for more counts with the difference
        (
            {"initContainers": [gpus(3)], "containers": [gpus(2)]},
            ((("nvidia.com/gpu", 2),), (("nvidia.com/gpu", 1),)),
        ),
        ({"initContainers": [gpus(3)], "containers": [container()]}, ((("nvidia.com/gpu", 3),),)),
    ],
)
def test_devices_are_known_by_container(spec: Json, containers: object) -> None:
    found, problems = read(spec)
    assert found.containers == containers
    assert problems == []


@CI
@given(
    st.lists(st.integers(0, 8), max_size=3), st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=3)
)
def test_devices_by_container_add_up_to_the_request(regular: list[int], init: list[tuple[int, bool]]) -> None:
    spec = {
        "containers": [gpus(count) for count in regular],
        "initContainers": [
            {**gpus(count), "restartPolicy": "Always" if stays else None} for count, stays in init
        ],
    }
    found, _ = read(spec)
    assert found.ask.total.get("nvidia.com/gpu", 0) == dict(found.requests).get("nvidia.com/gpu", 0)


def test_annotations_about_devices_are_kept_in_order_and_others_are_not() -> None:
    notes = {"nvidia.com/use-gputype": "A100", "gpu-fraction": "0.5", "example.com/owner": "me"}
    found, _ = read({"containers": [container()]}, annotations=notes)
    assert found.annotations == (("gpu-fraction", "0.5"), ("nvidia.com/use-gputype", "A100"))
    assert found.ask.annotations == found.annotations


def test_all_annotations_by_which_hami_selects_are_kept() -> None:
    names = {
        name
        for s in VENDORS
        for name in (*s.use_id, *s.avoid_id, s.use_type, s.avoid_type, s.mode, s.same_numa)
    }
    assert names - {""} <= set(DEVICE_ANNOTATIONS)
    assert list(DEVICE_ANNOTATIONS) == sorted(set(DEVICE_ANNOTATIONS) - {""})


# --- pods of the same template -----------------------------------------------------------------------------


def selecting(**labels: str) -> Json:
    return {"matchLabels": labels}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def apart(selector: object, key: str = HOST, kind: str = "podAntiAffinity", **fields: object) -> Json:
    terms = [{"labelSelector": selector, "topologyKey": key, **fields}]
    return {
        "containers": [container()],
        "affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    }


def spreading(selector: object, **fields: object) -> Json:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **fields,
    }
    return {"containers": [container()], "topologySpreadConstraints": [constraint]}


LABELS = {"app": "train", "role": "worker"}
TRAIN = (label_requirement("app", "In", ("train",)),)


@pytest.mark.parametrize(
    ("selector", "is_own"),
    [
        (selecting(app="train"), True),
        (selecting(app="train", role="worker"), True),
        (selecting(app="other"), False),
        (selecting(app="train", tier="x"), False),
        ({}, True),
        (None, False),
        (expression("app", "In", "a", "train"), True),
        (expression("app", "In", "a"), False),
        (expression("app", "NotIn", "a"), True),
        (expression("tier", "NotIn", "a"), True),
        (expression("app", "NotIn", "train"), False),
        (expression("app", "Exists"), True),
        (expression("tier", "Exists"), False),
        (expression("tier", "DoesNotExist"), True),
        ({**selecting(app="train"), **expression("role", "In", "ps")}, False),
    ],
)
def test_a_selector_is_matched_with_the_templates_own_labels(selector: object, is_own: bool) -> None:
    found, problems = read(apart(selector), LABELS)
    assert found.per_domain == (((HOST, 1),) if is_own else ())
    assert problems == []
    found, problems = read(spreading(selector), LABELS)
    # kube-scheduler counts nobody for an empty selector of a constraint
    assert [spread.counts_own for spread in found.spread] == [is_own and selector != {}]
    assert problems == []


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_what_is_about_other_pods_is_kept_for_each_cluster_to_answer(kind: str) -> None:
    found, problems = read(apart(selecting(app="other"), kind=kind), LABELS)
    term = PodTerm(HOST, (label_requirement("app", "In", ("other",)),), frozenset(["default"]))
    terms = {"podAffinity": (), "podAntiAffinity": (), kind: (term,)}
    assert found.inter_pod.affinity == terms["podAffinity"]
    assert found.inter_pod.anti_affinity == terms["podAntiAffinity"]
    assert found.per_domain == ()
    assert problems == []


@pytest.mark.parametrize(
    ("spec", "per_domain"),
    [
        (apart(selecting(app="train"), ZONE), ((ZONE, 1),)),
        ({"containers": [{**container(), "ports": [{"hostPort": 8080}]}]}, ((EACH_NODE, 1),)),
        (
            {"hostNetwork": True, "containers": [{**container(), "ports": [{"containerPort": 8080}]}]},
            ((EACH_NODE, 1),),
        ),
        ({"hostNetwork": True, "containers": [container()]}, ()),
        ({"containers": [{**container(), "ports": [{"containerPort": 8080}]}]}, ()),
        (
            {
                "initContainers": [{**container(), "restartPolicy": "Always", "ports": [{"hostPort": 1}]}],
                "containers": [container()],
            },
            ((EACH_NODE, 1),),
        ),
        (
            {"initContainers": [{**container(), "ports": [{"hostPort": 1}]}], "containers": [container()]},
            (),
        ),
        (
            {
                **apart(selecting(app="train"), ZONE),
                "containers": [{**container(), "ports": [{"hostPort": 1}]}],
            },
            ((EACH_NODE, 1), (ZONE, 1)),
        ),
    ],
)
def test_pods_keep_apart_by_anti_affinity_and_host_ports(spec: Json, per_domain: object) -> None:
    found, problems = read(spec, LABELS)
    assert found.per_domain == per_domain
    assert problems == []


@pytest.mark.parametrize(
    ("fields", "spread"),
    [
        ({"maxSkew": 3}, (Spread(ZONE, 3, selector=TRAIN),)),
        ({"minDomains": 2}, (Spread(ZONE, 1, 2, selector=TRAIN),)),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, ()),
        (
            {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"},
            (Spread(ZONE, 1, selector=TRAIN),),
        ),
        ({"nodeAffinityPolicy": "Ignore"}, (Spread(ZONE, 1, selector=TRAIN, honors_affinity=False),)),
        ({"nodeTaintsPolicy": "Honor"}, (Spread(ZONE, 1, selector=TRAIN, honors_taints=True),)),
        (
            {"matchLabelKeys": ["role", "unknown"]},
            (Spread(ZONE, 1, selector=(*TRAIN, label_requirement("role", "In", ("worker",)))),),
        ),
    ],
)
def test_spreading_that_does_not_give_way_is_kept(fields: Json, spread: object) -> None:
    found, problems = read(spreading(selecting(app="train"), **fields), LABELS)
    assert found.spread == spread
    assert problems == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            apart(selecting(app="train"), matchLabelKeys=["pod-template-hash"]),
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]",
        ),
        (
            apart(selecting(app="train"), mismatchLabelKeys=["pod-template-hash"]),
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]",
        ),
        (
            spreading(selecting(app="train"), matchLabelKeys=["pod-template-hash"]),
            "topologySpreadConstraints[0]",
        ),
    ],
)
def test_a_hash_that_only_the_member_knows_is_told_by_field(spec: Json, field: str) -> None:
    shape, problems = read(spec, LABELS)
    assert problems == []
    (unsettled,) = shape.inter_pod.unsettled
    assert unsettled.startswith(f"template.spec.{field}: pod-template-hash is set in the cluster")
    shape, _ = read(spec, {**LABELS, "pod-template-hash": "1"})
    assert shape.inter_pod.unsettled == ()


# --- what Kubernetes would refuse --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            apart({}, ""),
            "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: expected",
        ),
        (
            apart({}, "", "podAffinity"),
            "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
        (apart(expression("a", "Gt", "1")), "labelSelector: Gt on a: expected In, NotIn, Exists"),
        (apart(expression("a", "Like", "1")), "labelSelector: 'Like' on a is not an operator"),
        (apart(selecting(app="!")), "labelSelector: In on app: '!' is not a label value"),
        (
            apart({}, namespaceSelector=expression("team", "In")),
            "requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector: In on team names no values",
        ),
        (spreading({}, topologyKey=""), "topologySpreadConstraints[0].topologyKey: expected a node label"),
        (spreading({}, maxSkew=0), "topologySpreadConstraints[0].maxSkew: 0: expected at least 1"),
        (spreading({}, minDomains=0), "topologySpreadConstraints[0].minDomains: 0: expected at least 1"),
        (
            spreading(expression("a", "In")),
            "topologySpreadConstraints[0].labelSelector: In on a names no values",
        ),
        (
            {"containers": [container(), container({"nvidia.com/gpu": "many"})]},
            "template.spec.containers[1].resources: nvidia.com/gpu: 'many' is not a Kubernetes quantity",
        ),
        (
            {"initContainers": [container({"cpu": "1x"})]},
            "template.spec.initContainers[0].resources: cpu: '1x'",
        ),
        ({"overhead": {"cpu": "?"}}, "template.spec.resources or template.spec.overhead: cpu: '?'"),
    ],
)
def test_a_template_that_kubernetes_refuses_fits_nowhere(spec: Json, told: str) -> None:
    found, problems = read({"containers": [container()], **spec}, LABELS)
    assert found.claim == NodeClaim(affinity=())
    (problem,) = problems
    assert told in problem
    assert problem.endswith("; read as a pod that fits nowhere")
    assert replicas_of(cluster(node("a").gpus(8).cpu("96")), found).value == 0


def test_a_template_that_is_refused_still_names_its_devices() -> None:
    found, _ = read({"containers": [container({"cpu": "?"}, {"nvidia.com/gpu": 8})]})
    assert found.names_device
    found, _ = read({"containers": [container({"cpu": "?"})]})
    assert not found.names_device


# --- a node by name ----------------------------------------------------------------------------------------


def test_a_template_for_one_node_claims_that_node() -> None:
    here = field_requirement("metadata.name", "In", ("n1",))
    found, _ = read({"containers": [container()], "nodeName": "n1"})
    assert found.claim.affinity == (Term((), (here,)),)
    required = {"nodeSelectorTerms": as_json([term(("zone", "In", ["a"]))])}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    found, _ = read({"containers": [container()], "nodeName": "n1", "affinity": affinity})
    assert found.claim.affinity == (Term((label_requirement("zone", "In", ("a",)),), (here,)),)
