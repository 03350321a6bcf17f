"""Installing and uninstalling as a whole, on API servers in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from admin.install.installing import Done
from admin.install.kinds import the
from admin.install.performing import InstallError, Verdict
from admin.install.settings import EstimatorMode, Hold, Interpreters, Settings
from admin.install.uninstall_rights import rights_to_uninstall
from admin.install.uninstalling import kinds_on
from tests.admin.install.fleet import (
    BINDINGS,
    DEPLOYMENTS,
    MEMBERS,
    SECRETS,
    SETTINGS,
    Fleet,
    binding,
    fleet,
)

Scenario = Callable[[Fleet], Awaitable[None]]
CLASSES = "scheduling.k8s.io/v1/priorityclasses"
SHARED = replace(SETTINGS, estimator=EstimatorMode.SHARED)
POLICIES = replace(SETTINGS, hold=Hold.POLICIES, interpreters=Interpreters.ALL, sample_queue=True)
OTHERWISE = replace(
    SETTINGS, namespace="gpu-queues", registry="registry.example/fairway", estimator=EstimatorMode.NONE
)


def on(scenario: Scenario, *, stock: bool = True, certificates: bool = True) -> None:
    async def run() -> None:
        async with fleet(stock=stock, certificates=certificates) as made:
            await scenario(made)

    asyncio.run(run())


def notes(steps: tuple[Done, ...]) -> dict[str, str]:
    """What is told of Karmada's own, by object."""
    changes = [change for done in steps for change in done.changes]
    return {str(each.manifest): each.note for each in changes if "Karmada's" in each.note}


@pytest.mark.parametrize("settings", [SETTINGS, SHARED, POLICIES, OTHERWISE])
def test_a_second_installation_writes_nothing(settings: Settings) -> None:
    async def scenario(made: Fleet) -> None:
        first = await made.install(settings)
        assert any(change.verdict is Verdict.CREATE for done in first for change in done.changes)
        written = made.writes()
        again = await made.install(settings)
        assert made.writes() == written
        assert {change.verdict for done in again for change in done.changes} == {Verdict.KEEP}
        told = notes(first)
        for estimator in [each for each, note in told.items() if note == "in the place of Karmada's"]:
            told[estimator] += " already"
        assert notes(again).items() >= told.items()

    on(scenario)


def test_a_preview_writes_nothing_and_says_what_the_installation_then_does() -> None:
    async def scenario(made: Fleet) -> None:
        previewed = await made.preview()
        assert made.writes() == 0
        done = await made.install()
        assert [[change.verdict for change in each.changes] for each in previewed] == [
            [change.verdict for change in each.changes] for each in done
        ]

    on(scenario)


@pytest.mark.parametrize("stock", [True, False])
@pytest.mark.parametrize("settings", [SETTINGS, SHARED, POLICIES])
def test_the_way_back_leaves_everything_as_it_was(settings: Settings, stock: bool) -> None:
    async def scenario(made: Fleet) -> None:
        before = made.state()
        await made.install(settings)
        assert made.state() != before
        gone = await made.uninstall()
        assert made.state() == before
        assert not gone.left
        assert bool(gone.estimators) == stock

    on(scenario, stock=stock)


def test_queues_stay_unless_they_are_to_go() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install(POLICIES)
        gone = await made.uninstall(delete_queues=False)
        queues = made.apis["karmada"].store.collections["fairway.dev/v1alpha1/clusterqueues"]
        assert list(queues.records) == [("", "all")]
        assert any("--delete-queues" in left for left in gone.left)

    on(scenario)


def test_classes_that_pods_name_stay_in_their_member() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        made.apis["east"].create(
            "/api/v1/namespaces/team/pods",
            {"metadata": {"name": "worker-0"}, "spec": {"priorityClassName": "fairway-gang-3"}},
        )
        gone = await made.uninstall()
        assert gone.left == ("east: PriorityClasses fairway-gang-1 to fairway-gang-8: 1 pods name them",)
        assert len(made.apis["east"].store.collections[CLASSES].records) == 8
        assert not made.apis["west"].store.collections[CLASSES].records

    on(scenario)


def test_classes_that_somebody_made_stay_as_they_are() -> None:
    """Their values cannot be changed, and may have to be others where a class is the cluster's default."""

    async def scenario(made: Fleet) -> None:
        theirs = {"metadata": {"name": "fairway-gang-1"}, "value": 1001, "preemptionPolicy": "Never"}
        made.apis["east"].create(f"/apis/{CLASSES}", theirs)
        changes = [change for step in await made.install() for change in step.changes]
        kept = [each for each in changes if each.verdict is Verdict.KEEP and each.plane == "east"]
        assert [(each.plane, each.manifest.name, each.note) for each in kept] == [
            ("east", "fairway-gang-1", "was there before, and stays as it is")
        ]
        await made.uninstall()
        (left,) = made.apis["east"].store.collections[CLASSES].records.values()
        assert left.decode()["value"] == 1001

    on(scenario)


def test_of_queues_that_never_were_nothing_is_left() -> None:
    async def scenario(made: Fleet) -> None:
        made.apis["karmada"].serve("/apis/fairway.dev/v1alpha1/clusterqueues", served=False)
        assert not (await made.uninstall(delete_queues=False)).left

    on(scenario)


def test_estimators_are_replaced_one_after_the_other() -> None:
    async def scenario(made: Fleet) -> None:
        east, west = (f"karmada-scheduler-estimator-{cluster}" for cluster in MEMBERS)
        made.dead.add(east)
        with pytest.raises(InstallError, match=f"{east}: after 30 s: 0 of 2 pods"):
            await made.install()
        untouched = made.apis["host"].store.collections["apps/v1/deployments"].records["karmada-system", west]
        assert b"fairway" not in untouched.raw
        webhooks = made.apis["host"].store.collections["apps/v1/deployments"].records
        assert ("fairway-system", "fairway-webhook") not in webhooks

    on(scenario)


def test_a_replaced_estimator_keeps_its_selector_and_gets_our_pods() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        records = made.apis["host"].store.collections["apps/v1/deployments"].records
        spec = records["karmada-system", "karmada-scheduler-estimator-east"].decode()["spec"]
        assert spec["selector"] == {"matchLabels": {"app": "karmada-scheduler-estimator-east"}}
        container = spec["template"]["spec"]["containers"][0]
        assert container["image"] == "ghcr.io/fairway-dev/fairway-estimator:1.2.3"
        assert "--cluster-name=east" in container["args"]
        secrets = [
            each["secret"]["secretName"] for each in spec["template"]["spec"]["volumes"] if "secret" in each
        ]
        assert secrets == ["karmada-cert", "fairway-east-kubeconfig", "fairway-karmada-estimator"]

    on(scenario)


def test_what_others_have_set_is_told_by_field_and_owner_and_taken_over_when_asked() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        path = "/apis/apps/v1/namespaces/fairway-system/deployments/fairway-dispatcher"
        body = {"spec": {"replicas": 5}}
        kind = "application/merge-patch+json"
        params = {"fieldManager": "autoscaler"}
        await made.clients["host"].patch(path, body, dict, content_type=kind, params=params)
        with pytest.raises(InstallError, match=r"autoscaler has set \.spec\.replicas; .* --force-conflicts"):
            await made.install()
        await made.install(force=True)
        assert (await made.clients["host"].get_json(path, dict))["spec"]["replicas"] == 2

    on(scenario)


def test_names_that_others_use_are_all_told_before_anything_is_written() -> None:
    async def scenario(made: Fleet) -> None:
        roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        made.apis["karmada"].create(roles, {"metadata": {"name": "fairway-webhook"}})
        made.apis["east"].create(roles, {"metadata": {"name": "fairway-estimator"}})
        written = made.writes()
        with pytest.raises(InstallError) as caught:
            await made.install()
        assert "karmada: ClusterRole fairway-webhook is there, without our label" in str(caught.value)
        assert "east: ClusterRole fairway-estimator is there, without our label" in str(caught.value)
        assert made.writes() == written

    on(scenario)


def test_missing_rights_are_all_told_at_once() -> None:
    async def scenario(made: Fleet) -> None:
        denied = {"*", "clusterroles", "deployments"}
        for plane in ("host", "karmada"):
            made.apis[plane].self_reviews.denied = lambda asked: asked["resource"] in denied
        with pytest.raises(InstallError) as caught:
            await made.install()
        told = str(caught.value)
        assert "host: not allowed: create deployments.apps in namespace fairway-system" in told
        assert "update deployments.apps in namespace karmada-system" in told
        assert "karmada: not allowed: create clusterroles.rbac.authorization.k8s.io" in told
        assert made.writes() == 0

    on(scenario)


def test_rights_to_uninstall_are_all_told_before_anything_is_gone() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        written = made.writes()
        denied = {"*", "roles", "resourcebindings", "services"}
        for plane in ("host", "karmada", "east"):
            made.apis[plane].self_reviews.denied = lambda asked: asked["resource"] in denied
        with pytest.raises(InstallError) as caught:
            await made.uninstall()
        told = str(caught.value)
        assert told.startswith("nothing was written, because:")
        assert "host: not allowed: " in told
        assert "update services in namespace karmada-system" in told
        assert "patch resourcebindings.work.karmada.io" in told
        assert "east: not allowed: list roles.rbac.authorization.k8s.io; delete roles" in told
        assert "clusterqueues" not in told
        assert made.writes() == written

    on(scenario)


def test_an_uninstallation_asks_for_no_more_than_it_does() -> None:
    """Whatever was asked for on some plane is used there, and nothing else is."""
    kinds = {plane: kinds_on(plane) for plane in ("host", "karmada", "east")}
    wanted = rights_to_uninstall(kinds, "fairway-system", "karmada-system", [the("ClusterQueue")])
    asked = {(right.plane, right.resource, right.verb) for right in wanted}
    used = set[tuple[str, str, str]]()

    async def scenario(made: Fleet) -> None:
        await made.install(replace(POLICIES, sample_queue=True))
        await made.install(SETTINGS)
        made.apis["karmada"].create(BINDINGS, binding("job"))
        for api in made.apis.values():
            api.writes.entries.clear()
        await made.uninstall()
        used.update(
            (plane, write.resource, write.verb)
            for plane in ("host", "karmada", "east")
            for write in made.apis[plane].writes.entries
        )

    on(scenario)
    queues = {"localqueues", "resourceflavors", "serviceclasses", "customresourcedefinitions"}
    assert used - asked == {each for each in used if each[1] in queues}


def test_a_namespace_that_was_there_stays_when_all_else_goes() -> None:
    async def scenario(made: Fleet) -> None:
        made.apis["host"].create("/api/v1/namespaces", {"metadata": {"name": "fairway-system"}})
        before = made.state()
        await made.install()
        await made.uninstall()
        assert made.state() == before

    on(scenario)


def test_without_certificates_for_estimators_nothing_is_written() -> None:
    async def scenario(made: Fleet) -> None:
        with pytest.raises(InstallError) as caught:
            await made.install()
        assert "namespace karmada-system: no certificates for estimators" in str(caught.value)
        assert "Secret karmada-cert with karmada.crt, karmada.key, ca.crt" in str(caught.value)
        assert made.writes() == 0

    on(scenario, certificates=False)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (replace(SETTINGS, karmada_server=""), "karmada: http://127.0.0.1:.*--karmada-server URL"),
        (replace(SETTINGS, certificates="other"), "no Secret other"),
    ],
)
def test_settings_that_cannot_work_are_told(settings: Settings, says: str) -> None:
    async def scenario(made: Fleet) -> None:
        with pytest.raises(InstallError, match=says):
            await made.install(settings)
        assert made.writes() == 0

    on(scenario)


def test_a_karmada_that_is_none_and_a_host_that_is_karmada_are_told() -> None:
    async def scenario(made: Fleet) -> None:
        made.clients["host"], made.clients["karmada"] = made.clients["karmada"], made.clients["host"]
        with pytest.raises(InstallError) as caught:
            await made.install()
        assert "give --host the cluster in which Karmada's pods run" in str(caught.value)
        assert "upgrade Karmada to 1.13.3 or newer" in str(caught.value)

    on(scenario)


def test_a_member_that_karmada_does_not_know_is_told() -> None:
    async def scenario(made: Fleet) -> None:
        made.clients["north"] = made.clients["east"]
        with pytest.raises(InstallError, match=r"no Cluster north; give --member the name .*: east, west"):
            await made.install()

    on(scenario)


def test_interpreters_of_others_are_left_alone() -> None:
    async def scenario(made: Fleet) -> None:
        path = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations"
        target = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
        theirs = {"kind": "ResourceInterpreterCustomization", "metadata": {"name": "theirs"}}
        made.apis["karmada"].create(path, theirs | {"spec": {"target": target}})
        await made.install()
        records = made.apis["karmada"].store.collections[path.removeprefix("/apis/")].records
        names = {name for _, name in records}
        assert "fairway-jobset" not in names
        assert "fairway-trainjob" in names
        # Karmada has an interpreter of its own for it.
        assert "fairway-volcano-job" not in names

    on(scenario)


def test_an_estimator_that_was_replaced_without_a_record_is_left_and_told() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        made.apis["host"].delete("/api/v1/namespaces/karmada-system/configmaps/fairway-stock-east")
        gone = await made.uninstall()
        assert gone.left == (
            "host: Deployment karmada-system/karmada-scheduler-estimator-east: was Karmada's, and nothing "
            "remembers how it was",
        )
        await made.clients["host"].get_json(f"{DEPLOYMENTS}/karmada-scheduler-estimator-east", dict)

    on(scenario)


def test_certificates_that_karmada_renewed_arrive_with_the_next_run() -> None:
    async def scenario(made: Fleet) -> None:
        await made.install()
        made.apis["host"].update(
            f"{SECRETS}/karmada-cert", lambda obj: obj["data"].update({"ca.crt": "bmV3"})
        )
        await made.install()
        path = "/api/v1/namespaces/fairway-system/secrets/fairway-estimator-client"
        assert (await made.clients["host"].get_json(path, dict))["data"]["ca.crt"] == "bmV3"

    on(scenario)
