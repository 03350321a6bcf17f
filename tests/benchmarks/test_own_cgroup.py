"""A process in a cgroup that is named as a container's is that pod's."""

import subprocess
from collections.abc import Iterator

import pytest

from benchmarks.gpu.own_cgroup import as_container, attribution_check


@pytest.fixture
def pid() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def test_whose_a_process_is(pid: int) -> None:
    with as_container(pid) as container:
        if container is None:
            pytest.skip("no cgroup may be made here: it takes root and a writable hierarchy")
        assert attribution_check(pid, container, frozenset({pid})).holds
        assert not attribution_check(pid, container, frozenset()).holds
    assert not attribution_check(pid, container, frozenset({pid})).holds


def test_what_was_not_tried_is_told(pid: int) -> None:
    assert attribution_check(pid, None, frozenset({pid})).holds is None
