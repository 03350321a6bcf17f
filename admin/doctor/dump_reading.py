"""A dump read for the doctor: what ``kubectl get KINDS -A -o json|yaml`` wrote, of any kinds.

What a file does not hold may not be there or may not have been asked for. Of kinds that every API server of
the role has, it is the second, and the checks say so; of others, the first is assumed.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from admin.doctor.evidence import Plane, Role, Written
from admin.doctor.kinds import NEVER_NONE, Kind
from admin.doctor.reading import Misread, Read, told
from admin.doctor.views import Coordinates, View, by_coordinates, coordinates_of_item, views
from fairway.kube.dump_document import Document, MalformedDump
from fairway.kube.dump_documents import documents_in
from fairway.kube.dump_items import Flaw, read_head, shown, title
from fairway.kube.dump_text import dump_text
from fairway.kube.dumps import DumpError
from fairway.names import API_VERSION, GROUP

_SHOWN_KINDS: Final = 8


class PlaneDump:
    """Files as one API server. Construct it on one thread: decoders cannot be made on two at once."""

    def __init__(self, role: Role, name: str, kinds: Iterable[Kind]) -> None:
        self._role = role
        self._name = name
        self._views = views(kinds)
        self._by_coordinates = by_coordinates(self._views)
        self._others: Counter[str] = Counter()
        self._partial: set[str] = set()
        self._problems: list[Misread] = []
        self._written: list[Written] = []

    def read(self, *paths: Path) -> Read:
        """Everything in the files that the doctor knows. Blocks; raises DumpError."""
        for path in paths:
            try:
                data = dump_text(path)
                for document in documents_in(path, data):
                    self._take(document, str(path))
            except MalformedDump as error:
                raise DumpError(f"{path}: {error}; write it with: kubectl get KINDS -A -o json") from None
        return self._read(",".join(map(str, paths)))

    def _read(self, path: str) -> Read:
        objects = {view.name: found for view in self._views if (found := view.objects())}
        if not objects and not self._written:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in self._others.most_common(_SHOWN_KINDS))
            first = f"; the first problem is {self._problems[0].told}" if self._problems else ""
            raise DumpError(
                f"{path}: expected objects of the {self._role} API server, found {kinds or 'none'}{first}"
            )
        unread = dict.fromkeys(NEVER_NONE[self._role] - set(objects), f"{path} has none of them")
        unread |= dict.fromkeys(self._partial, f"{path} has only one page of them")
        problems = tuple(Misread(one.subject, f"{path}: {one.told}") for one in self._problems)
        return Read(Plane(self._role, self._name, "", objects, unread, self._written), problems)

    def _take(self, document: Document, path: str) -> None:
        for text in document.items:
            head = read_head(text)
            if isinstance(head, Flaw):
                self._problems += told(title(document.item_kind, text), [head])
                continue
            kind = head.kind or document.item_kind
            where = coordinates_of_item(head.api_version, kind)
            view = self._by_coordinates.get(where) or self._of_items_without_group(head.api_version, where)
            if GROUP in (where.group, head.api_version) or (view and view.coordinates.group == GROUP):
                # What a list says of all its items, these need not say.
                version = head.api_version or (API_VERSION if document.item_kind else "")
                self._written.append(Written(path, kind, version, bytes(text)))
            if view is None:
                self._others[shown(kind)] += 1
                continue
            self._problems += told(title(kind, text), view.add(text))
            if document.is_partial:
                self._partial.add(view.name)

    def _of_items_without_group(self, api_version: str, where: Coordinates) -> View | None:
        """Items of a typed list may leave out what they are; the plural tells then, where only one has it."""
        if api_version:
            return None
        found = [view for view in self._views if view.coordinates.plural == where.plural]
        return found[0] if len(found) == 1 else None
