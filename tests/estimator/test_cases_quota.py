"""What the stock estimator makes of ResourceQuotas (D1 to E23) and of several limits at once (F1 to F7).

Where the stock numbers say MaxInt32, ours say UNBOUNDED, which never leaves the process.
"""

from dataclasses import dataclass

import pytest

from estimator.capacity.answer import NO_LIMIT, UNBOUNDED, Answer, exactly, lowest
from estimator.capacity.quota import quota_sets
from estimator.capacity.request import AssumedWorkload, Component
from estimator.reasons import quota_limit
from tests.builders import Quantity, QuotaBuilder, assumed, cluster, component, quantities, quota

FOO = (
    quota("foo", "foo")
    .scope("PriorityClass", "In", "foo-priority")
    .hard(cpu="1", memory="4Mi", gpu=5)
    .used(cpu="200m", memory="1Mi", gpu=2)
)
BAR = (
    quota("bar", "bar")
    .scope("PriorityClass", "In", "bar-priority")
    .hard(
        {
            "requests.cpu": "1",
            "requests.memory": "4Mi",
            "requests.nvidia.com/gpu": 5,
            "limits.cpu": "100m",
            "limits.memory": "1Mi",
        }
    )
    .used(
        {
            "requests.cpu": "200m",
            "requests.memory": "1Mi",
            "requests.nvidia.com/gpu": 2,
            "limits.cpu": "100m",
            "limits.memory": "1Mi",
        }
    )
)
UNSCOPED = quota("foo", "foo").hard(cpu="1", memory="4Mi", gpu=5).used(cpu="200m", memory="1Mi", gpu=2)


def part(replicas: int, priority: str = "foo-priority", **requests: Quantity) -> Component:
    return component("part", replicas, quantities(**requests), priority=priority)


def pending(
    replicas: int, namespace: str = "foo", priority: str = "foo-priority", cpu: str = "200m"
) -> AssumedWorkload:
    return assumed(namespace, part(replicas, priority, cpu=cpu))


@dataclass(frozen=True)
class Case:
    expected: int
    components: tuple[Component, ...]
    quotas: tuple[QuotaBuilder, ...] = (FOO,)
    namespace: str = "foo"
    placed: tuple[AssumedWorkload, ...] = ()

    def answer(self) -> Answer:
        quotas = cluster(*self.quotas).quotas.of(self.namespace)
        return quota_sets(quotas, self.components, self.namespace, self.placed)


SMALL = part(1, cpu="200m")
ALL = part(1, cpu="200m", memory="2Mi", gpu=1)

REPLICAS = {
    "D1": Case(UNBOUNDED, (SMALL,), quotas=()),
    "D2": Case(4, (SMALL,)),
    "D3": Case(1, (part(1, memory="2Mi"),)),
    "D4": Case(3, (part(1, gpu=1),)),
    "D5": Case(UNBOUNDED, (part(1, storage="1Mi"),)),
    "D6": Case(0, (part(1, cpu="2", memory="2Mi", gpu=1),)),
    "D8": Case(1, (part(1, "bar-priority", cpu="200m", memory="2Mi", gpu=1),), (FOO, BAR), "bar"),
    "D9": Case(1, (ALL,), (FOO, BAR)),
    "D12": Case(2, (SMALL,), placed=(pending(2),)),
    "D13": Case(0, (SMALL,), placed=(pending(4),)),
    "D14": Case(4, (SMALL,), placed=(pending(2, "bar", cpu="400m"),)),
    "D16": Case(UNBOUNDED, (component("part", 1),)),
    "D17": Case(UNBOUNDED, (SMALL,), (FOO.hard(cpu="0", memory="4Mi").used(memory="1Mi"),)),
}

TWO = (UNSCOPED.hard(cpu="1").used(cpu="200m"), quota("memory", "foo").hard(memory="3Mi").used(memory="1Mi"))
BY_CLASS = (
    FOO.hard(cpu="400m", memory="3Mi").used(cpu="0", memory="0"),
    quota("bar", "foo").scope("PriorityClass", "In", "bar-priority").hard(cpu="1900m", memory="3.5Mi"),
)

SETS = {
    "E2": Case(UNBOUNDED, ()),
    "E3": Case(UNBOUNDED, (SMALL,), quotas=()),
    "E4": Case(UNBOUNDED, (part(1, "bar-priority", cpu="200m"),)),
    "E5": Case(UNBOUNDED, (part(1, "", cpu="200m"),)),
    "E6": Case(8, (part(1, "", cpu="100m"),), (UNSCOPED,)),
    "E7": Case(6, (part(1, cpu="100m", memory="500Ki"),)),
    "E9": Case(1, (part(1, cpu="50m", memory="2Mi"),)),
    "E10": Case(1, (part(2, cpu="100m", memory="500Ki", gpu=1),)),
    "E11": Case(0, (part(1, cpu="10", memory="10Mi"),)),
    "E12": Case(2, (part(1, cpu="200m", memory="1Mi"),), TWO),
    "E14": Case(
        1,
        (part(1, cpu="300m", memory="500Ki"), part(1, "bar-priority", cpu="100m", memory="200Ki")),
        BY_CLASS,
    ),
    "E16": Case(2, (SMALL,), placed=(pending(1, cpu="400m"),)),
    "E17": Case(4, (SMALL,), placed=(pending(1, "other", cpu="400m"),)),
    "E18": Case(4, (SMALL,), placed=(pending(1, priority="bar-priority", cpu="400m"),)),
    "E19": Case(0, (SMALL,), placed=(pending(1, cpu="1"),)),
    "E21": Case(2, (part(1, cpu="100m"),), placed=(pending(1), pending(2))),
    "E22": Case(4, (SMALL,), placed=()),
    "E23": Case(UNBOUNDED, (SMALL,), namespace=""),
}

# Where the stock estimator is weaker than what Kubernetes then enforces.
BETTER = {
    "all scopes must match, the stock one is content with any": Case(
        UNBOUNDED, (part(1, cpu="200m"),), (FOO.scope("BestEffort"),)
    ),
    "and here they do": Case(4, (SMALL,), (FOO.scope("NotBestEffort").scope("NotTerminating"),)),
    "a quota for pods that end says nothing of others": Case(
        UNBOUNDED, (SMALL,), (FOO.scope("Terminating"),)
    ),
    "best effort counts pods": Case(
        3, (part(2, ""),), (quota("q", "foo").scope("BestEffort").hard(pods=10).used(pods=4),)
    ),
    "and not those that ask for something": Case(
        UNBOUNDED, (SMALL,), (quota("q", "foo").scope("BestEffort").hard(pods=10),)
    ),
    "the number of pods is a limit": Case(3, (part(2, cpu="1m"),), (quota("q", "foo").hard(pods=7),)),
    "as an object count too": Case(3, (part(2, cpu="1m"),), (quota("q", "foo").hard({"count/pods": 7}),)),
    "storage is a limit": Case(3, (part(1, storage="1Mi"),), (quota("q", "foo").hard(storage="3Mi"),)),
    "the tighter of two names for one thing": Case(
        2, (SMALL,), (quota("q", "foo").hard({"cpu": "800m", "requests.cpu": "400m"}),)
    ),
    "in either order": Case(2, (SMALL,), (quota("q", "foo").hard({"requests.cpu": "800m", "cpu": "400m"}),)),
    "huge pages are a limit": Case(
        2,
        (component("part", 1, {"hugepages-2Mi": "2Mi"}),),
        (quota("q", "foo").hard({"requests.hugepages-2Mi": "4Mi"}),),
    ),
    "more used than allowed leaves nothing": Case(
        0, (SMALL,), (quota("q", "foo").hard(cpu="1").used(cpu="2"),)
    ),
    "Exists asks for any class": Case(4, (SMALL,), (UNSCOPED.scope("PriorityClass", "Exists"),)),
    "as a plain scope too": Case(4, (SMALL,), (UNSCOPED.scope("PriorityClass"),)),
    "and none has none": Case(
        UNBOUNDED, (part(1, "", cpu="200m"),), (UNSCOPED.scope("PriorityClass", "Exists"),)
    ),
    "DoesNotExist": Case(UNBOUNDED, (SMALL,), (UNSCOPED.scope("PriorityClass", "DoesNotExist"),)),
    "NotIn with another class": Case(
        4, (SMALL,), (UNSCOPED.scope("PriorityClass", "NotIn", "bar-priority"),)
    ),
    "NotIn with this class": Case(
        UNBOUNDED, (SMALL,), (UNSCOPED.scope("PriorityClass", "NotIn", "foo-priority"),)
    ),
    "NotIn without a class": Case(
        4, (part(1, "", cpu="200m"),), (UNSCOPED.scope("PriorityClass", "NotIn", "x"),)
    ),
    "an unknown scope": Case(UNBOUNDED, (SMALL,), (UNSCOPED.scope("VolumeAttributesClass"),)),
    "an unknown operator": Case(
        UNBOUNDED, (SMALL,), (UNSCOPED.scope("PriorityClass", "Like", "foo-priority"),)
    ),
    "components without replicas need nothing": Case(4, (SMALL, part(0, cpu="10"))),
    "nor do negative ones give any back": Case(4, (SMALL, part(-5, cpu="10"))),
}


@pytest.mark.parametrize("case", REPLICAS.values(), ids=REPLICAS)
def test_replicas_within_quotas(case: Case) -> None:
    assert case.answer().value == case.expected


@pytest.mark.parametrize("case", SETS.values(), ids=SETS)
def test_sets_within_quotas(case: Case) -> None:
    assert case.answer().value == case.expected


@pytest.mark.parametrize("case", BETTER.values(), ids=BETTER)
def test_quotas_as_kubernetes_enforces_them(case: Case) -> None:
    assert case.answer().value == case.expected


def test_a_quota_that_limits_says_so() -> None:
    answer = Case(0, (part(1, cpu="2"),)).answer()
    assert quota_limit("foo", "cpu", 800, 2000) in answer.reasons
    assert str(quota_limit("foo", "cpu", 800, 2000)) == "ResourceQuota foo leaves 800m cpu, each needs 2"


NOTHING_TO_SAY = NO_LIMIT
MERGED = {
    "F1": ((NOTHING_TO_SAY,), UNBOUNDED),
    "F3": ((exactly(1), exactly(0)), 0),
    "F3 sets": ((exactly(10), exactly(0)), 0),
    "F4": ((exactly(0), NOTHING_TO_SAY), 0),
    "F6": ((exactly(1), exactly(1)), 1),
    "F6 sets": ((exactly(7), exactly(7)), 7),
    "F7": ((exactly(1), exactly(2)), 1),
    "F7 sets": ((exactly(5), exactly(10)), 5),
}


@pytest.mark.parametrize(("answers", "expected"), MERGED.values(), ids=MERGED)
def test_several_limits_at_once(answers: tuple[Answer, ...], expected: int) -> None:
    assert lowest(*answers) == exactly(expected)
    assert lowest(*reversed(answers)) == exactly(expected)


BRACKETS = {
    "an exact limit below the bracket proves": ((Answer(3, 9, False), exactly(2)), Answer(2, 2, True)),
    "one inside the bracket lowers the bound": ((Answer(3, 9, False), exactly(5)), Answer(3, 5, False)),
    "one at its foot proves": ((Answer(3, 9, False), exactly(3)), Answer(3, 3, True)),
    "one above it changes nothing": ((Answer(3, 9, False), exactly(20)), Answer(3, 9, False)),
}


@pytest.mark.parametrize(("answers", "expected"), BRACKETS.values(), ids=BRACKETS)
def test_brackets_merge_by_their_ends(answers: tuple[Answer, ...], expected: Answer) -> None:
    assert lowest(*answers) == expected
    assert lowest(*reversed(answers)) == expected


def test_the_most_decisive_reason_comes_first() -> None:
    decisive, other = quota_limit("q", "cpu", 1, 2), quota_limit("r", "cpu", 5, 2)
    assert lowest(exactly(2, other), exactly(0, decisive)).reasons == (decisive, other)
