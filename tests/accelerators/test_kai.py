"""KAI and Run:ai: groups that pods name, whole GPUs that become groups, and fractions asked by annotation."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.devices import ANY_SLOTS, PPM, Device, DeviceClaim, DeviceUse, NodeFacts, Read
from tests.accelerators.facts import (
    GARBAGE,
    SCHEME,
    ask,
    check_garbage,
    claimed,
    devices_of,
    node,
    node_of,
    pod,
    pod_of,
    refused,
    the_problem,
)

KAI = SCHEME["kai"]
GPU, GROUP = "nvidia.com/gpu", "runai-gpu-group"
MEMORY_LABEL = "nvidia.com/gpu.memory"
FIRST, SECOND, THIRD, FOURTH = (f"0b9d5f3a-6c1e-4a77-9f02-1d8e4c5b660{n}" for n in (1, 2, 3, 4))


def opened(facts: NodeFacts) -> Device:
    assert KAI.new_device is not None
    device = KAI.new_device(facts)
    assert device is not None
    return device


# --- nodes -------------------------------------------------------------------------------------------------


def test_a_node_has_no_devices_of_its_own_and_each_whole_gpu_can_become_one() -> None:
    facts = node_of("kai/node.yaml")
    assert devices_of(KAI, facts) == Read(())
    assert KAI.opens == GPU
    assert opened(facts) == Device("", 81500, cores=0, slots=ANY_SLOTS)


@pytest.mark.parametrize(
    ("label", "memory"),
    [
        ("81559", 81500),
        ("15109", 15100),
        ("99", 0),
        ("85520809984", 81500),
        ("1048575", 1048500),
        (None, 100),
    ],
)
def test_memory_is_rounded_down_to_hundreds_of_mib(label: str | None, memory: int) -> None:
    labels = {} if label is None else {MEMORY_LABEL: label}
    assert opened(node({GPU: 1}, labels=labels)).memory == memory
    assert devices_of(KAI, node({GPU: 1}, labels=labels)) == Read(())


@pytest.mark.parametrize("label", ["", "80GB", "-1", "8.5", "9" * 30])
def test_a_memory_label_that_cannot_be_read_counts_as_none(label: str) -> None:
    facts = node({GPU: 1}, labels={MEMORY_LABEL: label})
    assert opened(facts).memory == 100
    assert "label nvidia.com/gpu.memory is" in the_problem(devices_of(KAI, facts))


def test_a_memory_label_beyond_all_bounds_is_bounded() -> None:
    assert opened(node({GPU: 1}, labels={MEMORY_LABEL: str(2**63 - 1)})).memory <= 2**31 - 1


@pytest.mark.parametrize(
    ("allocatable", "labels", "takes_part"),
    [
        ({GPU: 8}, {}, True),
        ({GPU: 0}, {}, False),
        ({"cpu": 8}, {}, False),
        ({GPU: 7, "nvidia.com/mig-1g.10gb": 7}, {}, False),
        ({GPU: 7}, {"node-role.kubernetes.io/mig-enabled": "true"}, False),
        ({GPU: 7, "nvidia.com/mig-1g.10gb": 7}, {"node-role.kubernetes.io/mig-enabled": "false"}, True),
        ({GPU: 7}, {"node-role.kubernetes.io/mig-enabled": ""}, True),
    ],
)
def test_nodes_with_whole_gpus_take_part(
    allocatable: Mapping[str, int], labels: Mapping[str, str], takes_part: bool
) -> None:
    assert (KAI.devices(node(allocatable, labels=labels)) is not None) is takes_part


# --- pods --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fixture", "uses"),
    [
        ("reservation-pod.yaml", ()),
        ("half-pod.yaml", (DeviceUse(FIRST, 0, memory_ppm=500_000),)),
        ("quarter-pod.yaml", (DeviceUse(FIRST, 0, memory_ppm=250_000),)),
        ("memory-pod.yaml", (DeviceUse(SECOND, 2000),)),
        (
            "two-devices-pod.yaml",
            (DeviceUse(THIRD, 0, memory_ppm=300_000), DeviceUse(FOURTH, 0, memory_ppm=300_000)),
        ),
    ],
)
def test_pods_on_shared_gpus(fixture: str, uses: tuple[DeviceUse, ...]) -> None:
    assert KAI.uses(pod_of(f"kai/{fixture}")) == Read(uses)


@pytest.mark.parametrize(
    ("labels", "annotations", "uses"),
    [
        ({}, {"gpu-fraction": "0.5"}, []),
        ({}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, []),
        ({}, {"gpu-fraction-num-devices": "2"}, []),
        ({GROUP: "a"}, {"gpu-fraction": "1"}, [DeviceUse("a", 0, memory_ppm=PPM)]),
        ({GROUP: "a"}, {"gpu-fraction": "0.5", "gpu-memory": "10"}, [DeviceUse("a", 0, memory_ppm=500_000)]),
        ({GROUP: "a", GROUP + "/a": "a"}, {"gpu-memory": "10"}, [DeviceUse("a", 10)]),
        ({GROUP: "a", GROUP + "/b": "b"}, {"gpu-memory": "10"}, [DeviceUse("a", 10), DeviceUse("b", 10)]),
        ({GROUP + "/b": "b"}, {"gpu-memory": "10"}, []),
        ({GROUP + "s": "b", "app": "x"}, {"gpu-memory": "10"}, []),
    ],
)
def test_which_groups_a_pod_is_in(
    labels: Mapping[str, str], annotations: Mapping[str, str], uses: list[DeviceUse]
) -> None:
    assert KAI.uses(pod(annotations, {"cpu": 1}, labels=labels)) == Read(tuple(uses))


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"gpu-fraction": ""},
        {"gpu-fraction": "half"},
        {"gpu-fraction": "1.5"},
        {"gpu-memory": "0"},
        {"gpu-memory": "-5"},
    ],
)
def test_a_pod_in_a_group_that_does_not_say_how_much_has_all_of_it(annotations: Mapping[str, str]) -> None:
    read = KAI.uses(pod(annotations, labels={GROUP: "a"}))
    assert read.found == (DeviceUse("a", 0, exclusive=True),)
    assert "label runai-gpu-group puts the pod on 1 GPUs" in the_problem(read)


# --- asks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "claim"),
    [
        ({"gpu-fraction": "0.5"}, DeviceClaim(1, memory_ppm=500_000)),
        ({"gpu-fraction": ".25"}, DeviceClaim(1, memory_ppm=250_000)),
        ({"gpu-fraction": "00.10"}, DeviceClaim(1, memory_ppm=100_000)),
        ({"gpu-fraction": "0.3333333"}, DeviceClaim(1, memory_ppm=333_334)),
        ({"gpu-fraction": "0.01"}, DeviceClaim(1, memory_ppm=10_000)),
        ({"gpu-memory": "2000"}, DeviceClaim(1, 2000)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "4"}, DeviceClaim(4, memory_ppm=500_000)),
        ({"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}, DeviceClaim(2, 2000)),
        ({"gpu-fraction": "0.5", "mps": "true"}, DeviceClaim(1, memory_ppm=500_000)),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "c"}, DeviceClaim(1, memory_ppm=500_000)),
    ],
)
def test_what_a_pod_asks(annotations: Mapping[str, str], claim: DeviceClaim) -> None:
    assert claimed(KAI.claims(ask({"cpu": 1}, **annotations))) == (claim,)


@pytest.mark.parametrize("annotations", [{}, {"mps": "true"}, {"gpu-fraction-container-name": "c"}])
def test_pods_that_ask_for_no_fraction(annotations: Mapping[str, str]) -> None:
    assert KAI.claims(ask({GPU: 1}, **annotations)) is None


@pytest.mark.parametrize(
    ("asked", "annotations", "reason"),
    [
        ({}, {"gpu-fraction": "1"}, "annotation gpu-fraction is '1', expected at least 0.01 and less than 1"),
        ({}, {"gpu-fraction": "0"}, "gpu-fraction is '0'"),
        ({}, {"gpu-fraction": "0.009"}, "gpu-fraction is '0.009'"),
        ({}, {"gpu-fraction": "-0.5"}, "gpu-fraction is '-0.5'"),
        ({}, {"gpu-fraction": "NaN"}, "gpu-fraction is 'NaN'"),
        ({}, {"gpu-fraction": "50%"}, "gpu-fraction is '50%'"),
        ({}, {"gpu-fraction": "."}, "gpu-fraction is '.'"),
        ({}, {"gpu-fraction": ""}, "gpu-fraction is ''"),
        ({}, {"gpu-memory": "0"}, "annotation gpu-memory is '0', expected MiB from 1"),
        ({}, {"gpu-memory": "2Gi"}, "gpu-memory is '2Gi'"),
        ({}, {"gpu-memory": "99999999999"}, "gpu-memory is '99999999999'"),
        ({}, {"gpu-fraction": "0.5", "gpu-memory": "2000"}, "are both there"),
        ({}, {"gpu-fraction-num-devices": "2"}, "needs gpu-fraction or gpu-memory beside it"),
        ({}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, "gpu-fraction-num-devices is '0'"),
        ({}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "two"}, "gpu-fraction-num-devices is 'two'"),
        ({GPU: 1}, {"gpu-fraction": "0.5"}, "nvidia.com/gpu is asked for beside annotation gpu-fraction"),
        ({GPU: 1}, {"gpu-memory": "2000"}, "nvidia.com/gpu is asked for beside annotation gpu-memory"),
    ],
)
def test_asks_that_kai_refuses(asked: Mapping[str, int], annotations: Mapping[str, str], reason: str) -> None:
    assert reason in refused(KAI.claims(ask(asked, **annotations)))


def test_golden_vector_v11() -> None:
    """Two GPUs, one reserved with a half and a quarter on it."""
    facts = node_of("kai/node.yaml")
    reservation, half, quarter = (
        KAI.uses(pod_of(f"kai/{name}-pod.yaml")).found for name in ("reservation", "half", "quarter")
    )
    assert reservation == ()
    memory = opened(facts).memory
    used = sum(memory * use.memory_ppm // PPM for use in (*half, *quarter))
    assert {use.device for use in (*half, *quarter)} == {FIRST}
    shares = {}
    for fraction in ("0.5", "0.25"):
        (claim,) = claimed(KAI.claims(ask(**{"gpu-fraction": fraction})))
        share = memory * claim.memory_ppm // PPM
        # The GPU of the reservation pod is used up; one whole one is left to open.
        shares[fraction] = (memory - used) // share + memory // share
    assert shares == {"0.5": 2, "0.25": 5}


# --- bad input and laws ------------------------------------------------------------------------------------


def test_garbage_takes_all_of_a_group_and_is_refused() -> None:
    for garbage in GARBAGE.values():
        for name in ("gpu-fraction", "gpu-memory"):
            uses = check_garbage(KAI.uses(pod({name: garbage}, labels={GROUP: "a"})))
            assert uses == (DeviceUse("a", 0, exclusive=True),)
            read = KAI.claims(ask(**{name: garbage}))
            assert read is not None
            assert check_garbage(read) == ()
        assert len(check_garbage(devices_of(KAI, node({GPU: 1}, labels={MEMORY_LABEL: garbage})))) == 0


@given(st.decimals(Decimal("0.01"), Decimal("0.99"), places=8))
def test_a_share_is_never_less_than_was_written(fraction: Decimal) -> None:
    (claim,) = claimed(KAI.claims(ask(**{"gpu-fraction": str(fraction)})))
    assert claim.memory_ppm == int((fraction * PPM).to_integral_value(ROUND_CEILING))


@given(st.integers(1, 99), st.integers(1, 8000))
def test_hundredths_of_hundreds_of_mib_are_exact(percent: int, hundreds: int) -> None:
    (claim,) = claimed(KAI.claims(ask(**{"gpu-fraction": f"0.{percent:02}"})))
    assert hundreds * 100 * claim.memory_ppm // PPM == hundreds * percent
