"""Which pods of a workload go first: as kube-controller-manager would choose, as far as that is certain."""

import math
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from estimator.capacity.removal import in_order_of_removal
from fairway.kube.objects import Pod
from fairway.moments import moment_s
from tests.builders import PodBuilder, cluster, pod

NOW_S = 1_000_000.0


def at(age_s: float) -> str:
    """The time so long ago."""
    minutes, seconds = divmod(int(NOW_S - age_s), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"1970-01-{days + 1:02}T{hours:02}:{minutes:02}:{seconds:02}Z"


def of(name: str, on: str = "a", kind: str = "ReplicaSet", owner: str = "w") -> PodBuilder:
    made = pod(name).of("team").requests(gpu=1)
    made = made.owned_by(kind, owner, "batch/v1" if kind == "Job" else "apps/v1")
    return made.on(on) if on else made


def order(*pods: PodBuilder) -> list[list[str]]:
    mirror = cluster(*pods)
    found = in_order_of_removal(mirror.pods.copy(), NOW_S)
    return [sorted(key.partition("/")[2] for key in keys) for keys in found]


def test_of_a_replica_set() -> None:
    assert order(
        of("older").ready(at(9_000)),
        of("old", "b").ready(at(900)),
        of("beside", "b").ready(at(8_000)),
        of("cheap").annotated({"controller.kubernetes.io/pod-deletion-cost": "-5"}).ready(at(90_000)),
        of("unready", "c"),
        of("nowhere", ""),
        of("nominated", "").nominated("c"),
        of("alone", "d").ready(at(5)),
        # Beside it there is nobody yet.
        of("nominee", "c2").ready(at(900)),
        of("nominated2", "").nominated("c2"),
    ) == [
        ["nominated", "nominated2", "nowhere"],
        ["unready"],
        ["cheap"],
        ["old"],
        ["beside", "older"],
        ["alone"],
        ["nominee"],
    ]


@pytest.mark.parametrize(
    ("ages_s", "expected"),
    [
        # By powers of two, which are others a minute later: only what is far apart is certain.
        ((100, 110, 120), [["p0", "p1", "p2"]]),
        ((100, 260, 580), [["p0"], ["p1"], ["p2"]]),
        ((100, 255, 579), [["p0", "p1"], ["p2"]]),
        ((100, 255, 570), [["p0", "p1"], ["p2"]]),
    ],
)
def test_of_those_that_are_ready_for_about_as_long_nobody_knows(
    ages_s: Sequence[int], expected: list[list[str]]
) -> None:
    pods = (of(f"p{number}", f"n{number}").ready(at(age)) for number, age in enumerate(ages_s))
    assert order(*pods) == expected


def test_of_a_job_the_latest() -> None:
    made = [of(f"p{number}", f"n{number % 2}", "Job") for number in range(4)]
    assert order(*(one.ready(at(100 + number // 2)) for number, one in enumerate(made))) == [
        ["p0", "p1"],
        ["p2", "p3"],
    ]
    costly = made[0].annotated({"controller.kubernetes.io/pod-deletion-cost": "5"})
    assert order(costly.ready(at(100)), made[1].ready(at(101))) == [["p0"], ["p1"]]


def test_of_a_stateful_set_the_highest_ordinal() -> None:
    pods = [of(f"w-{number}", "a", "StatefulSet") for number in (0, 2, 10)]
    assert order(*pods) == [["w-10"], ["w-2"], ["w-0"]]
    assert order(*pods, of("w-x", "a", "StatefulSet")) == [["w-0", "w-10", "w-2", "w-x"]]


@pytest.mark.parametrize(
    "pods",
    [
        # Rolled out: each of its ReplicaSets loses some.
        (of("p0", owner="w1").ready(at(9)), of("p1", owner="w2").ready(at(9_000))),
        (of("p0", kind="Other").ready(at(9)), of("p1", kind="Other").ready(at(9_000))),
        (of("p0").ready("soon"), of("p1").ready(at(9_000))),
    ],
)
def test_where_the_rule_is_not_known_any_may_be_next(pods: tuple[PodBuilder, ...]) -> None:
    assert order(*pods) == [["p0", "p1"]]


def test_nobody_goes_where_nobody_is() -> None:
    assert order() == []


# --- law -------------------------------------------------------------------------------------------------


def removed(pods: Sequence[Pod], kind: str, now_s: float, rng: Random) -> list[str]:
    """The names in the order in which kube-controller-manager deletes them, written from its source; what it
    compares and nobody knows here (phases, restarts, uids) is by chance.
    """
    beside = Counter(one.spec.node_name for one in pods)

    def rank(one: Pod) -> tuple[object, ...]:
        ready = [of for of in one.status.conditions or () if of.type == "Ready"]
        chance = rng.random()
        if not ready:
            return bool(one.spec.node_name), False, chance
        age_s = now_s - (moment_s(ready[0].last_transition_time) or 0.0)
        if kind == "Job":
            return True, True, age_s, chance
        cost = int((one.metadata.annotations or {}).get("controller.kubernetes.io/pod-deletion-cost", 0))
        bucket = int(math.log2(age_s * 1e9)) if age_s > 0 else -1
        return True, True, cost, -beside[one.spec.node_name], bucket, chance

    return [one.metadata.name for one in sorted(pods, key=rank)]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_chance_says_those_go_that_are_told(seed: int) -> None:
    rng = Random(seed)
    kind = rng.choice(("ReplicaSet", "Job"))
    pods = []
    for number in range(rng.randint(1, 9)):
        made = of(f"p{number}", rng.choice(("a", "b", "c", "c", "")), kind)
        if rng.random() < 0.2:
            made = made.annotated({"controller.kubernetes.io/pod-deletion-cost": str(rng.randint(-1, 1))})
        if made.build().spec.node_name and rng.random() < 0.8:
            made = made.ready(at(rng.choice((1, 5, 60, 61, 500, 510, 4_000, 90_000))))
        pods.append(made)
    told = order(*pods)
    for later_s in (0.0, 30.0, 60.0):
        gone = removed([one.build() for one in pods], kind, NOW_S + later_s, rng)
        assert sorted(gone) == sorted(name for names in told for name in names)
        for names in told:
            assert sorted(gone[: len(names)]) == names
            gone = gone[len(names) :]
