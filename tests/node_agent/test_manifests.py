"""The DaemonSet runs the program as it is, with no more of the node than it needs."""

from pathlib import Path

import pytest

from node_agent.flags import parse
from node_agent.settings import Settings
from node_agent.window import WINDOW_S
from tests.manifests import kustomizer, templater
from tests.manifests.cases import EVERY_AGENT_VALUE
from tests.manifests.objects import MANIFESTS, Json, container_of, of_kind, pod_of

BUILT = kustomizer.build(MANIFESTS / "member" / "node-agent")


def daemonset() -> Json:
    (found,) = of_kind(BUILT, "DaemonSet")
    return found


def settings() -> Settings:
    arguments = [each.replace("$(NODE_NAME)", "gpu-1.example") for each in container_of(daemonset())["args"]]
    asked = parse(arguments, version="", is_file=lambda _: False)
    assert isinstance(asked, Settings)
    return asked


def test_the_program_understands_its_arguments_and_knows_its_node() -> None:
    asked, (variable, *_) = settings(), container_of(daemonset())["env"]
    assert (asked.node, asked.publishes) == ("gpu-1.example", True)
    assert 1 <= asked.period_s <= WINDOW_S
    assert variable == {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    told = {each["name"]: each["containerPort"] for each in container_of(daemonset())["ports"]}
    assert asked.endpoints.health is not None
    assert asked.endpoints.metrics is not None
    assert told == {"health": asked.endpoints.health.port, "metrics": asked.endpoints.metrics.port}
    assert asked.endpoints.profiling is None


def test_it_is_not_privileged_and_mounts_nothing_that_it_could_write_to() -> None:
    pod, container = pod_of(daemonset()), container_of(daemonset())
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["hostPID"] is True
    assert not {"hostNetwork", "hostIPC", "priorityClassName"} & pod.keys()
    assert [each["hostPath"]["path"] for each in pod["volumes"]] == ["/var/lib/kubelet/pod-resources"]
    assert all(each["readOnly"] for each in container["volumeMounts"])
    assert container["resources"]["limits"].keys() == {"memory"}


def test_there_is_never_more_than_one_on_a_node() -> None:
    assert daemonset()["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"] == 0


def runs_on(labels: dict[str, str]) -> bool:
    """Whether the DaemonSet has a pod on a node with these labels."""
    has = {
        "In": lambda one: labels.get(one["key"]) in one["values"],
        "Exists": lambda one: one["key"] in labels,
        "DoesNotExist": lambda one: one["key"] not in labels,
    }
    affinity = pod_of(daemonset())["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return any(all(has[one["operator"]](one) for one in term["matchExpressions"]) for term in terms)


CLIENT = "nvidia.com/gpu.deploy.client"


@pytest.mark.parametrize(
    "node",
    [
        {"nvidia.com/gpu.present": "true"},
        {"feature.node.kubernetes.io/pci-10de.present": "true"},
        {"feature.node.kubernetes.io/pci-0302_10de.present": "true"},
        {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
        {"k8s.amazonaws.com/accelerator": "nvidia-l4"},
        {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"},
        {"kubernetes.azure.com/accelerator": "nvidia"},
        {"fairway.dev/node-agent": "true"},
    ],
)
def test_it_leaves_a_node_while_the_driver_is_replaced_or_devices_are_cut_anew(node: dict[str, str]) -> None:
    assert runs_on(node)
    assert runs_on(node | {CLIENT: "true"})
    for paused in ("paused-for-driver-upgrade", "paused-for-mig-change", "false", ""):
        assert not runs_on(node | {CLIENT: paused})


def test_it_runs_on_no_node_without_devices() -> None:
    assert not runs_on({})
    assert not runs_on({CLIENT: "true"})


@pytest.mark.parametrize("kind", ["ServiceAccount", "DaemonSet", "NetworkPolicy"])
def test_its_objects_are_in_a_namespace_of_their_own(kind: str) -> None:
    (found,) = of_kind(BUILT, kind)
    (namespace,) = of_kind(BUILT, "Namespace")
    assert found["metadata"]["namespace"] == namespace["metadata"]["name"] == "fairway-node-agent"


def test_values_of_the_chart_arrive() -> None:
    (found,) = of_kind(templater.render(EVERY_AGENT_VALUE), "DaemonSet")
    pod, container = pod_of(found), container_of(found)
    assert (pod["runtimeClassName"], pod["priorityClassName"]) == ("nvidia", "agents")
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["tolerations"][-1] == {"key": "team", "operator": "Exists"}
    assert len(pod["tolerations"]) > 1
    assert container["args"][-1] == "--publish=false"
    assert templater.render({"target": "member"}) == [
        each
        for each in templater.render(EVERY_AGENT_VALUE)
        if "node-agent" not in str(each["metadata"]) and each["metadata"]["name"] != "nodedevices.fairway.dev"
    ]


def test_an_installation_by_command_leaves_it_to_the_administrator() -> None:
    from admin.install.package import packaged

    names = {each.kind.kind for each in packaged().member}
    assert "DaemonSet" not in names
    assert Path(MANIFESTS / "member" / "node-agent" / "daemonset.yaml").is_file()
