"""Many clusters shared out among several processes, by name."""

from collections import Counter
from pathlib import Path

import pytest

from estimator.flags import parse
from estimator.settings import Settings
from estimator.shards import shard_of
from fairway.service.common_flags import Text
from fairway.service.goflags import FlagError

NAMES = [f"member{number}" for number in range(1000)]
# Recorded: a process that is updated must not disagree with those that are not yet.
RECORDED = {"member0": 4, "member1": 3, "member2": 4, "gpu-eu-west-1": 0, "": 1}


def settings(*argv: str) -> Settings:
    parsed = parse(argv, version="0", is_file=lambda path: path != Path("/not-here"))
    assert isinstance(parsed, Settings)
    return parsed


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_every_cluster_has_one_shard_and_shards_have_about_as_many(count: int) -> None:
    held = Counter(shard_of(name, count) for name in NAMES)
    assert set(held) == set(range(count))
    assert max(held.values()) <= 1.35 * len(NAMES) / count


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_one_more_shard_takes_its_share_and_moves_nothing_else(count: int) -> None:
    moved = [name for name in NAMES if shard_of(name, count) != shard_of(name, count + 1)]
    assert {shard_of(name, count + 1) for name in moved} == {count}
    assert len(moved) <= 1.35 * len(NAMES) / (count + 1)


def test_the_shards_of_recorded_names_stay() -> None:
    assert {name: shard_of(name, 5) for name in RECORDED} == RECORDED


def test_processes_with_the_same_flags_serve_each_cluster_once_and_need_no_others_file() -> None:
    argv = [f"--cluster={name}=/kube/{name}" for name in NAMES[:20]]
    served = [
        source.name
        for index in range(3)
        for source in settings(*argv, f"--shard={index}/3", "--snapshot=s=/dump.json").clusters
    ]
    assert sorted(served) == sorted([*NAMES[:20], "s"])
    other = next(index for index in range(3) if index != shard_of("elsewhere", 3))
    assert settings("--cluster=elsewhere=/not-here", f"--shard={other}/3").clusters == ()


def test_a_shard_without_clusters_says_so() -> None:
    other = 1 - shard_of("one", 2)
    (notice,) = settings("--cluster=one=/kube/one", f"--shard={other}/2").notices
    assert "none belongs to this shard" in notice


@pytest.mark.parametrize("text", ["0", "3/3", "-1/3", "0/0", "a/b", "1/3/5", "0/1001", "0 / 3", "٣/٤"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(FlagError, match=r"--shard.*expected K/N, the shard K, from 0 to N-1"):
        settings("--cluster=one=/kube/one", f"--shard={text}")


def test_the_program_tells_where_clusters_belong() -> None:
    told = parse(["shards", "3", "member1", "member7"], version="0")
    assert told == Text(f"{shard_of('member1', 3)} member1\n{shard_of('member7', 3)} member7")


@pytest.mark.parametrize("arguments", [[], ["3"], ["member1"], ["0", "member1"], ["99999", "member1"]])
def test_what_cannot_be_told_is_refused(arguments: list[str]) -> None:
    with pytest.raises(FlagError, match="shards: expected how many shards"):
        parse(["shards", *arguments], version="0")
