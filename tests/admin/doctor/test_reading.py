"""API servers and dumps read: the same objects either way; what cannot be read is told and costs itself."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from admin.doctor.catalogue import KINDS
from admin.doctor.dump_reading import PlaneDump
from admin.doctor.evidence import NotRead, Role
from admin.doctor.kinds import CLUSTERS, DEPLOYMENTS, NEVER_NONE, PLATFORM_KINDS, POLICIES, SECRETS, Kind
from admin.doctor.reading import Read, read_plane
from admin.doctor.views import coordinates_of, coordinates_of_item
from fairway.kube.client import KubeClient
from fairway.kube.dumps import DumpError
from fairway.kube.errors import Unauthorized, Unreachable
from fairway.kube.resource import NODES, RESOURCE_QUOTAS
from queue_dispatcher.api.kinds import SERVICE_CLASSES
from queue_dispatcher.bindings.cluster import CLUSTERS as DISPATCHERS_CLUSTERS
from queue_dispatcher.cache.objects import NAMESPACES
from sandbox.fakeapi import FakeApi
from tests.admin.doctor.installation import KARMADA, OURS, Installation, deployment, secret, write

NAMES = (KARMADA, OURS)
ALL = [kind for kinds in PLATFORM_KINDS.values() for kind in kinds]


def live(
    scenario: Callable[[FakeApi], None],
    role: Role = Role.MEMBER,
    kinds: tuple[Kind, ...] = (NODES, RESOURCE_QUOTAS),
    after: Callable[[FakeApi], None] = lambda api: None,
) -> Read:
    async def run() -> Read:
        async with FakeApi() as api:
            scenario(api)
            async with KubeClient.from_url(api.url) as client:
                read = await read_plane(client, role, "east", kinds, NAMES, lambda news: None)
            after(api)
            return read

    return asyncio.run(run())


def nodes(count: int) -> Callable[[FakeApi], None]:
    def scenario(api: FakeApi) -> None:
        api.load("/api/v1/nodes", [{"metadata": {"name": f"n{each}"}} for each in range(count)])

    return scenario


def test_everything_is_read_in_pages() -> None:
    asked: list[str] = []
    read = live(nodes(1203), after=lambda api: asked.extend(seen.path for seen in api.seen))
    assert len(read.plane.listed(NODES)) == 1203
    assert read.plane.listed(RESOURCE_QUOTAS) == ()
    assert read.problems == ()
    assert [path for path in asked if path.endswith("/nodes")] == ["/api/v1/nodes"] * 3


@pytest.mark.parametrize("code", [403, 500])
def test_a_kind_that_may_not_be_listed_is_told_and_the_rest_is_read(code: int) -> None:
    def scenario(api: FakeApi) -> None:
        nodes(2)(api)
        api.fail(code, when=lambda seen: seen.path.endswith("/resourcequotas"))

    plane = live(scenario).plane
    assert len(plane.listed(NODES)) == 2
    with pytest.raises(NotRead, match=f"resourcequotas could not be read.*{code}"):
        plane.listed(RESOURCE_QUOTAS)


def test_a_kind_that_is_not_served_is_none_unless_every_such_server_has_it() -> None:
    def scenario(api: FakeApi) -> None:
        api.serve(POLICIES.path, served=False)
        api.serve(CLUSTERS.path, served=False)

    plane = live(scenario, Role.KARMADA, (POLICIES, CLUSTERS)).plane
    assert plane.listed(POLICIES) == ()
    with pytest.raises(NotRead, match="is this the karmada API server"):
        plane.listed(CLUSTERS)


def test_a_list_that_took_too_long_is_read_once_more() -> None:
    def scenario(api: FakeApi) -> None:
        nodes(700)(api)
        api.fail(410, when=lambda seen: "continue" in seen.params)

    assert len(live(scenario).plane.listed(NODES)) == 700


def test_a_server_that_does_not_know_us_is_asked_once() -> None:
    def scenario(api: FakeApi) -> None:
        api.fail(401, 1000)

    with pytest.raises(Unauthorized):
        live(scenario)


def test_a_server_that_is_not_there_is_told() -> None:
    async def run() -> None:
        async with KubeClient.from_url("http://127.0.0.1:1") as client:
            await read_plane(client, Role.MEMBER, "east", (NODES,), NAMES, lambda news: None)

    with pytest.raises(Unreachable):
        asyncio.run(run())


def test_what_is_kept_by_the_thousand_is_read_in_two_namespaces_only() -> None:
    def scenario(api: FakeApi) -> None:
        for namespace in (KARMADA, OURS, "other"):
            api.create(
                f"/apis/apps/v1/namespaces/{namespace}/deployments",
                {"metadata": {"name": f"in-{namespace}", "namespace": namespace}},
            )

    plane = live(scenario, Role.HOST, (DEPLOYMENTS,)).plane
    assert sorted(each.metadata.name for each in plane.listed(DEPLOYMENTS)) == [f"in-{OURS}", f"in-{KARMADA}"]


def test_a_broken_object_costs_only_itself() -> None:
    def scenario(api: FakeApi) -> None:
        api.load(
            "/api/v1/nodes",
            [
                {"metadata": {"name": "whole"}},
                {"metadata": {"name": "broken"}, "status": {"allocatable": 7}},
                {"metadata": {"name": "odd", "labels": {"a": 1}}},
            ],
        )

    read = live(scenario)
    assert sorted(node.metadata.name for node in read.plane.listed(NODES)) == ["odd", "whole"]
    first, second = read.problems
    assert (
        first.told == "east: nodes broken: status.allocatable: expected object, got int; the item is skipped"
    )
    assert second.told.startswith("east: nodes odd: metadata.labels[a]: expected text")


def test_two_views_of_a_kind_cost_one_list() -> None:
    asked: list[str] = []

    def scenario(api: FakeApi) -> None:
        api.create(CLUSTERS.path, {"metadata": {"name": "a"}, "spec": {"syncMode": "Pull"}})

    plane = live(
        scenario,
        Role.KARMADA,
        (CLUSTERS, DISPATCHERS_CLUSTERS),
        lambda api: asked.extend(seen.path for seen in api.seen),
    ).plane
    assert asked.count(CLUSTERS.path) == 1
    (mine,) = plane.listed(CLUSTERS)
    (theirs,) = plane.listed(DISPATCHERS_CLUSTERS)
    assert (mine.spec.sync_mode, msgspec.json.decode(theirs.spec)) == ("Pull", {"syncMode": "Pull"})


def test_only_metadata_is_asked_for_where_that_is_enough() -> None:
    accepts: list[str | None] = []

    def after(api: FakeApi) -> None:
        accepts.extend(seen.headers.get("Accept") for seen in api.seen if seen.path.endswith("namespaces"))

    live(lambda api: None, Role.KARMADA, (NAMESPACES,), after)
    assert accepts
    assert all(accept and "PartialObjectMetadataList" in accept for accept in accepts)


def read_file(tmp_path: Path, text: str, role: Role = Role.HOST) -> Read:
    file = tmp_path / "dump"
    file.write_text(text)
    return PlaneDump(role, "host", PLATFORM_KINDS[role]).read(file)


def test_a_dump_is_read_as_the_server_would_be(tmp_path: Path) -> None:
    host = Installation().host
    assert host is not None
    file = write(tmp_path / "host.json", host)
    plane = PlaneDump(Role.HOST, "host", PLATFORM_KINDS[Role.HOST]).read(file).plane
    assert len(plane.listed(DEPLOYMENTS)) == 7
    assert plane.version == ""


def test_a_dump_in_yaml_and_of_several_documents(tmp_path: Path) -> None:
    one, two = deployment("a", "x", ["x"]), secret("s", KARMADA, {"k": b"v"})
    read = read_file(tmp_path, f"{json.dumps(one)}\n---\n{json.dumps(two)}\n".replace("\n---\n", "\n"))
    assert len(read.plane.listed(DEPLOYMENTS)) == 1
    yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: karmada-system}\n"
    assert len(read_file(tmp_path, yaml).plane.listed(DEPLOYMENTS)) == 1


def test_a_dump_in_flow_style(tmp_path: Path) -> None:
    file = tmp_path / "host.yaml"
    file.write_text("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: karmada-system}}")
    read = PlaneDump(Role.HOST, "host", PLATFORM_KINDS[Role.HOST]).read(file)
    assert len(read.plane.listed(DEPLOYMENTS)) == 1


def test_what_every_server_has_and_a_dump_has_not_was_not_dumped(tmp_path: Path) -> None:
    plane = read_file(tmp_path, json.dumps(deployment("a", "x", ["x"]))).plane
    with pytest.raises(NotRead, match=r"secrets could not be read.*has none of them"):
        plane.listed(SECRETS)
    assert set(plane.unread) == NEVER_NONE[Role.HOST] - {"deployments"}


def test_a_file_of_queues_alone_says_nothing_of_namespaces(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("{apiVersion: fairway.dev/v1alpha1, kind: ClusterQueue, metadata: {name: a}}")
    plane = PlaneDump(Role.KARMADA, "karmada", KINDS[Role.KARMADA]).read(file).plane
    assert NAMESPACES.name in plane.unread
    assert plane.listed(SERVICE_CLASSES) == ()


def test_a_page_of_a_list_is_not_the_list(tmp_path: Path) -> None:
    page = {
        "kind": "DeploymentList",
        "apiVersion": "apps/v1",
        "metadata": {"continue": "token"},
        "items": [{"metadata": {"name": "a"}}],
    }
    with pytest.raises(NotRead, match="only one page"):
        read_file(tmp_path, json.dumps(page)).plane.listed(DEPLOYMENTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("{", "the JSON breaks off"),
        ('{"kind": "List", "items": []}', "expected objects of the host API server, found none"),
        ('{"kind": "ConfigMap", "metadata": {"name": "x"}}', r"found ConfigMap \(1\)"),
        ('{"apiVersion": "apps/v1", "kind": "Deployment", "spec": 7}', "the first problem is Deployment"),
    ],
)
def test_a_dump_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DumpError, match=message):
        read_file(tmp_path, text)


def test_a_broken_object_of_a_dump_costs_only_itself(tmp_path: Path) -> None:
    good, bad = secret("good", KARMADA, {"k": b"v"}), secret("bad", KARMADA, {})
    bad["data"] = {"k": "not base64!"}
    file = write(tmp_path / "dump", [good, bad])
    read = PlaneDump(Role.HOST, "host", PLATFORM_KINDS[Role.HOST]).read(file)
    assert [each.metadata.name for each in read.plane.listed(SECRETS)] == ["good"]
    (problem,) = read.problems
    assert "Secret karmada-system/bad" in problem.told


def test_secrets_do_not_print_themselves(tmp_path: Path) -> None:
    read = read_file(tmp_path, json.dumps(secret("s", KARMADA, {"key": b"hush-hush"})))
    (found,) = read.plane.listed(SECRETS)
    assert found.data == {"key": b"hush-hush"}
    assert repr(found) == "Secret(karmada-system/s: key)"
    assert "hush" not in repr(read)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_what_a_dump_calls_a_kind_leads_to_where_it_is_served(kind: Kind) -> None:
    group = coordinates_of(kind.path).group
    words = {
        "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
        "mutatingadmissionpolicies": "MutatingAdmissionPolicy",
        "customresourcedefinitions": "CustomResourceDefinition",
    }
    plural = coordinates_of(kind.path).plural
    word = words.get(plural, plural.removesuffix("s"))
    assert coordinates_of_item(f"{group}/v1" if group else "v1", word) == coordinates_of(kind.path)


def test_kinds_of_one_name_share_a_path() -> None:
    paths: dict[tuple[Role, str], str] = {}
    for role, kinds in PLATFORM_KINDS.items():
        for kind in kinds:
            assert paths.setdefault((role, kind.name), kind.path) == kind.path
