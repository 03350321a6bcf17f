"""What a program asks to be allowed, and what it goes without where it is not.

Each program has a table of these. It is what the log of a refusal is made of, what docs/permissions.md says,
and what the roles in ``manifests`` are compared with.
"""

from collections.abc import Iterable
from dataclasses import dataclass

ANY_RESOURCE = "*"
"""In place of a resource: every one that no other permission of the table names."""


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on one resource (see `Attributes.full_resource`).

    ``lost``: what happens without any one of these verbs. ``manifest``: the file that grants them.
    """

    resource: str
    verbs: tuple[str, ...]
    lost: str
    manifest: str


def permission_for(permissions: Iterable[Permission], verb: str, resource: str) -> Permission | None:
    """The permission that a request needs, as far as the table says."""
    fallback = None
    for one in permissions:
        if verb in one.verbs:
            if one.resource == resource:
                return one
            if one.resource == ANY_RESOURCE:
                fallback = one
    return fallback
