"""In which flavor others are displaced, and when that goes before a start in another (flavorFungibility)."""

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, flavor, service_class
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import Hanging, comes, displaced, lines, settle

STOP, NEXT = "MayStopSearch", "TryNextFlavor"
DEFAULT: Obj = {}
STOPS = {"whenCanBorrow": STOP, "whenCanPreempt": STOP}
STOPS_AT_OWN = {"whenCanBorrow": NEXT, "whenCanPreempt": STOP}
LOOKS_ON = {"whenCanBorrow": NEXT, "whenCanPreempt": NEXT}
BORROWS_LAST = LOOKS_ON | {"preference": "PreemptionOverBorrowing"}
POLICIES = (DEFAULT, STOPS, STOPS_AT_OWN, LOOKS_ON, BORROWS_LAST)
ANYBODY = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}


class Flavors(Plane):
    """One cluster that is full of nothing, and flavors ``one`` and ``two`` of it, so that quota alone counts.

    Queue ``main`` owns ``own`` of each; ``lender``, its sibling, ``lent``.
    """

    def __init__(self, own: dict[str, int], lent: dict[str, int]) -> None:
        super().__init__({"m1": 100})
        self.own, self.lent = own, lent
        for name in ("one", "two"):
            self.feed(RESOURCE_FLAVORS, flavor(name, "m1"))
        for name, priority in (("low", 0), ("high", 10), ("top", 20)):
            self.feed(SERVICE_CLASSES, service_class(name, priority))
        self.feed(CLUSTER_QUEUES, cluster_queue("root", {}))
        self.feed(CLUSTER_QUEUES, cluster_queue("lender", lent, parent="root"))
        for name in ("one", "two"):
            # Through these the flavors are filled, whatever is free of the other one.
            self.feed(CLUSTER_QUEUES, cluster_queue(f"only-{name}", {name: 0}, parent="root"))
        self.states(DEFAULT)
        lines(self, main="main", **{"only-one": "only-one", "only-two": "only-two"})
        self.passes(1)

    def states(self, fungibility: Obj, preemption: Obj | None = None) -> None:
        """``main`` states so from now on."""
        policy = ANYBODY if preemption is None else preemption
        stated = cluster_queue(
            "main", self.own, parent="root", flavorFungibility=fungibility, preemption=policy
        )
        self.feed(CLUSTER_QUEUES, stated)
        self.passes(1)

    def runs(self, name: str, gpus: int, of: str = "low", queue: str = "main") -> None:
        comes(self, name, gpus, of, queue)
        assert not self.is_held(name), self.reason(name)
        self.place(name, m1=gpus)
        self.passes(1)

    def flavor_of(self, name: str) -> str:
        record = self.record(name)
        return "" if record is None else ",".join(record["flavors"]["nvidia.com/gpu"])


def urgent_of(made: Flavors, fungibility: Obj) -> tuple[str, list[str]]:
    """Where a workload of high priority starts, and who goes for it."""
    made.states(fungibility)
    comes(made, "urgent", 4, "high")
    made.passes(5)
    return made.flavor_of("urgent"), displaced(made)


def own_low() -> Flavors:
    """Of one, its own low priority; of two, what it owns is free."""
    made = Flavors({"one": 4, "two": 4}, {})
    made.runs("x1", 4)
    return made


def own_low_or_borrowing() -> Flavors:
    """Of one, its own low priority; of two, what it borrows is free."""
    made = Flavors({"one": 4, "two": 0}, {"two": 4})
    made.runs("x1", 4)
    return made


def borrowed_or_owned() -> Flavors:
    """Of one, what it borrows is free; of two, what it owns."""
    return Flavors({"one": 0, "two": 4}, {"one": 4})


def borrowing_or_own_low() -> Flavors:
    """Of one, what it borrows is free; of two, its own low priority."""
    made = Flavors({"one": 0, "two": 4}, {"one": 4})
    made.runs("x1", 4, queue="only-one")
    made.runs("x2", 4)
    made.delete("x1")
    made.passes(1)
    return made


def own_low_or_borrowers() -> Flavors:
    """Of one, its own low priority; of two, somebody else has borrowed what it owns."""
    made = Flavors({"one": 4, "two": 4}, {})
    made.runs("x1", 4)
    made.runs("b2", 4, queue="only-two")
    return made


def own_high() -> Flavors:
    """Of one, its own, as high in priority; of two, what it borrows is free."""
    made = Flavors({"one": 4, "two": 0}, {"two": 4})
    made.runs("x1", 4, "high")
    return made


def shared_or_own() -> Flavors:
    """Of one, somebody else has borrowed more than its share would be; of two, what it owns is free."""
    made = Flavors({"one": 0, "two": 4}, {"one": 8})
    made.runs("b1", 4, queue="only-one")
    made.runs("b2", 4, queue="only-one")
    return made


@pytest.mark.parametrize(
    ("stage", "found"),
    [
        (borrowed_or_owned, ("one", "one", "two", "two", "two")),
        (own_low, ("two", "one x1", "one x1", "two", "two")),
        (own_low_or_borrowing, ("two", "one x1", "one x1", "two", "one x1")),
        (borrowing_or_own_low, ("one", "one", "two x2", "one", "two x2")),
        (own_low_or_borrowers, ("two b2", "one x1", "one x1", "two b2", "two b2")),
        (own_high, ("two", "two", "two", "two", "two")),
        (shared_or_own, ("two", "one b2", "two", "two", "two")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("policy", range(len(POLICIES)), ids=["default", "stops", "at_own", "on", "last"])
def test_where_it_starts_and_who_goes(stage: object, found: tuple[str, ...], policy: int) -> None:
    assert callable(stage)
    where, goes = urgent_of(stage(), POLICIES[policy])
    assert " ".join((where, *goes)) == found[policy]


@pytest.mark.parametrize("policy", [STOPS, STOPS_AT_OWN, BORROWS_LAST])
@pytest.mark.parametrize("preemption", [{}, {"reclaimWithinCohort": "Any"}])
def test_what_may_displace_nobody_of_use_starts_where_there_is_room(policy: Obj, preemption: Obj) -> None:
    made = own_low_or_borrowing()
    made.states(policy, preemption)
    comes(made, "urgent", 4, "high")
    made.passes(5)
    assert (made.flavor_of("urgent"), displaced(made)) == ("two", [])


def test_each_of_many_alike_is_looked_at_and_starts_where_there_is_room_once_nobody_is_left() -> None:
    made = Flavors({"one": 8, "two": 40}, {})
    made.runs("x1", 4)
    made.runs("x2", 4)
    made.states(STOPS)
    for number in range(6):
        comes(made, f"u{number}", 4, "high")
    made.passes(20)
    started = [made.flavor_of(f"u{number}") for number in range(6)]
    assert (started, sorted(displaced(made))) == (["one"] * 2 + ["two"] * 4, ["x1", "x2"])


def waiting_for_one() -> Hanging:
    """``urgent`` waits for ``x1`` to go, whose write hangs, though there is room in the other flavor."""

    class _Hanging(Hanging, Flavors):
        pass

    made = _Hanging({"one": 4, "two": 8}, {})
    made.runs("x1", 4)
    made.states(STOPS)
    made.hangs = ("x1",)
    comes(made, "urgent", 4, "high")
    made.passes(5)
    assert made.is_held("urgent")
    return made


def test_while_others_go_for_it_it_starts_nowhere_else_and_holds_up_nobody() -> None:
    made = waiting_for_one()
    comes(made, "alike", 4, "high")
    comes(made, "low", 4)
    made.passes(3)
    # Those behind it find nobody to displace, and start where there is room.
    assert [made.is_held(name) for name in ("urgent", "alike", "low")] == [True, False, False]
    made.goes_on()
    settle(made)
    assert isinstance(made, Flavors)
    assert (made.flavor_of("urgent"), made.flavor_of("alike")) == ("one", "two")


def test_who_does_not_go_is_given_up_and_it_starts_where_there_is_room() -> None:
    made = waiting_for_one()
    made.passes(620, step_s=10)
    assert isinstance(made, Flavors)
    assert (made.flavor_of("urgent"), displaced(made)) == ("two", [])


def test_groups_displace_nobody_and_start_where_there_is_room() -> None:
    made = own_low()
    made.states(STOPS)
    said = {"fairway.dev/class": "high", "fairway.dev/group": "g", "fairway.dev/group-size": "2"}
    for name in ("g1", "g2"):
        made.submit(name, replicas=2, said=said)
    made.passes(5)
    assert (made.released()[:2], displaced(made)) == (["g1", "g2"], [])


# Where estimators know: a flavor is a cluster.


def in_clusters(needed: dict[str, tuple[str, ...]], silent: tuple[str, ...] = ()) -> Plane:
    """``x1`` fills m1, and m2 is free; by cluster, who has to go there for ``urgent``."""
    made = Plane({"m1": 4, "m2": 4}, rooms={})
    for name, priority in (("low", 0), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    made.rooms = {"m1": 4, "m2": 4}
    stated = cluster_queue("main", made.rooms, flavorFungibility=STOPS, preemption=ANYBODY)
    made.feed(CLUSTER_QUEUES, stated)
    made.passes(1)
    comes(made, "x1", 4)
    made.place("x1", m1=4)
    made.passes(10)
    made.rooms = {"m1": 0, "m2": 4}
    made.needed, made.silent = {"urgent": needed}, silent
    made.submit("urgent", replicas=4, said={"fairway.dev/class": "high"}, together=4)
    made.passes(5)
    return made


def test_whom_it_waits_for_in_the_first_flavor_is_for_that_cluster_to_say() -> None:
    made = in_clusters({"m1": ("x1",)})
    assert (displaced(made), made.is_held("urgent")) == (["x1"], True)
    made.rooms = {"m1": 4, "m2": 4}
    made.room_appears("m1")
    made.passes(5)
    assert list(made.clusters("urgent")) == ["m1:4"]


def test_where_the_cluster_says_that_nobody_s_end_would_help_it_starts_in_the_next_flavor() -> None:
    made = in_clusters({})
    assert (displaced(made), list(made.clusters("urgent"))) == ([], ["m2:4"])


def test_a_cluster_that_says_nothing_keeps_nobody_waiting() -> None:
    made = in_clusters({}, silent=("m1",))
    assert (displaced(made), list(made.clusters("urgent"))) == ([], ["m2:4"])


@pytest.mark.parametrize("dies", [False, True])
def test_what_others_went_for_is_where_it_starts_whoever_leads(*, dies: bool) -> None:
    made = in_clusters({"m1": ("x1",)})
    if dies:
        made.restart()
    made.passes(30)
    assert made.is_held("urgent")
    made.rooms = {"m1": 4, "m2": 4}
    made.room_appears("m1")
    made.passes(5)
    assert list(made.clusters("urgent")) == ["m1:4"]
