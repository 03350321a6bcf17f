"""`fairway uninstall` on the plane, and what it leaves."""

import asyncio
import sys

from tests.e2e.kubectl import kubectl
from tests.e2e.plane import Plane

_WITHIN_S = 240.0
# What may be left; queues and their kinds stay unless asked otherwise.
_EVERYWHERE = (
    "namespaces,serviceaccounts,secrets,configmaps,clusterroles,clusterrolebindings,roles,rolebindings,leases"
)
_PROGRAMS = "deployments,services,poddisruptionbudgets,networkpolicies"
_KARMADAS = (
    "mutatingwebhookconfigurations,mutatingadmissionpolicies,mutatingadmissionpolicybindings,"
    "resourceinterpretercustomizations"
)


async def uninstall(plane: Plane) -> str:
    """What it prints, while a host runs what its Deployments say."""
    members = (f"--member={name}={each.api.kubeconfig}" for name, each in plane.members.items())
    pipe = asyncio.subprocess
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "admin.main", "uninstall"),
        *(f"--host={plane.host.api.kubeconfig}", f"--karmada={plane.karmada.api.kubeconfig}", *members),
        stdout=pipe.PIPE,
        stderr=pipe.STDOUT,
    )
    stopping = asyncio.create_task(plane.fairway.until_deleted())
    try:
        async with asyncio.timeout(_WITHIN_S):
            printed, _ = await process.communicate()
        text = printed.decode()
        assert process.returncode == 0, text
        async with asyncio.timeout(_WITHIN_S):
            await stopping
        return text
    finally:
        stopping.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def left(plane: Plane) -> list[str]:
    """Objects with a name or a label of ours, by API server."""
    found = []
    servers = [
        (plane.host.api, f"{_EVERYWHERE},{_PROGRAMS}"),
        (plane.karmada.api, f"{_EVERYWHERE},{_KARMADAS}"),
        *((member.api, _EVERYWHERE) for member in plane.members.values()),
    ]
    for api, kinds in servers:
        everything = ("get", kinds, "-A", "--ignore-not-found", "-o=name")
        named = await kubectl(api, *everything)
        labelled = await kubectl(api, *everything, "-l=app.kubernetes.io/part-of=fairway")
        ours = {name for name in named.split() if "fairway" in name} | set(labelled.split())
        found += [f"{api.name}: {name}" for name in sorted(ours)]
    return found
