"""Machine types, labelled as NVIDIA's feature discovery and GKE label them."""

from collections.abc import Mapping

from estimator.demo.objects import NodeShape, taint


def _gpu_labels(product: str, family: str, memory_mib: int, compute: str, **more: str) -> dict[str, str]:
    major, minor = compute.split(".")
    return {
        "nvidia.com/cuda.driver-version.full": "580.95.05",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.family": family,
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
        **more,
    }


def _machine(
    cpu: int, memory_gib: int, devices: Mapping[str, str], labels: Mapping[str, str], *, tainted: str = ""
) -> NodeShape:
    """The kubelet and the system keep half a core and 4 GiB for themselves."""
    common = {"ephemeral-storage": "900Gi", "hugepages-2Mi": "0", "pods": "110", **devices}
    return NodeShape(
        capacity={"cpu": str(cpu), "memory": f"{memory_gib}Gi", **common},
        allocatable={"cpu": f"{cpu * 1000 - 500}m", "memory": f"{(memory_gib - 4) << 20}Ki", **common},
        labels=labels,
        taints=(taint(tainted, "present"),) if tainted else (),
    )


A100_LABELS = {
    "node.kubernetes.io/instance-type": "p4de.24xlarge",
    **_gpu_labels("NVIDIA-A100-SXM4-80GB", "ampere", 81920, "8.0"),
}
A100 = _machine(96, 1152, {"nvidia.com/gpu": "8"}, A100_LABELS)

A100_MIG = _machine(
    96,
    1152,
    {"nvidia.com/gpu": "4", "nvidia.com/mig-3g.40gb": "8"},
    {
        **A100_LABELS,
        "nvidia.com/gpu.count": "4",
        "nvidia.com/mig.config": "half-3g.40gb",
        "nvidia.com/mig.config.state": "success",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-3g.40gb.count": "8",
        "nvidia.com/mig-3g.40gb.memory": "40192",
        "nvidia.com/mig-3g.40gb.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb",
    },
)

H100 = _machine(
    192,
    2048,
    {"nvidia.com/gpu": "8"},
    {
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        **_gpu_labels("NVIDIA-H100-80GB-HBM3", "hopper", 81559, "9.0"),
    },
)

TPU_V5E = _machine(
    112,
    192,
    {"google.com/tpu": "4"},
    {
        "node.kubernetes.io/instance-type": "ct5lp-hightpu-4t",
        "cloud.google.com/gke-accelerator-count": "4",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    },
    tainted="google.com/tpu",
)

CPU = _machine(32, 128, {}, {"node.kubernetes.io/instance-type": "e2-standard-32"})
