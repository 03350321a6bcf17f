"""What an API server has refused us for want of permission, and has not allowed since.

The one idea: a missing permission is a state, not an event. It is told once, with what is lost by it and who
could give it, however often the request is made again; and once more when it ends. A resource of many
namespaces counts once for each verb.

A server that has just been in trouble may refuse what it allows, until it has read its roles: what it says
then counts once it has said so for a while.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fairway.kube.permissions import Permission, permission_for
from fairway.kube.request_attributes import Attributes

logger = logging.getLogger(__name__)

FORGET_S = 3600.0
"""A refusal that has not been repeated for so long says nothing about today."""
MAX_NAMESPACES = 64
GRACE_S = 15.0
"""How long after its last trouble a server is given to read its roles; it takes seconds."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A verb on a resource that is not allowed. ``user``: as the server calls us; ``where``: the scope."""

    verb: str
    resource: str
    where: str
    user: str
    permission: Permission | None

    def __str__(self) -> str:
        told = f'user "{self.user}" may not {self.verb} {self.resource} {self.where}'
        if self.permission is None:
            return f"{told}; expected permission: grant it by a ClusterRole and its binding"
        return f"{told}; without it: {self.permission.lost}; {self.permission.manifest} grants it"


@dataclass(slots=True)
class _Known:
    """``since_s`` of the last refusal, by namespace; the empty one is the cluster scope."""

    denial: Denial
    refused_s: dict[str, float] = field(default_factory=dict)


class Denials:
    """The missing permissions of one client. ``clock`` is monotonic, in seconds."""

    def __init__(
        self, permissions: Iterable[Permission] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._permissions = tuple(permissions)
        self._clock = clock
        self._known: dict[tuple[str, str], _Known] = {}
        self._troubled_s: float | None = None

    def __bool__(self) -> bool:
        """Whether anything is known to be missing."""
        return bool(self._known)

    def troubled(self) -> None:
        """The server could not be reached, did not know us, or failed."""
        self._troubled_s = self._clock()

    @property
    def is_settling(self) -> bool:
        """Whether the server was in trouble just now, and may have yet to read its roles."""
        return self._troubled_s is not None and self._clock() - self._troubled_s < GRACE_S

    def refused(self, server: str, asked: Attributes, user: str) -> None:
        """The server said that ``user`` may not do this."""
        resource = asked.full_resource
        known = self._known.get((asked.verb, resource))
        if known is None and self.is_settling:
            logger.info("%s: refused to %s %s, just after it was in trouble", server, asked.verb, resource)
            return
        if known is None or known.denial.user != user:
            permission = permission_for(self._permissions, asked.verb, resource)
            denial = Denial(asked.verb, resource, asked.where, user, permission)
            known = self._known[asked.verb, resource] = _Known(denial)
            logger.warning("%s: %s", server, denial)
        if asked.namespace in known.refused_s or len(known.refused_s) < MAX_NAMESPACES:
            known.refused_s[asked.namespace] = self._clock()

    def allowed(self, server: str, asked: Attributes) -> None:
        """The server has let us do this."""
        key = (asked.verb, asked.full_resource)
        known = self._known.get(key)
        if known is None or known.refused_s.pop(asked.namespace, None) is None or known.refused_s:
            return
        del self._known[key]
        denial = known.denial
        logger.info("%s: may %s %s again", server, denial.verb, denial.resource)

    def current(self) -> tuple[Denial, ...]:
        """What is missing now, in order."""
        border_s = self._clock() - FORGET_S
        for key, known in tuple(self._known.items()):
            for namespace, refused_s in tuple(known.refused_s.items()):
                if refused_s < border_s:
                    del known.refused_s[namespace]
            if not known.refused_s:
                del self._known[key]
        return tuple(known.denial for _, known in sorted(self._known.items()))
