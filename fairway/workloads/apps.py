"""Deployment, ReplicaSet and StatefulSet: replicas of one template, independent of each other.

Kubernetes apps/v1. A pod of these is of use by itself, so they are gangs only where annotations say so.
"""

import msgspec

from fairway.kube.objects import KubeStruct
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
from fairway.workloads.gang import PodSet
from fairway.workloads.outline import Binding, Outline


class _Spec(KubeStruct, frozen=True):
    replicas: RawCount = ABSENT
    template: TemplateFields | None = None


class _Replicated(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_Replicated)
_TEMPLATE = "spec.template"


def read_deployment(raw: bytes, problems: Problems) -> Outline:
    """A Deployment or a ReplicaSet. Raises Unreadable."""
    return _replicas(raw, problems, Binding.ONE_BY_ONE)


def read_stateful_set(raw: bytes, problems: Problems) -> Outline:
    """A StatefulSet, which Kueue and KAI take as a group. Raises Unreadable."""
    return _replicas(raw, problems, Binding.WHEN_SAID)


def _replicas(raw: bytes, problems: Problems, binding: Binding) -> Outline:
    found = decode(_DECODER, raw)
    spec = found.spec or _Spec()
    count = read_count(spec.replicas, "spec.replicas", 1, problems)
    template = template_at(spec.template, _TEMPLATE, {})
    return Outline(
        found.metadata or NO_META, binding, (PodSet("main", count, count, template),), (_TEMPLATE,)
    )
