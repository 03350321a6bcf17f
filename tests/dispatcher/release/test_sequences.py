"""Sequences under every interleaving of those who make writes and those who see to what comes before them."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.release.sequences import NOTHING, First, Queued, Sequences
from queue_dispatcher.turn.writes import Companion, Purpose, Write

UIDS, LINES = "xyz", "ab"


class Played:
    """Whoever makes writes and companions, one step at a time, and what must never be seen of them."""

    def __init__(self) -> None:
        self.sequences = Sequences()
        self.makes: dict[str, Queued] = {}
        self.guides: dict[str, Queued] = {}
        self.open: list[Write] = []
        self.companions: dict[str, Queued] = {}
        self.submitted = 0
        self.ended = 0

    def put(self, uid: str, line: str, purpose: Purpose) -> None:
        # A binding is written anew only once what was to be written of it is over.
        if any(one.uid == uid for one in self.open):
            return
        write = Write(uid, line, purpose)
        self.open.append(write)
        self.submitted += 1
        self.sequences.put(write)

    def make(self) -> bool:
        if self.sequences.ready.empty():
            return False
        name = self.sequences.ready.get_nowait()
        assert name not in self.makes, "two at once in one sequence"
        queued = self.sequences.next(name)
        assert queued.first is not None, "made before what comes first"
        if queued.write.purpose is Purpose.ADMIT and not queued.is_over:
            assert self.companions[queued.write.uid] is queued, "another's companion was the last"
            assert queued.write.uid not in self.guides, "a companion may still change"
        self.makes[name] = queued
        return True

    def made(self, goes_on: bool) -> bool:
        name = next(iter(self.makes), None)
        if name is None:
            return False
        queued = self.makes.pop(name)
        if not queued.is_over:
            self._over(queued.write)
        for dropped in self.sequences.made(name, goes_on=goes_on or queued.is_over):
            self._over(dropped)
        return True

    def guide(self) -> bool:
        if self.sequences.firsts.empty():
            return False
        queued = self.sequences.firsts.get_nowait()
        if self.sequences.begin(queued):
            assert queued.write.uid not in self.guides
            self.guides[queued.write.uid] = queued
        return True

    def guided(self, wanted: bool) -> bool:
        uid = next(iter(self.guides), None)
        if uid is None:
            return False
        queued = self.guides.pop(uid)
        self.companions[uid] = queued
        if queued.is_over:
            self.sequences.begun(queued, None)
        elif wanted:
            self.sequences.begun(queued, First(Companion(uid, {})))
        else:
            # It is told at once that it is not wanted, and may be submitted again.
            queued.is_over = True
            self._over(queued.write)
            self.sequences.begun(queued, NOTHING)
        return True

    def _over(self, write: Write) -> None:
        self.open.remove(write)
        self.ended += 1


def steps() -> st.SearchStrategy[list[tuple[str, str, str, bool]]]:
    return st.lists(
        st.tuples(
            st.sampled_from(("admit", "kick", "make", "made", "guide", "guided")),
            st.sampled_from(UIDS),
            st.sampled_from(LINES),
            st.booleans(),
        ),
        max_size=60,
    )


def _play(played: Played, drawn: list[tuple[str, str, str, bool]]) -> Iterator[None]:
    for what, uid, line, is_well in drawn:
        match what:
            case "admit":
                played.put(uid, line, Purpose.ADMIT)
            case "kick":
                played.put(uid, uid, Purpose.KICK)
            case "make":
                played.make()
            case "made":
                played.made(is_well)
            case "guide":
                played.guide()
            case _:
                played.guided(is_well)
        yield


@given(steps())
def test_each_is_made_or_dropped_once_behind_its_own_companion_and_nobody_waits_for_ever(
    drawn: list[tuple[str, str, str, bool]],
) -> None:
    played = Played()
    for _ in _play(played, drawn):
        assert len(played.sequences) >= len(played.open)
    while played.guide() or played.guided(True) or played.make() or played.made(True):
        pass
    assert (len(played.sequences), played.open, played.ended) == (0, [], played.submitted)
