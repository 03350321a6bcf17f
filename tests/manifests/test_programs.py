"""What is installed fits together: arguments, files, ports, names, and labels on both ends."""

import tomllib
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from estimator.settings import Settings as EstimatorSettings
from queue_dispatcher.settings import Settings as DispatcherSettings
from tests.manifests import kustomizer, templater
from tests.manifests.cases import all_variants
from tests.manifests.installed import (
    documented,
    files_of,
    ports_of,
    program_of,
    secrets_of,
    settings_of,
)
from tests.manifests.objects import (
    HOST_OVERLAYS,
    MANIFESTS,
    ROOT,
    Json,
    container_of,
    of_kind,
    pod_of,
)
from webhook.settings import Settings as WebhookSettings

MEMBERS = ("member1", "member2", "member3")

HOSTS: dict[str, list[Json]] = {
    **{name: kustomizer.build(MANIFESTS / "overlays" / name) for name in HOST_OVERLAYS},
    **{
        f"chart, {name}": templater.render(all_variants()[name])
        for name in ("ci kind-values", "elsewhere, the host's side", "no templates", "visible")
    },
}
DEPLOYMENTS = [
    pytest.param(objects, each, id=f"{name}: {each['metadata']['name']}")
    for name, objects in HOSTS.items()
    for each in of_kind(objects, "Deployment")
]
SERVICES = [
    pytest.param(objects, each, id=f"{name}: {each['metadata']['name']}")
    for name, objects in HOSTS.items()
    for each in of_kind(objects, "Service")
]
DISPATCHERS = [
    pytest.param(objects, each, id=name)
    for name, objects in HOSTS.items()
    for each in of_kind(objects, "Deployment")
    if program_of(each) == "dispatcher"
]


def matches(selector: Json, labels: Json) -> bool:
    return bool(selector.items() <= labels.items())


def pod_labels(deployment: Json) -> Json:
    return deployment["spec"]["template"]["metadata"]["labels"]


def deployments_behind(objects: list[Json], service: Json) -> Iterator[Json]:
    for each in of_kind(objects, "Deployment"):
        is_near = each["metadata"]["namespace"] == service["metadata"]["namespace"]
        if is_near and matches(service["spec"]["selector"], pod_labels(each)):
            yield each


def policies_for(objects: list[Json], deployment: Json) -> list[Json]:
    return [
        each
        for each in of_kind(objects, "NetworkPolicy")
        if each["metadata"]["namespace"] == deployment["metadata"]["namespace"]
        and matches(each["spec"]["podSelector"].get("matchLabels", {}), pod_labels(deployment))
    ]


def let_out(objects: list[Json], deployment: Json) -> set[int]:
    (policy,) = policies_for(objects, deployment)
    return {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}


def let_in(objects: list[Json], deployment: Json) -> set[int]:
    (policy,) = policies_for(objects, deployment)
    return {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_the_program_understands_its_arguments_and_finds_its_files(
    objects: list[Json], deployment: Json
) -> None:
    settings = settings_of(deployment)
    if isinstance(settings, EstimatorSettings):
        assert settings.tls is not None
        assert settings.tls.authorities is not None
        assert settings.tls.verify_clients
    if isinstance(settings, DispatcherSettings):
        assert settings.election.is_on
        assert settings.election.namespace == "fairway-system"


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_the_container_tells_the_ports_that_the_program_listens_on(
    objects: list[Json], deployment: Json
) -> None:
    told = {port["name"]: port["containerPort"] for port in container_of(deployment)["ports"]}
    assert told == ports_of(settings_of(deployment))


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_probes_ask_the_health_port(objects: list[Json], deployment: Json) -> None:
    container = container_of(deployment)
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_selectors_find_the_pods_and_nobody_else_s(objects: list[Json], deployment: Json) -> None:
    own = deployment["spec"]["selector"]["matchLabels"]
    assert matches(own, pod_labels(deployment))
    found = [each for each in of_kind(objects, "Deployment") if matches(own, pod_labels(each))]
    assert found == [deployment]
    pod = pod_of(deployment)
    (spread,) = pod["topologySpreadConstraints"]
    (apart,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert spread["labelSelector"]["matchLabels"] == own
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == own


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_labels_say_what_it_is_part_of(objects: list[Json], deployment: Json) -> None:
    component = program_of(deployment)
    wanted = {
        "app.kubernetes.io/name": f"fairway-{component}",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "fairway",
    }
    assert matches(wanted, deployment["metadata"]["labels"])
    assert matches(wanted, pod_labels(deployment))


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_one_budget_guards_the_pods_and_never_blocks_a_drain(objects: list[Json], deployment: Json) -> None:
    (budget,) = (
        each
        for each in of_kind(objects, "PodDisruptionBudget")
        if each["spec"]["selector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]
    )
    assert budget["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_its_service_account_is_there_and_has_no_token(objects: list[Json], deployment: Json) -> None:
    pod, namespace = pod_of(deployment), deployment["metadata"]["namespace"]
    (account,) = (
        each
        for each in of_kind(objects, "ServiceAccount")
        if each["metadata"]["name"] == pod["serviceAccountName"]
        and each["metadata"]["namespace"] == namespace
    )
    assert account["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_the_image_is_its_program_s_of_this_release(objects: list[Json], deployment: Json) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    image, _, tag = container_of(deployment)["image"].rpartition(":")
    assert image == f"ghcr.io/fairway-dev/fairway-{program_of(deployment)}"
    assert tag in {version, "dev"}


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_pods_fit_the_restricted_standard_with_a_root_that_cannot_be_written(
    objects: list[Json], deployment: Json
) -> None:
    pod, container = pod_of(deployment), container_of(deployment)
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert all(volume.keys() & {"secret", "projected", "emptyDir"} for volume in pod["volumes"])
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_memory_is_bounded_and_cpu_asked_for(objects: list[Json], deployment: Json) -> None:
    resources = container_of(deployment)["resources"]
    assert resources["requests"].keys() == {"cpu", "memory"}
    assert resources["limits"].keys() == {"memory"}


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_every_secret_is_documented_with_the_keys_that_are_read(
    objects: list[Json], deployment: Json
) -> None:
    table = documented()
    for secret in secrets_of(deployment):
        assert general(secret) in table, f"{secret}: not in docs/install-manifests.md"
    for file in files_of(deployment):
        assert general(file.key) in table[general(file.secret)], f"{file.secret}: key {file.key}"


def general(name: str) -> str:
    """A member's own name as the documentation writes it."""
    for member in (*MEMBERS, "a"):
        name = name.replace(f"/{member}-kubeconfig", "/<cluster>-kubeconfig")
        name = "<cluster>-kubeconfig" if name == f"{member}-kubeconfig" else name
    return name


@pytest.mark.parametrize(("objects", "service"), SERVICES)
def test_a_service_leads_to_the_pods_of_one_deployment_and_is_let_in(
    objects: list[Json], service: Json
) -> None:
    (deployment,) = deployments_behind(objects, service)
    told = {port["name"]: port["containerPort"] for port in container_of(deployment)["ports"]}
    targets = {told[port["targetPort"]] for port in service["spec"]["ports"]}
    assert targets <= let_in(objects, deployment)


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_network_policies_let_in_nothing_that_does_not_listen(objects: list[Json], deployment: Json) -> None:
    ports = ports_of(settings_of(deployment))
    assert let_in(objects, deployment) <= set(ports.values())
    assert ports["health"] not in let_in(objects, deployment)


@pytest.mark.parametrize(("objects", "deployment"), DEPLOYMENTS)
def test_network_policies_let_out_names_and_karmada_s_api_server(
    objects: list[Json], deployment: Json
) -> None:
    (policy,) = policies_for(objects, deployment)
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    out = let_out(objects, deployment)
    assert {53, 5443} <= out
    assert ({443, 6443} <= out) is (program_of(deployment) == "estimator")


@pytest.mark.parametrize(("objects", "dispatcher"), DISPATCHERS)
def test_the_dispatcher_asks_services_that_are_there_and_is_let_through(
    objects: list[Json], dispatcher: Json
) -> None:
    settings = settings_of(dispatcher)
    assert isinstance(settings, DispatcherSettings)
    served = {each.name for deployment in of_kind(objects, "Deployment") for each in clusters_of(deployment)}
    if served:
        assert settings.estimators.addresses.keys() == served
    for cluster, address in settings.estimators.addresses.items():
        host, _, port = address.rpartition(":")
        assert int(port) in let_out(objects, dispatcher)
        if not host.endswith(".svc"):
            continue
        name, namespace, _ = host.split(".")
        (service,) = (
            each
            for each in of_kind(objects, "Service")
            if (each["metadata"]["name"], each["metadata"]["namespace"]) == (name, namespace)
        )
        assert int(port) in {each["port"] for each in service["spec"]["ports"]}
        (estimator,) = deployments_behind(objects, service)
        assert cluster in {each.name for each in clusters_of(estimator)}
        (policy,) = policies_for(objects, estimator)
        peers = policy["spec"]["ingress"][0]["from"]
        assert any(
            matches(peer["podSelector"].get("matchLabels", {}), pod_labels(dispatcher))
            for peer in peers
            if "namespaceSelector" in peer
        )
    if settings.estimators.addresses:
        assert None not in (settings.estimators.tls.ca, settings.estimators.tls.certificate)


def clusters_of(deployment: Json) -> tuple[Json, ...]:
    settings = settings_of(deployment)
    return settings.clusters if isinstance(settings, EstimatorSettings) else ()


@pytest.mark.parametrize("name", HOST_OVERLAYS)
def test_each_member_has_the_service_in_which_karmada_scheduler_looks(name: str) -> None:
    objects = HOSTS[name]
    for deployment in of_kind(objects, "Deployment"):
        for cluster in clusters_of(deployment):
            (service,) = (
                each
                for each in of_kind(objects, "Service")
                if each["metadata"]["name"] == f"karmada-scheduler-estimator-{cluster.name}"
            )
            assert service["metadata"]["namespace"] == "karmada-system"
            assert service["metadata"]["labels"]["cluster"] == cluster.name
            assert [each["port"] for each in service["spec"]["ports"]] == [10352]
            assert list(deployments_behind(objects, service)) == [deployment]


@pytest.mark.parametrize("name", HOST_OVERLAYS)
def test_the_webhook_registers_the_address_of_its_service(name: str) -> None:
    objects = HOSTS[name]
    (webhook,) = (each for each in of_kind(objects, "Deployment") if program_of(each) == "webhook")
    settings = settings_of(webhook)
    assert isinstance(settings, WebhookSettings)
    url = urlsplit(settings.url)
    (service,) = (
        each
        for each in of_kind(objects, "Service")
        if f"{each['metadata']['name']}.{each['metadata']['namespace']}.svc" == url.hostname
    )
    assert [each["port"] for each in service["spec"]["ports"]] == [url.port]
    assert list(deployments_behind(objects, service)) == [webhook]


@pytest.mark.parametrize("name", HOST_OVERLAYS)
def test_estimators_are_two_or_reached_before_they_are_ready(name: str) -> None:
    objects = HOSTS[name]
    for service in of_kind(objects, "Service"):
        (deployment,) = deployments_behind(objects, service)
        if program_of(deployment) == "estimator":
            is_alone = deployment["spec"]["replicas"] == 1
            assert service["spec"]["publishNotReadyAddresses"] is is_alone
