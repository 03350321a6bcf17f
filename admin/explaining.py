"""From sources to verdicts on one workload: live clusters and dumps are reckoned here, estimators asked."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from rich.console import Console

from admin.asking import Asked
from admin.estimates import Estimates
from admin.gathering import Gathered, gather
from admin.observing import Observed, observe
from admin.printable import timestamp
from admin.progress import Seen
from admin.remote import Tls, remote_explanations, remote_summaries
from admin.shape_gang import NoProduct, NotHere
from admin.sources import EstimatorSource, Source
from admin.verdicts import DOUBT, FORMAT, NEVER, NO_PRODUCT, Verdicts, listed, word
from estimator.capacity.gangs.placements import ClusterExplanation, ClusterPlacement
from estimator.capacity.summary import Summary
from estimator.reasons import Reason
from fairway.accelerators.catalogue import Catalogue
from fairway.kube.dumps import Dump
from fairway.kube.member_kinds import Namespace
from fairway.service.version import release

_NO_NAMESPACE = "namespace"


async def read_verdicts(
    sources: Sequence[Source],
    asked: Asked,
    estimates: Estimates,
    catalogue: Catalogue,
    tls: Tls,
    now: datetime,
    console: Console,
) -> Verdicts:
    """The verdict of every cluster; progress goes to ``console``."""

    async def read(source: Source, seen: Seen) -> Iterable[tuple[str, ClusterExplanation]]:
        if isinstance(source, EstimatorSource):
            found = await _asked_there(source, asked, catalogue, tls)
            return [(explanation.placement.cluster, explanation) for explanation in found]
        observed = await observe(source, seen)
        seen("searching")
        return [
            (observed.name, await asyncio.to_thread(explanation_in, observed, asked, estimates, catalogue))
        ]

    return as_verdicts(asked, await gather(sources, read, console), now)


def as_verdicts(asked: Asked, gathered: Gathered[ClusterExplanation], now: datetime) -> Verdicts:
    """All that was gathered, as verdicts given ``now`` (in UTC)."""
    placements = [explanation.placement for explanation in gathered.found]
    # A note, since the reasons of a cluster where all fits are not shown.
    notes = (
        f"{placement.cluster}: {reason.text}"
        for placement in placements
        for reason in placement.reasons
        if reason.kind == _NO_NAMESPACE
    )
    return Verdicts(
        FORMAT,
        timestamp(now),
        release(),
        str(asked),
        asked.copies,
        {placement.cluster: word(placement, asked.copies) for placement in placements},
        gathered.found,
        gathered.failures,
        (*asked.notes, *_of_minimum(asked, placements), *notes),
    )


def _of_minimum(asked: Asked, placements: Iterable[ClusterPlacement]) -> Iterator[str]:
    """Where a workload that may start with fewer pods could: the verdicts are about all of them."""
    least = asked.minimum.pods
    if not 0 < least < asked.copies:
        return
    roomy = [placement.cluster for placement in placements if placement.fits >= least]
    where = f"fit in {listed(roomy)}" if roomy else "fit in no cluster here"
    yield (
        f"{asked.minimum.by}: asked about with all of its {asked.copies:,} pods; a queue starts it with "
        f"{least:,} of them or more, and so many {where}"
    )


def explanation_in(
    observed: Observed, asked: Asked, estimates: Estimates, catalogue: Catalogue
) -> ClusterExplanation:
    """The verdict of one cluster whose objects are at hand."""
    if not asked.needs_summary:
        return estimates.explanation(
            observed, asked.gang(Summary(observed.name, 0, 0), catalogue), asked.copies
        )
    try:
        gang = asked.gang(estimates.summary(observed), catalogue)
    except NotHere as error:
        return _nothing(observed.name, _lacks(error), observed.age_s)
    found = estimates.explanation(observed, gang, asked.copies)
    if not gang.namespace or _is_known(gang.namespace, observed.dump):
        return found
    said = f"nothing here is in namespace {gang.namespace}, so that no quota or limit holds"
    reasons = (*found.placement.reasons, Reason(_NO_NAMESPACE, said))
    return replace(found, placement=replace(found.placement, reasons=reasons))


def _is_known(namespace: str, dump: Dump) -> bool:
    """Whether any object is in the namespace, or is that namespace; every cluster has ``default``."""
    return (
        namespace == "default"
        or any(found.metadata.name == namespace for found in dump.of(Namespace))
        or any(one.metadata.namespace == namespace for one in chain(dump.pods, *dump.others.values()))
    )


async def _asked_there(
    source: EstimatorSource, asked: Asked, catalogue: Catalogue, tls: Tls
) -> Sequence[ClusterExplanation]:
    if not asked.needs_summary:
        return await remote_explanations(source, tls, asked.wire_gang(None, catalogue))
    found: list[ClusterExplanation] = []
    for summary in await remote_summaries(source, tls):
        if summary.doubt and not summary.nodes:
            found.append(_nothing(summary.cluster, Reason(DOUBT, summary.doubt), summary.age_s))
            continue
        try:
            gang = asked.wire_gang(summary, catalogue)
        except NotHere as error:
            found.append(_nothing(summary.cluster, _lacks(error), summary.age_s))
        else:
            found += await remote_explanations(source, tls, gang, (summary.cluster,))
    return found


def _lacks(error: NotHere) -> Reason:
    return Reason(NO_PRODUCT if isinstance(error, NoProduct) else NEVER, str(error))


def _nothing(cluster: str, cause: Reason, age_s: float) -> ClusterExplanation:
    return ClusterExplanation(ClusterPlacement(cluster, 0, 0, True, reasons=(cause,), age_s=age_s))
