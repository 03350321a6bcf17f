"""Admission webhooks for tests: they answer as they are told, and remember what they were asked."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from tests.certs import Authority

Obj = dict[str, Any]
Answer = Callable[[Obj], Obj]
"""From the request of an AdmissionReview to its response, without the uid."""


def allow(request: Obj) -> Obj:
    return {"allowed": True}


def patching(*operations: Obj) -> Answer:
    patch = base64.b64encode(msgspec.json.encode(operations)).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def denying(**status: object) -> Answer:
    return lambda request: {"allowed": False, "status": status}


class Webhook:
    """``requests`` lists what it was asked; ``answer`` may be replaced; ``is_silent``: it does not answer."""

    def __init__(self, url: str, ca: bytes) -> None:
        self.url, self._ca = url, ca
        self.answer: Answer = allow
        self.is_silent = False
        self.requests: list[Obj] = []

    def entry(self, name: str, namespace: str, **more: object) -> Obj:
        """An entry of a MutatingWebhookConfiguration, for the widgets of one namespace."""
        rule = {
            "operations": ["CREATE", "UPDATE"],
            "apiGroups": ["test.fairway.dev"],
            "apiVersions": ["v1"],
            "resources": ["widgets"],
        }
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": self.url, "caBundle": base64.b64encode(self._ca).decode()},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail",
        } | more

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        review = msgspec.json.decode(await request.read())
        self.requests.append(review["request"])
        if self.is_silent:
            await asyncio.Event().wait()
        response = self.answer(review["request"]) | {"uid": review["request"]["uid"]}
        answer = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        return web.json_response(answer)


@asynccontextmanager
async def webhook(directory: Path) -> AsyncIterator[Webhook]:
    """Serve one on loopback."""
    authority = Authority("webhook-ca")
    certificate, key = authority.issue("webhook").write(directory, "webhook")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    hook = Webhook("", authority.pem)
    server = web.Server(hook.handle, access_log=None, handler_cancellation=True)
    async with await asyncio.get_running_loop().create_server(
        server, "127.0.0.1", 0, ssl=context
    ) as listening:
        hook.url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mutate"
        yield hook
        for connection in server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await server.shutdown(0)
