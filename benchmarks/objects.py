"""What real nodes and pods carry besides the few fields that decide where pods fit."""

from typing import Any

Obj = dict[str, Any]

_MADE = "2026-01-05T08:00:00Z"
TEMPLATE_HASH = "6d4cf56db6"
_IMAGE = "registry.example/platform/app@sha256:" + "4f" * 32
IMAGES = [{"names": [f"{_IMAGE}-{number}"], "sizeBytes": 123_456_789} for number in range(10)]
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "kubelet is posting ready status",
    "lastHeartbeatTime": _MADE,
    "lastTransitionTime": _MADE,
}
_TOKEN = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True}
CONTAINER: Obj = {
    "name": "main",
    "image": _IMAGE,
    "args": ["serve", "--config=/etc/app/config.yaml", "--listen=:8080"],
    "env": [{"name": f"SETTING_{number}", "value": "value-" * 6} for number in range(12)],
    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
    "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
    "volumeMounts": [{"mountPath": "/etc/app", "name": "config"}, _TOKEN],
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
}
POD_SPEC: Obj = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "schedulerName": "default-scheduler",
    "securityContext": {"runAsNonRoot": True},
    "priority": 0,
    "tolerations": [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ],
    "volumes": [
        {"name": "config", "configMap": {"name": "app", "defaultMode": 420}},
        {"name": "token", "emptyDir": {}},
    ],
}
POD_STATUS: Obj = {
    "phase": "Running",
    "conditions": [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _MADE}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ],
    "containerStatuses": [
        {
            "name": "main",
            "image": _IMAGE,
            "imageID": _IMAGE,
            "containerID": "containerd://" + "9c" * 32,
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": _MADE}},
        }
    ],
    "hostIP": "10.1.2.3",
    "podIP": "10.5.6.7",
    "podIPs": [{"ip": "10.5.6.7"}],
    "qosClass": "Burstable",
    "startTime": _MADE,
}


def _owned_fields(value: object) -> Obj:
    """An object's fields as managedFields name them."""
    if isinstance(value, dict):
        return {f"f:{name}": _owned_fields(inner) for name, inner in value.items()}
    if isinstance(value, list):
        entries = [inner for inner in value if isinstance(inner, dict)]
        return {f'k:{{"name":"{n.get("name", n.get("type", ""))}"}}': _owned_fields(n) for n in entries}
    return {}


MANAGED_FIELDS: list[Obj] = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _MADE,
        "fieldsType": "FieldsV1",
        "fieldsV1": _owned_fields(part),
    }
    for manager, part in (
        ("kube-controller-manager", {"spec": {**POD_SPEC, "containers": [CONTAINER]}}),
        ("kubelet", {"status": POD_STATUS}),
    )
]
