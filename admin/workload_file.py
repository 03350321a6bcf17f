"""A workload file: one object among whatever else a manifest holds, as Fairway reads workloads.

Manifests mostly hold Services and ConfigMaps beside the workload; these are passed over. Two workloads are
two questions, so they are refused.
"""

from dataclasses import dataclass
from pathlib import Path

from admin.stated_resources import refusals
from fairway.kube.dump_document import JsonText, MalformedDump
from fairway.kube.dump_documents import documents_in
from fairway.kube.dump_items import ItemHead, read_head, title
from fairway.kube.dump_text import dump_text
from fairway.workloads.gang import Gang
from fairway.workloads.registry import KNOWN_KINDS, read_workload

_MOST_BYTES = 16 << 20
_SHOWN_KINDS, _SHOWN = 8, 3
_KINDS = frozenset(kind for kind, _ in KNOWN_KINDS)


class WorkloadError(ValueError):
    """A file holds no workload that can be read; the message names it and says what was expected."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload as the gang that it is, and as the object that an estimator can read itself."""

    gang: Gang
    raw_json: bytes

    def __str__(self) -> str:
        gang = self.gang
        return f"{gang.kind} {gang.namespace}/{gang.name}" if gang.namespace else f"{gang.kind} {gang.name}"


def read_workload_file(path: Path) -> Workload:
    """The workload in a YAML or JSON file. Blocks; raises WorkloadError."""
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise WorkloadError(f"{path}: larger than {_MOST_BYTES >> 20} MiB: expected one workload")
        data = dump_text(path)
        documents = list(documents_in(path, data))
    except (MalformedDump, OSError) as error:
        raise WorkloadError(f"{path}: {error}") from None
    objects = [text for document in documents for text in document.items]
    known = [text for text in objects if _kind(text) in _KINDS]
    if len(known) > 1:
        names = ", ".join(title(_kind(text), text) for text in known[:_SHOWN_KINDS])
        raise WorkloadError(
            f"{path}: {len(known)} workloads ({names}): put the one to ask about in a file alone"
        )
    if not known:
        kinds = ", ".join(sorted({_kind(text) or "no kind" for text in objects})[:_SHOWN_KINDS]) or "nothing"
        names = ", ".join(sorted(_KINDS))
        raise WorkloadError(f"{path}: expected a workload, found {kinds}; known are {names}")
    raw = bytes(known[0])
    read = read_workload(raw)
    if isinstance(read, Gang):
        refused = list(refusals(read.pod_sets))
        if refused:
            raise WorkloadError(
                f"{path}: kube-apiserver would refuse its pods: {'; '.join(refused[:_SHOWN])}"
            )
        return Workload(read, raw)
    raise WorkloadError(f"{path}: {'; '.join(read.problems)}")


def _kind(text: JsonText) -> str:
    head = read_head(text)
    return head.kind if isinstance(head, ItemHead) else ""
