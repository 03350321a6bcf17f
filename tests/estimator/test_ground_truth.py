"""What each kind of pod leaves of a node of 8 cores, 32 Gi and 8 GPUs, as kube-scheduler then finds it.

Most of these are pods that a plain sum over containers gets wrong.
"""

import pytest

from fairway.resources import Amounts
from tests.builders import PodBuilder, cluster, free_on, node, pod, quantities, replicas_of, shape, upsert

NODE = node("n").has(cpu=8, memory="32Gi", gpu=8)
GI = 1 << 30


def left(cpu: int = 8000, memory_gi: float = 32, gpu: int = 8, pods: int = 109) -> Amounts:
    amounts = {"cpu": cpu, "memory": int(memory_gi * GI), "nvidia.com/gpu": gpu, "pods": pods}
    return {name: amount for name, amount in amounts.items() if amount}


P = pod("p").on("n")
SCENARIOS: dict[str, tuple[PodBuilder, Amounts]] = {
    # pod-level resources: the largest cause of promises that do not hold
    "pod-level requests above the containers'": (
        P.requests(cpu=1, memory="1Gi").requests(gpu=1).pod_level(cpu=4, memory="16Gi"),
        left(cpu=4000, memory_gi=16, gpu=7),
    ),
    "pod-level requests and containers without any": (
        P.requests().pod_level(cpu="1500m", memory="2Gi"),
        left(cpu=6500, memory_gi=30),
    ),
    "pod-level requests below the containers'": (P.requests(cpu=4).pod_level(cpu=3), left(cpu=5000)),
    # status of a resize in place
    "shrunk, but not yet in fact": (
        P.requests(cpu=1, memory="1Gi").running_with(cpu=6, memory="8Gi"),
        left(2000, 24),
    ),
    "grown, granted, not yet in fact": (
        P.requests(cpu=4).running_with(cpu=1).granted(cpu=4),
        left(cpu=4000),
    ),
    "asking for what the node cannot give": (
        P.requests(cpu=64).running_with(cpu=2).granted(cpu=2).resize_pending("Infeasible"),
        left(cpu=6000),
    ),
    "asking for what must wait": (
        P.requests(cpu=6).running_with(cpu=2).resize_pending("Deferred"),
        left(cpu=2000),
    ),
    "a whole pod resized": (
        P.requests(cpu=1).pod_level(cpu=2).pod_running_with(quantities(cpu=5), quantities(cpu=3)),
        left(cpu=3000),
    ),
    # sidecars that are alive
    "a sidecar beside the containers": (
        P.sidecar(cpu=1, memory="1Gi").requests(cpu=2, memory="2Gi"),
        left(5000, 29),
    ),
    "several sidecars": (P.sidecar(cpu=1).sidecar(cpu="500m").requests(cpu=1, gpu=2), left(cpu=5500, gpu=6)),
    "a sidecar that was resized": (P.sidecar(cpu=1).running_with(cpu=3).requests(cpu=1), left(cpu=4000)),
    "a large init container beside a sidecar": (P.sidecar(cpu=1).init(cpu=5).requests(cpu=2), left(cpu=2000)),
    # nominated pods hold their room before they are bound
    "nominated here": (pod("p").nominated("n").requests(cpu=3, gpu=4), left(cpu=5000, gpu=4)),
    "nominated elsewhere": (pod("p").nominated("other").requests(cpu=3), left(pods=110)),
    "nominated elsewhere, bound here": (pod("p").nominated("other").on("n").requests(cpu=3), left(cpu=5000)),
    # init containers
    "an init container larger than all containers": (
        P.init(cpu=6, gpu=1).requests(cpu=1),
        left(cpu=2000, gpu=7),
    ),
    "init containers smaller than the containers": (
        P.init(cpu=1).init(cpu=2).requests(cpu=2).requests(cpu=1),
        left(5000),
    ),
    # overhead of the runtime class
    "overhead": (P.requests(cpu=1).overhead(cpu="250m", memory="128Mi"), left(cpu=6750, memory_gi=31.875)),
    "overhead on pod-level requests": (P.requests().pod_level(cpu=2).overhead(cpu="500m"), left(cpu=5500)),
    # terminating pods hold their room until they are gone
    "terminating": (P.requests(cpu=2, gpu=8).terminating(), left(cpu=6000, gpu=0)),
    "terminating, containers over": (P.requests(cpu=2).terminating().phase("Succeeded"), left(pods=110)),
    # phases
    "bound and still pending": (P.requests(cpu=2).phase("Pending"), left(cpu=6000)),
    "of unknown phase": (P.requests(cpu=2).phase("Unknown"), left(cpu=6000)),
    "failed": (P.requests(cpu=2).phase("Failed"), left(pods=110)),
    "waiting, bound nowhere": (pod("p").requests(cpu=2).phase("Pending"), left(pods=110)),
    # odds and ends
    "limits alone were made requests by the API server; what it left out is none": (
        P.requests().limits(cpu=4),
        left(),
    ),
    "what no scheduler counts": (P.requests({"example": 3, "requests.cpu": 1}, cpu=1), left(cpu=7000)),
    "a device that the node does not have": (P.requests({"amd.com/gpu": 4}, cpu=1), left(cpu=7000)),
    "less than a milli-core": (P.requests(cpu="0.3m").requests(cpu="0.3m"), left(cpu=7999)),
}


@pytest.mark.parametrize(("built", "expected"), SCENARIOS.values(), ids=SCENARIOS)
def test_what_a_pod_leaves_of_its_node(built: PodBuilder, expected: Amounts) -> None:
    assert free_on(cluster(NODE, built), "n") == expected
    assert free_on(cluster(built, NODE), "n") == expected


def test_room_comes_back_when_a_pod_ends_or_goes() -> None:
    mirror = cluster(NODE, P.requests(cpu=2, gpu=8).terminating())
    assert replicas_of(mirror, shape(gpu=1)).value == 0
    mirror.pods.delete("default/p")
    assert free_on(mirror, "n") == left(pods=110)


def test_a_resize_moves_the_room_as_its_status_moves() -> None:
    mirror = cluster(NODE)
    steps = (
        (P.requests(cpu=1).running_with(cpu=1), 7000),
        (P.requests(cpu=4).running_with(cpu=1), 4000),
        (P.requests(cpu=4).running_with(cpu=1).resize_pending("Infeasible"), 7000),
        (P.requests(cpu=4).running_with(cpu=4), 4000),
        (P.requests(cpu=2).running_with(cpu=4), 4000),
        (P.requests(cpu=2).running_with(cpu=2), 6000),
    )
    for built, cpu in steps:
        upsert(mirror, built)
        assert free_on(mirror, "n") == left(cpu=cpu)


def test_a_nominated_pod_is_charged_once_when_it_is_bound() -> None:
    waiting = pod("p").nominated("n").requests(cpu=3)
    mirror = cluster(NODE, node("m").cpu(8), waiting)
    upsert(mirror, waiting.on("n"))
    assert free_on(mirror, "n") == left(cpu=5000)
    upsert(mirror, waiting.on("m"))
    assert free_on(mirror, "n") == left(pods=110)
    assert free_on(mirror, "m") == {"cpu": 5000, "pods": 109}


def test_all_kinds_on_one_node_add_up() -> None:
    pods = (
        pod("level").on("n").requests(cpu=1).pod_level(cpu=2),
        pod("resized").on("n").requests(cpu="500m").running_with(cpu=1),
        pod("sidecar").on("n").sidecar(cpu="500m").requests(cpu="500m"),
        pod("nominated").nominated("n").requests(cpu=1),
        pod("init").on("n").init(cpu=1).requests(cpu="100m"),
        pod("overhead").on("n").requests(cpu="500m").overhead(cpu="250m"),
        pod("going").on("n").requests(cpu="250m").terminating(),
    )
    assert free_on(cluster(NODE, *pods), "n") == left(cpu=1000, pods=103)
