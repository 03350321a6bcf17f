"""Device plugins withdraw devices while pods run on: every device counts once, whatever is still offered."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.usage.groups import By, groups, total
from fairway.usage.use import ClusterUsage
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.usage.agents import DeviceBuilder, agent, held, usage

GPU = "nvidia.com/gpu"
LABEL, PRODUCT = "NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"
MOST = {"": 1, "3g.40gb": 2, "1g.10gb": 7}


@dataclass(frozen=True)
class Shared:
    """GPUs as a plugin offers them: cut into instances of ``profile`` or not, each advertised ``times``.

    The last ``bad`` of them are withdrawn; ``restarted``: the plugin has started without them since.
    """

    gpus: int
    profile: str = ""
    times: int = 1
    bad: int = 0
    restarted: bool = False
    labelled: bool = False

    def node(self) -> NodeBuilder:
        each = MOST[self.profile] * self.times
        offered = (self.gpus - self.bad) * each
        made = node("n").gpus(offered).capacity_of(gpu=offered if self.restarted else self.gpus * each)
        if not self.labelled:
            return made
        piece = f"-MIG-{self.profile}" if self.profile else ""
        return made.label(
            {
                "nvidia.com/gpu.product": LABEL + piece + ("-SHARED" if self.times > 1 else ""),
                "nvidia.com/gpu.count": str(self.gpus * MOST[self.profile]),
                "nvidia.com/gpu.replicas": str(self.times),
            }
        )

    def pieces(self) -> list[DeviceBuilder]:
        """What pods are given, device by device; those that are withdrawn last."""
        return [self._piece(gpu, n) for gpu in range(self.gpus) for n in range(MOST[self.profile])]

    def _piece(self, gpu: int, number: int) -> DeviceBuilder:
        said: dict[str, object] = {"product": PRODUCT, "schedulable": gpu < self.gpus - self.bad}
        if not self.profile:
            return DeviceBuilder(f"GPU-{gpu}").with_(**said)
        of = {"parent": f"GPU-{gpu}", "migProfile": self.profile}
        return DeviceBuilder(f"MIG-{gpu}-{number}").with_(**said, **of)

    def usage(self, pods: list[PodBuilder], pieces: list[DeviceBuilder]) -> ClusterUsage:
        cut = (
            DeviceBuilder(f"GPU-{gpu}").with_(product=PRODUCT, migEnabled=True) for gpu in range(self.gpus)
        )
        devices = (*(cut if self.profile else ()), *pieces)
        return usage([self.node()], pods, [agent("n", *devices, agent={"version": "1.0"})])


def held_by_single_pods(where: Shared) -> ClusterUsage:
    """Every replica of what is not withdrawn is a pod's own."""
    pods, pieces = [], where.pieces()
    for at, piece in enumerate(pieces):
        for number in range(where.times if piece.fields["schedulable"] else 0):
            name = f"p{at}-{number}"
            pods.append(pod(name).requests(gpu=1).on("n"))
            pieces[at] = pieces[at].held_by(name, shares=int(where.times > 1)).doing(40, 60)
    return where.usage(pods, pieces)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Shared(2, times=4, bad=1), 1),
        (Shared(4, times=4, bad=3, labelled=True), 1),
        (Shared(8, times=10, bad=3), 5),
        (Shared(2, "3g.40gb", bad=1), 1),
        (Shared(8, "3g.40gb", bad=4), 4),
        (Shared(2, times=4, bad=1, restarted=True), 1),
        (Shared(2, "3g.40gb", bad=1, restarted=True), 1),
        (Shared(1, times=16), 1),
        (Shared(1, times=48), 1),
        (Shared(1, "1g.10gb", 10), 1),
    ],
)
def test_what_is_fully_held_adds_up(where: Shared, expected: int) -> None:
    sums = total([held_by_single_pods(where)])
    assert (sums.allocated_milli, sums.measured_milli) == (expected * 1000, expected * 1000)
    # To a thousandth for each device that was measured.
    assert abs(sums.used_milli - expected * 400) <= len(where.pieces()) // 2 * bool(where.profile)


@pytest.mark.parametrize("labels", [{}, {GPU + ".product": LABEL + "-SHARED", GPU + ".replicas": "4"}])
def test_pods_go_on_while_the_plugin_offers_nothing(labels: dict[str, str]) -> None:
    where = node("n").gpus(0).capacity_of(gpu=4).label(labels)
    device = DeviceBuilder("d")
    for number in range(4):
        device = device.held_by(f"p{number}", shares=1)
    pods = [pod(f"p{number}").requests(gpu=1).on("n") for number in range(4)]
    found = usage([where], pods, [agent("n", device)])
    assert held(found) == {f"p{number}": 250 for number in range(4)}


@pytest.mark.parametrize(
    ("count", "memory", "expected"), [(2, 32, 500), (1, 16, 500), (2, 16, 500), (0, 0, 500), (2, 0, 500)]
)
def test_a_share_of_memory_is_one_of_the_device_as_it_is(count: int, memory: int, expected: int) -> None:
    names = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
    where = node("n").has(dict(zip(names, (memory, count), strict=True)))
    where = where.capacity_of(dict(zip(names, (32, 2), strict=True)))
    one = pod("p").requests({names[0]: 8}).on("n").annotated({"ALIYUN_COM_GPU_MEM_IDX": "0"})
    assert held(usage([where], [one])) == {"p": expected}


def test_neuron_cores_of_a_chip_that_has_lost_one() -> None:
    chips, cores = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
    where = node("n").has({chips: 3, cores: 7}).capacity_of({chips: 4, cores: 8})
    assert held(usage([where], [pod("p").requests({cores: 3}).on("n")])) == {"p": 1500}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_every_device_counts_once_whatever_is_withdrawn(seed: int) -> None:
    rng = Random(seed)
    gpus, profile, times = rng.randint(1, 8), rng.choice(list(MOST)), rng.choice((1, 2, 3, 4, 10, 16))
    labelled = rng.random() < 0.5
    bad = rng.randrange(gpus)
    # Where a plugin starts without a device, so does what writes the labels: they say no more than the rest.
    where = Shared(gpus, profile, times, bad, not labelled and rng.random() < 0.4, labelled)
    pieces = where.pieces()
    pods: list[PodBuilder] = []
    free = [at for at, one in enumerate(pieces) for _ in range(times) if _may_be_held(rng, where, one)]
    rng.shuffle(free)
    truth: Counter[str] = Counter()
    parts = Fraction(1, MOST[profile] * times)
    while free and (not pods or rng.random() < 0.9):
        name, asks = f"p{len(pods)}", min(len(free), rng.choice((1, 1, 2, 3)))
        got = Counter(free.pop() for _ in range(asks))
        pods.append(pod(name).requests(gpu=asks).on("n"))
        for at, shares in got.items():
            pieces[at] = pieces[at].held_by(name, shares=shares if times > 1 else 0)
            truth[str(pieces[at].fields.get("parent", pieces[at].id))] += shares
    found = where.usage(pods, pieces)
    sums: Counter[str] = Counter()
    for use in found.uses:
        assert use.device is not None
        sums[use.device.parent or use.device.id] += use.allocated_milli
    assert sums == {device: shares * parts * 1000 // 1 for device, shares in truth.items()}
    for by in By:
        assert sum(group.used_milli for group in groups([found], by)) == total([found]).used_milli


def _may_be_held(rng: Random, where: Shared, piece: DeviceBuilder) -> bool:
    """Pods on a device that is withdrawn may go on, and do so after the plugin has forgotten it."""
    return bool(piece.fields["schedulable"]) or rng.random() < 0.5
