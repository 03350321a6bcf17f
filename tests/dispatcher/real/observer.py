"""Everything that ever stood in the bindings of one namespace, version by version."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from fairway.names import ADMISSION
from tests.dispatcher.scenarios.objects import GPU, WORK

PATIENCE_S = 60.0
Scheduled = tuple[tuple[str, int], ...]


class _Suspension(KubeStruct, frozen=True):
    scheduling: bool = False


class _Share(KubeStruct, frozen=True):
    name: str = ""
    replicas: int = 0


class _Spec(KubeStruct, frozen=True):
    replicas: int = 0
    suspension: _Suspension | None = None
    clusters: list[_Share] | None = None


class _Item(KubeStruct, frozen=True):
    cluster_name: str = ""


class _Status(KubeStruct, frozen=True):
    aggregated_status: list[_Item] | None = None


class Binding(KubeStruct, frozen=True):
    """A binding as these tests look at it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_held(self) -> bool:
        return self.spec.suspension is not None and self.spec.suspension.scheduling

    @property
    def record(self) -> dict[str, Any] | None:
        text = (self.metadata.annotations or {}).get(ADMISSION)
        return None if text is None else json.loads(text)

    @property
    def clusters(self) -> Scheduled:
        return tuple((share.name, share.replicas) for share in self.spec.clusters or ())

    @property
    def placed(self) -> int:
        return sum(replicas for _, replicas in self.clusters)

    @property
    def has_ended(self) -> bool:
        return bool(self.status.aggregated_status)

    @property
    def charge(self) -> int:
        """GPUs that are charged for it."""
        return 0 if self.record is None or self.has_ended else int(self.record["requests"][GPU])


@dataclass(slots=True)
class Observer:
    """``versions`` by name of the binding, each as it stood from then on; ``most_charged`` in GPUs."""

    namespace: str
    versions: dict[str, list[Binding]] = field(default_factory=dict)
    most_charged: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def kind(self) -> ResourceKind[Binding]:
        path = f"{WORK}/namespaces/{self.namespace}/resourcebindings"
        return ResourceKind("resourcebindings", path, Binding)

    def upsert(self, binding: Binding) -> None:
        """A binding appeared or changed."""
        self.versions.setdefault(binding.metadata.name, []).append(binding)
        charged = sum(versions[-1].charge for versions in self.versions.values())
        self.most_charged = max(self.most_charged, charged)
        self._changed.set()

    def __getitem__(self, name: str) -> Binding:
        return self.versions[name][-1]

    def get(self, name: str) -> Binding | None:
        return self.versions[name][-1] if name in self.versions else None

    def held(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if (known := self.get(name)) is not None and known.is_held]

    def placed(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if (known := self.get(name)) is not None and known.placed]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds; it is looked at after each change of a binding."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def until_of(self, name: str, holds: Callable[[Binding], object]) -> Binding:
        """Wait until it holds of one binding."""
        await self.until(lambda: (known := self.get(name)) is not None and holds(known))
        return self[name]

    def admissions(self, name: str) -> int:
        """How often the binding was released with another record than before."""
        versions = self.versions[name]
        return sum(
            after.record is not None and not after.is_held and after.record != before.record
            for before, after in pairwise(versions)
        )
