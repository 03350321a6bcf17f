"""The API server as the real executor asks it, each request and each answer some time on its way.

What was sent arrives whatever becomes of the sender; the answer reaches it if it still lives.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from fairway.kube import errors as kube
from fairway.kube.objects import ApiObject
from fairway.kube.patching import Gone, OutcomeUnknown, Patched, PatchResult, Stale
from fairway.kube.preconditions import Preconditions
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.override_policy import is_ours
from queue_dispatcher.turn.writes import Companion
from sandbox.simulation import errors
from sandbox.simulation.api_server import Client
from sandbox.simulation.coroutines import Later
from sandbox.simulation.following import Decoder
from sandbox.simulation.objects import Obj
from sandbox.simulation.process import Process

_PATIENCE_MS = 10_000
"""How long a client waits for an answer."""


class BindingsApi:
    """``delay_ms``: how long the next request, or the next answer, is on its way."""

    def __init__(
        self, process: Process, client: Client, decoder: Decoder, delay_ms: Callable[[], int]
    ) -> None:
        self._process, self._client, self._decoder, self._delay_ms = process, client, decoder, delay_ms

    async def patch(
        self, path: str, body: Mapping[str, object], when: Preconditions
    ) -> PatchResult[ResourceBinding]:
        """See `queue_dispatcher.release.executor.Api`."""
        resource, key = _target(path)
        try:
            obj = await self._answer(
                lambda: self._client.patch(
                    resource, key, body, uid=when.uid, resource_version=when.resource_version or None
                )
            )
        except errors.Conflict as error:
            return Stale(str(error))
        except errors.NotFound as error:
            return Gone(str(error))
        except errors.Invalid as error:
            if "uid" in str(error):
                return Stale(str(error))
            raise kube.Invalid(path, error.code, str(error)) from None
        except errors.Timeout as error:
            return OutcomeUnknown(kube.Unreachable(str(error)))
        except errors.Unavailable as error:
            return OutcomeUnknown(kube.ServerError(path, error.code, str(error)))
        except errors.ApiError as error:
            raise kube_error(path, error) from None
        return Patched(self._decoder.read(obj, ResourceBinding))

    async def read(self, path: str) -> ResourceBinding:
        """See `queue_dispatcher.release.executor.Api`."""
        resource, key = _target(path)
        try:
            return self._decoder.read(
                await self._answer(lambda: self._client.get(resource, key)), ResourceBinding
            )
        except errors.ApiError as error:
            raise kube_error(path, error) from None

    async def ensure(self, companion: Companion) -> None:
        """See `queue_dispatcher.release.executor.Api`."""
        resource, key = _target(companion.path)
        body = companion.body
        try:
            await self._answer(lambda: self._ensure(resource, key, body))
        except errors.Invalid as error:
            raise kube.Invalid(companion.path, error.code, str(error)) from None
        except errors.ApiError as error:
            raise kube_error(companion.path, error) from None

    def _ensure(self, resource: str, key: str, body: Mapping[str, object] | None) -> Obj:
        if body is not None:
            with suppress(errors.Conflict):
                return self._client.create(resource, body)
        try:
            there = self._decoder.read(self._client.get(resource, key), ApiObject).metadata
        except errors.NotFound:
            return {}
        if body is not None:
            if not is_ours(there):
                raise errors.Invalid("there is an OverridePolicy of that name that is not Fairway's")
            return self._client.patch(
                resource, key, body, uid=there.uid, resource_version=there.resource_version
            )
        if is_ours(there):
            self._client.delete(resource, key, uid=there.uid)
        return {}

    async def _answer(self, ask: Callable[[], Obj]) -> Obj:
        later = Later[Obj]()

        def arrive() -> None:
            try:
                obj = ask()
            except errors.Timeout as error:
                lost = error
                self._process.after(_PATIENCE_MS, lambda: later.fail(lost))
            except errors.ApiError as error:
                refusal = error
                self._process.after(self._delay_ms(), lambda: later.fail(refusal))
            else:
                self._process.after(self._delay_ms(), lambda: later.set(obj))

        self._process.host.timeline.after(self._delay_ms(), arrive)
        return await later


def _target(path: str) -> tuple[str, str]:
    """Resource and key of an object's path."""
    parts = path.split("/")
    if len(parts) > 4 and parts[-4] == "namespaces":
        return parts[-2], f"{parts[-3]}/{parts[-1]}"
    return parts[-2], parts[-1]


def kube_error(path: str, error: errors.ApiError) -> kube.KubeError:
    """The error as the real client raises it."""
    match error:
        case errors.NotFound():
            return kube.NotFound(path, error.code, str(error))
        case errors.Forbidden():
            return kube.Forbidden(path, error.code, str(error))
        case errors.TooMany():
            return kube.TooManyRequests(path, error.code, str(error), error.retry_after_s)
        case errors.Unavailable():
            return kube.ServerError(path, error.code, str(error))
        case _:
            return kube.Unreachable(f"{path}: {error}")
