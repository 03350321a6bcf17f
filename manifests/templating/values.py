"""What the chart's values decide in an object: one small function for each kind of place.

Values are written ``$.Values.x.y`` throughout, since ``.`` is something else within a ``range``.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from manifests.templating.sources import Source, additions_of
from manifests.templating.tree import Each, Node, When, Written, literal, quoted

CONTAINER: Final = "/spec/template/spec/containers/0"
POD: Final = "/spec/template/spec"
EACH_MEMBER: Final = "$member := $.Values.estimator.members"
EXAMPLE_MEMBER: Final = "member1"
_NAMESPACES: Final = {
    "fairway-system": "{{ $.Release.Namespace }}",
    "karmada-system": "{{ $.Values.karmada.namespace }}",
}
_ON_KARMADA: Final = ("--certificate-secret=", "--leader-elect-resource-namespace=")
"""Flags that name namespaces of karmada-apiserver: not the host's, whatever those are called."""
_MONITORING: Final = "namespaceSelector/matchLabels/kubernetes.io~1metadata.name"


def target(side: str) -> str:
    """The condition that the chart renders this side."""
    return f'eq $.Values.target "{side}"'


def mode(name: str) -> str:
    """The condition that estimators are installed in this way."""
    return f'eq $.Values.estimator.mode "{name}"'


def all_of(*conditions: str) -> str:
    """The condition that all hold; empty ones do not count."""
    wanted = [condition for condition in conditions if condition]
    if len(wanted) == 1:
        return wanted[0]
    return " ".join(["and", *(each if each.startswith("$") else f"({each})" for each in wanted)])


def any_of(*conditions: str) -> str:
    """The condition that one of them holds."""
    return " ".join(["or", *(f"({each})" for each in conditions)])


def text_of(before: str, value: str, after: str = "") -> Written:
    """A text with a value in it."""
    return Written(quoted(f"{before}{{{{ $.Values.{value} }}}}{after}"))


def as_json(value: str) -> Written:
    """A value of any shape."""
    return Written(f"{{{{ toJson $.Values.{value} }}}}")


def container(source: Source, component: str) -> Source:
    """What every container lets its values decide. ``component`` is the program's key among the values."""
    (name,) = re.findall(r"/(fairway-[a-z-]+):", str(source.at(f"{CONTAINER}/image")))
    image = text_of(
        "", "image.registry", f"/{name}:{{{{ $.Values.image.tag | default $.Chart.AppVersion }}}}"
    )
    source = source.put(f"{CONTAINER}/image", image)
    source = source.put(f"{CONTAINER}/imagePullPolicy", text_of("", "image.pullPolicy"))
    source = source.put(f"{CONTAINER}/resources", as_json(f"{component}.resources"))
    source = source.put(f"{CONTAINER}/args/[--logging-format]", text_of("--logging-format=", "log.format"))
    source = source.put(f"{CONTAINER}/args/[--v]", text_of("--v=", "log.verbosity"))
    argument = Written("{{ toJson $argument }}")
    return source.add(f"{CONTAINER}/args/-", Each(f"$argument := $.Values.{component}.extraArgs", argument))


def pods(source: Source, component: str) -> Source:
    """What every Deployment lets its values decide."""
    source = container(source, component)
    source = source.put("/spec/replicas", Written(f"{{{{ $.Values.{component}.replicas }}}}"))
    priority = When("$.Values.priorityClassName", text_of("", "priorityClassName"))
    source = source.put(f"{POD}/priorityClassName", priority)
    for key, value in (
        ("imagePullSecrets", "image.pullSecrets"),
        ("nodeSelector", "nodeSelector"),
        ("tolerations", "tolerations"),
    ):
        source = source.add(f"{POD}/{key}", When(f"$.Values.{value}", as_json(value)))
    return source


def budget(source: Source, component: str) -> Source:
    """A PodDisruptionBudget of the size that is asked for."""
    allowed = Written(f"{{{{ $.Values.{component}.podDisruptionBudget.maxUnavailable }}}}")
    return source.put("/spec/maxUnavailable", allowed)


def secret(source: Source, volume: str, value: str) -> Source:
    """A volume of the Secret that is named by a value."""
    return source.put(f"{POD}/volumes/[{volume}]/secret/secretName", text_of("", value))


def optional(source: Source, place: str, condition: str) -> Source:
    """What stands there only under a condition."""
    return source.put(place, When(condition, source.at(place)))


def patched(root: Path, source: Source, file: str, condition: str) -> Source:
    """With what a component's patch adds, under a condition."""
    for place, value in additions_of(root, file):
        source = source.add(place, When(condition, value))
    return source


def metrics_from(source: Source, rule: int) -> Source:
    """An ingress rule for Prometheus in the namespace that is named by a value; none without a name."""
    place = f"/spec/ingress/{rule}"
    source = source.put(f"{place}/from/0/{_MONITORING}", text_of("", "networkPolicy.metricsNamespace"))
    return optional(source, place, "$.Values.networkPolicy.metricsNamespace")


def to_karmada(source: Source, rule: int) -> Source:
    """An egress rule to the port of Karmada's API server."""
    port = Written("{{ $.Values.networkPolicy.karmadaApiServerPort }}")
    return source.put(f"/spec/egress/{rule}/ports/0/port", port)


def member_ports(source: Source, rule: int) -> Source:
    """An egress rule to the ports of the member clusters' API servers."""
    port: Node = {"protocol": "TCP", "port": Written("{{ $port }}")}
    ports: list[Node] = [Each("$port := $.Values.networkPolicy.memberApiServerPorts", port)]
    return source.put(f"/spec/egress/{rule}/ports", ports)


def each_member(node: Node) -> Node:
    """The same for the member of the loop, which stands in the source as the example."""
    return _replaced(node, {EXAMPLE_MEMBER: "{{ $member }}"}, ())


def on_host(node: Node) -> Node:
    """The same in the namespaces of this release and of this Karmada."""
    return _replaced(node, _NAMESPACES, _ON_KARMADA)


def _replaced(node: Node, texts: Mapping[str, str], spared: tuple[str, ...]) -> Node:
    if isinstance(node, Written):
        return Written(_with(node.text, texts))
    if isinstance(node, When):
        return When(node.condition, _replaced(node.body, texts, spared))
    if isinstance(node, Each):
        return Each(node.clause, _replaced(node.body, texts, spared))
    if isinstance(node, str):
        if node.startswith(spared) or not any(old in node for old in texts):
            return node
        return Written(_with(quoted(literal(node)), texts))
    if isinstance(node, Mapping):
        return {key: _replaced(value, texts, spared) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(item, texts, spared) for item in node]
    return node


def _with(text: str, texts: Mapping[str, str]) -> str:
    for old, new in texts.items():
        text = text.replace(old, new)
    return text
