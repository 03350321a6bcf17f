"""The host cluster as it would look if its pods ran: a ready Deployment for each program, and its Secrets.

Karmada's Deployments are the command lines of its processes; ours are those of `manifests`, where the two
example estimators become those of the members.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from tests.e2e.objects import MERGE, Obj
from tests.e2e.plane import NODES, Plane

RELEASE: Final = "v1.17.3"
"""A release in which the gates of the processes are all that there are to set: 1.18 has one more."""
KARMADA: Final = "karmada-system"
OURS: Final = "fairway-system"
PROGRAMS: Final = (
    "karmada-scheduler",
    "karmada-controller-manager",
    "karmada-webhook",
    "karmada-aggregated-apiserver",
)
_EXAMPLES: Final = dict(zip(("member1", "member2"), NODES, strict=True))
_CLIENT: Final = "karmada-scheduler-client"
_METADATA: Final = ("name", "namespace", "labels")


def deployment(namespace: str, name: str) -> str:
    """Its path on the host."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def estimator(cluster: str) -> str:
    """The path of a cluster's estimator's Deployment."""
    return deployment(KARMADA, f"karmada-scheduler-estimator-{cluster}")


def secret(namespace: str, name: str) -> str:
    """Its path on the host."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


async def begin(plane: Plane) -> None:
    """Show everything that runs; `end` takes back what is not of the manifests."""
    client = plane.host.api.client
    for path, data in _secrets(plane).items():
        collection, _, name = path.rpartition("/")
        await client.post(collection, {"metadata": {"name": name}, "data": data}, dict)
    for name in PROGRAMS:
        made = _of_process(name, plane.programs.named(name).command, plane.pki.folder)
        await client.post(deployment(KARMADA, "").rstrip("/"), made, dict)
        await _show_ready(client, deployment(KARMADA, name))
    for example, cluster in _EXAMPLES.items():
        shown = await client.get_json(estimator(example), dict)
        made = _fresh(json.loads(json.dumps(shown).replace(example, cluster)))
        await client.delete(estimator(example), dict)
        await client.post(deployment(KARMADA, "").rstrip("/"), made, dict)
        await _show_ready(client, estimator(cluster))
    for name in ("fairway-webhook", "fairway-dispatcher"):
        await _show_ready(client, deployment(OURS, name))


async def end(plane: Plane) -> None:
    """The host as the manifests have it."""
    client = plane.host.api.client
    deployments = [*(deployment(KARMADA, name) for name in PROGRAMS), *map(estimator, NODES)]
    for path in (*deployments, *_secrets(plane)):
        with suppress(NotFound):
            await client.delete(path, dict)
    await plane.host.install()


def _of_process(name: str, command: Sequence[str], files: Path) -> Obj:
    """A Deployment that would run this command, with the files that it names from a Secret."""
    program, *flags = command
    container = {
        "name": name,
        "image": f"docker.io/karmada/{name}:{RELEASE}",
        "command": [f"/bin/{Path(program).name}", *flags],
        "volumeMounts": [{"name": "pki", "mountPath": str(files), "readOnly": True}],
    }
    labels = {"app": name}
    pod = {"containers": [container], "volumes": [{"name": "pki", "secret": {"secretName": _CLIENT}}]}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _secrets(plane: Plane) -> Mapping[str, Mapping[str, str]]:
    """All that is mounted, by path, with the files that the processes really have."""
    pki, identities = plane.pki, plane.fairway.factory.kubeconfigs
    files = {
        secret(KARMADA, _CLIENT): {name: pki.file(name) for name in ("ca.crt", "client.crt", "client.key")},
        secret(KARMADA, "karmada-cert"): {
            "ca.crt": pki.ca,
            "karmada.crt": pki.file("estimator-a.crt"),
            "karmada.key": pki.file("estimator-a.key"),
        },
        secret(OURS, "fairway-estimator-client"): {
            "ca.crt": pki.ca,
            "tls.crt": pki.file("client.crt"),
            "tls.key": pki.file("client.key"),
        },
        secret(KARMADA, "fairway-karmada-estimator"): {"kubeconfig": identities["fairway-estimator"]},
        secret(OURS, "fairway-karmada-webhook"): {"kubeconfig": identities["fairway-webhook"]},
        secret(OURS, "fairway-karmada-dispatcher"): {"kubeconfig": identities["fairway-dispatcher"]},
        **{
            secret(KARMADA, f"{name}-kubeconfig"): {f"{name}-kubeconfig": plane.members[name].api.kubeconfig}
            for name in NODES
        },
    }
    return {
        path: {key: base64.b64encode(file.read_bytes()).decode() for key, file in of.items()}
        for path, of in files.items()
    }


def _fresh(shown: Obj) -> Obj:
    """An object as it would be made again."""
    kept = {name: shown["metadata"][name] for name in _METADATA if name in shown["metadata"]}
    return {**{key: value for key, value in shown.items() if key != "status"}, "metadata": kept}


async def _show_ready(client: KubeClient, path: str) -> None:
    """What a kubelet and the controller of Deployments would come to."""
    replicas = (await client.get_json(path, dict))["spec"]["replicas"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    status = {"status": dict.fromkeys(counts, replicas)}
    await client.patch(f"{path}/status", status, dict, content_type=MERGE)
