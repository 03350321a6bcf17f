"""One action at a time: look at what is there, say what would change, and change it.

Every action looks before it writes and writes only a difference. So a run that was killed anywhere is made
again, and the second run of an installation that is complete writes nothing.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admin.install import stock
from admin.install.difference import Difference, differences
from admin.install.kubeconfig import filled, filled_with_text, has_token, kubeconfig, secret_data
from admin.install.leftovers import is_leftover, uid_of
from admin.install.manifest import Manifest, ManifestError, manifest_of
from admin.install.step import Action, Apply, CopyCertificates, IssueKubeconfig, Protect, Remove, Replace
from admin.install.writing import Body, Conflicting, applied, created, deleted, read, replaced
from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, KubeError, NotFound

_TRIES: Final = 5
_THEIRS_SERVE: Final = ("Namespace", "PriorityClass")
"""Of these kinds one that is there already does as well: the value of a PriorityClass cannot be changed."""
_REPLACED: Final = "in the place of Karmada's already"


class InstallError(Exception):
    """An action or a wait that failed; the message names the plane, the object, the field and what to do."""


class Verdict(StrEnum):
    """What an action does, or did, to an object."""

    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Change:
    """What an action comes to. ``note``: what else there is to know about it."""

    plane: str
    manifest: Manifest
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    note: str = ""


class Performer:
    """Performs actions, or with ``dry_run`` only looks. ``planes``: a client for each, by name."""

    def __init__(self, planes: Mapping[str, KubeClient], *, force: bool, dry_run: bool) -> None:
        self._planes = planes
        self._force = force
        self._dry_run = dry_run
        self._removed = set[tuple[str, str]]()

    async def perform(self, plane: str, action: Action) -> Change:
        """Bring about what the action says. Raises InstallError."""
        manifest = action.manifest
        try:
            match action:
                case Apply():
                    return await self._apply(plane, manifest)
                case IssueKubeconfig():
                    return await self._issue(plane, action)
                case CopyCertificates():
                    return await self._copy(plane, action)
                case Replace():
                    return await self._replace(plane, action)
                case Protect():
                    return await self._protect(plane, action)
                case Remove():
                    return await self._remove(plane, action)
        except Conflicting as error:
            told = "take them back there, or overwrite them with --force-conflicts"
            raise InstallError(f"{plane}: {manifest}: {error}; {told}") from None
        except KubeError as error:
            raise InstallError(f"{plane}: {manifest}: {error}") from None
        except ManifestError as error:
            raise InstallError(f"{plane}: {error}") from None

    async def _apply(self, plane: str, manifest: Manifest) -> Change:
        client = self._planes[plane]
        live = await read(client, manifest.path)
        if live is None:
            if not self._dry_run:
                await applied(client, manifest, force=self._force, dry_run=False)
            return Change(plane, manifest, Verdict.CREATE)
        if manifest.kind.kind in _THEIRS_SERVE and not stock.is_ours(live):
            return Change(plane, manifest, Verdict.KEEP, note="was there before, and stays as it is")
        wanted = await applied(client, manifest, force=self._force, dry_run=True)
        found = differences(live, wanted)
        if not found:
            return Change(plane, manifest, Verdict.KEEP)
        if not self._dry_run:
            await applied(client, manifest, force=self._force, dry_run=False)
        return Change(plane, manifest, Verdict.CHANGE, found)

    async def _issue(self, plane: str, action: IssueKubeconfig) -> Change:
        secret = await read(self._planes[action.plane], action.token)
        if secret is None or not has_token(secret):
            if not self._dry_run:
                where = f"{action.plane}: {action.token}"
                raise InstallError(
                    f"{where}: expected the token of a ServiceAccount; run the installation again"
                )
            note = f"of a token on {action.plane} that is not there yet"
            return Change(plane, action.manifest, Verdict.CREATE, note=note)
        user = action.token.rpartition("/")[2].removesuffix("-token")
        text = kubeconfig(secret, action.server, action.cluster, user, f"{action.plane}: {action.token}")
        return await self._apply(plane, filled_with_text(action.manifest, action.entry, text))

    async def _copy(self, plane: str, action: CopyCertificates) -> Change:
        source = await read(self._planes[plane], action.source)
        data = {} if source is None else secret_data(source)
        missing = [entry for entry in action.files.entries if not data.get(entry)]
        if missing:
            raise InstallError(f"{plane}: {action.source}: data: expected {', '.join(missing)}")
        names = dict(zip(("tls.crt", "tls.key", "ca.crt"), action.files.entries, strict=True))
        return await self._apply(
            plane, filled(action.manifest, {ours: data[theirs] for ours, theirs in names.items()})
        )

    async def _protect(self, plane: str, action: Protect) -> Change:
        client, manifest = self._planes[plane], action.manifest
        live = await read(client, manifest.path)
        if live is not None and not stock.is_ours(live):
            return Change(plane, manifest, Verdict.KEEP, note="Karmada's, and stays as it is")
        deployment = await read(client, action.deployment.path)
        return await self._apply(plane, stock.over_pods_of(manifest, deployment))

    async def _remove(self, plane: str, action: Remove) -> Change:
        client, manifest = self._planes[plane], action.manifest
        live = await read(client, manifest.path)
        if live is None or (plane, manifest.path) in self._removed:
            # In a dry run it is still there when it is looked for once more.
            return Change(plane, manifest, Verdict.KEEP, note="is not there")
        if not is_leftover(live, action):
            return Change(plane, manifest, Verdict.KEEP, note="is not ours, and stays as it is")
        if not self._dry_run:
            with suppress(NotFound):
                await deleted(client, manifest.path, uid_of(live))
        else:
            self._removed.add((plane, manifest.path))
        return Change(plane, manifest, Verdict.REMOVE)

    async def _replace(self, plane: str, action: Replace) -> Change:
        for _ in range(_TRIES):
            try:
                return await self._replaced_once(plane, action)
            except Conflict:
                # Its controller writes its status all the time.
                continue
        return await self._replaced_once(plane, action)

    async def _replaced_once(self, plane: str, action: Replace) -> Change:
        client, manifest = self._planes[plane], action.manifest
        live = await read(client, manifest.path)
        if live is None:
            if action.onto is stock.nobody_in:
                return Change(plane, manifest, Verdict.KEEP, note="there is none")
            if not self._dry_run:
                await created(client, manifest.collection, manifest.body)
            return Change(plane, manifest, Verdict.CREATE)
        was_stock = stock.was_stock(live)
        if stock.is_ours(live) and not was_stock:
            if action.onto is stock.nobody_in:
                return await self._remove(plane, Remove(manifest))
            return await self._put(plane, manifest, live, {**live, **_ours_over(live, manifest)})
        wanted = action.onto(live, manifest)
        if wanted == live:
            note = _REPLACED if was_stock else "Karmada's, and stays as it is"
            return Change(plane, manifest, Verdict.KEEP, note=note)
        if not was_stock and not self._dry_run:
            await self._remember(client, action, live)
        note = _REPLACED if was_stock else "in the place of Karmada's"
        return await self._put(plane, manifest, live, {**live, **wanted}, note)

    async def _put(self, plane: str, manifest: Manifest, live: Body, wanted: Body, note: str = "") -> Change:
        client = self._planes[plane]
        after = await replaced(client, manifest.path, wanted, dry_run=True)
        found = differences(live, after)
        if not found:
            return Change(plane, manifest, Verdict.KEEP, note=note)
        if not self._dry_run:
            await replaced(client, manifest.path, wanted, dry_run=False)
        return Change(plane, manifest, Verdict.CHANGE, found, note)

    async def _remember(self, client: KubeClient, action: Replace, live: Body) -> None:
        """Before anything of it is changed; what was remembered of other objects of the cluster stays."""
        present = await read(client, action.record.path)
        data = dict(_data(present))
        text = stock.remembered(live)
        if data.get(action.entry) != text:
            data[action.entry] = text
            record = manifest_of({**action.record.body, "data": data}, str(action.record))
            await applied(client, record, force=True, dry_run=False)


def _ours_over(live: Body, manifest: Manifest) -> Body:
    """All that we say of an object that is ours alone, with what the server needs to know it by."""
    metadata, ours = live.get("metadata"), manifest.body.get("metadata")
    merged = {**metadata, **ours} if isinstance(metadata, dict) and isinstance(ours, dict) else metadata
    return {**manifest.body, "metadata": merged}


def _data(config_map: Body | None) -> Mapping[str, str]:
    data = None if config_map is None else config_map.get("data")
    return {str(key): str(value) for key, value in data.items()} if isinstance(data, dict) else {}
