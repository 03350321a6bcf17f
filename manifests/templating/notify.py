"""What tells owners of unused devices: the CronJob on the host, and what it may do on the other sides."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from manifests.templating.files import TemplateFile
from manifests.templating.sources import Source, additions_of, objects_of, the_object
from manifests.templating.tree import Each, Node, When, Written
from manifests.templating.values import (
    EXAMPLE_MEMBER,
    all_of,
    as_json,
    each_member,
    member_ports,
    on_host,
    optional,
    target,
    text_of,
    to_karmada,
)

_POD: Final = "/spec/jobTemplate/spec/template/spec"
_CONTAINER: Final = f"{_POD}/containers/0"
_EACH_MEMBER: Final = "$member := $.Values.notify.members"
_ENABLED: Final = "$.Values.notify.enabled"
_KARMADA: Final = "$.Values.notify.karmadaKubeconfigSecret"
_IMAGE: Final = "/fairway:{{ $.Values.image.tag | default $.Chart.AppVersion }}"


def notify_files(root: Path) -> Iterator[TemplateFile]:
    """The templates of it. Raises SourceError."""
    policy = member_ports(to_karmada(the_object(root, "base/notify/networkpolicy.yaml"), 1), 2)
    yield _on_host("cronjob", _cronjob(root))
    yield _on_host("serviceaccount", the_object(root, "base/notify/serviceaccount.yaml"))
    yield _on_host("networkpolicy", policy, "$.Values.networkPolicy.enabled")
    for side in ("karmada", "member"):
        file = f"{side}/notify/rbac.yaml"
        documents = [source.body for source in objects_of(root, file)]
        yield TemplateFile(f"{side}-notify-rbac.yaml", file, all_of(target(side), _ENABLED), documents)


def _cronjob(root: Path) -> Source:
    source = the_object(root, "base/notify/cronjob.yaml")
    source = source.put("/spec/schedule", text_of("", "notify.schedule"))
    source = source.put(f"{_CONTAINER}/image", text_of("", "image.registry", _IMAGE))
    source = source.put(f"{_CONTAINER}/imagePullPolicy", text_of("", "image.pullPolicy"))
    source = source.put(f"{_CONTAINER}/resources", as_json("notify.resources"))
    source = source.put(
        f"{_POD}/volumes/[karmada]/secret/secretName", text_of("", "notify.karmadaKubeconfigSecret")
    )
    for place in (
        "containers/0/args/[--karmada]",
        "containers/0/volumeMounts/[karmada]",
        "volumes/[karmada]",
    ):
        source = optional(source, f"{_POD}/{place}", _KARMADA)
    for place, value in additions_of(root, f"overlays/notify/{EXAMPLE_MEMBER}/cronjob.yaml"):
        source = source.add(place, Each(_EACH_MEMBER, each_member(value)))
    further = Each("$argument := $.Values.notify.extraArgs", Written("{{ toJson $argument }}"))
    source = source.add(f"{_CONTAINER}/args/-", further)
    for key, value in (
        ("imagePullSecrets", "image.pullSecrets"),
        ("nodeSelector", "nodeSelector"),
        ("tolerations", "tolerations"),
    ):
        source = source.add(f"{_POD}/{key}", When(f"$.Values.{value}", as_json(value)))
    return source


def _on_host(name: str, source: Source, further: str = "") -> TemplateFile:
    documents: list[Node] = [on_host(source.body)]
    condition = all_of(target("host"), _ENABLED, further)
    return TemplateFile(f"notify-{name}.yaml", source.file, condition, documents)
