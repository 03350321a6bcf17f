"""The command line of a Go program as a pod states it, read as pflag reads it.

Only what a doctor asks of it: a text, a number, a switch, the feature gates. The last of several wins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.service.durations import DurationError, parse_duration_s
from fairway.service.goflags import parse_bool


@dataclass(frozen=True, slots=True)
class Arguments:
    """Flags by name without dashes, each with all its values in order; ``true`` where it has none."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """The value of a flag."""
        return self.values.get(name, (default,))[-1]

    def is_set(self, name: str) -> bool:
        """Whether the flag is stated."""
        return name in self.values

    def switch(self, name: str, default: bool = False) -> bool:
        """A boolean; one that cannot be read is as the default."""
        try:
            return parse_bool(self.text(name, str(default).lower()))
        except ValueError:
            return default

    def number(self, name: str, default: float) -> float:
        """A number; one that cannot be read is as the default."""
        try:
            return float(self.text(name, str(default)))
        except ValueError:
            return default

    def seconds(self, name: str, default: float) -> float:
        """A duration; one that cannot be read is as the default."""
        try:
            return parse_duration_s(self.text(name)) if self.is_set(name) else default
        except DurationError:
            return default

    def gates(self) -> dict[str, bool]:
        """The feature gates that are stated; what cannot be read is left out."""
        found: dict[str, bool] = {}
        for value in self.values.get("feature-gates", ()):
            for part in value.split(","):
                name, _, state = (piece.strip() for piece in part.partition("="))
                try:
                    found[name] = parse_bool(state)
                except ValueError:
                    continue
        return found


def read_arguments(words: Iterable[str]) -> Arguments:
    """The flags among the words of a command line; all else is passed over."""
    found: dict[str, list[str]] = {}
    waiting = ""
    for word in words:
        if not word.startswith("-") or word in ("-", "--"):
            if waiting:
                found[waiting][-1] = word
            waiting = ""
            continue
        name, equals, value = word.lstrip("-").partition("=")
        found.setdefault(name, []).append(value if equals else "true")
        waiting = "" if equals else name
    return Arguments({name: tuple(values) for name, values in found.items()})
