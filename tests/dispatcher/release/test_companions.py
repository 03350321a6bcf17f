"""What comes before a release, on an API server where somebody else's may have its name."""

import asyncio
from typing import Any

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, ServerError
from fairway.names import GUIDANCE
from queue_dispatcher.dispatcher import BindingApi
from queue_dispatcher.release.companions import ATTEMPTS, NotOurs
from queue_dispatcher.turn.writes import Companion
from sandbox.fakeapi import FakeApi, requests

POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/team/overridepolicies"
PATH = f"{POLICIES}/fairway-train-job"
OURS = {GUIDANCE: "true"}


def policy(says: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "fairway-train-job", "labels": labels or {}},
        "spec": {"says": says},
    }


NEW = Companion(PATH, policy("new", OURS))
NONE = Companion(PATH, None)
THEIRS = policy("theirs", {"team": "a"})
OLD = policy("old", OURS)


async def ensured(
    companion: Companion, there: dict[str, Any] | None, failing: tuple[tuple[str, int, int], ...]
) -> tuple[str, list[str]]:
    """What the policy says then, and the verbs it took; raises what `BindingApi.ensure` raises."""
    async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
        if there is not None:
            api.create(POLICIES, there)
        for verb, status, times in failing:
            api.fail(status, times, when=requests(verb=verb))
        try:
            await BindingApi(client).ensure(companion)
        finally:
            verbs = [seen.verb for seen in api.seen]
            found = (await client.get_json(POLICIES, dict[str, Any]))["items"]
        return (found[0]["spec"]["says"] if found else ""), verbs


@pytest.mark.parametrize(
    ("companion", "there", "failing", "says", "verbs"),
    [
        pytest.param(NEW, None, (), "new", ["create"], id="none-there"),
        pytest.param(NEW, OLD, (), "new", ["create", "get", "patch"], id="replaced"),
        pytest.param(NEW, None, (("create", 409, 1),), "new", ["create", "get", "create"], id="collected"),
        pytest.param(
            NEW,
            OLD,
            (("patch", 404, 1),),
            "new",
            ["create", "get", "patch", "create", "get", "patch"],
            id="collected-before-the-patch",
        ),
        pytest.param(
            NEW,
            OLD,
            (("patch", 409, 1),),
            "new",
            ["create", "get", "patch", "create", "get", "patch"],
            id="changed-meanwhile",
        ),
        pytest.param(NONE, None, (), "", ["get"], id="nothing-to-delete"),
        pytest.param(NONE, OLD, (), "", ["get", "delete"], id="deleted"),
        pytest.param(NONE, OLD, (("delete", 404, 1),), "old", ["get", "delete"], id="deleted-meanwhile"),
        pytest.param(
            NONE, OLD, (("delete", 409, 1),), "", ["get", "delete", "get", "delete"], id="another-meanwhile"
        ),
        pytest.param(NONE, THEIRS, (), "theirs", ["get"], id="theirs-stays"),
    ],
)
def test_what_is_there_then(
    companion: Companion,
    there: dict[str, Any] | None,
    failing: tuple[tuple[str, int, int], ...],
    says: str,
    verbs: list[str],
) -> None:
    assert asyncio.run(ensured(companion, there, failing)) == (says, verbs)


def test_theirs_is_not_replaced() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            api.create(POLICIES, THEIRS)
            with pytest.raises(NotOurs, match="that is not Fairway's"):
                await BindingApi(client).ensure(NEW)
            assert (await client.get_json(PATH, dict[str, Any]))["spec"] == {"says": "theirs"}
            assert [seen.verb for seen in api.seen[:2]] == ["create", "get"]

    asyncio.run(scenario())


@pytest.mark.parametrize(("status", "error"), [(409, Conflict), (503, ServerError)])
def test_what_cannot_be_written_is_told(status: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        asyncio.run(ensured(NEW, OLD, (("patch", status, ATTEMPTS),)))
