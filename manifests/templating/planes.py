"""The other sides: what belongs on karmada-apiserver, on member clusters, and with Prometheus.

Values decide whether it is rendered, never what is in it: these objects are between Fairway's programs and
the API servers, with names of their own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from manifests.templating.files import TemplateFile
from manifests.templating.member import agent_files
from manifests.templating.sources import Source, SourceError, objects_of
from manifests.templating.tree import Node
from manifests.templating.values import all_of, on_host, target

_KEEP: Final = {"helm.sh/resource-policy": "keep"}
_GANG_CLASSES: Final = "member/priority-classes.yaml"
_POLICIES: Final = "webhook/mutating-admission-policies.yaml"


def plane_files(root: Path) -> Iterator[TemplateFile]:
    """Their templates. Raises SourceError."""
    on_karmada = target("karmada")
    for file in _below(root, "crds"):
        # Without them all queues are gone, which an uninstallation of the chart is not meant to do.
        kept = [_annotated(source, _KEEP) for source in objects_of(root, file)]
        yield TemplateFile(f"karmada-crd-{Path(file).name}", file, on_karmada, kept)
    for file in _below(root, "karmada"):
        if file.startswith(("karmada/notify/", "karmada/optional/")):
            # Of `manifests.templating.notify`; what whoever wants it applies.
            continue
        condition = on_karmada
        if file.startswith("karmada/interpreters/"):
            condition = all_of(condition, "$.Values.interpreters.enabled")
        yield from _file(root, file, condition)
    yield from _file(root, _POLICIES, all_of(on_karmada, "$.Values.policies.enabled"))
    yield from _file(root, "member/rbac.yaml", target("member"))
    # Without them the API server refuses the pods of workloads that name one and still run.
    kept = [_annotated(source, _KEEP) for source in objects_of(root, _GANG_CLASSES)]
    yield TemplateFile("member-priority-classes.yaml", _GANG_CLASSES, target("member"), kept)
    yield from agent_files(root)
    yield from _monitoring(root)


def _monitoring(root: Path) -> Iterator[TemplateFile]:
    condition = all_of(target("host"), "$.Values.monitoring.enabled")
    for file in _below(root, "monitoring"):
        documents = [on_host(source.body) for source in _objects(root, file)]
        documents += [on_host(body) for body in _generated(root, file)]
        if documents:
            name = file.replace("/", "-").replace("kustomization", "dashboards")
            yield TemplateFile(name, file, condition, documents)


def _file(root: Path, file: str, condition: str) -> Iterator[TemplateFile]:
    documents = [source.body for source in _objects(root, file)]
    if documents:
        name = "karmada-policies.yaml" if file == _POLICIES else file.replace("/", "-")
        yield TemplateFile(name, file, condition, documents)


def _objects(root: Path, file: str) -> Iterator[Source]:
    """What is applied of a file: not kustomize's own, and no Namespace, which Helm is told to create."""
    for source in objects_of(root, file):
        if source.at("/apiVersion") == "v1" and source.at("/kind") == "Namespace":
            continue
        if not str(source.at("/apiVersion")).startswith("kustomize.config.k8s.io/"):
            yield source


def _generated(root: Path, file: str) -> Iterator[Node]:
    """The ConfigMaps that kustomize makes of files."""
    kustomization = objects_of(root, file)[0].body
    generators = kustomization.get("configMapGenerator", []) if isinstance(kustomization, dict) else []
    for generator in generators:
        files = [root / Path(file).parent / name for name in generator["files"]]
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "namespace": generator["namespace"],
                "name": generator["name"],
                "labels": generator["options"]["labels"],
            },
            "data": {each.name: each.read_text("utf-8") for each in files},
        }


def _annotated(source: Source, annotations: dict[str, str]) -> Node:
    metadata = source.at("/metadata")
    if not isinstance(metadata, dict):
        raise SourceError(f"{source.file}: /metadata: expected a mapping")
    present = metadata.get("annotations") or {}
    return source.put("/metadata", {**metadata, "annotations": {**present, **annotations}}).body


def _below(root: Path, folder: str) -> Iterator[str]:
    for file in sorted((root / folder).rglob("*.yaml")):
        yield file.relative_to(root).as_posix()
