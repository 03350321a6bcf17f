"""What queues have used over time: budgets, who shares a queue how, and what it has cost."""

from collections.abc import Iterable
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from admin.tables import Column, numbers
from admin.terminal.console import grid, shown, title
from fairway.visibility import DISPLACED, BudgetView, QueueView, SharerView, UsedView


def used_in_words(used: UsedView | None) -> Iterable[Text]:
    """One line, where it is counted."""
    if used is not None:
        cost = f", which cost {_milli(used.cost_milli)}"
        yield shown(f"used {_milli(used.device_hours_milli)} device-hours so far{cost}", 200)


def histories(queue: QueueView) -> list[RenderableType]:
    """What a ClusterQueue has used, of which budgets, and through whom."""
    parts: list[RenderableType] = [*used_in_words(queue.used)]
    if queue.budgets:
        table = grid(
            "Budget", "Policy", numbers("Used"), numbers("Left"), numbers("Of"), Column("Each"), Column("New")
        )
        for one in queue.budgets:
            table.add_row(*_budget(one))
        parts += [Text(), title("device-hours"), table]
    if queue.sharers:
        table = grid(
            "LocalQueue",
            numbers("Weight"),
            numbers("Share"),
            numbers("By half-life"),
            numbers("Cost", 10),
        )
        for each in queue.sharers:
            table.add_row(*_sharer(each))
        parts += [Text(), title("LocalQueues that share it, whose turn is next first"), table]
    return parts


def sharing_in_words(sharer: SharerView | None) -> Iterable[Text]:
    """One line of a LocalQueue, where it shares a queue."""
    if sharer is not None:
        yield shown(
            f"weight {_milli(sharer.weight_milli)}, share {_milli(sharer.share_milli)}: "
            f"{_milli(sharer.decayed_milli)} device-hours by half-life and price",
            200,
        )
        yield from used_in_words(sharer.used)


def exhausted(queue: QueueView) -> Iterable[Text]:
    """A line for each budget that is used up."""
    for one in queue.budgets:
        if one.used_milli >= one.device_hours_milli:
            what = _USED_UP.get(one.policy, "what waits goes last")
            told = f"{queue.name}: budget {one.name} is used up: until {one.renews_at} {what}"
            yield shown(told, 200, "yellow")


_USED_UP: Final = {"Hard": "all that waits waits", DISPLACED: "nobody is displaced"}


def _budget(one: BudgetView) -> Iterable[Text]:
    left_milli = max(0, one.device_hours_milli - one.used_milli)
    hours = (Text(_milli(amount)) for amount in (one.used_milli, left_milli, one.device_hours_milli))
    return (shown(one.name), shown(one.policy), *hours, shown(one.period), shown(one.renews_at))


def _sharer(one: SharerView) -> Iterable[Text]:
    amounts = (one.weight_milli, one.share_milli, one.decayed_milli, one.used.cost_milli)
    return (shown(f"{one.namespace}/{one.name}", 130), *(Text(_milli(amount)) for amount in amounts))


def _milli(amount: int) -> str:
    return f"{amount / 1000:.10g}"
