"""Everything that is rendered is, field by field, what Kubernetes 1.30 to 1.36 know."""

import json
from collections.abc import Iterator
from functools import cache

import pytest

from tests.manifests import kustomizer, schemas, templater
from tests.manifests.cases import all_variants
from tests.manifests.objects import FOLDERS, MANIFESTS, Json, documents, key_of

OTHERS = {"PodMonitor", "PrometheusRule", "ResourceInterpreterCustomization"}
"""Kinds of others' definitions, whose schemas Kubernetes does not have."""

SINCE = {"MutatingAdmissionPolicy": "1.36", "MutatingAdmissionPolicyBinding": "1.36"}
"""Kinds that v1 does not have from the beginning."""


@cache
def everything() -> tuple[Json, ...]:
    """All that any folder builds and any values render, each once."""
    different = {json.dumps(each, sort_keys=True): each for each in _all()}
    return tuple(different.values())


def _all() -> Iterator[Json]:
    for folder in FOLDERS:
        yield from kustomizer.build(MANIFESTS / folder)
    for file in (MANIFESTS / "crds").glob("*.yaml"):
        yield from documents(file.read_text())
    for values in all_variants().values():
        yield from templater.render(values)


@pytest.mark.parametrize("release", schemas.RELEASES)
def test_every_object_is_valid(release: str) -> None:
    checked = [each for each in everything() if each["kind"] not in OTHERS and _is_in(each, release)]
    assert len(checked) > 80
    found = {key_of(each): schemas.problems(each, release) for each in checked}
    assert {key: problems for key, problems in found.items() if problems} == {}


def _is_in(each: Json, release: str) -> bool:
    since = SINCE.get(each["kind"])
    if since is not None and release < since:
        return False
    assert schemas.knows(each, release), f"{key_of(each)}: Kubernetes {release} has no such kind"
    return True


@pytest.mark.parametrize("release", schemas.RELEASES)
def test_an_unknown_field_is_a_problem(release: str) -> None:
    deployment = next(each for each in everything() if each["kind"] == "Deployment")
    spec = deployment["spec"] | {"replica": 2}
    (problem,) = schemas.problems(deployment | {"spec": spec}, release)
    assert problem.startswith("$.spec: ")
    assert "replica" in problem


def test_a_kind_that_does_not_exist_is_not_known() -> None:
    assert not schemas.knows({"apiVersion": "apps/v1", "kind": "Deploiment"}, "1.36")
    assert not schemas.knows({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget"}, "1.36")
