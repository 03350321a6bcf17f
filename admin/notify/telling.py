"""Tells owners on one API server: claims, creates the Events, and writes down that it has.

Nothing is written about a workload that another run has told, is telling, or may have told when it was ended;
see `admin.notify.record`.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from admin.notify.notices import Target
from admin.notify.record import (
    CONFIG_MAPS,
    RECORDS,
    ConfigMap,
    Entry,
    Standing,
    claimed,
    data,
    entries,
    event_id,
    noted,
    record_of,
    settled,
    standing,
)
from fairway.kube.backoff import Backoff
from fairway.kube.client import KubeClient
from fairway.kube.errors import (
    BadObject,
    Conflict,
    KubeError,
    NotFound,
    NotSent,
    Refused,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from fairway.kube.event_series import event_name, single
from fairway.kube.objects import ApiObject

COMPONENT: Final = "fairway-notify"
_ATTEMPTS: Final = 4
_PASSING: Final = (Unreachable, TooManyRequests, ServerError)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A ConfigMap: the ``whole`` object as the API server has it, and its ``data``."""

    whole: Mapping[str, object]
    data: Mapping[str, str] | None


Change = Callable[[dict[str, Entry]], dict[str, Entry]]


class Teller:
    """Of one API server. ``namespace`` has the records; ``now_s``: when this run began, since the epoch."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        now_s: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._now_s = now_s
        self._sleep = sleep
        self._rng = rng or random.Random()
        # Keys of those whose Event may be there though nobody said so.
        self._doubtful: set[str] = set()

    async def standings(self) -> Callable[[Target], Standing]:
        """Who may be told, as the records have it now. Raises KubeError."""
        known: dict[str, Entry] = {}
        for name in RECORDS:
            found = await self._read(name)
            known |= entries(found.data if found else None, self._now_s)

        def of(target: Target) -> Standing:
            return standing(known.get(target.key), self._now_s, lasts=target.notice.lasts)

        return of

    async def note(self, targets: Iterable[Target]) -> dict[str, str]:
        """Write down that what is said of them was seen. By key: why it was not, empty where it was."""
        outcomes: dict[str, str] = {}
        gone = ""
        for name, some in _by_record(targets):
            keys = [target.key for target in some]
            try:
                if not gone:
                    await self._changed(name, partial(noted, keys=keys, now_s=self._now_s))
                outcomes |= dict.fromkeys(keys, gone)
            except KubeError as error:
                outcomes |= dict.fromkeys(keys, self._unwritten(name, error))
                gone = outcomes[keys[0]] if isinstance(error, Unreachable) else ""
        return outcomes

    async def tell(self, targets: Iterable[Target]) -> dict[str, str]:
        """Create their Events. By key: why one was not told, empty where it was, by this run or another.

        Those of which nothing was found out because the API server went away are among the failures.
        """
        told: dict[str, str] = {}
        gone = ""
        for name, some in _by_record(targets):
            if not gone:
                found, gone = await self._tell_record(name, some)
                told |= found
            else:
                told |= {target.key: gone for target in some}
        return told

    async def _tell_record(self, name: str, targets: list[Target]) -> tuple[dict[str, str], str]:
        """As `tell`, of one record; and why nothing more can be written at all."""
        keys = [target.key for target in targets]
        ours: dict[str, Entry] = {}

        def claim(kept: dict[str, Entry]) -> dict[str, Entry]:
            found = claimed(kept, keys, self._now_s)
            ours.clear()
            ours.update({key: found[key] for key in keys if key in found and found[key] != kept.get(key)})
            return found

        try:
            known = await self._changed(name, claim)
        except KubeError as error:
            told = self._unwritten(name, error)
            return dict.fromkeys(keys, told), told if isinstance(error, Unreachable) else ""
        outcomes: dict[str, str] = {}
        done: dict[str, Entry] = {}
        given_back: dict[str, Entry] = {}
        gone = ""
        for target in targets:
            key = target.key
            entry = known.get(key)
            if entry is None:
                outcomes[key] = f"not told: {name} of {self._namespace} is full; tomorrow there is room again"
            elif standing(entry, self._now_s) is Standing.TOLD:
                outcomes[key] = ""
            elif gone:
                outcomes[key] = gone
            else:
                try:
                    await self._create(target, entry)
                    outcomes[key], done[key] = "", entry
                except KubeError as error:
                    outcomes[key] = f"not told: {error}"
                    if isinstance(error, Unreachable):
                        gone = outcomes[key]
                    if key in ours and key not in self._doubtful:
                        given_back[key] = entry
        if done or given_back:
            try:
                await self._changed(name, lambda kept: settled(kept, done, given_back))
            except KubeError as error:
                # Their claims stand: they are told, or lost until tomorrow, and never told twice.
                gone = gone or f"not told: {error}"
        return outcomes, gone

    def _unwritten(self, name: str, error: KubeError) -> str:
        if isinstance(error, NotFound):
            cure = f"make namespace {self._namespace}, or name another (--record-namespace)"
            return f"not told: {error}: {cure}"
        return f"not told, because {name} of {self._namespace} could not be written: {error}"

    async def _create(self, target: Target, entry: Entry) -> None:
        """Raises KubeError. An Event that is there already was created by this claim."""
        regarding, said = target.regarding, target.notice
        name = event_name(regarding, event_id(target.key, entry))
        event = single(regarding, said.type, said.reason, said.message, self._now_s, name)

        async def create() -> None:
            try:
                await self._client.post(event.collection, event.new(COMPONENT, COMPONENT), ApiObject)
            except Conflict:
                return
            except KubeError as error:
                if not _is_certain(error):
                    self._doubtful.add(target.key)
                raise

        await self._patiently(create)

    async def _changed(self, name: str, change: Change) -> Mapping[str, Entry]:
        """The entries after the change, which is written against what was read. Raises KubeError."""
        result: Mapping[str, Entry] = {}

        async def attempt() -> None:
            nonlocal result
            found = await self._read(name)
            before = found.data if found else None
            result = change(entries(before, self._now_s))
            after = data(result, before)
            if found is None:
                metadata = {"name": name, "namespace": self._namespace}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": after}
                await self._client.post(f"/api/v1/namespaces/{self._namespace}/configmaps", body, ConfigMap)
            elif after != (before or {}):
                # As it was read, with its resourceVersion and all that others have put there.
                path = CONFIG_MAPS.object_path(name, self._namespace)
                await self._client.put(path, {**found.whole, "data": after}, ConfigMap)

        await self._patiently(attempt, Conflict)
        return result

    async def _read(self, name: str) -> _Kept | None:
        path = CONFIG_MAPS.object_path(name, self._namespace)
        try:
            whole = await self._client.get_json(path, dict[str, object])
        except NotFound:
            return None
        try:
            return _Kept(whole, msgspec.convert(whole, CONFIG_MAPS.type).data)
        except msgspec.ValidationError as error:
            raise BadObject(f"{path}: {error}; expected a ConfigMap: is this an API server?") from error

    async def _patiently(self, attempt: Callable[[], Awaitable[None]], *passing: type[KubeError]) -> None:
        """Try a few times what may be over the next time. Raises KubeError."""
        backoff = Backoff(self._rng)
        while True:
            try:
                return await attempt()
            except KubeError as error:
                if not isinstance(error, (*_PASSING, *passing)):
                    raise
                asked_s = error.retry_after_s if isinstance(error, Refused) else None
                wait_s = backoff.next_s(asked_s)
                if backoff.failures >= _ATTEMPTS:
                    raise
                await self._sleep(wait_s)


def _by_record(targets: Iterable[Target]) -> list[tuple[str, list[Target]]]:
    """The targets by the record that has their entries; none is without any."""
    found: dict[str, list[Target]] = {}
    for target in targets:
        found.setdefault(record_of(target.key), []).append(target)
    return sorted(found.items())


def _is_certain(error: KubeError) -> bool:
    """Whether the request surely changed nothing."""
    return isinstance(error, NotSent) or (isinstance(error, Refused) and not isinstance(error, ServerError))
