"""Where certificates come from: files that others renew, and a Secret that replicas share."""

import asyncio
import base64
import logging
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.service.certificates import TlsError
from sandbox.fakeapi import FakeApi
from tests.certs import Authority
from webhook.certificate_files import REMEMBERED_S, CertificateFiles
from webhook.certificate_secret import CertificateSecret, SecretName
from webhook.certificates import AUTHORITY_LIFE, AUTHORITY_RENEWAL, OVERLAP, split_bundle
from webhook.live_certificates import LiveCertificates
from webhook.tls import Serving

NAME = SecretName("karmada-system", "fairway-webhook")
HOST = "webhook.example"
NOW_S = 1_800_000_000.0


def run(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(bounded())


class Clock:
    def __init__(self, now_s: float = NOW_S) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def test_replicas_that_start_together_serve_with_the_same_pair() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            replicas = [CertificateSecret(client, NAME, HOST, Clock()) for _ in range(8)]
            served = await asyncio.gather(*(replica.read() for replica in replicas))
            assert len(set(served)) == 1
            assert served[0] == await replicas[0].read()
            posts = [seen for seen in api.seen if seen.method == "POST"]
            assert len(posts) > 1

    run(scenario())


def test_replicas_take_each_step_of_a_rotation_once() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            clock = Clock()
            replicas = [CertificateSecret(client, NAME, HOST, clock) for _ in range(4)]
            first = await replicas[0].read()
            clock.now_s += (AUTHORITY_LIFE - AUTHORITY_RENEWAL + timedelta(days=1)).total_seconds()
            sizes = []
            for _ in range(3):
                served = await asyncio.gather(*(replica.read() for replica in replicas))
                assert len(set(served)) == 1
                sizes.append(len(split_bundle(served[0].authorities or b"")))
                clock.now_s += OVERLAP.total_seconds()
            # The certificate was overdue as well: nobody had looked for a year.
            assert sizes == [2, 2, 1]
            assert served[0].certificate != first.certificate

    run(scenario())


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        {"tls.crt": "Z2FyYmFnZQ=="},
        dict.fromkeys(("ca.crt", "ca.key", "tls.crt", "tls.key"), base64.b64encode(b"garbage").decode()),
        {
            "ca.crt": base64.b64encode(Authority("a").pem).decode(),
            "ca.key": "Z2FyYmFnZQ==",
            "tls.crt": "",
            "tls.key": "",
        },
    ],
)
def test_a_secret_that_cannot_be_read_is_begun_anew(data: object, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            obj = {"metadata": {"name": NAME.name}, "data": data, "type": "kubernetes.io/tls"}
            api.create(NAME.collection, obj)
            served = await CertificateSecret(client, NAME, HOST, Clock()).read()
            assert served == await CertificateSecret(client, NAME, HOST, Clock()).read()

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert "Secret karmada-system/fairway-webhook is begun anew" in caplog.text


def test_a_secret_that_somebody_keeps_changing_is_given_up_for_now() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            api.create(NAME.collection, {"metadata": {"name": NAME.name}, "data": {}})
            api.fail(409, 5, when=lambda seen: seen.method == "PATCH")
            secret = CertificateSecret(client, NAME, HOST, Clock())
            with pytest.raises(KubeError, match="changed 5 times"):
                await secret.read()
            assert (await secret.read()).authorities

    run(scenario())


def write(folder: Path, authority: Authority, issuer: Authority | None = None) -> tuple[Path, Path, Path]:
    certificate, key = (issuer or authority).issue("w").write(folder, "tls")
    authorities = folder / "ca.crt"
    authorities.write_bytes(authority.pem)
    return certificate, key, authorities


def test_files_are_followed_and_their_former_authorities_trusted_for_an_hour(tmp_path: Path) -> None:
    async def scenario() -> None:
        one, two = Authority("one"), Authority("two")
        clock = Clock(0.0)
        files = CertificateFiles(*write(tmp_path, one), clock)
        first = await files.read()
        assert first.authorities == one.pem
        assert await files.read() == first
        write(tmp_path, two)
        second = await files.read()
        assert second.certificate != first.certificate
        assert second.authorities == two.pem + one.pem
        clock.now_s = REMEMBERED_S
        assert (await files.read()).authorities == two.pem

    run(scenario())


def test_without_authorities_nothing_is_said_of_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        certificate, key, _ = write(tmp_path, Authority("one"))
        assert (await CertificateFiles(certificate, key, None, Clock()).read()).authorities is None

    run(scenario())


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: (folder / "tls.key").unlink(), "tls.key: cannot be read"),
        (lambda folder: (folder / "tls.crt").write_text("garbage"), "tls.crt: cannot be used"),
        (lambda folder: (folder / "ca.crt").write_text("garbage"), "ca.crt: "),
        (lambda folder: Authority("x").issue("x").write(folder, "tls")[1].write_text("garbage"), "tls.crt"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, spoil: object, problem: str) -> None:
    assert callable(spoil)

    async def scenario() -> None:
        files = CertificateFiles(*write(tmp_path, Authority("one")), Clock())
        spoil(tmp_path)
        with pytest.raises(TlsError, match=problem):
            await files.read()

    run(scenario())


class Script:
    """A source that gives these, one after the other."""

    def __init__(self, *steps: Serving | Exception) -> None:
        self.steps = list(steps)

    async def read(self) -> Serving:
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


def test_the_last_good_certificate_stays_in_force(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        authority = Authority("a")
        one, two = (authority.issue(name) for name in "ab")
        good = Serving(one.certificate, one.key, authority.pem)
        newer = Serving(two.certificate, two.key, authority.pem)
        bad = Serving(one.certificate, two.key, authority.pem)
        source = Script(KubeError("away"), KubeError("away"), good, bad, KubeError("away"), good, newer)
        live = LiveCertificates(source)
        await live.look()
        await live.look()
        assert not live.ready.is_set()
        assert (live.problem, live.authorities, live.reading().certificate_expires_s) == ("away", None, 0.0)
        await live.look()
        assert live.ready.is_set()
        assert (live.problem, live.authorities) == ("", authority.pem)
        await live.look()
        assert "cannot be used" in live.problem
        await live.look()
        assert live.reading().reloads == 0
        await live.look()
        await live.look()
        assert live.problem == ""
        reading = live.reading()
        assert (reading.reloads, reading.failures, reading.certificate_expires_s) == (1, 4, newer.expires_s)

    run(scenario())
    # Said once, however long it lasts.
    assert caplog.text.count("nothing is served yet: away") == 1
    assert caplog.text.count("the old ones stay in force") == 2


def test_it_is_looked_again_and_again_whatever_happens(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        pair = Authority("a").issue("a")
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                raise asyncio.CancelledError

        good = Serving(pair.certificate, pair.key, None)
        live = LiveCertificates(Script(good, ZeroDivisionError("unforeseen"), good), sleep=sleep)
        with pytest.raises(asyncio.CancelledError):
            await live.run()
        assert slept == [10.0] * 3
        assert live.reading().failures == 1

    run(scenario())
    assert "certificates not looked at" in caplog.text
