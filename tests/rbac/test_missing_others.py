"""The webhook and the estimators without one permission, or in front of a server that lacks a kind."""

import asyncio
import logging
import time
from collections.abc import Callable

import pytest

from estimator.member import NODES, PODS
from fairway.kube.errors import Denied
from sandbox.fakeapi import FakeApi
from sandbox.fakeapi.authorization import Rule
from sandbox.fakeapi.store import Draft, Record
from tests.rbac import reading, roles
from tests.rbac.recorded import NOW_S, YEAR_S, certificates, registration, webhook_client
from tests.rbac.roles import ESTIMATOR, WEBHOOK
from tests.rbac.test_minimal import atoms, name, without
from webhook.configuration import COLLECTION, NAME
from webhook.live_certificates import LiveCertificates
from webhook.registration import Look

DAY_S = 86_400.0


def webhook_atoms(resource: str) -> dict[str, Rule]:
    """By verb."""
    return {
        atom.verbs[0]: atom
        for atom in atoms(roles.karmada())
        if atom.source.endswith(" fairway-webhook") and atom.resources == (resource,)
    }


def denials(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "fairway.kube.denials" and record.levelno == logging.WARNING
    ]


async def until(condition: Callable[[], bool]) -> None:
    """Events take a moment on their way."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - whatever makes it true tells nobody
            await asyncio.sleep(0)


@pytest.mark.parametrize("verb", ["get", "create", "patch"])
def test_the_webhook_says_that_it_is_not_registered(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, webhook_client(api) as client:
            ours = registration(client)
            if verb == "patch":
                api.authorization = roles.karmada()
                await ours.look()
                api.update(f"{COLLECTION}/{NAME}", lambda obj: obj["webhooks"].clear())
            atom = webhook_atoms("mutatingwebhookconfigurations")[verb]
            api.authorization = without(roles.karmada(), atom)
            for _ in range(3):
                assert await ours.look() is Look.FAILED
            assert f"cannot {verb} resource" in ours.problem
            (told,) = denials(caplog)
            assert f'user "{WEBHOOK}" may not {verb} mutatingwebhookconfigurations.' in told
            assert "manifests/karmada/rbac/webhook.yaml grants it" in told
            api.authorization = roles.karmada()
            assert await ours.look() in (Look.CREATED, Look.REPAIRED)
            assert ours.problem == ""
            assert client.denials.current() == ()

    asyncio.run(scenario())
    assert [record for record in caplog.records if record.levelno == logging.ERROR] == []


@pytest.mark.parametrize("verb", ["get", "create"])
def test_the_webhook_waits_for_its_first_certificate(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, webhook_client(api) as client:
            api.authorization = without(roles.karmada(), webhook_atoms("secrets")[verb])
            live = LiveCertificates(certificates(client, NOW_S))
            for _ in range(3):
                await live.look()
            assert not live.ready.is_set()
            assert f'cannot {verb} resource "secrets"' in live.problem
            (told,) = denials(caplog)
            assert "nothing is served until this is granted" in told
            api.authorization = roles.karmada()
            live = LiveCertificates(certificates(client, time.time()))
            await live.look()
            assert live.ready.is_set()

    asyncio.run(scenario())


def test_certificates_that_cannot_be_renewed_serve_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, webhook_client(api) as client:
            api.authorization = roles.karmada()
            first = await certificates(client, NOW_S).read()
            api.authorization = without(roles.karmada(), webhook_atoms("secrets")["patch"])
            later = certificates(client, NOW_S + 80 * DAY_S)
            assert [await later.read() for _ in range(3)] == [first] * 3
            api.authorization = roles.karmada()
            assert await later.read() != first

    asyncio.run(scenario())
    (told,) = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert told.startswith("Secret fairway-system/fairway-webhook: certificates are not renewed: ")


def test_a_secret_that_is_broken_and_may_not_be_written_is_no_certificate() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, webhook_client(api) as client:
            api.create("/api/v1/namespaces/fairway-system/secrets", {"metadata": {"name": "fairway-webhook"}})
            api.authorization = without(roles.karmada(), webhook_atoms("secrets")["patch"])
            with pytest.raises(Denied, match='cannot patch resource "secrets"'):
                await certificates(client, NOW_S + YEAR_S).read()

    asyncio.run(scenario())


def test_an_api_server_without_webhook_configurations_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, webhook_client(api) as client:
            api.serve(COLLECTION, served=False)
            ours = registration(client)
            for _ in range(3):
                assert await ours.look() is Look.FAILED
            assert f"{COLLECTION} is not served: expected Kubernetes 1.30 or newer" in ours.problem

    asyncio.run(scenario())
    assert len(caplog.records) == 1


def test_an_api_server_that_drops_match_conditions_is_told_once_and_not_written_to_for_ever(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, webhook_client(api) as client:
            store = api.store.commit

            def commit(draft: Draft, **options: bool) -> Record:
                """As a server that does not know the field."""
                for entry in draft.after.get("webhooks", ()):
                    entry.pop("matchConditions", None)
                return store(draft, **options)

            monkeypatch.setattr(api.store, "commit", commit)
            ours = registration(client)
            assert [await ours.look() for _ in range(4)] == [Look.CUT_SHORT] * 4
            assert sum(one.is_write for one in api.seen) == 1
            assert "does not keep matchConditions: expected Kubernetes 1.30 or newer" in ours.problem
            # What somebody edits is put right as far as that goes.
            api.update(f"{COLLECTION}/{NAME}", lambda obj: obj["webhooks"].pop())
            assert [await ours.look() for _ in range(2)] == [Look.CUT_SHORT] * 2
            assert sum(one.is_write for one in api.seen) == 2
            monkeypatch.undo()
            api.update(f"{COLLECTION}/{NAME}", lambda obj: obj["webhooks"].pop())
            assert await ours.look() is Look.REPAIRED
            assert ours.problem == ""

    asyncio.run(scenario())
    assert sum(record.levelno == logging.ERROR for record in caplog.records) == 1


@pytest.mark.parametrize("atom", atoms(roles.member()), ids=name)
def test_the_estimator_says_what_it_misses_of_a_member(atom: Rule, caplog: pytest.LogCaptureFixture) -> None:
    (verb,), (resource,) = atom.verbs, atom.resources

    async def scenario() -> None:
        async with FakeApi() as api:
            if verb == "list":
                # Elsewhere some initial lists are watches.
                api.disable_watchlist()
            api.create("/api/v1/nodes", {"metadata": {"name": "n"}})
            api.authorization = without(roles.member(), atom)
            async with reading.member(api) as (cluster, source):
                await until(lambda: bool(source.denials))
                (denial,) = source.denials.current()
                assert (denial.verb, denial.resource.partition(".")[0]) == (verb, resource)
                assert denial.user == ESTIMATOR
                if resource not in ("nodes", "pods"):
                    await cluster.synced((NODES, PODS))
                    assert cluster.freshness((NODES, PODS)).synced
                (told,) = denials(caplog)
                assert "manifests/member/rbac.yaml grants it" in told

    asyncio.run(scenario())


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_the_estimator_goes_without_templates_that_it_may_not_read(
    verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    (atom,) = (
        one
        for one in atoms(roles.karmada())
        if one.groups == ("jobset.x-k8s.io",) and one.verbs == (verb,) and "reader" in one.source
    )

    async def scenario() -> None:
        async with FakeApi() as api:
            api.authorization = without(roles.karmada(), atom)
            async with reading.karmada(api) as source:
                await until(lambda: bool(source.denials))
                assert (await source.find("JobSet", "ns", "x", 5)).doubt == ""
                (told,) = denials(caplog)
                assert f'"{ESTIMATOR}" may not {verb} jobsets.jobset.x-k8s.io at the cluster scope' in told
                assert "manifests/karmada/rbac/templates.yaml grants it" in told

    asyncio.run(scenario())
