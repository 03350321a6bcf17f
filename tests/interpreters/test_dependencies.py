"""What must follow a workload to its cluster."""

import pytest

from tests.interpreters.lua_vm import Object
from tests.interpreters.objects import example, vm_for


def _dependencies(obj: Object) -> set[str]:
    return {f"{kind} {namespace}/{name}" for kind, namespace, name in vm_for(obj).dependencies(obj)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("job-set-tpu", set()),
        ("xgboost-job-cpu", {"Secret ads/store", "ConfigMap ads/iris-settings"}),
        ("jax-job-tpu", {"ServiceAccount research/tpu"}),
        ("volcano-job-mpi", {"PersistentVolumeClaim research/corpus", "Secret research/registry"}),
        ("ray-job-hosts", {"ServiceAccount research/ray", "ConfigMap research/pretrain"}),
        (
            "train-job-patched",
            {
                "TrainingRuntime research/torch-h100",
                "Secret research/hub",
                "Secret research/store",
                "Secret research/tracking",
                "ServiceAccount research/trainer",
                "PersistentVolumeClaim research/cache",
            },
        ),
        ("train-job", set()),
        (
            "inference-service",
            {"PersistentVolumeClaim serving/weights", "Secret serving/hub", "ServiceAccount serving/models"},
        ),
        ("inference-service-multi-node", set()),
        ("llm-inference-service", {"PersistentVolumeClaim serving/weights"}),
        (
            "llm-inference-service-disaggregated",
            {"LLMInferenceServiceConfig serving/wide-ep", "ServiceAccount serving/prefill"},
        ),
    ],
)
def test_what_pods_need_follows_them(name: str, expected: set[str]) -> None:
    assert _dependencies(example(name)) == expected


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("job-set-driver", ("replicatedJobs", 1, "template", "spec", "template", "spec")),
        ("leader-worker-set", ("leaderWorkerTemplate", "leaderTemplate", "spec")),
        ("leader-worker-set", ("leaderWorkerTemplate", "workerTemplate", "spec")),
        ("paddle-job-servers", ("paddleReplicaSpecs", "Master", "template", "spec")),
        ("jax-job", ("jaxReplicaSpecs", "Worker", "template", "spec")),
        ("volcano-job", ("tasks", 1, "template", "spec")),
        ("ray-cluster", ("workerGroupSpecs", 1, "template", "spec")),
        ("ray-job", ("rayClusterSpec", "headGroupSpec", "template", "spec")),
        ("inference-service", ("transformer",)),
        ("llm-inference-service-disaggregated", ("prefill", "worker")),
    ],
)
def test_every_template_is_looked_at(name: str, path: tuple[str | int, ...]) -> None:
    obj = example(name)
    place = obj["spec"]
    for key in path:
        place = place[key]
    place["volumes"] = [
        {"name": "a", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
        {"name": "b", "secret": {"secretName": "key"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    place["serviceAccountName"] = "runner"
    namespace = obj["metadata"]["namespace"]
    assert _dependencies(obj) >= {
        f"ConfigMap {namespace}/settings",
        f"Secret {namespace}/key",
        f"PersistentVolumeClaim {namespace}/data",
        f"ServiceAccount {namespace}/runner",
    }
