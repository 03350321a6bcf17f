"""A cluster's objects as the mirror that an estimator would have of it, filled at once."""

from estimator.cluster.mirror import ClusterMirror
from fairway.accelerators.schemes import SCHEMES
from fairway.kube.dumps import Dump


def mirror_of(dump: Dump) -> tuple[ClusterMirror, tuple[str, ...]]:
    """The mirror, and a sentence for each object that could not be read whole."""
    problems = [str(problem) for problem in dump.problems]

    def report(resource: str, key: str, problem: str) -> None:
        problems.append(f"{resource} {key}: {problem}")

    mirror = ClusterMirror(report, SCHEMES)
    _fill(mirror, dump)
    if dump.nodes and not dump.pods:
        problems.append("there are nodes but no pods: every node counts as empty")
    if dump.slices and not dump.claims:
        problems.append("there are ResourceSlices but no ResourceClaims: every device of them counts as free")
    return mirror, tuple(problems)


def _fill(mirror: ClusterMirror, dump: Dump) -> None:
    for node in dump.nodes:
        mirror.nodes.upsert(node)
    for pod in dump.pods:
        mirror.pods.upsert(pod)
    for quota in dump.quotas:
        mirror.quotas.upsert(quota)
    for topology in dump.topologies:
        mirror.topologies.upsert(topology)
    for device_class in dump.device_classes:
        mirror.dra.classes.upsert(device_class)
    for template in dump.claim_templates:
        mirror.dra.templates.upsert(template)
    for published in dump.slices:
        mirror.dra.slices.upsert(published)
    for claim in dump.claims:
        mirror.dra.claims.upsert(claim)
