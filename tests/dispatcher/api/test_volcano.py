"""Volcano's Queues as ClusterQueues: what each of their fields becomes, and what the tree then allows."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.api.cluster_queue import ClusterQueue, QueueingStrategy, StopPolicy
from queue_dispatcher.api.quota import Amount
from queue_dispatcher.api.resource_flavor import FromClusters
from queue_dispatcher.api.volcano import FLAVOR, ROOT, read_volcano_queues
from queue_dispatcher.api.volcano_objects import VolcanoQueueObject
from tests.dispatcher.api.builders import Json, volcano_queue

CAPACITY = {"gpu": 100}


def tree(*queues: VolcanoQueueObject, capacity: Mapping[str, int] = CAPACITY) -> dict[str, ClusterQueue]:
    return {queue.name: queue for queue in read_volcano_queues(queues, capacity)}


def quota(queue: ClusterQueue, resource: str = "gpu") -> tuple[int, int | None, int | None]:
    """Nominal quota, borrowing limit, lending limit."""
    (group,) = queue.groups
    (flavor,) = group.flavors
    assert flavor.flavor == FLAVOR.name
    stated = flavor.quotas[resource]
    return _amount(stated.nominal) or 0, _amount(stated.borrowing_limit), _amount(stated.lending_limit)


def _amount(stated: object) -> int | None:
    if stated is None:
        return None
    assert isinstance(stated, Amount)
    return stated.value


def gpus(amount: Json) -> dict[str, Json]:
    return {"gpu": amount}


def problems(queue: ClusterQueue) -> list[str]:
    return [one.field for one in queue.problems]


def test_there_is_one_flavor_of_all_clusters() -> None:
    assert FLAVOR.capacity == FromClusters()
    assert FLAVOR.spans("any", {})


@pytest.mark.parametrize(
    ("stated", "nominal", "borrowing", "lending"),
    [
        ({}, 0, None, 0),
        ({"deserved": 40}, 40, None, 40),
        ({"guarantee": 10}, 10, None, 0),
        ({"deserved": 40, "guarantee": 10}, 40, None, 30),
        ({"deserved": 5, "guarantee": 10}, 10, None, 0),
        ({"capability": 60}, 0, 60, 0),
        ({"deserved": 40, "capability": 60}, 40, 20, 40),
        ({"deserved": 40, "guarantee": 10, "capability": 60}, 40, 20, 30),
        ({"deserved": 80, "capability": 60}, 60, 0, 60),
        ({"capability": 0}, 0, 0, 0),
        ({"deserved": "1500m"}, 1, None, 1),
    ],
)
def test_what_a_queue_owns_borrows_and_lends(
    stated: Mapping[str, Json], nominal: int, borrowing: int | None, lending: int
) -> None:
    queues = tree(volcano_queue("q", **{name: gpus(amount) for name, amount in stated.items()}))
    assert quota(queues["q"]) == (nominal, borrowing, lending)
    assert quota(queues[ROOT]) == (100 - nominal, None, None)
    assert (queues["q"].parent, queues[ROOT].parent) == (ROOT, "")
    assert queues["q"].problems == queues[ROOT].problems == ()


def test_every_queue_covers_every_resource_that_there_is_or_that_any_queue_names() -> None:
    queues = tree(
        volcano_queue("a", deserved={"tpu": 4}), volcano_queue("b"), capacity={"gpu": 8, "cpu": 500}
    )
    assert {queue.groups[0].covered for queue in queues.values()} == {("cpu", "gpu", "tpu")}
    assert quota(queues["b"], "tpu") == (0, None, 0)
    assert quota(queues[ROOT], "cpu") == (500, None, None)
    assert quota(queues[ROOT], "tpu") == (0, None, None)
    assert tree(capacity={})[ROOT].groups == ()


@pytest.mark.parametrize(("resource", "borrowing"), [("cpu", None), ("memory", None), ("gpu", 0)])
def test_no_cpu_and_no_memory_in_a_capability_is_no_limit_as_in_volcano(
    resource: str, borrowing: int | None
) -> None:
    queues = tree(volcano_queue("q", capability={resource: "0"}), capacity={resource: 5})
    assert quota(queues["q"], resource) == (0, borrowing, 0)


def test_a_queue_of_queues_owns_what_those_below_it_do_not() -> None:
    queues = tree(
        volcano_queue("team", deserved=gpus(60), capability=gpus(80), guarantee=gpus(20)),
        volcano_queue("a", parent="team", deserved=gpus(30), guarantee=gpus(5)),
        volcano_queue("b", parent="team", deserved=gpus(10), capability=gpus(10)),
        volcano_queue("other", deserved=gpus(15)),
    )
    assert quota(queues["team"]) == (20, 20, 40)
    assert quota(queues["a"]) == (30, None, 25)
    assert quota(queues["b"]) == (10, 0, 10)
    assert quota(queues[ROOT]) == (25, None, None)


def test_a_queue_owns_no_less_than_those_below_it() -> None:
    queues = tree(
        volcano_queue("team", deserved=gpus(10)), volcano_queue("a", parent="team", deserved=gpus(30))
    )
    assert quota(queues["team"]) == (0, None, 30)
    assert quota(queues[ROOT]) == (70, None, None)


def test_queues_that_claim_more_than_their_parent_may_use_get_their_proportion() -> None:
    queues = tree(
        volcano_queue("team", capability=gpus(10)),
        volcano_queue("a", parent="team", deserved=gpus(20), guarantee=gpus(8)),
        volcano_queue("b", parent="team", deserved=gpus(11)),
    )
    assert quota(queues["team"]) == (1, 0, 10)
    assert quota(queues["a"]) == (6, None, 0)
    assert quota(queues["b"]) == (3, None, 3)
    assert problems(queues["team"]) == ["spec.capability"]
    assert "gpu" in str(queues["team"].problems[0])


def test_queues_that_claim_more_than_there_is_keep_their_claims() -> None:
    """As when clusters are away for a while: the capacity is the limit then, not the quota."""
    queues = tree(volcano_queue("a", deserved=gpus(80)), volcano_queue("b", deserved=gpus(70)))
    assert [quota(queues[name])[0] for name in (ROOT, "a", "b")] == [0, 80, 70]
    assert queues[ROOT].problems == ()


def test_volcanos_own_root_is_the_root() -> None:
    queues = tree(volcano_queue(ROOT, "Closed", capability=gpus(50)), volcano_queue("a", parent=ROOT))
    assert list(queues) == [ROOT, "a"]
    assert quota(queues[ROOT]) == (50, None, None)
    assert queues[ROOT].stop_policy is StopPolicy.HOLD


@pytest.mark.parametrize(
    ("state", "policy", "wrong"),
    [
        ("", StopPolicy.NONE, []),
        ("Open", StopPolicy.NONE, []),
        ("Closing", StopPolicy.HOLD, []),
        ("Closed", StopPolicy.HOLD, []),
        ("Unknown", StopPolicy.HOLD, ["status.state"]),
    ],
)
def test_only_open_queues_admit(state: str, policy: StopPolicy, wrong: list[str]) -> None:
    queue = tree(volcano_queue("q", state))["q"]
    assert (queue.stop_policy, problems(queue)) == (policy, wrong)


@pytest.mark.parametrize(
    ("spec", "expected", "wrong"),
    [
        ({}, (1000, 0, QueueingStrategy.BEST_EFFORT_FIFO), []),
        (
            {"weight": 3, "priority": 7, "dequeueStrategy": "fifo"},
            (3000, 7, QueueingStrategy.STRICT_FIFO),
            [],
        ),
        ({"dequeueStrategy": "traverse"}, (1000, 0, QueueingStrategy.BEST_EFFORT_FIFO), []),
        (
            {"weight": 0, "priority": -1, "dequeueStrategy": "lifo"},
            (1000, 0, QueueingStrategy.STRICT_FIFO),
            ["spec.dequeueStrategy", "spec.weight", "spec.priority"],
        ),
    ],
)
def test_order(
    spec: Mapping[str, Json], expected: tuple[int, int, QueueingStrategy], wrong: list[str]
) -> None:
    queue = tree(volcano_queue("q", **spec))["q"]
    assert (queue.weight_milli, queue.priority, queue.strategy) == expected
    assert problems(queue) == wrong


def test_what_cannot_be_read_grants_nothing() -> None:
    queues = tree(
        volcano_queue("deserved", deserved={"gpu": "lots"}),
        volcano_queue("capability", deserved={"gpu": 8}, capability={"gpu": -1}),
        volcano_queue("guarantee", deserved={"gpu": 8}, guarantee={"gpu": "some"}),
        volcano_queue("null", deserved={"gpu": None}, capability={"cpu": "all"}),
        volcano_queue("crossed", guarantee={"gpu": 8}, capability={"gpu": 4}),
        capacity={"gpu": 100, "cpu": 1000},
    )
    assert quota(queues["deserved"]) == (0, None, 0)
    assert quota(queues["capability"]) == (0, 0, 0)
    assert quota(queues["guarantee"]) == (8, None, 0)
    assert quota(queues["null"]) == (0, None, 0)
    assert quota(queues["null"], "cpu") == (0, 0, 0)
    assert quota(queues["crossed"]) == (4, 0, 0)
    assert {name: problems(queue) for name, queue in queues.items() if queue.problems} == {
        "deserved": ["spec.deserved[gpu]"],
        "capability": ["spec.capability[gpu]"],
        "guarantee": ["spec.guarantee.resource[gpu]"],
        "null": ["spec.capability[cpu]"],
        "crossed": ["spec.guarantee.resource[gpu]"],
    }


def test_parents_that_are_not_there_and_cycles_stay_as_stated() -> None:
    queues = tree(
        volcano_queue("orphan", parent="gone", deserved=gpus(10)),
        volcano_queue("child", parent="orphan", deserved=gpus(4)),
        volcano_queue("x", parent="y", deserved=gpus(10)),
        volcano_queue("y", parent="x", deserved=gpus(20)),
        volcano_queue("self", parent="self", deserved=gpus(30)),
        volcano_queue("tail", parent="self", deserved=gpus(40)),
    )
    parents = {"orphan": "gone", "child": "orphan", "x": "y", "y": "x", "self": "self", "tail": "self"}
    assert {name: queues[name].parent for name in parents} == parents
    assert quota(queues[ROOT]) == (100, None, None)
    assert quota(queues["orphan"]) == (6, None, 10)
    assert quota(queues["tail"]) == (40, None, 40)


AMOUNT = st.integers(0, 20)
CLAIM = st.fixed_dictionaries({}, optional={"deserved": AMOUNT, "guarantee": AMOUNT, "capability": AMOUNT})


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """Parents by name, and what each queue states; parents come before their children."""
    count = draw(st.integers(1, 6))
    names = [f"q{index}" for index in range(count)]
    parents = {name: draw(st.sampled_from([ROOT, *names[:index]])) for index, name in enumerate(names)}
    return parents, {name: draw(CLAIM) for name in names}


def headroom(queues: Mapping[str, ClusterQueue], used: Mapping[str, int]) -> dict[str, int]:
    """What is left at each node: own quota plus what the queues below lend, less what is used."""
    left: dict[str, int] = {}
    for name, queue in reversed(list(queues.items())):
        lent = sum(_lent(queues[child], left[child]) for child in _below(queues, name))
        left[name] = quota(queue)[0] + lent - used.get(name, 0)
    return left


def _below(queues: Mapping[str, ClusterQueue], name: str) -> Iterable[str]:
    return (child for child, queue in queues.items() if queue.parent == name)


def _lent(queue: ClusterQueue, left: int) -> int:
    lending = quota(queue)[2]
    return left if lending is None else min(lending, left)


def allowed(queues: Mapping[str, ClusterQueue], used: Mapping[str, int]) -> bool:
    """Whether no queue borrows more than it may."""
    left = headroom(queues, used)
    return all(
        (queue.name != ROOT and quota(queue)[1] is None) or left[name] >= -(quota(queue)[1] or 0)
        for name, queue in queues.items()
    )


@given(fleets(), st.lists(AMOUNT, min_size=6, max_size=6), st.integers(0, 60))
def test_whatever_the_tree_allows_volcano_would(
    fleet: tuple[dict[str, str], dict[str, dict[str, int]]], wanted: list[int], capacity: int
) -> None:
    """No queue with those below it uses more than its capability, all together no more than there is or is
    owned, and what is guaranteed to a queue is there for it, whatever the others use."""
    parents, claims = fleet
    objects = [
        volcano_queue(
            name, parent=parents[name], **{field: {"gpu": amount} for field, amount in claims[name].items()}
        )
        for name in parents
    ]
    queues = tree(*objects, capacity={"gpu": capacity})
    leaves = [name for name in parents if name not in parents.values()]
    used: dict[str, int] = {}
    for name, amount in zip(leaves, wanted, strict=False):
        used[name] = next(most for most in range(amount, -1, -1) if allowed(queues, {**used, name: most}))

    total = {name: used.get(name, 0) for name in parents}
    for name in reversed(parents):
        if parents[name] != ROOT:
            total[parents[name]] += total[name]
    for name, claim in claims.items():
        assert total[name] <= claim.get("capability", total[name])
    assert sum(used.values()) <= max(capacity, sum(quota(queue)[0] for queue in queues.values()))

    ancestors_suffice = all(not queue.problems for queue in queues.values())
    for name in leaves:
        guaranteed = claims[name].get("guarantee", 0)
        if ancestors_suffice and used[name] < guaranteed:
            assert allowed(queues, {**used, name: guaranteed})
