"""Claims as they are written: what they ask for, and the message where they cannot be understood."""

import msgspec
import pytest

from fairway.dra.requests import Claim, ClaimError, Constraint
from fairway.kube.resource_slices import DeviceClass, ResourceClaimSpec, ResourceClaimTemplate
from tests.dra.objects import Fields, claim_spec, device_class, exactly, first_of, read_claim, request, same

CLASSES = {"gpu": device_class("gpu", "a=1"), "nic": device_class("nic")}


def read(*requests: Fields, constraints: tuple[Fields, ...] = ()) -> Claim:
    return read_claim("c", claim_spec(*requests, constraints=constraints), CLASSES)


def test_selectors_of_the_class_come_before_those_of_the_request() -> None:
    ask = read(request("g", 2, "b=2")).requests[0].alternatives[0]
    assert (ask.name, ask.selectors, ask.count, ask.admin) == ("g", ("a=1", "b=2"), 2, False)


@pytest.mark.parametrize(
    ("stated", "count"), [({}, 1), ({"count": 0}, 1), ({"count": 3}, 3), ({"allocationMode": "All"}, None)]
)
def test_how_many_devices(stated: Fields, count: int | None) -> None:
    claim = read({"name": "g", "exactly": {"deviceClassName": "gpu", **stated}})
    assert claim.requests[0].alternatives[0].count == count


def test_alternatives_are_named_after_their_request() -> None:
    claim = read(first_of("g", ("big", exactly(1)), ("small", exactly(2, of="nic"))))
    assert [ask.name for ask in claim.requests[0].alternatives] == ["g/big", "g/small"]
    assert claim.requests[0].least == 1


def test_requests_of_v1beta1_are_read() -> None:
    assert read({"name": "g", **exactly(2)}) == read(request("g", 2))


def test_capacities_are_exact() -> None:
    claim = read(request("g", capacity={"requests": {"memory": "1.5", "cores": 2}}))
    assert claim.requests[0].alternatives[0].capacities == (("memory", 1_500_000_000), ("cores", 2 * 10**9))


@pytest.mark.parametrize(
    ("requests", "request_name", "ask", "concerned"),
    [
        ((), "g", "g", True),
        (("g",), "g", "g", True),
        (("g",), "h", "h", False),
        (("g",), "g", "g/big", True),
        (("g/big",), "g", "g/big", True),
        (("g/big",), "g", "g/small", False),
    ],
)
def test_whom_a_constraint_concerns(
    requests: tuple[str, ...], request_name: str, ask: str, concerned: bool
) -> None:
    assert Constraint("a/b", requests=frozenset(requests)).concerns(request_name, ask) is concerned


@pytest.mark.parametrize(
    ("requests", "constraints", "message"),
    [
        ([{}], [], "requests[0].name is missing"),
        ([{"name": "g"}], [], "requests[0].deviceClassName is missing"),
        (
            [request("g", of="none")],
            [],
            "request g: the cluster has no DeviceClass",
        ),
        ([request("g"), request("g")], [], "requests has a name twice"),
        ([request("g", -1)], [], "requests[0].exactly.count is -1"),
        ([request("g", 33)], [], "requests asks for 33 devices: one claim can hold 32"),
        ([request("g", 20), request("h", 20)], [], "requests asks for 40 devices"),
        ([request("g", allocationMode="Some")], [], "allocationMode is 'Some': expected ExactCount or All"),
        ([request("g", selectors=[{}])], [], "selectors[0] is no CEL selector"),
        ([request("g", capacity={"requests": {"m": "x"}})], [], "capacity.requests[m]: 'x' is not"),
        ([request("g", capacity={"requests": {"m": None}})], [], "capacity.requests[m]: '' is not"),
        ([request("g", capacity={"requests": {"m": "-1"}})], [], "expected a quantity that is not negative"),
        ([{**request("g"), **first_of("g", ("a", exactly(1)))}], [], "has exactly and firstAvailable"),
        ([first_of("g", *(("a", exactly(1)) for _ in range(9)))], [], "firstAvailable has 9 entries"),
        ([request(f"g{i}") for i in range(33)], [], "requests has 33 entries"),
        ([request("g")], [{}], "constraints[0]: expected one of matchAttribute and distinctAttribute"),
        ([request("g")], [same("model")], "constraints[0]: 'model' has no domain"),
        ([request("g")], [{**same("a/b"), "distinctAttribute": "a/b"}], "constraints[0]: expected one of"),
    ],
)
def test_what_is_wrong_is_located(requests: list[Fields], constraints: list[Fields], message: str) -> None:
    with pytest.raises(ClaimError) as error:
        read(*requests, constraints=tuple(constraints))
    assert message in str(error.value)
    assert str(error.value).startswith("claim c: spec.devices")


def test_a_class_with_an_unknown_selector_is_named() -> None:
    odd = msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"selectors": [{}]}}, DeviceClass)
    with pytest.raises(ClaimError, match=r"DeviceClass gpu: spec\.selectors\[0\]"):
        read_claim("c", claim_spec(request("g")), {"gpu": odd})


def test_templates_hold_the_claim() -> None:
    spec = {"devices": {"requests": [request("g")]}}
    template = msgspec.convert({"spec": {"spec": spec}}, ResourceClaimTemplate)
    assert read_claim("c", template.spec.spec, CLASSES) == read(request("g"))
    assert read_claim("c", ResourceClaimSpec(), CLASSES).requests == ()
