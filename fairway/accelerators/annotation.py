"""Reading numbers out of annotations and labels, and saying where one could not be read.

Annotations are written by programs of many versions and can be edited by anyone, so nothing in them is
trusted: a number is a plain decimal within the bounds that the schemes themselves keep (int32), a text in
a message is cut short, and a thousand faults in one annotation make a few sentences.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

MOST = 2**31 - 1
"""The largest number any scheme counts with; whatever is above it is a mistake."""

MOST_ENTRIES = 1024
"""How many entries of one annotation are read; no node has so many devices."""

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile JSON text can raise."""

_SHOWN = 60
_SENTENCES = 5
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def whole_number(text: str, most: int = MOST) -> int | None:
    """The number from 0 to ``most`` that the text writes out in decimal digits; None where it is none."""
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        return None
    number = int(text)
    return number if number <= most else None


def truth(text: str) -> bool | None:
    """The text as Go reads a boolean; None where it is none."""
    return True if text in _TRUE else False if text in _FALSE else None


def listed(text: str) -> tuple[str, ...]:
    """The entries of a list with commas, without the spaces around them and without empty ones."""
    return tuple(entry for part in text.split(",") if (entry := part.strip()))


def shown(text: str) -> str:
    """The text as a message can show it: quoted, on one line, cut short."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def no_amount(asked: Mapping[str, int], *names: str) -> tuple[str, ...]:
    """What is wrong where the amount of one of these resources is none that a scheme can count with."""
    wrong = next((name for name in names if not 0 <= asked.get(name, 0) <= MOST), None)
    return (f"{wrong} is {asked[wrong]}, expected a plain number from 0 to {MOST}",) if wrong else ()


def device_numbers(name: str, entries: Iterable[str], otherwise: str) -> tuple[list[int], list[str]]:
    """The device numbers that the annotation lists; ``otherwise`` tells what becomes of other entries."""
    read = [(entry, whole_number(entry)) for entry in entries]
    problems = [
        f"annotation {name}: {shown(entry)} is no device number and is {otherwise}"
        for entry, number in read
        if number is None
    ]
    return [number for _, number in read if number is not None], problems


def too_many(name: str, count: int) -> str:
    """That a node's amount of this resource is no number of devices."""
    return (
        f"status.allocatable.{name} is {count}, more than the {MOST_ENTRIES} devices of a node that are "
        "read; none of them takes pods"
    )


def json_bytes(text: str) -> bytes:
    """The text for a JSON decoder; what is no valid Unicode becomes ``?``."""
    return text.encode("utf-8", "replace")


def summed_up(problems: Sequence[str], name: str) -> tuple[str, ...]:
    """The first few problems of one annotation and how many more there are like them."""
    if len(problems) <= _SENTENCES:
        return tuple(problems)
    more = len(problems) - _SENTENCES
    return (*problems[:_SENTENCES], f"annotation {name}: {more} more entries could not be read")
