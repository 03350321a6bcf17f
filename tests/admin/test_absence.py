"""Why a dispatcher knows nothing of a workload, as karmada-apiserver tells it."""

import asyncio

import pytest

from admin.absence import Found, in_words, look
from fairway.kube.client import KubeClient
from fairway.kube.objects import ObjectMeta
from sandbox.fakeapi import FakeApi

CLAIMED = ObjectMeta(annotations={"propagationpolicy.karmada.io/name": "train"})
JOBS = "/apis/batch/v1/namespaces/team/jobs"


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Found(), "karmada-apiserver has no workload of that name in team either"),
        (Found(unread=("Job", "Deployment")), "not known: this user may not get Job, Deployment in team"),
        (Found({"Job": ObjectMeta()}), "Job team/odd is there, and no policy has claimed it"),
        (
            Found({"Job": CLAIMED}, refused='webhook "hold.fairway.dev": connection refused'),
            'without a binding, which Karmada could not make: webhook "hold.fairway.dev": connection refused',
        ),
        (Found({"Job": CLAIMED}), "claimed by PropagationPolicy train, and has no binding yet"),
        (
            Found({"Job": ObjectMeta(labels={"clusterpropagationpolicy.karmada.io/permanent-id": "p"})}),
            "claimed by ClusterPropagationPolicy, and has no binding yet",
        ),
        (Found({"CronJob": CLAIMED}), "CronJob team/odd is there and not gated"),
    ],
)
def test_the_step_that_is_missing_is_told(found: Found, says: str) -> None:
    assert says in in_words("team", "odd", found)


def event(message: str, at: str, reason: str = "ApplyPolicyFailed") -> dict[str, object]:
    return {
        "metadata": {"name": f"odd.{at}"},
        "involvedObject": {"kind": "Job", "name": "odd", "namespace": "team"},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def test_it_is_read_from_the_server() -> None:
    async def asked(is_karmadas: bool, *, with_job: bool = True) -> Found | None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            if is_karmadas:
                api.create(
                    "/apis/policy.karmada.io/v1alpha1/namespaces/team/propagationpolicies",
                    {"metadata": {"name": "p"}},
                )
            if with_job:
                api.create(JOBS, {"metadata": {"name": "odd"}})
            for one in (
                event("old", "2026-03-14T09:26:53Z"),
                event("connection refused", "2026-03-14T09:27:53Z"),
                event("claimed", "2026-03-14T09:28:53Z", "ApplyPolicySucceed"),
            ):
                api.create("/api/v1/namespaces/team/events", one)
            return await look(client, "team", "odd")

    found = asyncio.run(asked(True))
    assert found is not None
    assert (set(found.objects), found.refused) == ({"Job"}, "connection refused")
    assert asyncio.run(asked(True, with_job=False)) == Found()
    assert asyncio.run(asked(False)) is None
