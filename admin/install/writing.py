"""Reads and writes of single objects, with what they answer in our own words.

Server-side apply under the name ``fairway-install``: the server knows which fields are ours, a field that
somebody else has set otherwise is a conflict and not overwritten unasked, and a field that a later release no
longer states goes away by itself.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.install.manifest import INSTALLER, Json, Manifest
from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, NotFound

_APPLY: Final = "application/apply-patch+yaml"
_CONFLICT: Final = re.compile(r'conflicts? with "([^"]*)"[^:\n]*:((?:\s*-?\s*\.[^\n;]+)+)')
_FIELD: Final = re.compile(r"\.\S+")

Body = dict[str, object]


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """Fields that somebody else has set otherwise."""

    owner: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.owner} has set {', '.join(self.fields)}"


class Conflicting(Exception):
    """An object was not applied, because others have set fields of it otherwise."""

    def __init__(self, conflicts: tuple[FieldConflict, ...]) -> None:
        super().__init__("; ".join(str(each) for each in conflicts))
        self.conflicts = conflicts


async def read(client: KubeClient, path: str) -> Body | None:
    """The object, None where there is none or its kind is not served. Raises KubeError."""
    try:
        return await client.get_json(path, Body)
    except NotFound:
        return None


async def applied(client: KubeClient, manifest: Manifest, *, force: bool, dry_run: bool) -> Body:
    """What the object is after server-side apply, which a dry run does not store.

    Unknown fields are refused. Raises Conflicting, KubeError.
    """
    params = {
        "fieldManager": INSTALLER,
        "force": "true" if force else "false",
        "fieldValidation": "Strict",
        **({"dryRun": "All"} if dry_run else {}),
    }
    try:
        return await client.patch(manifest.path, manifest.body, Body, content_type=_APPLY, params=params)
    except Conflict as error:
        conflicts = conflicts_in(str(error))
        if not conflicts:
            raise
        raise Conflicting(conflicts) from error


async def replaced(client: KubeClient, path: str, body: Json, *, dry_run: bool) -> Body:
    """What the object is after it was replaced as a whole. Raises KubeError; Conflict where it changed."""
    params = {"fieldManager": INSTALLER, **({"dryRun": "All"} if dry_run else {})}
    return await client.put(path, body, Body, params)


async def created(client: KubeClient, collection: str, body: Json) -> Body:
    """What the object is after it was created. Raises KubeError; Conflict where it is there."""
    params = {"fieldManager": INSTALLER, "fieldValidation": "Strict"}
    return await client.post(collection, body, Body, params)


async def deleted(client: KubeClient, path: str, uid: str) -> None:
    """Delete that very object, and in the background what belongs to it.

    Raises KubeError: NotFound where it is gone, Conflict where another one has taken its name.
    """
    options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
    await client.delete(path, msgspec.Raw, options)


def conflicts_in(message: str) -> tuple[FieldConflict, ...]:
    """Owners and fields that a refusal of the API server names, as k8s.io/apimachinery writes it (1.36)."""
    return tuple(
        FieldConflict(found[1], tuple(field.rstrip(";,") for field in _FIELD.findall(found[2])))
        for found in _CONFLICT.finditer(message)
    )
