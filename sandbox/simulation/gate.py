"""The webhook in the API server's path: the real decision about each write of a binding."""

from collections.abc import Callable
from typing import Final

import msgspec

from fairway.accelerators.catalogue import Catalogue
from fairway.scope import Scope
from sandbox.fakeapi.patching import json_patch
from sandbox.simulation.api_server import Admission
from sandbox.simulation.objects import Obj
from webhook.bindings import GROUP, NAMESPACED, VERSION
from webhook.review import GroupVersionResource, ReviewRequest
from webhook.suspend import decide

_BINDINGS: Final = GroupVersionResource(GROUP, VERSION, NAMESPACED)
_NULL: Final = msgspec.Raw(b"null")


def gate(catalogue: Catalogue, now: Callable[[], str]) -> Admission:
    """Holds what is created or grows, as `webhook.suspend` decides; ``now`` in RFC 3339."""
    scope = Scope(catalogue)

    def admit(operation: str, old: Obj | None, new: Obj) -> Obj:
        if old is not None and old["spec"] == new["spec"]:
            return new
        request = ReviewRequest(
            resource=_BINDINGS,
            operation=operation,
            object=msgspec.Raw(msgspec.json.encode(new)),
            old_object=_NULL if old is None else msgspec.Raw(msgspec.json.encode(old)),
        )
        patch = decide(request, scope, managed=False, at=now()).response.patch
        held: Obj = new if patch is None else json_patch(new, msgspec.json.decode(patch))
        return held

    return admit
