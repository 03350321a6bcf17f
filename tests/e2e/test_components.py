"""Workloads of several components, which Karmada places whole and only if its gate for them is on."""

import pytest

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from tests.e2e.objects import MERGE, Obj
from tests.e2e.tenant import Tenant
from tests.e2e.watching import Watched
from tests.e2e.workloads import Workload, job_set, volcano_job, whole


class Anything(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


NOW = "2026-11-22T00:00:00Z"
# How each kind says that it has ended.
WORKLOADS: list[tuple[Workload, dict[str, int], Obj]] = [
    (
        job_set("train", 3),
        {"driver": 1, "workers": 3},
        {
            "conditions": [
                {
                    "type": "Completed",
                    "status": "True",
                    "reason": "AllJobsCompleted",
                    "message": "jobset completed successfully",
                    "lastTransitionTime": NOW,
                }
            ],
            "terminalState": "Completed",
        },
    ),
    (
        volcano_job("train", 3),
        {"master": 1, "worker": 3},
        {"state": {"phase": "Completed", "lastTransitionTime": NOW}, "succeeded": 4},
    ),
]


@pytest.mark.parametrize(("workload", "components", "ended"), WORKLOADS, ids=["JobSet", "VolcanoJob"])
async def test_life(tenant: Tenant, workload: Workload, components: dict[str, int], ended: Obj) -> None:
    """Held, released, placed in one cluster, ended there; then the next one has the quota."""
    if not tenant.plane.assets.workload_schemas:
        pytest.skip("KARMADA_ASSETS has no workload-crds; see docs/e2e.md")
    await tenant.quota(4)
    key = await tenant.submit(workload, whole("a", "b"))
    born = await tenant.born_held(key)
    assert {each.name: each.replicas for each in born.spec.components or ()} == components
    (cluster,) = await tenant.placed(key)

    following = volcano_job("next", 2)
    following_key = await tenant.submit(following, whole("a", "b"))
    await tenant.born_held(following_key)
    await tenant.waits_for(following, "WaitingForQuota")

    client = tenant.plane.members[cluster].api.client
    kind = ResourceKind(workload.plural, f"/apis/{workload.group_version}/{workload.plural}", Anything)
    there = Watched(kind, tenant.plane.changes)
    there.start(client)
    try:
        await there.until_of(
            f"{tenant.namespace}/{workload.name}", lambda _: True, f"{workload.kind} in {cluster}"
        )
    finally:
        await there.stop()
    path = f"{workload.path(tenant.namespace)}/{workload.name}/status"
    await client.patch(path, {"status": ended}, dict, content_type=MERGE)
    await tenant.placed(following_key)
    assert tenant.admissions(key) == tenant.admissions(following_key) == 1
