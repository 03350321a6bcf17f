"""What JobSet's controller would do in a member cluster: a Job for each replicated job, nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from tests.e2e.member import Member
from tests.e2e.objects import Obj
from tests.e2e.watching import Changes, Watched
from tests.e2e.workloads import Workload

_GROUP_VERSION = "jobset.x-k8s.io/v1alpha2"


class JobTemplate(KubeStruct, frozen=True):
    """What a Job is made of."""

    spec: Obj | None = None


class ReplicatedJob(KubeStruct, frozen=True):
    """One of the Jobs; as many as it has replicas are not made, but one."""

    name: str = ""
    template: JobTemplate = JobTemplate()


class Spec(KubeStruct, frozen=True):
    """What it is made of."""

    replicated_jobs: list[ReplicatedJob] | None = None


class JobSet(KubeStruct, frozen=True):
    """As it is read."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()


_JOB_SETS = ResourceKind("jobsets", f"/apis/{_GROUP_VERSION}/jobsets", JobSet)


def jobs_of(workload: Workload) -> list[str]:
    """The names of its Jobs in a member cluster: its own, or those that are made of a JobSet."""
    if workload.kind == "Job":
        return [workload.name]
    return [f"{workload.name}-{each['name']}-0" for each in workload.body["spec"]["replicatedJobs"]]


@asynccontextmanager
async def controlled(members: Iterable[Member], changes: Changes) -> AsyncIterator[None]:
    """Make the Jobs of all JobSets of these clusters, as they come."""
    watched: list[Watched[JobSet]] = []
    made: list[asyncio.Task[None]] = []
    for member in members:
        due: asyncio.Queue[JobSet] = asyncio.Queue()
        job_sets = Watched(_JOB_SETS, changes)
        job_sets.listeners.append(due.put_nowait)
        job_sets.start(member.api.client)
        watched.append(job_sets)
        made.append(asyncio.create_task(_make(member.api.client, due)))
    try:
        yield
    finally:
        for task in made:
            task.cancel()
        for job_sets in watched:
            await job_sets.stop()


async def _make(client: KubeClient, due: asyncio.Queue[JobSet]) -> None:
    while True:
        job_set = await due.get()
        metadata = job_set.metadata
        owner = {
            "apiVersion": _GROUP_VERSION,
            "kind": "JobSet",
            "name": metadata.name,
            "uid": metadata.uid,
            "controller": True,
        }
        for each in job_set.spec.replicated_jobs or ():
            named = {"name": f"{metadata.name}-{each.name}-0", "ownerReferences": [owner]}
            body = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": named,
                "spec": each.template.spec,
            }
            # Every version of the JobSet comes by here.
            with suppress(Conflict):
                await client.post(f"/apis/batch/v1/namespaces/{metadata.namespace}/jobs", body, dict)
