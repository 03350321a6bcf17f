"""A real API server takes all that is rendered, field by field, and stock installs are taken over cleanly."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import envtest
from tests.manifests import kustomizer, templater, tools
from tests.manifests.cases import CI, SAME_AS, all_variants, ci_values
from tests.manifests.objects import (
    CHART,
    FOLDERS,
    MANIFESTS,
    Json,
    container_of,
    documents,
    key_of,
    of_kind,
    pod_of,
)

pytestmark = pytest.mark.envtest

OTHERS = {"PodMonitor", "PrometheusRule", "ResourceInterpreterCustomization"}
"""Kinds of others' definitions, which the server does not have."""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """kubectl for a server with our definitions and the namespaces that are there before we come."""
    program = tools.kubectl()
    assets = envtest.assets()
    if assets is None:
        pytest.skip("no etcd and kube-apiserver in KUBEBUILDER_ASSETS")
    with envtest.real_api(assets, tmp_path_factory.mktemp("manifests")) as api:
        command = (
            program,
            "--kubeconfig",
            str(api.kubeconfig),
            "--cache-dir",
            str(api.kubeconfig.with_name("cache")),
        )
        for namespace in ("fairway-system", "fairway-node-agent", "karmada-system", "karmada"):
            tools.run(*command, "create", "namespace", namespace)
        yield command


def applied(kubectl: tuple[str, ...], objects: list[Json], *, dry: bool = True) -> str:
    """Apply on the server's side, and let it refuse what it does not know."""
    flags = ["--server-side", "--validate=strict", "--field-manager=test", "--force-conflicts"]
    text = yaml.safe_dump_all(objects)
    return tools.run(*kubectl, "apply", *flags, *(["--dry-run=server"] if dry else []), "-f", "-", given=text)


@pytest.mark.parametrize("folder", [*FOLDERS, "crds"])
def test_the_server_takes_every_folder(kubectl: tuple[str, ...], folder: str) -> None:
    if folder == "crds":
        objects = [
            each for file in (MANIFESTS / folder).glob("*.yaml") for each in documents(file.read_text())
        ]
    else:
        objects = [each for each in kustomizer.build(MANIFESTS / folder) if each["kind"] not in OTHERS]
    if objects:
        assert applied(kubectl, objects).count("serverside-applied") == len(objects)


@pytest.mark.parametrize("name", all_variants())
def test_the_server_takes_what_the_chart_renders(kubectl: tuple[str, ...], name: str) -> None:
    objects = [each for each in templater.render(all_variants()[name]) if each["kind"] not in OTHERS]
    if objects:
        assert applied(kubectl, objects).count("serverside-applied") == len(objects)


@pytest.mark.parametrize("name", sorted(SAME_AS))
def test_the_notes_name_the_secrets_that_are_mounted(kubectl: tuple[str, ...], name: str) -> None:
    # Helm wants a server even for a dry run that asks nothing of it.
    _, kubeconfig, path, *_ = kubectl
    command = (tools.helm(), "install", "fairway", CHART, "--dry-run=client", "--namespace=fairway-system")
    printed = tools.run(*command, kubeconfig, path, f"--values={CI / f'{name}-values.yaml'}")
    notes = printed.partition("NOTES:")[2]
    assert "Next:" in notes
    for member in ci_values(name).get("estimator", {}).get("members", ()):
        assert f"karmada-system/{member}-kubeconfig: {member}-kubeconfig" in notes
    for member in ci_values(name).get("notify", {}).get("members", ()):
        assert f"fairway-system/fairway-notify-{member}: kubeconfig" in notes
    if name not in ("member", "notify"):
        assert "fairway-system/fairway-karmada-webhook: kubeconfig" in notes


def test_the_server_refuses_a_field_that_it_does_not_know(kubectl: tuple[str, ...], tmp_path: Path) -> None:
    (service,) = (
        each for each in kustomizer.build(MANIFESTS / "base" / "webhook") if each["kind"] == "Service"
    )
    wrong = service | {"spec": service["spec"] | {"portz": []}}
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    command = (*kubectl, "apply", "--server-side", "--validate=strict", "--dry-run=server", "-f")
    assert "portz" in tools.refusal(*command, tmp_path / "wrong.yaml")


def stock(layout: str) -> list[Json]:
    """Karmada's own estimator of member1, as its hack scripts or karmadactl install it (1.19)."""
    name = "karmada-scheduler-estimator-member1"
    pki, secret = (
        ("/etc/karmada/pki/server", "karmada-scheduler-estimator-cert")
        if layout == "hack"
        else ("/etc/karmada/pki", "karmada-cert")
    )
    volume = "server-cert" if layout == "hack" else "k8s-certs"
    labels = {"app": name} | ({} if layout == "hack" else {"cluster": "member1"})
    container = {
        "name": "karmada-scheduler-estimator",
        "image": "docker.io/karmada/karmada-scheduler-estimator:v1.19.0",
        "command": [
            "/bin/karmada-scheduler-estimator",
            "--kubeconfig=/etc/member1-kubeconfig",
            "--cluster-name=member1",
            f"--grpc-auth-cert-file={pki}/tls.crt",
            "--metrics-bind-address=$(POD_IP):8080",
        ],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 8080, "name": "metrics"}],
        "volumeMounts": [
            {"name": volume, "mountPath": pki, "readOnly": True},
            {
                "name": "member-kubeconfig",
                "subPath": "member1-kubeconfig",
                "mountPath": "/etc/member1-kubeconfig",
            },
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [
            {"name": volume, "secret": {"secretName": secret}},
            {"name": "member-kubeconfig", "secret": {"secretName": "member1-kubeconfig"}},
        ],
    }
    metadata = {"namespace": "karmada-system", "name": name, "labels": {"cluster": "member1"}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    ports = [{"protocol": "TCP", "port": 10352, "targetPort": 10352}]
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": name}, "ports": ports},
        },
    ]


@pytest.mark.parametrize("layout", ["hack", "karmadactl"])
def test_replacing_the_stock_estimator_leaves_nothing_of_it_and_the_way_back_nothing_of_ours(
    kubectl: tuple[str, ...], layout: str
) -> None:
    def found(kind: str) -> Json:
        name = f"{kind}/karmada-scheduler-estimator-member1"
        return json.loads(tools.run(*kubectl, "-n", "karmada-system", "get", name, "-o", "json"))

    theirs = stock(layout)
    built = kustomizer.build(MANIFESTS / "base" / "estimator-per-member")
    ours = list(of_kind(built, "Deployment", "Service"))
    tools.run(*kubectl, "apply", "-f", "-", given=yaml.safe_dump_all(theirs))
    address = found("service")["spec"]["clusterIP"]
    before = found("deployment")
    tools.run(*kubectl, "replace", "-f", "-", given=yaml.safe_dump_all(ours))
    (deployment,) = of_kind(ours, "Deployment")
    wanted, container = container_of(deployment), container_of(found("deployment"))
    assert (container["command"], container["args"]) == (wanted["command"], wanted["args"])
    assert "env" not in container
    assert {each["name"] for each in pod_of(found("deployment"))["volumes"]} == {
        "pki",
        "member",
        "tmp",
        "karmada",
    }
    # The scheduler goes on using its connections' address.
    assert found("service")["spec"]["clusterIP"] == address
    tools.run(*kubectl, "replace", "-f", "-", given=yaml.safe_dump_all(theirs))
    assert found("deployment")["spec"] == before["spec"]
    tools.run(*kubectl, "-n", "karmada-system", "delete", "deployment,service", "--all", "--wait=false")


def test_one_for_many_takes_over_a_stock_service_by_its_selector(kubectl: tuple[str, ...]) -> None:
    theirs = list(of_kind(stock("hack"), "Service"))
    tools.run(*kubectl, "apply", "-f", "-", given=yaml.safe_dump_all(theirs))
    ours = [
        each
        for each in kustomizer.build(MANIFESTS / "overlays" / "estimator-for-many")
        if key_of(each) == key_of(theirs[0])
    ]
    tools.run(*kubectl, "apply", "-f", "-", given=yaml.safe_dump_all(ours))
    name = f"service/{ours[0]['metadata']['name']}"
    spec = json.loads(tools.run(*kubectl, "-n", "karmada-system", "get", name, "-o", "json"))["spec"]
    assert spec["selector"] == {"app": "fairway-estimator"}
    assert [each["targetPort"] for each in spec["ports"]] == ["grpc"]
    tools.run(*kubectl, "-n", "karmada-system", "delete", name)
