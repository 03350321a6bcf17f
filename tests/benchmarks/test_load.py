"""Many clients at once: each question is asked, each answer counted to its question."""

import pytest

from benchmarks.caller import Address, CallFailed
from benchmarks.load import Clients, Questions, Round
from tests.benchmarks.echo import ECHO, REFUSE, on_server

MESSAGES = [b"a", b"b", b"c", b"d"]


def test_every_client_asks_in_turn_and_replies_are_told_apart() -> None:
    def ask(address: Address) -> Round:
        with Clients(address, 4) as clients:
            return clients.ask(Questions(ECHO, MESSAGES), 0.0)

    # No time at all: one call of each client, and each begins elsewhere.
    played = on_server(ask)

    assert len(played.waited_s) == 4
    assert played.replies == {number: {message} for number, message in enumerate(MESSAGES)}
    assert played.calls_per_s > 0


def test_a_failed_call_ends_the_round() -> None:
    def ask(address: Address) -> Round:
        with Clients(address, 2) as clients:
            return clients.ask(Questions(REFUSE, MESSAGES), 0.0)

    with pytest.raises(CallFailed):
        on_server(ask)


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (50, 51), (99, 100), (100, 100)])
def test_percentiles_are_waits_that_really_happened(percent: float, expected: float) -> None:
    played = Round([float(wait) for wait in range(100, 0, -1)], 1.0)

    assert played.percentile_s(percent) == expected
