"""``python -m tests.truth.guided --each 20``: how many gangs a real kube-scheduler makes whole, told or not.

With etcd, kube-apiserver and kube-scheduler in KUBEBUILDER_ASSETS. ``--as-they-come``: the scheduler takes
each pod when it is made; else those of a gang wait until all are there, as where it is busy. ``--sets N``
releases sets of 19 kinds at once, of each as many as fit into a cluster of N nodes.
"""

import argparse
import logging
import sys
from collections.abc import Sequence

from tests.envtest import assets
from tests.truth.gangs import crowded, tight
from tests.truth.guiding import Way
from tests.truth.kinds import KINDS
from tests.truth.whole import Outcome, outcomes

_SUITES = "ABC"
_MOST_SETS = 200


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.truth.guided", description=__doc__)
    parser.add_argument("--each", type=int, default=20, metavar="N", help="how many gangs of each suite")
    parser.add_argument("--sets", type=int, default=0, metavar="N", help="nodes; sets instead of gangs")
    parser.add_argument("--as-they-come", action="store_true")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    programs = assets("kube-scheduler")
    if programs is None:
        print("no kube-scheduler in KUBEBUILDER_ASSETS")
        return 2
    groups, most = tuple(_SUITES.lower()), 1
    fleets = [fleet for suite in _SUITES for fleet in tight(suite, asked.each)]
    if asked.sets:
        groups, most = ("kind",), _MOST_SETS
        fleets = list(crowded(KINDS, asked.sets))
    found = outcomes(programs, fleets, list(Way), most=most, waits=not asked.as_they_come)
    for way in Way:
        row = [_whole([one for one in found if one.way is way and one.fleet.startswith(g)]) for g in groups]
        print(f"{way:<18}", *(f"{cell:>10}" for cell in row))
    for one in found:
        if one.way is Way.GUIDED and one.whole < one.promised:
            print(f"{one.fleet}: {one.whole} of {one.promised} whole, {one.told} told:", *one.waiting)
    return 0


def _whole(found: Sequence[Outcome]) -> str:
    return f"{sum(one.whole for one in found)} of {sum(one.promised for one in found)}"


if __name__ == "__main__":
    sys.exit(main())
