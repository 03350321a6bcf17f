"""What has to be there, or gone, before a release is written, among what is others' on the API server.

Its name is ours by habit only, and anybody may have given it to something of theirs. So what is there is
looked at before it is replaced or deleted, and what is done to it holds for that very object alone.
"""

from contextlib import suppress
from typing import ClassVar, Final

from fairway.kube.client import METADATA, KubeClient
from fairway.kube.errors import Conflict, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.patching import OutcomeUnknown, Patched, merge_patch
from fairway.kube.preconditions import Preconditions
from queue_dispatcher.bindings.override_policy import is_ours
from queue_dispatcher.turn.writes import Companion

ATTEMPTS: Final = 3
"""So often is done what somebody's change or the garbage collector came between."""
_CONFLICT: Final = 409


class NotOurs(Conflict):
    """Somebody else's object has the name of ours."""

    label = "not_ours"
    remedy: ClassVar[str] = "expected none of that name, or Fairway's: name theirs otherwise"


class _Answer(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


async def ensure(client: KubeClient, companion: Companion) -> None:
    """See `queue_dispatcher.release.executor.Api`.

    Somebody else's is left as it is. Raises KubeError: NotOurs where ours has to be there, Conflict where it
    has changed each time.
    """
    path, body = companion.path, companion.body
    for _ in range(ATTEMPTS):
        if body is not None:
            with suppress(Conflict):
                await client.post(path.rpartition("/")[0], body, _Answer)
                return
        try:
            # Of an earlier release, or not ours.
            there = (await client.get_json(path, _Answer, accept=METADATA)).metadata
        except NotFound:
            if body is None:
                return
            # Collected meanwhile.
            continue
        if not is_ours(there):
            if body is None:
                return
            raise NotOurs(path, _CONFLICT, "there is an OverridePolicy of that name that is not Fairway's")
        if body is None:
            with suppress(Conflict):
                with suppress(NotFound):
                    await client.delete(path, _Answer, {"preconditions": {"uid": there.uid}})
                return
            continue
        result = await merge_patch(client, path, body, _Answer, Preconditions.exactly(there))
        if isinstance(result, Patched):
            return
        if isinstance(result, OutcomeUnknown):
            raise result.error
    raise Conflict(path, _CONFLICT, f"it changed {ATTEMPTS} times while it was to be written")
