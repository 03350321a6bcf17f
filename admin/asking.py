"""What is asked about: a workload from a file, the same everywhere, or a shape that each cluster reads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from admin.elastic_file import minimum_in
from admin.shape import Shape
from admin.shape_gang import gang_in
from admin.workload_file import Workload
from estimator.capacity.summary import Summary
from fairway.accelerators.catalogue import Catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.gang import Gang, PodSet, TopologyMode, TopologyRequest
from queue_dispatcher.workloads.elastic import NO_MINIMUM, Minimum

_MODES: Mapping[TopologyMode, pb.Topology.Mode] = {
    TopologyMode.REQUIRED: pb.Topology.REQUIRED,
    TopologyMode.PREFERRED: pb.Topology.PREFERRED,
    TopologyMode.EXCLUSIVE: pb.Topology.EXCLUSIVE,
    TopologyMode.SLICED: pb.Topology.SLICED,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A workload, and how many copies of it are wanted.

    ``minimum``: with how many of its pods, which are the copies then, a queue starts it; none where it starts
    whole.
    """

    what: Workload | Shape
    copies: int
    minimum: Minimum = NO_MINIMUM

    @classmethod
    def of(cls, workload: Workload, copies: int = 0) -> "Asked":
        """A workload from a file; without ``copies``, as many as it wants itself."""
        gang, minimum = workload.gang, NO_MINIMUM
        if not gang.is_gang and len(gang.pod_sets) == 1:
            # Its pods are independent: what fits is a number of them, not all or none.
            (pods,) = gang.pod_sets
            gang = replace(
                gang, pod_sets=(replace(pods, count=1, minimum=1),), copies=gang.copies * pods.count
            )
            minimum = minimum_in(workload.raw_json)
        return cls(replace(workload, gang=gang), copies or max(1, gang.copies), minimum)

    def __str__(self) -> str:
        return str(self.what)

    @property
    def needs_summary(self) -> bool:
        """Whether a cluster must be known before the gang is."""
        return isinstance(self.what, Shape)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the workload could not be understood."""
        return (*self.what.gang.problems, *self.minimum.notes) if isinstance(self.what, Workload) else ()

    def gang(self, cluster: Summary, catalogue: Catalogue) -> Gang:
        """The gang in this cluster. Raises NotHere where the cluster lacks what the shape names."""
        return self.what.gang if isinstance(self.what, Workload) else gang_in(self.what, cluster, catalogue)

    def wire_gang(self, cluster: Summary | None, catalogue: Catalogue) -> pb.Gang:
        """The same on the wire; ``cluster`` may be None where `needs_summary` says so. Raises NotHere."""
        if isinstance(self.what, Workload) and self.what.gang.is_gang:
            return pb.Gang(workload_json=self.what.raw_json, copies=self.copies)
        gang = self.gang(cluster or Summary("", 0, 0), catalogue)
        return pb.Gang(
            namespace=gang.namespace,
            pod_sets=[_pod_set(pod_set) for pod_set in gang.pod_sets],
            topology=_topology(gang.topology),
            copies=self.copies,
        )


def _pod_set(pod_set: PodSet) -> pb.PodSet:
    return pb.PodSet(
        name=pod_set.name,
        count=pod_set.count,
        template_json=msgspec.json.encode(pod_set.template),
        topology=_topology(pod_set.topology),
    )


def _topology(request: TopologyRequest | None) -> pb.Topology | None:
    if request is None:
        return None
    return pb.Topology(mode=_MODES[request.mode], level=request.level, slice_size=request.slice_size)
