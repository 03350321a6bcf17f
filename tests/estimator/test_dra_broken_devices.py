"""Devices of ResourceSlices that do not work: out of what claims can have, by UUID, until they work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.cluster.mirror import ClusterMirror
from fairway.kube.resource_slices import ResourceClaimSpec
from tests.builders import Complaints, delete, node, replicas_of
from tests.dra.objects import DRIVER, Fields, claim_spec, device, device_class, request, same
from tests.estimator.agents import AgentBuilder, agent, write
from tests.estimator.claiming import GPU, Offered, allocated, claiming, claiming_cluster, on

ONE, TWO, ALL = claim_spec(request("g")), claim_spec(request("g", 2)), claim_spec(request("g", None))
PLAIN = device_class("gpu", extended=GPU)


def gpus(name: str, count: int = 8) -> list[Fields]:
    """As `agent(name).gpus(count)` has them, under names of the driver's own."""
    return [device(f"gpu-{number}", uuid=f"GPU-{name}-{number}") for number in range(count)]


def machine(*more: Offered, told: Complaints | None = None) -> ClusterMirror:
    """A node of 8 GPUs that claims alone can have."""
    return claiming_cluster(node("a").cpu(64).pods(110), PLAIN, on("a", gpus("a")), *more, report=told)


def left(mirror: ClusterMirror, spec: ResourceClaimSpec = ONE) -> int:
    return replicas_of(mirror, claiming(spec)).value


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (agent("a").gpus(8), 8),
        (agent("a").gpus(8).bad(0), 7),
        (agent("a").gpus(8).bad(0).bad(5), 6),
        (agent("a").gpus(8).bad(3, health="Lost"), 7),
        (agent("a").gpus(8).bad(3, health="Degraded"), 8),
        (agent("b").gpus(8).bad(3), 8),
        (agent("a").gpus(8).having(0, id="GPU-b-1").bad(0), 8),
    ],
    ids=["all well", "one", "two", "lost", "degraded", "another node's", "another node's device"],
)
def test_what_claims_can_have_falls_by_that_very_device(found: AgentBuilder, expected: int) -> None:
    mirror = machine()
    write(mirror, found)
    assert left(mirror) == expected


def test_it_is_back_when_it_works_and_when_its_agent_is_gone() -> None:
    told = Complaints()
    mirror = machine(told=told)
    sick = agent("a").gpus(8).bad(0)
    for found, expected in ((sick, 7), (sick.bad(1), 6), (agent("a").gpus(8), 8), (sick, 7)):
        write(mirror, found)
        assert left(mirror) == expected
    delete(mirror, sick)
    assert (left(mirror), told) == (8, [])


def test_a_broken_device_that_a_claim_holds_is_not_counted_twice() -> None:
    mirror = machine(allocated("c", "a", "gpu-0"))
    write(mirror, agent("a").gpus(8).bad(0))
    assert left(mirror) == 7
    write(mirror, agent("a").gpus(8).bad(1))
    assert left(mirror) == 6


def test_slices_may_come_after_the_agent() -> None:
    mirror = claiming_cluster(node("a").cpu(64).pods(110), PLAIN)
    write(mirror, agent("a").gpus(8).bad(0))
    mirror.dra.slices.upsert(on("a", gpus("a")))
    assert left(mirror) == 7


def test_requests_for_several_and_for_all_do_without_it() -> None:
    mirror = machine()
    write(mirror, agent("a").gpus(8).bad(0))
    assert (left(mirror, TWO), left(mirror, ALL)) == (3, 0)
    write(mirror, agent("a").gpus(8))
    assert (left(mirror, TWO), left(mirror, ALL)) == (4, 1)


def test_devices_that_must_match_lose_those_that_are_broken() -> None:
    listed = [device(f"gpu-{n}", uuid=f"GPU-a-{n}", root=f"r{n // 4}") for n in range(8)]
    mirror = claiming_cluster(node("a").cpu(64).pods(110), PLAIN, on("a", listed))
    four = claim_spec(request("g", 4), constraints=[same(f"{DRIVER}/root")])
    assert left(mirror, four) == 2
    write(mirror, agent("a").gpus(8).bad(7))
    assert left(mirror, four) == 1


@pytest.mark.parametrize("attribute", ["resource.kubernetes.io/pciBusID", "pciBusID", "pcieBusID"])
@pytest.mark.parametrize(
    ("bus_id", "sick", "expected"),
    [
        ("00000000:3B:00.0", 0, 1),
        ("0000:3b:00.0", 0, 1),
        ("00000000:5E:00.0", 0, 1),
        ("00000001:3B:00.0", 0, 2),
        ("00000000:3B:00.1", 0, 2),
        ("N/A", 0, 2),
        ("", 0, 2),
        # An instance has the address of its device, of which the rest works.
        ("00000000:3B:00.0", 1, 2),
    ],
)
def test_without_a_uuid_it_is_the_device_at_that_pci_address(
    attribute: str, bus_id: str, sick: int, expected: int
) -> None:
    listed = [
        {**device(f"gpu-{at}"), "attributes": {attribute: {"string": f"0000:{at}:00.0"}}}
        for at in ("3b", "5e")
    ]
    mirror = claiming_cluster(node("a").cpu(64).pods(110), PLAIN, on("a", listed))
    write(mirror, agent("a").gpus(1, busId=bus_id).cut(0, "1g.10gb", 1).having(1, busId=bus_id).bad(sick))
    assert left(mirror) == expected


def test_parts_go_with_the_device_that_they_are_parts_of() -> None:
    parts = [
        device(f"gpu-{n // 2}-mig-{n % 2}", uuid=f"MIG-{n}", parentUUID=f"GPU-a-{n // 2}") for n in range(4)
    ]
    mirror = claiming_cluster(node("a").cpu(64).pods(110), PLAIN, on("a", parts))
    write(mirror, agent("a").gpus(2).having(0, migEnabled=True).bad(0))
    assert left(mirror) == 2


def test_counters_are_left_to_the_devices_that_work() -> None:
    """A broken device that nobody holds takes nothing of what it shares with others."""
    listed = [device(f"gpu-{n}", None, {"s": {"c": "1"}}, uuid=f"GPU-a-{n}") for n in range(3)]
    offered = on("a", listed, sharedCounters=[{"name": "s", "counters": {"c": {"value": "2"}}}])
    mirror = claiming_cluster(node("a").cpu(64).pods(110), PLAIN, offered)
    assert left(mirror) == 2
    write(mirror, agent("a").gpus(3).bad(0))
    assert left(mirror) == 2
    write(mirror, agent("a").gpus(3).bad(0).bad(1))
    assert left(mirror) == 1


def test_the_answer_says_how_many_are_unhealthy() -> None:
    mirror = machine()
    everything = agent("a").gpus(8)
    for index in range(8):
        everything = everything.bad(index)
    write(mirror, everything)
    answer = replicas_of(mirror, claiming(ONE))
    assert (answer.value, answer.proven) == (0, True)
    assert "of 8 devices 8 match and 0 of them are free, 8 unhealthy" in str(answer.reasons)


def test_a_snapshot_for_a_thread_knows_it_too() -> None:
    mirror = machine()
    write(mirror, agent("a").gpus(8).bad(0))
    twin = mirror.columns.copy()
    write(mirror, agent("a").gpus(8))
    stock = twin.dra.stocks()["a"]
    assert len(stock.in_use.broken) == 1
    assert not mirror.columns.dra.stocks()["a"].in_use.broken


@given(
    st.lists(st.sampled_from(["r1", "r2"]), min_size=1, max_size=8),
    st.sets(st.integers(0, 7)),
    st.integers(1, 3),
    st.booleans(),
)
def test_a_broken_device_is_worth_one_that_is_not_there(
    roots: list[str], bad: set[int], count: int, is_together: bool
) -> None:
    listed = [device(f"gpu-{n}", uuid=f"GPU-a-{n}", root=root) for n, root in enumerate(roots)]
    host = node("a").cpu(64).pods(110)
    together = [same(f"{DRIVER}/root")] if is_together else []
    spec = claim_spec(request("g", count), constraints=together)
    mirror = claiming_cluster(host, PLAIN, on("a", listed))
    found = agent("a").gpus(len(roots))
    for number in sorted(bad & set(range(len(roots)))):
        found = found.bad(number)
    write(mirror, found)
    rest = [one for number, one in enumerate(listed) if number not in bad]
    assert left(mirror, spec) == left(claiming_cluster(host, PLAIN, on("a", rest)), spec)
