"""Later runs with other settings: what they want no longer goes, after what takes its place."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import yaml

from admin.install.installing import Done
from admin.install.manifest import manifest_of
from admin.install.performing import InstallError, Verdict
from admin.install.resolving import resolved
from admin.install.session import prepare
from admin.install.settings import EstimatorMode, Hold, Interpreters, Settings
from admin.terminal.install import manifests_text, plan_document, plan_text, step_line
from sandbox.fakeapi.store import Obj
from tests.admin.install.fleet import (
    DEPLOYMENTS,
    MEMBERS,
    PACKAGE,
    SCOPE,
    SETTINGS,
    Fleet,
    fleet,
    stock_deployment,
)

POLICIES = replace(SETTINGS, hold=Hold.POLICIES)
SHARED = replace(SETTINGS, estimator=EstimatorMode.SHARED)
NOTHING_HELD = replace(SETTINGS, hold=Hold.NONE)
ALL_KINDS = replace(SETTINGS, interpreters=Interpreters.ALL)
NO_KINDS = replace(SETTINGS, interpreters=Interpreters.NONE)
LEFT_TO_KARMADA = replace(SETTINGS, dispatcher_flags=("--placement=karmada", "--guidance=false"))
BUDGETS = "/apis/policy/v1/namespaces/karmada-system/poddisruptionbudgets"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
CERTIFICATES = "/api/v1/namespaces/fairway-system/secrets"
CHARTS = {"app": "karmada-scheduler-estimator", "cluster": "east"}


def on(scenario: Callable[[Fleet], Awaitable[None]], *, stock: bool = True) -> None:
    async def run() -> None:
        async with fleet(stock=stock) as made:
            await scenario(made)

    asyncio.run(run())


def installed_at_once(settings: Settings) -> dict[str, Obj]:
    found = []

    async def scenario(made: Fleet) -> None:
        await made.install(settings)
        found.append(made.state())

    on(scenario)
    return found[0]


def removed(done: tuple[Done, ...]) -> list[str]:
    return [
        f"{change.plane} {change.manifest}"
        for each in done
        for change in each.changes
        if change.verdict is Verdict.REMOVE
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SETTINGS, POLICIES),
        (POLICIES, SETTINGS),
        (SETTINGS, NOTHING_HELD),
        (POLICIES, NOTHING_HELD),
        (ALL_KINDS, SETTINGS),
        (ALL_KINDS, NO_KINDS),
        (NO_KINDS, SETTINGS),
        (SETTINGS, LEFT_TO_KARMADA),
        (LEFT_TO_KARMADA, SETTINGS),
    ],
)
def test_a_switch_ends_as_if_the_later_settings_had_been_the_first(before: Settings, after: Settings) -> None:
    expected = installed_at_once(after)

    async def scenario(made: Fleet) -> None:
        await made.install(before)
        made.apis["karmada"].create(CERTIFICATES, {"kind": "Secret", "metadata": {"name": "fairway-webhook"}})
        previewed = await made.preview(after)
        done = await made.install(after)
        assert removed(previewed) == removed(done)
        state = made.state()
        if after.hold is Hold.WEBHOOK or before.hold is not Hold.WEBHOOK:
            # No webhook is removed, so the Secret is not looked for.
            assert state.pop("karmada v1/secrets fairway-system/fairway-webhook")
        assert state == expected
        written = made.writes()
        assert removed(await made.install(after)) == []
        assert made.writes() == written

    on(scenario)


def test_flags_for_the_dispatcher_stand_behind_all_others_and_nowhere_else() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install(LEFT_TO_KARMADA)
        told = {
            container["name"]: container["args"]
            for name, obj in made.state().items()
            if name.startswith("host apps/v1/deployments")
            for container in obj["spec"]["template"]["spec"]["containers"]
            if "--placement=karmada" in container.get("args", ())
        }
        assert told.keys() == {"fairway-dispatcher"}
        assert told["fairway-dispatcher"][-2:] == ["--placement=karmada", "--guidance=false"]

    on(scenario)


def test_what_takes_the_place_of_the_webhook_is_there_before_it_goes() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        done = await made.install(POLICIES)
        told = [f"{each.step.plane} {each.step.name}" for each in done]
        assert told[-4:] == [
            "karmada policies",
            "karmada webhook-silenced",
            "host webhook-removed",
            "karmada webhook-forgotten",
        ]
        gone = removed(done)
        assert gone[:3] == [
            "karmada ClusterRoleBinding fairway-webhook",
            "karmada MutatingWebhookConfiguration fairway-webhook",
            "karmada ClusterRole fairway-webhook",
        ]
        back = await made.install()
        assert [f"{each.step.plane} {each.step.name}" for each in back][-3:] == [
            "host webhook",
            "karmada registration",
            "karmada policies-removed",
        ]

    on(scenario)


def test_a_plan_says_first_what_is_worth_knowing() -> None:
    async def scenario(made: Fleet) -> None:
        first, *others = _printed(plan_text(await made.preview(), ["held is whatever"])).splitlines()
        assert first == "note: held is whatever"
        assert others[0].startswith(" 1 host ")
        assert not any("note:" in line for line in others)

    on(scenario)


def test_removals_are_shown_in_every_form_of_the_plan() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install(POLICIES)
        done = await made.preview()
        text = str(_printed(plan_text(done, [])))
        assert "- MutatingAdmissionPolicyBinding" in text
        assert "to remove" in text
        assert "removed" in str(_printed(step_line(done[-1])))
        verdicts = [
            each["verdict"]
            for step in _steps(plan_document(done, []))
            if step["name"] == "policies-removed"
            for each in step["objects"]
        ]
        assert set(verdicts) == {"remove"}
        assert "deleted, where it is there" in manifests_text(each.step for each in done)

    on(scenario)


def test_one_estimator_for_all_goes_when_each_has_its_own_again() -> None:
    expected = installed_at_once(SETTINGS)

    async def scenario(made: Fleet) -> None:
        await made.install(SHARED)
        with pytest.raises(InstallError) as caught:
            await made.install()
        for cluster in MEMBERS:
            told = f"karmada-scheduler-estimator-{cluster} leads to the estimator for all members; give back"
            assert told in str(caught.value)
            assert f"--restore-estimator {cluster}" in str(caught.value)
            await made.restore(cluster)
        done = await made.install()
        assert removed(done) == [
            "host Deployment karmada-system/fairway-estimator",
            "host Service karmada-system/fairway-estimator",
            "host PodDisruptionBudget karmada-system/fairway-estimator",
        ]
        assert made.state() == expected

    on(scenario)


def test_an_estimator_of_ours_alone_goes_when_one_answers_for_all() -> None:
    async def scenario(made: Fleet) -> None:
        before = made.state()
        await made.install()
        done = await made.install(SHARED)
        assert removed(done) == [
            f"host Deployment karmada-system/karmada-scheduler-estimator-{cluster}" for cluster in MEMBERS
        ]
        await made.install()
        await made.uninstall()
        assert made.state() == before

    on(scenario, stock=False)


def test_printed_manifests_fit_what_is_there() -> None:
    async def scenario(made: Fleet) -> None:
        made.apis["host"].create(DEPLOYMENTS, as_the_chart_makes_it())
        prepared = await prepare(made.clients, PACKAGE, SETTINGS, SCOPE)
        steps = await resolved(made.clients, prepared.steps)
        (step,) = [each for each in steps if each.name == "estimator-east"]
        bodies = {each.manifest.kind.kind: each.manifest.body for each in step.actions}
        selector = {"matchLabels": CHARTS}
        for kind in ("Deployment", "PodDisruptionBudget"):
            spec = bodies[kind]["spec"]
            assert isinstance(spec, dict)
            assert spec["selector"] == selector
        metadata = bodies["Deployment"]["metadata"]
        assert isinstance(metadata, dict)
        assert metadata.keys() == {"name", "namespace", "labels", "annotations"}
        for body in yaml.safe_load_all(manifests_text(steps)):
            assert body is None or manifest_of(body, "printed").name
        await made.install()
        prepared = await prepare(made.clients, PACKAGE, SETTINGS, SCOPE)
        again = await resolved(made.clients, prepared.steps)
        (step,) = [each for each in again if each.name == "estimator-east"]
        # The Deployment is as it is to be.
        assert "Deployment" not in {each.manifest.kind.kind for each in step.actions}

    on(scenario, stock=False)


def test_what_others_applied_in_the_same_names_stays() -> None:
    async def scenario(made: Fleet) -> None:
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        theirs = {"metadata": {"name": "fairway-webhook", "labels": {"app.kubernetes.io/part-of": "fairway"}}}
        made.apis["karmada"].create(path, theirs)
        made.apis["karmada"].create(CONFIGURATIONS, {"metadata": {"name": "fairway-webhook"}})
        done = await made.install(POLICIES)
        assert removed(done) == []
        assert "webhook-silenced" not in [each.step.name for each in done]

    on(scenario)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (None, "it is not there"),
        ([], "it has no entries"),
        ([{"clientConfig": {"url": "https://elsewhere/bindings"}}], "it sends to https://elsewhere/bindings"),
        (
            [{"clientConfig": {"url": "https://fairway-webhook.fairway-system.svc:443/bindings"}}],
            "it says no authority to trust",
        ),
    ],
)
def test_an_installation_is_not_done_before_the_webhook_is_asked(
    entries: list[Obj] | None, says: str
) -> None:
    async def scenario(made: Fleet) -> None:
        made.unregistered.add("fairway-webhook")
        if entries is not None:
            body = {"metadata": {"name": "fairway-webhook"}, "webhooks": entries}
            made.apis["karmada"].create(CONFIGURATIONS, body)
        with pytest.raises(InstallError) as caught:
            await made.install()
        assert f"MutatingWebhookConfiguration fairway-webhook: after 30 s: {says}" in str(caught.value)
        assert "look at the log of fairway-webhook" in str(caught.value)

    on(scenario)


@pytest.mark.parametrize("settings", [SETTINGS, replace(SETTINGS, namespace="gpu-queues")])
def test_the_webhook_is_looked_for_where_it_says_that_it_is(settings: Settings) -> None:
    async def scenario(made: Fleet) -> None:
        done = await made.install(settings)
        until = next(each.step.until[0] for each in done if each.step.name == "registration")
        path = f"/apis/apps/v1/namespaces/{settings.namespace}/deployments/fairway-webhook"
        deployment = await made.clients["host"].get_json(path, dict)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        assert f"--url={getattr(until, 'url', '')}" in container["args"]

    on(scenario)


def as_the_chart_makes_it() -> Obj:
    deployment = stock_deployment("east")
    deployment["spec"]["selector"] = {"matchLabels": CHARTS}
    deployment["spec"]["template"]["metadata"]["labels"] = dict(CHARTS)
    return deployment


def test_budgets_and_spreading_select_what_the_kept_deployment_selects() -> None:
    async def scenario(made: Fleet) -> None:
        made.apis["host"].create(DEPLOYMENTS, as_the_chart_makes_it())
        await made.install()
        host = made.clients["host"]
        name = "karmada-scheduler-estimator"
        for cluster, labels in (("east", CHARTS), ("west", {"app": f"{name}-west"})):
            budget = await host.get_json(f"{BUDGETS}/{name}-{cluster}", dict)
            assert budget["spec"]["selector"] == {"matchLabels": labels}
            deployment = await host.get_json(f"{DEPLOYMENTS}/{name}-{cluster}", dict)
            template = deployment["spec"]["template"]
            assert deployment["spec"]["selector"] == {"matchLabels": labels}
            assert labels.items() <= template["metadata"]["labels"].items()
            (spread,) = template["spec"]["topologySpreadConstraints"]
            assert spread["labelSelector"] == {"matchLabels": labels}
            affinity = template["spec"]["affinity"]["podAntiAffinity"]
            (apart,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
            assert apart["podAffinityTerm"]["labelSelector"] == {"matchLabels": labels}

    on(scenario, stock=False)


def test_a_budget_of_the_chart_stays_and_is_never_deleted() -> None:
    async def scenario(made: Fleet) -> None:
        name = "karmada-scheduler-estimator-east"
        theirs = {
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": CHARTS}, "minAvailable": 1},
        }
        made.apis["host"].create(DEPLOYMENTS, as_the_chart_makes_it())
        made.apis["host"].create(BUDGETS, theirs)
        before = made.state()
        done = await made.install()
        notes = {str(change.manifest): change.note for each in done for change in each.changes}
        assert notes[f"PodDisruptionBudget karmada-system/{name}"] == "Karmada's, and stays as it is"
        await made.uninstall()
        assert made.state() == before

    on(scenario, stock=False)


def _printed(renderable: object) -> str:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def _steps(document: dict[str, object]) -> list[Obj]:
    steps = document["steps"]
    assert isinstance(steps, list)
    return steps
