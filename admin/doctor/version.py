"""Versions of Karmada, Kubernetes and Fairway, and ranges of versions with a fault."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

_VERSION: Final = re.compile(
    r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(?:-(alpha|beta|rc)\.?(\d{1,6}))?(?:[-+].*)?", re.ASCII
)
_FINAL: Final = ("final", 0)


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """``1.19.0-rc.0``: a pre-release comes before the release; what a vendor appends does not count."""

    major: int
    minor: int
    patch: int = 0
    stage: tuple[str, int] = _FINAL

    def __lt__(self, other: "Version") -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        stage, number = self.stage
        return f"{self.major}.{self.minor}.{self.patch}" + (f"-{stage}.{number}" * (stage != "final"))

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor."""
        return self.major, self.minor

    def _key(self) -> tuple[int, int, int, bool, tuple[str, int]]:
        return self.major, self.minor, self.patch, self.stage == _FINAL, self.stage


def parse_version(text: str) -> Version | None:
    """``v1.17.2``, ``1.36.2+vendor``, ``v1.30.4-gke.100``; None for what is none, such as ``latest``."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    stage = (match[4], int(match[5])) if match[4] else _FINAL
    return Version(int(match[1]), int(match[2]), int(match[3] or 0), stage)


def version(text: str) -> Version:
    """A version known to be one, for tables. Raises ValueError."""
    found = parse_version(text)
    if found is None:
        raise ValueError(f"{text!r}: expected a version such as 1.17.2")
    return found


@dataclass(frozen=True, slots=True)
class Faulty:
    """Versions from ``since`` on, until what mended it: one version a line, in order, the last for good."""

    since: Version
    mended: tuple[Version, ...]

    def holds(self, found: Version) -> bool:
        """Whether the version has the fault."""
        if found < self.since or found >= self.mended[-1]:
            return False
        return all(found < fix for fix in self.mended if fix.line == found.line)

    def remedy(self, found: Version) -> Version:
        """The nearest version without it, on the same line where there is one. Only where it holds."""
        same = [fix for fix in self.mended if fix.line == found.line]
        later = [fix for fix in self.mended if fix > found]
        return (same or later)[0]
