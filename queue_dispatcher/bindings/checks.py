"""What checks have answered, as their annotations on the binding say: ``check.fairway.dev/NAME``.

On the binding and not on the workload, so that whoever may write the one does not approve the other, and
because Karmada's detector leaves annotations of bindings as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairway.names import CHECK_PREFIX
from fairway.workloads.fields import shown

MAX_MESSAGE: Final = 256
"""Of a message, as many characters are kept."""


class Word(StrEnum):
    """What a check can say."""

    READY = "Ready"
    """As far as it goes, the workload may start."""
    RETRY = "Retry"
    """Not now: it is to be asked again after a while."""
    REJECTED = "Rejected"
    """No."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``word``: None where what it says is none; ``message`` is for people, and then what was found."""

    check: str
    word: Word | None
    message: str = ""


NO_ANSWERS: Final[tuple[Answer, ...]] = ()
_WORDS: Final = {word.value: word for word in Word}


def read_answers(annotations: Mapping[str, str]) -> tuple[Answer, ...]:
    """The answers among the annotations of a binding, by check."""
    found = sorted(key for key in annotations if key.startswith(CHECK_PREFIX))
    return tuple(_answer(key, annotations[key]) for key in found) if found else NO_ANSWERS


def _answer(key: str, text: str) -> Answer:
    said, _, message = text.partition(";")
    word, check = _WORDS.get(said.strip()), key.removeprefix(CHECK_PREFIX)
    if word is None:
        expected = f"expected {', '.join(Word)}, and a message behind a semicolon if there is any"
        return Answer(check, None, f"its annotation {key} is {shown(text)}: {expected}")
    return Answer(check, word, " ".join(message.split())[:MAX_MESSAGE])
