import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.workloads.finished import (
    RULES,
    ConditionRule,
    FieldRule,
    GroupKind,
    Rule,
    RuleError,
    is_finished,
    parse_rule,
)
from tests.dispatcher.workloads.builders import LAW


def raw(status: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(status))


def conditions(**of: str) -> object:
    return {"conditions": [{"type": kind, "status": status} for kind, status in of.items()]}


JOB, POD, JOB_SET, VOLCANO = (
    ("batch", "Job"),
    ("", "Pod"),
    ("jobset.x-k8s.io", "JobSet"),
    ("batch.volcano.sh", "Job"),
)
PYTORCH, MPI, TRAIN = (
    ("kubeflow.org", "PyTorchJob"),
    ("kubeflow.org", "MPIJob"),
    ("trainer.kubeflow.org", "TrainJob"),
)
RAY, ARGO, SPARK = (
    ("ray.io", "RayJob"),
    ("argoproj.io", "Workflow"),
    ("sparkoperator.k8s.io", "SparkApplication"),
)


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (JOB, conditions(SuccessCriteriaMet="True", Complete="True"), True),
        (JOB, conditions(FailureTarget="True", Failed="True"), True),
        (JOB, conditions(FailureTarget="True"), False),  # its pods are still being ended
        (JOB, conditions(SuccessCriteriaMet="True"), False),
        (JOB, conditions(Complete="False", Suspended="True"), False),
        (JOB, {"active": 2, "ready": 2}, False),
        (JOB, {}, False),
        (JOB, None, False),
        (POD, {"phase": "Succeeded"}, True),
        (POD, {"phase": "Failed"}, True),
        (POD, {"phase": "Running"}, False),
        (JOB_SET, conditions(Completed="True"), True),
        (JOB_SET, conditions(Failed="True"), True),
        (JOB_SET, conditions(Suspended="True"), False),
        (JOB_SET, conditions(RestartingJobSet="True"), False),
        (VOLCANO, {"state": {"phase": "Completed"}}, True),
        (VOLCANO, {"state": {"phase": "Failed"}}, True),
        (VOLCANO, {"state": {"phase": "Terminated"}}, True),
        (VOLCANO, {"state": {"phase": "Aborted"}}, False),  # suspended by its user
        (VOLCANO, {"state": {"phase": "Completing"}}, False),
        (VOLCANO, {"state": {"phase": "Restarting"}}, False),
        (VOLCANO, {"state": {}}, False),
        (PYTORCH, conditions(Created="True", Running="False", Succeeded="True"), True),
        (PYTORCH, conditions(Failed="True"), True),
        (PYTORCH, conditions(Restarting="True"), False),
        (PYTORCH, conditions(Suspended="True"), False),
        (MPI, conditions(Succeeded="True"), True),
        (TRAIN, conditions(Complete="True"), True),
        (TRAIN, conditions(Failed="True"), True),
        (TRAIN, conditions(Suspended="True"), False),
        (RAY, {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, True),
        (RAY, {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}, True),
        (RAY, {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Running"}, False),
        (RAY, {"jobDeploymentStatus": "Suspended"}, False),
        (RAY, {"jobDeploymentStatus": "Retrying"}, False),
        (RAY, {"jobDeploymentStatus": "ValidationFailed"}, False),
        (ARGO, {"phase": "Succeeded"}, True),
        (ARGO, {"phase": "Error"}, True),
        (ARGO, {"phase": "Running"}, False),
        (SPARK, {"applicationState": {"state": "COMPLETED"}}, True),
        (SPARK, {"applicationState": {"state": "FAILED"}}, True),
        (SPARK, {"applicationState": {"state": "SUBMISSION_FAILED"}}, False),
        (("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), conditions(Available="True"), False),
        (("apps", "Deployment"), conditions(Complete="True"), False),
        (("", "Job"), conditions(Complete="True"), False),  # a kind is not its namesake of another group
    ],
)
def test_the_end_of_each_kind(kind: GroupKind, status: object, expected: bool) -> None:
    assert is_finished(*kind, raw(status)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "AppWrapper.workload.codeflare.dev=phase:Succeeded",
            (("workload.codeflare.dev", "AppWrapper"), FieldRule(("phase",), frozenset(("Succeeded",)))),
        ),
        (
            " Build.example.com = .status.state.phase : Done | Failed ",
            (("example.com", "Build"), FieldRule(("state", "phase"), frozenset(("Done", "Failed")))),
        ),
        (
            "Build.example.com=conditions:Done|Failed",
            (("example.com", "Build"), ConditionRule(frozenset(("Done", "Failed")))),
        ),
        ("Pod=phase:Succeeded", (("", "Pod"), FieldRule(("phase",), frozenset(("Succeeded",))))),
    ],
)
def test_rules_of_administrators(text: str, expected: tuple[GroupKind, Rule]) -> None:
    assert parse_rule(text) == expected


@pytest.mark.parametrize(
    "text", ["", "Build", "Build=", "Build=phase", "=phase:Done", "Build=phase:", "Build=a..b:C"]
)
def test_a_rule_that_cannot_be_read_shows_a_good_one(text: str) -> None:
    with pytest.raises(RuleError, match=r"expected KIND\.GROUP=FIELD:VALUE"):
        parse_rule(text)


@LAW
@given(st.sampled_from(sorted(RULES)), st.binary(max_size=80))
def test_a_status_that_cannot_be_read_is_no_end(kind: GroupKind, status: bytes) -> None:
    assert is_finished(*kind, msgspec.Raw(b"{" + status)) is False


@LAW
@given(
    st.sampled_from(sorted(RULES)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(("conditions", "phase", "state", "type", "status")), inner)
        ),
        max_leaves=8,
    ),
)
def test_it_never_raises(kind: GroupKind, status: object) -> None:
    assert is_finished(*kind, raw(status)) in (True, False)
