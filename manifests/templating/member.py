"""The agents of nodes in member clusters, where values ask for them.

Names and namespaces are fixed there, as on Karmada's side; of the agents' DaemonSet and of who may reach them
values decide as on the host.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from manifests.templating.files import TemplateFile
from manifests.templating.sources import Source, objects_of, the_object
from manifests.templating.tree import Each, Node, When, Written
from manifests.templating.values import (
    POD,
    all_of,
    as_json,
    container,
    member_ports,
    metrics_from,
    target,
    text_of,
)

_AGENT: Final = "member/node-agent"


def agent_files(root: Path) -> Iterator[TemplateFile]:
    """The templates of the agents. Raises SourceError."""
    policy = metrics_from(the_object(root, f"{_AGENT}/networkpolicy.yaml"), 0)
    policy = member_ports(policy, 1)
    yield _file("namespace", objects_of(root, f"{_AGENT}/namespace.yaml"))
    yield _file("crd", objects_of(root, f"{_AGENT}/crd.yaml"))
    yield _file("rbac", objects_of(root, f"{_AGENT}/rbac.yaml"))
    yield _file("admission", objects_of(root, f"{_AGENT}/admission.yaml"))
    yield _file("daemonset", (_daemonset(root),))
    yield _file("networkpolicy", (policy,), "$.Values.networkPolicy.enabled")
    monitor = the_object(root, f"{_AGENT}/monitoring/pod-monitor.yaml").add(
        "/spec/podMetricsEndpoints/0/relabelings/-",
        When(
            "$.Values.monitoring.cluster",
            {"targetLabel": "cluster", "replacement": text_of("", "monitoring.cluster")},
        ),
    )
    watched = "$.Values.monitoring.enabled"
    yield _file("podmonitor", (monitor,), watched)
    for name in ("recording-rules", "alerts"):
        yield _file(name, objects_of(root, f"{_AGENT}/monitoring/{name}.yaml"), watched)


def _daemonset(root: Path) -> Source:
    source = container(the_object(root, f"{_AGENT}/daemonset.yaml"), "nodeAgent")
    further = Each("$toleration := $.Values.nodeAgent.tolerations", Written("{{ toJson $toleration }}"))
    source = source.add(f"{POD}/tolerations/-", further)
    for key in ("runtimeClassName", "priorityClassName"):
        value = f"nodeAgent.{key}"
        source = source.add(f"{POD}/{key}", When(f"$.Values.{value}", text_of("", value)))
    for key, value in (("imagePullSecrets", "image.pullSecrets"), ("nodeSelector", "nodeAgent.nodeSelector")):
        source = source.add(f"{POD}/{key}", When(f"$.Values.{value}", as_json(value)))
    return source


def _file(name: str, sources: tuple[Source, ...], further: str = "") -> TemplateFile:
    documents: list[Node] = [source.body for source in sources]
    condition = all_of(target("member"), "$.Values.nodeAgent.enabled", further)
    return TemplateFile(f"member-node-agent-{name}.yaml", sources[0].file, condition, documents)
