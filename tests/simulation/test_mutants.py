"""Mutants are told by what they change, so that what is known of one stays true of that one."""

from tests.simulation.mutants import modules, mutants, stale


def test_each_mutant_is_told_by_words_of_its_own() -> None:
    keys = [mutant.key for mutant in mutants("queue_dispatcher.turn.kicks")]
    assert keys
    assert len(set(keys)) == len(keys)


def test_each_mutant_changes_its_statement() -> None:
    assert all(one.before != one.after for one in mutants("queue_dispatcher.cycle.turns"))


def test_what_is_said_to_change_nothing_is_a_mutant_still() -> None:
    assert not stale()


def test_there_is_something_to_change_in_every_room() -> None:
    assert all(modules(room) for room in ("turn", "cycle", "ledger", "cache"))
