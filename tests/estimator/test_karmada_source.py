"""Templates on Karmada's API server: watched by kind, found at once, and in doubt while they cannot be."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec

from estimator.capacity.gangs.workload_gang import WorkloadGang
from estimator.karmada.kinds import KINDS, WatchedKind, WorkloadObject
from estimator.karmada.source import KarmadaSource
from estimator.karmada.templates import NOTHING, Found
from fairway.kube.client import KubeClient
from fairway.kube.observation import NullReflectorMetrics
from sandbox.fakeapi import FakeApi

JOB = WatchedKind("Job", "batch", "v1", "jobs")
VOLCANO_JOB = WatchedKind("Job", "batch.volcano.sh", "v1alpha1", "jobs")
DEPLOYMENT = WatchedKind("Deployment", "apps", "v1", "deployments")


class _Spec(msgspec.Struct):
    gang: int = 0


def read(kind: WatchedKind, workload: WorkloadObject) -> WorkloadGang | None:
    gang = msgspec.json.decode(workload.spec, type=_Spec).gang
    return WorkloadGang((), gang, 1, None) if gang else None


def found(size: int) -> Found:
    return Found(WorkloadGang((), size, 1, None))


def job(name: str, gang: int) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"gang": gang}}


@asynccontextmanager
async def following(
    api: FakeApi, kinds: Iterable[WatchedKind] = (JOB,), token: str | None = None
) -> AsyncIterator[KarmadaSource]:
    client = KubeClient.from_url(api.url, token=token, qps=-1)
    source = KarmadaSource(client, read, NullReflectorMetrics(), clock=time.monotonic, kinds=kinds)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(source.run())
        yield source
        task.cancel()


async def until_found(source: KarmadaSource, expected: Found) -> None:
    """An event takes a moment on its way."""
    for _ in range(100_000):
        if await source.find("Job", "ns", "train", 5) == expected:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"never found {expected}")


def jobs(group_version: str = "batch/v1") -> str:
    return f"/apis/{group_version}/namespaces/ns/jobs"


def test_a_gang_is_found_by_kind_namespace_and_name() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("train", 16))
            api.create(jobs(), job("web", 0))
            async with following(api) as source:
                assert await source.find("Job", "ns", "train", 5) == found(16)
                assert await source.find("Job", "ns", "web", 5) == NOTHING
                assert await source.find("Job", "other", "train", 5) == NOTHING
                assert await source.find("Secret", "ns", "train", 5) == NOTHING

    asyncio.run(scenario())


def test_finding_costs_no_request() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("train", 16))
            async with following(api) as source:
                await source.find("Job", "ns", "train", 5)
                before = sum("/jobs" in seen.path for seen in api.seen)
                for _ in range(100):
                    await source.find("Job", "ns", "train", 5)
                assert sum("/jobs" in seen.path for seen in api.seen) == before

    asyncio.run(scenario())


def test_a_question_waits_for_the_first_list_and_for_a_workload_a_moment_younger_than_it() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("early", 4))
            api.hang()
            async with following(api) as source:
                asking = asyncio.create_task(source.find("Job", "ns", "early", 10))
                await api.until(lambda: len(api.seen) >= 1)
                api.answer()
                assert await asking == found(4)
                asking = asyncio.create_task(source.find("Job", "ns", "late", 10))
                await asyncio.sleep(0)
                api.create(jobs(), job("late", 8))
                assert await asking == found(8)

    asyncio.run(scenario())


def test_a_changed_template_counts_at_once_and_a_deleted_one_no_more() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("train", 16))
            async with following(api) as source:
                assert await source.find("Job", "ns", "train", 5) == found(16)
                api.update(f"{jobs()}/train", lambda obj: obj["spec"].update(gang=2))
                await until_found(source, found(2))
                api.delete(f"{jobs()}/train")
                await until_found(source, NOTHING)

    asyncio.run(scenario())


def test_of_two_groups_with_one_kind_the_gang_counts() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("train", 0))
            api.create(jobs("batch.volcano.sh/v1alpha1"), job("train", 8))
            async with following(api, (JOB, VOLCANO_JOB)) as source:
                assert await source.find("Job", "ns", "train", 5) == found(8)

    asyncio.run(scenario())


def test_kinds_that_are_not_served_or_not_allowed_are_left_out() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("train", 16))
            api.fail(404, 1000, when=lambda seen: "volcano" in seen.path)
            api.fail(403, 1000, when=lambda seen: "deployments" in seen.path)
            async with following(api, (JOB, VOLCANO_JOB, DEPLOYMENT)) as source:
                assert await source.find("Job", "ns", "train", 5) == found(16)
                assert await source.find("Deployment", "ns", "web", 5) == NOTHING

    asyncio.run(scenario())


def test_out_of_contact_what_is_known_stays_and_what_is_not_is_in_doubt() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(jobs(), job("train", 16))
            async with following(api) as source:
                assert await source.find("Job", "ns", "train", 5) == found(16)
                await api.refuse()
                assert await source.find("Job", "ns", "train", 5) == found(16)
                unknown = await source.find("Job", "ns", "new", 0.3)
                while not unknown.doubt:  # the reflector notices the loss a moment later
                    unknown = await source.find("Job", "ns", "new", 0.3)
                assert unknown.gang is None
                assert unknown.doubt.startswith("the template of Job ns/new is not known: ")

    asyncio.run(scenario())


def test_never_read_is_in_doubt_within_the_time_given() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            await api.refuse()
            async with following(api) as source:
                unknown = await source.find("Job", "ns", "train", 0.2)
                assert unknown.doubt.startswith("the template of Job ns/train is not known: ")

    asyncio.run(scenario())


def test_every_kind_has_a_path_of_its_own() -> None:
    paths = [kind.resource.path for kind in KINDS]
    assert len(set(paths)) == len(paths)
    assert JOB.resource.path == "/apis/batch/v1/jobs"
    assert {kind.kind for kind in KINDS} >= {"Job", "JobSet", "PyTorchJob", "RayJob", "LeaderWorkerSet"}
