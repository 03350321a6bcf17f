"""Whether karmada-apiserver serves Fairway's kinds, as this release defines them."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
import yaml

from admin.doctor.check import Check
from admin.doctor.definition import CustomResourceDefinition
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Patch, Verdict
from admin.doctor.kinds import DEFINITIONS
from fairway.names import VERSION

_APPLY: Final = "apply manifests/crds of this release to karmada-apiserver"


def _definitions(evidence: Evidence) -> Iterable[Finding]:
    karmada = evidence.on_karmada()
    there = {each.metadata.name: each for each in karmada.listed(DEFINITIONS)}
    for expected, text in shipped():
        found = there.get(expected.metadata.name)
        patch = Patch("karmada", text)
        subject = f"CustomResourceDefinition {expected.metadata.name}"
        if found is None:
            yield Finding(Verdict.ERROR, subject, "is not there: queues cannot be defined", _APPLY, patch)
            continue
        for verdict, what in _compared(found, expected):
            yield Finding(verdict, subject, what, _APPLY, patch)


def _compared(
    found: CustomResourceDefinition, expected: CustomResourceDefinition
) -> Iterable[tuple[Verdict, str]]:
    versions = {each.name: each for each in found.spec.versions or ()}
    served = versions.get(VERSION)
    if served is None or not served.served:
        names = ", ".join(name for name, each in versions.items() if each.served) or "none"
        yield Verdict.ERROR, f"spec.versions: expected {VERSION} to be served, found {names}"
        return
    failed = [
        each
        for each in found.status.conditions or ()
        if each.type in ("Established", "NamesAccepted") and each.status != "True"
    ]
    for condition in failed:
        why = f" ({condition.reason})" if condition.reason else ""
        yield Verdict.ERROR, f"status.conditions: {condition.type} is {condition.status}{why}"
    if found.schema(VERSION) != expected.schema(VERSION):
        yield (
            Verdict.WARNING,
            f"spec.versions[name={VERSION}].schema: not that of this release: fields are dropped or refused",
        )


@cache
def shipped() -> tuple[tuple[CustomResourceDefinition, str], ...]:
    """The definitions of this release, each with the manifest it is from."""
    return tuple(_shipped())


def _shipped() -> Iterator[tuple[CustomResourceDefinition, str]]:
    folder = files("manifests") / "crds"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        text = file.read_text("utf-8")
        manifest: object = yaml.safe_load(text)
        yield msgspec.json.decode(msgspec.json.encode(manifest), type=CustomResourceDefinition), text


CHECKS: Final = (
    Check(
        "definitions",
        "Does karmada-apiserver serve Fairway's kinds, as this release defines them?",
        "karmada-apiserver serves Fairway's kinds as this release defines them",
        _definitions,
    ),
)
