"""Asking NVML call by call: one that is not answered costs its own value, and is noted."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from node_agent import nvml

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class Asking:
    """The calls of one read, or those of it about one device.

    ``answered``: the calls that were answered, now or ever before. ``unread``: those that are not, with
    NVML's reason.
    """

    def __init__(self, answered: frozenset[str] = frozenset()) -> None:
        self.answered = set(answered)
        self.unread: set[str] = set()
        self._answers = 0
        self._failures: dict[str, nvml.Failed] = {}

    def ask(
        self, call: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result | None:
        """What a call answers; None where it does not, or where there just is nothing."""
        try:
            return self.told(call, *args, **kwargs)
        except nvml.NothingThere:
            return None

    def told(
        self, call: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result | None:
        """What a call answers; None where it does not. Raises NothingThere."""
        try:
            result = call(*args, **kwargs)
        except nvml.Failed as error:
            self._failures[call.__name__] = error
            if call.__name__ not in self.answered:
                self.unread.add(str(error))
            return None
        except nvml.NotTold as error:
            self.unread.add(str(error))
            return None
        self._answers += 1
        self.answered.add(call.__name__)
        return result

    @property
    def failures(self) -> tuple[nvml.Failed, ...]:
        """Calls that failed and used to be answered; all that failed where none was answered now."""
        return tuple(
            error for name, error in self._failures.items() if name in self.answered or not self._answers
        )

    def is_failing(self, *calls: Callable[..., object]) -> bool:
        """Whether one of these calls has failed."""
        return any(call.__name__ in self._failures for call in calls)

    @property
    def is_silent(self) -> bool:
        """Whether calls failed and none was answered."""
        return bool(self._failures) and not self._answers

    @property
    def needs_reset(self) -> bool:
        """Whether any call was answered by: the device has to be reset first."""
        return any(error.needs_reset for error in self._failures.values())
