"""When a workload has come to its end, by what its own controller writes into its status.

Rules are data, one a kind. The status is the one that Karmada collects from a member cluster
(``status.aggregatedStatus[].status`` of a binding), which says it at once and says failure too; the
template's own status may never say Failed, and Karmada's ``health`` calls a failed Job healthy.

Only ends that the controller never takes back count. So none of these is one: a suspended workload, a Volcano
Job that was aborted (that is how ``vcctl job suspend`` does it), a RayJob whose spec is invalid (it is looked
at again when corrected), a JobSet that restarts. A kind without a rule holds its quota until it is deleted:
Deployments, LeaderWorkerSets, RayClusters, notebooks; administrators can add rules for others. A RayJob that
keeps its RayCluster (``shutdownAfterJobFinishes: false``) is over all the same, as in Kueue.

Mirrors batch/v1 (Kubernetes 1.36), JobSet v1alpha2, Volcano 1.15 (isJobFinished of its garbage collector),
Kubeflow training-operator 1.9 and MPI operator 0.8, Kubeflow Trainer 2 (TrainJob), KubeRay 1.5 as Kueue 0.20
reads it, Argo Workflows 3, Spark operator v1beta2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from fairway.kube.objects import KubeStruct

GroupKind = tuple[str, str]
"""API group (empty for the core group) and kind."""

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class ConditionRule:
    """Finished when a condition of one of these types is True."""

    types: frozenset[str]

    def holds(self, status: msgspec.Raw) -> bool:
        """Whether the status says so; one that cannot be read does not."""
        try:
            conditions = _CONDITIONS.decode(status).conditions or ()
        except _BROKEN:
            return False
        return any(c.status == "True" and c.type in self.types for c in conditions)


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Finished when the field has one of these values; ``path``: names of fields, from the status down."""

    path: tuple[str, ...]
    values: frozenset[str]

    def holds(self, status: msgspec.Raw) -> bool:
        """Whether the status says so; one that cannot be read does not."""
        value = status
        try:
            for name in self.path:
                value = _FIELDS.decode(value)[name]
            return _SCALARS.decode(value) in self.values
        except (*_BROKEN, KeyError):
            return False


Rule = ConditionRule | FieldRule


class _Condition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""


class _Conditional(KubeStruct, frozen=True):
    conditions: list[_Condition] | None = None


_CONDITIONS = msgspec.json.Decoder(_Conditional)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SCALARS = msgspec.json.Decoder(str)

_COMPLETE_OR_FAILED = ConditionRule(frozenset(("Complete", "Failed")))
_SUCCEEDED_OR_FAILED = ConditionRule(frozenset(("Succeeded", "Failed")))

RULES: Mapping[GroupKind, Rule] = {
    ("batch", "Job"): _COMPLETE_OR_FAILED,
    ("", "Pod"): FieldRule(("phase",), frozenset(("Succeeded", "Failed"))),
    ("jobset.x-k8s.io", "JobSet"): ConditionRule(frozenset(("Completed", "Failed"))),
    ("batch.volcano.sh", "Job"): FieldRule(
        ("state", "phase"), frozenset(("Completed", "Failed", "Terminated"))
    ),
    ("kubeflow.org", "PyTorchJob"): _SUCCEEDED_OR_FAILED,
    ("kubeflow.org", "TFJob"): _SUCCEEDED_OR_FAILED,
    ("kubeflow.org", "MPIJob"): _SUCCEEDED_OR_FAILED,
    ("kubeflow.org", "XGBoostJob"): _SUCCEEDED_OR_FAILED,
    ("kubeflow.org", "PaddleJob"): _SUCCEEDED_OR_FAILED,
    ("kubeflow.org", "JAXJob"): _SUCCEEDED_OR_FAILED,
    ("trainer.kubeflow.org", "TrainJob"): _COMPLETE_OR_FAILED,
    ("ray.io", "RayJob"): FieldRule(("jobDeploymentStatus",), frozenset(("Complete", "Failed"))),
    ("argoproj.io", "Workflow"): FieldRule(("phase",), frozenset(("Succeeded", "Failed", "Error"))),
    ("sparkoperator.k8s.io", "SparkApplication"): FieldRule(
        ("applicationState", "state"), frozenset(("COMPLETED", "FAILED"))
    ),
}
"""The rules that are built in."""


def is_finished(group: str, kind: str, status: msgspec.Raw, rules: Mapping[GroupKind, Rule] = RULES) -> bool:
    """Whether the status of a workload of this kind, in one cluster, says that it has ended; never raises."""
    rule = rules.get((group, kind))
    return rule is not None and rule.holds(status)


class RuleError(ValueError):
    """A rule cannot be read; the message shows it and says what was expected."""


def parse_rule(text: str) -> tuple[GroupKind, Rule]:
    """A rule as administrators write it, ``KIND.GROUP=FIELD:VALUE|VALUE``. Raises RuleError.

    ``AppWrapper.workload.codeflare.dev=phase:Succeeded`` looks at ``status.phase``, dots lead further down;
    ``Build.example.com=conditions:Done|Failed`` asks for a condition of one of these types that is True.
    """
    name, equals, condition = text.partition("=")
    kind, _, group = name.strip().partition(".")
    field, colon, listed = condition.partition(":")
    path = tuple(field.strip().removeprefix(".").removeprefix("status.").split("."))
    values = frozenset(value.strip() for value in listed.split("|"))
    if not (equals and colon and kind and all(path) and all(values)):
        raise RuleError(
            f"{text[:200]!r}: expected KIND.GROUP=FIELD:VALUE|VALUE, such as "
            "AppWrapper.workload.codeflare.dev=phase:Succeeded or Build.example.com=conditions:Done|Failed"
        )
    if path == ("conditions",):
        return (group, kind), ConditionRule(values)
    return (group, kind), FieldRule(path, values)
