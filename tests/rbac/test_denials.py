"""What a refusal is about, and how often it is told."""

import asyncio
import logging

import pytest
from multidict import CIMultiDict

from fairway.kube.client import KubeClient
from fairway.kube.denials import FORGET_S, GRACE_S, MAX_NAMESPACES, Denials
from fairway.kube.errors import Denied, Forbidden, KubeError, refusal
from fairway.kube.permissions import Permission
from fairway.kube.request_attributes import Attributes, attributes
from sandbox.fakeapi import FakeApi, Seen, authorization
from sandbox.fakeapi.authorization import Authorization
from sandbox.fakeapi.faults import Cut, Fault
from sandbox.fakeapi.store import Obj

LIST = Attributes("list", "batch", "jobs")
TABLE = (Permission("jobs.batch", ("list",), "nothing works", "manifests/x.yaml"),)


@pytest.mark.parametrize(
    ("method", "path", "params", "expected"),
    [
        ("GET", "/api/v1/nodes", {}, Attributes("list", "", "nodes")),
        ("GET", "/api/v1/nodes", {"watch": "1"}, Attributes("watch", "", "nodes")),
        ("GET", "/api/v1/nodes/n", {}, Attributes("get", "", "nodes", "", "n")),
        ("GET", "/api/v1/namespaces", {"watch": "true"}, Attributes("watch", "", "namespaces")),
        ("GET", "/api/v1/namespaces/a", {}, Attributes("get", "", "namespaces", "a", "a")),
        ("PUT", "/api/v1/namespaces/a/status", {}, Attributes("update", "", "namespaces/status", "a", "a")),
        ("POST", "/api/v1/namespaces/a/events", {}, Attributes("create", "", "events", "a")),
        ("DELETE", "/api/v1/namespaces/a/pods", {}, Attributes("deletecollection", "", "pods", "a")),
        ("DELETE", "/api/v1/namespaces/a/pods/p", {}, Attributes("delete", "", "pods", "a", "p")),
        (
            "PATCH",
            "/apis/fairway.dev/v1alpha1/namespaces/a/localqueues/q/status",
            {},
            Attributes("patch", "fairway.dev", "localqueues/status", "a", "q"),
        ),
        (
            "PATCH",
            "/apis/fairway.dev/v1alpha1/clusterqueues/q/status",
            {},
            Attributes("patch", "fairway.dev", "clusterqueues/status", "", "q"),
        ),
        ("GET", "/apis/batch/v1", {}, None),
        ("GET", "/api/v1", {}, None),
        ("GET", "/version", {}, None),
    ],
)
def test_a_request_is_a_verb_on_a_resource(
    method: str, path: str, params: dict[str, str], expected: Attributes | None
) -> None:
    assert attributes(method, path, params) == expected
    # The API server in memory reads it alike, with code of its own.
    there = authorization.attributes(Seen(method, path, params, CIMultiDict()))
    if expected is None:
        assert there.resource == ""
    else:
        assert (there.verb, there.group, there.resource) == (expected.verb, expected.group, expected.resource)
        assert (there.namespace, there.name) == (expected.namespace, expected.name)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (Attributes("get", "", "pods"), "pods"),
        (Attributes("get", "batch", "jobs"), "jobs.batch"),
        (Attributes("patch", "fairway.dev", "clusterqueues/status"), "clusterqueues.fairway.dev/status"),
        (Attributes("get", "", "pods/log"), "pods/log"),
    ],
)
def test_a_resource_has_its_group(attributes: Attributes, name: str) -> None:
    assert attributes.full_resource == name


@pytest.mark.parametrize(
    ("message", "user"),
    [
        ('jobs.batch is forbidden: User "a" cannot list resource "jobs" in API group "batch" at the', "a"),
        (
            'pods "x" is forbidden: User "system:serviceaccount:n:x" cannot get resource',
            "system:serviceaccount:n:x",
        ),
        ('forbidden: User "a \\"b\\" \\\\" cannot get path "/x"', 'a "b" \\'),
        ('forbidden: User "" cannot get path "/x"', ""),
    ],
)
def test_the_authorizer_is_known_by_its_words(message: str, user: str) -> None:
    error = refusal("https://a: GET /x", 403, message)
    assert isinstance(error, Denied)
    assert error.user == user
    assert error.label == "forbidden"


@pytest.mark.parametrize(
    "message",
    ["exceeded quota: q", "admission webhook denied the request", 'namespace "a" is being terminated', ""],
)
def test_other_refusals_are_no_missing_permission(message: str) -> None:
    assert type(refusal("https://a: POST /x", 403, message)) is Forbidden


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_it_is_told_once_and_again_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    denials = Denials(TABLE, clock=Clock())
    for _ in range(3):
        denials.refused("https://k", LIST, "a")
    denials.refused("https://k", LIST, "b")
    (denial,) = denials.current()
    assert (denial.verb, denial.resource, denial.user) == ("list", "jobs.batch", "b")
    denials.allowed("https://k", LIST)
    denials.allowed("https://k", LIST)
    assert not denials
    without = "at the cluster scope; without it: nothing works; manifests/x.yaml grants it"
    assert told(caplog) == [
        (logging.WARNING, f'https://k: user "a" may not list jobs.batch {without}'),
        (logging.WARNING, f'https://k: user "b" may not list jobs.batch {without}'),
        (logging.INFO, "https://k: may list jobs.batch again"),
    ]


def test_what_is_refused_just_after_a_server_was_in_trouble_counts_once_it_stays_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    denials = Denials(TABLE, clock=clock)
    denials.troubled()
    for clock.now_s in (0, 1, GRACE_S - 1):
        denials.refused("https://k", LIST, "a")
    assert (denials.current(), caplog.records) == ((), [])
    clock.now_s = GRACE_S
    denials.refused("https://k", LIST, "a")
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    # What is known to be missing stays so.
    denials.troubled()
    denials.refused("https://k", LIST, "a")
    assert len(denials.current()) == 1


@pytest.mark.parametrize("code", [0, 401, 503])
def test_a_server_that_fails_or_is_away_is_in_trouble(code: int) -> None:
    denials = Denials()

    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1, denials=denials) as client:
            everything = Fault(lambda seen: True, 9, code=code, cut=None if code else Cut.BEFORE)
            api.faults.add(everything)
            with pytest.raises(KubeError):
                await client.get_bytes("/api/v1/pods")

    asyncio.run(scenario())
    denials.refused("https://k", LIST, "a")
    assert denials.current() == ()


def test_what_no_table_knows_is_told_without_a_file(caplog: pytest.LogCaptureFixture) -> None:
    Denials(TABLE).refused("https://k", Attributes("create", "", "events", "team"), "a")
    ((_, message),) = told(caplog)
    assert message == (
        'https://k: user "a" may not create events in the namespace "team"; expected permission: grant it by '
        "a ClusterRole and its binding"
    )


def test_namespaces_count_once_together_and_end_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    denials = Denials(clock=Clock())
    for number in range(3 * MAX_NAMESPACES):
        denials.refused("https://k", Attributes("create", "", "events", f"ns-{number}"), "a")
    assert len(caplog.records) == 1
    denials.allowed("https://k", Attributes("create", "", "events", "another"))
    for number in range(MAX_NAMESPACES):
        assert len(denials.current()) == 1
        denials.allowed("https://k", Attributes("create", "", "events", f"ns-{number}"))
    assert denials.current() == ()


def test_what_nobody_asks_for_any_more_is_forgotten() -> None:
    clock = Clock()
    denials = Denials(clock=clock)
    denials.refused("https://k", LIST, "a")
    clock.now_s = FORGET_S
    assert len(denials.current()) == 1
    clock.now_s = FORGET_S + 1
    assert denials.current() == ()


def role(*rules: dict[str, object], namespace: str = "") -> list[Obj]:
    kind = "Role" if namespace else "ClusterRole"
    where = {"name": "r", **({"namespace": namespace} if namespace else {})}
    subjects = [{"kind": "User", "name": "u"}]
    reference = {"kind": kind, "name": "r"}
    return [
        {"kind": kind, "metadata": where, "rules": list(rules)},
        {"kind": f"{kind}Binding", "metadata": where, "roleRef": reference, "subjects": subjects},
    ]


def test_the_server_in_memory_refuses_as_a_real_one_does() -> None:
    named: dict[str, object] = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    named["resourceNames"] = ["mine"]

    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, token="u", qps=-1) as client:
            secrets = "/api/v1/namespaces/a/secrets"
            api.create(secrets, {"metadata": {"name": "mine"}})
            api.authorization = Authorization(role(named, namespace="a"))
            await client.get_bytes(f"{secrets}/mine")
            await client.get_bytes("/version")
            for path, said in (
                (
                    f"{secrets}/other",
                    'secrets "other" is forbidden: User "u" cannot get resource "secrets" in API',
                ),
                (
                    secrets,
                    'secrets is forbidden: User "u" cannot list resource "secrets" in API group "" in the',
                ),
                ("/api/v1/namespaces/b/secrets/mine", 'in API group "" in the namespace "b"'),
                (
                    "/apis/batch/v1/jobs",
                    'jobs.batch is forbidden: User "u" cannot list resource "jobs" in API',
                ),
                ("/metrics", 'forbidden: User "u" cannot get path "/metrics"'),
            ):
                with pytest.raises(Denied) as caught:
                    await client.get_bytes(path)
                assert said in str(caught.value)

    asyncio.run(scenario())
