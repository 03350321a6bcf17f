"""Sums: what is held, used and wasted, by whom; and the laws that they keep."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.usage.groups import By, Group, added, groups, total
from fairway.usage.use import ClusterUsage
from tests.builders import node, pod
from tests.usage.agents import DeviceBuilder, agent, ago, usage


def small() -> ClusterUsage:
    """Team a: one of two at 90 %, the other not measured. Team b: idle for longer than held."""
    since = ago(5400)
    pods = [
        pod("x").of("a").requests(gpu=2).on("n"),
        pod("y").of("b").requests(gpu=1).on("n").condition("PodScheduled", "True", "", since),
    ]
    devices = (
        DeviceBuilder("d0").held_by("a/x").doing(90, 99, 40),
        DeviceBuilder("d1").held_by("a/x").unmeasured(),
        DeviceBuilder("d2").held_by("b/y").doing(0, 0, 60, idle_s=7200),
    )
    return usage([node("n").gpus(8)], pods, [agent("n", *devices)])


def test_wasted_is_what_is_held_and_not_used_and_the_unmeasured_is_not_wasted() -> None:
    b, a = groups([small()], By.NAMESPACE)
    assert (a.name, a.allocated_milli, a.measured_milli, a.used_milli, a.wasted_milli) == (
        ("a",),
        2000,
        1000,
        900,
        100,
    )
    assert (a.used_percent, a.used_p95_percent, a.memory_percent) == (90, 99, 50)
    assert (b.wasted_milli, b.idle_milli, b.idle_holding_memory_milli) == (1000, 1000, 1000)
    assert (b.idle_s, b.idle_device_seconds, b.age_s) == (5400, 5400, 5400)


def test_a_group_of_which_nothing_is_measured_has_no_percentage() -> None:
    (only,) = groups([usage([node("n").gpus(8)], [pod("p").requests(gpu=1).on("n")])], By.NAMESPACE)
    assert (only.used_percent, only.used_p95_percent, only.memory_percent, only.wasted_milli) == (
        None,
        None,
        None,
        0,
    )


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (By.NAMESPACE, [("b",), ("a",)]),
        (By.QUEUE, [("", "")]),
        (By.OWNER, [("b", "Pod/y"), ("a", "Pod/x")]),
        (By.POD, [("east", "b", "y"), ("east", "a", "x")]),
        (By.NODE, [("east", "n")]),
        (By.DEVICE, [("east", "n", "2 d2"), ("east", "n", "0 d0"), ("east", "n", "1 d1")]),
        (By.CLUSTER, [("east",)]),
    ],
)
def test_groups_are_called(by: By, names: list[tuple[str, ...]]) -> None:
    assert [group.name for group in groups([small()], by)] == names


def test_one_owner_in_two_clusters_is_one_group_of_two_pods() -> None:
    nodes, pods = [node("n").gpus(8)], [pod("p").requests(gpu=1).on("n").owned_by("Job", "j")]
    found = groups([usage(nodes, pods, name="east"), usage(nodes, pods, name="west")], By.OWNER)
    assert [(group.name, group.pods, group.allocated_milli) for group in found] == [
        (("default", "Job/j"), 2, 2000)
    ]


@given(st.integers(0, 2**32), st.sampled_from(By))
def test_the_groups_add_up_to_the_total_whatever_they_are_by(seed: int, by: By) -> None:
    rng = Random(seed)
    pods, devices = [], []
    for n in range(rng.randrange(6)):
        namespace, gpus = rng.choice("ab"), rng.randrange(1, 4)
        pods.append(pod(f"p{n}").of(namespace).requests(gpu=gpus).on("n"))
        for k in range(rng.randrange(gpus + 1)):
            p50 = rng.randrange(101)
            made = DeviceBuilder(f"d{n}-{k}").held_by(f"{namespace}/p{n}")
            devices.append(made.doing(p50, rng.randrange(p50, 101), idle_s=rng.choice((None, 9000))))
    found = [usage([node("n").gpus(64)], pods, [agent("n", *devices)])]
    every = total(found)
    summed = added((), groups(found, by))
    assert total(found, groups(found, by)) == every
    # A pod may be on several devices, and in several queues never.
    assert summed.wasted_milli + summed.used_milli == summed.measured_milli <= summed.allocated_milli
    assert Group((), every.pods, *_sums(summed)) == every


def _sums(group: Group) -> tuple[int, ...]:
    return tuple(getattr(group, name) for name in Group.__slots__[2:])
