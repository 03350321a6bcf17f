"""Every folder for `kubectl apply -k` builds, and what builds it here builds what kubectl builds."""

from pathlib import Path

import pytest
import yaml

from admin.install.manifest import Manifest
from admin.install.package import packaged
from tests.manifests import kustomizer, tools
from tests.manifests.objects import (
    FOLDERS,
    HOST_OVERLAYS,
    MANIFESTS,
    by_key,
    container_of,
    documents,
    key_of,
    of_kind,
    pod_of,
)

PACKAGE = packaged()
COMPONENTS = ("certificates-helm", "certificates-hack", "webhook-certificate", "visibility")


def overlay_with(component: str, where: Path) -> Path:
    """A person's own overlay beside a copy of ours: one estimator for each member, and the component."""
    (where / "manifests").symlink_to(MANIFESTS)
    own = where / "own"
    own.mkdir()
    lines = {
        "resources": ["../manifests/overlays/estimator-per-member"],
        "components": [f"../manifests/components/{component}"],
    }
    (own / "kustomization.yaml").write_text(yaml.safe_dump(lines))
    return own


@pytest.mark.parametrize("folder", FOLDERS)
def test_our_kustomize_is_kustomize(folder: str) -> None:
    real = documents(tools.run(tools.kubectl(), "kustomize", MANIFESTS / folder))
    assert by_key(kustomizer.build(MANIFESTS / folder)) == by_key(real)


@pytest.mark.parametrize("component", COMPONENTS)
def test_our_kustomize_is_kustomize_in_somebody_s_own_overlay(component: str, tmp_path: Path) -> None:
    own = overlay_with(component, tmp_path)
    real = documents(tools.run(tools.kubectl(), "kustomize", own))
    assert by_key(kustomizer.build(own)) == by_key(real)


def test_a_kustomization_that_uses_more_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("namePrefix: x-\n")
    with pytest.raises(kustomizer.Unknown, match="namePrefix"):
        kustomizer.build(tmp_path)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_object_is_there_twice(folder: str) -> None:
    assert by_key(kustomizer.build(MANIFESTS / folder))


def test_every_file_for_karmada_is_part_of_it() -> None:
    every = sorted((MANIFESTS / "karmada").rglob("*.yaml"))
    files = [file for file in every if file.parent.name not in ("notify", "optional")]
    wanted = [
        each for file in files if file.name != "kustomization.yaml" for each in documents(file.read_text())
    ]
    assert by_key(kustomizer.build(MANIFESTS / "karmada")) == by_key(wanted)


@pytest.mark.parametrize(
    ("folder", "parts"),
    [
        ("karmada", (PACKAGE.karmada, PACKAGE.interpreters)),
        ("member", (PACKAGE.member,)),
        ("base", (PACKAGE.host,)),
        ("base/estimator", (PACKAGE.estimators,)),
        ("base/estimator-per-member", (PACKAGE.per_member,)),
        ("base/estimator-for-many", (PACKAGE.for_many,)),
    ],
)
def test_the_command_installs_what_kustomize_builds(
    folder: str, parts: tuple[tuple[Manifest, ...], ...]
) -> None:
    installed = [dict(each.body) for part in parts for each in part]
    assert by_key(installed).keys() == by_key(kustomizer.build(MANIFESTS / folder)).keys()


def test_karmada_does_not_create_our_namespace_in_its_members() -> None:
    (namespace,) = of_kind(kustomizer.build(MANIFESTS / "karmada"), "Namespace")
    assert namespace["metadata"]["labels"]["namespace.karmada.io/skip-auto-propagation"] == "true"


@pytest.mark.parametrize("member", ["member1", "member2"])
def test_an_estimator_per_member_is_named_after_its_member_everywhere(member: str) -> None:
    built = kustomizer.build(MANIFESTS / "overlays" / "estimator-per-member")
    name = f"karmada-scheduler-estimator-{member}"
    own = [each for each in built if each["metadata"]["name"] == name]
    assert {each["kind"] for each in own} == {"Deployment", "Service", "PodDisruptionBudget"}
    example = [
        yaml.safe_load(file.read_text().replace("member1", member))
        for file in (MANIFESTS / "base" / "estimator-per-member").glob("*.yaml")
        if file.name != "kustomization.yaml"
    ]
    assert by_key(own) == by_key(example)


def test_a_member_s_folder_is_its_neighbour_s_under_another_name() -> None:
    for overlay, others in {"estimator-per-member": ["member2"], "kind": ["member2", "member3"]}.items():
        folder = MANIFESTS / "overlays" / overlay
        text = (folder / "member1" / "kustomization.yaml").read_text()
        for other in others:
            assert (folder / other / "kustomization.yaml").read_text() == text.replace("member1", other)
    folder = MANIFESTS / "overlays" / "estimator-for-many"
    for file in (folder / "member1").iterdir():
        assert (folder / "member2" / file.name).read_text() == file.read_text().replace("member1", "member2")


@pytest.mark.parametrize(
    ("component", "secret", "authority"),
    [
        ("certificates-hack", "karmada-scheduler-estimator-cert", "ca.crt"),
        ("certificates-helm", "karmada-cert", "server-ca.crt"),
    ],
)
def test_whatever_the_layout_of_certificates_the_files_have_the_same_names(
    component: str, secret: str, authority: str, tmp_path: Path
) -> None:
    built = kustomizer.build(overlay_with(component, tmp_path))
    estimators = [each for each in of_kind(built, "Deployment") if "estimator" in each["metadata"]["name"]]
    assert len(estimators) == 2
    for each in estimators:
        volume = next(volume for volume in pod_of(each)["volumes"] if volume["name"] == "pki")
        assert volume["secret"]["secretName"] == secret
        assert [item["path"] for item in volume["secret"]["items"]] == ["tls.crt", "tls.key", "ca.crt"]
        assert volume["secret"]["items"][2]["key"] == authority


def test_a_certificate_from_elsewhere_is_served_instead_of_an_own_one(tmp_path: Path) -> None:
    built = kustomizer.build(overlay_with("webhook-certificate", tmp_path))
    (webhook,) = (
        each for each in of_kind(built, "Deployment") if each["metadata"]["name"] == "fairway-webhook"
    )
    assert "--tls-cert-file=/etc/fairway/tls/tls.crt" in container_of(webhook)["args"]
    assert {"name": "tls", "secret": {"secretName": "fairway-webhook-tls"}} in pod_of(webhook)["volumes"]


@pytest.mark.parametrize("name", HOST_OVERLAYS)
def test_no_overlay_has_a_secret(name: str) -> None:
    built = kustomizer.build(MANIFESTS / "overlays" / name)
    assert [key_of(each) for each in of_kind(built, "Secret")] == []


def test_services_elsewhere_have_what_karmada_scheduler_asks_of_them() -> None:
    services = kustomizer.build(MANIFESTS / "overlays" / "estimator-elsewhere")
    assert len(services) == 2
    for each in services:
        assert each["metadata"]["namespace"] == "karmada-system"
        assert each["metadata"]["name"].startswith("karmada-scheduler-estimator-")
        assert each["spec"]["type"] == "ExternalName"
        (port,) = each["spec"]["ports"]
        assert port["port"] == 10352
        assert isinstance(port["targetPort"], int)
