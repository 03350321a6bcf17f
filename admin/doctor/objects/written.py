"""What a file says of our own kinds that an API server would refuse or drop.

An API server keeps no field that the schema lacks, so this is asked of files alone: there a misspelt field
looks as if it counted. The schemas are those of the CustomResourceDefinitions that this release ships.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, cast

import msgspec

from admin.doctor.evidence import Written
from admin.doctor.finding import Finding, Verdict
from admin.doctor.platform.definitions import shipped
from fairway.kube.decoding import UNDECODABLE
from fairway.kube.dump_items import shown, title
from fairway.names import API_VERSION, VERSION

_OF_MEMBERS: Final = frozenset({"NodeDevices"})
"""Kinds of the group that member clusters serve: a file may hold them beside Karmada's."""
_NO_FIELD: Final = "there is no such field: kubectl refuses it, and without its validation it is dropped"
_NEAR: Final = 0.75
"""So much of two names has to be the same: what is another field of Kueue's is no slip of the pen."""


def misfits(written: Iterable[Written]) -> Iterator[Finding]:
    """What is wrong with objects of our group as files have them: kinds, versions, fields, and doubles."""
    schemas: dict[str, object] = {}
    first: dict[str, str] = {}
    for one in written:
        # Parsed here and not at import: only files with queues need them.
        schemas = schemas or {each.spec.names.kind: each.schema(VERSION) for each, _ in shipped()}
        subject = title(one.kind, one.text)
        correct = f"correct it in {one.file}"
        if one.kind not in schemas:
            if one.kind not in _OF_MEMBERS:
                told = f"kind: expected one of {', '.join(sorted(schemas))}, found {shown(one.kind)}"
                yield Finding(Verdict.ERROR, subject, f"{told}{_near(one.kind, schemas)}", correct)
            continue
        if one.api_version not in ("", API_VERSION):
            told = f"apiVersion: expected {API_VERSION}, found {shown(one.api_version)}: it is refused"
            yield Finding(Verdict.ERROR, subject, told, correct)
        if subject in first:
            there = "there before" if first[subject] == one.file else f"in {first[subject]} before"
            yield Finding(
                Verdict.WARNING,
                subject,
                f"metadata.name: expected each object once, found it {there}: the later one counts",
                f"leave one of them, or give them names of their own, in {one.file}",
            )
        first.setdefault(subject, one.file)
        for field, why in _unknown_in(one.text, schemas[one.kind]):
            yield Finding(Verdict.WARNING, subject, f"{field}: {why}", correct)


def _unknown_in(text: bytes, schema: object) -> Iterator[tuple[str, str]]:
    try:
        stated = msgspec.json.decode(text)
    except UNDECODABLE:
        # Told where it was read.
        return
    if isinstance(stated, dict):
        # The API server itself knows the metadata; a status is the dispatcher's, of whatever release.
        yield from _unknown({k: v for k, v in stated.items() if k not in ("metadata", "status")}, schema, "")


def _unknown(stated: object, schema: object, at: str) -> Iterator[tuple[str, str]]:
    """Fields that the schema lacks, as path and sentence."""
    known = cast("Mapping[str, object]", schema) if isinstance(schema, dict) else {}
    if isinstance(stated, list):
        for number, item in enumerate(stated):
            yield from _unknown(item, known.get("items"), f"{at}[{number}]")
    if not isinstance(stated, dict) or known.get("type") != "object":
        return
    properties, others = known.get("properties"), known.get("additionalProperties")
    fields = cast("Mapping[str, object]", properties) if isinstance(properties, dict) else {}
    for name, value in stated.items():
        path = f"{at}.{name}" if at else name
        if name in fields:
            yield from _unknown(value, fields[name], path)
        elif others is not None:
            yield from _unknown(value, others, path)
        else:
            yield shown(path), f"{_NO_FIELD}{_near(name, fields)}"


def _near(name: str, known: Collection[str]) -> str:
    # Whatever the case, so that `clusterqueue` is near to `clusterQueue` and to nothing else.
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=_NEAR)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""
