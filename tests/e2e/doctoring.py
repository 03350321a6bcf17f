"""`fairway doctor` asked as people ask it, and what it says as a value."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from admin.doctor.diagnosis import CONCERN
from admin.doctor.finding import Verdict
from tests.e2e.plane import Plane
from tests.e2e.watching import eventually

_WITHIN_S: Final = 90.0


class Said(msgspec.Struct, frozen=True):
    """One line."""

    check: str
    verdict: Verdict
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.verdict} {self.check}: {self.subject}: {self.message}"


class _Diagnosis(msgspec.Struct, frozen=True):
    said: list[Said]


@dataclass(frozen=True, slots=True)
class Answer:
    """``code``: the exit code. ``errors``: what it writes on standard error."""

    code: int
    said: list[Said] = field(default_factory=list)
    errors: str = ""

    def verdicts(self) -> dict[str, Verdict]:
        """The worst of each check that does not find all well."""
        worst: dict[str, Verdict] = {}
        for each in sorted(self.said, key=lambda each: CONCERN.index(each.verdict)):
            if each.verdict is not Verdict.OK:
                worst[each.check] = each.verdict
        return worst

    def of(self, check: str) -> list[str]:
        """Its messages."""
        return [each.message for each in self.said if each.check == check]

    def __str__(self) -> str:
        lines = [str(each) for each in self.said if each.verdict is not Verdict.OK]
        return "\n".join([f"exit code {self.code}", *lines, self.errors])


async def ask(plane: Plane, *, host: Path | None = None, karmada: Path | None = None) -> Answer:
    """Ask it about everything, with the scheduler's certificate; with other identities where given."""
    members = (f"--member={name}={each.api.kubeconfig}" for name, each in plane.members.items())
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "admin.main", "doctor", "-o", "json"),
        f"--host={host or plane.host.api.kubeconfig}",
        f"--karmada={karmada or plane.karmada.api.kubeconfig}",
        *members,
        f"--ca-file={plane.pki.ca}",
        f"--cert-file={plane.pki.file('client.crt')}",
        f"--key-file={plane.pki.file('client.key')}",
        stdout=pipe,
        stderr=pipe,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = msgspec.json.decode(out, type=_Diagnosis).said if out else []
    return Answer(process.returncode or 0, said, errors.decode())


async def until_said(plane: Plane, expected: Mapping[str, Verdict]) -> Answer:
    """Ask until it finds this and nothing else. Raises AssertionError with what it said at last.

    More than once because what was changed takes a moment until it shows.
    """
    answers: list[Answer] = []

    async def told() -> bool:
        answers[:] = [await ask(plane)]
        return answers[0].verdicts() == expected

    try:
        await eventually(told, f"{dict(expected)}", _WITHIN_S)
    except AssertionError as error:
        raise AssertionError(f"{error}; it said:\n{answers[0] if answers else 'nothing'}") from None
    return answers[0]
