"""Keeps our MutatingWebhookConfiguration on karmada-apiserver as it should be, whoever edits or deletes it.

It is read every ten seconds, by every replica: one small read, and no watch, so that two replicas that
disagree (in the middle of an upgrade) write in turns and not in a storm. The whole list of entries is
replaced, because an entry or a condition that somebody adds may switch ours off. Labels and annotations are
left alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, KubeError, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.patching import Patched, Preconditions, merge_patch
from webhook.configuration import API_VERSION, COLLECTION, KIND, FailurePolicy, Webhook, webhooks
from webhook.scope import Scope

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 10.0


class Look(StrEnum):
    """What became of one look at the configuration."""

    RIGHT = "right"
    CREATED = "created"
    REPAIRED = "repaired"
    OVERTAKEN = "overtaken"
    FAILED = "failed"


class _Existing(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to register: under which name, for which scope, at which URL (without a path), how strictly."""

    name: str
    scope: Scope
    url: str
    failure_policy: FailurePolicy


class Registration:
    """Looks and repairs until cancelled.

    ``authorities`` gives the PEM that callers should trust now. ``on_look`` is told what became of each look.
    """

    def __init__(
        self,
        client: KubeClient,
        wanted: Wanted,
        authorities: Callable[[], bytes | None],
        on_look: Callable[[Look], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._authorities = authorities
        self._on_look = on_look
        self._sleep = sleep
        self._problem = ""

    async def run(self) -> None:
        """Keep it right until cancelled."""
        while True:
            try:
                look = await self.look()
            except Exception:  # The root of a task: one bad look must not end the webhook.
                logger.exception("webhook configuration not checked")
                look = Look.FAILED
            self._on_look(look)
            await self._sleep(LOOK_EVERY_S)

    async def look(self) -> Look:
        """Read it, and create or repair it where that is needed."""
        try:
            look = await self._reconcile()
        except KubeError as error:
            if str(error) != self._problem:
                logger.error("webhook configuration not checked: %s", error)
            self._problem = str(error)
            return Look.FAILED
        self._problem = ""
        if look in (Look.CREATED, Look.REPAIRED):
            log = logger.info if look is Look.CREATED else logger.warning
            log("webhook configuration %s", look, extra={"configuration": self._wanted.name})
        return look

    async def _reconcile(self) -> Look:
        wanted = self._wanted
        entries = webhooks(wanted.scope, wanted.url, self._authorities(), wanted.failure_policy)
        path = f"{COLLECTION}/{wanted.name}"
        try:
            existing = await self._client.get_json(path, _Existing)
        except NotFound:
            return await self._create(entries)
        if existing.webhooks == entries:
            return Look.RIGHT
        when = Preconditions.exactly(existing.metadata)
        written = await merge_patch(self._client, path, {"webhooks": entries}, msgspec.Raw, when)
        return Look.REPAIRED if isinstance(written, Patched) else Look.OVERTAKEN

    async def _create(self, entries: tuple[Webhook, ...]) -> Look:
        obj = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self._wanted.name},
            "webhooks": entries,
        }
        try:
            await self._client.post(COLLECTION, obj, msgspec.Raw)
        except Conflict:
            return Look.OVERTAKEN
        return Look.CREATED
