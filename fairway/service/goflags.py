"""Command lines as Go's pflag reads them, so that a deployment written for a Go program works unchanged.

``--flag=value`` and ``--flag value``; switches as ``--flag`` or ``--flag=false`` (``--flag false``, where
``false`` would be an argument, is refused); ``-v=4``, ``-v4`` and ``-v 4`` for one-letter names; ``_`` and
``-`` are the same in a name; the last of repeated flags wins; ``--`` ends the flags. argparse differs in each
of these, hence this module: a program declares typed ``Flag`` rows, ``parse_line`` checks a command line
against them, and ``CommandLine.value`` gives each flag's value with its type.
"""

import difflib
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Word = TypeVar("Word", bound=str)

_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[1-9][0-9]*|0)")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_MAX_INT_DIGITS = 64


class FlagError(ValueError):
    """A command line that cannot be used; the message names the flag, its value and what was expected."""


@dataclass(frozen=True, slots=True)
class Flag(Generic[T_co]):
    """One flag: its spelling, how its text becomes a value, and what ``--help`` says about it.

    ``parse`` raises ValueError with a message that says what was expected. ``default`` is text as a user
    would type it. A ``switch`` may stand without a value, which then is ``true``. ``metavar`` names the value
    in the help.
    """

    name: str
    parse: Callable[[str], T_co]
    default: str
    help: str
    metavar: str = ""
    switch: bool = False
    letter: str = ""


@dataclass(frozen=True, slots=True)
class FlagGroup:
    """Flags that belong together, under one title in the help."""

    title: str
    flags: tuple[Flag[object], ...]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What was typed: the texts given to each flag, in order, and the arguments that are not flags."""

    given: Mapping[str, Sequence[str]]
    arguments: tuple[str, ...] = field(default=())

    def is_set(self, flag: Flag[T]) -> bool:
        """Whether the user gave the flag at all."""
        return flag.name in self.given

    def value(self, flag: Flag[T]) -> T:
        """The flag's value: the last one given, or its default."""
        return flag.parse(self.text(flag))

    def values(self, flag: Flag[T]) -> list[T]:
        """Every value given, in order; empty if there is none (the default does not count)."""
        return [flag.parse(text) for text in self.given.get(flag.name, ())]

    def text(self, flag: Flag[T]) -> str:
        """The last text given, or the default, unparsed."""
        return self.given.get(flag.name, (flag.default,))[-1]

    def error(self, flag: Flag[T], problem: str) -> FlagError:
        """A FlagError about this flag's present value, for checks that no single value can fail."""
        return flag_error(flag.name, self.text(flag), problem)


def flag_error(name: str, value: str, problem: str) -> FlagError:
    """A FlagError in the house form: ``--server-port=99999: expected ...``."""
    return FlagError(f"--{name}={value}: {problem}")


def text_flag(name: str, help: str, metavar: str = "FILE") -> Flag[str]:
    """A flag of any text, empty by default."""
    return Flag(name, parse_text, "", help, metavar)


def switch(name: str, help: str, default: str = "false", *, letter: str = "") -> Flag[bool]:
    """A flag that may stand without a value."""
    return Flag(name, parse_bool, default, help, switch=True, letter=letter)


def parse_line(flags: Iterable[Flag[object]], argv: Sequence[str], *, gone: Mapping[str, str]) -> CommandLine:
    """Check ``argv`` (without the program's name) against ``flags``.

    Every value is parsed, also one that a later flag overrides, as in Go. ``gone`` maps names of flags that
    no longer exist to advice for the error. Raises FlagError at the first argument that is wrong.
    """
    by_name = {flag.name: flag for flag in flags}
    by_letter = {flag.letter: flag for flag in by_name.values() if flag.letter}
    given: dict[str, list[str]] = {}
    arguments: list[str] = []
    rest = list(reversed(argv))
    bare = ""

    def accept(flag: Flag[object], inline: str | None, shown: str) -> None:
        if inline is None:
            if flag.switch:
                inline = "true"
            elif rest:
                inline = rest.pop()
            else:
                raise FlagError(f"{shown} needs a value: expected {shown} {flag.metavar or 'VALUE'}")
        try:
            flag.parse(inline)
        except ValueError as error:
            raise flag_error(flag.name, inline, str(error)) from error
        given.setdefault(flag.name, []).append(inline)

    while rest:
        argument, after = rest.pop(), bare
        bare = ""
        if argument == "--":
            arguments.extend(reversed(rest))
            break
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            known = by_name.get(name.replace("_", "-"))
            if known is None:
                raise FlagError(_unknown(name, by_name, gone))
            accept(known, value if equals else None, f"--{known.name}")
            bare = known.name if known.switch and not equals else ""
        elif argument.startswith("-") and argument != "-":
            _accept_letters(argument, by_letter, accept)
        elif after and argument.lower() in ("true", "false"):
            raise FlagError(f"--{after} {argument}: expected --{after}={argument.lower()}")
        else:
            arguments.append(argument)
    return CommandLine(given, tuple(arguments))


def _accept_letters(
    argument: str,
    by_letter: Mapping[str, Flag[object]],
    accept: Callable[[Flag[object], str | None, str], None],
) -> None:
    # "-v=4", "-v4", "-v 4"; switches may share one dash ("-hv4").
    letters = argument[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = by_letter.get(letter)
        if flag is None:
            hint = f"; did you mean -{argument}?" if len(argument) > 2 else ""
            raise FlagError(f"unknown shorthand flag: {letter!r} in {argument}{hint}")
        if letters.startswith("="):
            return accept(flag, letters[1:], f"-{letter}")
        if letters and not flag.switch:
            return accept(flag, letters, f"-{letter}")
        accept(flag, None, f"-{letter}")
    return None


def _unknown(name: str, known: Iterable[str], gone: Mapping[str, str]) -> str:
    plain = name.replace("_", "-")
    if plain in gone:
        return f"unknown flag: --{name} ({gone[plain]})"
    near = difflib.get_close_matches(plain, list(known), n=1)
    return f"unknown flag: --{name}" + (f"; did you mean --{near[0]}?" if near else "; see --help")


def render_help(groups: Iterable[FlagGroup], *, width: int) -> str:
    """The flags of each group with their meaning and default, wrapped to ``width`` columns."""
    lines: list[str] = []
    for group in groups:
        lines += ["", f"{group.title}:"]
        for flag in group.flags:
            short = f"-{flag.letter}, " if flag.letter else "    "
            lines.append(f"  {short}--{flag.name}{'' if flag.switch else ' ' + flag.metavar}".rstrip())
            text = f"{flag.help} (default {flag.default})" if flag.default else flag.help
            lines += textwrap.wrap(
                text, width=max(width, 40), initial_indent=" " * 10, subsequent_indent=" " * 10
            )
    return "\n".join(lines[1:])


def parse_text(text: str) -> str:
    """Any text, as it is."""
    return text


def one_of(*words: Word) -> Callable[[str], Word]:
    """A parser of one of these words."""

    def parse(text: str) -> Word:
        for word in words:
            if word == text:
                return word
        raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}")

    return parse


def parse_bool(text: str) -> bool:
    """A boolean as Go's ``strconv.ParseBool`` reads it."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("expected true or false (also t, f, 1, 0)")


def parse_int(text: str) -> int:
    """An integer as Go's ``strconv.ParseInt(text, 0, 64)`` reads it: decimal, or with 0x, 0o, 0, 0b."""
    if len(text) > _MAX_INT_DIGITS or not _INTEGER.fullmatch(text):
        raise ValueError("expected an integer")
    octal = re.fullmatch(r"([+-]?)0([0-7]+)", text)
    value = int(f"{octal[1]}0o{octal[2]}", 0) if octal else int(text, 0)
    if not -(2**63) <= value < 2**63:
        raise ValueError("expected an integer of at most 64 bits")
    return value


def int_between(low: int, high: int, what: str) -> Callable[[str], int]:
    """A parser of integers within bounds; ``what`` is said when one is not, as in ``a port``."""

    def parse(text: str) -> int:
        try:
            value = parse_int(text)
        except ValueError as error:
            raise ValueError(f"expected {what} between {low} and {high}") from error
        if not low <= value <= high:
            raise ValueError(f"expected {what} between {low} and {high}")
        return value

    return parse


def parse_float(text: str) -> float:
    """A finite decimal number."""
    if not _FLOAT.fullmatch(text) or not math.isfinite(value := float(text)):
        raise ValueError("expected a number, such as 20 or 0.5")
    return value
