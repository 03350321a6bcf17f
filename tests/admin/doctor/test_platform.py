"""Each check of the platform: all is well, and each break turns exactly the line red that is about it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.kinds import CLUSTERS, DEPLOYMENTS, MUTATING, PODS, VALIDATING, Kind
from admin.doctor.platform import PLATFORM
from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope
from fairway.service.version import release
from tests.admin.doctor.installation import (
    KARMADA,
    NOW_MS,
    OURS,
    PKI,
    SERVICE_HOSTS,
    WEBHOOK_URL,
    Installation,
    Json,
    Manifest,
    admission_policies,
    authority,
    certificate,
    cluster,
    configuration,
    deployment,
    external_service,
    gang_classes,
    gpu_quota,
    karmadas_webhooks,
    pod,
    priority_class,
    secret,
    service,
)
from tests.certs import DAY, NOW, Authority
from webhook.match_conditions import growth_conditions

Change = Callable[[Installation], Installation]

DAY_MS = 86_400_000
E, W, N, U = Verdict.ERROR, Verdict.WARNING, Verdict.NOTE, Verdict.UNKNOWN
SCHEDULER, CONTROLLERS = "karmada-scheduler", "karmada-controller-manager"
GATES = "--feature-gates"
HOOK = "MutatingWebhookConfiguration/fairway-webhook"
ESTIMATOR = "karmada-scheduler-estimator-a"
CLASS = "PriorityClass/fairway-gang"
USUAL = priority_class("usual", 1000, globalDefault=True)


def findings(evidence: Evidence) -> dict[str, list[Finding]]:
    """What is not simply well, by check."""
    found: dict[str, list[Finding]] = {}
    for check in PLATFORM:
        for finding in check.findings(evidence):
            if finding.verdict is not Verdict.OK:
                found.setdefault(check.name, []).append(finding)
    return found


def told(found: dict[str, list[Finding]]) -> dict[str, list[str]]:
    return {name: [f"{each.subject}: {each.message}" for each in of] for name, of in found.items()}


def test_all_is_well(tmp_path: Path) -> None:
    assert told(findings(Installation().evidence(tmp_path))) == {}


def test_names_are_stable_and_say_what_they_ask() -> None:
    names = [check.name for check in PLATFORM]
    assert len(set(names)) == len(names)
    for check in PLATFORM:
        assert check.name == check.name.lower().replace("_", "-")
        assert check.question.endswith("?")
        assert check.well
        assert not check.well.endswith(".")


def expiring(days: int) -> Change:
    data = certificate("estimator", SERVICE_HOSTS, days)
    return lambda one: one.without("host", "Secret/karmada-scheduler-estimator-cert").plus(
        "host", secret("karmada-scheduler-estimator-cert", KARMADA, data)
    )


def karmadactl(one: Installation) -> Installation:
    """The layout of karmadactl and the operator: one Secret for all, other names of keys."""
    pair = certificate("estimator", SERVICE_HOSTS)
    data = {"karmada.crt": pair["tls.crt"], "karmada.key": pair["tls.key"], "ca.crt": pair["ca.crt"]}
    return _other_layout(one, "karmada-cert", data, "ca.crt")


def helm(one: Installation) -> Installation:
    """The layout of the chart."""
    pair = certificate("estimator", SERVICE_HOSTS)
    data = {"karmada.crt": pair["tls.crt"], "karmada.key": pair["tls.key"], "server-ca.crt": pair["ca.crt"]}
    return _other_layout(one, "karmada-cert", data, "server-ca.crt")


def _other_layout(one: Installation, name: str, data: dict[str, bytes], authority_key: str) -> Installation:
    client = f"{PKI}/client"
    made = one.without("host", "Secret/karmada-scheduler-estimator-cert")
    made = made.without("host", "Secret/karmada-scheduler-scheduler-estimator-client-cert")
    made = made.plus("host", secret(name, KARMADA, data))
    volume = "spec.template.spec.volumes.0.secret.secretName"
    for program in (SCHEDULER, "karmada-scheduler-estimator-a", "karmada-scheduler-estimator-b"):
        made = made.edit("host", f"Deployment/{program}", volume, name)
    made = made.flags(
        SCHEDULER,
        f"--scheduler-estimator-ca-file={client}/{authority_key}",
        f"--scheduler-estimator-cert-file={client}/karmada.crt",
        f"--scheduler-estimator-key-file={client}/karmada.key",
        drop=[f"--scheduler-estimator-{each}-file" for each in ("ca", "cert", "key")],
    )
    for cluster_name in ("a", "b"):
        made = made.flags(
            f"karmada-scheduler-estimator-{cluster_name}",
            f"--grpc-auth-cert-file={PKI}/karmada.crt",
            f"--grpc-auth-key-file={PKI}/karmada.key",
            f"--grpc-client-ca-file={PKI}/{authority_key}",
            drop=["--grpc-auth-cert-file", "--grpc-auth-key-file", "--grpc-client-ca-file"],
        )
    return made


def policies_instead(one: Installation) -> Installation:
    made = one.without("karmada", HOOK).without("host", "Deployment/fairway-webhook")
    return made.plus("karmada", *admission_policies())


def one_estimator_for_both(one: Installation) -> Installation:
    """Ours, with a Service on karmada-apiserver that sends the scheduler to it."""
    made = one.without("host", "Deployment/karmada-scheduler-estimator-a")
    made = made.without("host", "Deployment/karmada-scheduler-estimator-b")
    made = made.without("host", "Service/karmada-scheduler-estimator-a")
    made = made.without("host", "Service/karmada-scheduler-estimator-b")
    both = deployment(
        "fairway-estimator",
        f"ghcr.io/fairway-dev/fairway-estimator:{release()}",
        [
            "fairway-estimator",
            "--cluster=a=/etc/fairway/members/a/a-kubeconfig",
            "--cluster=b=/etc/fairway/members/b/b-kubeconfig",
            f"--grpc-auth-cert-file={PKI}/tls.crt",
            f"--grpc-auth-key-file={PKI}/tls.key",
            f"--grpc-client-ca-file={PKI}/ca.crt",
            "--feature-gates=AllAlpha=true",
        ],
        secrets={PKI: "karmada-scheduler-estimator-cert"},
    )
    made = made.plus("host", both)
    host = f"fairway-estimator.{KARMADA}.svc"
    services = [external_service(f"karmada-scheduler-estimator-{name}", host, 10352) for name in ("a", "b")]
    return made.plus("karmada", *services)


@pytest.mark.parametrize(
    "change",
    [
        karmadactl,
        helm,
        policies_instead,
        one_estimator_for_both,
        lambda one: one.karmada_release("v1.16.6").flags(
            SCHEDULER, f"{GATES}=SchedulingOvercommitProtection=false,CustomizedClusterResourceModeling=false"
        ),
        lambda one: one.flags(SCHEDULER, f"{GATES}=AllAlpha=true,AllBeta=false", drop=[GATES]),
        lambda one: one.plus("karmada", cluster("cpu-only")).plus(
            "host", service("karmada-scheduler-estimator-cpu-only")
        ),
    ],
    ids=["karmadactl", "helm", "policies", "one-estimator", "1.16.6", "gates-by-stage", "more-clusters"],
)
def test_other_installations_have_nothing_worse_than_notes(
    change: Change, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = findings(change(Installation()).evidence(tmp_path))
    allowed = {
        # A cluster that nobody has asked, and whose nodes nobody has read.
        "more-clusters": {"estimator-reach", "general-estimate"},
    }.get(request.node.callspec.id, set())
    assert {name for name, of in found.items() if any(each.verdict is not N for each in of)} == allowed


def entry(field: str, value: Json) -> Change:
    return lambda one: one.edit("karmada", HOOK, f"webhooks.0.{field}", value)


def program_image(program: str, image: str) -> Change:
    return lambda one: one.image(program, image)


BREAKS: list[tuple[str, Verdict, str, Change]] = [
    # Karmada's release
    ("karmada-release", E, "1.12.3 cannot suspend", lambda o: _release(o, "v1.12.3")),
    ("karmada-release", E, "schedules held bindings", lambda o: _release(o, "v1.13.2")),
    ("karmada-release", N, "keeps a dispatching suspension", lambda o: _release(o, "v1.14.3")),
    ("karmada-release", W, "asks estimators nothing", lambda o: _release(o, "v1.15.7")),
    ("karmada-release", E, "several pod templates where estimators", lambda o: _release(o, "v1.17.2")),
    ("karmada-release", N, "retries what does not fit", lambda o: _release(o, "v1.17.1")),
    ("karmada-release", W, "does not tell estimators the namespace", lambda o: _release(o, "v1.16.2")),
    ("karmada-release", U, "tells no release", program_image(SCHEDULER, "x/karmada-scheduler:latest")),
    ("karmada-release", W, "of different releases", program_image(CONTROLLERS, f"x/{CONTROLLERS}:v1.17.5")),
    # The estimator's wire
    (
        "estimator-wire",
        E,
        "it sees no requests",
        lambda o: o.karmada_release("v1.19.0").image(ESTIMATOR, "x/karmada-scheduler-estimator:v1.17.5"),
    ),
    # Kubernetes
    ("kubernetes-version", E, "older than 1.29", lambda o: _version(o, "karmada", "v1.28.9")),
    ("kubernetes-version", W, "older than 1.30.0, the oldest", lambda o: _version(o, "a", "v1.29.1-eks-1")),
    ("kubernetes-version", N, "newer than 1.36.0", lambda o: _version(o, "host", "v1.37.0")),
    ("kubernetes-version", U, "a dump does not tell", lambda o: _version(o, "host", "")),
    # Gates
    (
        "component-gate",
        E,
        "off in karmada-webhook and on in karmada-scheduler",
        lambda o: o.flags("karmada-webhook", drop=[GATES]),
    ),
    (
        "component-gate",
        E,
        "off in karmada-controller-manager",
        lambda o: o.flags(CONTROLLERS, f"{GATES}=ResourceQuotaEstimate=true", drop=[GATES]),
    ),
    (
        "component-gate",
        N,
        "off everywhere",
        lambda o: (
            o.flags("karmada-webhook", drop=[GATES])
            .flags(CONTROLLERS, f"{GATES}=MultiplePodTemplatesScheduling=false")
            .flags(SCHEDULER, f"{GATES}=MultiplePodTemplatesScheduling=false")
        ),
    ),
    (
        "quota-gate",
        W,
        "tells no namespace",
        lambda o: o.flags(CONTROLLERS, f"{GATES}=ResourceQuotaEstimate=false"),
    ),
    (
        "quota-gate",
        W,
        "measured differently",
        lambda o: o.flags(ESTIMATOR, f"{GATES}=ResourceQuotaEstimate=0"),
    ),
    (
        "quota-gate",
        W,
        "no estimator counts ResourceQuotas",
        lambda o: o.flags(ESTIMATOR, f"{GATES}=ResourceQuotaEstimate=0").flags(
            "karmada-scheduler-estimator-b", f"{GATES}=ResourceQuotaEstimate=0"
        ),
    ),
    (
        "quota-gate",
        W,
        "ResourceQuota team-a/gpus limit accelerators",
        lambda o: _no_quota_gate(o).plus("a", gpu_quota("team-a")),
    ),
    ("quota-gate", U, "cannot be seen", lambda o: replace(_no_quota_gate(o), members={})),
    (
        "overcommit-gate",
        W,
        "that Karmada places close together",
        lambda o: o.flags(SCHEDULER, f"{GATES}=SchedulingOvercommitProtection=false"),
    ),
    (
        "overcommit-gate",
        W,
        "off here",
        lambda o: o.flags(ESTIMATOR, f"{GATES}=SchedulingOvercommitProtection=false"),
    ),
    ("overcommit-gate", N, "has no SchedulingOvercommitProtection", lambda o: _release(o, "v1.17.5")),
    (
        "priority-gate",
        N,
        "PriorityBasedScheduling is off",
        lambda o: o.flags(SCHEDULER, f"{GATES}=PriorityBasedScheduling=false"),
    ),
    # The scheduler's flags
    (
        "scheduler-flags",
        E,
        "without --enable-scheduler-estimator",
        lambda o: o.flags(SCHEDULER, drop=["--enable-scheduler-estimator"]),
    ),
    (
        "scheduler-flags",
        W,
        "--scheduler-estimator-timeout=200ms",
        lambda o: o.flags(SCHEDULER, "--scheduler-estimator-timeout=200ms"),
    ),
    (
        "scheduler-flags",
        W,
        "holds up all scheduling",
        lambda o: o.flags(SCHEDULER, "--scheduler-estimator-timeout", "1m0s"),
    ),
    (
        "scheduler-flags",
        W,
        "whoever answers",
        lambda o: o.flags(SCHEDULER, "--insecure-skip-estimator-verify"),
    ),
    (
        "pull-mode",
        E,
        "a in pull mode",
        lambda o: o.flags(SCHEDULER, "--disable-scheduler-estimator-in-pull-mode").edit(
            "karmada", "Cluster/a", "spec.syncMode", "Pull"
        ),
    ),
    (
        "client-throttle",
        N,
        "about 10 placements a second",
        lambda o: o.flags(SCHEDULER, drop=["--kube-api-qps", "--kube-api-burst"]),
    ),
    (
        "client-throttle",
        W,
        "about 2 objects in member clusters",
        lambda o: o.flags(CONTROLLERS, "--kube-api-qps=20"),
    ),
    # Clusters
    (
        "clusters-ready",
        W,
        "is not Ready (NetworkError)",
        lambda o: o.edit(
            "karmada",
            "Cluster/a",
            "status.conditions.0",
            {"type": "Ready", "status": "False", "reason": "NetworkError"},
        ),
    ),
    (
        "resource-models",
        E,
        "a, b do not name nvidia.com/gpu: every workload that asks",
        lambda o: o.flags(SCHEDULER, f"{GATES}=CustomizedClusterResourceModeling=true"),
    ),
    (
        "resource-models",
        E,
        "every workload of several pod templates",
        lambda o: _release(o, "v1.17.5").flags(SCHEDULER, f"{GATES}=CustomizedClusterResourceModeling=true"),
    ),
    (
        "general-estimate",
        E,
        "status.resourceSummary is missing",
        lambda o: o.edit("karmada", "Cluster/a", "status.resourceSummary", None),
    ),
    (
        "general-estimate",
        E,
        "allocatable has no nvidia.com/gpu",
        lambda o: o.edit("karmada", "Cluster/a", "status.resourceSummary.allocatable", {"cpu": "96"}),
    ),
    (
        "general-estimate",
        W,
        "ask for 12 nvidia.com/gpu of 6 that are free",
        lambda o: o.edit(
            "karmada", "Cluster/a", "status.resourceSummary.allocated", {"nvidia.com/gpu": "10"}
        ).edit("karmada", "Cluster/a", "status.resourceSummary.allocating", {"nvidia.com/gpu": "12"}),
    ),
    (
        "general-estimate",
        W,
        "expected quantities",
        lambda o: o.edit("karmada", "Cluster/a", "status.resourceSummary.allocated", {"pods": "many"}),
    ),
    (
        "general-estimate",
        U,
        "a state no accelerators",
        lambda o: replace(
            o.edit("karmada", "Cluster/a", "status.resourceSummary.allocatable", {"cpu": "96"}), members={}
        ),
    ),
    # PriorityClasses
    (
        "gang-classes",
        W,
        "a: PriorityClasses: fairway-gang-1 to fairway-gang-8 are missing",
        lambda o: _ranked(o),
    ),
    ("gang-classes", W, "fairway-gang-4 is missing: gangs", lambda o: o.without("a", f"{CLASS}-4")),
    (
        "gang-classes",
        W,
        "fairway-gang-4: value: expected 4, found 40: gangs",
        lambda o: o.edit("a", f"{CLASS}-4", "value", 40),
    ),
    (
        "gang-classes",
        W,
        "fairway-gang-8: preemptionPolicy: expected Never, found PreemptLowerPriority",
        lambda o: o.edit("a", f"{CLASS}-8", "preemptionPolicy", None),
    ),
    (
        "gang-classes",
        W,
        "fairway-gang-8: globalDefault: expected false, found true",
        lambda o: _ranked(o, *gang_classes()[:7], priority_class("fairway-gang-8", 0, globalDefault=True)),
    ),
    (
        "gang-classes",
        W,
        "fairway-gang-1 to fairway-gang-8: value: expected 1001 to 1008 (right above the 1000 of pods that "
        "name no class), found 1 to 8: gangs",
        lambda o: o.plus("a", USUAL),
    ),
    (
        "gang-classes",
        W,
        "fairway-gang-2: preemptionPolicy: expected Never, found PreemptLowerPriority; "
        "fairway-gang-4, fairway-gang-6: value: expected 4, 6, found 40, 6000: gangs",
        lambda o: (
            o.edit("a", f"{CLASS}-4", "value", 40)
            .edit("a", f"{CLASS}-6", "value", 6000)
            .edit("a", f"{CLASS}-2", "preemptionPolicy", None)
        ),
    ),
    ("gang-classes", U, "a: priorityclasses", lambda o: _no_classes(o)),
    ("gang-classes", U, "no member cluster was given", lambda o: replace(o, members={})),
    # Estimators
    (
        "estimator-services",
        E,
        "Cluster a has no estimator",
        lambda o: o.without("host", f"Service/{ESTIMATOR}"),
    ),
    (
        "estimator-services",
        E,
        "expected 10352, which the scheduler dials, found 9999",
        lambda o: o.without("host", f"Service/{ESTIMATOR}").plus("host", service(ESTIMATOR, 9999)),
    ),
    (
        "estimator-services",
        E,
        "spec.type: expected ExternalName",
        lambda o: o.plus("karmada", service(ESTIMATOR)),
    ),
    (
        "estimator-services",
        E,
        "targetPort: expected a number, found 'grpc'",
        lambda o: o.plus("karmada", external_service(ESTIMATOR, "x", "grpc")),
    ),
    (
        "estimator-services",
        E,
        "expected one with port 10352",
        lambda o: o.plus("karmada", external_service(ESTIMATOR, "x", 1, 2)),
    ),
    (
        "estimator-services",
        E,
        "expected a host, found none",
        lambda o: o.plus("karmada", external_service(ESTIMATOR, "", 1)),
    ),
    ("estimator-reach", E, "no connection", lambda o: _reached(o, problem="no connection: refused")),
    (
        "estimator-reach",
        U,
        "cannot be found from here",
        lambda o: replace(o, estimators={"b": o.estimators["b"]}),
    ),
    ("estimator-reach", U, "none was asked", lambda o: replace(o, estimators={})),
    ("stock-estimators", N, "Karmada's own estimator answers", lambda o: _reached(o, detail="stock")),
    (
        "estimator-tls",
        E,
        "one is missing",
        lambda o: o.flags(SCHEDULER, drop=["--scheduler-estimator-key-file"]),
    ),
    (
        "estimator-tls",
        E,
        "asks in plaintext: no call",
        lambda o: o.flags(SCHEDULER, drop=[f"--scheduler-estimator-{x}-file" for x in ("ca", "cert", "key")]),
    ),
    (
        "estimator-tls",
        E,
        "serves plaintext, and karmada-scheduler asks over TLS",
        lambda o: o.flags(ESTIMATOR, drop=["--grpc-auth-cert-file", "--grpc-auth-key-file"]),
    ),
    (
        "estimator-tls",
        W,
        "takes calls of anybody",
        lambda o: o.flags(ESTIMATOR, drop=["--grpc-client-ca-file"]),
    ),
    (
        "estimator-certificates",
        E,
        "made out to elsewhere, 127.0.0.1",
        lambda o: _server_certificate(o, certificate("estimator", ("elsewhere",))),
    ),
    (
        "estimator-certificates",
        E,
        "signed by none of the authorities",
        lambda o: _server_certificate(o, _stranger()),
    ),
    (
        "estimator-certificates",
        E,
        "has no key tls.crt",
        lambda o: _server_certificate(o, {"ca.crt": authority().pem}),
    ),
    (
        "estimator-certificates",
        E,
        "expected PEM certificates",
        lambda o: _server_certificate(o, {**certificate("e", SERVICE_HOSTS), "tls.crt": b"x"}),
    ),
    # Certificates
    ("certificate-expiry", W, "in 10 days", expiring(10)),
    (
        "certificate-expiry",
        E,
        "expired on",
        lambda o: _server_certificate(o, certificate("estimator", SERVICE_HOSTS, -3)),
    ),
    (
        "certificate-expiry",
        W,
        "the certificate that it serves with expires",
        lambda o: _reached(o, not_after_ms=NOW_MS + 5 * DAY_MS),
    ),
    # What holds bindings
    ("binding-admission", E, "neither a webhook", lambda o: o.without("karmada", HOOK)),
    ("binding-admission", N, "both the webhook", lambda o: o.plus("karmada", *admission_policies())),
    (
        "binding-admission",
        E,
        "no MutatingAdmissionPolicyBinding names it",
        lambda o: o.plus("karmada", *admission_policies()).without(
            "karmada", "MutatingAdmissionPolicyBinding/fairway-growth"
        ),
    ),
    (
        "scope-agrees",
        E,
        "--hold-kind: fairway-webhook is told nothing, the dispatcher Job.batch",
        lambda o: o.flags("fairway-dispatcher", "--hold-kind=Job.batch"),
    ),
    (
        "scope-agrees",
        E,
        "--observe: fairway-webhook is told nothing, the dispatcher true",
        lambda o: o.flags("fairway-dispatcher", "--observe"),
    ),
    (
        "scope-agrees",
        U,
        "is told --hold-kind=Job.batch, and admission policies hold in place of fairway-webhook",
        lambda o: _by_policies(o).flags("fairway-dispatcher", "--hold-kind=Job.batch"),
    ),
    ("webhook-entries", E, "no entry creation.fairway.dev", entry("name", "other.fairway.dev")),
    ("webhook-entries", W, "failurePolicy: expected Fail, found Ignore", entry("failurePolicy", "Ignore")),
    ("webhook-entries", E, "rules: not what", entry("rules.0.operations", ["DELETE"])),
    (
        "webhook-entries",
        E,
        "namespaceSelector: not what",
        entry("namespaceSelector", {"matchLabels": {"team": "x"}}),
    ),
    ("webhook-entries", E, "objectSelector", entry("objectSelector", {"matchLabels": {"team": "x"}})),
    ("webhook-entries", W, "matchConditions[name=grows]", lambda o: _condition(o, "true")),
    ("webhook-entries", W, "no condition is-workload", entry("matchConditions.0.name", "other")),
    ("webhook-entries", E, "matchConditions[name=other]: is none", entry("matchConditions.0.name", "other")),
    ("webhook-entries", W, "timeoutSeconds: expected 3, found 30", entry("timeoutSeconds", 30)),
    ("webhook-entries", W, "reinvocationPolicy: expected IfNeeded", entry("reinvocationPolicy", "Never")),
    (
        "webhook-authority",
        E,
        "caBundle: missing",
        lambda o: o.edit("karmada", HOOK, "webhooks.0.clientConfig.caBundle", None),
    ),
    (
        "webhook-authority",
        E,
        "has no authority that signed",
        lambda o: o.without("karmada", HOOK).plus("karmada", configuration(WEBHOOK_URL, Authority("x").pem)),
    ),
    (
        "webhook-authority",
        E,
        "service: karmada-apiserver has no Services",
        entry("clientConfig.service", {"name": "x", "namespace": "y"}),
    ),
    (
        "policy-entries",
        E,
        "is missing",
        lambda o: policies_instead(o).without("karmada", "MutatingAdmissionPolicy/fairway-growth"),
    ),
    (
        "policy-entries",
        W,
        "spec.failurePolicy: expected Fail, found Ignore",
        lambda o: policies_instead(o).edit(
            "karmada", "MutatingAdmissionPolicy/fairway-growth", "spec.failurePolicy", "Ignore"
        ),
    ),
    (
        "policy-entries",
        W,
        "narrows the policy",
        lambda o: policies_instead(o).edit(
            "karmada",
            "MutatingAdmissionPolicyBinding/fairway-growth",
            "spec.matchResources",
            {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        ),
    ),
    ("other-webhooks", E, "volcano-global holds", lambda o: o.plus("karmada", _other("bindings.volcano.sh"))),
    ("other-webhooks", N, "changes bindings beside", lambda o: o.plus("karmada", _other("x.example.com"))),
    ("webhook-reach", E, "refused (creation.fairway.dev", lambda o: _called(o, "refused")),
    ("webhook-reach", U, "no webhook was called", lambda o: replace(o, webhooks={})),
    # Our programs
    (
        "programs-ready",
        E,
        "none of 2 replicas",
        lambda o: o.edit("host", "Deployment/fairway-dispatcher", "status.readyReplicas", 0),
    ),
    (
        "programs-ready",
        W,
        "1 of 2 replicas are ready",
        lambda o: o.edit("host", "Deployment/fairway-webhook", "status.readyReplicas", 1),
    ),
    (
        "programs-ready",
        W,
        "a rollout is under way",
        lambda o: o.edit("host", f"Deployment/{ESTIMATOR}", "status.updatedReplicas", 1),
    ),
    (
        "programs-ready",
        E,
        "it is switched off",
        lambda o: o.edit("host", "Deployment/fairway-dispatcher", "spec.replicas", 0),
    ),
    (
        "programs-ready",
        E,
        "what is held is never released",
        lambda o: o.without("host", "Deployment/fairway-dispatcher"),
    ),
    (
        "programs-ready",
        E,
        "no admission policies take its place",
        lambda o: o.without("host", "Deployment/fairway-webhook"),
    ),
    (
        "program-versions",
        W,
        "of different releases",
        program_image("fairway-webhook", "x/fairway-webhook:9.9.9"),
    ),
    ("program-versions", U, "tells no release", program_image(ESTIMATOR, "x/fairway-estimator@sha256:00")),
    (
        "crash-loops",
        E,
        "CrashLoopBackOff: back-off",
        lambda o: o.plus(
            "host",
            pod(
                "fairway-webhook-1",
                OURS,
                "fairway-webhook",
                {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            ),
        ),
    ),
    (
        "crash-loops",
        W,
        "was restarted 7 times",
        lambda o: o.plus("host", pod("karmada-scheduler-2", KARMADA, SCHEDULER, {"running": {}}, 7)),
    ),
    (
        "mounted-secrets",
        E,
        "no Secret fairway-system/fairway-karmada-dispatcher",
        lambda o: o.without("host", "Secret/fairway-karmada-dispatcher"),
    ),
    (
        "mounted-secrets",
        E,
        "has no key other",
        lambda o: o.edit(
            "host",
            "Deployment/fairway-webhook",
            "spec.template.spec.volumes.0.secret.items",
            [{"key": "other", "path": "kubeconfig"}],
        ),
    ),
    (
        "dispatcher-flags",
        W,
        "asks no estimator",
        lambda o: o.flags("fairway-dispatcher", drop=["--enable-scheduler-estimator"]),
    ),
    (
        "dispatcher-flags",
        E,
        "each releases what the others",
        lambda o: o.flags("fairway-dispatcher", "--leader-elect=false"),
    ),
    (
        "estimator-tls",
        E,
        "serves TLS, and fairway-dispatcher asks in plaintext",
        lambda o: o.flags(
            "fairway-dispatcher", drop=[f"--scheduler-estimator-{x}-file" for x in ("ca", "cert", "key")]
        ),
    ),
    # Definitions
    (
        "definitions",
        E,
        "is not there",
        lambda o: o.without("karmada", "CustomResourceDefinition/localqueues.fairway.dev"),
    ),
    (
        "definitions",
        E,
        "expected v1alpha1 to be served",
        lambda o: o.edit(
            "karmada", "CustomResourceDefinition/localqueues.fairway.dev", "spec.versions.0.served", False
        ),
    ),
    (
        "definitions",
        W,
        "schema: not that of this release",
        lambda o: o.edit(
            "karmada",
            "CustomResourceDefinition/localqueues.fairway.dev",
            "spec.versions.0.schema.openAPIV3Schema",
            {"type": "object"},
        ),
    ),
    (
        "definitions",
        E,
        "Established is False",
        lambda o: o.edit(
            "karmada",
            "CustomResourceDefinition/localqueues.fairway.dev",
            "status",
            {"conditions": [{"type": "Established", "status": "False"}]},
        ),
    ),
]


@pytest.mark.parametrize(
    ("check", "verdict", "text", "change"), BREAKS, ids=[f"{check}: {text}" for check, _, text, _ in BREAKS]
)
def test_a_break_turns_its_line_red_and_no_other(
    check: str, verdict: Verdict, text: str, change: Change, tmp_path: Path
) -> None:
    found = findings(change(Installation()).evidence(tmp_path))
    hits = [each for each in found.get(check, ()) if text in f"{each.subject}: {each.message}"]
    assert hits, told(found)
    assert {each.verdict for each in hits} == {verdict}
    assert all(each.remedy for each in hits)
    others = told({name: of for name, of in found.items() if name != check})
    assert set(others) <= ALSO.get(text, set()), others


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda o: _ranked(o, USUAL, *gang_classes(1000)), id="above-a-default"),
        pytest.param(lambda o: o.plus("a", priority_class("urgent", 5)), id="among-others"),
    ],
)
def test_classes_right_above_what_pods_get_are_well(change: Change, tmp_path: Path) -> None:
    assert "gang-classes" not in findings(change(Installation()).evidence(tmp_path))


@pytest.mark.parametrize("flag", ["--guidance=false", "--placement=karmada"])
def test_classes_do_not_matter_where_nobody_is_told_where_to_go(flag: str, tmp_path: Path) -> None:
    made = _ranked(Installation()).flags("fairway-dispatcher", flag)
    (found,) = findings(made.evidence(tmp_path))["gang-classes"]
    assert found.verdict is N
    assert found.message.startswith("does not apply")


@pytest.mark.parametrize(
    ("change", "base"),
    [
        (lambda o: _ranked(o), 0),
        (lambda o: _ranked(o, USUAL), 1000),
        (lambda o: o.without("a", f"{CLASS}-3"), 0),
    ],
    ids=["none", "none-above-a-default", "one"],
)
def test_missing_classes_are_mended_by_the_patch(change: Change, base: int, tmp_path: Path) -> None:
    broken = change(Installation())
    (found,) = findings(broken.evidence(tmp_path))["gang-classes"]
    assert found.patch is not None
    assert found.patch.plane == "a"
    mended = broken.plus("a", *yaml.safe_load_all(found.patch.body))
    assert "gang-classes" not in findings(mended.evidence(tmp_path))
    assert (f"values {base + 1} to {base + 8}" in found.remedy) is bool(base)


def test_classes_that_are_wrong_have_to_go_first(tmp_path: Path) -> None:
    broken = Installation().edit("a", f"{CLASS}-4", "value", 40).without("a", f"{CLASS}-5")
    (found,) = findings(broken.evidence(tmp_path))["gang-classes"]
    assert found.patch is None
    assert "delete priorityclass fairway-gang-4; then kubectl apply -k manifests/member" in found.remedy


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda o: replace(o, host=None), "host: the host API server was not given"),
        (lambda o: o.without("host", "Deployment/fairway-webhook"), "or pod runs fairway-webhook"),
        (lambda o: o.without("host", "Deployment/fairway-dispatcher"), "or pod runs fairway-dispatcher"),
        (lambda o: _by_policies(o), ""),
    ],
    ids=["no-host", "no-webhook", "no-dispatcher", "policies-of-no-flags"],
)
def test_scopes_that_cannot_be_compared_are_not_called_well(
    change: Change, says: str, tmp_path: Path
) -> None:
    told = findings(change(Installation()).evidence(tmp_path)).get("scope-agrees", [])
    assert [each.verdict for each in told] == [U] * bool(says)
    assert all(says in f"{each.subject}: {each.message}" and each.remedy for each in told)


@pytest.mark.parametrize(
    ("check", "kinds", "says"),
    [
        ("dispatcher-flags", (DEPLOYMENTS, PODS), "nothing runs fairway-dispatcher"),
        ("scope-agrees", (DEPLOYMENTS, PODS), "nothing runs fairway-webhook or fairway-dispatcher"),
        ("estimator-reach", (CLUSTERS,), "there is no Cluster whose estimator would be asked"),
        ("webhook-reach", (MUTATING, VALIDATING), "no webhook is registered by a URL"),
    ],
)
def test_what_there_is_nothing_of_is_not_called_well(
    check: str, kinds: tuple[Kind, ...], says: str, tmp_path: Path
) -> None:
    whole = Installation().evidence(tmp_path)
    none = dict.fromkeys([kind.name for kind in kinds], ())
    host, karmada = (
        replace(plane, objects={**plane.objects, **none}) for plane in (whole.on_host(), whole.on_karmada())
    )
    (found,) = findings(replace(whole, host=host, karmada=karmada))[check]
    assert (found.verdict, found.message) == (N, f"does not apply: {says}")


ALSO: dict[str, set[str]] = {
    # Members that were not given have PriorityClasses, too, that nobody has seen.
    "cannot be seen": {"gang-classes"},
    "a state no accelerators": {"gang-classes"},
    # Old releases lack a gate, too, and a program cannot be of an old release alone.
    "1.12.3 cannot suspend": {"overcommit-gate"},
    "schedules held bindings": {"overcommit-gate"},
    "keeps a dispatching suspension": {"overcommit-gate"},
    "asks estimators nothing": {"overcommit-gate"},
    "several pod templates where estimators": {"overcommit-gate"},
    "retries what does not fit": {"overcommit-gate"},
    "does not tell estimators the namespace": {"overcommit-gate"},
    "every workload of several pod templates": {"overcommit-gate"},
    # An old estimator is Karmada's own.
    "it sees no requests": {"karmada-release"},
    # Who does not run asks nobody.
    "what is held is never released": {"dispatcher-flags", "scope-agrees"},
    "no admission policies take its place": {"scope-agrees"},
    # What cannot be read has no day on which it ends.
    "expected PEM certificates": {"certificate-expiry"},
}


def _ranked(one: Installation, *classes: Manifest) -> Installation:
    """Of Cluster a, these PriorityClasses beside that of the system."""
    for each in gang_classes():
        one = one.without("a", f"PriorityClass/{_name(each)}")
    return one.plus("a", *classes) if classes else one


def _by_policies(one: Installation) -> Installation:
    """Admission policies in place of the webhook."""
    return (
        one.plus("karmada", *admission_policies())
        .without("karmada", HOOK)
        .without("host", "Deployment/fairway-webhook")
    )


def _no_classes(one: Installation) -> Installation:
    return _ranked(one).without("a", "PriorityClass/system-node-critical")


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _release(one: Installation, tag: str) -> Installation:
    """Gates that the release does not know are not stated, which Karmada refuses to start with."""
    return one.karmada_release(tag).flags(SCHEDULER, f"{GATES}=SchedulingOvercommitProtection=false")


def _version(one: Installation, plane: str, text: str) -> Installation:
    return replace(one, versions={**one.versions, plane: text})


def _no_quota_gate(one: Installation) -> Installation:
    off = f"{GATES}=ResourceQuotaEstimate=false"
    made = one.flags(CONTROLLERS, off).flags(ESTIMATOR, off)
    return made.flags("karmada-scheduler-estimator-b", off)


def _reached(one: Installation, **fields: object) -> Installation:
    changed = replace(one.estimators["a"], **fields)  # type: ignore[arg-type]  # the fields are of its types
    return replace(one, estimators={**one.estimators, "a": changed})


def _called(one: Installation, problem: str) -> Installation:
    url = f"{WEBHOOK_URL}/bindings"
    changed = replace(one.webhooks[url], problem=problem)
    return replace(one, webhooks={**one.webhooks, url: changed})


def test_the_certificate_of_many_webhooks_is_told_once(tmp_path: Path) -> None:
    one = Installation()
    soon = {
        url: replace(each, not_after_ms=NOW_MS + 5 * DAY_MS)
        for url, each in one.webhooks.items()
        if url.startswith(WEBHOOK_URL)
    }
    assert len(soon) > 1
    found = findings(replace(one, webhooks={**one.webhooks, **soon}).evidence(tmp_path))
    assert [each.subject for each in found["certificate-expiry"]] == [f"webhook {WEBHOOK_URL}"]


def _server_certificate(one: Installation, data: Mapping[str, bytes]) -> Installation:
    made = one.without("host", "Secret/karmada-scheduler-estimator-cert")
    return made.plus("host", secret("karmada-scheduler-estimator-cert", KARMADA, data))


def _stranger() -> dict[str, bytes]:
    pair = Authority("stranger").issue("estimator", names=SERVICE_HOSTS, expires=NOW + 300 * DAY)
    return {**certificate("estimator", SERVICE_HOSTS), "tls.crt": pair.certificate}


def _condition(one: Installation, expression: str) -> Installation:
    names = [each.name for each in growth_conditions(Scope(builtin_catalogue()))]
    number = names.index("grows")
    return one.edit("karmada", HOOK, f"webhooks.1.matchConditions.{number}.expression", expression)


def _other(name: str) -> dict[str, Json]:
    made = karmadas_webhooks("MutatingWebhookConfiguration", "other")
    webhooks = made["webhooks"]
    assert isinstance(webhooks, list)
    first = webhooks[0]
    assert isinstance(first, dict)
    return {**made, "webhooks": [{**first, "name": name}]}
