"""A workload as its kind alone reads it, before annotations say more.

Every kind comes down to the same few facts; annotations (Fairway's own, and those of Kueue, KAI, Volcano and
the coscheduling plugin) mean the same on every kind, so they are applied afterwards and in one place,
`fairway.workloads.annotated`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import MappingProxyType

from fairway.kube.objects import ObjectMeta
from fairway.kube.templates import PodTemplate
from fairway.workloads.fields import Problems, RawCount, TemplateFields, WorkloadMeta, read_count, template_at
from fairway.workloads.gang import PodSet, TopologyRequest

ANNOTATIONS = "metadata.annotations"

Metadata = WorkloadMeta | ObjectMeta
"""The metadata of a workload, as whoever decoded it has it."""


class Binding(Enum):
    """Whether the pods of a kind belong together.

    ``ALWAYS``: a gang by its kind. ``WHEN_SAID``: independent unless annotations say otherwise.
    ``ONE_BY_ONE``: the same, and batch schedulers treat each pod as a workload of its own, so that what they
    read from the template says nothing about the pods together.
    """

    ALWAYS = auto()
    WHEN_SAID = auto()
    ONE_BY_ONE = auto()


@dataclass(slots=True)
class Outline:
    """What a kind's own fields say; the fields of `fairway.workloads.gang.Gang`, not yet annotated.

    ``fields``: where the template of each pod set stands in the object, for messages; empty where the object
    is itself the template. The minimum of a pod set is what it needs if the workload is a gang. Made by the
    reader of one kind, which puts in what it finds and into ``problems`` what it cannot understand.
    """

    meta: Metadata
    binding: Binding
    problems: Problems
    pod_sets: list[PodSet] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    copies: int = 1
    topology: TopologyRequest | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        """The workload's own."""
        return self.meta.annotations or {}

    def by_set(self) -> Iterator[tuple[PodSet, Mapping[str, str], str]]:
        """Each pod set with the annotations of its pods, and the field at which these stand."""
        for pod_set, at in zip(self.pod_sets, self.fields, strict=True):
            field = f"{at}.{ANNOTATIONS}" if at else ANNOTATIONS
            yield pod_set, pod_set.template.metadata.annotations or {}, field

    def count(self, raw: RawCount, field: str, default: int) -> int:
        """The count at ``field``; see `read_count`."""
        return read_count(raw, field, default, self.problems)

    def template(
        self, template: TemplateFields | None, at: str, labels: Mapping[str, str] = MappingProxyType({})
    ) -> PodTemplate:
        """The template that stands at ``at``; see `template_at`. Raises Unreadable."""
        return template_at(template, at, labels)

    def add(
        self,
        name: str,
        count: int,
        template: PodTemplate,
        at: str,
        *,
        minimum: int | None = None,
        topology: TopologyRequest | None = None,
    ) -> None:
        """A pod set of the workload, whose template stands at ``at``; all its pods are needed if not said."""
        self.pod_sets.append(
            PodSet(name, count, count if minimum is None else minimum, template, topology, at)
        )
        self.fields.append(at)

    def set_minimums(self, minimums: tuple[int, ...]) -> None:
        """How many pods of each set are needed."""
        sets = zip(self.pod_sets, minimums, strict=True)
        self.pod_sets = [replace(one, minimum=minimum) for one, minimum in sets]
