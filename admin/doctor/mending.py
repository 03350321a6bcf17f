"""Patches as commands that a shell takes, to be read before they are run; nothing is run here.

Names and texts come from clusters and may hold anything, so every word is quoted, and no comment leaves its
line.
"""

import shlex
from collections.abc import Mapping
from typing import Final

from admin.doctor.diagnosis import Diagnosis, Said
from admin.doctor.finding import Patch
from admin.doctor.gathering import PlaneSource
from admin.printable import counted, printable
from admin.sources import LiveSource

_HEAD: Final = """\
# Patches for what `fairway doctor` found. Nothing has been changed: read them, then run those that you want.
"""
_MARK: Final = "END_OF_MANIFEST"


def patches(diagnosis: Diagnosis, sources: Mapping[str, PlaneSource]) -> str:
    """All patches, each under what it mends; the same patch once."""
    found: dict[Patch, list[Said]] = {}
    without = 0
    for each in diagnosis.said:
        mends = each.more if each.patch is None else (each.patch,)
        for patch in mends:
            found.setdefault(patch, []).append(each)
        if not mends and each.remedy:
            without += 1
    parts = [_HEAD]
    for patch, said in found.items():
        parts += [f"# {each.verdict} {each.check}: {_line(each)}\n" for each in said]
        parts.append(f"{_command(patch, sources.get(patch.plane))}\n")
    if without:
        parts.append(f"# {counted(without, 'finding')} without a patch: see `fairway doctor` for the mend\n")
    return "\n".join(part for part in parts)


def _line(said: Said) -> str:
    return printable(f"{said.subject}: {said.message}", 600)


def _command(patch: Patch, source: PlaneSource | None) -> str:
    kubectl = f"kubectl {_where(patch.plane, source)}"
    if patch.target:
        kind = "strategic" if patch.strategic else "merge"
        target = " ".join(map(shlex.quote, patch.target.split()))
        return f"{kubectl} patch {target} --type={kind} --patch {shlex.quote(patch.body)}"
    mark = _MARK
    while mark in patch.body:
        mark += "_"
    return f"{kubectl} apply --server-side -f - <<'{mark}'\n{patch.body.rstrip()}\n{mark}"


def _where(plane: str, source: PlaneSource | None) -> str:
    if not isinstance(source, LiveSource):
        # Its kubeconfig is not known: a dump was read, or a Secret.
        return f'--kubeconfig "${{{_variable(plane)}:?set it to the kubeconfig of {_word(plane)}}}"'
    words = [] if source.kubeconfig is None else ["--kubeconfig", str(source.kubeconfig)]
    words += ["--context", source.context] if source.context else []
    return " ".join(map(shlex.quote, words))


def _variable(plane: str) -> str:
    letters = "".join(c if c.isascii() and c.isalnum() else "_" for c in plane.upper())
    return f"KUBECONFIG_{letters}"


def _word(plane: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in plane)
