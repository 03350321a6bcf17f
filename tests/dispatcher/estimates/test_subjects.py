"""What is asked about pods that will be kept on the nodes of a flavor."""

import json
from dataclasses import replace

import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.cycle.keeping import FlavorNodes, Keeping
from queue_dispatcher.estimates.estimates import Subject
from queue_dispatcher.estimates.questions import StatedBinding
from queue_dispatcher.estimates.subjects import question_about
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.pod_template import PodTemplateFacts
from tests.dispatcher.estimates.test_questions import BOTH, DIVIDED, ONE, bound, stated, template

OWN = {"pool": "gpu"}
MAIN = PodTemplateFacts("main", "/spec/template/spec", selector=(("pool", "gpu"),))
NEW = FlavorNodes("new", (("kind", "new"),))
PER_CLUSTER = (
    replace(NEW, clusters=frozenset({"m1"})),
    FlavorNodes("old", (("kind", "old"),), (), frozenset({"m2"})),
)
NEW_ONLY = (PER_CLUSTER[0],)


def selector(gang: pb.Gang) -> dict[str, str]:
    """Of the pods that are asked about."""
    if gang.workload_json:
        spec = json.loads(gang.workload_json)["spec"]["template"]["spec"]
    else:
        spec = json.loads(gang.pod_sets[0].template_json)["spec"]
    found: dict[str, str] = spec["nodeSelector"]
    return found


@pytest.mark.parametrize("placement", [DIVIDED, ONE], ids=["pod by pod", "whole"])
@pytest.mark.parametrize(
    ("flavors", "m1", "m2"),
    [
        ((), OWN, OWN),
        ((NEW,), OWN | {"kind": "new"}, OWN | {"kind": "new"}),
        (PER_CLUSTER, OWN | {"kind": "new"}, OWN | {"kind": "old"}),
        (NEW_ONLY, OWN | {"kind": "new"}, OWN),
    ],
)
def test_each_cluster_is_asked_about_pods_as_they_will_be_told(
    flavors: tuple[FlavorNodes, ...], m1: dict[str, str], m2: dict[str, str], placement: object
) -> None:
    binding = bound(DIVIDED if placement is DIVIDED else ONE)
    keeps = (Keeping("", flavors),) if flavors else ()
    question = question_about(Subject(binding, BOTH, 1, templates=(MAIN,), keeps=keeps), template())
    assert question is not None
    assert [selector(question.gang_at(cluster)) for cluster in ("m1", "m2")] == [m1, m2]
    asked = question.by_gang(("m1", "m2"))
    assert sorted(cluster for clusters, _ in asked for cluster in clusters) == ["m1", "m2"]
    assert len(asked) == (1 if m1 == m2 else 2)
    assert all(
        selector(gang) == selector(question.gang_at(one)) for clusters, gang in asked for one in clusters
    )


def test_so_is_growth() -> None:
    binding = replace(bound(DIVIDED), placed=(Placed("m1", 3),))
    subject = Subject(binding, BOTH, 1, is_growth=True, templates=(MAIN,), keeps=(Keeping("", (NEW,)),))
    question = question_about(subject, template())
    assert question is not None
    assert question.needed == 1
    assert selector(question.gang_at("m2")) == OWN | {"kind": "new"}


@pytest.mark.parametrize("source", [template(), stated()], ids=["template", "binding"])
def test_nothing_else_is_asked_where_nothing_is_told(source: bytes | StatedBinding) -> None:
    question = question_about(Subject(bound(DIVIDED), BOTH, 1), source)
    assert question is not None
    assert not question.elsewhere


def test_there_is_nothing_to_ask_about_no_pods() -> None:
    subject = Subject(bound(DIVIDED, 0), BOTH, 1, templates=(MAIN,), keeps=(Keeping("", (NEW,)),))
    assert question_about(subject, template()) is None
