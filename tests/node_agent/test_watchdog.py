"""Calls that hang: given up, bounded in number, and forgiven when they return."""

import sys
import threading
from collections.abc import Iterator

import pytest

from node_agent.watchdog import HungError, Watchdog

SOON_S, LONG_S = 0.02, 60.0


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def abandoned_threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_what_the_call_answers_or_raises_comes_out() -> None:
    watchdog = Watchdog("answers", LONG_S)
    assert watchdog.run(lambda: 7) == 7
    with pytest.raises(ValueError, match="gone"):
        watchdog.run(lambda: int("gone"))
    with pytest.raises(SystemExit):
        watchdog.run(sys.exit)
    assert watchdog.run(lambda: 8) == 8
    assert watchdog.abandoned == 0


def test_a_call_that_hangs_is_given_up_and_others_are_made(release: threading.Event) -> None:
    watchdog = Watchdog("hangs", SOON_S)
    with pytest.raises(HungError, match=r"a call of hangs has not returned for 0\.02 s"):
        watchdog.run(release.wait)
    assert watchdog.abandoned == 1
    assert all(thread.daemon for thread in abandoned_threads("hangs"))


def test_no_more_than_a_few_hang_at_a_time_and_the_first_that_returns_makes_room(
    release: threading.Event,
) -> None:
    watchdog = Watchdog("many", SOON_S, most_abandoned=2)
    for _ in range(2):
        with pytest.raises(HungError, match="has not returned"):
            watchdog.run(release.wait)
    for _ in range(5):
        with pytest.raises(HungError, match="2 calls of many hang; no other is begun until one returns"):
            watchdog.run(lambda: pytest.fail("begun all the same"))
    threads = abandoned_threads("many")
    assert len(threads) == 2
    release.set()
    for thread in threads:
        thread.join(LONG_S)
    assert watchdog.abandoned == 0
    watchdog.deadline_s = LONG_S
    assert watchdog.run(lambda: "well") == "well"


def test_what_a_call_answers_after_it_was_given_up_is_nobodys(release: threading.Event) -> None:
    watchdog = Watchdog("late", SOON_S)

    def late() -> str:
        release.wait()
        return "late"

    with pytest.raises(HungError):
        watchdog.run(late)
    release.set()
    watchdog.deadline_s = LONG_S
    assert watchdog.run(lambda: "in time") == "in time"
