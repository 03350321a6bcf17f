"""A live API server read once for the doctor: its version, and every kind in pages.

What one may not list is told and the rest is read; an API server that cannot be reached, or does not know
us, is told of once and not asked again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from admin.doctor.evidence import Plane, Role
from admin.doctor.kinds import IN_OUR_NAMESPACES, NEVER_NONE, Kind
from admin.doctor.views import View, views
from admin.progress import Seen
from fairway.kube.client import JSON, METADATA_LIST, KubeClient
from fairway.kube.decoding import ListPage
from fairway.kube.dump_items import Flaw, title
from fairway.kube.errors import Expired, NotFound, Refused, Unauthorized
from fairway.kube.objects import KubeStruct

_PAGE_SIZE: Final = 500


class _Version(KubeStruct, frozen=True):
    git_version: str = ""


@dataclass(frozen=True, slots=True)
class Misread:
    """An object that could not be read, or not as it is written: ``told`` in a sentence."""

    subject: str
    told: str


@dataclass(frozen=True, slots=True)
class Read:
    """One API server as it was read, and what is wrong with each object that could not be.

    ``failures``: why it could not be read as a whole.
    """

    plane: Plane
    problems: tuple[Misread, ...] = ()
    failures: tuple[str, ...] = ()


async def read_plane(
    client: KubeClient, role: Role, name: str, kinds: Iterable[Kind], namespaces: Sequence[str], seen: Seen
) -> Read:
    """Everything of these kinds; what is kept by the thousand only in ``namespaces``.

    Raises KubeError where the API server cannot be reached or does not know us.
    """
    try:
        version = (await client.get_json("/version", _Version)).git_version
    except Unauthorized:
        raise
    except Refused:
        version = ""
    objects, unread, problems = {}, {}, list[Misread]()
    for view in views(kinds):
        try:
            broken = await _read(client, view, namespaces, seen)
        except NotFound as error:
            if view.name in NEVER_NONE[role]:
                unread[view.name] = f"{error}: is this the {role} API server?"
            else:
                objects[view.name] = view.objects()
        except Unauthorized:
            raise
        except Refused as error:
            unread[view.name] = str(error)
        else:
            objects[view.name] = view.objects()
            problems += [Misread(one.subject, f"{name}: {one.told}") for one in broken]
    return Read(Plane(role, name, version, objects, unread), tuple(problems))


async def _read(client: KubeClient, view: View, namespaces: Sequence[str], seen: Seen) -> list[Misread]:
    paths = [view.first.path]
    if view.name in IN_OUR_NAMESPACES:
        root, _, plural = view.first.path.rpartition("/")
        paths = [f"{root}/namespaces/{namespace}/{plural}" for namespace in dict.fromkeys(namespaces)]
    try:
        return [one for path in paths for one in await _pages(client, view, path, seen)]
    except Expired:
        # The list took longer than the server keeps its history: it is smaller the second time, or fails.
        view.clear()
        return [one for path in paths for one in await _pages(client, view, path, seen)]


async def _pages(client: KubeClient, view: View, path: str, seen: Seen) -> list[Misread]:
    first: Mapping[str, str] = {**view.first.params, "limit": str(_PAGE_SIZE)}
    accept = METADATA_LIST if view.first.metadata_only else JSON
    params, count, broken = first, 0, list[Misread]()
    while True:
        page = await client.get_json(path, ListPage, params, accept=accept)
        for raw in page.items or ():
            broken += told(title(view.name, raw), view.add(raw))
            count += 1
        seen(f"{count:,} {view.name}")
        if not page.metadata.continue_:
            return broken
        params = {**first, "continue": page.metadata.continue_}


def told(what: str, flaws: Iterable[Flaw]) -> list[Misread]:
    """What is wrong with an object, one by one."""
    return [
        Misread(what, f"{what}: {flaw.field}: {flaw.detail}" if flaw.field else f"{what}: {flaw.detail}")
        for flaw in flaws
    ]
