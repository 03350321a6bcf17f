"""Observing: the dispatcher in front of a fleet of which nothing is held, as if all of it were.

Everything is derived from what is written on bindings, so it is enough to show those otherwise: what comes up
unplaced is shown as held by the gate, and a write of ours is kept here instead of being sent, and shown from
then on. Until it is released that way its placement is not shown. So the line, the reasons, the quota and the
waits are those that there would be, and the API server is never written to.

What ran before counts as it runs. A process that starts anew has forgotten what it had pretended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from fairway.kube.errors import NotFound
from fairway.kube.patching import Gone, Patched, PatchResult
from fairway.kube.preconditions import Preconditions
from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.derivation import is_finished
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.record import parse_record
from queue_dispatcher.bindings.requeue import parse_requeue
from queue_dispatcher.turn.writes import Companion

NOTE: Final = "observed: nothing is held, and this is what would be"


@dataclass(slots=True)
class _Pretence:
    """What would be written on a binding; ``seen``: the binding as it is on the server."""

    seen: ResourceBinding
    is_held: bool
    admission: str | None = None
    requeue: str | None = None


class Observing:
    """The bindings as they would be; ``read`` reduces one as it is. Also the API that takes our writes."""

    def __init__(self, read: Callable[[ResourceBinding], Binding]) -> None:
        self._read = read
        self._pretences: dict[str, _Pretence] = {}
        self._as_they_are: set[str] = set()

    def shown(self, stated: ResourceBinding) -> Binding:
        """The binding as it would be."""
        binding = self._read(stated)
        pretence = self._pretences.get(binding.uid)
        if pretence is None and binding.uid not in self._as_they_are:
            if _comes_up(binding):
                pretence = self._pretences[binding.uid] = _Pretence(stated, is_held=True)
            else:
                self._as_they_are.add(binding.uid)
        if pretence is not None:
            pretence.seen = stated
            return _as_pretended(binding, pretence)
        if binding.is_held and binding.record is None:
            # Somebody really holds it: no release of ours would ever be seen to be placed.
            return replace(binding, is_skipped=True, gated_ms=None, requeue=None)
        return binding

    def forget(self, uid: str) -> None:
        """The binding is gone."""
        self._pretences.pop(uid, None)
        self._as_they_are.discard(uid)

    async def patch(
        self, path: str, body: Mapping[str, object], when: Preconditions
    ) -> PatchResult[ResourceBinding]:
        """See `queue_dispatcher.release.executor.Api`: kept, and nothing is sent."""
        pretence = self._pretences.get(when.uid)
        if pretence is None:
            return Gone(f"{path}: is observed as it is, so nothing is pretended to be written on it")
        metadata, spec = _below(body, "metadata"), _below(body, "spec")
        annotations = _below(metadata, "annotations")
        if ADMISSION in annotations:
            pretence.admission = _text(annotations[ADMISSION])
        if REQUEUE in annotations:
            pretence.requeue = _text(annotations[REQUEUE])
        held = _below(spec, "suspension").get("scheduling")
        pretence.is_held = pretence.is_held if held is None else bool(held)
        return Patched(pretence.seen)

    async def read(self, path: str) -> ResourceBinding:
        """See `queue_dispatcher.release.executor.Api`; no write of ours is ever in doubt."""
        raise NotFound(path, 404, "nothing is read again while observing")

    async def ensure(self, companion: Companion) -> None:
        """See `queue_dispatcher.release.executor.Api`: where nothing is released nobody is guided."""


def _comes_up(binding: Binding) -> bool:
    """Whether it is as the gate would find it at its creation."""
    is_scheduled = binding.is_workload and binding.placement is not None
    return is_scheduled and not (binding.is_held or binding.placed or binding.is_skipped or binding.record)


def _as_pretended(binding: Binding, pretence: _Pretence) -> Binding:
    if pretence.is_held and is_finished(binding):
        return replace(binding, notes=(*binding.notes, NOTE))
    shown = replace(
        binding,
        is_held=pretence.is_held,
        admission=None if pretence.admission is None else parse_record(pretence.admission),
        requeue=None if pretence.requeue is None else parse_requeue(pretence.requeue),
        notes=(*binding.notes, NOTE),
    )
    if not pretence.is_held:
        return shown
    # Taken back or not yet released: as it would be, nowhere.
    return replace(shown, placed=(), finished=frozenset(), scheduled=None, gated_ms=binding.created_ms)


def _below(body: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = body.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
