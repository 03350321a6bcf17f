"""Who may go is looked for no farther than somebody asks, and once."""

from collections.abc import Iterator
from itertools import islice

from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.preemption.may_go import Lines, MayGo, may_go_of
from tests.dispatcher.preemption.world import wants

FOUND = {queue: [wants(f"{queue}{number}", queue, ((0, 1),)) for number in range(3)] for queue in "ab"}


class Search:
    """Finds those, and notes whom."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.lines = Lines(FOUND.keys(), self._of)

    def _of(self, queue: str) -> Iterator[Candidate]:
        for one in FOUND[queue]:
            self.found.append(one.id)
            yield one


def test_no_more_are_found_than_are_asked_for() -> None:
    search = Search()
    assert list(islice(search.lines.of("b"), 1)) == FOUND["b"][:1]
    assert search.found == ["b0"]


def test_each_is_found_once_and_told_to_all_who_ask() -> None:
    search = Search()
    list(islice(search.lines.of("b"), 2))
    assert list(search.lines.of("b")) == list(search.lines.of("b")) == FOUND["b"]
    assert search.found == ["b0", "b1", "b2"]


def test_in_other_queues_nobody_is_found() -> None:
    assert not list(Search().lines.of("c"))


def test_what_is_changed_is_found_as_far_as_well() -> None:
    search = Search()
    changed = search.lines.changed(lambda one: None if one.id == "a0" else one)
    assert next(changed.of("a")) == FOUND["a"][1]
    assert search.found == ["a0", "a1"]


def test_whether_anybody_may_go_is_known_from_the_first() -> None:
    search, nobody = Search(), may_go_of(())
    assert MayGo(nobody.pods, search.lines).has_any()
    assert search.found == ["a0"]
    assert not nobody.has_any()
