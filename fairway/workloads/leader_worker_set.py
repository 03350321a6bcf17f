"""LeaderWorkerSet: groups of one leader and its workers; a replica is a whole group.

leaderworkerset.x-k8s.io/v1, LWS 0.10. Each group serves by itself, so a group is a gang and the replicas are
copies of it. Exclusive placement gives each group, or each subgroup of it, a whole topology domain.
"""

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import PodTemplate
from fairway.workloads.fields import (
    ABSENT,
    NO_META,
    Problems,
    RawCount,
    TemplateFields,
    WorkloadMeta,
    decode,
    read_count,
    template_at,
)
from fairway.workloads.gang import PodSet, TopologyMode, TopologyRequest
from fairway.workloads.levels import read_level
from fairway.workloads.outline import Binding, Outline

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


class _Spec(KubeStruct, frozen=True):
    replicas: RawCount = ABSENT
    leader_worker_template: _GroupFields | None = None


class _LeaderWorkerSet(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_LeaderWorkerSet)


def read_leader_worker_set(raw: bytes, problems: Problems) -> Outline:
    """A LeaderWorkerSet. Raises Unreadable."""
    found = decode(_DECODER, raw)
    meta = found.metadata or NO_META
    spec = found.spec or _Spec()
    group = spec.leader_worker_template or _GroupFields()
    labels = {_NAME_LABEL: meta.name}
    leader = workers = template_at(group.worker_template, _WORKERS, labels)
    leader_field = _WORKERS
    if group.leader_template is not None:
        leader_field = _LEADER
        leader = template_at(group.leader_template, _LEADER, labels)
    size = max(1, read_count(group.size, f"{_ROOT}.size", 1, problems))
    whole = _exclusive(meta, EXCLUSIVE, 0, problems)
    subgroups = _subgroups(group, meta, size, problems)
    if subgroups and subgroups.slice_size == size and whole is None:
        whole, subgroups = TopologyRequest(TopologyMode.EXCLUSIVE, subgroups.level), None
    pod_sets = _pod_sets(group, leader, workers, size, subgroups, problems)
    return Outline(
        meta,
        Binding.ALWAYS,
        pod_sets,
        tuple(leader_field if pod_set.name == "leader" else _WORKERS for pod_set in pod_sets),
        read_count(spec.replicas, "spec.replicas", 1, problems),
        whole,
    )


def _pod_sets(
    group: _GroupFields,
    leader: PodTemplate,
    workers: PodTemplate,
    size: int,
    subgroups: TopologyRequest | None,
    problems: Problems,
) -> tuple[PodSet, ...]:
    """The leader and its workers, or one set of both where nothing tells them apart.

    Subgroups are runs of pods of one size. The leader is in the first one, which cannot be said of two sets
    at once, so that it stands alone unless it has the same template and the runs come out even.
    """
    each = subgroups.slice_size if subgroups else 0
    if group.leader_template is None and (each == 0 or (size % each == 0 and not _excludes_leader(group))):
        return (PodSet("main", size, size, workers, subgroups),)
    if each and not _excludes_leader(group):
        problems.append(f"{_ROOT}.subGroupPolicy: the leader is not held to the domain of the first subgroup")
    first = each - 1 if each and size % each == 0 and not _excludes_leader(group) else 0
    rest = size - 1 - first
    together = TopologyRequest(TopologyMode.EXCLUSIVE, subgroups.level) if subgroups else None
    sets = (
        PodSet("leader", 1, 1, leader),
        PodSet("first-workers", first, first, workers, together),
        PodSet("worker", rest, rest, workers, subgroups),
    )
    return tuple(pod_set for pod_set in sets if pod_set.count or pod_set.name == "leader")


def _subgroups(
    group: _GroupFields, meta: WorkloadMeta, size: int, problems: Problems
) -> TopologyRequest | None:
    """The domains of the subgroups; without the annotation subgroups are nothing but labels."""
    if SUBGROUP_EXCLUSIVE not in (meta.annotations or {}):
        return None
    field = f"{_ROOT}.subGroupPolicy.subGroupSize"
    policy = group.sub_group_policy or _SubGroups()
    each = read_count(policy.sub_group_size, field, 0, problems)
    in_runs = 1 <= each <= size and (
        (size - 1) % each == 0 or (size % each == 0 and not _excludes_leader(group))
    )
    if not in_runs:
        problems.append(
            f"{field}: {each} does not divide a group of {size} or its workers; read as one subgroup of all"
        )
        each = size
    return _exclusive(meta, SUBGROUP_EXCLUSIVE, each, problems)


def _excludes_leader(group: _GroupFields) -> bool:
    policy = group.sub_group_policy
    return policy is not None and policy.sub_group_policy_type == "LeaderExcluded"


def _exclusive(meta: WorkloadMeta, key: str, size: int, problems: Problems) -> TopologyRequest | None:
    level = (meta.annotations or {}).get(key)
    if level is None:
        return None
    level = read_level(level, f"metadata.annotations[{key}]", problems)
    return TopologyRequest(TopologyMode.EXCLUSIVE, level, size)
