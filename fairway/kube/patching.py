"""Patches that carry what they were decided on, and what became of them.

The one idea: a patch names the uid and the resourceVersion of the object it was decided on, in its own
body, and the server applies it to that object as it was, or not at all. So the answers "it changed
meanwhile" and "it is gone" are no failures: the decision is made anew on the object as it is now. Nor is
silence a failure: a patch that was sent and not answered may have been applied; reading the object tells.

What the answers mean was observed on kube-apiserver 1.36: a stale resourceVersion is 409, on the object and
on its status; another uid is 422 ("field is immutable"), on the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.errors import BadObject, Conflict, Invalid, NotFound, NotSent, ServerError, Unreachable
from fairway.kube.preconditions import Preconditions

FIELD_MANAGER = "fairway"
"""Who the server notes as the owner of what `apply` sets."""

_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_UID_DIFFERS = "metadata.uid: Invalid value"

T = TypeVar("T")
Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Patched(Generic[T]):
    """Applied (or nothing had to change); ``object`` is what the server has now."""

    object: T


@dataclass(frozen=True, slots=True)
class Stale:
    """Not applied: the object changed since it was read, or another has its name. Read it, decide anew."""

    message: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Not applied: there is no such object, or its kind is no longer served."""

    message: str


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """Applied or not: no answer arrived, or one that leaves it open.

    Read the object before anything is concluded. Sending the patch again is safe where it names a
    resourceVersion: if it was applied, the answer is `Stale`. ``error`` says what happened.
    """

    error: Unreachable | ServerError | BadObject

    @property
    def retry_after_s(self) -> float | None:
        """How long the server asked us to wait, in seconds, if it did."""
        return self.error.retry_after_s if isinstance(self.error, ServerError) else None


PatchResult = Patched[T] | Stale | Gone | OutcomeUnknown


async def merge_patch(
    client: KubeClient, path: str, body: Json, type: type[T], when: Preconditions
) -> PatchResult[T]:
    """JSON merge patch (RFC 7386) of the object at ``path``: null removes, a list replaces a whole list.

    Raises KubeError where certainly nothing was applied for another reason than the object's state:
    TooManyRequests (try again after ``retry_after_s``), NotSent (try again later), Forbidden or another
    Invalid (the same patch will be refused again, by permissions, the schema or an admission policy).
    """
    try:
        return Patched(await client.patch(path, when.within(body), type, content_type=_MERGE))
    except Conflict as error:
        return Stale(str(error))
    except NotFound as error:
        return Gone(str(error))
    except Invalid as error:
        if _UID_DIFFERS not in str(error):
            raise
        return Stale(str(error))
    except NotSent:
        raise
    except (Unreachable, ServerError, BadObject) as error:
        # A server whose storage does not answer in time says 500 or 504, and may store it a moment later.
        return OutcomeUnknown(error)


async def apply(client: KubeClient, path: str, obj: object, type: type[T]) -> T:
    """Create the object at ``path``, or make it what ``obj`` says, whoever set those fields before.

    Server-side apply: fields that we applied earlier and that ``obj`` no longer has are removed; fields of
    others stay. ``obj`` has apiVersion, kind and metadata.name, and neither uid nor resourceVersion. Raises
    KubeError; the same call may simply be made again.
    """
    params = {"fieldManager": FIELD_MANAGER, "force": "true"}
    return await client.patch(path, obj, type, content_type=_APPLY, params=params)
