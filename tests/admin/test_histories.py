"""What queues have used over time, as the terminal shows it."""

import pytest
from rich.console import Console, RenderableType

from admin.terminal.histories import exhausted, histories, sharing_in_words
from fairway.visibility import BudgetView, QueueView, SharerView, UsedView

NEW = "2026-12-01T00:00:00.000Z"
USED = UsedView(1_234_500, 3_086_250)
SHARER = SharerView("vision", "main", 2000, 50_333, 100_000, USED)


def drawn(*parts: RenderableType) -> str:
    console = Console(width=160)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def month(used_milli: int, policy: str = "Soft") -> BudgetView:
    return BudgetView("month", "Month", policy, 5_000_000, used_milli, NEW)


def test_a_queue_tells_hours_cost_budgets_and_who_shares_it() -> None:
    out = drawn(*histories(QueueView("research", used=USED, budgets=[month(1_000_500)], sharers=[SHARER])))
    assert "used 1234.5 device-hours so far, which cost 3086.25" in out
    (line,) = (line for line in out.splitlines() if line.startswith("month"))
    assert line.split() == ["month", "Soft", "1000.5", "3999.5", "5000", "Month", NEW]
    (line,) = (line for line in out.splitlines() if line.startswith("vision/main"))
    assert line.split() == ["vision/main", "2", "50.333", "100", "3086.25"]


def test_a_queue_of_which_nobody_asks_tells_nothing() -> None:
    assert histories(QueueView("research")) == []
    assert list(sharing_in_words(None)) == []


def test_a_local_queue_tells_its_share() -> None:
    out = drawn(*sharing_in_words(SHARER))
    assert "weight 2, share 50.333: 100 device-hours by half-life and price" in out
    assert "which cost 3086.25" in out


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (month(4_999_999), ""),
        (month(5_000_000), f"research: budget month is used up: until {NEW} what waits goes last"),
        (month(7_000_000, "Hard"), f"research: budget month is used up: until {NEW} all that waits waits"),
    ],
)
def test_a_budget_that_is_used_up_has_a_line(of: BudgetView, told: str) -> None:
    assert drawn(*exhausted(QueueView("research", budgets=[of]))).strip() == told
