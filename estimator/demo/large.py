"""Clusters of any size, streamed object by object, for benchmarks.

Three machine types in three zones, one node in ten tainted and one in fifty cordoned; every pod fits where it
runs, so that no node is over-committed and all have some room left.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

from estimator.demo import machines
from estimator.demo.objects import Context, Json, NodeShape, PodShape, node, pod, taint, workload

_BORN = datetime(2026, 1, 1, tzinfo=UTC)
_ZONES = ("us-east1-b", "us-east1-c", "us-east1-d")
_MACHINES = (machines.H100, machines.A100, machines.CPU, machines.H100)
_TAINTED_EVERY, _CORDONED_EVERY = 10, 50
_MAX_PODS_PER_NODE = 110
_GPUS_IN_USE = 6
_TEAMS = 20


def large_cluster(nodes: int, pods_per_node: int, seed: int = 1, *, lean: bool = False) -> Iterator[Json]:
    """The nodes, then the pods, in an order that depends on the arguments alone.

    A pod is about 6 kB of JSON, as in a real cluster, half of it ``managedFields``; a ``lean`` one is about
    1 kB. Raises ValueError for more than 110 pods a node.
    """
    if not 0 <= pods_per_node <= _MAX_PODS_PER_NODE:
        raise ValueError(f"pods_per_node={pods_per_node}: expected 0 to {_MAX_PODS_PER_NODE}")
    ctx = Context(Random(seed), _BORN)
    for n in range(nodes):
        yield node(
            ctx,
            f"node-{n:05}",
            _machine(n),
            zone=_ZONES[n % len(_ZONES)],
            cordoned=n % _CORDONED_EVERY == _CORDONED_EVERY - 1,
            taints=[taint("dedicated", "batch")] if n % _TAINTED_EVERY == _TAINTED_EVERY - 1 else [],
            labels={"pool": f"pool-{n % 8}"},
        )
    owners = [workload(ctx, "ReplicaSet", "apps/v1", f"team-{t}", f"app-{t}", {}) for t in range(_TEAMS)]
    for n in range(nodes):
        has_gpus = _machine(n) is not machines.CPU
        gpus_left = ctx.rng.randint(0, _GPUS_IN_USE) if has_gpus else 0
        for p in range(pods_per_node):
            gpus = min(gpus_left, ctx.rng.choice((0, 1, 1, 2)))
            gpus_left -= gpus
            team = ctx.rng.randrange(_TEAMS)
            made = pod(
                ctx,
                f"team-{team}",
                f"app-{team}-{n:05}-{p:03}",
                _shape(ctx.rng, team, gpus),
                node_name=f"node-{n:05}",
                owner=owners[team],
            )
            if not lean:
                _add_ballast(made)
            yield made


def _machine(n: int) -> NodeShape:
    return _MACHINES[n % len(_MACHINES)]


def _shape(rng: Random, team: int, gpus: int) -> PodShape:
    # 110 pods without GPUs and 6 GPUs' worth of others fit the smallest machine that may get them.
    requests = {"cpu": f"{rng.randrange(50, 250, 50)}m", "memory": f"{rng.randrange(128, 1024, 128)}Mi"}
    if gpus:
        cpu, memory_gib = gpus * rng.randint(2, 6), gpus * rng.randint(16, 64)
        requests = {"cpu": f"{cpu}", "memory": f"{memory_gib}Gi", "nvidia.com/gpu": f"{gpus}"}
    return PodShape(
        requests, labels={"app": f"app-{team}", "pod-template-hash": f"{team:09x}", "tier": "batch"}
    )


def _add_ballast(made: Json) -> None:
    """What every real pod carries and no estimate reads; shared by all pods, so never to be changed."""
    metadata, spec, status = made["metadata"], made["spec"], made["status"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    assert isinstance(status, dict)
    metadata["managedFields"] = _MANAGED_FIELDS
    spec.update(_SPEC)
    spec["containers"][0].update(_CONTAINER)
    status.update(_STATUS)


def _owned(*paths: str) -> Json:
    """Field ownership as ``fieldsV1`` writes it; the steps of a path are apart by spaces."""
    fields: dict[str, object] = {}
    for path in paths:
        level = fields
        for step in path.split():
            below = level.setdefault(f"f:{step}" if not step.startswith("k:") else step, {})
            assert isinstance(below, dict)
            level = below
    return fields


_BORN_TEXT = _BORN.strftime("%Y-%m-%dT%H:%M:%SZ")
_ENV_NAMES = tuple(f"SETTING_{n:02}" for n in range(12))
_MOUNTS = {
    "config": "/etc/app",
    "scratch": "/scratch",
    "kube-api-access-x7k2p": "/var/run/secrets/kubernetes.io/serviceaccount",
}
_MAIN = 'spec containers k:{"name":"main"}'
_MANAGED_FIELDS = [
    {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": _BORN_TEXT,
        "fieldsType": "FieldsV1",
        "fieldsV1": _owned(
            "metadata generateName",
            *(f"metadata labels {label}" for label in ("app", "pod-template-hash", "tier")),
            'metadata ownerReferences k:{"uid":"1f4ad7ab-0b1e-4d6c-9c3e-6f3a5d0a7c11"}',
            *(
                f'{_MAIN} env k:{{"name":"{name}"}} {part}'
                for name in _ENV_NAMES
                for part in ("name", "value")
            ),
            *(
                f"{_MAIN} {part}"
                for part in ("image", "imagePullPolicy", "name", "resources limits", "resources requests")
            ),
            *(f'{_MAIN} volumeMounts k:{{"mountPath":"{path}"}} name' for path in _MOUNTS.values()),
            *(
                f"spec {part}"
                for part in ("dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName")
            ),
            *(f'spec volumes k:{{"name":"{volume}"}} name' for volume in _MOUNTS),
        ),
    },
    {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": _BORN_TEXT,
        "fieldsType": "FieldsV1",
        "subresource": "status",
        "fieldsV1": _owned(
            *(
                f'status conditions k:{{"type":"{condition}"}} {part}'
                for condition in ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
                for part in ("lastProbeTime", "lastTransitionTime", "status", "type")
            ),
            *(
                f"status {part}"
                for part in ("containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "startTime")
            ),
        ),
    },
]
_SPEC: Json = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "securityContext": {},
    "serviceAccount": "default",
    "serviceAccountName": "default",
    "tolerations": [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ],
    "volumes": [{"name": volume, "emptyDir": {}} for volume in _MOUNTS],
}
_CONTAINER: Json = {
    "env": [{"name": name, "value": f"value of {name.lower()}"} for name in _ENV_NAMES],
    "imagePullPolicy": "IfNotPresent",
    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in _MOUNTS.items()],
}
_STATUS: Json = {
    "conditions": [
        {"type": condition, "status": "True", "lastProbeTime": None, "lastTransitionTime": _BORN_TEXT}
        for condition in (
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        )
    ],
    "containerStatuses": [
        {
            "name": "main",
            "containerID": "containerd://" + "5c" * 32,
            "image": "registry.example.com/train:2.4",
            "imageID": "registry.example.com/train@sha256:" + "9e" * 32,
            "ready": True,
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": _BORN_TEXT}},
            "lastState": {},
        }
    ],
    "hostIP": "10.0.0.1",
    "podIP": "10.1.0.1",
    "podIPs": [{"ip": "10.1.0.1"}],
    "startTime": _BORN_TEXT,
}
