"""Objects deleted, and only ours: by the installer's label, or by names that only we use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.install import stock
from admin.install.kinds import Kind
from admin.install.listing import listed
from admin.install.manifest import COMPONENT, INSTALLER, MANAGED_BY, called, object_path
from admin.install.performing import InstallError
from admin.install.writing import deleted, read
from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, KubeError, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta

OURS: Final = f"{MANAGED_BY}={INSTALLER}"


@dataclass(frozen=True, slots=True)
class Removed:
    """An object that was deleted, or in a dry run would be."""

    plane: str
    object: str


class _Object(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()

    @property
    def is_ours(self) -> bool:
        return (self.metadata.labels or {}).get(MANAGED_BY) == INSTALLER

    @property
    def was_stock(self) -> bool:
        return stock.WAS_STOCK in (self.metadata.annotations or {})


class Remover:
    """Deletes, or with ``dry_run`` only says what; ``told`` hears of each object, ``left`` has what stays."""

    def __init__(self, told: Callable[[Removed], None], *, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.left: list[str] = []
        self._told = told
        self._gone: set[Removed] = set()

    def leave(self, what: str) -> None:
        """Say that something stays; once is enough."""
        if what not in self.left:
            self.left.append(what)

    async def remove_labelled(
        self, plane: str, client: KubeClient, kinds: Sequence[Kind], component: str = ""
    ) -> None:
        """All objects of these kinds that carry our label, kind by kind; of one program, or of all.

        Raises InstallError.
        """
        selector = f"{OURS},{COMPONENT}={component}" if component else OURS
        for kind in kinds:
            try:
                found = await listed(client, kind.path, _Object, label_selector=selector)
            except NotFound:
                continue
            except KubeError as error:
                raise InstallError(f"{plane}: {kind.plural}: {error}") from None
            for each in found:
                name, namespace = each.metadata.name, each.metadata.namespace
                if each.was_stock and self.dry_run:
                    # It would have been given back by now.
                    continue
                if each.was_stock:
                    what = called(kind, namespace, name)
                    self.leave(f"{plane}: {what}: was Karmada's, and nothing remembers how it was")
                    continue
                await self._remove(plane, client, kind, namespace, name, each.metadata.uid)

    async def remove_ours(
        self, plane: str, client: KubeClient, kind: Kind, namespace: str, name: str
    ) -> None:
        """One object, if it is there and carries our label. Raises InstallError."""
        live = await self._read(plane, client, kind, namespace, name)
        if (
            live is not None
            and (live.metadata.labels or {}).get(MANAGED_BY) == INSTALLER
            and not live.was_stock
        ):
            await self._remove(plane, client, kind, namespace, name, live.metadata.uid)

    async def remove_named(
        self, plane: str, client: KubeClient, kind: Kind, namespace: str, name: str
    ) -> None:
        """One object that our programs make by themselves, if it is there. Raises InstallError."""
        live = await self._read(plane, client, kind, namespace, name)
        if live is not None:
            await self._remove(plane, client, kind, namespace, name, live.metadata.uid)

    async def _read(
        self, plane: str, client: KubeClient, kind: Kind, namespace: str, name: str
    ) -> _Object | None:
        try:
            body = await read(client, object_path(kind, namespace, name))
        except KubeError as error:
            raise InstallError(f"{plane}: {called(kind, namespace, name)}: {error}") from None
        return None if body is None else msgspec.convert(body, _Object)

    async def _remove(
        self, plane: str, client: KubeClient, kind: Kind, namespace: str, name: str, uid: str
    ) -> None:
        if not self.dry_run:
            try:
                await deleted(client, object_path(kind, namespace, name), uid)
            except NotFound:
                return
            except Conflict:
                # Another one of that name, made a moment ago, by somebody else or for somebody else.
                self.leave(f"{plane}: {called(kind, namespace, name)}: was made anew meanwhile")
                return
            except KubeError as error:
                raise InstallError(f"{plane}: {called(kind, namespace, name)}: {error}") from None
        gone = Removed(plane, called(kind, namespace, name))
        # In a dry run it is still there when it is looked for again.
        if gone not in self._gone:
            self._gone.add(gone)
            self._told(gone)
