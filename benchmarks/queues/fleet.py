"""A full fleet on the fake API server, as a process of its own: ``python -m benchmarks.queues.fleet``.

1,000 ClusterQueues in 10 trees of depth 3, each with a workload that uses up its quota and with its share of
all that waits: 3 to 20 shapes a queue, a Job for each workload, as Karmada's detector and our webhook leave
them. One queue more, `PROBE`, has room; its namespace holds one workload from the start. Prints the server's
URL once everything is loaded. Ends when it is terminated. Nothing is drawn anew: it is the same fleet always.
"""

import argparse
import asyncio
import gc
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

from benchmarks.queues import objects
from benchmarks.queues.objects import BINDINGS, FLAVOR, MEMBER, ROOT, Json
from fairway.names import ADMISSION, QUEUE
from queue_dispatcher.bindings.record import AdmissionRecord, write_record
from sandbox.fakeapi.server import FakeApi

TREES, DEPARTMENTS = 10, 10
PROBE = "probe"
JOBS = "/apis/batch/v1/jobs"
_GPU = "nvidia.com/gpu"
_QUOTA = 8
_CREATED_S = 1_790_000_000
Binding = dict[str, Any]
"""A binding that is still to be changed."""


def queue_names(count: int) -> list[str]:
    """Names of so many queues; namespace and LocalQueue are named as the queue."""
    return [f"queue-{number % TREES}-{number // TREES % DEPARTMENTS}-{number}" for number in range(count)]


def cluster_queues(count: int) -> Iterator[Json]:
    """The trees, their queues, and the one that has room."""
    for tree in range(TREES):
        yield _named("ClusterQueue", f"tree-{tree}", {})
        for department in range(DEPARTMENTS):
            yield _named("ClusterQueue", f"dept-{tree}-{department}", {"parent": f"tree-{tree}"})
    for name in queue_names(count):
        _, tree_number, department_number, _ = name.split("-")
        yield _queue(name, f"dept-{tree_number}-{department_number}", _QUOTA)
    yield _queue(PROBE, "", 1_000_000)


def local_queues(count: int) -> Iterator[Json]:
    """One for each queue."""
    return (objects.local_queue(name) for name in (*queue_names(count), PROBE))


def jobs(queues: int, bindings: int) -> Iterator[Json]:
    """The workloads' own objects."""
    for queue, name, gpus in _workloads(queues, bindings):
        yield job(queue, name, gpus)


def bindings(queues: int, pending: int) -> Iterator[Json]:
    """Those that run, those that wait, and the one that can start at once."""
    created_s = Random(2)
    for number, (queue, name, gpus) in enumerate(_workloads(queues, pending)):
        waiting = binding(queue, name, gpus, number)
        stamp = _CREATED_S + created_s.randrange(86_400)
        waiting["metadata"] |= {"creationTimestamp": _time(stamp)}
        if name.startswith("running"):
            _run(waiting, queue, number, gpus)
        yield waiting


def job(queue: str, name: str, gpus: int) -> Json:
    """A Job of one pod."""
    limits = {_GPU: str(gpus), "cpu": str(4 * gpus), "memory": f"{32 * gpus}Gi"}
    container = {"name": "main", "image": "registry.example.com/train:1", "resources": {"limits": limits}}
    pod: Json = {"containers": [container], "restartPolicy": "Never"}
    labels = {QUEUE: queue, "app": name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": queue, "name": name, "labels": labels},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def binding(queue: str, name: str, gpus: int, number: int) -> Binding:
    """The Job's binding, held."""
    request = {_GPU: str(gpus), "cpu": str(4 * gpus), "memory": f"{32 * gpus}Gi"}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "namespace": queue,
            "name": f"{name}-job",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "labels": {"propagationpolicy.karmada.io/permanent-id": f"10000000-0000-4000-8000-{number:012d}"},
            "annotations": {
                "propagationpolicy.karmada.io/name": "everything",
                "propagationpolicy.karmada.io/namespace": queue,
            },
        },
        "spec": {
            "resource": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": queue,
                "name": name,
                "uid": f"20000000-0000-4000-8000-{number:012d}",
                "resourceVersion": str(number),
            },
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": request},
            "placement": {
                "clusterAffinity": {"clusterNames": [MEMBER]},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Aggregated",
                },
            },
            "schedulerName": "default-scheduler",
            "conflictResolution": "Abort",
            "suspension": {"scheduling": True},
        },
    }


def _workloads(queues: int, pending: int) -> Iterator[tuple[str, str, int]]:
    """Queue, name and GPUs of each."""
    rng = Random(1)
    for queue in queue_names(queues):
        sizes = [rng.randint(1, _QUOTA) for _ in range(rng.randint(3, 20))]
        yield queue, "running", _QUOTA
        for number in range(pending // queues):
            yield queue, f"train-{number:05d}", rng.choice(sizes)
    yield PROBE, "first", 1


def _run(held: Binding, queue: str, number: int, gpus: int) -> None:
    """Make it one that was admitted and placed."""
    uid = f"00000000-0000-4000-8000-{number:012d}"
    admitted_ms = 1000 * _CREATED_S
    amounts = ((_GPU, gpus), ("cpu", 4000 * gpus), ("memory", 32 * gpus << 30))
    record = AdmissionRecord(
        id=uid,
        queue=queue,
        local_queue=queue,
        service_class="",
        priority=0,
        enqueued_ms=admitted_ms,
        admitted_ms=admitted_ms,
        replicas=1,
        copies=1,
        requests=tuple(sorted(amounts)),
        flavors=((_GPU, (FLAVOR,)),),
    )
    held["metadata"]["annotations"] = {ADMISSION: write_record(record)}
    held["spec"] |= {"suspension": {"scheduling": False}, "clusters": [{"name": MEMBER, "replicas": 1}]}


def _queue(name: str, parent: str, gpus: int) -> Json:
    quota: Json = {"name": _GPU, "nominalQuota": str(gpus)}
    group = {"coveredResources": [_GPU], "flavors": [{"name": FLAVOR, "resources": [quota]}]}
    spec: Json = {"queueingStrategy": "BestEffortFIFO", "resourceGroups": [group]}
    return _named("ClusterQueue", name, {"parent": parent, **spec} if parent else spec)


def _flavor() -> Json:
    capacity: Json = {"type": "Static", "resources": {_GPU: "10000000"}}
    return _named("ResourceFlavor", FLAVOR, {"clusterNames": [MEMBER], "capacityPolicy": capacity})


def _named(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": ROOT.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name}, "spec": spec}


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


async def serve(queues: int, pending: int) -> None:
    """Load and serve until cancelled."""
    # A collection over so many objects would pause this server, and the dispatcher would get the blame.
    gc.disable()
    async with FakeApi(keeps_requests=False) as api:
        names = (*queue_names(queues), PROBE)
        cluster, status = objects.member()
        for path, loaded in (
            ("/api/v1/namespaces", (objects.namespace(name) for name in names)),
            ("/apis/cluster.karmada.io/v1alpha1/clusters", [{**cluster, "status": status}]),
            (f"{ROOT}/resourceflavors", [_flavor()]),
            (f"{ROOT}/clusterqueues", cluster_queues(queues)),
            (f"{ROOT}/localqueues", local_queues(queues)),
            (JOBS, jobs(queues, pending)),
            (f"{BINDINGS}/resourcebindings", bindings(queues, pending)),
        ):
            api.load(path, loaded)
        print(api.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a fake Karmada API server with a full fleet")
    parser.add_argument("--queues", type=int, required=True)
    parser.add_argument("--pending", type=int, required=True)
    asked = parser.parse_args()
    asyncio.run(serve(asked.queues, asked.pending))
