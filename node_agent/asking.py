"""Asking NVML call by call: one that is not answered costs its own value, and is noted."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from node_agent import nvml

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class Asking:
    """The calls of one read. ``unread``: those that are not answered, with NVML's reason."""

    def __init__(self) -> None:
        self.unread: set[str] = set()

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
            return call(*args, **kwargs)
        except nvml.NotTold as error:
            self.unread.add(str(error))
            return None
