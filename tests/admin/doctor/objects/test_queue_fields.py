"""Fields that cannot be read name their object in the mend; what some do hangs on the dispatcher's flags."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from admin.doctor.evidence import Evidence
from admin.doctor.finding import Verdict
from admin.doctor.objects.queue_fields import QUEUE_EFFECT
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES
from tests.admin.doctor.installation import Installation
from tests.admin.doctor.objects.builders import Obj, World, cluster_queue, local_queue, well

NO_ESTIMATORS = ["--enable-scheduler-estimator"]
CHOSEN = "spec.scoringStrategy: no effect: Karmada chooses the clusters"
ABOVE = "spec.scoringStrategy: no effect: it has queues below it"
W, U, OK = Verdict.WARNING, Verdict.UNKNOWN, Verdict.OK


def spreading(*, parent: str = "") -> World:
    world = well()
    spec = world.one(CLUSTER_QUEUES)["spec"]
    spec["scoringStrategy"] = {"type": "LeastAllocated"}
    if parent:
        world.add(CLUSTER_QUEUES, cluster_queue(parent, 0, scoringStrategy={"type": "LeastAllocated"}))
        spec["parent"] = parent
    return world


def said(evidence: Evidence) -> list[tuple[Verdict, str, str]]:
    return [(one.verdict, one.subject, one.message) for one in QUEUE_EFFECT.findings(evidence)]


@pytest.mark.parametrize(
    ("flags", "drop", "verdict", "told"),
    [
        ([], [], OK, "every known field"),
        (["--placement=fairway"], [], OK, "every known field"),
        (["--placement=karmada"], [], W, CHOSEN),
        ([], NO_ESTIMATORS, W, CHOSEN),
        (["--estimator=a=a:1"], NO_ESTIMATORS, OK, "every known field"),
        (["--observe"], [], W, CHOSEN),
    ],
)
def test_who_leaves_clusters_to_karmada_spreads_nothing(
    flags: Sequence[str], drop: Sequence[str], verdict: Verdict, told: str, tmp_path: Path
) -> None:
    made = Installation()
    host = (made.flags("fairway-dispatcher", *flags, drop=drop) if flags or drop else made).evidence(tmp_path)
    ((found, _, message),) = said(replace(spreading().evidence(), host=host.host))
    assert found is verdict
    assert message.startswith(told)


def test_flags_that_nobody_has_seen_are_not_guessed() -> None:
    found = said(spreading(parent="root").evidence())
    assert [(verdict, subject) for verdict, subject, _ in found] == [
        (U, "ClusterQueue main"),
        (W, "ClusterQueue root"),
    ]
    assert "its flags are not known: the host API server was not given" in found[0][2]
    assert found[1][2].startswith(ABOVE)
    (packing,) = said(well().evidence())
    assert packing[0] is OK


def test_the_mend_of_a_field_names_its_object() -> None:
    world = well()
    world.one(CLUSTER_QUEUES)["spec"]["queueingStrategy"] = "LIFO"
    world.add(LOCAL_QUEUES, local_queue("blind", ""))
    assert [one.remedy for one in world.findings()["queue-fields"]] == [
        "correct the field: kubectl edit clusterqueue main",
        "correct the field: kubectl edit localqueue blind -n team",
    ]


@pytest.mark.parametrize(
    ("spec", "field", "mend"),
    [
        (
            {"parent": "root", "preemption": {"budget": {"deviceHours": 3}}},
            "spec.preemption.budget",
            "state it of the root of the tree, and remove it here",
        ),
        (
            {"queueingStrategy": "StrictFIFO", "reservation": {"after": "3m"}},
            "spec.reservation",
            "state spec.queueingStrategy: BackfillFIFO, or remove the field",
        ),
        (
            {"quotaReduction": {"policy": "Keep", "delay": "3m"}},
            "spec.quotaReduction.delay",
            "change what keeps it from having its effect, or remove the field",
        ),
    ],
)
def test_the_mend_of_what_has_no_effect_is_what_would_give_it_one(spec: Obj, field: str, mend: str) -> None:
    world = well()
    world.add(CLUSTER_QUEUES, cluster_queue("root", 0))
    world.one(CLUSTER_QUEUES)["spec"] |= spec
    (one,) = (one for one in world.findings()["queue-effect"] if one.message.startswith(field))
    assert one.remedy == mend


def test_what_queues_with_others_below_them_state_belongs_to_those() -> None:
    (above,) = (one for one in QUEUE_EFFECT.findings(spreading(parent="root").evidence()) if one.verdict is W)
    assert above.remedy == "state it of the queues below, and remove it here"
