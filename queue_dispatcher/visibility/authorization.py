"""Doors: who is let in, and as which `Viewer`.

A `ReviewedGuest` is asked about at karmada-apiserver. Who may ``get`` the nonresource URL `EVERYTHING_URL`
there (ClusterRole ``fairway-visibility-reader``) sees everything. A nonresource URL can only be granted for
the whole cluster, and it is no right to read objects: who may list ClusterQueues does not thereby see
everybody's workloads. All others see the namespaces in which they may ``get localqueues.fairway.dev``: what
waits belongs to a queue, so whoever is shown a namespace's queues is shown what is in them, also where
Karmada's own objects are nobody's business.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from queue_dispatcher.visibility.reviews import Identity, Reviews
from queue_dispatcher.visibility.viewer import EVERYTHING, Viewer

EVERYTHING_URL: Final = "/visibility/v1/workloads"
MOST_NAMESPACES: Final = 256
"""Namespaces that are looked at for one who names none."""
_AT_ONCE: Final = 16


class Guest(Protocol):
    """One who asks. Its methods raise ReviewFailed."""

    @property
    def key(self) -> str:
        """Tells clients apart for their allowances."""

    @property
    def name(self) -> str:
        """Whom a refusal is about."""

    async def sees_all(self) -> bool:
        """Whether nothing is kept from it."""

    async def sees(self, namespace: str) -> bool:
        """Whether it may see the namespace."""


async def viewer_of(guest: Guest, candidates: Sequence[str], asked: Sequence[str]) -> Viewer:
    """What ``guest`` sees of the namespaces it has ``asked`` about; without any, of all.

    ``candidates``: where there is anything to see. Raises ReviewFailed.
    """
    if await guest.sees_all():
        return Viewer.of(asked) if asked else EVERYTHING
    namespaces = asked or candidates[:MOST_NAMESPACES]
    places = asyncio.Semaphore(_AT_ONCE)

    async def sees(namespace: str) -> bool:
        async with places:
            return await guest.sees(namespace)

    seen = await asyncio.gather(*map(sees, namespaces))
    unreviewed = 0 if asked else max(0, len(candidates) - MOST_NAMESPACES)
    return Viewer.of((name for name, is_seen in zip(namespaces, seen, strict=True) if is_seen), unreviewed)


class OpenGuest:
    """Anybody, where nobody is asked who they are; told apart by address."""

    def __init__(self, host: str) -> None:
        self._host = host

    @property
    def key(self) -> str:
        """See `Guest`."""
        return f"host {self._host}"

    @property
    def name(self) -> str:
        """See `Guest`."""
        return "anybody"

    async def sees_all(self) -> bool:
        """Nothing is kept from anybody."""
        return True

    async def sees(self, namespace: str) -> bool:
        """Nothing is kept from anybody."""
        return True


class ReviewedGuest:
    """One whom the API server knows."""

    def __init__(self, identity: Identity, reviews: Reviews) -> None:
        self._identity = identity
        self._reviews = reviews

    @property
    def key(self) -> str:
        """See `Guest`."""
        return f"user {self._identity.username}"

    @property
    def name(self) -> str:
        """See `Guest`."""
        return f"user {self._identity.username[:253]!r}"

    async def sees_all(self) -> bool:
        """Whether it may get the nonresource URL."""
        asked = {"nonResourceAttributes": {"path": EVERYTHING_URL, "verb": "get"}}
        return await self._reviews.may(self._identity, asked)

    async def sees(self, namespace: str) -> bool:
        """Whether it may get LocalQueues of the namespace."""
        attributes = {
            "namespace": namespace,
            "verb": "get",
            "group": "fairway.dev",
            "version": "*",
            "resource": "localqueues",
        }
        return await self._reviews.may(self._identity, {"resourceAttributes": attributes})
