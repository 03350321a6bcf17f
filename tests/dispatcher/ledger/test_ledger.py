"""What may be charged to a queue, who is short, and what shares are."""

import pytest

from queue_dispatcher.ledger.ledger import INFINITE_SHARE, SHARE_ONE, Ledger, LedgerError, Shortage
from queue_dispatcher.ledger.tree import QuotaNode, TreeError
from tests.dispatcher.ledger.builders import cell, charge, grow, ledger, owns, queue, root

GPU = cell("gpu")


@pytest.mark.parametrize(
    ("nodes", "used", "available"),
    [
        pytest.param([root("a", gpu=8)], {}, {"a": 8}, id="a queue alone has its quota"),
        pytest.param([root("a", gpu=8)], {"a": 5}, {"a": 3}, id="less what it uses"),
        pytest.param(
            [root("a", gpu=owns(8, borrows=9))], {}, {"a": 8}, id="without a parent nothing is borrowed"
        ),
        pytest.param(
            [root("org"), queue("a", "org", gpu=4), queue("b", "org", gpu=6)],
            {},
            {"a": 10, "b": 10, "org": 10},
            id="siblings lend all they do not use",
        ),
        pytest.param(
            [root("org"), queue("a", "org", gpu=4), queue("b", "org", gpu=6)],
            {"b": 9},
            {"a": 1, "b": 1},
            id="what was borrowed is not there for its owner",
        ),
        pytest.param(
            [root("org"), queue("a", "org", gpu=owns(4, borrows=3)), queue("b", "org", gpu=6)],
            {},
            {"a": 7, "b": 10},
            id="borrowing stops at the limit",
        ),
        pytest.param(
            [root("org"), queue("a", "org", gpu=4), queue("b", "org", gpu=owns(6, lends=2))],
            {},
            {"a": 6, "b": 10},
            id="lending stops at the limit",
        ),
        pytest.param(
            [root("org"), queue("a", "org", gpu=4), queue("b", "org", gpu=owns(6, lends=2))],
            {"a": 6},
            {"a": 0, "b": 4},
            id="what is not lent stays, whoever borrows the rest",
        ),
        pytest.param(
            [root("org"), queue("a", "org", gpu=4), queue("b", "org", gpu=owns(3, lends=2))],
            {"a": 6},
            {"a": 0, "b": 1},
            id="even if it is a single unit",
        ),
        pytest.param(
            [root("org", gpu=5), queue("a", "org"), queue("b", "org", gpu=1)],
            {"b": 3},
            {"a": 3, "b": 3},
            id="a parent's own quota is shared",
        ),
        pytest.param(
            [
                root("org"),
                queue("x", "org", gpu=owns(borrows=2)),
                queue("y", "org", gpu=9),
                queue("a", "x", gpu=1),
                queue("b", "x", gpu=1),
            ],
            {"a": 3},
            {"a": 1, "b": 1, "y": 8},
            id="a department borrows as one",
        ),
        pytest.param(
            [
                root("org"),
                queue("x", "org", gpu=owns(lends=1)),
                queue("y", "org"),
                queue("a", "x", gpu=4),
                queue("b", "x", gpu=4),
                queue("c", "y", gpu=2),
            ],
            {},
            {"a": 10, "c": 3},
            id="a department lends as one",
        ),
        pytest.param(
            [root("r1"), root("r2"), queue("a", "r1", gpu=1), queue("b", "r2", gpu=9)],
            {},
            {"a": 1, "b": 9},
            id="trees lend each other nothing",
        ),
        pytest.param([root("a", gpu=2)], {"a": 7}, {"a": 0}, id="lowered quota: nothing more, never below 0"),
        pytest.param(
            [root("org"), queue("a", "org", gpu=2), queue("b", "org", gpu=owns(6, lends=2))],
            {"a": 9},
            {"b": 4},
            id="an overdrawn tree does not take what a queue never lent",
        ),
        pytest.param([root("a", gpu=2)], {"gone": 7}, {"a": 2, "gone": 0}, id="a queue that is not there"),
    ],
)
def test_what_may_be_charged(nodes: list[QuotaNode], used: dict[str, int], available: dict[str, int]) -> None:
    books = ledger(*nodes, used={name: {"gpu": amount} for name, amount in used.items()})
    assert {name: books.available(name, GPU) for name in available} == available
    for name, amount in available.items():
        assert amount == 0 or books.fits(name, charge(gpu=amount)) is None
        assert books.fits(name, charge(gpu=amount + 1)) is not None


ORG = (
    root("org", gpu=1),
    queue("dept", "org", gpu=owns(2, borrows=2)),
    queue("a", "dept", gpu=owns(3, borrows=4)),
    queue("b", "dept", gpu=owns(1, borrows=0)),
    queue("c", "org", gpu=5),
)


@pytest.mark.parametrize(
    ("used", "name", "asked", "shortage"),
    [
        pytest.param({}, "b", 2, Shortage("b", GPU, 1, False), id="own quota, no borrowing allowed"),
        pytest.param({}, "a", 9, Shortage("a", GPU, 2, True), id="own borrowing limit"),
        pytest.param({"a": 7}, "b", 2, Shortage("b", GPU, 1, False), id="own before the department's"),
        pytest.param({"c": 6}, "a", 7, Shortage("a", GPU, 1, True), id="lenders have nothing left"),
        pytest.param({"c": 11}, "a", 2, Shortage("org", GPU, 1, False), id="others borrowed what it owns"),
        pytest.param(
            {"a": 6, "dept": 2}, "a", 2, Shortage("dept", GPU, 2, True), id="the department's limit"
        ),
        pytest.param({"c": 12}, "c", 1, Shortage("c", GPU, 1, True), id="the whole tree is in use"),
        pytest.param({}, "gone", 1, Shortage("gone", GPU, 1, False), id="a queue that is not there"),
    ],
)
def test_who_is_short(used: dict[str, int], name: str, asked: int, shortage: Shortage) -> None:
    books = ledger(*ORG, used={user: {"gpu": amount} for user, amount in used.items()})
    assert books.fits(name, charge(gpu=asked)) == shortage


def test_the_first_cell_that_is_short_is_told() -> None:
    books = ledger(root("a", cpu=4, gpu=2))
    short = books.fits("a", charge(cpu=5, gpu=5))
    assert short is not None
    assert short.cell == min(cell("cpu"), GPU)


@pytest.mark.parametrize(
    ("used", "name", "asked", "borrows"),
    [
        ({}, "a", 3, False),
        ({}, "a", 4, True),
        ({"a": 3}, "a", 1, True),
        ({"a": 3, "dept": 2}, "b", 1, False),
        ({"a": 6}, "b", 1, True),  # within its own quota, but its department then borrows
        ({}, "c", 5, False),
    ],
)
def test_whether_a_charge_makes_anybody_borrow(
    used: dict[str, int], name: str, asked: int, borrows: bool
) -> None:
    books = ledger(*ORG, used={user: {"gpu": amount} for user, amount in used.items()})
    assert books.borrows_after(name, charge(gpu=asked)) is borrows


def test_what_is_not_lent_is_nobodys_concern_above() -> None:
    books = ledger(root("org"), queue("a", "org", gpu=owns(4, lends=0)), used={"org": {"gpu": 9}})
    assert not books.borrows_after("a", charge(gpu=4))


SHARED = (
    root("org", gpu=10),
    queue("a", "org", gpu=2),
    queue("b", "org", weight=2000),
    queue("c", "org", weight=0),
)


@pytest.mark.parametrize(
    ("name", "asked", "share"),
    [
        ("a", 2, 0),
        ("a", 5, SHARE_ONE * 3 // 12),
        ("b", 3, SHARE_ONE * 3 // 24),
        ("b", 5, -(-SHARE_ONE * 5 // 24)),
        ("c", 3, INFINITE_SHARE + SHARE_ONE * 3 // 12),
        ("org", 3, None),
    ],
)
def test_share_is_borrowed_by_lendable_by_weight(name: str, asked: int, share: int | None) -> None:
    assert ledger(*SHARED).share(name, charge(gpu=asked)) == (() if share is None else (share,))


def test_share_is_the_largest_over_resources_summed_over_flavors() -> None:
    books = ledger(
        root("org", cpu=100, h100_gpu=10, a100_gpu=10),
        queue("a", "org"),
        used={"a": {"h100_gpu": 2, "a100_gpu": 2, "cpu": 10}},
    )
    assert books.share("a", charge(h100_gpu=1)) == (SHARE_ONE * 5 // 20,)
    assert books.share("a", charge(cpu=20)) == (SHARE_ONE * 30 // 100,)


def test_share_has_a_level_for_each_node_below_the_root() -> None:
    books = ledger(root("org", gpu=20), queue("dept", "org", gpu=4), queue("a", "dept"), queue("b", "dept"))
    books.charge("b", charge(gpu=3))
    assert books.share("a", charge(gpu=4)) == (-(-SHARE_ONE * 4 // 24), SHARE_ONE * 3 // 24)


def test_what_is_not_there_any_more_has_no_share() -> None:
    books = ledger(root("org"), queue("a", "org"), used={"a": {"gpu": 5}})
    assert books.share("a", ()) == (0,)


def test_charges_are_known_by_queue_and_in_all() -> None:
    books = ledger(*ORG, used={"a": {"gpu": 3, "cpu": 1}, "c": {"gpu": 2}, "gone": {"gpu": 4}})
    assert books.charges() == {"a": charge(gpu=3, cpu=1), "c": charge(gpu=2), "gone": charge(gpu=4)}
    assert books.totals[GPU] == 9
    assert {name: books.used(name, GPU) for name in ("org", "dept", "a", "b", "gone")} == {
        "org": 5,
        "dept": 3,
        "a": 3,
        "b": 0,
        "gone": 4,
    }
    assert books.balance("a", GPU) == 0
    assert books.balance("gone", GPU) == -4


def test_given_back_is_as_never_charged() -> None:
    books = ledger(*ORG, used={"a": {"gpu": 8}, "gone": {"gpu": 1}})
    books.give_back("a", charge(gpu=8))
    books.give_back("gone", charge(gpu=1))
    assert books.charges() == {}
    assert books.available("a", GPU) == ledger(*ORG).available("a", GPU)


@pytest.mark.parametrize("name", ["dept", "a", "gone"])
def test_nobody_gives_back_what_is_not_charged(name: str) -> None:
    books = ledger(*ORG, used={"a": {"cpu": 1, "gpu": 1}})
    with pytest.raises(LedgerError, match=name):
        books.give_back(name, charge(cpu=1, gpu=2))
    assert books.charges() == {"a": charge(cpu=1, gpu=1)}


def test_forks_and_their_origin_change_apart() -> None:
    books = ledger(*ORG, used={"a": {"gpu": 1}})
    fork = books.fork()
    fork.charge("a", charge(gpu=2))
    books.charge("c", charge(gpu=1))
    fork.charge("gone", charge(gpu=1))
    second = fork.fork()
    fork.give_back("a", charge(gpu=3))
    assert books.charges() == {"a": charge(gpu=1), "c": charge(gpu=1)}
    assert fork.charges() == {"gone": charge(gpu=1)}
    assert second.charges() == {"a": charge(gpu=3), "gone": charge(gpu=1)}
    assert second.balance("org", GPU) == 9


def test_charges_move_to_other_quotas_by_the_queues_names() -> None:
    books = ledger(*ORG, used={"a": {"gpu": 3}, "c": {"gpu": 4}, "late": {"gpu": 2}})
    moved = books.moved_to(grow(root("a", gpu=1), root("late", gpu=5)))
    assert moved.charges() == books.charges()
    assert (moved.available("a", GPU), moved.available("late", GPU)) == (0, 3)
    assert moved.balance("a", GPU) == -2


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        ([root("a"), root("a", gpu=1)], "a: expected once"),
        ([queue("a", "gone")], "parent gone"),
        ([queue("a", "b"), queue("b", "a")], "a: on or below a cycle"),
    ],
)
def test_nodes_that_form_no_tree_are_refused(nodes: list[QuotaNode], named: str) -> None:
    with pytest.raises(TreeError, match=named):
        grow(*nodes)


def test_the_most_a_queue_can_use_is_what_it_has_if_nothing_runs() -> None:
    empty = Ledger(grow(*ORG))
    for node in ORG:
        assert empty.tree.most(node.name, GPU) == empty.available(node.name, GPU)
    assert empty.tree.most("gone", GPU) == 0


def test_a_chain_of_a_thousand_queues_is_no_trouble() -> None:
    books = ledger(root("q0", gpu=1), *(queue(f"q{n}", f"q{n - 1}", gpu=1) for n in range(1, 1000)))
    assert books.available("q999", GPU) == 1000
    books.charge("q999", charge(gpu=1000))
    assert books.used("q0", GPU) == 1000
    assert books.available("q500", GPU) == 0


@pytest.mark.parametrize(
    ("lends", "over"),
    [
        pytest.param(None, {"a": 1, "mid": 0, "c": 1, "org": 1}, id="what is lent would come back"),
        pytest.param(2, {"a": 1, "mid": 0, "c": 1, "org": 1}, id="as far as it is lent"),
        pytest.param(
            1, {"a": 0, "mid": 0, "c": 1, "org": 1}, id="what is kept in between comes back to nobody"
        ),
    ],
)
def test_who_uses_more_than_it_may_once_quotas_were_lowered(lends: int | None, over: dict[str, int]) -> None:
    """``c`` borrows 2 and ``a`` 1, of the 2 that ``mid`` owns."""
    made = ledger(
        root("org"),
        queue("mid", "org", gpu=owns(2, lends=lends)),
        queue("a", "mid", gpu=0),
        queue("c", "org", gpu=0),
        used={"a": {"gpu": 1}, "c": {"gpu": 2}},
    )
    assert {name: made.over(name, GPU) for name in over} == over
    assert all(not made.available(name, GPU) for name, amount in over.items() if amount)
