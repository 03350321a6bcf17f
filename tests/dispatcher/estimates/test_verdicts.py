"""For how long an answer holds."""

from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.verdicts import FIRST_REFUSAL_MS, FITS_MS, MAX_REFUSAL_MS, Verdicts

M1, M2 = frozenset({"m1"}), frozenset({"m2"})


def test_an_answer_holds_until_its_time_is_up() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(2, M1), M1, 0)
    assert verdicts.get("q", FITS_MS - 1) == Verdict(2, M1)
    assert verdicts.current(FITS_MS) == {}
    assert verdicts.next_due_ms() is None


def test_each_admission_takes_one_and_the_last_takes_the_answer() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(2, M1), M1, 0)
    verdicts.admitted("q")
    assert verdicts.get("q", 1) == Verdict(1, M1)
    verdicts.admitted("q")
    assert verdicts.get("q", 1) is None
    verdicts.admitted("q")


def test_an_admission_makes_other_answers_about_its_clusters_void() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(5, M1), M1, 0)
    verdicts.put("same", Verdict(5, M1 | M2), M1 | M2, 0)
    verdicts.put("other", Verdict(5, M2), M2, 0)
    verdicts.put("refused", Verdict(0), M1, 0)
    verdicts.admitted("q")
    assert verdicts.current(1).keys() == {"q", "other", "refused"}


def test_room_makes_refusals_void_where_it_appears() -> None:
    verdicts = Verdicts()
    verdicts.put("here", Verdict(0), M1, 0)
    verdicts.put("there", Verdict(0), M2, 0)
    verdicts.put("fits", Verdict(1, M1), M1, 0)
    verdicts.room_given(M1)
    assert verdicts.current(1).keys() == {"there", "fits"}


def test_what_is_refused_again_and_again_is_asked_less_often_until_room_appears() -> None:
    verdicts = Verdicts()
    now_ms, pauses = 0, []
    for _ in range(8):
        verdicts.put("q", Verdict(0), M1, now_ms)
        due_ms = verdicts.next_due_ms()
        assert due_ms is not None
        pauses.append(due_ms - now_ms)
        now_ms = due_ms
        verdicts.current(now_ms)
    assert pauses[:3] == [FIRST_REFUSAL_MS, 2 * FIRST_REFUSAL_MS, 4 * FIRST_REFUSAL_MS]
    assert pauses[-1] == MAX_REFUSAL_MS
    verdicts.put("q", Verdict(0), M1, now_ms)
    verdicts.room_given(M1)
    verdicts.put("q", Verdict(0), M1, now_ms)
    assert verdicts.next_due_ms() == now_ms + FIRST_REFUSAL_MS


def test_questions_that_nobody_asks_are_forgotten() -> None:
    verdicts = Verdicts()
    verdicts.put("q", Verdict(0), M1, 0)
    verdicts.current(MAX_REFUSAL_MS)
    verdicts.retain(())
    verdicts.put("q", Verdict(0), M1, 100_000)
    assert verdicts.next_due_ms() == 100_000 + FIRST_REFUSAL_MS
    assert len(verdicts) == 1
