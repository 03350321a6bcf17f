"""A report in one sentence: what is free, what of it is of no use, what idles, the largest gang."""

from dataclasses import replace

from admin.document import Report
from admin.fleet import FleetProduct, fleet, split
from admin.printable import printable
from fairway.usage.definitions import idle_time
from fairway.usage.groups import Group, added

_GPU = ("gpu", "/mig-")


def with_headline(report: Report) -> Report:
    """The report, saying itself in a sentence."""
    return replace(report, headline=headline(report))


def headline(report: Report) -> str:
    """``929 of 6,212 GPUs free, 202 stranded, 11 allocated and idle for an hour; largest gang 55 x 8 in g2``.

    Empty where there is no device. Idle is left out where nothing was measured.
    """
    products = fleet(report.summaries)
    if not products:
        return ""
    total = sum(product.total.total for product in products)
    free = sum(product.total.free for product in products)
    stranded = sum(split(product.total).stranded for product in products)
    said = [f"{free:,} of {total:,} {_noun(products)} free", f"{stranded:,} stranded"]
    held = added((), (cluster.usage.total for cluster in report.clusters if cluster.usage))
    if held.measured_milli:
        said.append(_idle(held))
    return f"{', '.join(said)}{_gang(products)}"


def _idle(held: Group) -> str:
    rest = (held.allocated_milli - held.measured_milli) // 1000
    unknown = f" ({rest:,} not measured)" if rest else ""
    return f"{held.idle_milli // 1000:,} allocated and idle for {idle_time()}{unknown}"


def _noun(products: tuple[FleetProduct, ...]) -> str:
    gpus = all(any(mark in product.total.resource for mark in _GPU) for product in products)
    return "GPUs" if gpus else "devices"


def _gang(products: tuple[FleetProduct, ...]) -> str:
    """The largest gang in any cluster, of the largest pods of which any fit."""
    gangs = [gang for product in products for gang in product.best_gangs if gang.pods]
    best = max(gangs, key=lambda gang: (gang.devices, gang.pods), default=None)
    if best is None:
        return ""
    return f"; largest gang {best.pods:,} x {best.devices} in {printable(best.domain, 32)}"
