"""What node agents say of devices: what it takes from a node's room, what it adds to labels, and when not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.replicas import max_replicas
from estimator.capacity.survey.survey import survey
from estimator.capacity.topology.domains import domains_of
from estimator.capacity.topology.levels import CLIQUE, topology_levels
from estimator.cluster.device_reports import device_report
from estimator.cluster.mirror import ClusterMirror
from fairway.accelerators.builtin import builtin_catalogue
from fairway.quantity import MAX_INT64
from tests.builders import (
    Complaints,
    NodeBuilder,
    PodBuilder,
    Quantities,
    Thing,
    cluster,
    delete,
    node,
    pod,
    room_of,
    shape,
    typed,
    upsert,
)
from tests.estimator.agents import GIB, NOW_S, AgentBuilder, agent, at, write
from tests.estimator.sharing import SHARINGS, Group, fraction, kai_node

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
REPLICAS = "nvidia.com/gpu.replicas"


def free(mirror: ClusterMirror, resource: str = GPU, name: str = "a") -> int:
    row = mirror.columns.row_of(name)
    assert row is not None
    return int(mirror.columns.free(resource)[row])


def replicas(mirror: ClusterMirror, requests: Quantities) -> int:
    return max_replicas(room_of(mirror), shape(requests)).value


@dataclass(frozen=True)
class Case:
    """A node, what its agent says, the pods on it; what is free of the resource, and what is told."""

    node: NodeBuilder
    agent: AgentBuilder
    free: int
    pods: tuple[PodBuilder, ...] = ()
    resource: str = GPU
    told: tuple[str, ...] = ()


def eight(allocatable: int = 8, capacity: int = 8) -> NodeBuilder:
    return node("a").gpus(allocatable).capacity_of(gpu=capacity)


def asking(name: str, gpus: int = 1, resource: str = GPU) -> PodBuilder:
    return pod(name).on("a").requests({resource: gpus})


def eight_of(name: str) -> NodeBuilder:
    return node(name).gpus(8)


ONE_BAD = agent("a").gpus(8).bad(0)
FOUR_PODS = tuple(asking(f"p{number}") for number in range(4))
CUT = agent("a").gpus(1).cut(0, "1g.10gb", 7)
CUT_EIGHT = agent("a").gpus(8).cut_each("1g.10gb", 7)
STRATEGY_NONE = (
    "MIG is on, and nvidia.com/gpu stands for whole devices (MIG strategy none): what is broken of one takes "
    "all of it"
)

CASES = {
    "all work": Case(eight(), agent("a").gpus(8), 8),
    "degraded works": Case(eight(), agent("a").gpus(8).bad(0, health="Degraded"), 8),
    "one unhealthy": Case(eight(), ONE_BAD, 7),
    "one lost": Case(eight(), agent("a").gpus(8).bad(0, health="Lost"), 7),
    "all lost": Case(eight(2, 2), agent("a").gpus(2).bad(0).bad(1), 0),
    "the plugin has taken it away as well": Case(eight(7, 8), ONE_BAD, 7),
    "the plugin has taken away more": Case(eight(5, 8), ONE_BAD, 5),
    "the plugin has taken away one of two": Case(eight(7, 8), ONE_BAD.bad(1), 6),
    "a plugin that started without it": Case(
        eight(7, 7), ONE_BAD, 7, told=("lists 8 devices, but the node has 7 of nvidia.com/gpu",)
    ),
    "the agent sees fewer than there are": Case(
        eight(8, 8),
        agent("a").gpus(6).bad(0),
        7,
        told=("lists 6 devices, but the node has 8 of nvidia.com/gpu",),
    ),
    "more bad than the node has": Case(
        eight(1, 1),
        agent("a").gpus(4).bad(0).bad(1).bad(2).bad(3),
        0,
        told=("lists 4 devices, but the node has 1 of nvidia.com/gpu",),
    ),
    "what the plugin has taken away is another one, which the agent calls degraded": Case(
        eight(7, 8), agent("a").gpus(8).bad(0, "Xid94", "Degraded").bad(1, "Xid79"), 6
    ),
    "what the plugin has taken away is another one, since it does not look for this": Case(
        eight(7, 8), agent("a").gpus(8).bad(1, "RowRemapFailed"), 6
    ),
    "a lost one and one that the plugin does not look for": Case(
        eight(7, 8), agent("a").gpus(8).bad(0, "Lost", "Lost").bad(1, "RowRemapFailed"), 6
    ),
    "kubelet does not give it any more": Case(eight(7, 8), ONE_BAD.offered(1, 2, 3, 4, 5, 6, 7), 7),
    "kubelet gives it, and has lost another one": Case(eight(7, 8), ONE_BAD.offered(0, 1, 2, 3, 4, 5, 6), 6),
    "kubelet gives neither": Case(
        eight(6, 8), agent("a").gpus(8).bad(0, "RowRemapFailed").offered(1, 2, 3, 4, 5, 6), 6
    ),
    "kubelet has just taken it away, and the agent has not heard": Case(
        eight(8, 8), ONE_BAD.offered(1, 2, 3, 4, 5, 6, 7), 7
    ),
    "a pod on what kubelet does not give any more takes no room from the others": Case(
        eight(7, 8), ONE_BAD.held(7, "default/p0").offered(0, 1, 2, 3, 4, 5, 6), 6, FOUR_PODS[:1]
    ),
    "pods on others": Case(eight(), ONE_BAD, 3, FOUR_PODS),
    "one of the pods on it": Case(eight(), ONE_BAD.held(0, "default/p0"), 4, FOUR_PODS),
    "the plugin has told of it, and allocatable decides": Case(
        eight(7, 8), ONE_BAD.held(0, "default/p0"), 3, FOUR_PODS
    ),
    "a pod on it that holds all": Case(eight(), ONE_BAD.held(0, "default/p"), 0, (asking("p", 8),)),
    "who runs on it is not told": Case(eight(), ONE_BAD.untold(0), 3, FOUR_PODS),
    "who runs on it is not told, and all is held": Case(eight(), ONE_BAD.untold(0), 0, (asking("p", 8),)),
    "a process on it of a pod that was given another": Case(
        eight(2, 2), agent("a").gpus(2).held(0, "default/p0").bad(1).run_by(1, "default/p0"), 0, FOUR_PODS[:1]
    ),
    "a process on it of the pod that was given it": Case(
        eight(2, 2), agent("a").gpus(2).bad(1).held(1, "default/p0").run_by(1, "default/p0"), 1, FOUR_PODS[:1]
    ),
    "a share of it that a scheme noted": Case(
        eight(2, 2), agent("a").gpus(2).bad(1).held(1, "default/p0", source="Annotation"), 1, FOUR_PODS[:1]
    ),
    "a pod on it that is gone": Case(eight(), ONE_BAD.held(0, "default/gone"), 3, FOUR_PODS),
    "a pod on it of another node": Case(
        eight(), ONE_BAD.held(0, "default/far"), 3, (*FOUR_PODS, pod("far").on("b").requests(gpu=1))
    ),
    "a pod on it that asked for none": Case(
        eight(), ONE_BAD.held(0, "default/x"), 3, (*FOUR_PODS, pod("x").on("a").requests(cpu="1"))
    ),
    "one container told of twice": Case(
        eight(), ONE_BAD.held(0, "default/p0", "default/p0"), 4, (*FOUR_PODS[1:], asking("p0", 1))
    ),
    "time-slicing by label": Case(node("a").gpus(32).label({REPLICAS: "4"}), agent("a").gpus(8).bad(0), 28),
    "time-slicing without a label": Case(node("a").gpus(32), agent("a").gpus(8).bad(0), 28),
    "few devices where a label counts them is no time-slicing": Case(
        eight().label({"nvidia.com/gpu.count": "8"}),
        agent("a").gpus(2).bad(0),
        7,
        told=("lists 2 devices, but the node has 8 of nvidia.com/gpu",),
    ),
    "few devices of an agent that cannot see all is no time-slicing": Case(
        eight(),
        agent("a").gpus(2).bad(0).lacking("Devices"),
        7,
        told=("lists 2 devices, but the node has 8 of nvidia.com/gpu",),
    ),
    "an agent that knows not all holders sees all devices": Case(
        node("a").gpus(32), agent("a").gpus(8).bad(0).troubled("kubelet lists ...").lacking("Holders"), 28
    ),
    "few devices that kubelet gives whole is no time-slicing": Case(
        eight(),
        agent("a").gpus(2).bad(0).held(1, "default/p"),
        6,
        (asking("p"),),
        told=("lists 2 devices, but the node has 8 of nvidia.com/gpu",),
    ),
    "shares that pods hold are time-slicing, whatever the agent cannot see": Case(
        eight(),
        agent("a").gpus(2).bad(0).held(1, "default/p", shares=1).lacking("Devices"),
        3,
        (asking("p"),),
    ),
    "time-slicing, the plugin has told": Case(
        eight(28, 32).label({REPLICAS: "4"}), agent("a").gpus(8).bad(0), 28
    ),
    "time-slicing, replicas held": Case(
        node("a").gpus(8).label({REPLICAS: "4"}),
        agent("a").gpus(2).bad(0).held(0, "default/p", shares=2),
        3,
        (asking("p", 2), asking("q", 1)),
    ),
    "time-slicing under another name": Case(
        node("a").has({f"{GPU}.shared": 8}).label({REPLICAS: "4"}),
        agent("a").gpus(2).bad(0),
        4,
        resource=f"{GPU}.shared",
    ),
    "a MIG instance": Case(node("a").has({MIG: 7}), CUT.bad(3), 6, resource=MIG),
    "instances of a bad GPU": Case(node("a").has({MIG: 7}), CUT.bad(0), 0, resource=MIG),
    "instances, and whole GPUs beside them": Case(
        node("a").has({MIG: 7}).gpus(1), CUT.bad(0).gpus(1), 1, resource=GPU
    ),
    "an instance of another profile": Case(
        node("a").has({MIG: 4, "nvidia.com/mig-3g.40gb": 1}),
        agent("a").gpus(1).cut(0, "1g.10gb", 4).cut(0, "3g.40gb", 1).bad(5),
        4,
        resource=MIG,
    ),
    "media extensions": Case(
        node("a").has({"nvidia.com/mig-1g.10gb.me": 1}),
        agent("a").gpus(1).cut(0, "1g.10gb+me", 1).bad(1),
        0,
        resource="nvidia.com/mig-1g.10gb.me",
    ),
    "instances under the plain name, by label": Case(
        node("a").gpus(7).label({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}),
        CUT.bad(2),
        6,
    ),
    "instances under the plain name, no label": Case(node("a").gpus(7), CUT.bad(2), 6),
    "whole devices though MIG is on": Case(eight(), CUT_EIGHT.bad(0), 7, told=(STRATEGY_NONE,)),
    "whole devices though MIG is on, one instance is bad": Case(
        eight(), CUT_EIGHT.bad(8).bad(9), 7, told=(STRATEGY_NONE,)
    ),
    "whole devices though MIG is on, one of them held": Case(
        eight(), CUT_EIGHT.bad(0).held(0, "default/p0"), 4, FOUR_PODS, told=(STRATEGY_NONE,)
    ),
    "whole devices though MIG is on, and nothing is cut": Case(
        eight(), agent("a").gpus(8, migEnabled=True).bad(0), 7, told=(STRATEGY_NONE,)
    ),
    "whole devices in time, though MIG is on": Case(
        node("a").gpus(32),
        CUT_EIGHT.bad(0).held(1, "default/p", shares=1),
        27,
        (asking("p"),),
        told=(STRATEGY_NONE,),
    ),
    "instances of a plugin that started without one": Case(
        node("a").gpus(6), CUT.bad(3), 6, told=("lists 7 devices, but the node has 6 of nvidia.com/gpu",)
    ),
    "whole devices though MIG is on, the plugin has taken another": Case(
        eight(7, 8), CUT_EIGHT.bad(0).bad(1, "Xid94", "Degraded"), 6, told=(STRATEGY_NONE,)
    ),
    "as many instances as devices": Case(eight(), agent("a").gpus(8).cut_each("7g.80gb", 1).bad(0), 7),
    "two names that may stand for it": Case(
        eight().has({"nvidia.com/gpu.shared": 4}),
        ONE_BAD,
        8,
        told=(
            "expected one resource of the node to stand for its devices, found nvidia.com/gpu, "
            "nvidia.com/gpu.shared: none of it is taken away",
        ),
    ),
    "no name for it": Case(
        node("a").has({"amd.com/gpu": 8}),
        ONE_BAD,
        8,
        resource="amd.com/gpu",
        told=(
            "expected one resource of the node to stand for its devices, found none: none of it is taken "
            "away",
        ),
    ),
    "a TPU": Case(
        node("a")
        .has({"google.com/tpu": 4})
        .label(
            {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
                "cloud.google.com/gke-tpu-topology": "2x2",
            }
        ),
        agent("a").gpus(4, product="TPU v5e").having(0, id="tpu-0").bad(0),
        3,
        resource="google.com/tpu",
    ),
    "of another vendor": Case(
        node("a").has({"amd.com/gpu": 2}),
        agent("a").gpus(2, product="MI300X", id="0000:01:00.0").having(1, id="0000:02:00.0").bad(1),
        1,
        resource="amd.com/gpu",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_free_is_the_lesser_of_allocatable_and_of_what_works_less_what_pods_hold(case: Case) -> None:
    complaints = Complaints()
    mirror = cluster(case.node, *case.pods, report=complaints)
    write(mirror, case.agent)
    assert free(mirror, case.resource) == case.free
    assert complaints == [("nodedevices", "a", told) for told in case.told]


class TestEvents:
    def test_a_device_is_out_of_the_answer_with_the_very_event_and_back_with_the_next(self) -> None:
        mirror = cluster(eight(), node("b").gpus(8))
        write(mirror, agent("a").gpus(8))
        assert replicas(mirror, {GPU: 8}) == 2
        write(mirror, ONE_BAD)
        assert replicas(mirror, {GPU: 8}) == 1
        assert replicas(mirror, {GPU: 1}) == 15
        write(mirror, agent("a").gpus(8))
        assert replicas(mirror, {GPU: 8}) == 2
        assert not mirror.columns.broken

    def test_an_object_that_goes_takes_its_word_along(self) -> None:
        mirror = cluster(eight())
        write(mirror, ONE_BAD)
        mirror.node_devices.delete("a")
        assert free(mirror) == 8
        assert not mirror.node_devices.watched

    def test_a_pod_that_leaves_a_broken_device_leaves_nothing_free_there(self) -> None:
        mirror = cluster(eight(), *FOUR_PODS)
        write(mirror, ONE_BAD.held(0, "default/p0"))
        assert free(mirror) == 4
        delete(mirror, FOUR_PODS[0])
        assert free(mirror) == 4
        upsert(mirror, FOUR_PODS[0])
        assert free(mirror) == 4
        delete(mirror, FOUR_PODS[1])
        assert free(mirror) == 5

    @pytest.mark.parametrize(
        ("told", "now", "expected"),
        [("old", "old", 4), ("old", "new", 3), ("old", "", 4), ("", "new", 4)],
    )
    def test_a_pod_made_anew_under_a_name_holds_what_kubelet_gave_it_and_not_what_it_gave_the_other(
        self, told: str, now: str, expected: int
    ) -> None:
        """Stateful sets do so; where nobody tells which of a name it is, the name counts."""
        mirror = cluster(eight(), *FOUR_PODS[1:], FOUR_PODS[0].uid("old"))
        write(mirror, ONE_BAD.held(0, "default/p0", uid=told))
        assert free(mirror) == 4
        upsert(mirror, FOUR_PODS[0].uid(now))
        assert free(mirror) == expected
        write(mirror, ONE_BAD.held(0, "default/p0", uid=now).observed(at(1)))
        assert free(mirror) == 4

    def test_a_node_that_comes_back_is_not_what_it_was(self) -> None:
        mirror = cluster(eight())
        write(mirror, ONE_BAD)
        delete(mirror, eight())
        assert not mirror.columns.broken
        upsert(mirror, eight())
        assert free(mirror) == 7

    def test_a_copy_keeps_what_was_broken(self) -> None:
        mirror = cluster(eight())
        write(mirror, ONE_BAD)
        copy = mirror.columns.copy()
        write(mirror, agent("a").gpus(8))
        assert list(copy.broken) == [0]
        assert copy.free(GPU).tolist() == [7]


class TestSharedDevices:
    """HAMi and its kind: the device of that id takes no pods any more, and the others are as they were."""

    def test_the_device_of_that_id_takes_no_pods(self) -> None:
        hami = SHARINGS["hami-nvidia, JSON"]
        mirror = cluster(hami.node("a", 2))
        table = next(table for table in mirror.columns.devices if table.is_used)
        ids = [device.id for device in table.devices if device is not None]
        assert replicas(mirror, hami.half) == 2 * hami.halves
        sick = agent("a").gpus(2).having(0, id=ids[0]).having(1, id=ids[1]).bad(0)
        write(mirror, sick)
        assert replicas(mirror, hami.half) == hami.halves
        mirror.node_devices.delete("a")
        assert replicas(mirror, hami.half) == 2 * hami.halves

    def test_devices_that_pods_open_are_told_by_who_runs_there(self) -> None:
        groups = [Group(id, "a", (fraction("0.5"),)) for id in ("g0", "g1")]
        pods = [one for group in groups for one in group.pods]
        mirror = cluster(kai_node("a", 2), *pods, report=lambda *_: None)
        half = replace(shape({}), annotations=(("gpu-fraction", "0.5"),))
        assert max_replicas(room_of(mirror), half).value == 2
        sick = agent("a").gpus(2).bad(0).held(0, "default/g0-0", "kai-resource-reservation/hold-g0")
        write(mirror, sick)
        assert max_replicas(room_of(mirror), half).value == 1
        delete(mirror, groups[0].sharers[0])
        delete(mirror, groups[0].holder)
        assert max_replicas(room_of(mirror), half).value == 1
        write(mirror, agent("a").gpus(2))
        assert max_replicas(room_of(mirror), half).value == 3

    def test_it_counts_whichever_comes_first(self) -> None:
        hami = SHARINGS["hami-nvidia, JSON"]
        known = cluster(hami.node("a", 2))
        table = next(table for table in known.columns.devices if table.is_used)
        sick = agent("a").gpus(1).having(0, id=next(d.id for d in table.devices if d is not None)).bad(0)
        late = cluster()
        upsert(late, sick)
        upsert(late, hami.node("a", 2))
        upsert(known, sick)
        assert replicas(late, hami.half) == replicas(known, hami.half) == hami.halves


XID79_AND_94 = agent("a").gpus(4).bad(0).bad(3, "Xid94", "Degraded").booted("b1")
TAKEN = {
    "by its XID": (3, XID79_AND_94, 2),
    "by its id": (3, XID79_AND_94.offered(0, 1, 2), 2),
    "by its id, and nothing is wrong with it any more": (
        3,
        agent("a").gpus(4).bad(0).booted("b1").offered(0, 1, 2),
        2,
    ),
    "the broken one, by its id": (
        3,
        agent("a").gpus(4).bad(0, "RowRemapFailed").booted("b1").offered(1, 2, 3),
        3,
    ),
    "both": (2, XID79_AND_94.offered(1, 2), 2),
    "both, and the plugin has started anew": (4, XID79_AND_94.offered(1, 2), 3),
    "both, and the plugin has started anew and looked again": (3, XID79_AND_94.offered(1, 2), 2),
    "the other one after its agent fell silent": (3, XID79_AND_94.offered(0, 1, 2, 3), 2),
}


class TestStaleAgents:
    """Ten minutes without a change by our clock; what the node's clock says counts only at the start."""

    def told(self, *steps: AgentBuilder | float) -> tuple[int, list[str]]:
        """What is free of eight GPUs after ticks (seconds after `NOW_S`) and writes, and what was told."""
        complaints = Complaints()
        mirror = cluster(eight(), report=complaints)
        for step in steps:
            if isinstance(step, AgentBuilder):
                write(mirror, step)
            else:
                mirror.node_devices.tick(NOW_S + step)
        return free(mirror), [message for _, _, message in complaints]

    STALE = "observedAt has not changed for 10 minutes: is the agent running? Not heeded"

    @pytest.mark.parametrize(
        ("steps", "expected"),
        [
            ((ONE_BAD,), 7),
            ((0.0, ONE_BAD, 600.0), 7),
            ((0.0, ONE_BAD, 601.0), 8),
            ((ONE_BAD, 601.0), 8),
            ((601.0, ONE_BAD), 8),
            # Seen to change, whatever the node's clock says.
            ((0.0, ONE_BAD.observed(at(-7200)), 1.0, ONE_BAD.observed(at(-6900)), 600.0), 7),
            ((0.0, ONE_BAD.observed(at(-7200)), 1.0, ONE_BAD.observed(at(-6900)), 602.0), 8),
            # Ahead of ours: as if it had been written when it was first seen.
            ((0.0, ONE_BAD.observed(at(7200)), 600.0), 7),
            ((0.0, ONE_BAD.observed(at(7200)), 601.0), 8),
            ((ONE_BAD.observed(at(7200)), 0.0, 601.0), 8),
            # The same object read again is no sign of life.
            ((0.0, ONE_BAD, 500.0, ONE_BAD, 601.0), 8),
            ((0.0, ONE_BAD, 601.0, ONE_BAD.observed(at(600))), 7),
            ((0.0, ONE_BAD, 601.0, agent("a").gpus(8).observed(at(600))), 8),
        ],
    )
    def test_what_is_heeded(self, steps: tuple[AgentBuilder | float, ...], expected: int) -> None:
        assert self.told(*steps)[0] == expected

    def test_it_is_told_once(self) -> None:
        assert self.told(0.0, ONE_BAD, 601.0, 700.0, 800.0)[1] == [self.STALE]
        assert self.told(0.0, ONE_BAD, 601.0, ONE_BAD.observed(at(602)), 1300.0)[1] == [self.STALE] * 2

    def test_what_is_no_time_is_no_sign_of_life(self) -> None:
        left, told = self.told(0.0, ONE_BAD.observed("yesterday"), 1.0, ONE_BAD.observed("today"))
        assert left == 8
        assert told == [
            "observedAt: expected a time in RFC 3339, found 'yesterday': taken as never",
            self.STALE,
            "observedAt: expected a time in RFC 3339, found 'today': taken as never",
        ]

    def test_a_whole_cluster_that_falls_silent_is_one_report(self) -> None:
        complaints = Complaints()
        mirror = cluster(report=complaints)
        mirror.node_devices.tick(NOW_S)
        write(mirror, *(agent(f"n{number}").gpus(1) for number in range(500)))
        mirror.node_devices.tick(NOW_S + 601)
        assert complaints == [("nodedevices", "n0", self.STALE + "; the same of 499 others")]

    HELD = ONE_BAD.booted("b1").held(0, "default/p0")
    BUT = ", but for broken devices: out until it writes, the node reboots, or the object is deleted"

    @pytest.mark.parametrize(
        ("then", "now", "said", "expected"),
        [
            ("b1", "b1", HELD, 6),
            # Whether kubelet gives it may have changed since, as it may who holds it.
            ("b1", "b1", HELD.offered(0, 1, 2, 3, 4, 5, 6, 7), 6),
            ("b1", "b1", HELD.bad(0, "Lost", "Lost"), 6),
            ("b1", "b2", HELD, 7),
            ("b1", "", HELD, 7),
            # The agent wrote before the node was booted anew, or does not know of which boot it tells.
            ("b2", "b2", HELD, 7),
            ("b1", "b1", HELD.booted(""), 7),
            ("", "", HELD.booted(""), 7),
            ("b1", "b1", HELD.bad(0, health="Degraded"), 7),
        ],
    )
    def test_what_only_a_reset_mends_outlives_the_silence_of_its_agent_until_the_node_is_booted_anew(
        self, then: str, now: str, said: AgentBuilder, expected: int
    ) -> None:
        complaints = Complaints()
        mirror = cluster(eight().booted(then), asking("p0"), report=complaints)
        mirror.node_devices.tick(NOW_S)
        write(mirror, said)
        assert free(mirror) == 7
        mirror.node_devices.tick(NOW_S + 601)
        upsert(mirror, eight().booted(now))
        assert free(mirror) == expected
        is_kept = then == "b1" == said.boot_id and said.devices[0]["health"] != "Degraded"
        assert [told for _, _, told in complaints] == [self.STALE + (self.BUT if is_kept else "")]
        mirror.node_devices.delete("a")
        assert free(mirror) == 7

    @pytest.mark.parametrize(("allocatable", "said", "expected"), TAKEN.values(), ids=TAKEN.keys())
    def test_what_the_plugin_had_taken_away_it_keeps_when_the_agent_falls_silent(
        self, allocatable: int, said: AgentBuilder, expected: int
    ) -> None:
        mirror = cluster(eight(allocatable, 4).booted("b1"), report=lambda *_: None)
        mirror.node_devices.tick(NOW_S)
        write(mirror, said)
        mirror.node_devices.tick(NOW_S + 601)
        assert free(mirror) == expected

    @pytest.mark.parametrize(("is_bad", "expected"), [(False, 2), (True, 3)])
    def test_it_keeps_it_beside_what_a_prometheus_tells_too(self, is_bad: bool, expected: int) -> None:
        """What the plugin has taken away is not what Prometheus tells of, or just that."""
        complaints = Complaints()
        mirror = cluster(eight(3, 4).booted("b1"), report=complaints)
        mirror.node_devices.tick(NOW_S)
        write(mirror, agent("a").gpus(4).booted("b1").offered(0, 1, 2))
        mirror.node_devices.tick(NOW_S + 601)
        measured = agent("a").gpus(4).bad(3 if is_bad else 0)
        mirror.node_devices.measured.hear("a", device_report(measured.build())[0])
        assert free(mirror) == expected
        assert [told for _, _, told in complaints] == [self.STALE]

    def test_one_fault_that_the_plugin_takes_away_meanwhile_is_one_device(self) -> None:
        mirror = cluster(eight().booted("b1"), report=lambda *_: None)
        mirror.node_devices.tick(NOW_S)
        write(mirror, self.HELD.offered(0, 1, 2, 3, 4, 5, 6, 7))
        mirror.node_devices.tick(NOW_S + 601)
        upsert(mirror, eight(7, 8).booted("b1"))
        assert free(mirror) == 7
        reasons = max_replicas(room_of(mirror), shape(gpu=8)).reasons
        (told,) = (str(reason) for reason in reasons if reason.kind == "unhealthy_devices")
        assert told.endswith("on 1 node: Xid79 on GPU-a-0, told before its agent fell silent")
        write(mirror, agent("a").gpus(8).observed(at(602)))
        assert not mirror.columns.broken

    def test_it_outlives_beside_what_a_prometheus_tells_instead(self) -> None:
        complaints = Complaints()
        mirror = cluster(eight().booted("b1"), report=complaints)
        mirror.node_devices.tick(NOW_S)
        write(mirror, agent("a").gpus(8).bad(0).bad(1, "RowRemapFailed").booted("b1"))
        mirror.node_devices.tick(NOW_S + 601)
        # It knows of one of them, and of one that has failed since; of XIDs it knows not what follows.
        told = (
            agent("a").gpus(8).bad(0, health="Degraded").bad(1, "RowRemapFailure").bad(2, "RowRemapFailure")
        )
        mirror.node_devices.measured.hear("a", device_report(told.build())[0])
        assert free(mirror) == 5
        assert mirror.columns.broken.on(0)[GPU].why == (
            "RowRemapFailure on GPU-a-1",
            "RowRemapFailure on GPU-a-2",
            "Xid79 on GPU-a-0, told before its agent fell silent",
        )
        upsert(mirror, eight().booted("b2"))
        assert free(mirror) == 6
        assert len(complaints) == 1

    def test_nothing_else_of_a_silent_agent_is_heeded(self) -> None:
        mirror = cluster(eight().booted("b1"), report=lambda *_: None)
        mirror.node_devices.tick(NOW_S + 601)
        write(mirror, agent("a").gpus(8, clique="c.1", migEnabled=True).bad(0).booted("b1"))
        assert free(mirror) == 7
        assert set(mirror.columns.described.keys) == set(mirror.columns.labels.keys)

    def test_in_a_dump_the_newest_object_says_how_late_it_is(self) -> None:
        complaints = Complaints()
        mirror = cluster(eight(), node("b").gpus(8), report=complaints)
        write(mirror, ONE_BAD, agent("b").gpus(8).bad(0).observed(at(700)))
        mirror.node_devices.tick_by_newest()
        assert (free(mirror), free(mirror, name="b")) == (8, 7)


class TestLabels:
    """What labels lack is filled in where devices are described, never where nodes are selected."""

    def described(self, mirror: ClusterMirror, key: str) -> str | None:
        columns = mirror.columns
        row = columns.row_of("a")
        assert row is not None
        return columns.described.values(key).get(int(columns.described.codes(key)[row]))

    @pytest.mark.parametrize(
        ("labels", "found", "key", "expected", "told"),
        [
            ({}, {}, "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3", ""),
            ({}, {}, "nvidia.com/gpu.memory", str(80 * 1024), ""),
            ({}, {"clique": "c1.7"}, CLIQUE, "c1.7", ""),
            ({}, {"migEnabled": True}, "nvidia.com/mig.capable", "true", ""),
            ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"}, {}, "x", None, ""),
            # Another source of labels says it already.
            ({"cloud.google.com/gke-accelerator": "nvidia-h100"}, {}, "nvidia.com/gpu.product", None, ""),
            (
                {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
                {},
                "nvidia.com/gpu.product",
                "NVIDIA-A100-SXM4-40GB",
                "label nvidia.com/gpu.product says 'NVIDIA-A100-SXM4-40GB', the devices say "
                "'NVIDIA H100 80GB HBM3': the label counts",
            ),
            ({"nvidia.com/gpu.memory": "81559"}, {}, "nvidia.com/gpu.memory", "81559", ""),
            (
                {"nvidia.com/gpu.memory": "40960"},
                {},
                "nvidia.com/gpu.memory",
                "40960",
                "label nvidia.com/gpu.memory says '40960', the devices say '81920 MiB': the label counts",
            ),
            (
                {CLIQUE: "c1.8"},
                {"clique": "c1.7"},
                CLIQUE,
                "c1.8",
                f"label {CLIQUE} says 'c1.8', the devices say 'c1.7': the label counts",
            ),
        ],
    )
    def test_labels_are_filled_in_and_never_overruled(
        self, labels: dict[str, str], found: dict[str, object], key: str, expected: str | None, told: str
    ) -> None:
        complaints = Complaints()
        mirror = cluster(eight().label(labels), report=complaints)
        write(mirror, agent("a").gpus(8, found))
        assert self.described(mirror, key) == expected
        assert [message for _, _, message in complaints] == ([told] if told else [])

    @pytest.mark.parametrize(
        ("allocatable", "said", "product", "mib"),
        [
            # As GPU feature discovery has it: of the instance that the plain name stands for.
            ({GPU: 7}, CUT, "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", str(10 * 1024)),
            ({MIG: 7}, CUT, "NVIDIA-H100-80GB-HBM3", str(80 * 1024)),
            ({GPU: 8}, CUT_EIGHT, "NVIDIA-H100-80GB-HBM3", str(80 * 1024)),
        ],
    )
    def test_of_what_is_cut_they_tell_of_what_the_resource_stands_for(
        self, allocatable: Quantities, said: AgentBuilder, product: str, mib: str
    ) -> None:
        mirror = cluster(node("a").has(allocatable))
        write(mirror, said)
        assert self.described(mirror, "nvidia.com/gpu.product") == product
        assert self.described(mirror, "nvidia.com/gpu.memory") == mib

    def test_devices_that_differ_fill_nothing_in(self) -> None:
        mirror = cluster(eight(2, 2))
        write(
            mirror,
            agent("a").gpus(1, clique="c.1").gpus(1, product="NVIDIA L4", memoryBytes=GIB, clique="c.2"),
        )
        for key in ("nvidia.com/gpu.product", "nvidia.com/gpu.memory", CLIQUE):
            assert self.described(mirror, key) is None

    @pytest.mark.parametrize("value", ["x" * 64, "a b", "-", "\n", "😀"])
    def test_what_no_label_could_be_is_not_filled_in(self, value: str) -> None:
        mirror = cluster(eight())
        write(mirror, agent("a").gpus(8, clique=value))
        assert self.described(mirror, CLIQUE) is None

    def test_no_selector_sees_it(self) -> None:
        mirror = cluster(eight())
        write(mirror, agent("a").gpus(8))
        asked = shape(gpu=1, selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
        assert max_replicas(room_of(mirror), asked).value == 0

    def test_a_clique_is_a_level_where_no_label_says_so(self) -> None:
        mirror = cluster(eight(), node("b").gpus(8).label({CLIQUE: "c.1"}))
        write(mirror, agent("a").gpus(8, clique="c.1"))
        levels = topology_levels({}, mirror.columns)
        assert [level.key for level in levels.ordered] == [CLIQUE]
        domains = domains_of(mirror.columns, levels.ordered[0])
        assert (domains.paths, domains.outside) == ((("c.1",),), None)


def surveyed(mirror: ClusterMirror) -> list[tuple[str, int, int, int, int]]:
    levels = topology_levels({}, mirror.columns)
    found = survey(mirror.columns, builtin_catalogue(), levels, cluster="m", pods=0)
    return [(one.product, one.total, one.unhealthy, one.allocated, one.free) for one in found.products]


@pytest.mark.parametrize(
    ("pods", "sick", "expected"),
    [
        ((), ONE_BAD, (8, 1, 0, 7)),
        (FOUR_PODS, ONE_BAD, (8, 1, 4, 3)),
        # A pod on a device that does not work is counted with it.
        (FOUR_PODS, ONE_BAD.held(0, "default/p0"), (8, 1, 3, 4)),
        ((asking("p", 8),), ONE_BAD.held(0, "default/p"), (8, 1, 7, 0)),
    ],
)
def test_the_survey_counts_them_as_unhealthy(
    pods: tuple[PodBuilder, ...], sick: AgentBuilder, expected: tuple[int, ...]
) -> None:
    mirror = cluster(eight(), *pods)
    write(mirror, sick)
    assert surveyed(mirror) == [("NVIDIA-H100-80GB-HBM3", *expected)]


def test_the_survey_says_which_they_are_and_counts_shared_ones_too() -> None:
    hami = SHARINGS["hami-nvidia, JSON"]
    sick = agent("a").gpus(2).having(0, id="a-device-0").having(1, id="a-device-1").bad(1)
    mirror = cluster(hami.node("a", 2), eight_of("b"), sick, agent("b").gpus(8).bad(0).bad(1, "Xid48"))
    assert {(total, unhealthy, free) for _, total, unhealthy, _, free in surveyed(mirror)} == {
        (2, 1, 1),
        (8, 2, 6),
    }
    found = survey(
        mirror.columns, builtin_catalogue(), topology_levels({}, mirror.columns), cluster="", pods=0
    )
    assert found.problems == (
        "node b: 2 devices of nvidia.com/gpu unhealthy: Xid79 on GPU-b-0, Xid48 on GPU-b-1",
    )


@pytest.mark.parametrize(
    ("gib", "expected"),
    [
        # Kinds of H100 share that profile, and memory alone tells which it is: one GPU, cut into seven.
        (94, ("NVIDIA-H100-MIG", 1, 0, 0, 1)),
        (96, ("NVIDIA-H100-MIG", 1, 0, 0, 1)),
        # None of them: each piece counts for itself.
        (0, ("NVIDIA-H100", 7, 0, 0, 7)),
        (60, ("NVIDIA-H100", 7, 0, 0, 7)),
    ],
)
def test_memory_and_product_of_agents_choose_the_geometry(gib: int, expected: tuple[object, ...]) -> None:
    mirror = cluster(node("a").has({"nvidia.com/mig-1g.12gb": 7}))
    write(mirror, agent("a").gpus(1, product="NVIDIA H100", memoryBytes=gib * GIB).cut(0, "1g.12gb", 7))
    assert surveyed(mirror) == [expected]


REASONS = [
    (ONE_BAD, (), ["1 device of nvidia.com/gpu unhealthy on 1 node: Xid79 on GPU-a-0"]),
    (
        ONE_BAD.bad(3, "Xid48").bad(4, "", health="Lost").bad(5),
        (),
        [
            "4 devices of nvidia.com/gpu unhealthy on 1 node: Xid79 on GPU-a-0, Xid48 on GPU-a-3, "
            "Lost on GPU-a-4"
        ],
    ),
    (
        ONE_BAD.untold(0),
        (),
        [
            "1 device of nvidia.com/gpu unhealthy on 1 node: Xid79 on GPU-a-0; who runs on them is not told: "
            "all pods count against the others"
        ],
    ),
    # What is no word is not passed on.
    (ONE_BAD.bad(0, "X\nid"), (), ["1 device of nvidia.com/gpu unhealthy on 1 node: Unhealthy on GPU-a-0"]),
    (agent("a").gpus(8), (), []),
]


@pytest.mark.parametrize(("sick", "pods", "expected"), REASONS)
def test_an_answer_says_which_devices_do_not_work(
    sick: AgentBuilder, pods: tuple[PodBuilder, ...], expected: list[str]
) -> None:
    mirror = cluster(eight(), *pods)
    write(mirror, sick)
    reasons = max_replicas(room_of(mirror), shape(gpu=8)).reasons
    assert [str(reason) for reason in reasons if reason.kind == "unhealthy_devices"] == expected
    assert not [one for one in max_replicas(room_of(mirror), shape(cpu=1)).reasons if "unhealthy" in one.kind]


def test_an_answer_says_nothing_of_devices_that_the_pods_may_not_use() -> None:
    mirror = cluster(eight().cordoned(), node("b").gpus(8))
    write(mirror, ONE_BAD)
    assert [reason.kind for reason in max_replicas(room_of(mirror), shape(gpu=8)).reasons] == ["cordoned"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("sick", "left", "told"),
        [
            (
                agent("a").gpus(8).having(1, window={"utilizationP50": 900, "samples": -1}),
                8,
                "devices[1].window.utilizationP50: expected 0 to 100, found 900: not used; devices[1]."
                "window.samples: expected 0 to 301, found -1: not used",
            ),
            (
                agent("a").gpus(10_000).bad(9_000),
                8,
                "devices: lists 10000; only the first 128 are read",
            ),
            (ONE_BAD.having(0, id=""), 8, "devices[0].id: expected a UUID, found '': left out"),
            (ONE_BAD.having(0, id="GPU \n"), 8, r"devices[0].id: expected a UUID, found 'GPU \n': left out"),
            (
                ONE_BAD.having(1, id="GPU-a-0"),
                7,
                "devices[1].id: 'GPU-a-0' again: the first one counts; "
                "lists 7 devices, but the node has 8 of nvidia.com/gpu",
            ),
            (
                ONE_BAD.having(0, health="Sick"),
                8,
                "devices[0].health: expected Healthy, Degraded, Unhealthy, Lost, found 'Sick': taken as "
                "Degraded",
            ),
            (
                ONE_BAD.having(0, window={"idleSince": "noon"}),
                7,
                "devices[0].window.idleSince: expected a time in RFC 3339, found 'noon': taken as not idle",
            ),
            (
                agent("a").gpus(8, memoryBytes=-1),
                8,
                "; ".join(
                    f"devices[{n}].memoryBytes: expected 0 to {2**50}, found -1: not used" for n in range(5)
                )
                + "; 3 more problems",
            ),
            (
                ONE_BAD.held(0, *(f"default/p{number}" for number in range(300))),
                7,
                "devices[0].holders: lists 300; only the first 128 are read",
            ),
        ],
    )
    def test_it_is_left_out_and_told_in_one_report(self, sick: AgentBuilder, left: int, told: str) -> None:
        complaints = Complaints()
        mirror = cluster(eight(), report=complaints)
        write(mirror, sick, sick)
        assert free(mirror) == left
        assert complaints == [("nodedevices", "a", told)]

    def test_it_is_told_again_only_when_it_is_something_else(self) -> None:
        complaints = Complaints()
        mirror = cluster(eight(), report=complaints)
        busy = [agent("a").gpus(8).having(1, window={"utilizationMax": percent}) for percent in (900, 901)]
        write(mirror, *busy, agent("a").gpus(8), busy[0], agent("a").gpus(8).having(1, id=""))
        assert [message.partition(":")[0] for _, _, message in complaints] == [
            "devices[1].window.utilizationMax",
            "devices[1].window.utilizationMax",
            "devices[1].id",
        ]

    def test_of_a_node_that_is_not_there_nothing_is_made(self) -> None:
        mirror = cluster(eight())
        write(mirror, agent("ghost").gpus(8).bad(0).held(0, "default/p"))
        upsert(mirror, asking("p"))
        assert free(mirror) == 7
        assert mirror.columns.node_count == 1

    @given(st.integers(0, MAX_INT64), st.integers(1, 200), st.integers(0, 200), st.integers(0, 9))
    @settings(max_examples=100, derandomize=True, deadline=None)
    def test_an_agent_never_adds_room(self, has: int, listed: int, bad: int, held: int) -> None:
        mirror = cluster(node("a").gpus(has), asking("p", held), report=lambda *_: None)
        before = free(mirror)
        said = agent("a").gpus(listed)
        for index in range(min(bad, listed)):
            said = said.bad(index).held(index, "default/p", "default/q", shares=held)
        write(mirror, said)
        assert 0 <= free(mirror) <= before


@st.composite
def _nodes_with_pods(draw: st.DrawFn) -> tuple[int, int, set[int], set[int], list[list[int]], list[set[int]]]:
    """Devices and replicas of each; what kubelet does not give, what is broken; of each pod the devices of
    its replicas, and those on which it runs processes beside."""
    devices, times = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 1, 4]))
    some = st.sets(st.integers(0, devices - 1))
    slots = draw(st.permutations([device for device in range(devices) for _ in range(times)]))
    pods: list[list[int]] = []
    for size in draw(st.lists(st.integers(1, 3), max_size=8)):
        pods.append(slots[:size])
        slots = slots[size:]
    held = [one for one in pods if one]
    return devices, times, draw(some), draw(some), held, [draw(some) - set(one) for one in held]


@given(_nodes_with_pods(), st.booleans())
@settings(max_examples=100, derandomize=True, deadline=None)
def test_where_it_is_known_what_kubelet_gives_the_room_is_what_works_and_is_free(
    found: tuple[int, int, set[int], set[int], list[list[int]], list[set[int]]], has_label: bool
) -> None:
    devices, times, withheld, broken, pods, running = found
    given = devices - len(withheld)
    said = agent("a").gpus(devices).offered(*(set(range(devices)) - withheld))
    for number, (held, beside) in enumerate(zip(pods, running, strict=True)):
        for device in set(held):
            said = said.held(device, f"default/p{number}", shares=held.count(device) if times > 1 else 0)
        for device in beside:
            said = said.run_by(device, f"default/p{number}")
    for device in broken:
        said = said.bad(device)
    labels = {REPLICAS: str(times)} if times > 1 and has_label else {}
    mirror = cluster(
        node("a").gpus(given * times).capacity_of(gpu=devices * times).label(labels),
        *(asking(f"p{number}", len(held)) for number, held in enumerate(pods)),
        report=lambda *_: None,
    )
    write(mirror, said)
    by_kubelet = given * times - sum(map(len, pods))
    working = [device for device in range(devices) if device not in withheld | broken]
    by_health = len(working) * times - sum(held.count(device) for device in working for held in pods)
    assert free(mirror) == max(0, min(by_kubelet, by_health))


@dataclass(frozen=True)
class Event:
    """Something the API server tells of a node, a pod or what an agent found."""

    thing: Thing
    gone: bool


def _agents() -> st.SearchStrategy[AgentBuilder]:
    def made(name: str, count: int, bad: set[int], pods: list[str], product: str) -> AgentBuilder:
        said = agent(name).gpus(count, product=product, clique="c.1" if count % 2 else "")
        for index in bad:
            if index < count:
                said = said.bad(index).held(index, *(f"default/{one}" for one in pods))
        return said

    return st.builds(
        made,
        st.sampled_from(["a", "b"]),
        st.integers(0, 4),
        st.sets(st.integers(0, 3)),
        st.lists(st.sampled_from(["p", "q"]), max_size=2),
        st.sampled_from(["NVIDIA H100", "NVIDIA A100"]),
    )


def _nodes() -> st.SearchStrategy[NodeBuilder]:
    def made(name: str, has: int, more: int, labels: dict[str, str]) -> NodeBuilder:
        return node(name).gpus(has).capacity_of(gpu=has + more).label(labels)

    labels = [{}, {"nvidia.com/gpu.product": "NVIDIA-L4"}, {REPLICAS: "2"}, {CLIQUE: "c.2"}]
    return st.builds(
        made, st.sampled_from(["a", "b"]), st.integers(0, 8), st.integers(0, 2), st.sampled_from(labels)
    )


def _pods() -> st.SearchStrategy[PodBuilder]:
    return st.builds(
        lambda name, on, gpus: pod(name).on(on).requests(gpu=gpus),
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
    )


EVENTS = st.lists(st.builds(Event, st.one_of(_agents(), _nodes(), _pods()), st.booleans()), max_size=20)


@dataclass
class World:
    """The objects there are now, beside a mirror that only hears of changes."""

    mirror: ClusterMirror = field(default_factory=lambda: cluster(report=lambda *_: None))
    things: dict[tuple[type, str], Thing] = field(default_factory=dict)

    def happen(self, event: Event) -> None:
        obj = typed(event.thing)
        key = (type(obj), obj.metadata.name)
        if event.gone:
            delete(self.mirror, obj)
            self.things.pop(key, None)
        else:
            upsert(self.mirror, obj)
            self.things[key] = obj


def all_of(mirror: ClusterMirror) -> object:
    columns = mirror.columns
    found: dict[str, object] = {}
    for name in ("a", "b"):
        row = columns.row_of(name)
        if row is not None:
            described = columns.described
            found[name] = (
                int(columns.free(GPU)[row]),
                int(columns.allocatable(GPU)[row]),
                int(columns.unhealthy(GPU)[row]),
                columns.broken.on(row),
                [described.values(key).get(int(described.codes(key)[row])) for key in sorted(described.keys)],
            )
    return found, {pod: sorted(nodes) for pod, nodes in mirror.node_devices.watched.items()}


@given(EVENTS, st.randoms(use_true_random=False))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_any_order_of_events_gives_the_columns_of_the_last_objects_alone(
    events: list[Event], rng: Random
) -> None:
    world = World()
    for event in events:
        world.happen(event)
    things = [world.things[key] for key in sorted(world.things, key=str)]
    rng.shuffle(things)
    assert all_of(world.mirror) == all_of(cluster(*things, report=lambda *_: None))
