"""Which bindings are Fairway's to hold: workloads with a placement that ask for an accelerator, or opted in.

The same question is asked by expression in the API server (`webhook.match_conditions`), so that nothing else
ever waits for the webhook. Only the namespace's label cannot be seen from the object: it selects a webhook
entry of its own, which calls another path.
"""

import re
from dataclasses import dataclass
from typing import Final

from fairway.accelerators.catalogue import Catalogue
from fairway.names import QUEUE
from webhook.bindings import Binding, TemplateReference
from webhook.growth import is_positive

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_GROUP: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True, order=True)
class WorkloadKind:
    """Workloads of this kind are held whatever they ask for; ``group`` is empty for the core group."""

    kind: str
    group: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


def parse_workload_kind(text: str) -> WorkloadKind:
    """Read ``Job.batch`` or, of the core group, ``Pod``. Raises ValueError that says what was expected."""
    kind, dot, group = text.partition(".")
    if not _KIND.fullmatch(kind) or (dot and not _GROUP.fullmatch(group)):
        raise ValueError(
            "expected KIND.GROUP such as Job.batch or PyTorchJob.kubeflow.org, without a version"
        )
    return WorkloadKind(kind, group)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is held: by the catalogue's accelerators, by kind, by a queue named on the binding."""

    catalogue: Catalogue
    kinds: frozenset[WorkloadKind] = frozenset()

    def includes(self, binding: Binding, *, managed: bool) -> bool:
        """Whether a workload with a placement is in scope; ``managed`` says that its whole namespace is."""
        return (
            managed
            or binding.metadata.has(QUEUE)
            or self._lists(binding.spec.resource)
            or self.asks_accelerator(binding)
        )

    def asks_accelerator(self, binding: Binding) -> bool:
        """Whether any replica asks for more than none of an accelerator."""
        return any(
            is_positive(quantity) and self._is_accelerator(name)
            for requests in binding.spec.requests()
            for name, quantity in requests.items()
        )

    def _lists(self, resource: TemplateReference) -> bool:
        return bool(self.kinds) and WorkloadKind(resource.kind, resource.group) in self.kinds

    def _is_accelerator(self, name: str) -> bool:
        entry = self.catalogue.lookup(name)
        return entry is not None and entry.is_accelerator
