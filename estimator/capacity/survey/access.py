"""Which nodes take pods of devices at all: cordons and taints, as far as they are known without asking a pod.

A taint named after an accelerator keeps off pods without devices, and pods of the device tolerate it where
admission lets them: whether it does is `estimator.fit.device_tolerations`' to say. All other taints are taken
at their word, since what pods tolerate is not known in advance, unless the administrator says so. A cordon is
no taint here: devices on cordoned nodes are not free at all.
"""

from collections.abc import Iterable

import numpy as np

from estimator.cluster.columns import BoolVector, NodeColumns
from estimator.fit.device_tolerations import TolerationPolicy
from fairway.accelerators.catalogue import Catalogue
from fairway.resources import is_extended
from fairway.taints import NO_SCHEDULE, UNSCHEDULABLE, Taint, Toleration

_CONDITION_PREFIX = "node.kubernetes.io/"


class Access:
    """The cordons and taints of one cluster's nodes, seen by pods of devices.

    ``tolerations``: what these pods are known to tolerate beyond taints named after devices. ``policy``: for
    which devices admission adds tolerations; without it, for all.
    """

    def __init__(
        self,
        columns: NodeColumns,
        catalogue: Catalogue,
        tolerations: Iterable[Toleration] = (),
        policy: TolerationPolicy | None = None,
    ) -> None:
        tolerations, names = tuple(tolerations), frozenset(columns.resource_names)
        codes, sets = columns.taint_codes, columns.taint_sets
        found = np.unique(codes[columns.present]).tolist()
        assumed = policy.assumed if policy is not None else frozenset()
        self.assumed: tuple[str, ...] = tuple(
            sorted(
                {t.key for code in found for t in sets[code] if _is_for_devices(t, names, catalogue)}
                & assumed
            )
        )
        """Devices whose taints stand on nodes and are assumed, not known, to be tolerated by their pods."""
        self._blocking: dict[int, Taint] = {}
        for code in found:
            blocking = [
                taint
                for taint in sets[code]
                if taint != UNSCHEDULABLE
                and not (
                    _is_for_devices(taint, names, catalogue) and (policy is None or taint.key in policy.added)
                )
                and not any(toleration.tolerates(taint) for toleration in tolerations)
            ]
            if blocking:
                # What Kubernetes says about the node's state matters more than whom the node is for.
                self._blocking[code] = min(blocking, key=lambda taint: (not is_condition(taint), taint))
        self._codes = codes
        self.open: BoolVector = columns.present & ~np.isin(
            codes, [code for code in found if UNSCHEDULABLE in sets[code]]
        )
        """Rows that are not cordoned."""
        self.usable: BoolVector = self.open & ~np.isin(codes, list(self._blocking))
        """Rows that take pods of devices."""

    def taint(self, row: int) -> Taint | None:
        """The taint that keeps pods of devices off the row, None where nothing or only a cordon does."""
        return self._blocking.get(int(self._codes[row]))


def is_condition(taint: Taint) -> bool:
    """Whether Kubernetes itself states a condition of the node with it, such as not being ready."""
    return taint.key.startswith(_CONDITION_PREFIX)


def _is_for_devices(taint: Taint, advertised: frozenset[str], catalogue: Catalogue) -> bool:
    """Whether the taint is named after an accelerator, one that the catalogue or any node knows."""
    if taint.effect != NO_SCHEDULE or not is_extended(taint.key):
        return False
    entry = catalogue.lookup(taint.key)
    return entry.is_accelerator if entry is not None else taint.key in advertised
