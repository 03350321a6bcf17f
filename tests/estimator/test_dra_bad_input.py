"""Objects that no API server would let through: whatever they hold, there is an answer, and none breaks."""

import json

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator.cluster.dra_mirror import read_stated
from estimator.fit.pod_shape import (
    PodClaim,
    PodShape,
)
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimSpec, ResourceSlice
from tests.builders import Complaints, node, replicas_of, shape
from tests.dra.objects import claim_spec, request
from tests.estimator.claiming import GPU, Offered, claiming, claiming_cluster, on

Strategy = st.SearchStrategy[object]

names = st.sampled_from(["", "a", "b", "gpu", "gpu-0", "gpu.example.com", "x/y", "/", "é", "n" * 300])
amounts = st.sampled_from(["1", "0", "-1", "80Gi", "lots", "", "1e400", "9" * 40, 3, 2.5, None])
numbers = st.sampled_from([0, 1, 2, -1, 2**31, 2**62])
maybe = st.sampled_from([True, False, None])
selector = st.sampled_from(["true", "model=a", "?model=a", "!model=a", "", "x" * 11000])
selectors = st.lists(
    st.sampled_from([{}, {"cel": None}]) | st.builds(lambda e: {"cel": {"expression": e}}, selector)
)
requirement = st.fixed_dictionaries(
    {
        "key": names,
        "operator": st.sampled_from(["In", "Exists", "Near", "Gt"]),
        "values": st.lists(names, max_size=2),
    }
)
node_selectors = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "nodeSelectorTerms": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "matchExpressions": st.lists(requirement, max_size=2),
                    "matchFields": st.lists(requirement, max_size=1),
                },
            ),
            max_size=2,
        )
    },
)
attributes = st.dictionaries(
    names,
    st.fixed_dictionaries({}, optional={"int": numbers, "string": names, "bool": maybe, "version": names}),
    max_size=2,
)
policies = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "default": amounts,
        "validValues": st.none() | st.lists(amounts, max_size=2),
        "validRange": st.none()
        | st.fixed_dictionaries({}, optional={"min": amounts, "max": amounts, "step": amounts}),
    },
)
capacities = st.dictionaries(
    names, st.fixed_dictionaries({"value": amounts}, optional={"requestPolicy": policies}), max_size=2
)
counters = st.dictionaries(names, st.fixed_dictionaries({"value": amounts}), max_size=2)
taints = st.lists(
    st.fixed_dictionaries({"key": names, "effect": st.sampled_from(["NoSchedule", "None", "Odd", ""])}),
    max_size=1,
)
reach = {"nodeName": st.none() | names, "allNodes": maybe, "nodeSelector": node_selectors}
devices = st.fixed_dictionaries(
    {"name": names},
    optional={
        "attributes": attributes,
        "capacity": capacities,
        "consumesCounters": st.lists(
            st.fixed_dictionaries({"counterSet": names, "counters": counters}), max_size=2
        ),
        "taints": taints,
        "allowMultipleAllocations": maybe,
        "bindingConditions": st.lists(names, max_size=1),
        "basic": st.none() | st.fixed_dictionaries({"attributes": attributes}),
        **reach,
    },
)
slices = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": names}),
        "spec": st.fixed_dictionaries(
            {"driver": names},
            optional={
                "pool": st.fixed_dictionaries(
                    {
                        "name": names,
                        "generation": numbers,
                        "resourceSliceCount": st.sampled_from([0, 1, 1, 2, -1]),
                    }
                ),
                "perDeviceNodeSelection": maybe,
                "devices": st.none() | st.lists(devices, max_size=3),
                "sharedCounters": st.none()
                | st.lists(st.fixed_dictionaries({"name": names, "counters": counters}), max_size=2),
                **reach,
            },
        ),
    }
)
classes = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": names}),
        "spec": st.fixed_dictionaries(
            {}, optional={"selectors": selectors, "extendedResourceName": st.none() | names | st.just(GPU)}
        ),
    }
)
body = {
    "deviceClassName": names,
    "allocationMode": st.sampled_from(["", "All", "ExactCount", "Some"]),
    "count": st.none() | numbers,
    "selectors": selectors,
    "adminAccess": maybe,
    "capacity": st.none() | st.fixed_dictionaries({"requests": st.dictionaries(names, amounts, max_size=2)}),
}
specs = st.fixed_dictionaries(
    {
        "devices": st.fixed_dictionaries(
            {},
            optional={
                "requests": st.lists(
                    st.fixed_dictionaries(
                        {"name": names},
                        optional={
                            "exactly": st.none() | st.fixed_dictionaries({}, optional=body),
                            "firstAvailable": st.none()
                            | st.lists(st.fixed_dictionaries({"name": names}, optional=body), max_size=3),
                        },
                    ),
                    max_size=3,
                ),
                "constraints": st.lists(
                    st.fixed_dictionaries(
                        {},
                        optional={
                            "requests": st.lists(names, max_size=2),
                            "matchAttribute": st.none() | names,
                            "distinctAttribute": st.none() | names,
                        },
                    ),
                    max_size=2,
                ),
            },
        )
    }
)
claims = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": names}), "spec": specs},
    optional={
        "status": st.fixed_dictionaries(
            {},
            optional={
                "allocation": st.none()
                | st.fixed_dictionaries(
                    {
                        "devices": st.fixed_dictionaries(
                            {
                                "results": st.lists(
                                    st.fixed_dictionaries(
                                        {"driver": names, "pool": names, "device": names},
                                        optional={
                                            "adminAccess": maybe,
                                            "shareID": st.none() | names,
                                            "consumedCapacity": st.none()
                                            | st.dictionaries(names, amounts, max_size=2),
                                        },
                                    ),
                                    max_size=3,
                                )
                            }
                        )
                    },
                    optional={"nodeSelector": node_selectors},
                )
            },
        )
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(slices, max_size=3), st.lists(classes, max_size=2), st.lists(claims, max_size=3), specs, names
)
def test_there_is_always_an_answer_and_the_good_devices_beside_are_counted(
    bad_slices: list[object], bad_classes: list[object], bad_claims: list[object], spec: object, name: str
) -> None:
    good = msgspec.convert({"metadata": {"name": "good"}}, DeviceClass)
    things: list[Offered] = [
        *(msgspec.json.decode(json.dumps(one), type=ResourceSlice) for one in bad_slices),
        *(msgspec.json.decode(json.dumps(one), type=DeviceClass) for one in bad_classes),
        *(msgspec.json.decode(json.dumps(one), type=ResourceClaim) for one in bad_claims),
    ]
    mirror = claiming_cluster(
        node("a").pods(9),
        node("b").pods(9),
        node("z").pods(9),
        good,
        on("z", 4),
        *things,
        report=Complaints(),
    )
    stated = read_stated("x", msgspec.json.decode(json.dumps(spec), type=ResourceClaimSpec))
    odd = PodShape(claims=(PodClaim("ns/x", stated=stated.claim, problem=stated.problem),))
    shared = PodShape(claims=(PodClaim(name, is_shared=True),))
    for asked in (odd, shared, shape({GPU: 1})):
        answer = replicas_of(mirror, asked)
        assert 0 <= answer.value <= answer.upper_bound
        assert "\n" not in " ".join(str(reason) for reason in answer.reasons)
    assert replicas_of(mirror, claiming(claim_spec(request("g", of="good")))).value >= 4
