"""A cluster's objects as the mirror that an estimator would have of it, filled at once."""

from estimator.cluster.filling import fill
from estimator.cluster.mirror import ClusterMirror
from fairway.accelerators.schemes import SCHEMES
from fairway.kube.dumps import Dump
from fairway.kube.resource_slices import ResourceClaim, ResourceSlice


def mirror_of(dump: Dump) -> tuple[ClusterMirror, tuple[str, ...]]:
    """The mirror, and a sentence for each object that could not be read whole."""
    problems = [str(problem) for problem in dump.problems]

    def report(resource: str, key: str, problem: str) -> None:
        problems.append(f"{resource} {key}: {problem}")

    mirror = ClusterMirror(report, SCHEMES)
    for _ in fill(mirror, dump):
        pass
    if dump.nodes and not dump.pods:
        problems.append("there are nodes but no pods: every node counts as empty")
    if dump.of(ResourceSlice) and not dump.of(ResourceClaim):
        problems.append("there are ResourceSlices but no ResourceClaims: every device of them counts as free")
    return mirror, tuple(problems)
