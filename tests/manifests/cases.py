"""Values of the chart that are rendered again and again, and the folders that they equal."""

from pathlib import Path

import yaml

from tests.manifests.objects import CHART, MANIFESTS, Json

CI = CHART / "ci"

SAME_AS = {
    "host-cluster": "overlays/host-cluster",
    "kind": "overlays/kind",
    "estimator-per-member": "overlays/estimator-per-member",
    "estimator-for-many": "overlays/estimator-for-many",
    "member": "member",
    "notify": "overlays/notify",
}
"""By file of values: the folder that kustomize builds the same objects of."""

EVERY_VALUE: Json = {
    "image": {
        "registry": "registry.example/team",
        "tag": "v9",
        "pullPolicy": "Always",
        "pullSecrets": [{"name": "pull"}],
    },
    "karmada": {"namespace": "karmada"},
    "scope": {"namespaces": "all", "kinds": ["Job.batch", "Pod"], "observe": True},
    "webhook": {
        "replicas": 3,
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "kubeconfigSecret": "a",
        "url": "https://hook.example:8443",
        "failurePolicy": "Ignore",
        "tlsSecret": "issued",
        "extraArgs": ["--enable-pprof", '--configuration-name="x"'],
        "resources": {"limits": {"memory": "1Gi"}},
    },
    "dispatcher": {
        "replicas": 3,
        "podDisruptionBudget": {"maxUnavailable": 2},
        "kubeconfigSecret": "b",
        "estimatorClientSecret": "c",
        "visibilityTlsSecret": "seen",
        "volcanoQueues": True,
        "extraArgs": ["--events=false"],
        "resources": {},
    },
    "estimator": {
        "mode": "per-member",
        "members": ["a", "b-1"],
        "replicas": 3,
        "podDisruptionBudget": {"maxUnavailable": 2},
        "karmadaKubeconfigSecret": "d",
        "certificates": {"secret": "release-cert", "authority": "server-ca.crt"},
        "featureGates": ["ResourceQuotaEstimate=true", "SchedulingOvercommitProtection=true"],
        "fromPrometheus": {"a": "http://prometheus.a.example:9090/prom"},
        "extraArgs": ["--on-doubt=zero"],
        "resources": {"requests": {"cpu": "1"}},
    },
    "notify": {
        "enabled": True,
        "schedule": "0 6 * * *",
        "members": ["a", "b-1"],
        "karmadaKubeconfigSecret": "e",
        "extraArgs": ["--limit=5"],
        "resources": {},
    },
    "networkPolicy": {
        "metricsNamespace": "",
        "karmadaApiServerPort": 32443,
        "memberApiServerPorts": [8443],
        "prometheusPorts": [9090],
    },
    "monitoring": {"enabled": True},
    "log": {"format": "text", "verbosity": 4},
    "priorityClassName": "",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
}
"""Each value other than it is."""

EVERY_AGENT_VALUE: Json = {
    "target": "member",
    "nodeAgent": {
        "enabled": True,
        "runtimeClassName": "nvidia",
        "priorityClassName": "agents",
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "extraArgs": ["--publish=false"],
        "resources": {"limits": {"memory": "200Mi"}},
    },
    "networkPolicy": {"memberApiServerPorts": [8443]},
    "monitoring": {"enabled": True, "cluster": "member1"},
    "image": {"pullSecrets": [{"name": "pull"}]},
}

VARIANTS: dict[str, Json] = {
    "defaults": {},
    "every value": EVERY_VALUE,
    "every value, for many": EVERY_VALUE | {"estimator": EVERY_VALUE["estimator"] | {"mode": "for-many"}},
    "elsewhere, the host's side": {
        "estimator": {"mode": "external", "members": ["a"], "external": {"host": "e.example", "port": 443}}
    },
    "no templates": {"estimator": {"mode": "per-member", "members": ["a"], "karmadaKubeconfigSecret": ""}},
    "visible": {
        "dispatcher": {"visibilityTlsSecret": "fairway-dispatcher-tls"},
        "webhook": {"tlsSecret": "fairway-webhook-tls"},
    },
    "told in members alone": {"notify": {"enabled": True, "members": ["a"], "karmadaKubeconfigSecret": ""}},
    "policies": {"target": "karmada", "policies": {"enabled": True}},
    "no interpreters": {"target": "karmada", "interpreters": {"enabled": False}},
    "every value of the node agents": EVERY_AGENT_VALUE,
    "nothing": {
        "webhook": {"enabled": False},
        "dispatcher": {"enabled": False},
        "networkPolicy": {"enabled": False},
    },
    "no budgets": {
        "webhook": {"replicas": 0, "podDisruptionBudget": {"enabled": False}},
        "dispatcher": {"podDisruptionBudget": {"enabled": False}},
        "estimator": {"podDisruptionBudget": {"enabled": False}, "replicas": 0},
    },
}


def ci_values(name: str) -> Json:
    return yaml.safe_load((CI / f"{name}-values.yaml").read_text())


def all_variants() -> dict[str, Json]:
    files = sorted(CI.glob("*-values.yaml"))
    return VARIANTS | {f"ci {file.stem}": yaml.safe_load(file.read_text()) for file in files}


def folder(name: str) -> Path:
    return MANIFESTS / name
