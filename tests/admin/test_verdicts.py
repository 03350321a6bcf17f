"""The words of verdicts."""

import pytest

from admin.document import Failure
from admin.verdicts import FORMAT, Verdicts, Word, is_sure, risk, sentence, unheard_of, word
from estimator.capacity.gangs.placements import ClusterExplanation, ClusterPlacement
from estimator.reasons import Reason


def placement(fits: int, bound: int, *kinds: str, spread: int | None = None) -> ClusterPlacement:
    reasons = tuple(Reason(kind, kind) for kind in kinds)
    return ClusterPlacement("c", fits, bound, fits == bound, spread, reasons=reasons)


@pytest.mark.parametrize(
    ("found", "wanted", "said", "text", "sure"),
    [
        (placement(1, 9), 1, Word.FITS, "fits", True),
        (placement(4, 4), 4, Word.FITS, "fits all 4", True),
        (placement(2, 2, "insufficient"), 4, Word.SHORT, "short by 2 of 4", True),
        (placement(2, 5, "insufficient"), 4, Word.SHORT, "short by 2 of 4", False),
        (placement(0, 0, "insufficient"), 1, Word.NOT_NOW, "does not fit now", True),
        (placement(0, 3, "insufficient"), 1, Word.NOT_NOW, "does not fit now", False),
        (placement(0, 0, "topology", "never_fits"), 1, Word.NEVER, "never fits", True),
        (placement(0, 0, "never_fits", "taint"), 1, Word.NEVER, "never fits", True),
        (placement(0, 0, "unknown_level"), 1, Word.NEVER, "never fits", True),
        (placement(0, 0, "topology", "insufficient"), 1, Word.TOPOLOGY, "no domain holds it now", True),
        (placement(0, 0, "slices_in_use"), 1, Word.TOPOLOGY, "no domain holds it now", True),
        (placement(0, 0, "doubt"), 1, Word.UNKNOWN, "not known", False),
    ],
)
def test_a_verdict_in_a_word(found: ClusterPlacement, wanted: int, said: Word, text: str, sure: bool) -> None:
    assert (word(found, wanted), sentence(found, wanted), is_sure(found, wanted)) == (said, text, sure)


def test_risk_is_what_a_spreading_scheduler_would_leave_out() -> None:
    assert "would place 1 of 3 copies whole" in risk(placement(3, 3, spread=1))
    assert "would place 0 of 1 copy whole" in risk(placement(1, 1, spread=0))
    assert risk(placement(3, 3, spread=3)) == ""
    assert risk(placement(3, 3)) == ""


@pytest.mark.parametrize(
    ("clusters", "named"),
    [("ab", "a, b"), ("abcdefgh", "a, b, c, d, e, f and 2 more")],
)
def test_what_nobody_has_is_told_with_all_who_say_the_same(clusters: str, named: str) -> None:
    says = {**dict.fromkeys(clusters, "no rack here"), "z": "no block here"}
    found = tuple(
        ClusterExplanation(
            ClusterPlacement(cluster, 0, 0, True, reasons=(Reason("unknown_level", f"never fits: {text}"),))
        )
        for cluster, text in says.items()
    )
    verdicts = Verdicts(FORMAT, "", "", "x", 1, {}, found)
    assert unheard_of(verdicts) == f"no cluster has that\n{named}: no rack here\nz: no block here"


def test_all_clusters_together() -> None:
    def verdicts(*found: ClusterPlacement, failures: tuple[Failure, ...] = ()) -> Verdicts:
        words = {str(n): word(each, 1) for n, each in enumerate(found)}
        clusters = tuple(ClusterExplanation(each) for each in found)
        return Verdicts(FORMAT, "", "", "x", 1, words, clusters, failures)

    no, yes, unknown = placement(0, 0), placement(1, 1), placement(0, 0, "doubt")
    assert verdicts(no, yes).fits_somewhere
    assert not verdicts(no).fits_somewhere
    assert verdicts(no).all_known
    assert not verdicts(no, unknown).all_known
    assert not verdicts(no, failures=(Failure("d", "s", "p"),)).all_known
