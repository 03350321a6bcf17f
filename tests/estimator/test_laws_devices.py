"""Shared devices, judged by trying everything: HAMi's rules and KAI's, written down a second time, plainly.

The oracle knows nothing of claims, shares or columns. It places one pod at a time on every choice of devices
there is, which only small nodes allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product
from random import Random
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.answer import Answer
from estimator.capacity.request import Component
from estimator.cluster import columns as columns_module
from estimator.cluster.arrangement import Arrangement
from estimator.cluster.columns import NodeColumns
from estimator.cluster.device_use import NUMBERS
from estimator.cluster.devices import DeviceColumns
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from fairway.accelerators.devices import DeviceFilter
from tests.builders import (
    NodeBuilder,
    PodBuilder,
    Quantity,
    Thing,
    cluster,
    delete,
    node,
    pod,
    replicas_of,
    sets_of,
    shape,
    typed,
    upsert,
)
from tests.estimator.agents import agent
from tests.estimator.fleets import seeded
from tests.estimator.sharing import SHARINGS, Entry, Group, fraction, in_9_fields, in_json, kai_node, sharer

CI = settings(max_examples=150, derandomize=True, deadline=None)

# --- HAMi ---------------------------------------------------------------------------------------------------

GPU, MEMORY, PERCENT, CORES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)


@dataclass(frozen=True, order=True)
class Card:
    """One device as HAMi sees it: what it has, and what is used of it."""

    numa: int
    memory: int
    slots: int
    healthy: bool
    used_memory: int = 0
    used_cores: int = 0
    used: int = 0

    def given(self, memory: int, cores: int) -> Card:
        return replace(
            self,
            used_memory=self.used_memory + memory,
            used_cores=self.used_cores + cores,
            used=self.used + 1,
        )


@dataclass(frozen=True)
class Wish:
    """What one container asks for; None: not said."""

    count: int
    memory: int | None = None
    percent: int | None = None
    cores: int | None = None

    @property
    def requests(self) -> dict[str, int]:
        said = {GPU: self.count, MEMORY: self.memory, PERCENT: self.percent, CORES: self.cores}
        return {name: amount for name, amount in said.items() if amount is not None}

    def memory_on(self, card: Card) -> int:
        if self.memory is not None:
            return self.memory
        return card.memory * (100 if self.percent is None else self.percent) // 100

    @property
    def cores_of_each(self) -> int:
        if self.cores is not None:
            return self.cores
        wants_all = self.percent == 100 if self.percent is not None else self.memory is None
        return 100 if wants_all else 0

    def fits(self, card: Card, alone: bool) -> bool:
        cores = self.cores_of_each
        return (
            card.healthy
            and card.used < card.slots
            and card.memory - card.used_memory >= self.memory_on(card)
            and 100 - card.used_cores >= cores
            and not (cores == 0 and card.used_cores >= 100)
            and not ((alone or cores == 100) and card.used > 0)
        )


Cards = tuple[Card, ...]


@dataclass(frozen=True)
class Wanted:
    """A pod that HAMi is to place."""

    containers: tuple[Wish, ...]
    alone: bool = False
    one_numa: bool = False

    @property
    def shape(self) -> PodShape:
        total: dict[str, int] = {}
        for name, amount in ((n, a) for wish in self.containers for n, a in wish.requests.items()):
            total[name] = total.get(name, 0) + amount
        annotations = {"hami.io/gpu-scheduler-policy": "mutex"} if self.alone else {}
        if self.one_numa:
            annotations["nvidia.com/numa-bind"] = "true"
        return replace(
            shape(dict[str, Quantity](total)),
            containers=tuple(tuple(wish.requests.items()) for wish in self.containers),
            annotations=tuple(annotations.items()),
        )

    @property
    def gpus(self) -> int:
        return sum(wish.count for wish in self.containers)

    def placed(self, cards: Cards) -> Iterator[Cards]:
        """The devices after one such pod, for each way to place it."""
        ways = {cards}
        for wish in self.containers:
            ways = {after for way in ways for after in self._given(wish, way)}
        yield from ways

    def _given(self, wish: Wish, cards: Cards) -> Iterator[Cards]:
        able = [index for index, card in enumerate(cards) if wish.fits(card, self.alone)]
        for chosen in combinations(able, wish.count):
            if self.one_numa and len({cards[index].numa for index in chosen}) > 1:
                continue
            after = list(cards)
            for index in chosen:
                after[index] = cards[index].given(wish.memory_on(cards[index]), wish.cores_of_each)
            yield tuple(sorted(after))


@dataclass(frozen=True)
class Host:
    """A node of HAMi's and the pods on it: for each of them (device, memory, cores) of its containers."""

    name: str
    cards: Cards
    advertised: int
    pods: tuple[tuple[tuple[int, int, int], ...], ...]
    in_text: bool

    @property
    def things(self) -> list[NodeBuilder | PodBuilder]:
        entries = [
            Entry(f"{self.name}-{i}", c.memory, "NVIDIA A10", c.slots, 100, i, c.numa, c.healthy)
            for i, c in enumerate(self.cards)
        ]
        form = in_9_fields if self.in_text else in_json
        register = {"hami.io/node-nvidia-register": form(entries)}
        built = node(self.name).gpus(self.advertised).annotated(register)
        return [built, *(self._pod(number, uses) for number, uses in enumerate(self.pods))]

    def _pod(self, number: int, uses: tuple[tuple[int, int, int], ...]) -> PodBuilder:
        given = "".join(f"{self.name}-{device},NVIDIA,{memory},{cores}:;" for device, memory, cores in uses)
        built = pod(f"{self.name}-p{number}").on(self.name).requests(gpu=len(uses))
        return built.annotated({"hami.io/vgpu-devices-allocated": given})

    @property
    def now(self) -> Cards:
        """The devices with what the pods use of them; what they say of others is nothing."""
        cards = list(self.cards)
        for device, memory, cores in (use for uses in self.pods for use in uses):
            if device < len(cards):
                cards[device] = cards[device].given(memory, cores)
        return tuple(sorted(cards))

    @property
    def gpus_free(self) -> int:
        return max(0, self.advertised - sum(len(uses) for uses in self.pods))


def most_pods(host: Host, wanted: Wanted) -> int:
    """The most pods the node takes, by trying every choice of devices."""

    @cache
    def best(cards: Cards, gpus: int) -> int:
        if gpus < wanted.gpus:
            return 0
        return max((1 + best(after, gpus - wanted.gpus) for after in wanted.placed(cards)), default=0)

    return best(host.now, host.gpus_free)


Fleet = tuple[tuple[Cards, int], ...]
"""Of each node the devices, and how many more are free by what kubelet advertises."""


def most_sets(hosts: list[Host], pods: list[Wanted]) -> int:
    """The most sets of one pod each, by trying every choice of nodes and devices."""

    @cache
    def best(state: Fleet) -> int:
        found: set[Fleet] = set()
        # A pod that asks for no cores fits before one that takes all, and not after it.
        for order in permutations(pods):
            ways = {state}
            for wanted in order:
                ways = {after for way in ways for after in _somewhere(way, wanted)}
            found |= ways
        return max((1 + best(after) for after in found), default=0)

    return best(tuple(sorted((host.now, host.gpus_free) for host in hosts)))


def _somewhere(state: Fleet, wanted: Wanted) -> Iterator[Fleet]:
    for index, (cards, gpus) in enumerate(state):
        if gpus >= wanted.gpus:
            for after in wanted.placed(cards):
                others = (*state[:index], *state[index + 1 :])
                yield tuple(sorted((*others, (after, gpus - wanted.gpus))))


def a_host(name: str, rng: Random, cards: int = 3) -> Host:
    devices = tuple(
        Card(rng.randint(0, 1), rng.choice([0, 3, 6, 6, 8]), rng.randint(1, 4), rng.random() < 0.9)
        for _ in range(rng.randint(0, cards))
    )
    slots = sum(device.slots for device in devices)
    pods = tuple(
        tuple(
            (rng.randint(0, 3), rng.choice([0, 1, 2, 3, 9]), rng.choice([0, 0, 30, 60, 100]))
            for _ in range(rng.choice([1, 1, 2]))
        )
        for _ in range(rng.choice([0, 0, 1, 2]))
    )
    return Host(name, devices, rng.choice([slots, slots, 2 * slots, 3, 1]), pods, rng.random() < 0.5)


def a_wish(rng: Random, most: int = 3) -> Wish:
    memory = rng.choice([None, 1, 1, 2, 3, 4, 6])
    percent = rng.choice([None, None, 20, 50, 100]) if memory is None else None
    return Wish(rng.randint(1, most), memory, percent, rng.choice([None, None, 0, 30, 60, 100]))


def a_pod_of_one(rng: Random) -> Wanted:
    return Wanted((a_wish(rng),), alone=rng.random() < 0.1, one_numa=rng.random() < 0.3)


def a_pod_of_two(rng: Random) -> Wanted:
    wishes = (a_wish(rng, 2), a_wish(rng, 2))
    return Wanted(wishes, alone=rng.random() < 0.1, one_numa=rng.random() < 0.2)


def asked(hosts: list[Host], wanted: Wanted) -> Answer:
    mirror = cluster(*(thing for host in hosts for thing in host.things), report=lambda *_: None)
    return replicas_of(mirror, wanted.shape)


def hosts_of(count: int, cards: int = 3) -> st.SearchStrategy[list[Host]]:
    return seeded(lambda rng: [a_host(f"n{number}", rng, cards) for number in range(count)])


@CI
@given(hosts_of(3), seeded(a_pod_of_one))
def test_pods_of_one_container_are_counted_exactly(hosts: list[Host], wanted: Wanted) -> None:
    answer = asked(hosts, wanted)
    assert (answer.value, answer.proven) == (sum(most_pods(host, wanted) for host in hosts), True)


@CI
@given(hosts_of(3), seeded(lambda rng: a_wish(rng, 2)), st.integers(2, 3))
def test_pods_whose_containers_ask_alike_are_counted_exactly(
    hosts: list[Host], wish: Wish, containers: int
) -> None:
    wanted = Wanted((wish,) * containers)
    answer = asked(hosts, wanted)
    assert (answer.value, answer.proven) == (sum(most_pods(host, wanted) for host in hosts), True)


@CI
@given(hosts_of(2), seeded(a_pod_of_two))
def test_pods_of_two_containers_are_never_promised_too_often_nor_bounded_too_low(
    hosts: list[Host], wanted: Wanted
) -> None:
    answer = asked(hosts, wanted)
    truth = sum(most_pods(host, wanted) for host in hosts)
    assert answer.value <= truth <= answer.upper_bound
    assert answer.value == truth or not answer.proven
    assert (answer.value > 0) == (truth > 0) or len(set(wanted.containers)) > 1


@settings(CI, max_examples=100)
@given(hosts_of(2, cards=2), seeded(lambda rng: [a_pod_of_one(rng), a_pod_of_one(rng)]))
def test_sets_of_two_pods_are_never_promised_too_often_nor_bounded_too_low(
    hosts: list[Host], pods: list[Wanted]
) -> None:
    mirror = cluster(*(thing for host in hosts for thing in host.things), report=lambda *_: None)
    parts = [Component(f"c{number}", 1, wanted.shape) for number, wanted in enumerate(pods)]
    answer = sets_of(mirror, parts).answer
    truth = most_sets(hosts, pods)
    assert answer.value <= truth <= answer.upper_bound
    assert answer.value == truth or not answer.proven


# --- KAI ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """What each pod asks of each of ``devices`` GPUs: hundredths of it, or MiB."""

    devices: int
    percent: int = 0
    mib: int = 0

    @property
    def annotations(self) -> dict[str, str]:
        said = fraction(f"{self.percent / 100}") if self.percent else {"gpu-memory": str(self.mib)}
        return said if self.devices == 1 else {**said, "gpu-fraction-num-devices": str(self.devices)}

    def of(self, memory: int) -> int:
        return self.mib or memory * self.percent // 100


@dataclass(frozen=True)
class KaiHost:
    """A node of KAI's: its GPUs, the shares on each that is shared, and how many pods it takes."""

    name: str
    gpus: int
    label: int | None
    groups: tuple[tuple[Share, ...], ...]
    more_pods: int

    @property
    def memory(self) -> int:
        return 100 if self.label is None else self.label // 100 * 100

    @property
    def things(self) -> list[NodeBuilder | PodBuilder]:
        groups = [
            Group(f"{self.name}-g{number}", self.name, tuple(share.annotations for share in shares))
            for number, shares in enumerate(self.groups)
        ]
        pods = [thing for group in groups for thing in group.pods]
        return [kai_node(self.name, self.gpus, self.label).pods(len(pods) + self.more_pods), *pods]

    @property
    def now(self) -> KaiState:
        free = (max(0, self.memory - sum(s.of(self.memory) for s in shares)) for shares in self.groups)
        return tuple(sorted(free)), max(0, self.gpus - len(self.groups)), self.more_pods

    def placed(self, state: KaiState, share: Share | None) -> Iterator[KaiState]:
        """The node after one such pod, for each way to place it; without a share it wants a whole GPU."""
        free, whole, slots = state
        if share is None:
            if whole and slots:
                yield free, whole - 1, slots - 1
            return
        need = share.of(self.memory)
        for opened in range(share.devices + 1):
            # The pod that holds a new GPU needs room for itself.
            if opened > whole or 1 + opened > slots or (opened and need > self.memory):
                continue
            able = [index for index, mib in enumerate(free) if mib >= need]
            for chosen in combinations(able, share.devices - opened):
                after = [mib - need * (index in chosen) for index, mib in enumerate(free)]
                after += [self.memory - need] * opened
                yield tuple(sorted(after)), whole - opened, slots - 1 - opened

    def most_pods(self, share: Share) -> int:
        """The most pods that fit, by trying every choice of shared and of new GPUs."""

        @cache
        def best(state: KaiState) -> int:
            return max((1 + best(after) for after in self.placed(state, share)), default=0)

        return best(self.now)


KaiState = tuple[tuple[int, ...], int, int]
"""MiB free on each shared GPU, whole GPUs free, pods that still fit."""


def most_kai_sets(hosts: list[KaiHost], pods: list[Share | None]) -> int:
    """The most sets of one pod each, by trying every choice of nodes and GPUs."""

    def somewhere(state: tuple[KaiState, ...], share: Share | None) -> Iterator[tuple[KaiState, ...]]:
        for index, host in enumerate(hosts):
            for after in host.placed(state[index], share):
                yield (*state[:index], after, *state[index + 1 :])

    @cache
    def best(state: tuple[KaiState, ...]) -> int:
        ways = {state}
        for share in pods:
            ways = {after for way in ways for after in somewhere(way, share)}
        return max((1 + best(after) for after in ways), default=0)

    return best(tuple(host.now for host in hosts))


def a_kai_host(name: str, rng: Random) -> KaiHost:
    label = rng.choice([None, 159, 81559, 1099])
    memory = 100 if label is None else label // 100 * 100
    groups = tuple(
        tuple(a_share(rng, memory) for _ in range(rng.randint(1, 2))) for _ in range(rng.randint(0, 2))
    )
    return KaiHost(name, rng.randint(1, 4), label, groups, rng.choice([0, 1, 3, 4, 7]))


def a_share(rng: Random, memory: int) -> Share:
    if rng.random() < 0.5:
        return Share(1, percent=rng.choice([20, 25, 33, 50, 66, 95]))
    return Share(1, mib=rng.choice([memory // 3, memory // 2, memory, 2 * memory]))


@CI
@given(
    seeded(lambda rng: [a_kai_host(f"n{number}", rng) for number in range(2)]),
    seeded(lambda rng: replace(a_share(rng, 1000), devices=rng.choice([1, 1, 2, 3]))),
)
def test_fractions_are_counted_exactly(hosts: list[KaiHost], share: Share) -> None:
    mirror = cluster(*(thing for host in hosts for thing in host.things))
    answer = replicas_of(mirror, PodShape(annotations=tuple(share.annotations.items())))
    assert (answer.value, answer.proven) == (sum(host.most_pods(share) for host in hosts), True)


def a_kai_set(rng: Random) -> list[Share | None]:
    """Two pods, the second of which may want a whole GPU."""
    shares = (replace(a_share(rng, 1000), devices=rng.choice([1, 1, 2])) for _ in range(2))
    first, second = shares
    return [first, rng.choice([None, second])]


@settings(CI, max_examples=150)
@given(seeded(lambda rng: [a_kai_host(f"n{number}", rng) for number in range(2)]), seeded(a_kai_set))
def test_sets_of_fractions_and_whole_gpus_are_never_promised_too_often_nor_bounded_too_low(
    hosts: list[KaiHost], pods: list[Share | None]
) -> None:
    mirror = cluster(*(thing for host in hosts for thing in host.things))
    shapes = [
        PodShape(annotations=tuple(share.annotations.items())) if share else shape(gpu=1) for share in pods
    ]
    answer = sets_of(mirror, [Component(f"c{n}", 1, asked) for n, asked in enumerate(shapes)]).answer
    truth = most_kai_sets(hosts, pods)
    assert answer.value <= truth <= answer.upper_bound
    assert answer.value == truth or not answer.proven


# --- the mirror ---------------------------------------------------------------------------------------------

NAMES = ("n0", "n1", "n2")
FORMS = tuple(SHARINGS.values())


@dataclass(frozen=True)
class Event:
    """Something the API server tells; what it says is gone may never have been there."""

    thing: Thing
    gone: bool
    looked_at: bool


def a_thing(rng: Random) -> Thing:
    # Few schemes at a time, so that pods and nodes meet.
    sharing = FORMS[(rng.randint(0, 2) + 20 * rng.randint(0, 2)) % len(FORMS)]
    name = rng.choice(NAMES)
    kinds = ["node", "node", "plain node", "KAI node", "pod", "pod", "pod", "KAI pod", "holder", "agent"]
    match rng.choice(kinds):
        case "agent":
            found = agent(name).gpus(rng.randint(1, 3))
            for number in range(len(found.devices)):
                found = found.having(number, id=f"{name}-device-{number}")
                if rng.random() < 0.5:
                    holders = rng.sample([f"default/p{one}" for one in range(6)], 2)
                    found = found.bad(number).held(number, *holders)
            return found
        case "node":
            built = sharing.node(name, rng.randint(1, 3), {rng.randint(0, 4)})
            return built.gpus(4) if rng.random() < 0.3 else built
        case "plain node":
            return node(name).cpu(8)
        case "KAI node":
            return kai_node(name, rng.randint(0, 3), rng.choice([None, 1000, 81559]))
        case "pod":
            built_pod = sharing.pod(f"p{rng.randint(0, 5)}", rng.choice([*NAMES, "ghost"]), rng.randint(0, 3))
            return built_pod.phase("Succeeded") if rng.random() < 0.1 else built_pod
        case "holder":
            return Group(f"g{rng.randint(0, 1)}", name).holder
        case _:
            said = rng.choice([fraction("0.5"), fraction("0.333"), {"gpu-memory": "70"}, fraction("?")])
            return sharer(f"p{rng.randint(0, 5)}", name, said, *rng.choice([("g0",), ("g1",), ("g0", "g1")]))


EVENTS = st.lists(
    seeded(lambda rng: Event(a_thing(rng), gone=rng.random() < 0.3, looked_at=rng.random() < 0.5)),
    min_size=5,
    max_size=30,
)


def all_of(columns: NodeColumns) -> dict[str, object]:
    """All that device columns tell, by names rather than by rows."""
    return {table.scheme.name: _told(columns, table) for table in columns.devices}


def _told(columns: NodeColumns, table: DeviceColumns) -> object:
    names = [row.name if row else "" for row in columns.rows]
    on_nodes = sorted(
        (names[row], str(device), *(int(table.number(name)[index]) for name in NUMBERS))
        for index, (row, device) in enumerate(zip(table.node.tolist(), table.devices, strict=True))
        if row >= 0
    )
    rows = len(names)
    participants = sorted(name for name, takes in zip(names, table.participates(rows), strict=True) if takes)
    opened = sorted(zip(names, table.new_memory(rows).tolist(), strict=True))
    vacant = sum(int(table.number(name)[table.node < 0].sum()) for name in NUMBERS)
    return table.is_used, participants, [new for new in opened if new[1]], on_nodes, vacant


def check_arrangement(table: DeviceColumns) -> None:
    """What has been remembered of the devices is what they are."""
    fresh = Arrangement(table.devices, table.node, table.number("numa"))
    for by_numa in (False, True):
        kept = table.arrangement().layout(by_numa=by_numa)
        assert [(b.nodes.tolist(), b.devices.tolist()) for b in kept] == [
            (b.nodes.tolist(), b.devices.tolist()) for b in fresh.layout(by_numa=by_numa)
        ]
        placed = sorted(index for block in kept for index in block.devices.ravel().tolist())
        assert placed == np.flatnonzero(table.node >= 0).tolist()
    for filter in (DeviceFilter(("nvidia",)), DeviceFilter(ids=("n0-device-0",), mode="hami-core")):
        there = [device is not None and filter.allows(device) for device in table.devices]
        assert table.arrangement().allowed(filter).tolist() == there


class World:
    """The objects there are now, beside a mirror that only hears of changes and is looked at now and then."""

    def __init__(self) -> None:
        self.mirror = ClusterMirror(lambda *_: None)
        self._things: dict[tuple[type, str, str], Thing] = {}

    @property
    def things(self) -> list[Thing]:
        return [self._things[key] for key in sorted(self._things, key=str)]

    def happen(self, event: Event) -> None:
        meta = typed(event.thing).metadata
        key = (type(event.thing), meta.namespace, meta.name)
        if event.gone:
            delete(self.mirror, event.thing)
            self._things.pop(key, None)
        else:
            upsert(self.mirror, event.thing)
            self._things[key] = event.thing
        if event.looked_at:
            self.check()

    def check(self) -> None:
        for table in self.mirror.columns.devices:
            if table.devices:
                check_arrangement(table)


def small_at_first(test: Callable[[], None]) -> None:
    with patch.object(columns_module, "_INITIAL_ROWS", 1):
        test()


@settings(CI, max_examples=100)
@given(EVENTS, st.randoms(use_true_random=False))
def test_any_order_of_events_leaves_the_devices_that_the_last_objects_alone_would(
    events: list[Event], rng: Random
) -> None:
    def scenario() -> None:
        world = World()
        for event in events:
            world.happen(event)
        things = world.things
        rng.shuffle(things)
        assert all_of(world.mirror.columns) == all_of(cluster(*things, report=lambda *_: None).columns)
        world.check()

    small_at_first(scenario)


@settings(CI, max_examples=100)
@given(EVENTS, EVENTS)
def test_a_copy_keeps_the_devices_as_they_were(before: list[Event], after: list[Event]) -> None:
    def scenario() -> None:
        world = World()
        for event in before:
            world.happen(event)
        copy, then = world.mirror.columns.copy(), all_of(world.mirror.columns)
        for event in after:
            world.happen(event)
        assert all_of(copy) == then

    small_at_first(scenario)


@settings(CI, max_examples=100)
@given(EVENTS)
def test_hearing_of_the_same_objects_again_changes_no_device(events: list[Event]) -> None:
    world = World()
    for event in events:
        world.happen(event)
    versions = [table.version for table in world.mirror.columns.devices]
    for thing in world.things:
        upsert(world.mirror, thing)
    assert [table.version for table in world.mirror.columns.devices] == versions


def test_devices_of_nodes_that_are_gone_are_forgotten() -> None:
    mirror = cluster()
    for index, sharing in product(range(20), FORMS):
        name = f"n{index}"
        for change in (upsert, delete):
            change(mirror, sharing.pod("p", name, 1))
            change(mirror, sharing.node(name, 2))
    for table in mirror.columns.devices:
        assert len(table.devices) <= 4
        assert not table.is_used
