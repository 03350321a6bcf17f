"""The laws of the queues see what they are about: a defect is put into the product, and the law that it
breaks says so on one example, with which nothing is wrong otherwise.

Laws that are told by whole stories have theirs in `tests/simulation`; docs/contributing.md names them all.
"""

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest import mock

import pytest

from queue_dispatcher.bindings.state import Reassert
from queue_dispatcher.cache.charges import Charges
from queue_dispatcher.cycle import pending
from queue_dispatcher.cycle.backlog import Backlog
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.ledger import ledger as ledgers
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import SHARE_ONE
from queue_dispatcher.ledger.tree import UNLIMITED, Limits, QuotaTree
from queue_dispatcher.preemption import planning
from queue_dispatcher.preemption.victims import Displacing, Victim, together
from queue_dispatcher.turn import duties
from tests.dispatcher.cache.test_laws import test_incremental_equals_recomputed as recomputed
from tests.dispatcher.cycle import test_fairness as of_turns
from tests.dispatcher.cycle.test_laws import UNLIMITED_TOKENS, Dispatching
from tests.dispatcher.ledger.builders import charge, grow, owns, queue, root
from tests.dispatcher.ledger.test_laws import Bookkeeping
from tests.dispatcher.preemption import test_laws as of_displacing
from tests.dispatcher.scenarios import test_take_back as of_taking_back
from tests.webhook import builders as bindings
from tests.webhook.test_laws import test_a_patch_sets_the_leaf_alone_and_is_made_once as one_leaf
from webhook import suspend
from webhook.bindings import BindingSpec

# The examples.


def on(law: object, *arguments: object) -> Callable[[], object]:
    """The law on one example instead of many that are drawn."""
    inner: Callable[..., object] = law.hypothesis.inner_test  # type: ignore[attr-defined]  # set by `given`
    return lambda: inner(*arguments)


def dispatching(gpus: int, *waits: tuple[str, int, int], runs: int = 0) -> Dispatching:
    """One queue that owns so many GPUs; of what waits in it name, GPUs, and when it came."""
    made = Dispatching()
    made.begin(grow(root("q0", gpu=gpus)))
    made.fleet.ledger.charge("q0", charge(gpu=runs))
    for name, asks, at in waits:
        made.fleet.submit("q0", name, made.shapes["q0", asks - 1], at=at)
    return made


def two_with_quota_for_one() -> None:
    dispatching(1, ("first", 1, 0), ("second", 1, 1)).cycle(UNLIMITED_TOKENS)


def a_small_one_behind_a_large_one() -> None:
    dispatching(2, ("large", 2, 0), ("small", 1, 1), runs=1).quiescence()


def three_that_came_at_once() -> None:
    made = dispatching(1, ("a", 1, 0), ("b", 1, 0), ("c", 1, 0))
    for seed in range(4):
        made.the_order_of_events_does_not_matter(Random(seed))


def a_neighbour_that_takes_all_it_gets() -> None:
    made = Bookkeeping()
    made.begin(grow(root("org"), queue("owner", "org", gpu=owns(4, lends=1)), queue("other", "org")))
    while made.ledger.fits("other", charge(gpu=1)) is None:
        made.ledger.charge("other", charge(gpu=1))
    made.what_is_not_lent_is_always_there()


SIBLINGS = on(of_turns.test_backlogged_siblings_end_at_most_one_item_apart, [(1000, 2)], 1000, 1, 9)
EQUAL_WORK = on(
    of_turns.test_more_capacity_admits_no_less_of_equal_work,
    [("a", 1), ("a", 1), ("a", 1), ("b", 0), ("b", 0)],
    2,
    1,
)
HELD = on(one_leaf, bindings.binding(bindings.spec(bindings.GPU, suspension={"dispatching": True})), False)

# The defects.


def last_come(item: Item) -> tuple[int, str]:
    return (-item.enqueued_ms, item.id)


def by_the_second(item: Item) -> tuple[int, str]:
    return (item.enqueued_ms, "")


LINE_UP = QueueHead._line_up


def strictly(self: QueueHead) -> None:
    LINE_UP(self)
    self._is_strict = True


COLUMN = QuotaTree._column


def all_is_lent(self: QuotaTree, cell: Cell) -> Limits:
    column = COLUMN(self, cell)
    return replace(column, lending=[UNLIMITED] * len(column.lending))


def unweighted(used: int, of: int, weight_milli: int) -> int:
    return -(-used * SHARE_ONE // of)


AMOUNT = Backlog.amount


def of_the_fullest(self: Backlog, node: int, cell: Cell) -> int:
    below = self._tree.children(node)
    return max(of_the_fullest(self, one, cell) for one in below) if below else AMOUNT(self, node, cell)


def not_given_back(self: Charges, uid: str) -> bool:
    before = self._entries.pop(uid, None)
    if before is not None:
        self._place(before.there, -1)
    return before is not None


def all_that_were_taken(displacing: Displacing, taken: Sequence[Victim], firm: int = 0) -> list[Victim]:
    return together(taken)


def instead_of_all(spec: BindingSpec) -> suspend.Operation:
    return {"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}


NOT_UNDONE = {state: purpose for state, purpose in duties._PURPOSES.items() if state is not Reassert}


@pytest.mark.parametrize(
    ("example", "law", "of", "name", "instead"),
    [
        pytest.param(
            two_with_quota_for_one,
            "check_quota",
            Headroom,
            "take",
            lambda *_: None,
            id="what is admitted leaves no less",
        ),
        pytest.param(
            a_neighbour_that_takes_all_it_gets,
            "what_is_not_lent_is_always_there",
            QuotaTree,
            "_column",
            all_is_lent,
            id="lending limits are ignored",
        ),
        pytest.param(
            a_small_one_behind_a_large_one,
            "quiescence",
            QueueHead,
            "_line_up",
            strictly,
            id="nobody passes who has no room",
        ),
        pytest.param(
            SIBLINGS,
            "test_backlogged_siblings_end_at_most_one_item_apart",
            ledgers,
            "_weighted",
            unweighted,
            id="weights are ignored",
        ),
        pytest.param(
            two_with_quota_for_one, "check_order", pending, "_came", last_come, id="the last goes first"
        ),
        pytest.param(
            three_that_came_at_once,
            "the_order_of_events_does_not_matter",
            pending,
            "_came",
            by_the_second,
            id="of equals the first heard of",
        ),
        pytest.param(
            lambda: of_displacing.check_return(*of_displacing.several_that_could_return()),
            "check_return",
            Displacing,
            "may_return",
            lambda *_: False,
            id="who may return is ignored",
        ),
        pytest.param(
            lambda: of_displacing.check_need(*of_displacing.one_is_enough()),
            "check_need",
            planning,
            "fewest",
            all_that_were_taken,
            id="nobody is put back",
        ),
        pytest.param(
            HELD,
            "test_a_patch_sets_the_leaf_alone_and_is_made_once",
            suspend,
            "_suspended",
            instead_of_all,
            id="the hold takes the place of all else",
        ),
        pytest.param(
            of_taking_back.test_what_is_placed_after_it_was_taken_back_is_cleared,
            "test_what_is_placed_after_it_was_taken_back_is_cleared",
            duties,
            "_PURPOSES",
            NOT_UNDONE,
            id="what is placed once more stays",
        ),
        pytest.param(
            EQUAL_WORK,
            "test_more_capacity_admits_no_less_of_equal_work",
            Backlog,
            "amount",
            of_the_fullest,
            id="scarcity is that of one queue",
        ),
        pytest.param(
            on(recomputed, 0, 60, 5),
            "test_incremental_equals_recomputed",
            Charges,
            "drop",
            not_given_back,
            id="what is gone stays charged",
        ),
    ],
)
def test_laws_see(example: Callable[[], object], law: str, of: object, name: str, instead: object) -> None:
    # What is a test itself has been run without the defect.
    if law != getattr(example, "__name__", ""):
        example()
    with mock.patch.object(of, name, instead), pytest.raises(AssertionError) as broken:
        example()
    assert law in [frame.name for frame in traceback.extract_tb(broken.value.__traceback__)]


def test_every_law_is_seen_to_see_a_defect() -> None:
    tests, docs = Path(__file__).parents[1], Path(__file__).parents[2] / "docs"
    cases = "".join(
        path.read_text(encoding="utf-8")
        for path in (Path(__file__), *sorted((tests / "simulation").glob("test_*.py")))
    )
    _, table = (docs / "contributing.md").read_text(encoding="utf-8").split("## Laws of the queues")
    laws = [line.rsplit("|", 2)[1] for line in table.split("##")[0].splitlines() if line.startswith("| ")][2:]
    assert len(laws) == 16
    for told in laws:
        defects = re.findall("`([^`]+)`", told)
        assert defects
        assert not [one for one in defects if f'id="{one}"' not in cases]
