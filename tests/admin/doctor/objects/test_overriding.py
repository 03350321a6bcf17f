"""Overrides of other people that keep whole kinds of workloads from being told where to go in a cluster."""

from dataclasses import replace

import msgspec
import pytest

from admin.doctor.evidence import Evidence, Plane, Role
from admin.doctor.finding import Verdict
from admin.doctor.kinds import DEPLOYMENTS
from admin.doctor.objects.overriding import POLICY_OVERRIDES
from admin.doctor.running import Deployment
from fairway.names import GUIDANCE
from queue_dispatcher.cache.overrides import CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES
from tests.admin.doctor.installation import deployment
from tests.admin.doctor.objects.builders import Obj, World, metadata, well

AFFINITY = "/spec/template/spec/affinity"
URGENCY = "/spec/template/spec/priorityClassName"
JOBS = {"apiVersion": "batch/v1", "kind": "Job"}


def override(*paths: str, of: list[Obj] | None = None, namespace: str = "") -> Obj:
    plaintext = [{"path": path, "operator": "add", "value": "x"} for path in paths]
    spec: Obj = {"overrideRules": [{"overriders": {"plaintext": plaintext}}]}
    selectors = {"resourceSelectors": of} if of is not None else {}
    return {"metadata": metadata("site", namespace), "spec": {**spec, **selectors}}


def with_dispatcher(world: World, *flags: str) -> Evidence:
    made = deployment("fairway-dispatcher", "x/fairway-dispatcher:1.0.0", ["fairway-dispatcher", *flags])
    read = msgspec.convert(made, Deployment)
    host = Plane(Role.HOST, "host", objects={DEPLOYMENTS.name: (read,)})
    return replace(world.evidence(), host=host)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (override(AFFINITY), f"may set {AFFINITY} of all workloads:"),
        (override(URGENCY, AFFINITY), f"may set {AFFINITY}, {URGENCY} of all workloads:"),
        (
            override(f"{AFFINITY}/nodeAffinity", of=[JOBS]),
            f"{AFFINITY}/nodeAffinity of all of kind Job.batch:",
        ),
        (override(AFFINITY, of=[{"apiVersion": "v1", "kind": "Pod"}]), "of all of kind Pod:"),
        (override(AFFINITY, namespace="team"), "of all workloads in namespace team:"),
    ],
)
def test_whoever_sets_what_fairway_would_set_is_noted(made: Obj, told: str) -> None:
    world = well()
    kind = OVERRIDE_POLICIES if "namespace" in made["metadata"] else CLUSTER_OVERRIDE_POLICIES
    world.add(kind, made)
    said = world.findings()
    assert said.keys() == {"policy-overrides"}
    (found,) = said["policy-overrides"]
    assert found.verdict is Verdict.NOTE
    assert found.subject in ("ClusterOverridePolicy site", "OverridePolicy team/site")
    assert told in found.message


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(override("/spec/parallelism", "/metadata/annotations/a"), id="other-fields"),
        pytest.param(override(AFFINITY, of=[{**JOBS, "name": "one"}]), id="one-workload"),
        pytest.param(
            override(AFFINITY, of=[{"apiVersion": "apps/v1", "kind": "Deployment"}]), id="kind-never-told"
        ),
        pytest.param(override(AFFINITY, of=[]) | {"spec": {}}, id="nothing-set"),
    ],
)
def test_others_are_let_be(made: Obj) -> None:
    world = well()
    world.add(CLUSTER_OVERRIDE_POLICIES, made)
    assert world.findings() == {}


def test_what_fairway_writes_itself_is_not_somebody_elses() -> None:
    world = well()
    ours = override(AFFINITY, URGENCY, namespace="team")
    ours["metadata"]["labels"] = {GUIDANCE: "true"}
    world.add(OVERRIDE_POLICIES, ours)
    assert world.findings() == {}


def test_it_does_not_matter_where_nobody_is_told_anything() -> None:
    world = well()
    world.add(CLUSTER_OVERRIDE_POLICIES, override(AFFINITY))
    (found,) = POLICY_OVERRIDES.findings(with_dispatcher(world, "--guidance=false"))
    assert found.message.startswith("does not apply")
    (found,) = POLICY_OVERRIDES.findings(with_dispatcher(world, "--guidance=true"))
    assert "all workloads" in found.message


def test_where_they_may_not_be_read_that_is_said() -> None:
    world = well()
    world.unread[CLUSTER_OVERRIDE_POLICIES.name] = "forbidden: user doctor"
    (found,) = world.findings()["policy-overrides"]
    assert found.verdict is Verdict.UNKNOWN
