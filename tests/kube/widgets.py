"""A custom resource of our own, on any server: namespaced, with a status subresource, of any shape."""

import asyncio
import itertools
from contextlib import suppress
from typing import Any

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, NotFound, TooManyRequests
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind

Obj = dict[str, Any]
GROUP, VERSION = "test.fairway.dev", "v1"
API_VERSION = f"{GROUP}/{VERSION}"
_NUMBERS = itertools.count()


class WidgetSpec(KubeStruct, frozen=True):
    size: int = 0
    color: str = ""


class WidgetStatus(KubeStruct, frozen=True):
    phase: str = ""


class Widget(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


WIDGETS = ResourceKind("widgets", f"/apis/{API_VERSION}/widgets", Widget)

_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}


def widget(name: str, **spec: object) -> Obj:
    metadata = {"name": name}
    return {"apiVersion": API_VERSION, "kind": "Widget", "metadata": metadata, "spec": spec}


async def serve_widgets(client: KubeClient) -> str:
    """Define them if they are not defined yet; answers a new namespace."""
    with suppress(Conflict):
        await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, Obj)
    async with asyncio.timeout(20):
        # Another program is getting ready: there is nothing to await but time.
        while not await _served(client):  # noqa: ASYNC110 - a server tells nobody
            await asyncio.sleep(0.05)
    name = f"test-widgets-{next(_NUMBERS)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.post("/api/v1/namespaces", namespace, Obj)
    return name


async def _served(client: KubeClient) -> bool:
    try:
        await client.get_bytes(WIDGETS.path)
    except (NotFound, TooManyRequests):
        return False
    return True


async def create(client: KubeClient, namespace: str, obj: Obj) -> Widget:
    return await client.post(f"/apis/{API_VERSION}/namespaces/{namespace}/widgets", obj, Widget)
