"""When what waits is expected to start, by whose word, and that it comes true."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle import projection
from queue_dispatcher.cycle.eta import Confidence, Eta, etas
from queue_dispatcher.cycle.projection import MAX_STEPS, Outlook, Run, Waiting, project
from queue_dispatcher.cycle.run_history import ENOUGH, KEPT, MAX_KINDS, RunHistory
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.cycle.turns import NO_TURNS, TURN, Turns
from queue_dispatcher.ledger.tree import QuotaNode
from tests.dispatcher.cycle.builders import BACKFILL, BEST_EFFORT, Fleet
from tests.dispatcher.ledger.builders import cell, queue, root

MIN = 60_000
STRICT = QueueingStrategy.STRICT_FIFO


@dataclass(frozen=True)
class Runs:
    """``gpu`` of a queue; minutes until it ends at the most, and is likely to; None where nobody knows."""

    gpu: int
    most: float | None = None
    likely: float | None = None
    of: str = "q"
    is_endless: bool = False


@dataclass(frozen=True)
class Waits:
    """``gpu`` of a queue; how many minutes it runs at the most, and is likely to."""

    gpu: int
    most: float | None = None
    likely: float | None = None
    of: str = "q"
    priority: int = 0
    due: int = 0
    refused: bool = False
    opens: int | None = None


def outlook(
    runs: Mapping[str, Runs],
    waits: Mapping[str, Waits],
    *nodes: QuotaNode,
    strategy: QueueingStrategy = BEST_EFFORT,
    there: int | None = None,
) -> Outlook:
    """As of minute 0. ``there``: how many GPUs there are, whatever the quotas."""
    fleet = Fleet(*nodes or (root("q", gpu=16),), strategy=strategy)
    running = []
    for name, one in runs.items():
        paid = ((cell("gpu"), one.gpu),)
        fleet.ledger.charge(one.of, paid)
        running.append(Run(name, one.of, paid, _ms(one.most), _ms(one.likely), one.is_endless))
    waiting = []
    for number, (name, w) in enumerate(waits.items()):
        item = fleet.submit(
            w.of, name, at=number, priority=w.priority, due=w.due * MIN, runtime=_ms(w.most), gpu=w.gpu
        )
        waiting.append(Waiting(item, _ms(w.likely), w.refused, _ms(w.opens)))
    capacity = {} if there is None else {cell("gpu"): there}
    return Outlook(0, fleet.ledger, capacity, fleet.queues, waiting, running)


def _ms(minutes: float | None) -> int | None:
    return None if minutes is None else int(minutes * MIN)


def told(found: Mapping[str, Eta]) -> dict[str, str]:
    """By name: ``bound 10``, ``history 10 (by 40)``, ``unknown``; in minutes."""
    return {name: _told(eta) for name, eta in found.items()}


def _told(eta: Eta) -> str:
    if eta.at_ms is None:
        assert eta.why
        assert eta.confidence is Confidence.UNKNOWN
        return "unknown"
    by = f" (by {eta.by_ms / MIN:g})" if eta.by_ms not in (None, eta.at_ms) else ""
    return f"{eta.confidence} {eta.at_ms / MIN:g}{by}"


@dataclass(frozen=True)
class Case:
    about: str
    runs: dict[str, Runs]
    waits: dict[str, Waits]
    told: dict[str, str]
    nodes: tuple[QuotaNode, ...] = ()
    strategy: QueueingStrategy = BEST_EFFORT
    there: int | None = field(default=None)


TREE = (root("org"), queue("own", "org", gpu=8), queue("other", "org", gpu=8))
CASES = [
    Case("room is there", {}, {"x": Waits(16)}, {"x": "bound 0"}),
    Case("when enough has ended", {"a": Runs(8, 10), "b": Runs(8, 20)}, {"x": Waits(16)}, {"x": "bound 20"}),
    Case("what has overrun ends any moment", {"a": Runs(16, -5)}, {"x": Waits(4)}, {"x": "bound 0"}),
    Case(
        "one after the other",
        {"a": Runs(16, 10)},
        {"x": Waits(16, 30), "y": Waits(16, 5), "z": Waits(16)},
        {"x": "bound 10", "y": "bound 40", "z": "bound 45"},
    ),
    Case(
        "behind one of which nobody knows when it ends",
        {"a": Runs(16, 10)},
        {"x": Waits(16), "y": Waits(16, 5)},
        {"x": "bound 10", "y": "unknown"},
    ),
    Case("nobody knows when it ends", {"a": Runs(16)}, {"x": Waits(4)}, {"x": "unknown"}),
    Case("it never ends", {"a": Runs(16, is_endless=True)}, {"x": Waits(4)}, {"x": "unknown"}),
    Case(
        "what nobody knows of is not in its way",
        {"a": Runs(8), "b": Runs(8, 7)},
        {"x": Waits(8)},
        {"x": "bound 7"},
    ),
    Case("by history alone", {"a": Runs(16, None, 6)}, {"x": Waits(4)}, {"x": "history 6"}),
    Case("declared ten times too long", {"a": Runs(16, 60, 6)}, {"x": Waits(4)}, {"x": "history 6 (by 60)"}),
    Case("declared less than others took", {"a": Runs(16, 6, 60)}, {"x": Waits(4)}, {"x": "bound 6"}),
    Case(
        "history of what waits before it",
        {"a": Runs(16, 10)},
        {"x": Waits(16, 100, 20), "y": Waits(16)},
        {"x": "bound 10", "y": "history 30 (by 110)"},
    ),
    Case(
        "history does not matter to who needs none",
        {"a": Runs(8, None, 6), "b": Runs(8, 3)},
        {"x": Waits(8)},
        {"x": "bound 3"},
    ),
    Case(
        "priority goes first",
        {"a": Runs(16, 10)},
        {"x": Waits(16, 5), "y": Waits(16, 5, priority=1)},
        {"x": "bound 15", "y": "bound 10"},
    ),
    Case(
        "small ones pass where they may",
        {"a": Runs(12, 10)},
        {"x": Waits(16, 5), "y": Waits(4, 60)},
        {"x": "bound 60", "y": "bound 0"},
    ),
    Case(
        "and not in a strict queue",
        {"a": Runs(12, 10)},
        {"x": Waits(16, 5), "y": Waits(4, 60)},
        {"x": "bound 10", "y": "bound 15"},
        strategy=STRICT,
    ),
    Case("who backs off", {}, {"x": Waits(4, due=3)}, {"x": "bound 3"}),
    Case(
        "quota of others that they lend",
        {"a": Runs(8, 10, of="own"), "b": Runs(8, 20, of="other")},
        {"x": Waits(12, of="own")},
        {"x": "bound 20"},
        TREE,
    ),
    Case("amounts are short", {"a": Runs(8, 10)}, {"x": Waits(8)}, {"x": "bound 10"}, there=12),
    Case(
        "no nodes, and nobody knows when", {"a": Runs(8, 10)}, {"x": Waits(4, refused=True)}, {"x": "unknown"}
    ),
    Case(
        "no nodes, and the estimators know when",
        {"a": Runs(8, 10)},
        {"x": Waits(4, refused=True, opens=25)},
        {"x": "bound 25"},
    ),
    Case(
        "behind one for which there are no nodes",
        {"a": Runs(8, 10)},
        {"x": Waits(16, 5, refused=True), "y": Waits(16)},
        {"x": "unknown", "y": "bound 15"},
        strategy=STRICT,
    ),
    Case("nothing ever ends for it", {}, {"x": Waits(4, refused=True)}, {"x": "unknown"}),
    Case("more than there is", {"a": Runs(8, 10)}, {"x": Waits(17)}, {"x": "unknown"}),
]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (NO_TURNS, {"a": "bound 10", "b": "bound 110"}),
        (Turns(((0, {"a": TURN}),)), {"a": "bound 15", "b": "bound 10"}),
    ],
)
def test_whose_turn_it_is_counts(turns: Turns, expected: dict[str, str]) -> None:
    nodes = root("org"), queue("a", "org", gpu=4), queue("b", "org", gpu=4)
    waits = {"a": Waits(4, 100, of="a"), "b": Waits(4, 5, of="b")}
    known = outlook({"ran": Runs(4, 10, of="a")}, waits, *nodes, there=4)
    assert told(to_the_end(etas(replace(known, turns=turns)))) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_when_it_is_expected_to_start(case: Case) -> None:
    seen = outlook(case.runs, case.waits, *case.nodes, strategy=case.strategy, there=case.there)
    before = seen.ledger.charges
    assert told(to_the_end(etas(seen))) == case.told
    # What is worked out changes nothing of what there is.
    assert seen.ledger.charges == before


def test_a_reservation_is_as_it_will_be() -> None:
    """What would delay the gang waits, what is over in time does not."""
    seen = outlook(
        {"a": Runs(12, 30), "b": Runs(4, 5)},
        {"gang": Waits(16, 60), "short": Waits(4, 20), "long": Waits(4, 60)},
        strategy=BACKFILL,
    )
    assert told(to_the_end(etas(seen))) == {"gang": "bound 30", "short": "bound 5", "long": "bound 90"}


@pytest.mark.parametrize("strategy", [BEST_EFFORT, STRICT])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_expected_comes_true_if_all_runs_for_as_long_as_it_may(
    seed: int, strategy: QueueingStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each ending for itself.
    monkeypatch.setattr(projection, "GRAIN", 1 << 60)
    draw = random.Random(seed)
    runs = {f"r{n}": Runs(draw.choice([1, 2]), draw.randint(1, 200)) for n in range(6)}
    waits = {
        f"w{n}": Waits(draw.choice([1, 2, 4, 8, 16]), draw.randint(1, 90), priority=draw.choice([0, 0, 1]))
        for n in range(15)
    }
    expected = to_the_end(project(outlook(runs, waits, strategy=strategy), is_likely=False))
    assert expected == _played(runs, waits, strategy)


def test_endings_that_are_close_together_count_as_the_last_of_them() -> None:
    near = {f"r{n}": Runs(2, 320 + n) for n in range(8)}
    seen = outlook(near, {"x": Waits(4), "y": Waits(12)})
    assert told(to_the_end(etas(seen))) == {"x": "bound 327", "y": "bound 327"}


def _played(
    runs: Mapping[str, Runs], waits: Mapping[str, Waits], strategy: QueueingStrategy
) -> dict[str, int]:
    """When each really starts, minute by minute."""
    fleet = Fleet(root("q", gpu=16), strategy=strategy)
    for name, one in runs.items():
        fleet.submit("q", name, gpu=one.gpu, priority=9)
    assert len(fleet.cycle()) == len(runs)
    ends = {name: _ms(one.most) or 0 for name, one in runs.items()}
    for number, (name, w) in enumerate(waits.items()):
        fleet.submit("q", name, at=number, priority=w.priority, runtime=_ms(w.most), gpu=w.gpu)
    starts: dict[str, int] = {}
    while len(starts) < len(waits):
        for name in [name for name, at_ms in ends.items() if at_ms <= fleet.now_ms]:
            fleet.finish(name)
            del ends[name]
        for name in fleet.cycle():
            starts[name] = fleet.now_ms
            ends[name] = fleet.now_ms + (_ms(waits[name].most) or 0)
        fleet.now_ms += MIN
    return starts


def test_so_many_endings_are_played() -> None:
    """A line of a thousand is worked out as far as it is near."""
    waits = {f"w{n}": Waits(16, 10) for n in range(1000)}
    found = to_the_end(etas(outlook({"a": Runs(16, 10)}, waits)))
    known = [name for name, eta in found.items() if eta.at_ms is not None]
    assert known == list(waits)[: len(known)]
    assert MAX_STEPS // 2 <= len(known) <= MAX_STEPS
    assert [found[name].at_ms for name in known[:3]] == [10 * MIN, 20 * MIN, 30 * MIN]


# How long others ran.


@pytest.mark.parametrize(
    ("ran", "now", "likely"),
    [
        ([], 0, None),
        ([10] * (ENOUGH - 1), 0, None),
        ([10] * ENOUGH, 0, 10),
        (list(range(1, 11)), 0, 9),
        (list(range(1, 101)), 0, 94),
        ([1] * 9 + [1000], 0, 1),
        # Who has run for longer than most is likely to be one of those that run long.
        ([1] * 9 + [1000], 5, 1000),
        ([1] * 9 + [1000], 1000, None),
        ([10, 20, 30, 40, 50], 25, 50),
    ],
)
def test_how_long_it_is_likely_to_run(ran: list[int], now: int, likely: int | None) -> None:
    history = RunHistory()
    for ran_ms in ran:
        history.ended(("q", "c"), ran_ms)
    assert history.likely_ms(("q", "c"), now) == likely
    assert history.likely_ms(("q", "other")) is None


def test_what_ran_long_ago_is_forgotten() -> None:
    history = RunHistory()
    for ran_ms in [1000] * KEPT + [10] * KEPT:
        history.ended(("q", "c"), ran_ms)
    assert history.likely_ms(("q", "c")) == 10
    for number in range(MAX_KINDS):
        history.ended(("q", str(number)), 1)
    assert len(history) == MAX_KINDS
    assert history.likely_ms(("q", "c")) is None
