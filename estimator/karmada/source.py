"""Follows the templates on Karmada's API server, and finds the one that a question is about.

Each kind is followed by itself. One that the server does not serve (no such CRD yet) or does not let us read
is left out and looked at again every minute. A question that comes before its kind has been read, or
a moment before its workload shows on the watch, waits a little inside its own deadline.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from estimator.capacity.gangs.workload_gang import WorkloadGang
from estimator.capacity.request import Component
from estimator.karmada.kinds import KINDS, WatchedKind, WorkloadObject
from estimator.karmada.templates import (
    NOTHING,
    ClaimTexts,
    Found,
    Kept,
    ReadGang,
    lacks_claims,
    read_claim,
    read_template,
    with_claims,
)
from estimator.permissions import KARMADA
from estimator.settings import ApiSettings
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.device_kinds import CLAIM_TEMPLATES, RESOURCE_CLAIMS
from fairway.kube.observation import Phase, ReflectorMetrics
from fairway.kube.optional_kind import OptionalKind

_RETRY_S = 2.0
# karmada-scheduler asks after the detector has seen the template; our own watch is seldom behind that.
_WAIT_FOR_ABSENT_S = 0.25


class KarmadaSource:
    """The templates of all kinds. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        client: KubeClient,
        read: ReadGang,
        metrics: ReflectorMetrics,
        *,
        clock: Callable[[], float],
        kinds: Iterable[WatchedKind] = KINDS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._news = asyncio.Event()
        self._followed = [self._follow(kind, read, metrics) for kind in kinds]
        self._claim_templates = ClaimTexts(read_claim, self._changed)
        self._claims = ClaimTexts(read_claim, self._changed)
        self._claims_followed = (
            OptionalKind(client, CLAIM_TEMPLATES, self._claim_templates, metrics, clock=clock),
            OptionalKind(client, RESOURCE_CLAIMS, self._claims, metrics, clock=clock),
        )

    def _follow(self, kind: WatchedKind, read: ReadGang, metrics: ReflectorMetrics) -> "_Followed":
        templates = Kept(partial(read, kind), self._changed)
        source = OptionalKind(
            self._client,
            (kind.resource,),
            templates,
            metrics,
            clock=self._clock,
            changed=self._changed,
            retry_s=_RETRY_S,
        )
        return _Followed(kind.kind, templates, source)

    @classmethod
    def connect(
        cls,
        karmada: Path,
        api: ApiSettings,
        metrics: ReflectorMetrics,
        *,
        clock: Callable[[], float],
    ) -> Self:
        """A source for the API server that the settings name; nothing is sent yet."""
        client = KubeClient.from_kubeconfig(
            str(karmada), qps=api.qps, burst=api.burst, denials=Denials(KARMADA)
        )
        return cls(client, read_template, metrics, clock=clock)

    @property
    def denials(self) -> Denials:
        """What Karmada's API server does not let us read."""
        return self._client.denials

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        async with self._client, asyncio.TaskGroup() as group:
            for followed in self._followed:
                group.create_task(followed.source.run(), name=f"karmada/{followed.source.name}")
            for claims in self._claims_followed:
                group.create_task(claims.run(), name=f"karmada/{claims.name}")

    async def find(self, kind: str, namespace: str, name: str, within_s: float) -> Found:
        """The gang of the workload, after at most about ``within_s``.

        Karmada's requests name the kind but not its group; of two workloads that differ in the group alone,
        the one that is a gang counts.
        """
        followed = [f for f in self._followed if f.kind == kind and not f.source.is_left_out]
        if not followed:
            return NOTHING
        key = f"{namespace}/{name}"
        deadline_s = self._clock() + within_s
        wait_until_s = deadline_s
        while True:
            known = [f.templates for f in followed if key in f.templates]
            gangs = [gang for templates in known if (gang := templates.get(key)) is not None]
            gang = max(gangs, key=lambda gang: gang.together, default=None)
            if gang is not None:
                gang = replace(gang, components=self.with_claims(gang.components))
                # What pods claim is mostly created in the same moment.
                left_s = min(deadline_s, deadline_s - within_s + _WAIT_FOR_ABSENT_S) - self._clock()
                if not lacks_claims(gang.components) or left_s <= 0:
                    return Found(gang)
                await self._change(left_s)
                continue
            pending = [f for f in followed if not f.is_settled]
            # One that fails is not about to be read; nobody waits for it again and again.
            is_reading = any(not (f.source.is_synced or f.source.is_failing) for f in pending)
            if known and not is_reading:
                return NOTHING
            if not is_reading:
                wait_until_s = min(wait_until_s, deadline_s - within_s + _WAIT_FOR_ABSENT_S)
            left_s = wait_until_s - self._clock()
            if left_s <= 0:
                if pending:
                    why = pending[0].source.problem or "not read yet"
                    return Found(doubt=f"the template of {kind} {key} is not known: {why}")
                return NOTHING
            await self._change(left_s)

    def with_claims(self, components: tuple[Component, ...]) -> tuple[Component, ...]:
        """The components with what their pods claim of devices, as far as Karmada's API server has it."""
        return with_claims(components, self._claim_templates, self._claims)

    def _changed(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _change(self, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()


@dataclass(frozen=True, slots=True)
class _Followed:
    """One kind: its templates, and what follows them."""

    kind: str
    templates: Kept[WorkloadObject, WorkloadGang | None]
    source: OptionalKind[WorkloadObject]

    @property
    def is_settled(self) -> bool:
        """Whether a workload that is not held does not exist, as far as anybody can tell."""
        state = self.source.state
        return self.source.is_left_out or (state.synced_once and state.phase is Phase.WATCHING)
