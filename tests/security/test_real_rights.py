"""Tokens and rights of a real API server: ServiceAccounts, Roles, and what is said of them."""

import asyncio
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
import yaml

from fairway.kube.client import KubeClient
from queue_dispatcher.visibility.authorization import ReviewedGuest, viewer_of
from queue_dispatcher.visibility.reviews import ReviewFailed, Reviews
from queue_dispatcher.visibility.viewer import EVERYTHING, Viewer
from tests.envtest import RealApi, assets, real_api

pytestmark = pytest.mark.envtest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
VIEWER, READER = "fairway-queue-viewer", "fairway-visibility-reader"
PATIENCE_S, LOOK_S = 60.0, 0.2
TEAMS = ("team-a", "team-b", "team-c")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("rights")) as started:
        asyncio.run(_install(started))
        yield started


def client(api: RealApi, context: str = "admin") -> KubeClient:
    return KubeClient.from_kubeconfig(str(api.kubeconfig), context=context, qps=-1)


def shipped(name: str) -> dict[str, Any]:
    """A ClusterRole as it is shipped."""
    text = files("manifests").joinpath("karmada/rbac/users.yaml").read_text()
    roles: list[dict[str, Any]] = [role for role in yaml.safe_load_all(text) if role]
    return next(role for role in roles if role["metadata"]["name"] == name)


def bound(kind: str, name: str, role: str, team: str) -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": team}
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [subject],
    }


async def _install(api: RealApi) -> None:
    """A reader in each team: that of team-a sees its namespace, that of team-b everything."""
    async with client(api) as admin:
        for team in TEAMS:
            await admin.post("/api/v1/namespaces", {"metadata": {"name": team}}, dict)
            path = f"/api/v1/namespaces/{team}/serviceaccounts"
            await admin.post(path, {"metadata": {"name": "reader"}}, dict)
        for role in (VIEWER, READER):
            await admin.post(f"{RBAC}/clusterroles", shipped(role), dict)
        path = f"{RBAC}/namespaces/team-a/rolebindings"
        await admin.post(path, bound("ClusterRole", "tenant", VIEWER, "team-a"), dict)
        # A nonresource URL in a RoleBinding grants nothing.
        await admin.post(path, bound("ClusterRole", "all", READER, "team-a"), dict)
        path = f"{RBAC}/clusterrolebindings"
        await admin.post(path, bound("ClusterRole", "visibility", READER, "team-b"), dict)


async def token_of(admin: KubeClient, team: str) -> str:
    """As kubectl create token makes it."""
    path = f"/api/v1/namespaces/{team}/serviceaccounts/reader/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = await admin.post(path, body, dict[str, Any])
    return str(made["status"]["token"])


@pytest.mark.parametrize(
    ("team", "sees"),
    [("team-a", Viewer.of({"team-a"})), ("team-b", EVERYTHING), ("team-c", Viewer.of(()))],
)
def test_a_service_account_sees_what_its_roles_say(team: str, sees: Viewer, api: RealApi) -> None:
    async def scenario() -> None:
        async with client(api) as admin:
            reviews = Reviews(admin, lambda error: None)
            identity = await reviews.identity(await token_of(admin, team))
            assert identity is not None
            assert identity.username == f"system:serviceaccount:{team}:reader"
            assert f"system:serviceaccounts:{team}" in identity.groups
            assert await viewer_of(ReviewedGuest(identity, reviews), TEAMS, ()) == sees

    asyncio.run(scenario())


def test_a_token_of_nobody_and_one_of_a_deleted_account_are_not_known(api: RealApi) -> None:
    async def scenario() -> None:
        async with client(api) as admin:
            await admin.post(
                "/api/v1/namespaces/team-c/serviceaccounts", {"metadata": {"name": "gone"}}, dict
            )
            path = "/api/v1/namespaces/team-c/serviceaccounts/gone"
            made = await admin.post(f"{path}/token", {"spec": {}}, dict[str, Any])
            token = str(made["status"]["token"])
            assert await Reviews(admin, lambda error: None).identity(token) is not None
            await admin.delete(path, dict)
            reviews = Reviews(admin, lambda error: None)
            for stranger in ("forged", f"{token[:-5]}AAAAA"):
                assert await reviews.identity(stranger) is None
            async with asyncio.timeout(PATIENCE_S):
                # The API server remembers tokens itself, for ten seconds.
                while await Reviews(admin, lambda error: None).identity(token):  # noqa: ASYNC110 - elsewhere
                    await asyncio.sleep(LOOK_S)

    asyncio.run(scenario())


def test_a_dispatcher_without_the_right_to_ask_shows_nothing(api: RealApi) -> None:
    async def scenario() -> None:
        async with client(api) as admin, client(api, "nobody") as dispatcher:
            token = await token_of(admin, "team-b")
            errors: list[Exception] = []
            with pytest.raises(ReviewFailed, match="forbidden"):
                await Reviews(dispatcher, errors.append).identity(token)
            assert token not in str(errors)

    asyncio.run(scenario())
