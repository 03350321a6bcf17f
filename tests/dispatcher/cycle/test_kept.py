"""What is kept from one cycle to the next changes no decision, nor do steps, taken to their end or not."""

from dataclasses import replace
from random import Random
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.api.cluster_queue import FlavorFungibility, FlavorPreference, SearchPolicy
from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.actions import Decision, class_key
from queue_dispatcher.cycle.decide import AdmissionCycles, decide
from queue_dispatcher.cycle.items import Alternative, Shape, probe_of, probe_through
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import queue_stopped
from queue_dispatcher.cycle.refused import Refused
from queue_dispatcher.cycle.reservation import Reservation, Reservations
from queue_dispatcher.cycle.sharing import Sharing, sharing
from queue_dispatcher.cycle.snapshot import Looks, Snapshot, Verdict
from queue_dispatcher.ledger.tree import QuotaNode
from tests.dispatcher.cycle.builders import (
    BACKFILL,
    BEST_EFFORT,
    STRICT,
    Fleet,
    admitted,
    bound,
    preplaced,
    probed,
    wherever,
)
from tests.dispatcher.ledger.builders import cell, charge, grow, owns, queue, root

QUEUES = ("q0", "q1", "q2", "q3", "alone")
UNLIMITED = 1_000_000
VERDICTS = (
    None,
    Verdict(0, reasons=("full",)),
    Verdict(0, reasons=("no such node",), never=True),
    Verdict(1, frozenset({"m1"})),
    Verdict(3, frozenset({"m1", "m2"})),
    Verdict(2, frozenset({"m3"})),
)


class Changing:
    """A small fleet, nearly full, in which anything may change; all by one seed."""

    cells: tuple[str, ...] = ("gpu",)
    answers: tuple[Verdict | None, ...] = VERDICTS

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.fleet = Fleet(*self.nodes())
        self.verdicts: dict[str, Verdict] = {}
        self.total: dict[str, int] = {}
        self.submitted = 0
        self.questions = ["p0", "p1", "p2"]

    def nodes(self) -> list[QuotaNode]:
        choice, some = self.rng.choice, self.rng.randrange
        nodes = [root("org", gpu=some(6), cpu=some(6)), queue("dept", "org", weight=choice((500, 1000)))]
        for name in QUEUES[:-1]:
            own = owns(some(5), borrows=choice((None, None, 2)), lends=choice((None, None, 1)))
            nodes.append(
                queue(name, choice(("org", "dept")), weight=choice((1000, 3000)), gpu=own, cpu=some(3))
            )
        return [*nodes, root("alone", gpu=some(5), cpu=2)]

    def event(self) -> None:
        rng, fleet = self.rng, self.fleet
        waiting = [(state, item) for state in fleet.queues.values() for item in state.pending]
        match rng.choices(
            ("submit", "remove", "empty", "finish", "configure", "capacity", "verdict", "time", "quotas"),
            (10, 2, 2, 8, 2, 2, 4, 2, 0.4),
        )[0]:
            case "submit":
                self.submit()
            case "remove" if waiting:
                state, item = rng.choice(waiting)
                state.pending.remove(item.id)
            case "empty" if fleet.queues:
                # Where nothing waits there is no queue; the next one is another.
                state = rng.choice(list(fleet.queues.values()))
                for item in list(state.pending):
                    state.pending.remove(item.id)
                fleet.queues[state.name] = replace(state, pending=PendingQueue(state.name))
                for _ in range(rng.randrange(3)):
                    self.submit(state.name)
            case "finish" if fleet.running:
                fleet.finish(rng.choice(sorted(fleet.running)))
            case "configure":
                name = rng.choice(QUEUES)
                fleet.configure(
                    name,
                    strategy=rng.choice((STRICT, BEST_EFFORT, BACKFILL)),
                    reservation=ReservationPolicy(rng.choice((0, 4, 9)), 12, 30, rng.choice((1, 2))),
                    ageing=rng.choice((NO_AGEING, NO_AGEING, Ageing(7, 2))),
                    priority=rng.choice((0, 0, 0, 1)),
                    reclaims=rng.random() < 0.2,
                    stopped=queue_stopped(name, "Hold") if rng.random() < 0.2 else None,
                )
            case "capacity":
                of = rng.choice(self.cells)
                self.total.pop(of, None)
                if rng.random() < 0.7:
                    self.total[of] = rng.randrange(3, 14)
            case "verdict":
                probe, verdict = rng.choice(self.questions), rng.choice(self.answers)
                self.verdicts.pop(probe, None)
                if verdict is not None:
                    self.verdicts[probe] = verdict
            case "time":
                fleet.now_ms += rng.choice((1, 5, 20, -3))
            case "quotas":
                fleet.ledger = fleet.ledger.moved_to(grow(*self.nodes()))

    def submit(self, queue: str = "") -> None:
        rng, fleet = self.rng, self.fleet
        self.submitted += 1
        gpu = rng.choice((0, 1, 1, 2, 3, 5))
        name = queue or rng.choice(QUEUES)
        fleet.submit(
            name,
            f"w{self.submitted}",
            self.way(name),
            at=fleet.now_ms - rng.randrange(9),
            priority=rng.choice((0, 0, 1)),
            due=rng.choice((0, 0, 0, fleet.now_ms + 6)),
            members=rng.choice((1, 1, 3)),
            ageing=rng.choice((None, None, None, Ageing(3, 1))),
            runtime=rng.choice((None, 5, 20)),
            max_wait=rng.choice((None, None, 6)),
            probe=rng.choice(("", "", "p0", "p1", "p2")),
            line=self.line(),
            gpu=gpu,
            cpu=rng.choice((0, 1)) if gpu else 1,
        )

    def way(self, queue: str) -> Shape | None:
        """The shape of what is submitted; None for one by its amounts."""
        return None

    def line(self) -> str:
        """The LocalQueue of what is submitted, where those share the queue."""
        return ""

    def snapshot(self) -> Snapshot:
        totals = self.fleet.ledger.totals
        envelope = {cell(name): total - totals.get(cell(name), 0) for name, total in self.total.items()}
        tokens, preplaced_tokens = (self.rng.choice((0, 1, 1, 2, 5, UNLIMITED)) for _ in range(2))
        made = self.fleet.snapshot(
            tokens=tokens,
            preplaced_tokens=preplaced_tokens,
            verdicts=dict(self.verdicts),
            max_probes=self.rng.choice((1, 16)),
        )
        return replace(made, envelope=envelope)


class Stating(Changing):
    """The same, where most releases state where to: of flavors one and two, in clusters of their own."""

    cells = ("gpu", "one_gpu", "two_gpu", "one_cpu")
    answers = (
        *VERDICTS,
        Verdict(1, frozenset("b"), rooms=(("b", 1),)),
        Verdict(5, frozenset("a"), rooms=(("a", 9), ("b", 1)), per=2),
    )

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self._shapes: dict[tuple[str, int, int, str], Shape] = {}

    def nodes(self) -> list[QuotaNode]:
        some, made = self.rng.randrange, super().nodes()
        more = {cell(name): owns(some(7)) for name in self.cells[1:]}
        return [replace(node, quotas={**node.quotas, **more}) for node in made]

    def way(self, queue: str) -> Shape | None:
        rng = self.rng
        form, amount, probe = rng.randrange(7), rng.choice((1, 1, 2, 4)), f"p{rng.randrange(3)}"
        if not form:
            return None
        key = (queue, form, amount, probe)
        if key not in self._shapes:
            self._shapes[key] = made = preplaced(
                *self._parts(form, amount), avoids_borrowing=rng.random() < 0.4, probe=probe
            )
            chosen = [one for options in made.parts for one in options]
            self.questions += sorted({probe_of(made, one) for one in chosen} - {*self.questions})
        return self._shapes[key]

    def _parts(self, form: int, amount: int) -> list[tuple[Alternative, ...]]:
        one, two = bound("a", one_gpu=amount), bound("b", two_gpu=amount)
        near, all_over = bound("ab", one_cpu=1), Alternative((), charge(cpu=1))
        flavors = (one, two, wherever(one, two))
        forms: dict[int, list[tuple[Alternative, ...]]] = {
            1: [flavors],
            2: [(one, Alternative((), charge(gpu=amount)))],
            3: [(*flavors[:2], wherever(one, two, clusters="ab"))],
            4: [flavors, (all_over,)],
            5: [flavors, (near, wherever(near, clusters="ab"))],
            6: [flavors, (bound("b", two_gpu=1), bound("a", one_gpu=1)), (all_over,)],
        }
        return forms[form]


class Looking(Stating):
    """The same, of queues most of which put displacing others in some flavor before a start in another."""

    POLICIES = (
        FlavorFungibility(SearchPolicy.MAY_STOP_SEARCH, SearchPolicy.MAY_STOP_SEARCH),
        FlavorFungibility(SearchPolicy.TRY_NEXT_FLAVOR, SearchPolicy.MAY_STOP_SEARCH),
        FlavorFungibility(
            SearchPolicy.TRY_NEXT_FLAVOR,
            SearchPolicy.TRY_NEXT_FLAVOR,
            FlavorPreference.PREEMPTION_OVER_BORROWING,
        ),
    )

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self._looks: dict[str, Looks | None] = {}

    def snapshot(self) -> Snapshot:
        made, rng = super().snapshot(), self.rng
        for name, state in made.queues.items():
            # Mostly nothing comes of it, or somebody is found just now.
            if name not in self._looks or rng.random() < 0.3:
                keys = [class_key(item) for item in state.pending if rng.random() < 0.5]
                claims = [item.id for item in state.pending if rng.random() < 0.1]
                looks = Looks(rng.choice(self.POLICIES), frozenset(keys), frozenset(claims))
                self._looks[name] = looks if rng.random() < 0.9 else None
        queues = {name: replace(state, looks=self._looks[name]) for name, state in made.queues.items()}
        return replace(made, queues=queues)


class Shared(Changing):
    """The same, of queues most of which LocalQueues share, and of which others are displaced for some."""

    LINES = ("one", "two", "three")

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self._sharing: dict[str, Sharing | None] = {}

    def snapshot(self) -> Snapshot:
        made, rng = super().snapshot(), self.rng
        for name in made.queues:
            if name not in self._sharing or rng.random() < 0.3:
                # What was used counts the less the longer that was ago.
                shares = {line: rng.choice((0, 5, 5, 20, 90)) for line in self.LINES}
                self._sharing[name] = sharing(shares, {}, {cell("gpu"): 1}) if rng.random() < 0.8 else None
        queues = {name: replace(state, sharing=self._sharing[name]) for name, state in made.queues.items()}
        held = [one.item.id for one in made.reservations.made]
        waiting = [item.id for state in queues.values() for item in state.pending]
        claims = [
            one for one in dict.fromkeys((*held, *waiting)) if rng.random() < (0.4 if one in held else 0.02)
        ]
        return replace(made, queues=queues, claims=dict.fromkeys(claims, self.fleet.now_ms + 40))

    def line(self) -> str:
        return self.rng.choice(self.LINES)


class Holding(Changing):
    """The same, where reservations come and go by themselves, as when another process takes over, and
    estimators keep room for them.
    """

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self._seen: dict[str, Reservation] = {}

    def snapshot(self) -> Snapshot:
        made, rng = super().snapshot(), self.rng
        self._seen |= {one.item.id: one for one in made.reservations.made}
        held = made.reservations.made
        if rng.random() < 0.5:
            held = tuple(one for one in self._seen.values() if rng.random() < 0.1)
        held = tuple(replace(one, cluster=rng.choice(("", "m1"))) for one in held)
        names = {one.item.id for one in held if one.cluster and rng.random() < 0.8}
        through = {probe_through(probe, names): rng.choice(self.answers) for probe in ("p0", "p1", "p2")}
        verdicts = {probe: said for probe, said in through.items() if said is not None} if names else {}
        reservations = Reservations(held, made.reservations.given_up)
        return replace(made, reservations=reservations, verdicts={**made.verdicts, **verdicts})


def told(decision: Decision) -> object:
    """All that a decision says."""
    waits = list(decision.waits.items())
    for line in decision.preemptors.lines:
        assert line.first <= min((one.rank for one in line.read()), default=line.first)
    preemptors = [(one.item, tuple(one.ways), one.starts_in) for one in decision.preemptors]
    actions, due_ms, reservations = decision.actions, decision.next_due_ms, decision.reservations
    return (actions, waits, due_ms, decision.window_full, decision.turns, reservations, preemptors)


def all_looked_into(snapshot: Snapshot, now_ms: int) -> Decision:
    """From scratch, and no line is left unread for what is said of it."""
    with mock.patch.object(Refused, "_outlined", return_value=None):
        return decide(snapshot, now_ms)


@pytest.mark.parametrize("kind", [Changing, Stating, Looking, Shared, Holding])
@pytest.mark.parametrize("seed", range(30))
def test_kept_decisions_are_those_from_scratch(seed: int, kind: type[Changing]) -> None:
    world, cycles = kind(Random(seed)), AdmissionCycles()
    for _ in range(60):
        for _ in range(world.rng.randrange(4)):
            world.event()
        snapshot = world.snapshot()
        if world.rng.random() < 0.1:
            begun = cycles.steps(snapshot, world.fleet.now_ms)
            for _ in range(world.rng.randrange(1, 20)):
                next(begun, None)
        kept, scratch = (
            cycles.decide(snapshot, world.fleet.now_ms),
            all_looked_into(snapshot, world.fleet.now_ms),
        )
        assert told(kept) == told(scratch)
        if world.rng.random() < 0.7:
            world.fleet.carry_out(kept)


@pytest.mark.parametrize("kind", [Changing, Stating, Looking, Shared, Holding])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds=st.lists(st.integers(0, 999), min_size=1, max_size=30), rng=st.randoms(use_true_random=False))
def test_whatever_the_order_of_events(kind: type[Changing], seeds: list[int], rng: Random) -> None:
    """As above, with events that can be left out, for a failure that people can read."""
    world, cycles = kind(rng), AdmissionCycles()
    for seed in seeds:
        world.rng = Random(seed)
        world.event()
        snapshot = world.snapshot()
        kept, scratch = (
            cycles.decide(snapshot, world.fleet.now_ms),
            all_looked_into(snapshot, world.fleet.now_ms),
        )
        assert told(kept) == told(scratch)
        world.fleet.carry_out(kept)


def test_the_next_decision_is_due_when_one_that_is_refused_may_get_a_reservation() -> None:
    fleet, cycles = Fleet(*(root(name, gpu=4) for name in "abc"), strategy=BACKFILL), AdmissionCycles()
    for name, after_ms in (("a", 10), ("b", 30), ("c", 20)):
        policy = ReservationPolicy(after_ms=after_ms, drain_after_ms=100, hold_timeout_ms=200)
        fleet.configure(name, reservation=policy)
        fleet.submit(name, f"{name}1", gpu=4)
        fleet.submit(name, f"{name}2", gpu=4)
    fleet.carry_out(cycles.decide(fleet.snapshot(), 0))
    due, reserved = [], []
    for now_ms in (1, 10, 30):
        decision = cycles.decide(fleet.snapshot(), now_ms)
        fleet.carry_out(decision)
        due.append(decision.next_due_ms)
        reserved.append([one.item.id for one in decision.reservations.made])
        # Nothing waits in it any more.
        fleet.queues.pop("c", None)
    # From then on each reservation has times of its own.
    assert (due, reserved) == ([10, 30, 100], [[], ["a2"], ["a2", "b2"]])


def test_a_flavor_that_can_never_take_it_any_more_is_left_out() -> None:
    fleet, cycles = Fleet(root("q", one_gpu=8, two_gpu=8)), AdmissionCycles()
    fleet.submit("q", "runs", one_gpu=6, two_gpu=6)
    fleet.cycle()
    fleet.submit("q", "waits", preplaced((wherever(bound("a", one_gpu=4), bound("b", two_gpu=4)),), probe=""))
    assert not admitted(cycles.decide(fleet.snapshot(free={"one_gpu": 2, "two_gpu": 2}), 1))
    fleet.finish("runs")
    decision = cycles.decide(fleet.snapshot(free={"one_gpu": 2, "two_gpu": 8}), 2)
    assert [action.alternative.charge for action in decision.actions] == [charge(two_gpu=4)]


def test_the_least_that_was_refused_is_found_when_there_is_room_for_it() -> None:
    fleet, cycles = Fleet(root("q", gpu=8, cpu=8)), AdmissionCycles()
    fleet.submit("q", "ends", gpu=1)
    fleet.submit("q", "runs", gpu=5, cpu=4)
    assert set(fleet.cycle()) == {"ends", "runs"}
    fleet.submit("q", "three", gpu=3, priority=2)
    fleet.submit("q", "five", gpu=5, priority=1)
    fleet.submit("q", "other", cpu=5)
    assert not fleet.carry_out(cycles.decide(fleet.snapshot(), 1))
    fleet.finish("ends")
    assert fleet.carry_out(cycles.decide(fleet.snapshot(), 2)) == ["three"]


def test_who_was_refused_is_looked_at_anew_also_once_the_one_behind_it_was_kept() -> None:
    fleet, cycles = Fleet(root("q", gpu=9), root("elsewhere", gpu=9)), AdmissionCycles()
    fleet.submit("q", "runs", gpu=5)
    fleet.cycle()
    fleet.submit("q", "five", gpu=5, priority=1)
    fleet.submit("q", "asked", gpu=2, probe="p")
    assert probed(cycles.decide(fleet.snapshot(), 1)) == ["asked"]
    # As far as is plain that could be of its own.
    fleet.ledger.charge("elsewhere", charge(gpu=3))
    assert probed(cycles.decide(fleet.snapshot(), 2)) == ["asked"]
    fleet.finish("runs")
    assert admitted(cycles.decide(fleet.snapshot(), 3)) == ["five"]
