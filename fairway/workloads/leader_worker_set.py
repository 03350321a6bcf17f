"""LeaderWorkerSet: groups of one leader and its workers; a replica is a whole group.

leaderworkerset.x-k8s.io/v1, LWS 0.10. Each group serves by itself, so a group is a gang and the replicas are
copies of it. Exclusive placement gives each group, or each subgroup of it, a whole topology domain.
"""

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import PodTemplate
from fairway.workloads.fields import ABSENT, RawCount, TemplateFields
from fairway.workloads.gang import TopologyMode, TopologyRequest
from fairway.workloads.levels import read_level
from fairway.workloads.outline import Outline

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_NAME_LABEL = "leaderworkerset.sigs.k8s.io/name"
_ROOT = "spec.leaderWorkerTemplate"
_LEADER = f"{_ROOT}.leaderTemplate"
_WORKERS = f"{_ROOT}.workerTemplate"


class _SubGroups(KubeStruct, frozen=True):
    sub_group_policy_type: str | None = None
    sub_group_size: RawCount = ABSENT


class _GroupFields(KubeStruct, frozen=True):
    leader_template: TemplateFields | None = None
    worker_template: TemplateFields | None = None
    size: RawCount = ABSENT
    sub_group_policy: _SubGroups | None = None


class GroupsFields(KubeStruct, frozen=True):
    """What Fairway looks at in a LeaderWorkerSetSpec."""

    replicas: RawCount = ABSENT
    leader_worker_template: _GroupFields | None = None


def read_leader_worker_set(of: Outline, spec: GroupsFields) -> None:
    """A LeaderWorkerSet. Raises Unreadable."""
    group = spec.leader_worker_template or _GroupFields()
    labels = {_NAME_LABEL: of.meta.name}
    leader = workers = of.template(group.worker_template, _WORKERS, labels)
    leader_field = _WORKERS
    if group.leader_template is not None:
        leader_field = _LEADER
        leader = of.template(group.leader_template, _LEADER, labels)
    size = max(1, of.count(group.size, f"{_ROOT}.size", 1))
    of.topology = _exclusive(of, EXCLUSIVE, 0)
    subgroups = _subgroups(of, group, size)
    if subgroups and subgroups.slice_size == size and of.topology is None:
        of.topology, subgroups = TopologyRequest(TopologyMode.EXCLUSIVE, subgroups.level), None
    if not _are_one(group, size, subgroups):
        of.add("leader", 1, leader, leader_field)
    _add_workers(of, group, workers, size, subgroups)
    of.copies = of.count(spec.replicas, "spec.replicas", 1)


def _are_one(group: _GroupFields, size: int, subgroups: TopologyRequest | None) -> bool:
    """Whether nothing tells the leader and its workers apart.

    Subgroups are runs of pods of one size. The leader is in the first one, which cannot be said of two sets
    at once, so that it stands alone unless it has the same template and the runs come out even.
    """
    each = subgroups.slice_size if subgroups else 0
    comes_out_even = each == 0 or (size % each == 0 and not _excludes_leader(group))
    return group.leader_template is None and comes_out_even


def _add_workers(
    of: Outline, group: _GroupFields, workers: PodTemplate, size: int, subgroups: TopologyRequest | None
) -> None:
    if _are_one(group, size, subgroups):
        of.add("main", size, workers, _WORKERS, topology=subgroups)
        return
    first = 0
    if subgroups and not _excludes_leader(group):
        of.problems.append(
            f"{_ROOT}.subGroupPolicy: the leader is not held to the domain of the first subgroup"
        )
        first = subgroups.slice_size - 1 if size % subgroups.slice_size == 0 else 0
    if first and subgroups:
        together = TopologyRequest(TopologyMode.EXCLUSIVE, subgroups.level)
        of.add("first-workers", first, workers, _WORKERS, topology=together)
    if size - 1 - first:
        of.add("worker", size - 1 - first, workers, _WORKERS, topology=subgroups)


def _subgroups(of: Outline, group: _GroupFields, size: int) -> TopologyRequest | None:
    """The domains of the subgroups; without the annotation subgroups are nothing but labels."""
    if SUBGROUP_EXCLUSIVE not in of.annotations:
        return None
    field = f"{_ROOT}.subGroupPolicy.subGroupSize"
    policy = group.sub_group_policy or _SubGroups()
    each = of.count(policy.sub_group_size, field, 0)
    in_runs = 1 <= each <= size and (
        (size - 1) % each == 0 or (size % each == 0 and not _excludes_leader(group))
    )
    if not in_runs:
        of.problems.append(
            f"{field}: {each} does not divide a group of {size} or its workers; read as one subgroup of all"
        )
        each = size
    return _exclusive(of, SUBGROUP_EXCLUSIVE, each)


def _excludes_leader(group: _GroupFields) -> bool:
    policy = group.sub_group_policy
    return policy is not None and policy.sub_group_policy_type == "LeaderExcluded"


def _exclusive(of: Outline, key: str, size: int) -> TopologyRequest | None:
    text = of.annotations.get(key)
    if text is None:
        return None
    level = read_level(text, f"metadata.annotations[{key}]", of.problems)
    return TopologyRequest(TopologyMode.EXCLUSIVE, level, size)
