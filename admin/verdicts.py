"""Whether a workload fits a cluster, in the words of people and scripts; and all clusters' answers together.

The answers themselves are values of `estimator.capacity.gangs.placements`, whether they were worked out
here from a dump or came from an estimator.
"""

from dataclasses import dataclass
from enum import StrEnum

from admin.document import Failure
from admin.printable import counted, printable
from estimator.capacity.gangs.placements import ClusterExplanation, ClusterPlacement

FORMAT = "fairway-verdicts/1"

DOUBT, NEVER, NO_PRODUCT = "doubt", "never_fits", "no_product"
"""The kinds of the reasons that decide a verdict by themselves."""

_NO_LEVEL = frozenset({"unknown_level", "ambiguous_level"})
_NOT_HERE = frozenset({NO_PRODUCT, "unknown_level"})
_LEFT_OUT = frozenset({"not_known", "either_way", "template"})
_TOPOLOGY = frozenset({"topology", "exclusive", "slices_in_use", "broken_slices"})


class Word(StrEnum):
    """The verdict in a word.

    ``FITS``: as many copies as wanted. ``SHORT``: some copies, fewer than wanted. ``NOT_NOW``: none, for
    want of room. ``TOPOLOGY``: none, for want of a domain or slice that holds one. ``NEVER``: none even if
    the nodes were empty. ``UNKNOWN``: the true number is not known.
    """

    FITS = "fits"
    SHORT = "short"
    NOT_NOW = "not-now"
    TOPOLOGY = "topology"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What one run of ``fairway explain`` has found; clusters and failures in order of name.

    ``workload`` says what was asked about, ``wanted`` how many copies of it; ``words`` is the verdict by
    cluster; ``notes`` is what of the workload could not be understood, where the minimum fits with
    which it may start, and where nothing is in its namespace.
    """

    format: str
    made_at: str
    release: str
    workload: str
    wanted: int
    words: dict[str, Word]
    clusters: tuple[ClusterExplanation, ...]
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fits_somewhere(self) -> bool:
        """Whether any one cluster holds as many copies as wanted."""
        return Word.FITS in self.words.values()

    @property
    def all_known(self) -> bool:
        """Whether every cluster was read and none is in doubt."""
        return not self.failures and Word.UNKNOWN not in self.words.values()


def unheard_of(verdicts: Verdicts) -> str:
    """What no cluster has heard of, a product or a level, with what each has; empty where any one has it.

    A cluster that could not be read may have it.
    """
    told: dict[str, list[str]] = {}
    for one in verdicts.clusters:
        text = next((reason.text for reason in one.placement.reasons if reason.kind in _NOT_HERE), "")
        if not text:
            return ""
        told.setdefault(text.removeprefix("never fits: "), []).append(one.placement.cluster)
    if verdicts.failures or not told:
        return ""
    said = [f"{listed(clusters)}: {text}" for text, clusters in told.items()]
    more = f"\nand {len(said) - _MOST_TOLD:,} more answers" if len(said) > _MOST_TOLD else ""
    return "no cluster has that\n" + "\n".join(printable(one, 400) for one in said[:_MOST_TOLD]) + more


def listed(clusters: list[str]) -> str:
    """Names of clusters for people, not endless."""
    more = len(clusters) - _MOST_TOLD
    return ", ".join(clusters[:_MOST_TOLD]) + (f" and {more:,} more" if more > 0 else "")


_MOST_TOLD = 6


def word(placement: ClusterPlacement, wanted: int) -> Word:
    """The verdict on a cluster where so many copies are wanted."""
    kinds = {reason.kind for reason in placement.reasons}
    if DOUBT in kinds:
        return Word.UNKNOWN
    if placement.fits >= wanted:
        return Word.FITS
    if placement.fits > 0:
        return Word.SHORT
    if kinds & {NEVER, NO_PRODUCT} or kinds & _NO_LEVEL:
        return Word.NEVER
    return Word.TOPOLOGY if kinds & _TOPOLOGY else Word.NOT_NOW


def sentence(placement: ClusterPlacement, wanted: int) -> str:
    """The verdict for people, such as ``short by 2 of 4``."""
    match word(placement, wanted):
        case Word.FITS:
            return "fits" if wanted == 1 else f"fits all {wanted:,}"
        case Word.SHORT:
            return f"short by {wanted - placement.fits:,} of {wanted:,}"
        case Word.NOT_NOW:
            return "does not fit now"
        case Word.TOPOLOGY:
            return "no domain holds it now"
        case Word.NEVER:
            return "never fits"
        case Word.UNKNOWN:
            return "not known"


def is_sure(placement: ClusterPlacement, wanted: int) -> bool:
    """Whether the verdict is proven: by a placement where it fits, by a bound where it does not.

    A placement that leaves something out proves nothing; a bound still does, as that only makes fewer fit.
    """
    if word(placement, wanted) is Word.UNKNOWN:
        return False
    if placement.upper_bound < wanted:
        return True
    return placement.fits >= wanted and _LEFT_OUT.isdisjoint(reason.kind for reason in placement.reasons)


def risk(placement: ClusterPlacement) -> str:
    """What may go wrong although it fits, empty where nothing is known to."""
    spread = placement.spread_fits
    if spread is None or spread >= placement.fits:
        return ""
    return (
        f"a kube-scheduler that spreads pods one at a time would place {spread} of "
        f"{copies(placement.fits)} whole: a gang may get stuck half-way"
    )


def copies(count: int) -> str:
    """``1 copy``, ``2 copies``."""
    return counted(count, "copy") if count == 1 else f"{count:,} copies"
