"""The laws about displacing see what they are about, and nothing else."""

from collections.abc import Generator, Iterable
from unittest import mock

import pytest

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache import precedences
from queue_dispatcher.cache.ends import Displaced, may_be_stopped
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.preemption import planning
from queue_dispatcher.preemption.candidates import Candidate, Preemptor
from queue_dispatcher.preemption.planning import Plan
from queue_dispatcher.preemption.precedence import Precedence
from queue_dispatcher.preemption.victims import Displacing
from queue_dispatcher.turn import displaceable, turn
from queue_dispatcher.turn.plan_search import PlanSearch
from sandbox.simulation.objects import from_rfc3339
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import record_of
from tests.simulation.displaced import Displacements
from tests.simulation.play import run

# What takes 20 s to end is displaced for who needs all of it, while others would like to have a part.
URGENT = (
    Story(until_s=120)
    .cluster("a", gpus=4)
    .queue("main", gpus=4, displaces="LowerPriority")
    .submit("x", gpus=2, runs_s=300, stops_s=20)
    .submit("y", gpus=2, runs_s=300, stops_s=5)
    .submit("urgent", gpus=4, pods=1, gang=True, runs_s=30, priority=10, at_s=20)
)
for _number in range(6):
    URGENT = URGENT.submit(f"small{_number}", gpus=1, runs_s=60, at_s=18 + 2 * _number)
OWNERS = (
    Story(until_s=120)
    .cluster("a", gpus=8)
    .queue("pool", gpus=0)
    .queue("owner", gpus=4, parent="pool", reclaims="Any")
    .queue("other", gpus=4, parent="pool", reclaims="Any")
    .submit("kept", "other", gpus=2, runs_s=400, min_run_s=200)
    .submit("borrowed1", "other", gpus=2, runs_s=400, priority=10, at_s=1)
    .submit("borrowed2", "other", gpus=2, runs_s=400, priority=10, at_s=1)
    .submit("borrowed3", "other", gpus=2, runs_s=400, priority=10, at_s=1)
    .submit("mine", "owner", gpus=2, pods=1, runs_s=40, at_s=20)
    .submit("more", "owner", gpus=2, runs_s=40, at_s=30)
)
# What others borrow holds a reservation by the time that the owner comes, which holds none.
HELD = (
    Story(until_s=600)
    .cluster("a", gpus=8)
    .queue("pool", gpus=0)
    .queue("owner", gpus=6, parent="pool", reclaims="Any")
    .queue("other", gpus=2, parent="pool", backfill=True)
    .submit("own", "other", gpus=2, runs_s=4_000)
    .submit("borrowed", "other", gpus=4, runs_s=4_000)
    .submit("gang", "other", gpus=8, runs_s=10, at_s=5)
    .submit("mine", "owner", gpus=6, runs_s=10, at_s=500)
)
PROMISED = (
    Story(until_s=60)
    .cluster("a", gpus=4)
    .queue("main", gpus=4, displaces="LowerPriority")
    .submit("never", gpus=1, runs_s=60, preemptible="Never")
    .submit("unborrowed", gpus=1, runs_s=60, preemptible="BorrowedOnly")
    .submit("lately", gpus=1, runs_s=200, min_run_s=90)
    .submit("lately2", gpus=1, runs_s=200, min_run_s=90)
    .submit("urgent", gpus=1, runs_s=30, priority=10, at_s=20)
)


STAYS = (
    Story(until_s=60)
    .cluster("a", gpus=4)
    .queue("main", gpus=4, displaces="LowerPriority")
    .submit("stays", gpus=4, runs_s=60, stays=True)
    .submit("urgent", gpus=1, runs_s=30, priority=10, at_s=20)
)
EQUAL = (
    Story(until_s=60)
    .cluster("a", gpus=4)
    .queue("main", gpus=4, displaces="LowerOrNewerEqualPriority")
    .submit("older", gpus=4, runs_s=100)
    .submit("newer", gpus=4, runs_s=30, at_s=20)
)


def told(story: Story, *, estimators: bool = False) -> Displacements:
    laws = Displacements(World(Story(story.seed, story.until_s, estimators=estimators, lines=story.lines)))
    run(laws.world, laws)
    return laws


# Both borrow of what the pool has, and the one that comes has the larger share afterwards.
FAIR = (
    Story(until_s=60)
    .cluster("a", gpus=8)
    .queue("pool", gpus=6)
    .queue("large", gpus=1, parent="pool", reclaims="Any")
    .queue("small", gpus=1, parent="pool")
    .submit("has", "large", gpus=4, runs_s=100)
    .submit("borrowed", "small", gpus=2, runs_s=100, at_s=1)
    .submit("borrowed2", "small", gpus=2, runs_s=100, at_s=1)
    .submit("more", "large", gpus=2, runs_s=30, at_s=20)
)
# Of three that no two of fit beside each other each could displace the next: by shares, by priority in its
# queue, by shares.
ROUND = (
    Story(until_s=200)
    .cluster("a", gpus=3)
    .queue("pool", gpus=0)
    .queue("one", gpus=1, parent="pool", displaces="LowerPriority", reclaims="Any")
    .queue("none", gpus=0, parent="pool", displaces="LowerPriority", reclaims="Any")
    .queue("lender", gpus=2, parent="pool")
    .submit("large", "one", gpus=3, pods=1, runs_s=4_000, priority=10)
    .submit("small", "none", gpus=1, runs_s=4_000, at_s=20)
    .submit("urgent", "none", gpus=3, pods=1, runs_s=4_000, priority=10, at_s=40)
)
STORIES = [(ROUND, 3), (FAIR, 0), (URGENT, 2), (OWNERS, 2), (HELD, 1), (PROMISED, 0), (STAYS, 0), (EQUAL, 0)]


@pytest.mark.parametrize("estimators", [False, True])
@pytest.mark.parametrize(("story", "count"), STORIES)
def test_nothing_is_broken_where_nothing_is_wrong(story: Story, count: int, *, estimators: bool) -> None:
    laws = told(story, estimators=estimators)
    assert not laws.broken, "\n".join(map(str, laws.broken))
    assert laws.displaced == count


def test_whose_turn_is_first_displaces_others_in_what_is_reserved_for_those_behind_it() -> None:
    """At once, and not only once it has a reservation of its own."""
    story = (
        Story(until_s=120)
        .cluster("a", gpus=8)
        .queue("main", gpus=8, backfill=True, displaces="LowerPriority")
        .submit("x", gpus=8, runs_s=4_000)
        .submit("gang", gpus=8, runs_s=10, at_s=5)
        .submit("urgent", gpus=8, runs_s=4_000, priority=10, at_s=100)
    )
    world = told(story, estimators=True).world
    urgent = world.binding("urgent")
    record = record_of(urgent) if urgent is not None else None
    assert record is not None
    assert from_rfc3339(record["admittedAt"]) <= world.at_ms(115)


def may_go(entry: Entry, now: Moment, *, borrows: bool) -> bool:
    return may_be_stopped(entry)


def nobody(*_: object) -> Generator[None, None, list[object]]:
    yield
    return []


def anybody(preemptor: Preemptor, one: Candidate, cells: object) -> bool:
    return True


class Shareless(Displacing):
    """Whose share is larger goes as well."""

    def _is_fair(self, share: int, node: int) -> bool:
        return True

    def may_return(self, one: Candidate, beside: Iterable[Candidate] = ()) -> bool:
        return False


BEGIN = PlanSearch._begin


def twice(self: PlanSearch, way: Alternative, plan: Plan) -> None:
    """Who stays is displaced as well."""
    BEGIN(self, way, plan)
    for entry in self._cache.entries.values():
        if entry.binding.record is not None and entry.binding.placed:
            self._cache.ends.displace(entry.uid, Displaced(self._item.id, "and why not"))


class Forgetful(Precedence):
    """Nobody goes before anybody."""

    def displaced(self, one: str, by: str) -> None:
        pass


IN_TURN, ENDS = "who was displaced does not displace in turn", "displacing comes to an end"
PERMITTED, KEPT = "nobody is displaced that may not be", "what is left is kept for whom it was left"
OWN = "what a queue owns it gets back"


@pytest.mark.parametrize(
    ("story", "law", "of", "name", "instead"),
    [
        pytest.param(URGENT, KEPT, turn, "claims_of", lambda *_: {}, id="claims are ignored"),
        pytest.param(PROMISED, PERMITTED, displaceable, "_may_go", may_go, id="promises are ignored"),
        pytest.param(EQUAL, PERMITTED, displaceable, "may_displace", anybody, id="policies are ignored"),
        pytest.param(FAIR, PERMITTED, planning, "Displacing", Shareless, id="shares are ignored"),
        pytest.param(ROUND, IN_TURN, precedences, "Precedence", Forgetful, id="nobody goes before"),
        pytest.param(ROUND, ENDS, precedences, "Precedence", Forgetful, id="and there is no end"),
        pytest.param(OWNERS, OWN, turn, "displace", nobody, id="nobody is displaced"),
        pytest.param(OWNERS, PERMITTED, PlanSearch, "_begin", twice, id="everybody is displaced"),
    ],
)
def test_laws_see(story: Story, law: str, of: object, name: str, instead: object) -> None:
    with mock.patch.object(of, name, instead):
        laws = told(story, estimators=True)
    assert law in {one.law for one in laws.broken}
