"""The mirror of one member cluster: typed objects in, columns and indexes out, changed in place per event.

It has one writer, the cluster's source, and all of it happens on the event loop; answers read it there, or
read a copy elsewhere. Objects may come in any order and more than once: equal objects, equal mirror.
"""

from collections.abc import Iterable

from estimator.cluster.admission import AdmissionMirror
from estimator.cluster.columns import NodeColumns
from estimator.cluster.dra_mirror import DraMirror
from estimator.cluster.node_devices import NodeDevicesMirror
from estimator.cluster.nodes import NodeMirror
from estimator.cluster.pods import PodMirror
from estimator.cluster.priorities import PriorityClassMirror
from estimator.cluster.quotas import QuotaMirror
from estimator.cluster.report import Report
from estimator.cluster.topologies import TopologyMirror
from estimator.cluster.volumes import VolumesMirror
from estimator.cluster.workloads import Controllers
from fairway.accelerators.devices import Scheme
from fairway.accelerators.schemes import SCHEMES
from fairway.dra.selection import Compile


class ClusterMirror:
    """Everything an estimator knows of one member cluster."""

    def __init__(
        self, report: Report, schemes: Iterable[Scheme] = SCHEMES, compile_selector: Compile | None = None
    ) -> None:
        self.written_at_s: float | None = None
        """When the file that it was read from was written, in seconds since the epoch; None of live ones."""
        self.columns = NodeColumns(schemes, compile_selector)
        self.controllers = Controllers(report)
        self.node_devices = NodeDevicesMirror(
            self.columns,
            lambda pod, uid, node: self.pods.held_on(pod, uid, node),
            lambda pod, uid, node: self.pods.opened_on(pod, uid, node),
            report,
        )
        self.nodes = NodeMirror(self.columns, self.node_devices, report)
        self.admission = AdmissionMirror(report)
        self.pods = PodMirror(
            self.columns, self.controllers, self.admission.device_tolerations, self.node_devices, report
        )
        self.quotas = QuotaMirror(report)
        self.topologies = TopologyMirror(report)
        self.dra = DraMirror(self.columns.dra, report)
        self.volumes = VolumesMirror(report)
        self.priority_classes = PriorityClassMirror(report)
