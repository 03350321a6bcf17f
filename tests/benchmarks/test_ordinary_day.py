"""The ordinary day on the simulation: the same for the same seed, and like the real one."""

from benchmarks.ordinary_day import SIZES, day


def test_a_day_is_the_same_for_the_same_seed_and_small_work_starts_at_once() -> None:
    one, again = (day(3, until_ms=60_000) for _ in range(2))
    assert one.workloads == again.workloads
    small = [one.wait_s(each) for each in one.workloads if each.size is SIZES[0]]
    large = [one.wait_s(each) for each in one.workloads if each.size is SIZES[3]]
    assert sorted(small)[len(small) // 2] <= 2.0
    assert sorted(large)[len(large) // 2] >= 10.0
