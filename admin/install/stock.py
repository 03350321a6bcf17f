"""What Karmada's own estimators were before they were replaced, and how they are given back.

The Deployment of Karmada's installation stays what it is, with its selector and its Service: only its pod
template, size and labels become ours, so that the change is a rolling update and the scheduler's address
goes on answering. What it was is written down first, in a ConfigMap beside it, and put back from there.
"""

from typing import Final

import msgspec

from admin.install.kinds import the
from admin.install.manifest import (
    COMPONENT,
    FAIRWAY,
    INSTALLER,
    MANAGED_BY,
    PART_OF,
    Json,
    Manifest,
    ManifestError,
    built,
    manifest_of,
)
from fairway.kube.objects import KubeStruct

REMEMBERED: Final = "stock-estimator"
"""Component of the ConfigMaps that remember."""
_KEPT: Final[tuple[str, ...]] = ("selector", "progressDeadlineSeconds", "revisionHistoryLimit")
WAS_STOCK: Final = "fairway.dev/was-stock"
"""Annotation of what is replaced: it is given back from its record, and never deleted."""
_REVISION: Final = "deployment.kubernetes.io/revision"
"""Counted by the Deployment's controller, not by whoever installed it."""


class _Meta(KubeStruct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Selector(KubeStruct, frozen=True):
    match_labels: dict[str, str] | None = None


class _Remembered(KubeStruct, frozen=True, omit_defaults=True):
    api_version: str
    kind: str
    name: str
    namespace: str
    metadata: _Meta
    spec: msgspec.Raw


_ENCODER: Final = msgspec.json.Encoder(order="sorted")


_RECORD: Final = "fairway-stock-"


def cluster_of(record: Manifest) -> str:
    """The cluster whose estimator a ConfigMap remembers."""
    return record.name.removeprefix(_RECORD)


def record_of(namespace: str, cluster: str) -> Manifest:
    """The ConfigMap that remembers a cluster's estimator, still without data."""
    labels = {PART_OF: FAIRWAY, MANAGED_BY: INSTALLER, COMPONENT: REMEMBERED}
    return built(the("ConfigMap"), namespace, f"{_RECORD}{cluster}", {}, labels)


def remembered(live: Json) -> str:
    """What is to be written down of an object, as JSON: what whoever installed it has said."""
    metadata = msgspec.convert(live.get("metadata"), _Identity)
    annotations = {key: value for key, value in (metadata.annotations or {}).items() if key != _REVISION}
    return _ENCODER.encode(
        {
            "apiVersion": live.get("apiVersion"),
            "kind": live.get("kind"),
            "namespace": metadata.namespace,
            "name": metadata.name,
            "metadata": {"labels": metadata.labels or {}, "annotations": annotations},
            "spec": live.get("spec"),
        }
    ).decode()


class _Identity(KubeStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


def given_back(text: str, live: Json | None, where: str) -> Json:
    """The object as it was, to be put in place of ``live``, or created where there is none.

    Raises ManifestError for a record that cannot be read.
    """
    try:
        was = msgspec.json.decode(text, type=_Remembered)
        spec = msgspec.json.decode(was.spec, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise ManifestError(
            f"{where}: {error}; expected what was remembered of Karmada's estimator"
        ) from None
    metadata: dict[str, object] = {"name": was.name, "namespace": was.namespace}
    annotations = dict(was.metadata.annotations or {})
    if live is not None:
        now = live.get("metadata")
        metadata = dict(now) if isinstance(now, dict) else metadata
        metadata.pop("managedFields", None)
        counted = msgspec.convert(now, _Meta).annotations or {}
        annotations |= {key: value for key, value in counted.items() if key == _REVISION}
    for key, values in (("labels", was.metadata.labels), ("annotations", annotations)):
        metadata.pop(key, None)
        if values:
            metadata[key] = dict(values)
    status = {} if live is None or "status" not in live else {"status": live["status"]}
    return {"apiVersion": was.api_version, "kind": was.kind, "metadata": metadata, "spec": spec, **status}


def our_pods_in(live: Json, ours: Manifest) -> Json:
    """The Deployment that is there with our pods: ours but for its selector, which cannot change.

    Doing it twice is the same as once.
    """
    spec, wanted = _object(live, "spec"), _object(ours.body, "spec")
    selected = msgspec.convert(spec.get("selector"), _Selector).match_labels or {}
    template = _reselected(_object(wanted, "template"), wanted.get("selector"), spec.get("selector"))
    pods = _object(template, "metadata")
    template = {**template, "metadata": {**pods, "labels": {**_object(pods, "labels"), **selected}}}
    kept: dict[str, object] = {key: spec[key] for key in _KEPT if key in spec}
    return _with(live, ours, {**wanted, **kept, "template": template})


def over_pods_of(budget: Manifest, deployment: Json | None) -> Manifest:
    """The PodDisruptionBudget over the pods that the Deployment selects, as it is where there is none."""
    selector = None if deployment is None else _object(deployment, "spec").get("selector")
    if selector is None:
        return budget
    spec = {**_object(budget.body, "spec"), "selector": selector}
    return manifest_of({**budget.body, "spec": spec}, str(budget))


def nobody_in(live: Json, ours: Manifest) -> Json:
    """The Deployment that is there without any pod: another process answers in its place."""
    return _with(live, ours, {**_object(live, "spec"), "replicas": 0})


def our_pods_behind(live: Json, ours: Manifest) -> Json:
    """The Service that is there with our pods behind it."""
    selector = _object(ours.body, "spec").get("selector")
    return _with(live, ours, {**_object(live, "spec"), "selector": selector})


def as_it_is(live: Json, ours: Manifest) -> Json:
    """The object that is there, untouched: it does what ours would."""
    del ours
    return live


def is_ours(live: Json) -> bool:
    """Whether the object carries the installer's mark."""
    labels = _object(_object(live, "metadata"), "labels")
    return labels.get(MANAGED_BY) == INSTALLER


def was_stock(live: Json) -> bool:
    """Whether the object was somebody's before it was ours, so that it is given back and not deleted."""
    return WAS_STOCK in _object(_object(live, "metadata"), "annotations")


def _reselected(within: Json, ours: object, theirs: object) -> dict[str, object]:
    """Every label selector that is ours made theirs: pods spread by the labels that they are selected by."""

    def changed(key: str, value: object) -> object:
        if key == "labelSelector":
            return theirs if value == ours else value
        if isinstance(value, dict):
            return {below: changed(below, each) for below, each in value.items()}
        return [changed("", each) for each in value] if isinstance(value, list) else value

    return {key: changed(key, value) for key, value in within.items()}


def _with(live: Json, ours: Manifest, spec: Json) -> Json:
    metadata = _object(live, "metadata")
    labels = {**_object(metadata, "labels"), PART_OF: FAIRWAY, MANAGED_BY: INSTALLER}
    if ours.component:
        labels[COMPONENT] = ours.component
    annotations = {**_object(metadata, "annotations"), WAS_STOCK: "true"}
    return {**live, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


def _object(body: Json, key: str) -> dict[str, object]:
    value = body.get(key)
    return dict(value) if isinstance(value, dict) else {}
