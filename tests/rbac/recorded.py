"""What each program asks of an API server when everything it can do is done, under exactly its roles."""

import asyncio
import datetime
from collections.abc import Callable, Coroutine
from functools import cache

from estimator.karmada.kinds import KINDS
from estimator.member_kinds import MEMBER_KINDS
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.scope import Scope
from sandbox.fakeapi import FakeApi, Seen
from sandbox.fakeapi.authorization import Attributes, Authorization, attributes
from tests.certs import Authority
from tests.dispatcher.scenarios.world import World, run
from tests.rbac import dispatching, notifying, reading, roles
from tests.rbac.roles import DISPATCHER, ESTIMATOR, NOTIFY, WEBHOOK
from webhook.certificate_secret import CertificateSecret, SecretName
from webhook.configuration import COLLECTION, NAME
from webhook.permissions import PERMISSIONS
from webhook.registration import Registration, Wanted

Requests = frozenset[Attributes]
SECRET = SecretName("fairway-system", "fairway-webhook")
NOW_S = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()
YEAR_S = 366 * 86_400.0


def karmada() -> dict[str, Requests]:
    """By user, on Karmada's API server."""
    return {DISPATCHER: dispatcher(), ESTIMATOR: estimator(), WEBHOOK: webhook()}


@cache
def dispatcher() -> Requests:
    async def scenario(world: World) -> Requests:
        world.api.authorization = roles.karmada()
        dispatching.furnish(world)
        async with dispatching.process(world, asks=True) as process:
            await dispatching.everything(world, process)
            assert world.record(dispatching.ADMITTED) is not None
            assert process.client.denials.current() == ()
        return _of(world.api.seen, DISPATCHER)

    return run(scenario)


@cache
def estimator() -> Requests:
    async def scenario(api: FakeApi) -> Requests:
        async with reading.karmada(api) as source:
            await api.until(lambda: api.watches == len(KINDS) + 2)
            assert source.denials.current() == ()
        return _of(api.seen, ESTIMATOR)

    return _on_servers(roles.karmada, scenario)


@cache
def member() -> Requests:
    async def scenario(api: FakeApi) -> Requests:
        async with reading.member(api) as (_, source):
            await api.until(lambda: api.watches == len(MEMBER_KINDS))
            assert source.denials.current() == ()
        return _of(api.seen, ESTIMATOR)

    return _on_servers(roles.member, scenario)


@cache
def webhook() -> Requests:
    async def scenario() -> Requests:
        async with FakeApi() as api:
            api.authorization = roles.karmada()
            client = webhook_client(api)
            async with client:
                await registration(client).look()
                api.update(f"{COLLECTION}/{NAME}", lambda obj: obj["webhooks"].clear())
                await registration(client).look()
                for now_s in (NOW_S, NOW_S + YEAR_S):
                    await certificates(client, now_s).read()
                assert client.denials.current() == ()
            return _of(api.seen, WEBHOOK)

    return asyncio.run(scenario())


@cache
def notify(side: str) -> Requests:
    """On a ``member`` or on ``karmada``."""
    requests = notifying.everything()
    return _of(requests[side], NOTIFY)


def webhook_client(api: FakeApi) -> KubeClient:
    """The webhook's, as its ServiceAccount."""
    return KubeClient.from_url(api.url, token=WEBHOOK, qps=-1, denials=Denials(PERMISSIONS))


def registration(client: KubeClient) -> Registration:
    """What keeps the webhook registered."""
    wanted = Wanted(NAME, Scope(builtin_catalogue()), "https://webhook.example:443", "Fail")
    return Registration(client, wanted, lambda: _CA, lambda look: None)


def certificates(client: KubeClient, now_s: float) -> CertificateSecret:
    """What keeps its certificates."""
    return CertificateSecret(client, SECRET, "webhook.example", lambda: now_s)


_CA = Authority("ca").pem


def _on_servers(
    may: Callable[[], Authorization], scenario: Callable[[FakeApi], Coroutine[None, None, Requests]]
) -> Requests:
    """On a server that streams initial lists, and on one that does not."""

    async def play(*, streams: bool) -> Requests:
        async with FakeApi() as api:
            api.authorization = may()
            if not streams:
                api.disable_watchlist()
            return await scenario(api)

    return asyncio.run(play(streams=True)) | asyncio.run(play(streams=False))


def _of(seen: list[Seen], user: str) -> Requests:
    return frozenset(attributes(one) for one in seen if one.user == user)
