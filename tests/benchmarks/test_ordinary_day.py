"""The ordinary day on the simulation: the same for the same seed, and like the real one."""

from benchmarks.ordinary_day import COMES_UP_WITHIN_MS, SIZES, Rules, day


def test_a_day_is_the_same_for_the_same_seed_and_small_work_starts_at_once() -> None:
    one, again = (day(3, until_ms=60_000) for _ in range(2))
    assert one.workloads == again.workloads
    small = [one.wait_s(each) for each in one.workloads if each.size is SIZES[0]]
    large = [one.wait_s(each) for each in one.workloads if each.size is SIZES[3]]
    assert sorted(small)[len(small) // 2] <= 2.0
    assert sorted(large)[len(large) // 2] >= 10.0


def test_a_day_by_other_rules_has_limits_on_all_of_it_and_ends_with_all_started() -> None:
    reservation = {"after": "0s", "drainAfter": "10m", "depth": 2}
    rules = Rules({"reservation": reservation}, owns_all=True, times=1.5)
    seen = day(3, until_ms=20_000, rules=rules, to_the_end_ms=600_000)
    assert all(one.started_ms is not None for one in seen.workloads)
    said = [(one.limit_ms - COMES_UP_WITHIN_MS, one.runs_ms) for one in seen.workloads]
    assert all(runs_ms <= limit_ms <= 1.5 * runs_ms for limit_ms, runs_ms in said)
    assert 0.0 < seen.used <= 1.0
