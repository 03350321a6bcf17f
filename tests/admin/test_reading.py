"""Many clusters at once: live, from files and by estimators, and what becomes of those that fail."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from rich.console import Console

from admin.asking import Asked
from admin.cli import exit_of
from admin.document import Report
from admin.estimates import Rules
from admin.exits import Exit
from admin.explaining import read_verdicts
from admin.live import read_live
from admin.local import LocalEstimates
from admin.main import cli
from admin.mirrors import mirror_of
from admin.progress import steps
from admin.remote import RemoteError, Tls, remote_summaries
from admin.reporting import read_report
from admin.shape import Shape
from admin.sources import DumpSource, EstimatorSource, LiveSource, Source
from admin.usage import read_usage
from admin.verdicts import Verdicts, Word, word
from admin.workload_file import read_workload_file
from estimator.capacity.gangs.placements import ClusterExplanation, ClusterPlacement
from estimator.capacity.summary import Summary
from estimator.capacity.usage import UsageAnswer
from estimator.reasons import Reason
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.kube.errors import Refused
from fairway.kube.objects import ResourceQuota
from fairway.usage.use import ClusterUsage
from sandbox.fakeapi import FakeApi
from tests.admin.dumps import gpu_node, gpu_pod, write_dump
from tests.admin.estimators import FakeEstimator, serving
from tests.admin.examples import alpha, bravo, charlie
from tests.admin.examples import report as example
from tests.admin.test_workload_file import JOB
from tests.builders import node, pod
from tests.certs import Authority
from tests.usage.agents import agent, usage

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
WEST = usage([node("n").gpus(8)], [pod("p").requests(gpu=3).on("n")], [agent("n")], name="alpha")
ESTIMATES = LocalEstimates(Rules(builtin_catalogue()), clock=lambda: 0.0)


def quiet() -> Console:
    return Console(file=io.StringIO())


def report(*sources: Source, tls: Tls | None = None, with_nodes: bool = False) -> Report:
    return asyncio.run(read_report(sources, ESTIMATES, tls or Tls(), NOW, quiet(), with_nodes=with_nodes))


async def verdicts(asked: Asked, *sources: Source) -> Verdicts:
    return await read_verdicts(sources, asked, ESTIMATES, builtin_catalogue(), Tls(), NOW, quiet())


def two_nodes(folder: Path, name: str = "one") -> DumpSource:
    objects = [gpu_node("a", 8), gpu_node("b", 8), gpu_pod("x", "a", 3)]
    return DumpSource(name, write_dump(folder / f"{name}.json", objects))


def test_a_dump_is_counted(tmp_path: Path) -> None:
    made = report(two_nodes(tmp_path), with_nodes=True)
    (cluster,) = made.clusters
    (product,) = cluster.summary.products
    assert (product.total, product.allocated, product.free) == (16, 3, 13)
    assert cluster.node_names == ("a", "b")
    assert [(line.node, line.total, line.allocated, line.free) for line in cluster.nodes] == [
        ("a", 8, 3, 5),
        ("b", 8, 0, 8),
    ]
    assert made.made_at == "2026-03-14T09:26:53Z"


def live_cluster(scenario: Callable[[FakeApi, Path], Awaitable[None]], folder: Path) -> None:
    async def run() -> None:
        async with FakeApi() as api:
            for name, gpus in (("n1", 8), ("n2", 4)):
                _, made = gpu_node(name, gpus)
                api.create("/api/v1/nodes", made)
            _, held = gpu_pod("x", "n1", 2)
            api.create("/api/v1/namespaces/default/pods", held)
            config = folder / "config"
            config.write_text(
                f"current-context: here\nclusters: [{{name: c, cluster: {{server: {api.url!r}}}}}]\n"
                "contexts: [{name: here, context: {cluster: c}}]\nusers: []\n"
            )
            await scenario(api, config)

    asyncio.run(run())


def test_a_live_cluster_is_read_once_and_counted(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, config: Path) -> None:
        made = await read_report(
            [LiveSource("live", config, "")], ESTIMATES, Tls(), NOW, quiet(), with_nodes=False
        )
        (cluster,) = made.clusters
        (product,) = cluster.summary.products
        assert (product.total, product.free, cluster.node_names) == (12, 10, ("n1", "n2"))
        assert not any(seen.is_watch for seen in api.seen)

    live_cluster(scenario, tmp_path)


def test_pages_are_followed_and_forbidden_quotas_are_left_out(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, _: Path) -> None:
        api.load("/api/v1/nodes", ({"metadata": {"name": f"m{number:04}"}} for number in range(1_200)))
        api.fail(403, times=9, when=lambda seen: seen.path.endswith("resourcequotas"))
        news: list[str] = []
        async with KubeClient.from_url(api.url, qps=-1) as client:
            dump = await read_live(client, news.append)
        assert (len(dump.nodes), len(dump.pods), dump.of(ResourceQuota)) == (1_202, 1, ())
        (problem,) = dump.problems
        assert "quotas are left out" in str(problem)
        assert "1,000 nodes" in news

    live_cluster(scenario, tmp_path)


@pytest.mark.parametrize(
    ("fails", "note"),
    [
        (403, "NodeDevices: could not be read; no device is measured"),
        (404, "NodeDevices: there are none (does the node agent run here?); no device is measured"),
        (0, None),
    ],
)
def test_who_uses_what_of_a_live_cluster(tmp_path: Path, fails: int, note: str | None) -> None:
    async def scenario(api: FakeApi, config: Path) -> None:
        path = "/apis/fairway.dev/v1alpha1/nodedevices"
        if fails:
            api.fail(fails, times=9, when=lambda seen: seen.path.endswith("nodedevices"))
        api.load(path, ({"metadata": {"name": name}, "observedAt": NOW.isoformat()} for name in ("n1", "n2")))
        source = LiveSource("live", config, "")
        found = await read_usage([source], builtin_catalogue(), NOW.timestamp(), quiet())
        (cluster,) = found.found
        assert sum(use.allocated_milli for use in cluster.uses) == 2000
        assert cluster.notes == (() if note is None else (note,))
        read = {seen.path.rpartition("/")[2] for seen in api.seen}
        assert read == {"nodes", "pods", "namespaces", "nodedevices"}

    live_cluster(scenario, tmp_path)


@pytest.mark.parametrize("readable", [True, False])
def test_limit_ranges_that_cannot_be_read_are_unknown_and_told(tmp_path: Path, readable: bool) -> None:
    async def scenario(api: FakeApi, _: Path) -> None:
        if not readable:
            api.fail(403, times=9, when=lambda seen: seen.path.endswith("limitranges"))
        async with KubeClient.from_url(api.url, qps=-1) as client:
            dump = await read_live(client, lambda news: None)
        mirror, problems = mirror_of(dump)
        assert mirror.admission.limit_ranges.synced is readable
        assert any("LimitRange" in problem for problem in problems) is not readable

    live_cluster(scenario, tmp_path)


def test_nodes_that_cannot_be_read_fail_the_cluster(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, _: Path) -> None:
        api.fail(403, times=9, when=lambda seen: seen.path.endswith("nodes"))
        async with KubeClient.from_url(api.url, qps=-1) as client:
            with pytest.raises(Refused, match="expected permission"):
                await read_live(client, lambda news: None)

    live_cluster(scenario, tmp_path)


def test_what_cannot_be_read_is_told_beside_what_can(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"kind": "List", "items": [')
    config = tmp_path / "config"
    config.write_text("current-context: nowhere\ncontexts: []\n")
    made = report(
        LiveSource("lost", config, ""),
        DumpSource("broken", broken),
        two_nodes(tmp_path),
        EstimatorSource("", "127.0.0.1:1"),
    )
    assert [cluster.name for cluster in made.clusters] == ["one"]
    assert [failure.cluster for failure in made.failures] == ["broken", "estimator 127.0.0.1:1", "lost"]
    said = " ".join(failure.problem for failure in made.failures)
    for expected in (
        "broken.json",
        "expected an entry named 'nowhere'",
        "unavailable",
        "is it running there",
    ):
        assert expected in said


def test_a_cluster_that_two_sources_tell_of_counts_once(tmp_path: Path) -> None:
    async def run() -> Report:
        async with serving(FakeEstimator((alpha(), bravo()))) as estimator:
            sources: list[Source] = [EstimatorSource("", estimator.address), two_nodes(tmp_path, "alpha")]
            return await read_report(sources, ESTIMATES, Tls(), NOW, quiet(), with_nodes=False)

    made = asyncio.run(run())
    assert [cluster.name for cluster in made.clusters] == ["alpha", "bravo"]
    assert made.clusters[0].summary == alpha()
    assert "tells of a cluster of the same name" in made.failures[0].problem


def test_an_estimator_tells_of_all_its_clusters_or_of_one() -> None:
    async def run() -> None:
        async with serving(FakeEstimator((bravo(), alpha(), charlie()))) as estimator:
            everything = await remote_summaries(EstimatorSource("", estimator.address), Tls())
            assert everything == (bravo(), alpha(), charlie())
            assert await remote_summaries(EstimatorSource("alpha", estimator.address), Tls()) == (alpha(),)
            with pytest.raises(RemoteError, match="knows no cluster 'delta'"):
                await remote_summaries(EstimatorSource("delta", estimator.address), Tls())

    asyncio.run(run())


@pytest.mark.parametrize(
    ("methods", "answer", "held", "notes"),
    [
        (("Summary", "Usage"), UsageAnswer(WEST), 3000, ()),
        (("Summary", "Usage"), UsageAnswer(WEST, 9.0, "nodes: lost"), 3000, ("nodes: lost",)),
        (("Summary", "Usage"), UsageAnswer(ClusterUsage("alpha", ()), 0.0, "late"), 0, ("late",)),
        (("Summary",), UsageAnswer(WEST), None, ()),
    ],
)
def test_a_report_says_who_uses_what_of_an_estimators_clusters(
    methods: tuple[str, ...], answer: UsageAnswer, held: int | None, notes: tuple[str, ...]
) -> None:
    async def run() -> Report:
        async with serving(FakeEstimator((alpha(),), usages=(answer,)), methods=methods) as estimator:
            source, known = EstimatorSource("", estimator.address), builtin_catalogue()
            return await read_report(
                [source], ESTIMATES, Tls(), NOW, quiet(), with_nodes=False, catalogue=known
            )

    made = asyncio.run(run())
    (cluster,) = made.clusters
    assert made.failures == ()
    assert cluster.summary == alpha()
    assert (cluster.usage and cluster.usage.total.allocated_milli) == held
    assert (cluster.usage.notes if cluster.usage else ()) == notes


def test_a_cluster_that_an_estimator_knows_nothing_of_is_a_failure_and_its_verdict_unknown() -> None:
    async def run() -> None:
        lost = Summary("lost", 0, 0, doubt="not read yet")
        async with serving(FakeEstimator((alpha(), charlie(), lost))) as estimator:
            source = EstimatorSource("", estimator.address)
            made = await read_report([source], ESTIMATES, Tls(), NOW, quiet(), with_nodes=False)
            assert [cluster.name for cluster in made.clusters] == ["alpha", "charlie"]
            assert [(failure.cluster, failure.problem) for failure in made.failures] == [
                ("lost", "not read yet")
            ]
            assert exit_of(made) is Exit.PARTIAL
            found = await verdicts(Asked(Shape(gpus=8, product="H100"), 1), source)
            assert found.words == {"alpha": Word.NEVER, "charlie": Word.NEVER, "lost": Word.UNKNOWN}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("clusters", "code"),
    [((alpha(),), Exit.OK), ((alpha(), charlie()), Exit.PARTIAL), ((), Exit.FAILED)],
)
def test_doubt_shows_in_the_exit_code(clusters: tuple[Summary, ...], code: Exit) -> None:
    assert exit_of(example(*clusters)) is code


def test_an_estimator_without_our_service_is_told() -> None:
    async def run() -> None:
        async with serving(FakeEstimator(), methods=()) as estimator:
            with pytest.raises(RemoteError, match=r"unimplemented.*it is no Fairway estimator"):
                await remote_summaries(EstimatorSource("", estimator.address), Tls())

    asyncio.run(run())


def test_tls_is_used_where_its_files_are_given(tmp_path: Path) -> None:
    authority = Authority("ca")
    pair = authority.issue("localhost")
    ca, (certificate, key) = tmp_path / "ca.crt", authority.issue("client").write(tmp_path, "client")
    ca.write_bytes(authority.pem)

    async def run() -> None:
        credentials = grpc.ssl_server_credentials(
            [(pair.key, pair.certificate)], authority.pem, require_client_auth=True
        )
        async with serving(FakeEstimator((alpha(),)), credentials) as estimator:
            source = EstimatorSource("", estimator.address)
            assert await remote_summaries(source, Tls(ca, certificate, key)) == (alpha(),)
            with pytest.raises(RemoteError, match="unavailable"):
                await remote_summaries(source, Tls())
            with pytest.raises(RemoteError, match=r"none\.pem.*expected a PEM file"):
                await remote_summaries(source, Tls(tmp_path / "none.pem"))

    asyncio.run(run())


def test_a_shape_is_reckoned_here_for_a_dump(tmp_path: Path) -> None:
    asked = Asked(Shape(gpus=8, nodes=1), 1)
    found = asyncio.run(verdicts(asked, two_nodes(tmp_path)))
    (cluster,) = found.clusters
    assert word(cluster.placement, 1) is Word.FITS
    (one,) = cluster.placement.placement
    assert (one.node, one.pods) == ("b", 1)
    none = asyncio.run(verdicts(Asked(Shape(gpus=8, nodes=2), 1), two_nodes(tmp_path)))
    assert word(none.clusters[0].placement, 1) is Word.NOT_NOW
    (explained,) = none.clusters[0].pod_sets
    assert (explained.fits_alone, explained.near_misses[0].node) == (1, "a")
    assert "3 nvidia.com/gpu" in explained.near_misses[0].missing


def test_a_shape_is_asked_of_an_estimator_in_the_words_of_each_cluster() -> None:
    fits = ClusterExplanation(ClusterPlacement("bravo", 2, 2, True))

    async def run() -> None:
        async with serving(FakeEstimator((alpha(), bravo()), (fits,))) as estimator:
            source = EstimatorSource("", estimator.address)
            found = await verdicts(Asked(Shape(gpus=8, product="H100", within="rack"), 2), source)
            assert [each.placement.cluster for each in found.clusters] == ["alpha", "bravo"]
            assert found.clusters[0].placement.reasons[0].kind == "no_product"
            assert found.clusters[1] == fits
            (request,) = estimator.asked
            assert list(request.clusters) == ["bravo"]
            assert (request.gang.topology.level, request.gang.copies) == ("rack", 2)
            assert b'"nvidia.com/gpu":"8"' in request.gang.pod_sets[0].template_json

    asyncio.run(run())


def test_a_workload_file_is_sent_to_an_estimator_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    asked = Asked.of(read_workload_file(file))
    doubt = ClusterExplanation(
        ClusterPlacement("alpha", 0, 0, False, reasons=(Reason("doubt", "in doubt (stale): out of contact"),))
    )

    async def run() -> Verdicts:
        async with serving(FakeEstimator(explanations=(doubt,))) as estimator:
            found = await verdicts(asked, EstimatorSource("", estimator.address))
            assert b'"kind":"Job"' in estimator.asked[0].gang.workload_json
            return found

    found = asyncio.run(run())
    assert word(found.clusters[0].placement, 1) is Word.UNKNOWN
    assert not found.all_known


def test_a_product_that_a_cluster_lacks_never_fits_there(tmp_path: Path) -> None:
    asked = Asked(Shape(gpus=1, product="h100"), 1)
    found = asyncio.run(verdicts(asked, two_nodes(tmp_path)))
    assert "no product like 'h100' here" in found.clusters[0].placement.reasons[0].text
    assert word(found.clusters[0].placement, 1) is Word.NEVER


@pytest.mark.parametrize("command", ["explain", "what-if"])
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--product", "H2000"], "no product like 'H2000' here; there is NVIDIA-H100-80GB-HBM3"),
        (["--within", "floor"], "topology level 'floor' is unknown here: expected a label key"),
    ],
)
def test_what_no_cluster_has_heard_of_is_an_error_that_names_what_there_is(
    command: str, flags: list[str], said: str
) -> None:
    edits = ["--drop-node", "h100-0"] if command == "what-if" else []
    found = CliRunner().invoke(cli, [command, "--demo", *edits, "--gpus", "1", *flags])
    assert found.exit_code == 1
    assert said in found.stderr
    assert (
        CliRunner().invoke(cli, [command, "--demo", *edits, "--gpus", "1", "--product", "H100"]).exit_code
        == 0
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_to_terminals_alone(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admin.progress._SHOWN_AFTER_S", 0.0)
    stream = io.StringIO()

    async def run() -> None:
        async with steps(2, Console(file=stream, force_terminal=terminal)) as progress:
            await asyncio.sleep(0)
            progress.seen("alpha: 500\x1b pods")
            progress.done()
            await asyncio.sleep(0)

    asyncio.run(run())
    assert ("reading" in stream.getvalue()) is terminal
