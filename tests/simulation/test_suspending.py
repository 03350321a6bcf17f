"""Jobs that stand still while others have their room, on the simulated Karmada."""

from unittest import mock

import pytest

from queue_dispatcher.bindings import patches, reading
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cache import cache as caching
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.turn import bodies, suspending, switching
from queue_dispatcher.turn.writes import Companion, Purpose
from queue_dispatcher.workloads.demand import Placed
from sandbox.simulation.member import Member
from sandbox.simulation.objects import Obj
from sandbox.simulation.pods import owner_key
from sandbox.simulation.story import FaultKind, Story
from sandbox.simulation.world import World
from tests.simulation import play as playing
from tests.simulation.accounts import is_ended, stands_still
from tests.simulation.suspended import Suspensions

TWO = Story(until_s=400, estimators=True).cluster("a", gpus=4).cluster("b", gpus=4)
# What is displaced has done a part of its work, and the other cluster is full for long.
DISPLACED = (
    TWO.queue("main", gpus=8, displaces="LowerPriority")
    .submit("kept", gpus=4, runs_s=2_000, priority=5, clusters=("b",), at_s=1)
    .submit("long", gpus=1, pods=4, completions=40, runs_s=20, stops_s=5, gang=True, at_s=2)
    .submit("urgent", gpus=4, runs_s=100, priority=10, clusters=("a",), at_s=50)
)
# In this one the cluster stays full, and the other one becomes free.
CROWDED = (
    TWO.queue("main", gpus=8, displaces="LowerPriority")
    .submit("kept", gpus=4, runs_s=900, priority=5, clusters=("b",), at_s=1)
    .submit("long", gpus=1, pods=4, completions=40, runs_s=20, stops_s=5, gang=True, at_s=2)
    .submit("urgent", gpus=4, runs_s=5_000, priority=10, clusters=("a",), at_s=50)
)
DRAINED = (
    TWO.queue("main", gpus=8)
    .submit("x", gpus=1, pods=4, completions=20, runs_s=20, gang=True, at_s=1)
    .submit("y", gpus=2, runs_s=60, at_s=1)
    .stop("main", policy="HoldAndDrain", at_s=50)
    .stop("main", policy="None", at_s=200)
)
# The same of JobSets, which a policy suspends: what of one has not ended runs from its beginning.
SET_DISPLACED = (
    TWO.queue("main", gpus=8, displaces="LowerPriority")
    .submit("kept", gpus=4, runs_s=2_000, priority=5, clusters=("b",), at_s=1)
    .submit("long", gpus=1, pods=4, kind="JobSet", runs_s=120, stops_s=5, gang=True, at_s=2)
    .submit("urgent", gpus=4, runs_s=100, priority=10, clusters=("a",), at_s=50)
)
SET_CROWDED = (
    TWO.queue("main", gpus=8, displaces="LowerPriority")
    .submit("kept", gpus=4, runs_s=900, priority=5, clusters=("b",), at_s=1)
    .submit("long", gpus=1, pods=4, kind="JobSet", runs_s=120, stops_s=5, gang=True, at_s=2)
    .submit("urgent", gpus=4, runs_s=5_000, priority=10, clusters=("a",), at_s=50)
)
SET_DRAINED = (
    TWO.queue("main", gpus=8)
    .submit("x", gpus=1, pods=4, kind="JobSet", runs_s=100, gang=True, at_s=1)
    .submit("y", gpus=2, kind="JobSet", runs_s=70, at_s=1)
    .stop("main", policy="HoldAndDrain", at_s=50)
    .stop("main", policy="None", at_s=200)
)
# There is room for both, and quota for one.
ROOMY = (
    Story(until_s=300, estimators=True)
    .cluster("a", gpus=8)
    .queue("main", gpus=4, displaces="LowerPriority")
    .submit("long", gpus=1, pods=4, kind="JobSet", runs_s=120, stops_s=5, gang=True, at_s=2)
    .submit("urgent", gpus=4, runs_s=100, priority=10, at_s=50)
)


def told(story: Story) -> tuple[World, Suspensions]:
    world = World(story)
    laws = Suspensions(world)
    playing.run(world, laws)
    return world, laws


def well(story: Story) -> tuple[World, Suspensions]:
    """The story to its end; no law is broken."""
    world, laws = told(story)
    assert not laws.broken, "\n".join(map(str, laws.broken))
    return world, laws


def ended(world: World) -> list[str]:
    bindings = {name: world.binding(name) for name in world.submitted}
    return sorted(name for name, one in bindings.items() if one is not None and is_ended(one))


def counts(laws: Suspensions) -> tuple[int, int, int]:
    return laws.suspended, laws.resumed, laws.given_up


@pytest.mark.parametrize("story", [DISPLACED, SET_DISPLACED])
def test_what_is_displaced_goes_on_where_it_stood(story: Story) -> None:
    world = World(story)
    world.timeline.run_until(world.at_ms(75))
    binding = world.binding("long")
    assert binding is not None
    assert stands_still(binding) == "a"
    world, laws = well(story)
    assert (counts(laws), laws.displaced) == ((1, 1, 0), 1)
    assert {"long", "urgent"} <= set(ended(world))


@pytest.mark.parametrize("story", [CROWDED, SET_CROWDED])
def test_it_goes_elsewhere_once_it_has_waited_for_long(story: Story) -> None:
    world, laws = well(story)
    assert counts(laws) == (1, 0, 1)
    assert "long" in ended(world)


def test_what_leaves_no_quota_yet_is_waited_for() -> None:
    world, laws = well(ROOMY)
    assert (counts(laws), ended(world)) == ((1, 1, 0), ["long", "urgent"])


@pytest.mark.parametrize("story", [DRAINED, SET_DRAINED])
def test_what_is_drained_goes_on_afterwards(story: Story) -> None:
    world, laws = well(story)
    assert (counts(laws), laws.drained) == ((2, 2, 0), 2)
    assert ended(world) == ["x", "y"]


FAULTS: tuple[FaultKind, ...] = (
    "kill",
    "kill_before_write",
    "kill_after_write",
    "timeout_after",
    "server_error",
    "watch_silent",
    "conflict",
    "pause",
)


@pytest.mark.parametrize("story", [DISPLACED, DRAINED, SET_DISPLACED, SET_DRAINED])
@pytest.mark.parametrize("kind", FAULTS)
def test_it_is_so_whatever_goes_wrong(kind: FaultKind, story: Story) -> None:
    story = story.fault(kind, at_s=49, for_s=10, amount=2).fault(kind, at_s=150, for_s=10, amount=2)
    _, laws = well(story.fault(kind, at_s=199, for_s=10, amount=2))
    assert laws.suspended == laws.resumed > 0


@pytest.mark.parametrize("amount", [1, 2, 3])
def test_who_dies_between_the_writes_of_a_binding_and_its_policy_leaves_the_other_to_the_next(
    amount: int,
) -> None:
    """The first write holds it; of those that let it go on the first says until when it waits."""
    story = (
        TWO.queue("main", gpus=8)
        .submit("x", gpus=1, pods=4, kind="JobSet", runs_s=100, gang=True, at_s=1)
        .stop("main", policy="HoldAndDrain", at_s=50)
        .stop("main", policy="None", at_s=200)
        .fault("kill_after_write", at_s=49, for_s=30, amount=1)
        .fault("kill_after_write", at_s=199, for_s=30, amount=amount)
    )
    world, laws = well(story)
    assert (counts(laws), ended(world)) == ((1, 1, 0), ["x"])
    assert world.faults.counts["kill_after_write"] == (2 if amount < 3 else 1)


def broken(story: Story) -> set[str]:
    return {one.law for one in told(story)[1].broken}


def test_a_law_sees_that_its_pods_stay() -> None:
    apply = Member.apply

    def never_none(
        member: Member, template: Obj, replicas: int | None = None, completions: int | None = None
    ) -> None:
        apply(member, template, replicas or None, completions)

    with mock.patch.object(Member, "apply", never_none):
        assert "what stands still has no pods" in broken(DRAINED)


def test_a_law_sees_that_the_job_is_made_anew() -> None:
    apply = Member.apply

    def anew(
        member: Member, template: Obj, replicas: int | None = None, completions: int | None = None
    ) -> None:
        if replicas == 0:
            member.delete(owner_key(template))
        apply(member, template, replicas, completions)

    with mock.patch.object(Member, "apply", anew):
        assert "what it has done is not lost" in broken(DRAINED)


def test_a_law_sees_that_it_goes_on_elsewhere() -> None:
    admit = patches.admit

    def elsewhere(binding: Binding, record: object, places: object = ()) -> patches.Patch:
        return admit(binding, record, (Placed("b", 4),) if binding.suspended else places)  # type: ignore[arg-type]

    with mock.patch.object(patches, "admit", elsewhere):
        assert "it goes on where it stands" in broken(DISPLACED)


def test_a_law_sees_that_its_place_is_given_up_early() -> None:
    with mock.patch.object(suspending, "_called_for", _at_once):
        assert "it stands still for as long as was said" in broken(CROWDED)


def _at_once(cache: object, entry: object, now: object) -> Purpose | None:
    return Purpose.GIVE_UP


def test_a_law_sees_that_nothing_suspends_what_stands_still() -> None:
    with mock.patch.object(switching, "switched", _never):
        assert "what stands still has no pods" in broken(SET_DRAINED)


def test_a_law_sees_that_what_is_released_stays_suspended() -> None:
    switched = switching.switched

    def never_goes(cache: Cache, entry: Entry) -> Companion | None:
        companion = switched(cache, entry)
        return companion if companion is not None and companion.body is not None else None

    with (
        mock.patch.object(switching, "switched", never_goes),
        mock.patch.object(bodies, "switched", never_goes),
    ):
        assert "what is released is not suspended any more" in broken(SET_DRAINED)


def test_a_law_sees_that_what_suspends_it_goes_too_soon() -> None:
    """Once its pods are gone, say."""

    def has_pods(binding: Binding) -> bool:
        return binding.suspended is not None and binding.suspended.leaving > 0

    with (
        mock.patch.object(caching, "calls_for_policy", has_pods),
        mock.patch.object(switching, "calls_for_policy", has_pods),
    ):
        assert "what suspends it comes after the hold, and goes after the release" in broken(SET_DRAINED)


def test_a_law_sees_that_what_is_suspended_is_charged_nothing_before_its_pods_are_gone() -> None:
    with mock.patch.object(reading, "is_still", return_value=True):
        assert "quota is never exceeded by what we admitted" in broken(ROOMY)


def _never(cache: Cache, entry: Entry) -> Companion | None:
    return None
