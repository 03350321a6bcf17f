"""A whole installation in which all is well, as objects, and changes of it: one break at a time.

Everything goes through JSON, as it comes from API servers and dumps, so that no test states what a real one
could not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import msgspec
import yaml

from admin.doctor.dump_reading import PlaneDump
from admin.doctor.evidence import Evidence, Plane, Reached, Role
from admin.doctor.kinds import PLATFORM_KINDS
from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import GANG_CLASSES
from fairway.scope import Scope
from fairway.service.version import release
from tests.certs import DAY, NOW, Authority
from webhook.configuration import webhooks
from webhook.policies import policies

Json = dict[str, "Json"] | list["Json"] | str | int | bool | None
Manifest = dict[str, Json]

NOW_MS = int(NOW.timestamp() * 1000)
KARMADA, OURS = "karmada-system", "fairway-system"
SERVICE_HOSTS = (f"*.{KARMADA}.svc", f"*.{KARMADA}.svc.cluster.local")
WEBHOOK_URL = "https://fairway-webhook.fairway-system.svc:443"
PKI = "/etc/karmada/pki"
GATES = "MultiplePodTemplatesScheduling=true"
FAST = ("--kube-api-qps=1000", "--kube-api-burst=1000")


@cache
def authority() -> Authority:
    """Who signs everything."""
    return Authority("karmada-ca", expires=NOW + 700 * DAY)


@cache
def certificate(name: str, hosts: tuple[str, ...] = (), days: int = 365) -> Mapping[str, bytes]:
    """The content of a Secret with a certificate, in the layout of Karmada's hack/ scripts."""
    pair = authority().issue(name, expires=NOW + days * DAY, names=hosts or ("localhost",))
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority().pem}


def meta(name: str, namespace: str = "") -> Manifest:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def secret(name: str, namespace: str, data: Mapping[str, bytes], kind: str = "Opaque") -> Manifest:
    encoded: Json = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta(name, namespace),
        "type": kind,
        "data": encoded,
    }


def deployment(
    name: str,
    image: str,
    command: Sequence[str],
    namespace: str = KARMADA,
    secrets: Mapping[str, str] | None = None,
) -> Manifest:
    """A Deployment with two ready replicas; ``secrets`` by where they are mounted."""
    mounts: list[Json] = [{"name": f"volume-{n}", "mountPath": path} for n, path in enumerate(secrets or {})]
    volumes: list[Json] = [
        {"name": f"volume-{n}", "secret": {"secretName": secret}}
        for n, secret in enumerate((secrets or {}).values())
    ]
    container: Json = {
        "name": name,
        "image": image,
        "command": list(command),
        "volumeMounts": mounts,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(name, namespace),
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container], "volumes": volumes}}},
        "status": {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
    }


def pod(name: str, namespace: str, container: str, state: Manifest, restarts: int = 0) -> Manifest:
    status: Json = {"name": container, "restartCount": restarts, "state": state}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(name, namespace),
        "spec": {"containers": [{"name": container, "image": "x"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def service(name: str, port: int = 10352, namespace: str = KARMADA) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(name, namespace),
        "spec": {"type": "ClusterIP", "ports": [{"port": port, "targetPort": port}]},
    }


def external_service(name: str, host: str, target: Json, port: int = 10352) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(name, KARMADA),
        "spec": {
            "type": "ExternalName",
            "externalName": host,
            "ports": [{"port": port, "targetPort": target}],
        },
    }


def cluster(name: str, *resources: str) -> Manifest:
    """A Ready cluster in push mode with 16 of each resource, none of them in use."""
    have: Json = {"cpu": "96", "memory": "512Gi", "pods": "110", **dict.fromkeys(resources, "16")}
    models: Json = [{"grade": 0, "ranges": [{"name": "cpu"}, {"name": "memory"}]}]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": meta(name),
        "spec": {"syncMode": "Push", "resourceModels": models},
        "status": {
            "kubernetesVersion": "v1.34.1",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady"}],
            "resourceSummary": {
                "allocatable": have,
                "allocated": {"pods": "10"},
                "allocating": {},
                "allocatableModelings": [{"grade": 0, "count": 2}],
            },
        },
    }


def node(name: str, gpus: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta(name),
        "status": {"allocatable": {"cpu": "96", "nvidia.com/gpu": str(gpus)}},
    }


def priority_class(name: str, value: int, **more: Json) -> Manifest:
    head: Manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta(name)}
    return {**head, "value": value, **more}


@cache
def gang_classes(base: int = 0) -> tuple[Manifest, ...]:
    """Fairway's PriorityClasses, right above the value."""
    return tuple(
        priority_class(name, base + rank, preemptionPolicy="Never")
        for rank, name in enumerate(GANG_CLASSES, 1)
    )


def gpu_quota(namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta("gpus", namespace),
        "spec": {"hard": {"requests.nvidia.com/gpu": "4"}},
        "status": {"hard": {"requests.nvidia.com/gpu": "4"}, "used": {}},
    }


def estimator(name: str, image: str = "") -> Manifest:
    return deployment(
        f"karmada-scheduler-estimator-{name}",
        image or f"ghcr.io/fairway-dev/fairway-estimator:{release()}",
        [
            "/bin/karmada-scheduler-estimator",
            f"--cluster-name={name}",
            f"--grpc-auth-cert-file={PKI}/tls.crt",
            f"--grpc-auth-key-file={PKI}/tls.key",
            f"--grpc-client-ca-file={PKI}/ca.crt",
            "--feature-gates=ResourceQuotaEstimate=true,SchedulingOvercommitProtection=true",
        ],
        secrets={PKI: "karmada-scheduler-estimator-cert"},
    )


@cache
def _green_host() -> tuple[Manifest, ...]:
    image = "docker.io/karmada"
    client = f"{PKI}/client"
    return (
        deployment(
            "karmada-scheduler",
            f"{image}/karmada-scheduler:v1.18.2",
            [
                "/bin/karmada-scheduler",
                "--enable-scheduler-estimator=true",
                f"--scheduler-estimator-ca-file={client}/ca.crt",
                f"--scheduler-estimator-cert-file={client}/tls.crt",
                f"--scheduler-estimator-key-file={client}/tls.key",
                f"--feature-gates={GATES},CustomizedClusterResourceModeling=false,"
                "SchedulingOvercommitProtection=true,PriorityBasedScheduling=true",
                *FAST,
            ],
            secrets={client: "karmada-scheduler-scheduler-estimator-client-cert"},
        ),
        deployment(
            "karmada-controller-manager",
            f"{image}/karmada-controller-manager:v1.18.2",
            [
                "/bin/karmada-controller-manager",
                f"--feature-gates={GATES},ResourceQuotaEstimate=true",
                *FAST,
            ],
        ),
        deployment(
            "karmada-webhook",
            f"{image}/karmada-webhook:v1.18.2",
            ["/bin/karmada-webhook", f"--feature-gates={GATES}"],
        ),
        deployment(
            "fairway-webhook",
            f"ghcr.io/fairway-dev/fairway-webhook:{release()}",
            ["fairway-webhook", "--kubeconfig=/etc/fairway/karmada/kubeconfig"],
            OURS,
            {"/etc/fairway/karmada": "fairway-karmada-webhook"},
        ),
        deployment(
            "fairway-dispatcher",
            f"ghcr.io/fairway-dev/fairway-dispatcher:{release()}",
            [
                "fairway-dispatcher",
                "--kubeconfig=/etc/fairway/karmada/kubeconfig",
                "--enable-scheduler-estimator",
                "--scheduler-estimator-ca-file=/etc/fairway/estimators/ca.crt",
                "--scheduler-estimator-cert-file=/etc/fairway/estimators/tls.crt",
                "--scheduler-estimator-key-file=/etc/fairway/estimators/tls.key",
            ],
            OURS,
            {"/etc/fairway/karmada": "fairway-karmada-dispatcher"},
        ),
        estimator("a"),
        estimator("b"),
        service("karmada-scheduler-estimator-a"),
        service("karmada-scheduler-estimator-b"),
        secret("fairway-karmada-webhook", OURS, {"kubeconfig": b"x"}),
        secret("fairway-karmada-dispatcher", OURS, {"kubeconfig": b"x"}),
        secret("karmada-scheduler-estimator-cert", KARMADA, certificate("estimator", SERVICE_HOSTS)),
        secret("karmada-scheduler-scheduler-estimator-client-cert", KARMADA, certificate("scheduler")),
        pod("karmada-scheduler-1", KARMADA, "karmada-scheduler", {"running": {}}, 1),
        pod("fairway-dispatcher-1", OURS, "fairway-dispatcher", {"running": {}}),
    )


def configuration(url: str = WEBHOOK_URL, authorities: bytes | None = None) -> Manifest:
    """What the webhook registers."""
    entries = webhooks(
        Scope(builtin_catalogue(), only_enabled=True), url, authorities or authority().pem, "Fail"
    )
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": meta("fairway-webhook"),
        "webhooks": msgspec.json.decode(msgspec.json.encode(entries)),
    }


def admission_policies() -> tuple[Manifest, ...]:
    made: list[Manifest] = json.loads(json.dumps(policies(Scope(builtin_catalogue(), only_enabled=True))))
    return tuple(made)


def karmadas_webhooks(kind: str, name: str) -> Manifest:
    entry: Json = {
        "name": "resourcebinding.karmada.io",
        "clientConfig": {
            "url": "https://karmada-webhook.karmada-system.svc:443/mutate-resourcebinding",
            "caBundle": base64.b64encode(authority().pem).decode(),
        },
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": ["work.karmada.io"],
                "apiVersions": ["*"],
                "resources": ["resourcebindings"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": meta(name),
        "webhooks": [entry],
    }


@cache
def _definitions() -> tuple[Manifest, ...]:
    folder = Path(__file__).parents[3] / "manifests" / "crds"
    return tuple(yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml")))


@cache
def _green_karmada() -> tuple[Manifest, ...]:
    return (
        cluster("a", "nvidia.com/gpu"),
        cluster("b", "nvidia.com/gpu"),
        *_definitions(),
        configuration(),
        karmadas_webhooks("MutatingWebhookConfiguration", "mutating-config"),
        karmadas_webhooks("ValidatingWebhookConfiguration", "validating-config"),
        secret("fairway-webhook", OURS, certificate("webhook", ("fairway-webhook.fairway-system.svc",))),
    )


def _green_members() -> Mapping[str, tuple[Manifest, ...]]:
    system = priority_class("system-node-critical", 2_000_001_000)
    return {name: (node(f"{name}1", 8), node(f"{name}2", 8), system, *gang_classes()) for name in ("a", "b")}


def _reached() -> Mapping[str, Reached]:
    days_ms = 365 * 86_400_000
    return {
        name: Reached(
            f"karmada-scheduler-estimator-{name}.{KARMADA}.svc:10352",
            "",
            SERVICE_HOSTS,
            NOW_MS + days_ms,
            "fairway",
        )
        for name in ("a", "b")
    }


def _called() -> Mapping[str, Reached]:
    paths = ("/bindings", "/bindings/managed")
    urls = [f"{WEBHOOK_URL}{path}" for path in paths]
    urls.append("https://karmada-webhook.karmada-system.svc:443/mutate-resourcebinding")
    return {url: Reached(url, "", ("x",), NOW_MS + 80 * 86_400_000) for url in urls}


@dataclass(frozen=True)
class Installation:
    """A host, a Karmada and members; each method gives a changed one."""

    host: tuple[Manifest, ...] | None = field(default_factory=_green_host)
    karmada: tuple[Manifest, ...] | None = field(default_factory=_green_karmada)
    members: Mapping[str, tuple[Manifest, ...]] = field(default_factory=_green_members)
    versions: Mapping[str, str] = field(
        default_factory=lambda: {"host": "v1.34.1", "karmada": "v1.36.2", "a": "v1.34.1", "b": "v1.34.1"}
    )
    estimators: Mapping[str, Reached] = field(default_factory=_reached)
    webhooks: Mapping[str, Reached] = field(default_factory=_called)

    def edit(self, plane: str, name: str, path: str, value: Json) -> Installation:
        """``name`` as ``Kind/name``; ``path`` with dots and indices; None removes the field."""
        objects = [_edited(each, path, value) if _is(each, name) else each for each in self._of(plane)]
        return self._with(plane, objects)

    def without(self, plane: str, name: str) -> Installation:
        return self._with(plane, [each for each in self._of(plane) if not _is(each, name)])

    def plus(self, plane: str, *objects: Manifest) -> Installation:
        return self._with(plane, [*self._of(plane), *objects])

    def flags(self, program: str, *flags: str, drop: Sequence[str] = ()) -> Installation:
        """More flags for a program of the host, without those whose names are dropped."""

        def changed(each: Manifest) -> Manifest:
            words = _at(each, "spec.template.spec.containers.0.command")
            assert isinstance(words, list)
            kept = [word for word in words if str(word).partition("=")[0] not in drop]
            return _edited(each, "spec.template.spec.containers.0.command", [*kept, *flags])

        name = f"Deployment/{program}"
        return self._with("host", [changed(each) if _is(each, name) else each for each in self._of("host")])

    def image(self, program: str, image: str) -> Installation:
        return self.edit("host", f"Deployment/{program}", "spec.template.spec.containers.0.image", image)

    def karmada_release(self, tag: str) -> Installation:
        made = self
        for program in ("karmada-scheduler", "karmada-controller-manager", "karmada-webhook"):
            made = made.image(program, f"docker.io/karmada/{program}:{tag}")
        return made

    def evidence(self, folder: Path) -> Evidence:
        """As the doctor reads it, from dumps that are written into the folder."""

        def plane(role: Role, name: str, objects: tuple[Manifest, ...] | None) -> Plane | None:
            if objects is None:
                return None
            file = write(folder / f"{name}.json", objects)
            read = PlaneDump(role, name, PLATFORM_KINDS[role]).read(file)
            assert not read.problems
            return replace(read.plane, version=self.versions.get(name, ""))

        members = {name: plane(Role.MEMBER, name, objects) for name, objects in self.members.items()}
        return Evidence(
            NOW_MS,
            plane(Role.HOST, "host", self.host),
            plane(Role.KARMADA, "karmada", self.karmada),
            {name: each for name, each in members.items() if each is not None},
            self.estimators,
            self.webhooks,
        )

    def _of(self, plane: str) -> tuple[Manifest, ...]:
        found = self.host if plane == "host" else self.karmada if plane == "karmada" else self.members[plane]
        assert found is not None
        return found

    def _with(self, plane: str, objects: Sequence[Manifest]) -> Installation:
        made = tuple(objects)
        assert made != self._of(plane), "the change changes nothing"
        match plane:
            case "host":
                return replace(self, host=made)
            case "karmada":
                return replace(self, karmada=made)
            case _:
                return replace(self, members={**self.members, plane: made})


def write(file: Path, objects: Sequence[Manifest]) -> Path:
    """As ``kubectl get -o json`` writes it."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return file


def _is(manifest: Manifest, name: str) -> bool:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return f"{manifest['kind']}/{metadata['name']}" == name


def _at(value: Json, path: str) -> Json:
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)]
        else:
            assert isinstance(value, dict)
            value = value[step]
    return value


def _edited(manifest: Manifest, path: str, value: Json) -> Manifest:
    """A copy with the value there; None takes the field away."""
    made: Manifest = json.loads(json.dumps(manifest))
    above, _, last = path.rpartition(".")
    parent = _at(made, above) if above else made
    if isinstance(parent, list):
        parent[int(last)] = value
    else:
        assert isinstance(parent, dict)
        if value is None:
            del parent[last]
        else:
            parent[last] = value
    return made
