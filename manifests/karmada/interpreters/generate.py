"""The ResourceInterpreterCustomizations of this folder, put together from the Lua beside them.

Karmada runs each operation of a kind as a script of its own, with nothing but its ``kube`` library to share,
so what all kinds have in common is written once here, in ``lua/``, and stands in every script that uses it.
``python -m manifests.karmada.interpreters.generate`` writes the files; a test holds them to their sources.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
_INDENT: Final = " " * 8

_READING: Final = ("reading",)
_PODS: Final = ("reading", "kube", "requirements")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What Karmada is told of one kind.

    ``pod_sets``, ``dependents``, ``ends``, ``health``, ``revision``: names of Lua files that say it.
    ``has_components``: pods of several templates, told one by one where Karmada can take that.
    ``replica_specs``: where a training job has its roles. ``replaces_built_in``: Karmada has one of its own.
    """

    name: str
    api_version: str
    kind: str
    pod_sets: tuple[str, ...]
    ends: str
    health: str = "done"
    dependents: str = "none"
    has_components: bool = True
    revision: str = ""
    replica_specs: str = ""
    replaces_built_in: bool = False

    @property
    def file_name(self) -> str:
        """The file that it is written to."""
        return f"{self.name}.yaml"

    def scripts(self) -> Iterator[tuple[str, str]]:
        """Each operation, by its field in ``spec.customizations``, and its script."""
        pod_sets = tuple(self._pod_sets())
        if self.has_components:
            yield "componentResource", self._script(*_PODS, *pod_sets, "components")
        yield "replicaResource", self._script(*_PODS, *pod_sets, "counting", "replicas")
        if self.revision:
            yield "replicaRevision", self._script(*_PODS, *pod_sets, "counting", self.revision)
        ends = ("conditions", f"ends/{self.ends}")
        yield (
            "healthInterpretation",
            self._script(*_READING, *ends, *self._of_health(), f"health/{self.health}"),
        )
        yield "statusAggregation", self._script(*_READING, "kube", *ends, "aggregation")
        dependents = f"dependents/{self.dependents}"
        yield (
            "dependencyInterpretation",
            self._script(*_READING, "kube", *pod_sets, dependents, "dependencies"),
        )

    def manifest(self) -> str:
        """The whole file."""
        scripts = "".join(
            f"    {field}:\n      luaScript: |\n{_indented(script)}" for field, script in self.scripts()
        )
        replaces = '    fairway.dev/replaces-built-in: "true"\n' if self.replaces_built_in else ""
        return (
            "# Made from lua/ by generate.py: change it there. docs/interpreters.md says what it answers.\n"
            "apiVersion: config.karmada.io/v1alpha1\n"
            "kind: ResourceInterpreterCustomization\n"
            "metadata:\n"
            f"  name: fairway-{self.name}\n"
            "  labels:\n"
            "    app.kubernetes.io/name: fairway\n"
            "    app.kubernetes.io/component: interpreter\n"
            "    app.kubernetes.io/part-of: fairway\n"
            f"{replaces}"
            "spec:\n"
            "  target:\n"
            f"    apiVersion: {self.api_version}\n"
            f"    kind: {self.kind}\n"
            "  customizations:\n"
            f"{scripts}"
        )

    def _pod_sets(self) -> Iterator[str]:
        for name in self.pod_sets:
            yield f"pod_sets/{name}"

    def _of_health(self) -> tuple[str, ...]:
        return tuple(self._pod_sets()) if self.replica_specs else ()

    def _script(self, *parts: str) -> str:
        return "\n".join(self._part(part) for part in parts)

    def _part(self, part: str) -> str:
        text = (HERE / "lua" / f"{part}.lua").read_text(encoding="utf-8")
        return text.replace("REPLICA_SPECS", f'"{self.replica_specs}"')


def _training_job(name: str, kind: str, replica_specs: str, *, has_components: bool = True) -> Interpreter:
    return Interpreter(
        name,
        "kubeflow.org/v1",
        kind,
        ("training_job",),
        "training_job",
        "training_job",
        has_components=has_components,
        replica_specs=replica_specs,
    )


def _llm_inference_service(version: str) -> Interpreter:
    return Interpreter(
        f"llminferenceservice-{version}",
        f"serving.kserve.io/{version}",
        "LLMInferenceService",
        ("serving_pod", "llm_inference_service"),
        "service_ready",
        dependents="llm_inference_service",
    )


INTERPRETERS: Final = (
    Interpreter("jobset", "jobset.x-k8s.io/v1alpha2", "JobSet", ("job_set",), "job_set", "job_set"),
    Interpreter(
        "leaderworkerset",
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        ("leader_worker_set",),
        "leader_worker_set",
        "leader_worker_set",
        has_components=False,
        revision="revision_leader_worker_set",
    ),
    Interpreter(
        "trainjob",
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        ("train_job",),
        "train_job",
        "train_job",
        "train_job",
        has_components=False,
    ),
    _training_job("xgboostjob", "XGBoostJob", "xgbReplicaSpecs"),
    _training_job("paddlejob", "PaddleJob", "paddleReplicaSpecs"),
    _training_job("jaxjob", "JAXJob", "jaxReplicaSpecs", has_components=False),
    Interpreter(
        "volcano-job",
        "batch.volcano.sh/v1alpha1",
        "Job",
        ("volcano_job",),
        "volcano_job",
        "volcano_job",
        "volcano_job",
        replaces_built_in=True,
    ),
    Interpreter(
        "raycluster",
        "ray.io/v1",
        "RayCluster",
        ("ray_nodes", "ray_cluster"),
        "ray_cluster",
        replaces_built_in=True,
    ),
    Interpreter(
        "rayjob",
        "ray.io/v1",
        "RayJob",
        ("ray_nodes", "ray_job"),
        "ray_job",
        "ray_job",
        replaces_built_in=True,
    ),
    Interpreter(
        "inferenceservice",
        "serving.kserve.io/v1beta1",
        "InferenceService",
        ("serving_pod", "inference_service"),
        "service_ready",
        dependents="inference_service",
    ),
    _llm_inference_service("v1alpha1"),
    _llm_inference_service("v1alpha2"),
)
"""All that are shipped."""


def kustomization() -> str:
    """The file that lists them for ``kubectl apply -k``."""
    return (
        "# Made by generate.py. For karmada-apiserver; see docs/interpreters.md.\n"
        "apiVersion: kustomize.config.k8s.io/v1beta1\n"
        "kind: Kustomization\n"
        "resources:\n" + "".join(f"  - {each.file_name}\n" for each in INTERPRETERS)
    )


def files() -> dict[str, str]:
    """All files by name."""
    return {each.file_name: each.manifest() for each in INTERPRETERS} | {
        "kustomization.yaml": kustomization()
    }


def main() -> None:
    """Write them beside this file."""
    for name, text in files().items():
        (HERE / name).write_text(text, encoding="utf-8")


def _indented(script: str) -> str:
    return "".join(f"{_INDENT}{line}".rstrip() + "\n" for line in script.rstrip().split("\n"))


if __name__ == "__main__":
    main()
