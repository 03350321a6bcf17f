"""Asking a Prometheus: what is sent, what is taken, and what each way to fail says."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairway.prometheus.answer import MOST_SERIES, PrometheusError, Sample, vector
from fairway.prometheus.client import Found, Wanted, ask
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.queries import DEVICES, MEASURES, SERIES
from fairway.prometheus.server import Server, checked_url
from tests.certs import Authority
from tests.prometheus.fake import Reply, dcgm, exported, failure, from_table, prometheus, success
from tests.prometheus.series import AT_S, Series, values

DEVICE = Series("GPU-1")
TABLE = dcgm([DEVICE.sample()], values([DEVICE]))
COUNT = f"count({SERIES[Exporter.DCGM]})"


WANTED = Wanted(deadline_s=20)


def asked(server: Server, wanted: Wanted = WANTED) -> Found:
    return asyncio.run(ask(server, AT_S, lambda _: None, wanted))


def refused(answer: Callable[[str], Reply], wanted: Wanted = WANTED) -> str:
    with prometheus(answer) as fake, pytest.raises(PrometheusError) as raised:
        asked(Server(fake.url), wanted)
    assert fake.url in str(raised.value)
    return str(raised.value)


def test_every_query_is_about_the_same_moment_and_has_a_deadline() -> None:
    with prometheus(from_table(TABLE)) as fake:
        (told,) = asked(Server(fake.url)).told
    assert told.devices == (DEVICE.sample(),)
    assert told.values[Value.P50] == (DEVICE.value(62.5),)
    assert {one.params["time"] for one in fake.asked} == {f"{AT_S:.3f}"}
    assert all(0 < int(one.params["timeout"].removesuffix("s")) <= 20 for one in fake.asked)
    assert {one.authorization for one in fake.asked} == {None}


def test_a_path_prefix_and_a_token_are_sent(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with prometheus(from_table(TABLE), prefix="/prom/tenant") as fake:
        assert asked(Server(checked_url(f"{fake.url}/prom/tenant/"), token)).told
    assert {one.authorization for one in fake.asked} == {"Bearer s3cret"}


def test_https_with_a_ca_of_its_own(tmp_path: Path) -> None:
    authority = Authority("own")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("localhost").write(tmp_path, "server"))
    with prometheus(from_table(TABLE), context) as fake:
        assert asked(Server(fake.url, ca_file=tmp_path / "ca.crt")).told
        with pytest.raises(PrometheusError, match="signed by a CA that is not known here"):
            asked(Server(fake.url))


def constant(body: bytes, status: int = 200, **headers: str) -> Callable[[str], Reply]:
    return lambda _: Reply(body, status, headers)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (constant(failure("bad_data", "parse error"), 400), "400: parse error; expected success"),
        (
            constant(failure("timeout", "query timed out"), 503),
            "503: query timed out; expected success: is Prom",
        ),
        (
            constant(failure("execution", "too many samples"), 422),
            "422: too many samples; expected a query that",
        ),
        (
            constant(b"Unauthorized", 401),
            "401: found 'Unauthorized'; expected accepted credentials: give --prom",
        ),
        (constant(b"nope", 404), "404: found 'nope'; expected /api/v1/query below the URL: is a path prefix"),
        (
            constant(b"", 302, Location="https://login.example/?token=x"),
            "302: redirects to https://login.example/; expected no redirect",
        ),
        (constant(b"<html><title>Grafana</title>"), "a page of HTML (Grafana)"),
        (constant(b"<html><title>Bad</title>", 502), "502: a page of HTML (Bad); expected success: is Prom"),
        (constant(b""), "an empty answer"),
        (
            constant(b'{"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}'),
            "expected a vector, found scalar",
        ),
        (constant(b'{"status": "success"}'), "expected a vector, found nothing"),
        (
            constant(b'{"status": "success", "data": {"resultType": "vector", "result": [{}]}}'),
            "expected JSON",
        ),
        (constant(b"\xff\xfe"), "expected JSON of Prometheus's HTTP API"),
        (from_table({COUNT: [Sample({}, float("inf"))]}), "inf series; expected at most"),
        (from_table({COUNT: [Sample({}, float("nan"))]}), "no series of Fairway's node agents"),
        (from_table({}), "no series of Fairway's node agents nor of DCGM's exporter"),
        (
            from_table({COUNT: [Sample({}, 1_000_000.0)]}),
            f"1,000,000 series; expected at most {MOST_SERIES:,}: give the Prometheus of one cluster",
        ),
    ],
)
def test_each_way_to_fail_says_what_and_what_to_do(answer: Callable[[str], Reply], said: str) -> None:
    assert said in refused(answer)


def test_a_prometheus_that_is_gone_or_slow() -> None:
    with prometheus(from_table({})) as fake:
        pass
    with pytest.raises(PrometheusError, match="no connection to localhost"):
        asked(Server(fake.url))
    never = threading.Event()

    def slow(_: str) -> Reply:
        return Reply(success([]), delay=never)

    with prometheus(slow) as fake:
        with pytest.raises(PrometheusError, match="no answer in time"):
            asked(Server(fake.url), Wanted(deadline_s=0.05))
        never.set()


def test_an_answer_without_end_is_not_read() -> None:
    wanted = replace(WANTED, most_bytes=1 << 20)
    assert "an answer of more than 1 MiB" in refused(constant(b" " * (2 << 20)), wanted)


def compact(samples: list[Sample]) -> bytes:
    """As Prometheus itself writes it."""
    return json.dumps(json.loads(success(samples)), separators=(",", ":")).encode()


def test_a_long_answer_is_read_in_pieces_that_are_no_shorter_for_it() -> None:
    odd = ',{"metric":{"a":"b"}},"]}]'
    samples = [Sample({"UUID": f"GPU-{number}", "modelName": odd}, float(number)) for number in range(3000)]
    body = compact(samples)
    assert len(body) > 4 * (64 << 10)
    assert vector("here", body).samples == tuple(samples)
    for few in (samples[:1], []):
        assert vector("here", compact(few)).samples == tuple(few)
    with pytest.raises(PrometheusError, match="3,000 series; expected at most 500: give"):
        vector("here", body, 500)
    with pytest.raises(PrometheusError, match="expected JSON of Prometheus's HTTP API"):
        vector("here", body.replace(b'"GPU-2000"', b"GPU"))


def test_who_would_take_a_gap_for_health_gets_all_or_nothing() -> None:
    wanted = Wanted(frozenset({Value.XID, Value.REMAP_FAILED}), deadline_s=20, is_whole=True)
    with prometheus(from_table(TABLE)) as fake:
        asked(Server(fake.url), wanted)
    of_measures = {wanted.query(value, Exporter.DCGM) for value in wanted.values}
    counts = {f"count({series})" for series in SERIES.values()}
    assert {one.params["query"] for one in fake.asked} == of_measures | counts | {DEVICES[Exporter.DCGM]}
    sick = wanted.query(Value.REMAP_FAILED, Exporter.DCGM)

    def answer(query: str) -> Reply:
        return Reply(failure("timeout", "slow"), 503) if query == sick else from_table(TABLE)(query)

    assert "(asked for failed row remapping, by DCGM's exporter)" in refused(answer, wanted)


def test_a_query_that_fails_costs_what_it_would_have_filled() -> None:
    slow = next(one.of(Exporter.DCGM) for one in MEASURES if one.value is Value.BUSY_AT)

    def answer(query: str) -> Reply:
        return (
            Reply(failure("execution", "too many samples"), 422)
            if query == slow
            else from_table(TABLE)(query)
        )

    with prometheus(answer) as fake:
        found = asked(Server(fake.url))
    (problem,) = found.problems
    assert problem.startswith("last moment of use, by DCGM's exporter, is not known: Prometheus http://")
    assert found.told[0].values[Value.P95] == (DEVICE.value(97.0),)


def test_an_exporter_with_too_many_series_costs_only_itself() -> None:
    with prometheus(from_table({**TABLE, f"count({SERIES[Exporter.AMD]})": [Sample({}, 1e6)]})) as fake:
        found = asked(Server(fake.url))
    assert [told.exporter for told in found.told] == [Exporter.DCGM]
    (problem,) = found.problems
    assert "AMD's device-metrics-exporter: 1,000,000 series; expected at most 500,000" in problem


def test_warnings_are_told_once() -> None:
    def answer(query: str) -> Reply:
        return Reply(success(TABLE.get(query, ()), warnings=["a store did not answer"]))

    with prometheus(answer) as fake:
        assert asked(Server(fake.url)).problems == (f"Prometheus {fake.url} warns: a store did not answer",)


@pytest.mark.parametrize(
    ("exporter", "value", "device", "asked_well"),
    [
        (
            Exporter.DCGM,
            Value.REMAP_FAILED,
            "GPU-1/gi3",
            '(max by (UUID, GPU_I_ID) ({__name__=~"DCGM_FI_DEV_ROW_REMAP_FAILURE", UUID=~"GPU-1"})) == 0',
        ),
        (
            Exporter.AMD,
            Value.CALLED_UNHEALTHY,
            "a1/1",
            '(max by (hostname, gpu_id) (1 - ({__name__=~"(amd_)?gpu_health", hostname=~"a1"}))) == 0',
        ),
    ],
)
def test_of_what_is_mostly_0_only_the_devices_in_doubt_are_asked(
    exporter: Exporter, value: Value, device: str, asked_well: str
) -> None:
    labels = ("UUID", "GPU_I_ID") if exporter is Exporter.DCGM else ("hostname", "gpu_id")
    one = ("GPU-1", "4") if exporter is Exporter.DCGM else ("a1", "0")
    told = Sample(dict(zip(labels, one, strict=True)), 1.0)
    seen: list[str] = []
    wanted = Wanted(frozenset((value,)), frozenset((value,)), {value: frozenset((device,))}, is_whole=True)

    def answer(query: str) -> Reply:
        seen.append(query)
        table = exported(exporter, [told], {value: [told]})
        return Reply(success(table.get(query[1:-6] if query.endswith("!= 0") else query, ())))

    with prometheus(answer) as fake:
        asked(Server(fake.url), wanted)
        # Another part of the same is told of; what is told of itself is not asked again.
        assert seen.count(asked_well) == 1
        seen.clear()
        itself = "/".join((one[0], f"gi{one[1]}" if exporter is Exporter.DCGM else one[1]))
        asked(Server(fake.url), replace(wanted, doubted={value: frozenset((itself,))}))
        assert not any(query.endswith("== 0") for query in seen)


def test_numbers_that_are_none_arrive_as_they_are() -> None:
    table = {**TABLE, DEVICES[Exporter.DCGM]: [Sample({"UUID": "GPU-1"}, float("inf"))]}
    with prometheus(from_table(table)) as fake:
        assert asked(Server(fake.url)).told[0].devices == (Sample({"UUID": "GPU-1"}, float("inf")),)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("prometheus:9090", r"'prometheus:9090': expected http\(s\)://HOST"),
        ("ftp://prometheus", "expected http"),
        ("http://", "expected http"),
        ("http://p:99999", "expected http"),
        ("http://me:s3cret@p:9090", "'http://p:9090': .* credentials go into a file"),
        ("http://p:9090/?orgId=1", "alone"),
    ],
)
def test_what_is_no_url_of_a_prometheus(url: str, said: str) -> None:
    with pytest.raises(PrometheusError, match=said) as raised:
        checked_url(url)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "content", "said"),
    [
        ("https://p", None, "token: No such file or directory; expected a bearer token"),
        ("https://p", b"", "expected one bearer token, on one line"),
        ("https://p", b"a b", "expected one bearer token, on one line"),
        ("https://p", b"a\r\nX-Evil: b", "expected one bearer token, on one line"),
        ("https://p", b"\xff", "not ASCII"),
        ("http://p", b"good", "a token would travel unencrypted; expected https://"),
    ],
)
def test_a_token_that_is_not_sent(tmp_path: Path, url: str, content: bytes | None, said: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PrometheusError) as raised:
        asked(Server(url, file))
    assert said in str(raised.value)


def test_a_token_goes_nowhere_else(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    with prometheus(from_table(TABLE)) as other:
        away = constant(b"s3cr", 307, Location=f"{other.url}/api/v1/query")
        with prometheus(away) as fake, pytest.raises(PrometheusError, match="307: redirects to") as raised:
            asked(Server(fake.url, token))
    assert len(fake.asked) == 1
    assert other.asked == []
    assert "s3cret" not in str(raised.value)
