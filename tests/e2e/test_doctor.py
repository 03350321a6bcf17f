"""`fairway doctor` on the plane: all is well, and whatever is broken turns its own line red and no other."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from admin.doctor.finding import Verdict
from admin.doctor.gates import COMPONENTS, MODELING
from tests.e2e import hosted
from tests.e2e.breaking import killed, submitted, without
from tests.e2e.breaks import (
    DEFINITIONS,
    Breaking,
    client_of,
    copied,
    crashing,
    expiring,
    federated_quota,
    karmadas,
    local_queue_to_nowhere,
    on_host,
    on_karmada,
    other_schema,
    queue_without_parent,
    registered,
    torn_gang,
    unknown_kind,
    upgraded,
    webhook_killed,
)
from tests.e2e.doctoring import ask, until_said
from tests.e2e.edits import every_entry, field, flag, image_tag
from tests.e2e.hosted import KARMADA, OURS
from tests.e2e.installation import identity
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, deployment, job

NOTES: Final = dict.fromkeys(("overcommit-gate", "priority-gate", "client-throttle"), Verdict.NOTE)
"""Of a Karmada with its defaults."""
CODES: Final = {Verdict.NOTE: 0, Verdict.UNKNOWN: 2, Verdict.WARNING: 3, Verdict.ERROR: 4}


@dataclass(frozen=True, slots=True)
class Case:
    """``check`` says ``verdict`` and something with ``saying`` while it is broken."""

    name: str
    breaks: Breaking
    check: str
    verdict: Verdict = Verdict.ERROR
    saying: str = ""


BOTH: Final = ("a", "b")
CASES: Final = (
    Case(
        "no-bundle",
        registered(every_entry(field("clientConfig.caBundle", None))),
        "webhook-authority",
        saying="caBundle: missing",
    ),
    Case(
        "lenient",
        registered(every_entry(field("failurePolicy", "Ignore"))),
        "webhook-entries",
        Verdict.WARNING,
        "failurePolicy: expected Fail, found Ignore",
    ),
    Case("webhook-dead", webhook_killed, "webhook-reach", saying="requests that it is to review are refused"),
    Case(
        "models",
        karmadas("karmada-scheduler", flag("feature-gates", f"{COMPONENTS}=true,{MODELING}=true")),
        "resource-models",
        saying=f"{MODELING} is on",
    ),
    Case(
        "nobody-asked",
        karmadas("karmada-scheduler", flag("enable-scheduler-estimator", None)),
        "scheduler-flags",
        saying="no estimator is ever asked",
    ),
    Case(
        "components-in-two",
        karmadas("karmada-webhook", flag("feature-gates", f"{COMPONENTS}=false")),
        "component-gate",
        saying="is off in karmada-webhook",
    ),
    Case(
        "slow",
        karmadas("karmada-controller-manager", flag("kube-api-qps", "20")),
        "client-throttle",
        Verdict.WARNING,
        "--kube-api-qps=20",
    ),
    Case(
        "plaintext",
        karmadas("karmada-scheduler", flag("scheduler-estimator-ca-file", None)),
        "estimator-tls",
        saying="asks in plaintext",
    ),
    Case(
        "half-upgraded",
        karmadas("karmada-webhook", image_tag("v1.16.6")),
        "karmada-release",
        Verdict.WARNING,
        "different releases",
    ),
    Case(
        "upgraded",
        upgraded,
        "overcommit-gate",
        Verdict.WARNING,
        "SchedulingOvercommitProtection is off",
    ),
    Case(
        "estimator-dead",
        lambda tenant: killed(tenant.plane.fairway.estimators["b"]),
        "estimator-reach",
        saying="thrown away",
    ),
    Case(
        "no-service",
        lambda tenant: without(
            client_of(tenant), f"/api/v1/namespaces/{KARMADA}/services/karmada-scheduler-estimator-b"
        ),
        "estimator-services",
        saying="is neither on the host cluster nor on karmada-apiserver",
    ),
    Case(
        "switched-off",
        on_host(hosted.deployment(OURS, "fairway-dispatcher"), field("spec.replicas", 0)),
        "programs-ready",
        saying="switched off",
    ),
    Case(
        "asks-nobody",
        on_host(hosted.deployment(OURS, "fairway-dispatcher"), flag("estimator", None)),
        "dispatcher-flags",
        Verdict.WARNING,
        "asks no estimator",
    ),
    Case(
        "mixed-releases",
        on_host(hosted.estimator("b"), image_tag("0.0.9")),
        "program-versions",
        Verdict.WARNING,
        "different releases",
    ),
    Case(
        "no-secret",
        lambda tenant: without(
            tenant.plane.host.api.client, hosted.secret(OURS, "fairway-karmada-dispatcher")
        ),
        "mounted-secrets",
        saying="no pod of it starts",
    ),
    Case("crashes", crashing, "crash-loops", saying="CrashLoopBackOff"),
    Case("expires", expiring, "certificate-expiry", Verdict.WARNING, "expires on"),
    Case("no-definition", unknown_kind, "definitions"),
    Case(
        "other-definition",
        on_karmada(f"{DEFINITIONS}/localqueues.fairway.dev", other_schema),
        "definitions",
        Verdict.WARNING,
    ),
    Case(
        "copies",
        lambda tenant: submitted(tenant, deployment("copies"), copied(*BOTH)),
        "policy-replicas",
        Verdict.WARNING,
    ),
    Case("torn-gang", torn_gang, "policy-gangs", Verdict.ERROR, "JobSet"),
    Case(
        "no-queue",
        lambda tenant: submitted(tenant, job("lost", queue=""), aggregated(*BOTH)),
        "bindings-held",
        Verdict.WARNING,
        "held for ever",
    ),
    Case("no-parent", queue_without_parent, "queue-tree", saying="nowhere"),
    Case("no-cluster-queue", local_queue_to_nowhere, "local-queues", saying="nowhere"),
    Case("counted-twice", federated_quota, "federated-quotas", Verdict.WARNING, "accounts for"),
)


@pytest.fixture(scope="module")
def patient(whole: Plane, runner: asyncio.Runner) -> Iterator[Tenant]:
    """A namespace with a queue, and a host that shows what runs."""
    made = Tenant(whole, "doctor")

    async def begin() -> None:
        await whole.fairway.heal()
        await hosted.begin(whole)
        await made.begin(8)

    async def end() -> None:
        await made.end()
        await hosted.end(whole)

    try:
        runner.run(begin())
        yield made
    finally:
        runner.run(end())


async def test_all_is_well(stage: Plane, patient: Tenant) -> None:
    answer = await until_said(stage, NOTES)
    assert answer.code == 0, answer
    assert "--kube-api-qps=40" in " ".join(answer.of("client-throttle"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_break_turns_its_line_red_and_no_other(stage: Plane, patient: Tenant, case: Case) -> None:
    async with case.breaks(patient):
        answer = await until_said(stage, {**NOTES, case.check: case.verdict})
    assert answer.code == CODES[case.verdict], answer
    assert case.saying in " ".join(answer.of(case.check)), answer


async def test_well_again(stage: Plane, patient: Tenant) -> None:
    assert (await until_said(stage, NOTES)).code == 0


async def test_a_user_without_rights(stage: Plane, patient: Tenant) -> None:
    api, namespace = stage.karmada.api, patient.namespace
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.client.post(path, {"metadata": {"name": "nobody"}}, dict)
    answer = await ask(stage, karmada=await identity(api, "nobody", namespace))
    assert answer.code == 2, answer
    verdicts = answer.verdicts()
    unknown = {check for check, verdict in verdicts.items() if verdict is Verdict.UNKNOWN}
    assert {"binding-admission", "definitions", "clusters-ready", "queue-tree", "bindings-held"} <= unknown
    assert set(verdicts.values()) == {Verdict.NOTE, Verdict.UNKNOWN}, answer
    assert not {"programs-ready", "component-gate", "mounted-secrets"} & verdicts.keys()
