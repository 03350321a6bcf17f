"""How a reflector is doing, for readiness, staleness and metrics.

Metrics go through a protocol, so that Kubernetes access does not depend on a metrics library.
"""

import enum
from dataclasses import dataclass
from typing import Protocol


class Phase(enum.Enum):
    """What the reflector is doing now."""

    CONNECTING = "connecting"
    LISTING = "listing"
    WATCHING = "watching"
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class ReflectorState:
    """One reflector at one moment; times are of the reflector's monotonic clock.

    ``synced_once``: a complete list has been delivered at some time. ``since_s``: when the phase was
    entered. ``last_contact_s``: when the server was last heard of (a page, an event, a bookmark).
    ``last_error``: why it is not watching, or None once it is again; ``is_forbidden``: because that is not
    allowed. ``objects``: held by the sink.
    """

    resource: str
    phase: Phase
    synced_once: bool
    since_s: float
    last_contact_s: float | None
    last_error: str | None
    resource_version: str
    objects: int
    is_forbidden: bool = False


class ReflectorMetrics(Protocol):
    """What a reflector counts; ``resource`` is the resource's name."""

    def event(self, resource: str, type: str) -> None:
        """One watch event was applied: ADDED, MODIFIED, DELETED or BOOKMARK."""

    def dropped(self, resource: str) -> None:
        """One event was a duplicate or out of order."""

    def undecodable(self, resource: str) -> None:
        """One item or event could not be decoded and was skipped."""

    def listed(self, resource: str, objects: int, deleted: int, duration_s: float) -> None:
        """A list is complete; ``deleted`` objects had vanished unseen."""

    def relist(self, resource: str, reason: str) -> None:
        """The position in the history was given up: expired, refused, silent or internal."""

    def half_open(self, resource: str) -> None:
        """A stream was silent for the idle timeout and was abandoned."""

    def error(self, resource: str, reason: str) -> None:
        """An attempt failed; ``reason`` is the error's label, or ``internal``."""


class NullReflectorMetrics:
    """Counts nothing."""

    def event(self, resource: str, type: str) -> None:
        """See `ReflectorMetrics`."""

    def dropped(self, resource: str) -> None:
        """See `ReflectorMetrics`."""

    def undecodable(self, resource: str) -> None:
        """See `ReflectorMetrics`."""

    def listed(self, resource: str, objects: int, deleted: int, duration_s: float) -> None:
        """See `ReflectorMetrics`."""

    def relist(self, resource: str, reason: str) -> None:
        """See `ReflectorMetrics`."""

    def half_open(self, resource: str) -> None:
        """See `ReflectorMetrics`."""

    def error(self, resource: str, reason: str) -> None:
        """See `ReflectorMetrics`."""
