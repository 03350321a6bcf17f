"""Many cases in one cluster: every name of a case gets its prefix, and nothing of it is seen by the others.

A pod of a case is kept on the case's nodes by a node selector. Terms look into the case's own namespaces
only. Topology keys of spread constraints become the case's own, because with nodeAffinityPolicy Ignore every
node of the cluster that has the key is a domain.
"""

import copy
from collections.abc import Iterator

from tests.truth.cases import Case
from tests.truth.draft import GPU, HOST, RACK, REQUIRED, ZONE, grow, sub
from tests.truth.fields import Json, labels_of, name_of, namespace_of, objects, table, text, words

CASE = "truth.example.com/case"
PRIORITY = "flood"


class Stage:
    """One case under a name of its own. ``preferred``: a label and value that its pods like best."""

    def __init__(self, case: Case, name: str, preferred: tuple[str, str] | None = None) -> None:
        self.case = case
        self.name = name
        self.namespace = self.named(case.namespace)
        self._preferred = preferred

    def named(self, name: str) -> str:
        return f"{self.name}-{name}"

    def items(self) -> Iterator[Json]:
        """The cluster's objects, in the order of the case."""
        for item in self.case.items:
            yield self._staged(copy.deepcopy(item))

    def pod(self, number: int) -> Json:
        """The next pod of the flood."""
        template = copy.deepcopy(self.case.pod_template())
        pod = self._of_case(template)
        metadata, spec = sub(pod, "metadata"), sub(pod, "spec")
        metadata |= {"name": f"flood-{number}", "namespace": self.namespace}
        sub(metadata, "labels")[CASE] = self.name
        spec["priorityClassName"] = PRIORITY
        if self.case.tolerates_extended and GPU in table(
            objects(spec, "containers")[0], "resources", "limits"
        ):
            grow(spec, "tolerations", {"key": GPU, "operator": "Exists", "effect": "NoSchedule"})
        if self._preferred is not None:
            key, value = self._preferred
            wanted = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
            preferred = "preferredDuringSchedulingIgnoredDuringExecution"
            grow(sub(spec, "affinity", "nodeAffinity"), preferred, {"weight": 100, "preference": wanted})
        return {"apiVersion": "v1", "kind": "Pod", **pod}

    def _staged(self, item: Json) -> Json:
        kind, metadata, spec = item["kind"], table(item, "metadata"), table(item, "spec")
        if namespace_of(item):
            metadata["namespace"] = self.named(namespace_of(item))
        else:
            metadata["name"] = self.named(name_of(item))
        match kind:
            case "Namespace":
                table(metadata, "labels").pop("kubernetes.io/metadata.name")
                sub(metadata, "labels")[CASE] = self.name
            case "Node":
                labels = sub(metadata, "labels")
                labels |= {self._key(key): labels[key] for key in (ZONE, HOST, RACK) if key in labels}
                labels[CASE] = self.name
            case "Pod":
                self._stage_running(item)
            case "PersistentVolume" | "PersistentVolumeClaim":
                spec["storageClassName"] = self.named(text(spec, "storageClassName"))
                if text(spec, "volumeName"):
                    spec["volumeName"] = self.named(text(spec, "volumeName"))
                if reference := table(spec, "claimRef"):
                    reference["namespace"] = self.named(text(reference, "namespace"))
        return item

    def _stage_running(self, pod: Json) -> None:
        if objects(pod, "metadata", "ownerReferences"):
            # Of the template anew: the API server takes no pod whose label keys are merged already.
            stored, spec = table(pod, "spec"), copy.deepcopy(table(self.case.template, "spec"))
            if "affinity" not in stored:
                spec.pop("affinity", None)
            pod["spec"] = {**spec, "nodeName": stored["nodeName"]}
        self._of_case(pod)
        spec = table(pod, "spec")
        if text(spec, "nodeName"):
            spec["nodeName"] = self.named(text(spec, "nodeName"))

    def _of_case(self, pod: Json) -> Json:
        """Names inside the pod; and it stays on the case's nodes."""
        spec = sub(pod, "spec")
        sub(spec, "nodeSelector")[CASE] = self.name
        if text(spec, "runtimeClassName"):
            spec["runtimeClassName"] = self.named(text(spec, "runtimeClassName"))
        for constraint in objects(spec, "topologySpreadConstraints"):
            constraint["topologyKey"] = self._key(text(constraint, "topologyKey"))
        for kind in ("podAffinity", "podAntiAffinity"):
            for term in objects(spec, "affinity", kind, REQUIRED):
                if words(term, "namespaces"):
                    term["namespaces"] = [self.named(name) for name in words(term, "namespaces")]
                if "namespaceSelector" in term:
                    sub(term, "namespaceSelector", "matchLabels")[CASE] = self.name
        for term in objects(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"):
            for field in objects(term, "matchFields"):
                field["values"] = [self.named(name) for name in words(field, "values")]
        return pod

    def _key(self, key: str) -> str:
        return f"{self.name}.{key}"


def preferences(case: Case) -> list[tuple[str, str]]:
    """Labels whose values may lead pods to another order: each zone, and each host of the larger ones."""
    nodes = [item for item in case.items if item["kind"] == "Node"]
    zones = sorted({labels_of(node)[ZONE] for node in nodes if ZONE in labels_of(node)})
    hosts = sorted({labels_of(node)[HOST] for node in nodes if HOST in labels_of(node)})
    return [*((ZONE, zone) for zone in zones), *((HOST, host) for host in hosts)]
