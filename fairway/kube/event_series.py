"""What an Event says, and how events of the same reason about the same object become one.

core/v1 Events, because the message of one that repeats can then be brought up to date, which events.k8s.io/v1
does not allow; ``kubectl describe`` shows both alike.
"""

import datetime
import math
import re
import uuid
from dataclasses import dataclass
from enum import Enum

from fairway.printable import printable

_MAX_REASON, _MAX_MESSAGE = 128, 1024
_CLUSTER_SCOPED_IN = "default"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")


class EventType(Enum):
    """How serious it is."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class Series:
    """All events of one reason about one object; times in seconds, monotonic and (``wall``) since the epoch.

    ``name`` is that of the Event object; ``written_s`` when it was last brought up to date.
    """

    regarding: Regarding
    reason: str
    type: EventType
    message: str
    first_wall_s: float
    last_wall_s: float
    last_s: float
    name: str
    is_created: bool = False
    count: int = 1
    written_s: float = -math.inf
    failures: int = 0
    is_queued: bool = True

    @property
    def path(self) -> str:
        """The URL path of the Event."""
        return f"{self.collection}/{self.name}"

    @property
    def namespace(self) -> str:
        """Where the Event is: beside its object."""
        return self.regarding.namespace or _CLUSTER_SCOPED_IN

    @property
    def collection(self) -> str:
        """The URL path under which it is created."""
        return f"/api/v1/namespaces/{self.namespace}/events"

    def new(self, component: str, instance: str) -> dict[str, object]:
        """The Event object that tells of it."""
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": self.regarding.api_version,
                "kind": self.regarding.kind,
                "namespace": self.regarding.namespace,
                "name": self.regarding.name,
                "uid": self.regarding.uid,
            },
            "reason": self.reason,
            "type": self.type.value,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": instance[:_MAX_REASON],
            "firstTimestamp": _time(self.first_wall_s),
            **self.repetition(),
        }

    def repetition(self) -> dict[str, object]:
        """What changes with each repetition, as a merge patch."""
        return {
            "message": self.message,
            "type": self.type.value,
            "count": self.count,
            "lastTimestamp": _time(self.last_wall_s),
        }


def event_name(regarding: Regarding, unique: str = "") -> str:
    """Not longer than names may be; ``unique``: what tells it from others about this object, else chance.

    Of an object whose name no Event may have (a Role's may have colons) it is that alone, as in client-go.
    """
    name, end = regarding.name[:200].rstrip(".-"), (unique or uuid.uuid4().hex)[:16]
    return f"{name}.{end}" if _NAME.fullmatch(name) else end


def cut_reason(reason: str) -> str:
    """As much of it as the server takes."""
    return reason[:_MAX_REASON]


def cut_message(message: str) -> str:
    """As much of it as the server takes, and fit for eyes."""
    message = printable(message)
    encoded = message.encode()
    if len(encoded) <= _MAX_MESSAGE:
        return message
    return encoded[: _MAX_MESSAGE - 3].decode("utf-8", "ignore") + "..."


def single(
    regarding: Regarding, type: EventType, reason: str, message: str, at_s: float, name: str
) -> Series:
    """An event that is told once, with a name that is known before."""
    return Series(regarding, cut_reason(reason), type, cut_message(message), at_s, at_s, 0.0, name)


def _time(wall_s: float) -> str:
    return datetime.datetime.fromtimestamp(wall_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
