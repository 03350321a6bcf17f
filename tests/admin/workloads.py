"""Gangs and templates made by hand."""

from collections.abc import Mapping

from fairway.kube.objects import (
    Container,
    RawQuantity,
    ResourceRequirements,
)
from fairway.kube.templates import (
    PodTemplate,
    TemplateSpec,
)
from fairway.workloads.gang import Gang, PodSet, TopologyRequest
from tests.builders import quantities


def template(more: Mapping[str, RawQuantity] | None = None, /, **named: RawQuantity) -> PodTemplate:
    """A template of one container that requests this."""
    requests = quantities(more, **named)
    return PodTemplate(spec=TemplateSpec(containers=[Container(resources=ResourceRequirements(requests))]))


def gang_of(pods: PodTemplate, count: int = 1, topology: TopologyRequest | None = None) -> Gang:
    """A gang of one pod set called ``pods``."""
    return Gang("Job", "team", "train", (PodSet("pods", count, count, pods),), True, 1, topology)
