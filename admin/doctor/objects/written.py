"""What a file says of our own kinds that an API server would refuse or drop.

An API server keeps no field that the schema lacks and no value that it refuses, so this is asked of files
alone. The schemas are those of the CustomResourceDefinitions that this release ships.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

import msgspec

from admin.doctor.evidence import Written
from admin.doctor.finding import Finding, Verdict
from admin.doctor.object_metadata import METADATA
from admin.doctor.platform.definitions import shipped
from admin.doctor.refusals import Holds, Refusal, near, refusals
from admin.doctor.schema_rules import cel_rules
from admin.doctor.structural_schema import Schema, read_schema
from fairway.kube.decoding import NAMED, UNDECODABLE
from fairway.kube.dump_items import shown, title
from fairway.names import API_VERSION, VERSION

_OF_MEMBERS: Final = frozenset({"NodeDevices"})
"""Kinds of the group that member clusters serve: a file may hold them beside Karmada's."""
_REFUSED: Final = "it is refused"


def misfits(written: Iterable[Written]) -> Iterator[Finding]:
    """What is wrong with objects of our group as files have them: kinds, versions, fields, values, doubles.

    Of an object that an API server has already only the next change is refused, so that is a warning.
    """
    first: dict[str, str] = {}
    holds: Holds | None = None
    for one in written:
        # Parsed here and not at import, as the engine of rules is loaded: only files with queues need them.
        schemas = our_schemas()
        holds = holds or cel_rules()
        subject = title(one.kind, one.text)
        correct = f"correct it in {one.file}"
        if one.kind not in schemas:
            if one.kind not in _OF_MEMBERS:
                told = (
                    f"kind: expected one of {', '.join(sorted(schemas))}, found {shown(one.kind) or 'none'}"
                )
                yield Finding(Verdict.ERROR, subject, f"{told}{near(one.kind, schemas)}", correct)
            continue
        if one.api_version != API_VERSION:
            found = shown(one.api_version) or "none"
            told = f"apiVersion: expected {API_VERSION}, found {found}: {_REFUSED}"
            yield Finding(Verdict.ERROR, subject, told, correct)
        if subject in first:
            there = "there before" if first[subject] == one.file else f"in {first[subject]} before"
            yield Finding(
                Verdict.WARNING,
                subject,
                f"metadata.name: expected each object once, found it {there}: the later one counts",
                f"leave one of them, or give them names of their own, in {one.file}",
            )
        if one.kind in _without_namespaces() and _namespace(one.text):
            told = "metadata.namespace: the kind has no namespaces, so an API server drops it"
            yield Finding(Verdict.WARNING, subject, told, f"remove it from {one.file}")
        if subject != one.kind:
            first.setdefault(subject, one.file)
        is_stored = one.is_stored
        verdict = Verdict.WARNING if is_stored else Verdict.ERROR
        for refusal in refused(one.text, schemas[one.kind], holds, is_stored=is_stored):
            yield _finding(refusal, verdict, subject, correct)
    if first and holds is None:
        yield Finding(
            Verdict.UNKNOWN,
            "",
            "the rules that go across fields, such as minRuntime against maxRuntime, could not be checked: "
            "cel-expr-python is not installed",
            "pip install 'fairway[dra]'",
        )


@cache
def our_schemas() -> Mapping[str, Schema]:
    """Of each of our kinds on Karmada's API server, with the metadata of all objects."""
    return {each.spec.names.kind: _with_metadata(each.schema_text(VERSION)) for each, _ in shipped()}


@cache
def _without_namespaces() -> frozenset[str]:
    return frozenset(each.spec.names.kind for each, _ in shipped() if each.spec.scope == "Cluster")


def _namespace(text: bytes) -> str:
    try:
        return NAMED.decode(text).metadata.namespace
    except UNDECODABLE:
        # Told where it was read.
        return ""


def refused(text: bytes, schema: Schema, holds: Holds | None, *, is_stored: bool = False) -> list[Refusal]:
    """What is refused of an object of our own; none of what is no JSON, which is told where it was read."""
    try:
        stated = msgspec.json.decode(text)
    except UNDECODABLE:
        return []
    if not isinstance(stated, dict):
        return []
    # A status is the dispatcher's, and no API server takes it from others; kubectl looks at its fields.
    status = stated.pop("status", None)
    found = list(refusals(schema, stated, holds))
    if status is not None and not is_stored:
        of_status = refusals(schema.properties["status"], status, None, "status")
        found += [one for one in of_status if one.is_unknown]
    return found


def _with_metadata(text: msgspec.Raw) -> Schema:
    schema = read_schema(text)
    return msgspec.structs.replace(schema, properties={**schema.properties, "metadata": METADATA})


def _finding(refusal: Refusal, verdict: Verdict, subject: str, correct: str) -> Finding:
    told = f"{refusal.field}: {refusal.told}" if refusal.field else refusal.told
    return Finding(
        verdict,
        subject,
        told if refusal.is_unknown else f"{told}: {_REFUSED}",
        f"{correct}; {refusal.mend}" if refusal.mend else correct,
        refused_at=refusal.field,
    )
