"""Held bindings given back to Karmada, in order and at the pace that it can take.

karmada-scheduler cannot be told to stop once a binding is in its queue, and places some ten a second. So only
a few are released and not dealt with at any time; the next goes when one of them is placed, or refused, or
has been waited for long enough. Nothing is remembered: a run that is cut off has released the first in the
order, and the next run finds the rest.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from admin.install.holds import (
    BindingCondition,
    HeldBinding,
    Whose,
    given_back,
    turn,
    whose,
    without_records,
)
from admin.install.listing import listed
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError, NotFound, TooManyRequests
from fairway.kube.objects import KubeStruct, ObjectMeta, object_key
from fairway.kube.patching import Gone, OutcomeUnknown, Patched, merge_patch
from fairway.kube.preconditions import Preconditions
from fairway.names import QUEUEING
from fairway.scope import Scope
from webhook.bindings import Binding

LEAST_IN_FLIGHT: Final = 1
MOST_IN_FLIGHT: Final = 20
IN_FLIGHT: Final = 15
_PATIENCE_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.25
_TRIES: Final = 5
_ROOT: Final = "/apis/work.karmada.io/v1alpha2"
_COLLECTIONS: Final = (f"{_ROOT}/resourcebindings", f"{_ROOT}/clusterresourcebindings")


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to give back. ``others_hold``: see `holds.whose`. ``in_flight``: released and not dealt with."""

    scope: Scope
    others_hold: bool = False
    keep_held: bool = False
    keep_records: bool = False
    in_flight: int = IN_FLIGHT
    dry_run: bool = False


@dataclass(slots=True)
class GivenBack:
    """What became of the bindings, by their keys; ``unreadable`` says what is wrong with each."""

    released: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    cleared: int = 0
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    held: HeldBinding
    whose: Whose

    @property
    def key(self) -> str:
        return object_key(self.held.metadata)


@dataclass(frozen=True, slots=True)
class _InFlight:
    path: str
    before: BindingCondition | None
    since_s: float


class _Named(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class GivingBack:
    """Gives back what is held on Karmada's API server; ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        client: KubeClient,
        wanted: Wanted,
        clock: Callable[[], float],
        seen: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._clock = clock
        self._seen = seen
        self._sleep = sleep
        self._in_flight: list[_InFlight] = []

    async def run(self) -> GivenBack:
        """One pass over all bindings. Raises KubeError where they cannot be listed."""
        done = GivenBack()
        found = await self._found(done)
        ours = [each for each in found if each.held.is_held and each.whose is not Whose.OTHERS]
        done.others = sorted(each.key for each in found if each.held.is_held and each.whose is Whose.OTHERS)
        if self._wanted.keep_held:
            done.kept = sorted(each.key for each in ours)
            ours = []
        ours.sort(key=lambda each: turn(each.held))
        for number, each in enumerate(ours):
            self._seen(f"giving back {number + 1:,} of {len(ours):,}: {each.key}")
            await self._release(each, done)
        await self._until_dealt_with(0)
        if not self._wanted.keep_records:
            for each in found:
                if not each.held.is_held and each.held.has_records:
                    await self._clear(each, done)
        return done

    async def _found(self, done: GivenBack) -> list[_Found]:
        stated = await self._namespaces()
        found = list[_Found]()
        for collection in _COLLECTIONS:
            try:
                raws = await listed(self._client, collection, msgspec.Raw)
            except NotFound:
                continue
            read = (self._read(collection, bytes(raw), stated, done) for raw in raws)
            found += [each for each in read if each is not None]
        return found

    def _read(self, collection: str, raw: bytes, stated: Mapping[str, str], done: GivenBack) -> _Found | None:
        """A binding that is held or has records; None for all others."""
        try:
            held = msgspec.json.decode(raw, type=HeldBinding)
            if not held.is_held and not held.has_records:
                return None
            binding = msgspec.json.decode(raw, type=Binding)
        except msgspec.DecodeError as error:
            named = msgspec.json.decode(raw, type=_Named).metadata
            done.unreadable.append(f"{object_key(named)}: {error}")
            return None
        metadata = held.metadata
        root, _, plural = collection.rpartition("/")
        within = f"{root}/namespaces/{metadata.namespace}/{plural}" if metadata.namespace else collection
        wanted = self._wanted
        reach = wanted.scope.reach(stated.get(metadata.namespace, ""))
        holder = whose(held, binding, wanted.scope, reach, others_hold=wanted.others_hold)
        return _Found(f"{within}/{metadata.name}", held, holder)

    async def _namespaces(self) -> dict[str, str]:
        """What the namespaces say that say anything, by their name."""
        found = await listed(self._client, "/api/v1/namespaces", _Named, label_selector=QUEUEING)
        return {each.metadata.name: (each.metadata.labels or {}).get(QUEUEING, "") for each in found}

    async def _release(self, each: _Found, done: GivenBack) -> None:
        if self._wanted.dry_run:
            done.released.append(each.key)
            return
        await self._until_dealt_with(self._wanted.in_flight - 1)
        keep_records = self._wanted.keep_records

        def body(held: HeldBinding) -> dict[str, object]:
            return given_back(held, keep_records=keep_records) if held.is_held else without_records(held)

        if await self._written(each, body, done):
            done.released.append(each.key)
            self._in_flight.append(_InFlight(each.path, each.held.verdict, self._clock()))

    async def _clear(self, each: _Found, done: GivenBack) -> None:
        if self._wanted.dry_run or await self._written(each, without_records, done):
            done.cleared += 1

    async def _written(
        self, each: _Found, body: Callable[[HeldBinding], dict[str, object]], done: GivenBack
    ) -> bool:
        """Patch the binding as it is, reading it again as often as somebody else was faster."""
        held = each.held
        try:
            for _ in range(_TRIES):
                patch = body(held)
                if not patch:
                    return False
                when = Preconditions.exactly(held.metadata)
                result = await merge_patch(self._client, each.path, patch, msgspec.Raw, when)
                if isinstance(result, Patched):
                    return True
                if isinstance(result, Gone):
                    return False
                if isinstance(result, OutcomeUnknown):
                    await self._sleep(result.retry_after_s or _LOOK_EVERY_S)
                held = await self._client.get_json(each.path, HeldBinding)
        except NotFound:
            return False
        except TooManyRequests as error:
            await self._sleep(error.retry_after_s or 1.0)
            done.failed.append(f"{each.key}: {error}")
            return False
        except KubeError as error:
            # One binding that cannot be written, by a policy or by its schema, must not keep the others.
            done.failed.append(f"{each.key}: {error}")
            return False
        done.failed.append(f"{each.key}: it keeps changing; run the same command again")
        return False

    async def _until_dealt_with(self, most: int) -> None:
        """Until no more than so many are released and not dealt with."""
        while len(self._in_flight) > most:
            left = [each for each in self._in_flight if not await self._is_dealt_with(each)]
            self._in_flight = left
            if len(left) > most:
                await self._sleep(_LOOK_EVERY_S)

    async def _is_dealt_with(self, each: _InFlight) -> bool:
        if self._clock() - each.since_s >= _PATIENCE_S:
            return True
        try:
            return (await self._client.get_json(each.path, HeldBinding)).is_dealt_with(each.before)
        except NotFound:
            return True


def names(keys: Iterable[str], most: int = 5) -> str:
    """The first few, and how many more there are."""
    listing = list(keys)
    shown = ", ".join(listing[:most])
    return f"{shown} and {len(listing) - most} more" if len(listing) > most else shown
