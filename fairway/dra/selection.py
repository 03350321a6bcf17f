"""Which devices satisfy which selectors, each distinct device asked only once.

A selector is a CEL expression over a device. What evaluates it is behind a narrow door, `Compile`, because it
is an optional package; without it, and for what it does not understand, the verdict is `Unknown`, which the
counting reads as "do not promise anything".
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from fairway.dra.devices import AttributeValue, Capacity, Device
from fairway.dra.looks import is_too_much

_MAX_VERDICTS = 1 << 18
_MAX_SELECTORS = 1024
_MAX_EXPRESSION_LENGTH = 10 * 1024


@dataclass(frozen=True, slots=True)
class Unknown:
    """No verdict, and why.

    ``fails``: kube-scheduler gets an error here too, and then gives up on the pod as a whole; otherwise it
    is only we who cannot tell.
    """

    reason: str
    fails: bool = False


Verdict = bool | Unknown


class Selector(Protocol):
    """One compiled selector."""

    @property
    def looks_at(self) -> frozenset[str] | None:
        """Full names of the attributes and capacities that it can depend on; None: any."""
        ...

    def matches(self, device: Device) -> Verdict:
        """Whether the device satisfies the selector; never raises."""
        ...


Compile = Callable[[str], Selector]
"""Makes a selector of an expression; never raises: one that does not compile answers Unknown."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A selector that has the same answer for every device."""

    verdict: Unknown
    looks_at: frozenset[str] = frozenset()

    def matches(self, device: Device) -> Verdict:
        """The verdict, whatever the device is."""
        return self.verdict


def without_cel(expression: str) -> Selector:
    """The selector where no CEL engine is installed."""
    reason = "cannot be evaluated: install fairway with the extra [dra] to have CEL"
    return Undecided(Unknown(f"selector {shown(expression)} {reason}"))


def shown(expression: str) -> str:
    """The expression as a message can show it."""
    return repr(expression if len(expression) <= 80 else expression[:77] + "...")


_Content = tuple[str, bool, tuple[tuple[str, AttributeValue], ...], tuple[tuple[str, Capacity], ...]]


class Selection:
    """Verdicts by expression and content of the device, remembered up to a limit, all forgotten beyond it.

    Two devices are one to a selector if they have the same driver, and the same attributes and capacities of
    those that it looks at. May be asked from several threads.
    """

    def __init__(self, compile_selector: Compile) -> None:
        self._compile = compile_selector
        self._selectors: dict[str, Selector] = {}
        self._verdicts: dict[tuple[str, _Content], Verdict] = {}
        self._lock = threading.Lock()

    def matches(self, selectors: tuple[str, ...], device: Device) -> Verdict:
        """Whether the device satisfies all selectors, asked in order up to the first that it does not."""
        for expression in selectors:
            selector = self._selector(expression)
            key = (expression, _content(selector.looks_at, device))
            verdict = self._verdicts.get(key)
            if verdict is None:
                with self._lock:
                    verdict = selector.matches(device)
                    if len(self._verdicts) >= _MAX_VERDICTS:
                        self._verdicts.clear()
                    self._verdicts[key] = verdict
            if verdict is not True:
                return verdict
        return True

    def looks_at(self, expressions: Iterable[str]) -> frozenset[str] | None:
        """Full names of all attributes and capacities that any of these can depend on; None: anything."""
        names: set[str] = set()
        for expression in expressions:
            selector = self._selector(expression)
            if selector.looks_at is None:
                return None
            names |= selector.looks_at
        return frozenset(names)

    def _selector(self, expression: str) -> Selector:
        found = self._selectors.get(expression)
        if found is not None:
            return found
        if len(expression) > _MAX_EXPRESSION_LENGTH:
            return Undecided(Unknown("a selector is longer than 10 KiB, which Kubernetes does not allow"))
        if is_too_much(expression):
            return Undecided(Unknown("a selector may take too long to evaluate; make it simpler"))
        with self._lock:
            if len(self._selectors) >= _MAX_SELECTORS:
                self._selectors.clear()
            selector = self._selectors[expression] = self._compile(expression)
        return selector


def _content(names: frozenset[str] | None, device: Device) -> _Content:
    if names is None:
        return device.id.driver, device.shared, device.attributes, device.capacities
    return (
        device.id.driver,
        device.shared,
        tuple(entry for entry in device.attributes if entry[0] in names),
        tuple(entry for entry in device.capacities if entry[0] in names),
    )
