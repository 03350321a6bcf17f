"""Three sample clusters, each with what makes accelerator capacity hard to count.

``alpha``: A100 nodes partly used, one cut into MIG slices, one whose CPUs ran out before its GPUs; eight GPUs
that somebody forgot, and four of which one is used.
``bravo``: H100 nodes behind taints, some of them cordoned or under maintenance; one GPU fell off its bus, and
one node has no agent.
``charlie``: TPU hosts in slices of a GKE-like node pool, and CPU nodes.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from random import Random

import msgspec

from estimator.demo import agents, machines
from estimator.demo.agents import Load, Sick, node_devices
from estimator.demo.objects import (
    Context,
    Json,
    PodShape,
    node,
    pod,
    pod_template,
    quota,
    taint,
    toleration,
    workload,
)
from fairway.kube.objects import Pod
from fairway.names import QUEUE
from fairway.resources import format_amount, pod_request

GPU, TPU, MIG_3G = "nvidia.com/gpu", "google.com/tpu", "nvidia.com/mig-3g.40gb"
GPU_TOLERATION = toleration(GPU)
TPU_TOLERATION = toleration(TPU)

_TRAIN = PodShape(
    {"cpu": "44", "memory": "500Gi", GPU: "4"},
    init={"cpu": "8", "memory": "64Gi"},
    sidecars=({"cpu": "500m", "memory": "1Gi"},),
    priority_class="training",
    tolerations=(GPU_TOLERATION,),
    labels={"app": "train", QUEUE: "batch"},
)
_TRAIN_WHOLE_NODE = PodShape(
    {"cpu": "88", "memory": "900Gi", GPU: "8"},
    priority_class="training",
    tolerations=(GPU_TOLERATION,),
    labels={"app": "train-8", QUEUE: "large"},
)
_SERVE = PodShape(
    {"cpu": "6", "memory": "48Gi", GPU: "1"}, tolerations=(GPU_TOLERATION,), labels={"app": "serve"}
)
_NOTEBOOK = PodShape(
    {GPU: "1"},
    pod_level={"cpu": "4", "memory": "32Gi"},
    tolerations=(GPU_TOLERATION,),
    image="registry.example.com/lab:4",
    labels={"app": "lab"},
)
_GATEWAY = PodShape(
    {"cpu": "12", "memory": "96Gi", GPU: "8"},
    image="registry.example.com/llm-gateway:7",
    labels={"app": "llm-gateway"},
)
_WEB = PodShape({"cpu": "2", "memory": "4Gi"}, image="registry.example.com/web:3", labels={"app": "web"})
_AGENT = PodShape(
    {"cpu": "100m", "memory": "200Mi"},
    image="registry.example.com/node-agent:1",
    labels={"app": "node-agent"},
)
_TPU_WORKER = PodShape(
    {"cpu": "100", "memory": "160Gi", TPU: "4"}, tolerations=(TPU_TOLERATION,), labels={"app": "tpu-train"}
)


def fleet(now: datetime, seed: int = 1) -> dict[str, list[Json]]:
    """The objects of each cluster by its name; the same arguments give the same objects."""
    return {
        "alpha": _alpha(Context(Random(f"{seed} alpha"), now)),
        "bravo": _bravo(Context(Random(f"{seed} bravo"), now)),
        "charlie": _charlie(Context(Random(f"{seed} charlie"), now)),
    }


def _alpha(ctx: Context) -> list[Json]:
    zones = ("eu-west-1a", "eu-west-1b")
    nodes = [node(ctx, f"a100-{n}", machines.A100, zone=zones[n % 2]) for n in range(6)]
    nodes.append(node(ctx, "a100-mig-0", machines.A100_MIG, zone=zones[0]))
    nodes += [node(ctx, f"cpu-{n}", machines.CPU, zone=zones[n]) for n in range(2)]
    train = _job(ctx, "research", "bert", _TRAIN)
    gateway, gateway_pods = _gateway(ctx)
    cpu_hungry = PodShape({"cpu": "90", "memory": "200Gi", GPU: "4"}, labels={"app": "simulate"})
    sliced = PodShape({"cpu": "2", "memory": "16Gi", MIG_3G: "1"}, labels={"app": "serve-small"})
    pods = [
        # Free GPUs in the end: 4, 2, 0, 0, 1, and 4 that no CPU is left for.
        pod(ctx, "research", "bert-0", _TRAIN, node_name="a100-0", owner=train, age_min=5000),
        pod(ctx, "research", "bert-1", _TRAIN, node_name="a100-1", owner=train, age_min=5000),
        pod(ctx, "serving", "ranker-0", PodShape({"cpu": "8", GPU: "2"}), nominated="a100-1"),
        pod(ctx, "research", "gpt-0", _TRAIN_WHOLE_NODE, node_name="a100-2", age_min=1900),
        pod(ctx, "research", "old-0", _TRAIN_WHOLE_NODE, node_name="a100-3", terminating=True, age_min=7300),
        *(pod(ctx, "notebooks", f"lab-{n}", _NOTEBOOK, node_name="a100-4", age_min=4300) for n in range(7)),
        pod(ctx, "research", "simulate-0", cpu_hungry, node_name="a100-5", age_min=1300),
        pod(ctx, "research", "done-0", _TRAIN_WHOLE_NODE, node_name="a100-5", phase="Succeeded"),
        pod(
            ctx, "serving", "embed-0", PodShape({"cpu": "40", GPU: "4"}), node_name="a100-mig-0", age_min=8700
        ),
        *(pod(ctx, "serving", f"small-{n}", sliced, node_name="a100-mig-0", age_min=8600) for n in range(5)),
        *(pod(ctx, "web", f"web-{n}", _WEB, node_name=f"cpu-{n % 2}") for n in range(9)),
        *_agents(ctx, nodes),
        *gateway_pods,
    ]
    used = _requested(pods, "research")
    limit = quota(ctx, "research", "gpus", {f"requests.{GPU}": "32", "requests.cpu": "400"}, used)
    return [*nodes, *pods, limit, *gateway, *_alpha_agents(ctx, {_name(made): made for made in pods})]


def _alpha_agents(ctx: Context, pods: Mapping[str, Json]) -> Iterable[Json]:
    idle, light, busy = agents.UNUSED, agents.LIGHT, agents.BUSY
    labs = (idle, light, idle, idle, agents.STEADY, light, idle)
    held: dict[str, list[tuple[Json, Iterable[Load]]]] = {
        "a100-0": [(pods["bert-0"], [busy] * 4)],
        "a100-1": [(pods["bert-1"], [busy, busy, busy, agents.HOT])],
        "a100-2": [(pods["gpt-0"], [agents.FORGOTTEN] * 8)],
        "a100-3": [(pods["old-0"], [agents.STEADY] * 8)],
        "a100-4": [(pods[f"lab-{n}"], [load]) for n, load in enumerate(labs)],
        "a100-5": [(pods["simulate-0"], [busy, agents.QUIET, agents.QUIET, agents.QUIET])],
    }
    for node_name, holding in held.items():
        yield node_devices(ctx, node_name, "NVIDIA A100-SXM4-80GB", 80, holding)
    small = [(pods[f"small-{n}"], agents.SMALL) for n in range(5)]
    embed = [(pods["embed-0"], [light] * 4)]
    yield node_devices(ctx, "a100-mig-0", "NVIDIA A100-SXM4-80GB", 80, embed, devices=4, instances=small)


def _gateway(ctx: Context) -> tuple[list[Json], list[Json]]:
    """A Deployment in the middle of a rollout: three pods stuck for ten minutes, one for a moment."""
    shape = _GATEWAY.labelled(pod_template_hash="5d9c7b6f4")
    before = PodShape(_GATEWAY.requests, "registry.example.com/llm-gateway:6", labels=_GATEWAY.labels)
    deployment = workload(
        ctx,
        "Deployment",
        "apps/v1",
        "serving",
        "llm-gateway",
        {"replicas": 4, "template": pod_template(_GATEWAY)},
    )
    current, old = (
        workload(
            ctx,
            "ReplicaSet",
            "apps/v1",
            "serving",
            f"llm-gateway-{template.labels['pod-template-hash']}",
            {"replicas": replicas, "template": pod_template(template)},
            owner=deployment,
        )
        for replicas, template in ((4, shape), (0, before.labelled(pod_template_hash="7f8d9c6b5")))
    )
    pods = [
        pod(ctx, "serving", f"llm-gateway-5d9c7b6f4-{n}", shape, owner=current, unschedulable_for_min=minutes)
        for n, minutes in enumerate((10, 10.5, 11, 1))
    ]
    return [deployment, current, old], pods


def _bravo(ctx: Context) -> list[Json]:
    zones = ("us-east1-b", "us-east1-c", "us-east1-d")
    reserved = taint(GPU, "present")
    maintenance = taint("example.com/maintenance", "firmware", "NoExecute")
    taints = [[reserved], [reserved], [reserved], [reserved], [reserved, maintenance], [reserved], [], []]
    nodes = [
        node(ctx, f"h100-{n}", machines.H100, zone=zones[n % 3], taints=own, cordoned=n == 5)
        for n, own in enumerate(taints)
    ]
    nodes += [node(ctx, f"cpu-{n}", machines.CPU, zone=zones[n]) for n in range(3)]
    pretrain = _job(ctx, "training", "pretrain", _TRAIN_WHOLE_NODE)
    pods = [
        # Free GPUs in the end: 8, 8, 0, 5, (8), (8) behind the taint, 8 and 3 in the open.
        pod(
            ctx, "training", "pretrain-0", _TRAIN_WHOLE_NODE, node_name="h100-2", owner=pretrain, age_min=4400
        ),
        *(
            pod(
                ctx,
                "training",
                f"pretrain-{n}",
                _TRAIN_WHOLE_NODE,
                owner=pretrain,
                unschedulable_for_min=10 + n,
            )
            for n in (1, 2)
        ),
        *(pod(ctx, "serving", f"chat-{n}", _SERVE, node_name="h100-3", age_min=7200) for n in range(3)),
        *(pod(ctx, "notebooks", f"lab-{n}", _NOTEBOOK, node_name="h100-7", age_min=2900) for n in range(5)),
        *(pod(ctx, "web", f"web-{n}", _WEB, node_name=f"cpu-{n % 3}") for n in range(12)),
        *_agents(ctx, nodes),
    ]
    return [*nodes, *pods, *_bravo_agents(ctx, {_name(made): made for made in pods})]


def _bravo_agents(ctx: Context, pods: Mapping[str, Json]) -> Iterable[Json]:
    held: dict[str, list[tuple[Json, Iterable[Load]]]] = {
        "h100-2": [(pods["pretrain-0"], [agents.BUSY] * 8)],
        "h100-3": [(pods[f"chat-{n}"], [agents.LIGHT]) for n in range(3)],
    }
    fell_off = Sick("Lost", "Xid79", "the GPU has fallen off the bus", 35)
    retired = Sick("Degraded", "RowRemapPending", "a bad memory row waits for a reset to be replaced", 2900)
    sick = {"h100-2": {6: fell_off}, "h100-6": {3: retired}}
    # None on h100-7.
    for name in (f"h100-{n}" for n in range(7)):
        yield node_devices(ctx, name, "NVIDIA H100 80GB HBM3", 80, held.get(name, ()), sick=sick.get(name))


def _charlie(ctx: Context) -> list[Json]:
    zone = "us-west4-a"
    slices = [
        node(
            ctx,
            f"gke-v5e-{pool}-{n}",
            machines.TPU_V5E,
            zone=zone,
            labels={"cloud.google.com/gke-nodepool": f"v5e-{pool}"},
        )
        for pool in ("a", "b")
        for n in range(4)
    ]
    cpus = [
        node(ctx, f"gke-cpu-{n}", machines.CPU, zone=zone, labels={"cloud.google.com/gke-nodepool": "cpu"})
        for n in range(3)
    ]
    gemma = _job(ctx, "tpu", "gemma", _TPU_WORKER)
    pods = [
        *(
            pod(ctx, "tpu", f"gemma-{n}", _TPU_WORKER, node_name=f"gke-v5e-a-{n}", owner=gemma, age_min=3000)
            for n in range(4)
        ),
        *(pod(ctx, "web", f"web-{n}", _WEB, node_name=f"gke-cpu-{n % 3}") for n in range(15)),
        *_agents(ctx, [*slices, *cpus]),
    ]
    return [*slices, *cpus, *pods]


def _job(ctx: Context, namespace: str, name: str, shape: PodShape) -> Json:
    return workload(ctx, "Job", "batch/v1", namespace, name, {"template": pod_template(shape)})


def _name(made: Json) -> str:
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _agents(ctx: Context, nodes: Iterable[Json]) -> Iterable[Json]:
    owner = workload(
        ctx, "DaemonSet", "apps/v1", "kube-system", "node-agent", {"template": pod_template(_AGENT)}
    )
    for number, made in enumerate(nodes):
        yield pod(ctx, "kube-system", f"node-agent-{number}", _AGENT, node_name=_name(made), owner=owner)


def _requested(pods: Iterable[Json], namespace: str) -> dict[str, str]:
    """What a quota controller would have counted."""
    total: dict[str, int] = {}
    for made in pods:
        read = msgspec.convert(made, Pod)
        if read.metadata.namespace == namespace and read.status.phase not in ("Succeeded", "Failed"):
            for name, amount in pod_request(read).items():
                total[name] = total.get(name, 0) + amount
    return {f"requests.{name}": format_amount(name, amount) for name, amount in total.items()}
