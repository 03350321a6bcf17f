"""From the outline that a kind gives to the gang, by what annotations add.

One order of precedence for all kinds. Whether the pods are a gang, and how many must start together, is said
by ``fairway.dev/gang``, else by the kind, else by PodGroups, else by any topology, because pods that are to
be near each other are meant to run together.
"""

from dataclasses import replace

from fairway.workloads.fields import MAX_COUNT, Problems
from fairway.workloads.gang import Gang, TopologyMode, TopologyRequest
from fairway.workloads.minimums import shared_minimum
from fairway.workloads.outline import ANNOTATIONS, Binding, Outline
from fairway.workloads.own import GANG, own_together
from fairway.workloads.placement import placement
from fairway.workloads.pod_groups import group_minimum


def annotated(kind: str, outline: Outline) -> Gang:
    """The gang that the outline and the annotations on workload and templates state together."""
    problems = outline.problems
    where = placement(outline, problems)
    together = _minimums(outline, where.is_asked, problems)
    minimums = together or tuple(min(1, pod_set.count) for pod_set in outline.pod_sets)
    gang = Gang(
        kind,
        outline.meta.namespace,
        outline.meta.name,
        pod_sets=tuple(
            replace(pod_set, minimum=minimum, topology=topology)
            for pod_set, minimum, topology in zip(outline.pod_sets, minimums, where.by_set, strict=True)
        ),
        is_gang=together is not None,
        copies=outline.copies,
        topology=where.whole,
        problems=tuple(problems),
    )
    return _as_copies(gang)


def _minimums(outline: Outline, is_placed: bool, problems: Problems) -> tuple[int, ...] | None:
    """How many pods of each set must start together; None where the pods are independent."""
    own = _own_together(outline, problems)
    if own is not None:
        return _share(outline, own, GANG, problems)
    kinds_own = tuple(pod_set.minimum for pod_set in outline.pod_sets)
    if outline.binding is Binding.ALWAYS:
        return kinds_own
    only, notes, _ = next(outline.by_set())
    labels = only.template.metadata.labels or {}
    grouped = group_minimum(outline.annotations, labels, notes, outline.fields[0], problems)
    if grouped is not None:
        return _share(outline, grouped, "the minimum of the pod group", problems)
    return kinds_own if is_placed else None


def _own_together(outline: Outline, problems: Problems) -> int | None:
    said = own_together(outline.annotations, ANNOTATIONS, problems)
    if len(outline.pod_sets) > 1:
        problems.extend(
            f"{field}[{GANG}]: expected on the workload where it has several; ignored"
            for _, notes, field in outline.by_set()
            if GANG in notes
        )
        return said
    if said is not None:
        return said
    _, notes, field = next(outline.by_set())
    return own_together(notes, field, problems)


def _share(outline: Outline, total: int, source: str, problems: Problems) -> tuple[int, ...] | None:
    """The minimums that share a total; a total of 0 or 1 binds nothing together."""
    if total <= 1:
        return None
    counts = [pod_set.count for pod_set in outline.pod_sets]
    if sum(counts) < total < MAX_COUNT:
        problems.append(f"{source}: {total} of {sum(counts)} pods; read as all of them")
    return shared_minimum(total, counts, [0] * len(counts))


def _as_copies(gang: Gang) -> Gang:
    """Runs of a single pod set that own a domain each are as many copies of one run, needed together."""
    if len(gang.pod_sets) != 1 or gang.copies != 1 or gang.topology is not None:
        return gang
    only = gang.pod_sets[0]
    asked = only.topology
    if asked is None or asked.mode is not TopologyMode.EXCLUSIVE or only.minimum < only.count:
        return gang
    size = asked.slice_size or only.count
    if size == 0 or only.count % size:
        return gang
    copies = only.count // size
    return replace(
        gang,
        pod_sets=(replace(only, count=size, minimum=size, topology=None),),
        copies=copies,
        topology=TopologyRequest(TopologyMode.EXCLUSIVE, asked.level),
        copies_together=copies > 1,
    )
