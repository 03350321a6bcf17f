"""The objects behind workloads, as one API server has them: who controls whom, and Karmada's templates.

Pods say who controls them in words that whoever makes pods may choose, so nothing of it becomes part of a URL
that does not look like what it should be.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from admin.notify.record import is_uid
from fairway.kube.client import METADATA, KubeClient
from fairway.kube.errors import Denied, NotFound
from fairway.kube.event_series import Regarding
from fairway.kube.objects import ApiObject, KubeStruct, ObjectMeta

TEMPLATE_UID: Final = "resourcetemplate.karmada.io/uid"
"""Annotation that Karmada gives what it makes in member clusters: the uid of the template."""

_MOST_LEVELS: Final = 5
_API_VERSION: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?v[0-9][a-z0-9]{0,61}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")


class _Resource(KubeStruct, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _ResourceList(KubeStruct, frozen=True):
    resources: list[_Resource] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A workload as its API server has it.

    ``template_uid``: of Karmada's template; empty without one, None where the workload may not be read, so
    that it is as whoever names it says.
    """

    regarding: Regarding
    template_uid: str | None


class Objects:
    """One API server's; everything is asked for once."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._plurals: dict[str, dict[str, str]] = {}
        self._known: dict[Regarding, ObjectMeta | None] = {}

    async def top(self, of: Regarding) -> Seen | None:
        """What controls the workload, and is itself controlled by nothing; None for one that is gone.

        What may not be read is as far up as can be seen. Raises KubeError.
        """
        found: Seen | None = None
        above: Regarding | None = of
        for _ in range(_MOST_LEVELS):
            if above is None or not (above.uid == "" or is_uid(above.uid)):
                break
            try:
                metadata = await self.metadata(above)
            except Denied:
                if not above.uid:
                    raise
                return Seen(above, None)
            is_same = metadata is not None and above.uid in ("", metadata.uid)
            if metadata is None or not is_same or metadata.deletion_timestamp:
                break
            found = Seen(replace(above, uid=metadata.uid), (metadata.annotations or {}).get(TEMPLATE_UID, ""))
            above = _controller(metadata)
        return found

    async def template(self, seen: Seen) -> Regarding | None:
        """What the workload was made of, where this is Karmada's API server; by its name alone where nobody
        may know better. Raises KubeError.
        """
        metadata = None if seen.template_uid == "" else await self.metadata(seen.regarding)
        if metadata is None or seen.template_uid not in (None, metadata.uid):
            return None
        return replace(seen.regarding, uid=metadata.uid)

    async def metadata(self, regarding: Regarding) -> ObjectMeta | None:
        """Of the object of this kind and name; None where there is none. Raises KubeError."""
        key = replace(regarding, uid="")
        if key not in self._known:
            self._known[key] = await self._asked(key)
        return self._known[key]

    async def _asked(self, of: Regarding) -> ObjectMeta | None:
        if not (_API_VERSION.fullmatch(of.api_version) and _NAME.fullmatch(of.name)):
            return None
        root = f"/apis/{of.api_version}" if "/" in of.api_version else f"/api/{of.api_version}"
        plural = (await self._served(root)).get(of.kind)
        if plural is None:
            return None
        path = f"{root}/namespaces/{of.namespace}/{plural}/{of.name}"
        try:
            return (await self._client.get_json(path, ApiObject, accept=METADATA)).metadata
        except NotFound:
            return None

    async def _served(self, root: str) -> dict[str, str]:
        """Plurals by kind, of what is namespaced there."""
        if root not in self._plurals:
            try:
                found = (await self._client.get_json(root, _ResourceList)).resources or []
            except NotFound:
                found = []
            self._plurals[root] = {
                one.kind: one.name for one in found if one.namespaced and "/" not in one.name
            }
        return self._plurals[root]


def _controller(metadata: ObjectMeta) -> Regarding | None:
    owners = (one for one in metadata.owner_references or () if one.controller)
    return next(
        (Regarding(one.api_version, one.kind, metadata.namespace, one.name, one.uid) for one in owners), None
    )
