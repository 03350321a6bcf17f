import pytest

from tests.crash.quota import Limits, Queue, Usage, exceeded

F = "east"


def tree(a: Limits, b: Limits, pool: int = 0) -> list[Queue]:
    return [Queue("root", quotas={F: Limits(pool)}), Queue("a", "root", {F: a}), Queue("b", "root", {F: b})]


@pytest.mark.parametrize(
    ("queues", "usage", "told"),
    [
        (tree(Limits(4), Limits(4)), {("a", F): 8}, ""),
        (tree(Limits(4), Limits(4)), {("a", F): 9}, "root: 1 of"),
        (tree(Limits(4), Limits(4)), {("a", F): 5, ("b", F): 4}, "root: 1 of"),
        (tree(Limits(4), Limits(4), 1), {("a", F): 5, ("b", F): 4}, ""),
        (tree(Limits(4, borrowing=0), Limits(4)), {("a", F): 5}, "a: borrows 1 of flavor east, limit 0"),
        (tree(Limits(4), Limits(4, lending=1)), {("a", F): 5}, ""),
        (tree(Limits(4), Limits(4, lending=1)), {("a", F): 6}, "root: 1 of"),
        (tree(Limits(4), Limits(4)), {("a", "west"): 1}, "root: 1 of flavor west"),
    ],
)
def test_what_is_used_beyond_quota_loan_and_limit_is_told(
    queues: list[Queue], usage: Usage, told: str
) -> None:
    faults = list(exceeded(queues, usage))
    assert bool(faults) == bool(told)
    assert told in " ".join(faults)
