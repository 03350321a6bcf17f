"""Which devices satisfy which selectors, each distinct device asked only once.

A selector is a CEL expression over a device. What evaluates it is behind a narrow door, `Compile`, because it
is an optional package; without it, and for what it does not understand, the verdict is `Unknown`, which the
counting reads as "do not promise anything".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fairway.dra.devices import AttributeValue, Capacity, Device

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

    def matches(self, device: Device) -> Verdict:
        """Whether the device satisfies the selector; never raises."""
        ...


Compile = Callable[[str], Selector]
"""Makes a selector of an expression; never raises: one that does not compile answers Unknown."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A selector that has the same answer for every device."""

    verdict: Unknown

    def matches(self, device: Device) -> Verdict:
        """The verdict, whatever the device is."""
        return self.verdict


def without_cel(expression: str) -> Selector:
    """The selector where no CEL engine is installed."""
    shown = expression if len(expression) <= 80 else expression[:77] + "..."
    return Undecided(
        Unknown(f"selector {shown!r} cannot be evaluated: install fairway with the extra [dra] to have CEL")
    )


_Content = tuple[str, bool, tuple[tuple[str, AttributeValue], ...], tuple[tuple[str, Capacity], ...]]


class Selection:
    """Verdicts by expression and content of the device, remembered up to a limit, the oldest dropped first.

    Two devices with the same driver, attributes and capacities are one to a selector, whatever their names.
    """

    def __init__(self, compile_selector: Compile) -> None:
        self._compile = compile_selector
        self._selectors: dict[str, Selector] = {}
        self._verdicts: dict[tuple[str, _Content], Verdict] = {}

    def matches(self, selectors: tuple[str, ...], device: Device) -> Verdict:
        """Whether the device satisfies all selectors, asked in order up to the first that it does not."""
        content = (device.id.driver, device.shared, device.attributes, device.capacities)
        for expression in selectors:
            key = (expression, content)
            verdict = self._verdicts.get(key)
            if verdict is None:
                if len(self._verdicts) >= _MAX_VERDICTS:
                    del self._verdicts[next(iter(self._verdicts))]
                verdict = self._verdicts[key] = self._selector(expression).matches(device)
            if verdict is not True:
                return verdict
        return True

    def _selector(self, expression: str) -> Selector:
        known = self._selectors.get(expression)
        if known is None:
            if len(expression) > _MAX_EXPRESSION_LENGTH:
                return Undecided(Unknown("a selector is longer than 10 KiB, which Kubernetes does not allow"))
            if len(self._selectors) >= _MAX_SELECTORS:
                del self._selectors[next(iter(self._selectors))]
            known = self._selectors[expression] = self._compile(expression)
        return known
