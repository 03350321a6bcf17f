"""Keeps our MutatingWebhookConfiguration on karmada-apiserver as it should be, whoever edits or deletes it.

It is read every ten seconds, by every replica: one small read, and no watch, so that two replicas that
disagree (in the middle of an upgrade) write in turns and not in a storm. The whole list of entries is
replaced, because an entry or a condition that somebody adds may switch ours off. Labels and annotations are
left alone.

Where that is not allowed, or an API server is too old for it, reviews are served all the same: `problem` says
why nobody may be asking.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, Denied, KubeError, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.patching import Patched, merge_patch
from fairway.kube.preconditions import Preconditions
from fairway.scope import Scope
from webhook.configuration import API_VERSION, COLLECTION, KIND, FailurePolicy, Webhook, webhooks

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 10.0
_NEEDS: Final = "1.30"
"""The first Kubernetes with matchConditions in v1 of its stable API."""


class Look(StrEnum):
    """What became of one look at the configuration."""

    RIGHT = "right"
    CREATED = "created"
    REPAIRED = "repaired"
    OVERTAKEN = "overtaken"
    CUT_SHORT = "cut-short"
    """The API server does not keep all of it: it is too old."""
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
        self.problem = "not looked at yet"
        """Why it is not as it should be, as far as is known; empty when it is."""
        self._said = ""
        # What was to be kept, and what the server made of it.
        self._cut: tuple[tuple[Webhook, ...], tuple[Webhook, ...]] | None = None

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
            # What is not allowed has been told by the client.
            self._say("" if isinstance(error, Denied) else f"webhook configuration not checked: {error}")
            self.problem = str(error)
            return Look.FAILED
        if look is Look.CUT_SHORT:
            told = self._what_was_cut()
            self._say(told)
            self.problem = told
            return look
        self.problem = self._said = ""
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
        if self._cut == (entries, existing.webhooks):
            return Look.CUT_SHORT
        when = Preconditions.exactly(existing.metadata)
        written = await merge_patch(self._client, path, {"webhooks": entries}, _Existing, when)
        if not isinstance(written, Patched):
            return Look.OVERTAKEN
        return self._kept(entries, written.object) or Look.REPAIRED

    async def _create(self, entries: tuple[Webhook, ...]) -> Look:
        obj = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self._wanted.name},
            "webhooks": entries,
        }
        try:
            created = await self._client.post(COLLECTION, obj, _Existing)
        except Conflict:
            return Look.OVERTAKEN
        except NotFound as error:
            raise KubeError(
                f"{self._client.server}: {COLLECTION} is not served: expected Kubernetes {_NEEDS} or newer "
                "there; until then nothing is held"
            ) from error
        return self._kept(entries, created) or Look.CREATED

    def _kept(self, entries: tuple[Webhook, ...], answer: _Existing) -> Look | None:
        """`Look.CUT_SHORT` where the server has not kept all of what was written."""
        self._cut = None
        if answer.webhooks == entries:
            return None
        self._cut = entries, answer.webhooks or ()
        return Look.CUT_SHORT

    def _what_was_cut(self) -> str:
        wanted, kept = self._cut or ((), ())
        lost = {
            stated
            for ours, theirs in zip(wanted, kept, strict=False)
            for name, stated in zip(ours.__struct_fields__, ours.__struct_encode_fields__, strict=True)
            if getattr(ours, name) != getattr(theirs, name)
        }
        named = ", ".join(sorted(lost))
        return (
            f"webhook configuration {self._wanted.name}: {self._client.server} does not keep "
            f"{named or 'all entries'}: expected Kubernetes {_NEEDS} or newer there; it may send us every "
            "binding, and refuse each while no webhook answers"
        )

    def _say(self, problem: str) -> None:
        if problem and problem != self._said:
            logger.error("%s", problem)
        self._said = problem
