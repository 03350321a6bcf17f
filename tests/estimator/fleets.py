"""Hypothesis strategies for small clusters and questions in which everything that matters happens often."""

from hypothesis import strategies as st

from estimator.pb import estimator_pb2 as pb
from tests.builders import NodeBuilder, PodBuilder, Quantity, node, pod, requirements, term

NODE_NAMES = ("n0", "n1", "n2", "n3")
GHOST = "ghost"
"""A node that never appears."""

_CPU: st.SearchStrategy[Quantity] = st.sampled_from(
    ["0", "500m", "1", "1500m", "2", "3.0001", "0.1m", 4, "-1"]
)
_MEMORY: st.SearchStrategy[Quantity] = st.sampled_from(["0", "1", "2.5", "1Ki", "4Ki", "1e3", 0.5])
_DEVICES: st.SearchStrategy[Quantity] = st.sampled_from([0, "1", "2", "4", "8"])
_PODS: st.SearchStrategy[Quantity] = st.sampled_from([0, 1, 2, 5, "110", "-3"])
_ZONES = st.sampled_from(["a", "b", ""])
_GENERATIONS = st.sampled_from(["1", "2", "10", "x"])
_TAINTS = st.sampled_from(
    ["gpu:NoSchedule", "gpu=a100:NoSchedule", "spot:NoExecute", "spot=yes:NoExecute", "spot:PreferNoSchedule"]
)
_RESOURCES: st.SearchStrategy[dict[str, Quantity]] = st.fixed_dictionaries(
    {}, optional={"cpu": _CPU, "memory": _MEMORY, "nvidia.com/gpu": _DEVICES}
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeBuilder:
    built = node(name).has(draw(_RESOURCES))
    if draw(st.booleans()):
        built = built.pods(draw(_PODS))
    if draw(st.booleans()):
        built = built.label(zone=draw(_ZONES))
    if draw(st.booleans()):
        built = built.label(generation=draw(_GENERATIONS))
    for taint in draw(st.lists(_TAINTS, max_size=2)):
        built = built.taint(taint)
    return built.cordoned() if draw(st.sampled_from([False, False, True])) else built


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    built = pod(name)
    for _ in range(draw(st.integers(1, 2))):
        add = draw(
            st.sampled_from([PodBuilder.requests, PodBuilder.requests, PodBuilder.init, PodBuilder.sidecar])
        )
        built = add(built, draw(_RESOURCES))
    place = st.sampled_from([*NODE_NAMES, GHOST])
    match draw(st.sampled_from(["bound", "bound", "bound", "nominated", "moving", "pending"])):
        case "bound":
            built = built.on(draw(place))
        case "nominated":
            built = built.nominated(draw(place))
        case "moving":
            built = built.nominated(draw(place)).on(draw(place))
        case _:
            built = built.phase("Pending")
    if draw(st.sampled_from([False, False, False, True])):
        built = built.phase(draw(st.sampled_from(["Succeeded", "Failed", "Unknown"])))
    return built


_EXPRESSIONS = st.sampled_from(
    [
        ("zone", "In", ("a",)),
        ("zone", "In", ("a", "b")),
        ("zone", "In", ("c",)),
        ("zone", "NotIn", ("a",)),
        ("zone", "Exists", ()),
        ("zone", "DoesNotExist", ()),
        ("generation", "Gt", ("1",)),
        ("generation", "Lt", ("10",)),
        # and some that no node can match, because they cannot be read
        ("zone", "In", ()),
        ("zone", "Exists", ("a",)),
        ("zone", "Like", ("a",)),
        ("generation", "Gt", ("x",)),
        ("generation", "Lt", ("-3",)),
    ]
)
_FIELDS = st.sampled_from(
    [
        ("metadata.name", "In", ("n1",)),
        ("metadata.name", "NotIn", ("n1",)),
        ("metadata.name", "In", ("n1", "n2")),
        ("metadata.namespace", "In", ("",)),
    ]
)
_TERMS = st.builds(
    lambda expressions, fields: term(*expressions, fields=fields),
    st.lists(_EXPRESSIONS, max_size=2),
    st.lists(_FIELDS, max_size=1),
)
_TOLERATIONS = st.builds(
    lambda key, operator, value, effect: pb.Toleration(
        key=key, operator=operator, value=value, effect=effect
    ),
    st.sampled_from(["", "gpu", "spot", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["", "Equal", "Exists", "Exists", "Gt"]),
    st.sampled_from(["", "a100"]),
    st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
_ASKED = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "0.1m", "250m", "1", "3.0001", "100E"]),
        "memory": st.sampled_from(["0.5", "1", "3", "1Ki"]),
        "nvidia.com/gpu": st.sampled_from(["0.5", "1", "3"]),
        "amd.com/gpu": st.just("1"),
        "foo": st.just("5"),
    },
)


@st.composite
def asks(draw: st.DrawFn) -> pb.ComponentReplicaRequirements:
    """What a pod may ask for, often nothing but room."""
    simple = draw(st.booleans())
    return requirements(
        draw(_ASKED),
        selector={}
        if simple
        else draw(st.sampled_from([{}, {}, {"zone": "a"}, {"zone": "", "generation": "1"}])),
        affinity=None if simple else draw(st.none() | st.lists(_TERMS, max_size=2)),
        tolerations=draw(st.lists(_TOLERATIONS, max_size=2)),
    )
