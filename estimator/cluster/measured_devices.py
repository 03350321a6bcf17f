"""What a cluster's Prometheus last told of each node's devices, for nodes that no agent writes about.

Each node's word holds until it has not been repeated for ten minutes: an exporter that is missed for a while,
or a Prometheus that is away, leaves things as they were, and one that stays away is not believed for ever.
"""

from collections.abc import Callable, Mapping

from estimator.cluster.device_reports import DeviceReport
from fairway.usage.definitions import THRESHOLDS

STALE_AFTER_S = float(THRESHOLDS.stale_s)
_GONE = (
    f"Prometheus has told nothing of its devices for {STALE_AFTER_S / 60:.0f} minutes: is the exporter "
    "running? Not heeded any more"
)


class MeasuredDevices:
    """The last word on each node. ``changed`` is told of a node whose word is another one from now on."""

    def __init__(self, changed: Callable[[str], None], report: Callable[[str, str, str], None]) -> None:
        self._changed = changed
        self._report = report
        self._said: dict[str, DeviceReport] = {}
        self._at_s: dict[str, float] = {}
        self._now_s: float | None = None

    def on(self, node: str) -> DeviceReport | None:
        """What is to be heeded of the node; None for nothing."""
        return self._said.get(node)

    def said(self) -> Mapping[str, DeviceReport]:
        """All that is to be heeded, by node; the caller's own."""
        return dict(self._said)

    def hear(self, node: str, report: DeviceReport) -> None:
        """Prometheus says this of the node now."""
        self._at_s[node] = self._now_s or 0.0
        if self._said.get(node) != report:
            self._said[node] = report
            self._changed(node)

    def tick(self, now_s: float) -> None:
        """It is now so late, by a clock that only goes on: what is too old is told and dropped."""
        if self._now_s is None:
            # What was heard before anybody knew how late it was is news.
            self._at_s = dict.fromkeys(self._at_s, now_s)
        self._now_s = now_s
        oldest_s = now_s - STALE_AFTER_S
        gone = sorted(node for node, at_s in self._at_s.items() if at_s < oldest_s)
        for node in gone:
            del self._at_s[node], self._said[node]
            self._changed(node)
        if gone:
            others = f"; the same of {len(gone) - 1} others" if len(gone) > 1 else ""
            self._report("prometheus", gone[0], _GONE + others)
