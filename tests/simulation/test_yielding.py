"""Elastic work gives pods up before anything is stopped for others: the laws see that it does."""

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.turn import displaceable, plan_beginning, shrinking, turn
from queue_dispatcher.turn.shrinking import surplus_of
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import placed
from tests.simulation.displaced import Displacements
from tests.simulation.play import run

LEAST, MOST = 4, 12
LOWER = Story(until_s=300, estimators=True).cluster("a", gpus=8, nodes=2)
LOWER = LOWER.queue("main", gpus=16, displaces="LowerPriority")


def elastic(story: Story, *, of: int = MOST, stops_s: int = 0, kind: str = "Job") -> Story:
    """It runs on for as long as its class keeps it, which keeps nothing beyond its minimum."""
    return story.submit(
        "elastic",
        pods=of,
        least=LEAST,
        kind="Job" if kind == "Job" else "Deployment",
        runs_s=280,
        stops_s=stops_s,
        min_run_s=200,
    )


def rigid(story: Story) -> Story:
    """What would be displaced if nothing gave way."""
    return story.submit("rigid", pods=4, runs_s=280, at_s=1)


URGENT = rigid(elastic(LOWER)).submit("urgent", pods=6, runs_s=60, priority=10, at_s=60)
DEPLOYMENT = rigid(elastic(LOWER, kind="Deployment"))
DEPLOYMENT = DEPLOYMENT.submit("urgent", pods=6, runs_s=60, priority=10, at_s=60)
# Others would like to have a part of what is left while the pods take their time.
SLOW = rigid(elastic(LOWER, stops_s=50)).submit("urgent", pods=6, runs_s=60, priority=10, at_s=60)
for _number in range(6):
    SLOW = SLOW.submit(f"small{_number}", gpus=1, runs_s=60, at_s=58 + 2 * _number, priority=1)
# A node of its own, where each pod has one. Where each node has several, which go first leaves none free.
NODES = Story(until_s=300, estimators=True).cluster("a", gpus=8, nodes=4)
NODES = NODES.queue("main", gpus=32, displaces="LowerPriority")
NODES = NODES.submit("elastic", pods=4, gpus=8, least=2, kind="Deployment", runs_s=280)
NODES = NODES.submit("urgent", pods=1, gpus=8, gang=True, runs_s=60, priority=10, at_s=60)
IN_VAIN = elastic(LOWER, of=16).submit("urgent", pods=1, gpus=8, gang=True, runs_s=60, priority=10, at_s=60)
# Its pods, and whoever came last.
BOTH = rigid(elastic(LOWER)).submit("urgent", pods=10, runs_s=60, priority=10, at_s=60)
# Without its pods beyond the minimum the queue has less in use than those that go.
ALONE = elastic(LOWER, of=16).submit("urgent", pods=12, runs_s=60, priority=10, at_s=60)
# One after the other, each takes of it, and it grows again in between.
AGAIN = rigid(elastic(LOWER))
for _number in range(4):
    AGAIN = AGAIN.submit(f"u{_number}", pods=4, runs_s=20, priority=10, at_s=40 + 60 * _number)
# Those that give way take differently long, and others would like to have what is left first.
TWO = elastic(LOWER, of=8, stops_s=50)
TWO = TWO.submit("other", pods=8, least=LEAST, runs_s=280, stops_s=5, at_s=1)
TWO = TWO.submit("urgent", pods=6, runs_s=60, priority=10, at_s=60)
for _number in range(6):
    TWO = TWO.submit(f"small{_number}", gpus=1, runs_s=60, at_s=62 + 2 * _number)
STORIES = {
    "two give way": (TWO, 6, 0),
    "two give way, and leaders die right after a write": (TWO.fault("kill_after_write", for_s=90), 6, 0),
    "pods of a Job": (URGENT, 6, 0),
    "pods of a Deployment": (DEPLOYMENT, 6, 0),
    # Beside the urgent ones smaller ones take the rest, and then what is whole and of less priority.
    "pods that take long to end": (SLOW, 8, 1),
    "a node of its own": (NODES, 1, 0),
    "pods and what is whole": (BOTH, 6, 1),
    "all but what nobody else uses": (ALONE, 12, 0),
    "one after the other": (AGAIN, 16, 0),
    "leaders die right after a write": (URGENT.fault("kill_after_write", for_s=120), 6, 0),
    "leaders die right before a write": (URGENT.fault("kill_before_write", for_s=120), 6, 0),
    "somebody else is always faster": (URGENT.fault("conflict", for_s=100, amount=30), 6, 0),
    "answers get lost": (URGENT.fault("timeout_after", for_s=100, amount=4), 6, 0),
    "watches lag": (URGENT.fault("watch_lag", for_s=100, amount=15_000), None, None),
}


def told(story: Story) -> Displacements:
    laws = Displacements(World(story))
    run(laws.world, laws)
    return laws


@pytest.mark.parametrize("name", STORIES)
def test_it_gives_way_first_and_grows_again(name: str) -> None:
    story, given, displaced = STORIES[name]
    laws = told(story)
    assert not laws.broken, "\n".join(map(str, laws.broken))
    assert laws.given > 0
    assert given is None or laws.given == given
    assert displaced is None or laws.displaced == displaced
    sizes = [
        placed(one.after)
        for one in laws.world.api.writes
        if one.resource == "resourcebindings" and one.after is not None and "elastic" in one.key
    ]
    assert min(size for size in sizes if size) >= (2 if story is NODES else LEAST)
    assert sizes[-1] == max(sizes)


def test_nobody_gives_way_where_those_that_would_go_leave_no_node() -> None:
    laws = told(IN_VAIN)
    assert not laws.broken, "\n".join(map(str, laws.broken))
    # All of it goes once its class keeps it no more.
    assert (laws.given, laws.displaced) == (0, 1)


@pytest.mark.parametrize("at_s", [61, 63])
def test_its_owner_may_take_away_what_it_was_to_give_up(at_s: int) -> None:
    laws = told(ALONE.scale("elastic", pods=LEAST, at_s=at_s))
    assert not laws.broken, "\n".join(map(str, laws.broken))
    assert (laws.given, laws.displaced) == (0, 0)


def nobody(*_: object, **__: object) -> list[Candidate]:
    return []


SURPLUS = displaceable._surplus


def all_but_one(entry: Entry) -> int:
    return max(0, sum(share.replicas for share in entry.binding.placed) - 1)


def beyond(cache: Cache, entry: Entry, now: Moment, *, borrows: bool) -> Iterator[Candidate]:
    for one in SURPLUS(cache, entry, now, borrows=borrows):
        yield replace(one, pods=all_but_one(entry), surplus=all_but_one(entry))


def all_of_it(cache: Cache, surplus: Candidate) -> tuple[str, int]:
    return surplus.cluster, surplus_of(cache.entries[surplus.members[0]])


@pytest.mark.parametrize(
    ("story", "law", "of", "name", "instead"),
    [
        pytest.param(
            rigid(elastic(LOWER)).submit("urgent", pods=3, runs_s=60, priority=10, at_s=60),
            "pods beyond a minimum go before anything whole",
            displaceable,
            "_surplus",
            nobody,
            id="nobody gives way",
        ),
        pytest.param(
            elastic(LOWER, of=16).submit("urgent", pods=14, runs_s=60, priority=10, at_s=60),
            "nobody gives up its minimum",
            displaceable,
            "_surplus",
            beyond,
            id="minimums are passed over",
        ),
        pytest.param(
            URGENT.submit("u2", pods=2, runs_s=60, priority=10, at_s=200),
            "no more is given up than is asked for",
            plan_beginning,
            "fewer_of",
            all_of_it,
            id="all goes that may",
        ),
        pytest.param(
            TWO,
            "what is left is kept for whom it was left",
            turn,
            "claims_of",
            lambda *_: {},
            id="claims are ignored",
        ),
    ],
)
def test_laws_see(story: Story, law: str, of: object, name: str, instead: object) -> None:
    with (
        mock.patch.object(of, name, instead),
        mock.patch.object(shrinking, "surplus_of", all_but_one if instead is beyond else surplus_of),
    ):
        laws = told(story)
    assert law in {one.law for one in laws.broken}
