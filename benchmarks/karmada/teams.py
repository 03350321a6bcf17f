"""Teams on a real Karmada: a namespace, a policy and a queue each, which share what others leave unused."""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.e2e.objects import FAIRWAY, GPU, POLICIES, STRICT, Obj
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import LOCAL_QUEUE, Workload, policy_of_all

_FLAVOR: Final = "all"
_COMPANY: Final = "company"


async def teams(
    plane: Plane,
    quotas: Mapping[str, int],
    kinds: Sequence[Workload],
    placement: Obj,
    spec: Mapping[str, object],
) -> dict[str, Tenant]:
    """By name. Quotas are in GPUs; all workloads of the kinds of these have the placement.

    ``spec``: more fields of each team's queue.
    """
    client = plane.karmada.client
    await client.post(f"{FAIRWAY}/resourceflavors", _made("ResourceFlavor", _FLAVOR, {}), dict, STRICT)
    await client.post(f"{FAIRWAY}/clusterqueues", _queue(_COMPANY, 0, {}), dict, STRICT)
    made = {name: Tenant(plane, name) for name in quotas}
    for name, team in made.items():
        await team.begin_without_queue()
        await team.queueing("enabled")
        local = _made("LocalQueue", LOCAL_QUEUE, {"clusterQueue": name})
        queue = _queue(name, quotas[name], {"parent": _COMPANY, **spec})
        await client.post(f"{FAIRWAY}/clusterqueues", queue, dict, STRICT)
        await client.post(f"{FAIRWAY}/namespaces/{name}/localqueues", local, dict, STRICT)
        for each in kinds:
            path = f"{POLICIES}/namespaces/{name}/propagationpolicies"
            await client.post(path, policy_of_all(name, each, placement), dict, STRICT)
    return made


def _queue(name: str, gpus: int, spec: Mapping[str, object]) -> Obj:
    flavors = [{"name": _FLAVOR, "resources": [{"name": GPU, "nominalQuota": str(gpus)}]}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    return _made("ClusterQueue", name, {"resourceGroups": groups, **spec})


def _made(kind: str, name: str, spec: Obj) -> Obj:
    return {"apiVersion": "fairway.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
