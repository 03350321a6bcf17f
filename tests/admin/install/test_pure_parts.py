"""What settings change in manifests, what differs, whose a hold is, which certificates fit."""

from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from admin.install import stock
from admin.install.customizing import (
    with_arguments,
    with_egress,
    with_images,
    with_names,
    with_namespaces,
    with_volume,
    without_aggregated_rules,
)
from admin.install.difference import differences
from admin.install.holds import HeldBinding, Whose, given_back, turn, whose, without_records
from admin.install.layouts import HACK, KARMADACTL, LayoutError, find_layout, helm
from admin.install.manifest import ManifestError, manifest_of, manifests_in
from admin.install.package import packaged
from admin.install.writing import FieldConflict, conflicts_in
from admin.main import run
from fairway.names import ADMISSION, HELD_AT, REQUEUE, SKIP
from fairway.scope import Reach
from tests.admin.install.fleet import SCOPE, binding, stock_deployment
from webhook.bindings import Binding

PACKAGE = packaged()
DISPATCHER = next(
    each for each in PACKAGE.host if str(each) == "Deployment fairway-system/fairway-dispatcher"
)
ESTIMATOR = next(each for each in PACKAGE.per_member if each.kind.kind == "Deployment")


def test_every_packaged_manifest_is_an_object_of_a_known_kind() -> None:
    for field in (
        "crds",
        "karmada",
        "interpreters",
        "member",
        "host",
        "estimators",
        "per_member",
        "for_many",
    ):
        assert getattr(PACKAGE, field), field
    assert [str(each) for each in PACKAGE.redirections] == [
        "Service karmada-system/karmada-scheduler-estimator-member1"
    ]


def test_images_are_ours_alone() -> None:
    changed = with_images(DISPATCHER, "registry.example:5000/gpu", "9")
    text = yaml.safe_dump(changed.body)
    assert "image: registry.example:5000/gpu/fairway-dispatcher:9" in text
    foreign = manifest_of({**_service(), "spec": {"image": "nginx:1"}}, "x")
    assert with_images(foreign, "r", "9").body == foreign.body


def test_names_are_replaced_as_a_whole() -> None:
    changed = with_names(
        ESTIMATOR,
        {
            "member1": "east",
            "member1-kubeconfig": "east-kubeconfig",
            "karmada-scheduler-estimator-member1": "karmada-scheduler-estimator-east",
        },
    )
    text = yaml.safe_dump(changed.body)
    assert "member1" not in text
    assert "--cluster-name=east" in text
    assert "/etc/fairway/members/east" in text
    longer = manifest_of({**_service(), "spec": {"a": "member10", "b": "x-member1"}}, "x")
    assert with_names(longer, {"member1": "east"}).body == longer.body


def test_namespaces_change_wherever_they_are_named() -> None:
    changed = with_namespaces(DISPATCHER, {"fairway-system": "queues"})
    assert changed.namespace == "queues"
    assert "--leader-elect-resource-namespace=queues" in yaml.safe_dump(changed.body)
    assert with_namespaces(DISPATCHER, {"fairway-system": "fairway-system"}) == DISPATCHER


def test_arguments_volumes_and_ports_are_added_once() -> None:
    once = with_arguments(DISPATCHER, ["--x=1", "--v=0"])
    assert with_arguments(once, ["--x=1"]) == once
    mounted = with_volume(DISPATCHER, "more", {"secret": {"secretName": "s"}}, "/more")
    assert "mountPath: /more" in yaml.safe_dump(mounted.body)
    policy = next(each for each in PACKAGE.host if each.kind.kind == "NetworkPolicy")
    assert with_egress(policy, [5443]) == policy
    assert with_egress(with_egress(policy, [32443]), [32443]) == with_egress(policy, [32443])


def test_rules_that_are_gathered_by_others_are_not_stated() -> None:
    role = next(each for each in PACKAGE.karmada if "aggregationRule" in each.body)
    assert "rules" not in without_aggregated_rules(role).body
    assert without_aggregated_rules(DISPATCHER) is DISPATCHER


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "expected YAML"),
        ("- 1\n---\njust text", "document 2: expected an object"),
        ("apiVersion: v1\nkind: Pod", "v1 Pod: expected a kind of this installation"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {}", "metadata.name"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}", "metadata.namespace: expected a namespace"),
        ("apiVersion: v1\nkind: Secret\nmetadata: 7", "Expected `object`, got `int`"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_located(text: str, says: str) -> None:
    with pytest.raises(ManifestError) as caught:
        list(manifests_in(text, "file.yaml"))
    assert str(caught.value).startswith("file.yaml")
    assert says in str(caught.value)


def test_differences_are_told_by_field_and_secrets_never_shown() -> None:
    before = {
        "kind": "Deployment",
        "metadata": {"resourceVersion": "1"},
        "spec": {"c": [{"name": "a", "x": 1}]},
    }
    after = {
        "kind": "Deployment",
        "metadata": {"resourceVersion": "2"},
        "spec": {"c": [{"name": "a", "x": 2}]},
    }
    assert [(each.field, each.before, each.after) for each in differences(before, after)] == [
        (".spec.c.[a].x", "1", "2")
    ]
    assert differences({"spec": {"a": []}}, {"spec": {}}) == ()
    secret = differences({"kind": "Secret", "data": {"k": "old"}}, {"kind": "Secret", "data": {"k": "new"}})
    assert [(each.field, each.before, each.after) for each in secret] == [
        (".data.k", "(not shown)", "(not shown)")
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            'Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas; do',
            [("kubectl-edit", (".spec.replicas",))],
        ),
        (
            'Apply failed with 2 conflicts: conflicts with "a" using v1:\n- .spec.x\n- .spec.y',
            [("a", (".spec.x", ".spec.y"))],
        ),
        (
            '2 conflicts: conflict with "a" using v1: .spec.x\nconflict with "b" using v1: .spec.y',
            [("a", (".spec.x",)), ("b", (".spec.y",))],
        ),
        ("the object has been modified", []),
    ],
)
def test_conflicts_are_read_from_the_servers_words(
    message: str, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert conflicts_in(message) == tuple(FieldConflict(*each) for each in expected)


CERT = {"karmada.crt", "karmada.key"}
CHART = {*CERT, "server-ca.crt"}
TLS = {"tls.crt", "tls.key", "ca.crt"}


@pytest.mark.parametrize(
    ("secrets", "chosen", "expected"),
    [
        ({"karmada-cert": {*CERT, "ca.crt"}}, "", KARMADACTL),
        ({"karmada-cert": CHART}, "", helm("karmada-cert")),
        ({"prod-cert": CHART, "other": {"x"}}, "", helm("prod-cert")),
        ({HACK.server.secret: TLS, HACK.client.secret: TLS}, "", HACK),
        ({"a-cert": CHART, "b-cert": CHART}, "b-cert", helm("b-cert")),
    ],
)
def test_the_layout_is_found_by_the_names_of_secrets(
    secrets: dict[str, set[str]], chosen: str, expected: object
) -> None:
    assert find_layout(secrets, "karmada-system", chosen) == expected


@pytest.mark.parametrize(
    ("secrets", "chosen", "says"),
    [
        ({}, "", "none that ends in -cert"),
        ({"karmada-cert": {"ca.crt"}}, "", "karmada-cert has ca.crt"),
        ({HACK.server.secret: TLS}, "", "no certificates for estimators"),
        ({"a-cert": CHART, "b-cert": CHART}, "", "say which with --certificates SECRET"),
        ({"a-cert": CHART}, "gone", "no Secret gone"),
    ],
)
def test_certificates_that_do_not_fit_are_told(secrets: dict[str, set[str]], chosen: str, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        find_layout(secrets, "karmada-system", chosen)


def held(obj: dict[str, object]) -> HeldBinding:
    return msgspec.json.decode(msgspec.json.encode(obj), type=HeldBinding)


def set_by(manager: str) -> dict[str, object]:
    fields: dict[str, object] = {"f:spec": {"f:suspension": {".": {}, "f:scheduling": {}}}}
    return {"manager": manager, "operation": "Update", "fieldsV1": fields}


@pytest.mark.parametrize(
    ("metadata", "spec", "managed", "others_hold", "expected"),
    [
        ({}, {}, False, False, Whose.UNCLAIMED),
        (
            {"managedFields": [{"manager": "karmada", "fieldsV1": {"f:spec": {}}}]},
            {},
            False,
            False,
            Whose.UNCLAIMED,
        ),
        ({"managedFields": [set_by("fairway")]}, {}, False, False, Whose.UNCLAIMED),
        ({"managedFields": [set_by("kubectl-patch")]}, {}, False, False, Whose.OTHERS),
        (
            {"managedFields": [set_by("kubectl-patch")], "annotations": {REQUEUE: "{}"}},
            {},
            False,
            False,
            Whose.RECORDED,
        ),
        ({"annotations": {ADMISSION: "broken"}}, {}, False, False, Whose.RECORDED),
        ({"annotations": {HELD_AT: ""}, "labels": {SKIP: ""}}, {}, False, True, Whose.RECORDED),
        ({"labels": {SKIP: ""}}, {}, False, False, Whose.OTHERS),
        ({}, {}, False, True, Whose.OTHERS),
        ({"annotations": {ADMISSION: "{}"}}, {}, False, True, Whose.RECORDED),
        ({}, {"replicaRequirements": {"resourceRequest": {"cpu": "1"}}}, False, False, Whose.OTHERS),
        ({}, {"replicaRequirements": {"resourceRequest": {"cpu": "1"}}}, True, False, Whose.UNCLAIMED),
        ({}, {"placement": None}, False, False, Whose.OTHERS),
    ],
)
def test_whose_a_hold_is(
    metadata: dict[str, object], spec: dict[str, object], managed: bool, others_hold: bool, expected: Whose
) -> None:
    obj = binding("job", **spec)
    obj["metadata"] = {"name": "job", **metadata}
    raw = msgspec.json.encode(obj)
    read = msgspec.json.decode(raw, type=HeldBinding), msgspec.json.decode(raw, type=Binding)
    reach = Reach.EVERYTHING if managed else Reach.TERMS
    assert whose(*read, SCOPE, reach, others_hold=others_hold) is expected


@pytest.mark.parametrize(
    ("metadata", "suspension", "patch"),
    [
        ({}, {"scheduling": True}, {"spec": {"suspension": None}}),
        ({}, {"scheduling": True, "dispatching": True}, {"spec": {"suspension": {"scheduling": None}}}),
        (
            {"annotations": {ADMISSION: "{}", "theirs": "x"}},
            {"scheduling": True},
            {"spec": {"suspension": None}, "metadata": {"annotations": {ADMISSION: None}}},
        ),
        (
            {"annotations": {ADMISSION: "{}", REQUEUE: "{}"}},
            {"scheduling": True},
            {"spec": {"suspension": None}, "metadata": {"annotations": None}},
        ),
    ],
)
def test_giving_back_writes_our_fields_alone(
    metadata: dict[str, object], suspension: dict[str, object], patch: dict[str, object]
) -> None:
    one = held({"metadata": metadata, "spec": {"suspension": suspension}})
    assert given_back(one, keep_records=False) == patch
    assert given_back(one, keep_records=True) == {"spec": patch["spec"]}
    assert without_records(held({"metadata": {}})) == {}


def test_turns_go_to_growth_then_priority_then_age() -> None:
    def one(name: str, created: str, priority: int = 0, **spec: object) -> HeldBinding:
        metadata = {"name": name, "creationTimestamp": created}
        return held({"metadata": metadata, "spec": {"schedulePriority": {"priority": priority}, **spec}})

    young, old = one("young", "2026-11-02T00:00:00Z"), one("old", "2026-11-01T00:00:00Z")
    urgent = one("urgent", "2026-11-03T00:00:00Z", 5)
    grows = one("grows", "2026-11-04T00:00:00Z", clusters=[{"name": "east", "replicas": 1}])
    ordered = sorted([young, old, urgent, grows], key=turn)
    assert [each.metadata.name for each in ordered] == ["grows", "urgent", "old", "young"]


_LABELS = st.dictionaries(st.sampled_from(["a", "b", "app", "cluster"]), st.text(max_size=3), max_size=3)


@given(labels=_LABELS, annotations=_LABELS, replicas=st.integers(0, 9), paused=st.booleans())
def test_what_is_replaced_is_given_back_as_it_was(
    labels: dict[str, str], annotations: dict[str, str], replicas: int, paused: bool
) -> None:
    live = stock_deployment("east")
    live["metadata"] |= {"namespace": "karmada-system"}
    for key, values in (("labels", labels), ("annotations", annotations)):
        live["metadata"].pop(key, None)
        if values:
            live["metadata"][key] = values
    live["spec"] |= {"replicas": replicas, "paused": paused}
    ours = stock.our_pods_in(live, ESTIMATOR)
    assert stock.our_pods_in(ours, ESTIMATOR) == ours
    assert stock.is_ours(ours)
    assert stock.was_stock(ours)
    assert stock.given_back(stock.remembered(live), ours, "x") == live


@pytest.mark.parametrize("text", ["", "{}", '{"apiVersion": "v1"}', '{"spec": 7}'])
def test_a_record_that_cannot_be_read_is_located(text: str) -> None:
    with pytest.raises(ManifestError, match=r"ConfigMap x: .*expected what was remembered"):
        stock.given_back(text, None, "ConfigMap x")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("no-such: 1", "no-such: no such flag; expected one of"),
        ("member: east=x", "member: expected a list of texts"),
        ("host: [a]", "host: expected one value"),
        ("[]", "expected flags as keys"),
        ("a: [", "expected one YAML document"),
        (
            "host: a\n---\nhost: b\n",
            "it is several documents, the second from line 2 on; expected one YAML document",
        ),
        ("{host: nowhere, karmada: nowhere}", "--host nowhere: source 'nowhere': no file nowhere"),
    ],
)
def test_flags_in_a_file_are_strict(
    config: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fairway.yaml"
    file.write_text(config)
    assert run(["install", "--config", str(file)]) == 1
    assert says in capsys.readouterr().err


def test_the_file_of_an_installation_serves_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fairway.yaml"
    text = (
        "{host: nowhere, karmada: nowhere, karmada-server: 'https://x', hold: policies, sample-queue: true}"
    )
    file.write_text(text)
    assert run(["uninstall", "--config", str(file)]) == 1
    assert "--host nowhere: source 'nowhere': no file nowhere" in capsys.readouterr().err
    file.write_text("no-such: 1")
    assert run(["uninstall", "--config", str(file)]) == 1
    assert "no-such: no such flag" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("apiVersion: v1\nkind: Config\n  x: [\n", "it is no YAML from line 3, column 4 on; expected a kube"),
        ("kind: List\nitems: []\n", "expected a kubeconfig, for it is written to"),
        ("x" * (2 << 20) + "\n  x: [\n", "expected a kubeconfig, for it is written to"),
    ],
    ids=["broken", "a dump", "too large for one"],
)
def test_what_is_no_kubeconfig_is_told(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "host.yaml"
    file.write_text(text)
    assert run(["install", "--host", str(file), "--karmada", str(file)]) == 1
    assert f"--host {file}: {says}" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--config", "--catalogue"])
def test_a_file_that_is_not_there_is_told(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.yaml"
    assert run(["install", "--host", "x", "--karmada", "x", flag, str(file)]) == 1
    assert f"{flag} {file}: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["uninstall", "--release-all-at-once"], "refused: karmada-scheduler cannot be told to stop"),
        (["uninstall", "--in-flight", "500"], "'500': expected a whole number from 1 to 20."),
        (["install", "--hold-kind", "job"], "--hold-kind job: expected KIND.GROUP"),
        (["install", "--member-server", "x"], "--member-server x: expected NAME=URL"),
        (["install", "--karmada-server", "karmada:5443"], "expected https://HOST[:PORT]"),
        (["install", "--timeout", "soon"], "--timeout soon"),
        (["install", "--dispatcher-flag=--placment=karmada"], "did you mean --placement?"),
        (["install", "--dispatcher-flag=--placement=east"], "expected fairway or karmada"),
        (["install", "--dispatcher-flag=guidance"], "--dispatcher-flag=guidance: expected --NAME=VALUE"),
        (
            ["install", "--dispatcher-flag=--observe"],
            "needs it too: use --observe of this command",
        ),
    ],
)
def test_flags_that_cannot_work_are_told(
    args: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *flags = args
    assert run([command, "--host", str(tmp_path), "--karmada", str(tmp_path), *flags]) == 1
    assert says in capsys.readouterr().err


def _service() -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b"}}
