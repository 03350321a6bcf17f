"""Summaries made by hand: three clusters that have one of everything, and a fleet of any size."""

from dataclasses import replace
from random import Random

from admin.document import FORMAT, ClusterReport, Failure, Report
from estimator.capacity.summary import (
    Chunk,
    Domain,
    Fractions,
    LargestGang,
    Level,
    Partition,
    Placeable,
    Product,
    SliceShape,
    StrandedNode,
    Summary,
)

GPU = "nvidia.com/gpu"
H100, A100, L4 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4"
BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
WHEN = "2026-03-14T09:26:53Z"


def whole(product: str, free_by_node: list[int], *, per_node: int = 8, **more: int) -> Product:
    """A product of whole devices from what is free on each of its nodes; the rest counts as allocated."""
    free, total = sum(free_by_node), per_node * len(free_by_node)
    gone = more.get("unhealthy", 0) + more.get("held", 0)
    return Product(
        product=product,
        resource=GPU,
        device_class="whole",
        nodes=len(free_by_node),
        total=total,
        unhealthy=more.get("unhealthy", 0),
        cordoned=more.get("cordoned", 0),
        allocated=total - free - gone,
        free=free,
        stranded=more.get("stranded", 0),
        placeable=tuple(Placeable(n, sum(f // n for f in free_by_node)) for n in (8, 4, 2, 1)),
        chunks=tuple(Chunk(n, free_by_node.count(n)) for n in range(per_node + 1) if n in free_by_node),
        gangs=tuple(LargestGang(n, "", "", sum(f // n for f in free_by_node)) for n in (8, 4, 2, 1)),
    )


def alpha() -> Summary:
    """A100 nodes partly used, one cut into MIG slices, one shared by fractions, one without CPUs."""
    free = [8, 8, 6, 4, 4, 3, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    a100 = whole(A100, free, unhealthy=2, cordoned=8, held=8, stranded=6)
    return Summary(
        cluster="alpha",
        nodes=22,
        pods=431,
        products=(
            replace(
                a100,
                partitions=(
                    Partition("1g.10gb", "nvidia.com/mig-1g.10gb", 14, 5, 21),
                    Partition("3g.40gb", "nvidia.com/mig-3g.40gb", 8, 3, 6),
                    Partition("7g.80gb", "nvidia.com/mig-7g.80gb", 0, 0, 3),
                ),
            ),
            Product(
                L4, GPU, "fraction", nodes=4, total=16, unhealthy=0, cordoned=0, allocated=9, free=7,
                stranded=0,
                placeable=(Placeable(8, 0), Placeable(4, 1), Placeable(2, 2), Placeable(1, 7)),
                chunks=(Chunk(0, 1), Chunk(1, 1), Chunk(2, 1), Chunk(4, 1)),
                fractions=(Fractions("hami", 16, 9_400, 1_000, 23_034, 7),),
                advertised_per_device=10,
            ),
        ),
        stranded=(
            StrandedNode("a100-05", A100, 3, "cpu", "research/simulate-0 holds 88 of 96 CPUs."),
            StrandedNode("a100-06", A100, 2, "memory", "Free 48Gi of memory: notebooks/lab-3 holds 900Gi."),
            StrandedNode("a100-07", A100, 1, "taint", "Lift the taint example.com/maintenance:NoSchedule."),
        ),
        levels=(
            Level(BLOCK, A100, (_domain(("b1",), 8, 64, 24), _domain(("b2",), 8, 64, 13)), 0),
            Level(
                RACK, A100,
                (
                    _domain(("b1", "r1"), 4, 32, 16, 2), _domain(("b1", "r2"), 4, 32, 8),
                    _domain(("b2", "r1"), 4, 32, 10), _domain(("b2", "r2"), 4, 32, 3),
                ),
                0,
            ),
        ),
        uncatalogued=("example.com/fpga",),
        age_s=4,
    )  # fmt: skip


def bravo() -> Summary:
    """H100 nodes in racks of four, some of them without their label."""
    free = [8] * 9 + [7, 5, 4, 4, 2, 2, 1] + [0] * 48
    base = whole(H100, free, unhealthy=3, cordoned=16, held=16, stranded=9)
    racks = tuple(
        _domain((f"b{b}", f"r{r:02}"), 4, 32, (7 * b * r) % 33, ((7 * b * r) % 33) // 12)
        for b in range(1, 5)
        for r in range(1, 5)
    )
    blocks = tuple(
        _domain((f"b{b}",), 16, 128, sum(rack.free for rack in racks if rack.path[0] == f"b{b}"), 2)
        for b in range(1, 5)
    )
    gangs = (
        *base.gangs,
        *(LargestGang(n, BLOCK, "b3", pods) for n, pods in ((8, 6), (4, 13), (2, 27), (1, 54))),
        *(LargestGang(n, RACK, "b3/r02", pods) for n, pods in ((8, 3), (4, 7), (2, 14), (1, 28))),
        *(LargestGang(n, HOST, "h100-000", pods) for n, pods in ((8, 1), (4, 2), (2, 4), (1, 8))),
    )
    return Summary(
        cluster="bravo",
        nodes=70,
        pods=1_204,
        products=(replace(base, gangs=gangs),),
        stranded=(
            StrandedNode("h100-009", H100, 7, "cpu", "3 pods without devices hold 176 CPUs."),
            StrandedNode("h100-013", H100, 2, "pods", "110 of 110 pods run here: evict small ones."),
        ),
        levels=(Level(BLOCK, H100, blocks, 4), Level(RACK, H100, racks, 6)),
        age_s=2,
    )  # fmt: skip


def charlie() -> Summary:
    """TPU slices, read from a file that is a day old."""
    return Summary(
        cluster="charlie",
        nodes=40,
        pods=96,
        products=(
            Product(
                "tpu-v5-lite-podslice", "google.com/tpu", "atomic group", nodes=32, total=128, unhealthy=0,
                cordoned=0, allocated=72, free=56, stranded=24,
                placeable=(Placeable(8, 0), Placeable(4, 14), Placeable(2, 28), Placeable(1, 56)),
                chunks=(Chunk(0, 18), Chunk(4, 14)),
                gangs=(LargestGang(4, "cloud.google.com/gke-nodepool", "v5e-b", 4),),
            ),
        ),
        slices=(
            SliceShape("tpu-v5-lite-podslice", "4x4", 4, 6, 2, 1, 1),
            SliceShape("tpu-v5-lite-podslice", "2x4", 2, 4, 0, 1, 0),
        ),
        age_s=86_400,
        doubt="out of contact for 24 h",
        problems=("node v5e-c-2: label cloud.google.com/gke-tpu-topology: expected AxB, found '4by4'",),
    )  # fmt: skip


def report(*summaries: Summary, made_at: str = WHEN, failures: tuple[Failure, ...] = ()) -> Report:
    """A report of these clusters, each as if read from a file of its name."""
    clusters = tuple(
        ClusterReport(f"dump {summary.cluster}.json", summary, node_names=_names(summary))
        for summary in summaries
    )
    return Report(FORMAT, made_at, "0.1.0", clusters, failures)


def everything() -> Report:
    """All three clusters, and one that could not be read."""
    lost = Failure("delta", "kubeconfig delta.yaml", "https://delta:6443: connection refused; is it running?")
    return report(alpha(), bravo(), charlie(), failures=(lost,))


def large(clusters: int = 100, nodes: int = 50, seed: int = 1) -> Report:
    """So many clusters of so many nodes each, half of them full; the same arguments give the same report."""
    rng = Random(seed)
    return report(*(_large_cluster(f"region-{n // 10:02}-{n:03}", nodes, rng) for n in range(clusters)))


def _large_cluster(name: str, nodes: int, rng: Random) -> Summary:
    products, stranded, levels = [], [], []
    for product, share in ((H100, nodes * 3 // 5), (A100, nodes * 3 // 10), (L4, nodes // 10)):
        free = [rng.choice((0, 0, 0, 0, 0, 1, 2, 3, 4, 8)) for _ in range(share)]
        lost = [n for n in range(share) if 0 < free[n] < 4 and rng.random() < 0.3]
        products.append(whole(product, free, stranded=sum(free[n] for n in lost)))
        stranded += [
            StrandedNode(
                f"{name}-{product[7:11].lower()}-{n:03}", product, free[n], cause, "Free some of it."
            )
            for n in lost
            for cause in [rng.choice(("cpu", "memory", "pods", "taint", "fragments"))]
        ]
        racks = tuple(
            _domain((f"block-{r // 4}", f"rack-{r}"), 4, 32, sum(free[4 * r : 4 * r + 4]))
            for r in range(share // 4)
        )
        levels.append(Level(RACK, product, racks, share % 4))
    return Summary(name, nodes, nodes * 20, tuple(products), tuple(stranded), levels=tuple(levels), age_s=3)


def _domain(
    path: tuple[str, ...], nodes: int, total: int, free: int, whole_free: int | None = None
) -> Domain:
    return Domain(path, nodes, total, free, free // 16 if whole_free is None else whole_free)


def _names(summary: Summary) -> tuple[str, ...]:
    return tuple(f"{summary.cluster}-node-{n:03}" for n in range(summary.nodes))
