"""What a report says of use: its headline, who uses what, health, what takes a stranded node's CPU."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from admin.document import Report, read_report, to_json
from admin.headline import headline
from admin.html.page import page
from admin.listings.stranded import stranded_groups
from admin.listings.usage import nodes_by_use, unknown, users
from admin.main import cli
from admin.takers import WITHOUT_DEVICES, Taker, takers
from admin.terminal.console import rendered
from admin.terminal.report import report_tables
from estimator.capacity.summary import LargestGang, Product, StrandedNode, Summary
from fairway.kube.dumps import Dump
from fairway.usage.groups import By, Group
from fairway.usage.summary import UsageSummary, summarized
from fairway.usage.use import SickDevice
from tests.admin.dumps import gpu_node, gpu_pod, write_dump
from tests.admin.examples import A100, H100, alpha, report, whole
from tests.builders import node, pod
from tests.usage.agents import DeviceBuilder, agent, usage

HOSTILE = '"><script>alert(1)</script>\x1b[31m'


def using(made: Report, usage: UsageSummary | None, cluster: int = 0) -> Report:
    clusters = list(made.clusters)
    clusters[cluster] = replace(clusters[cluster], usage=usage)
    return replace(made, clusters=tuple(clusters))


def team(name: str, held: int, used: int, idle: int = 0) -> Group:
    return Group(
        (name,),
        pods=1,
        allocated_milli=held * 1000,
        measured_milli=held * 1000,
        used_milli=used * 1000,
        wasted_milli=(held - used) * 1000,
        idle_milli=idle * 1000,
    )


def summary_of(*teams: Group) -> UsageSummary:
    total = Group(())
    for one in teams:
        total = total.plus(one)
    return UsageSummary(total, teams, (replace(total, name=("", "")),))


def cluster(name: str, *products: Product) -> Summary:
    return Summary(name, 4, 0, products)


GANG = LargestGang(8, "", "", 3)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (report(), ""),
        (
            report(cluster("g2", whole(H100, [8, 4, 0]))),
            "12 of 24 GPUs free, 0 stranded; largest gang 1 x 8 in g2",
        ),
        (
            report(cluster("g1", whole(H100, [8])), cluster("g2", whole(A100, [8, 8, 3], stranded=3))),
            "27 of 32 GPUs free, 3 stranded; largest gang 2 x 8 in g2",
        ),
        (report(cluster("full", whole(H100, [0]))), "0 of 8 GPUs free, 0 stranded"),
        (
            using(report(cluster("g", whole(H100, [0]))), summary_of(team("a", 6, 1, idle=5))),
            "0 of 8 GPUs free, 0 stranded, 5 allocated and idle for an hour",
        ),
        (
            using(
                report(cluster("g", whole(H100, [0]))),
                summary_of(team("a", 2, 0, idle=2), Group(("b",), allocated_milli=6000)),
            ),
            "0 of 8 GPUs free, 0 stranded, 2 allocated and idle for an hour (6 not measured)",
        ),
        (
            using(report(cluster("g", whole(H100, [0]))), summary_of(Group(("b",), allocated_milli=6000))),
            "0 of 8 GPUs free, 0 stranded",
        ),
        (
            report(cluster("t", replace(whole("v5e", [4], per_node=4), resource="google.com/tpu"))),
            "4 of 4 devices free, 0 stranded; largest gang 1 x 4 in t",
        ),
    ],
)
def test_the_headline(made: Report, expected: str) -> None:
    assert headline(made) == expected


def test_the_ten_who_waste_most_and_the_rest_in_a_line() -> None:
    teams = [team(f"team-{n:02}", 20 + n, 10) for n in range(14)]
    made = using(report(alpha()), summary_of(*teams))
    rows = users(made, By.NAMESPACE).rows
    assert [row[0] for row in rows] == [f"team-{n:02}" for n in range(13, 3, -1)] + ["4 others", "all"]
    assert (rows[-2][2], rows[-1][2]) == ("86", "371")


def test_nodes_are_counted_by_how_much_of_what_is_held_there_is_used() -> None:
    devices = {
        name: DeviceBuilder(f"GPU-{name}").held_by(f"p-{name}").doing(p50, 100)
        for name, p50 in (("a", 0), ("b", 9), ("c", 75), ("d", 100))
    }
    found = usage(
        [node(name).gpus(8) for name in "abcde"],
        [pod(f"p-{name}").requests(gpu=1).on(name) for name in "abcde"],
        [agent(name, device) for name, device in devices.items()],
    )
    made = using(report(alpha()), summarized(found))
    assert nodes_by_use(made).rows == (("alpha", 5, 1, 1, 1, 0, 0, 0, 2),)
    head = next(
        line for line in rendered(report_tables(made), to_terminal=False).splitlines() if "75-100%" in line
    )
    assert head.split() == [
        "CLUSTER",
        "NODES",
        "UNMEASURED",
        "0%",
        "1-9%",
        "10-24%",
        "25-49%",
        "50-74%",
        "75-100%",
    ]


def test_one_namespace_of_two_clusters_is_one_line() -> None:
    made = using(report(alpha(), cluster("g", whole(H100, [0]))), summary_of(team("a", 3, 1)))
    made = using(made, summary_of(team("a", 5, 5)), 1)
    assert [(row[0], row[2]) for row in users(made, By.NAMESPACE).rows] == [("a", "8"), ("all", "8")]


def test_nothing_is_said_by_queue_where_no_pod_came_through_one_and_nothing_at_all_of_estimators() -> None:
    made = using(report(alpha()), summary_of(team("a", 3, 1)))
    assert not users(made, By.QUEUE).rows
    text = rendered(report_tables(made), to_terminal=False)
    assert "Who uses what: namespace" in text
    assert "Who uses what: queue" not in text
    without = report(alpha())
    assert "Who uses what" not in rendered(report_tables(without), to_terminal=False)
    assert 'id="users"' not in page(without)
    assert unknown(without) == ("alpha: its estimator does not tell who uses what, as older ones do not",)


def test_names_in_usage_are_harmless_on_the_page_and_in_the_terminal() -> None:
    sick = SickDevice(HOSTILE, HOSTILE, HOSTILE, 0, HOSTILE, HOSTILE, (HOSTILE,), (HOSTILE,))
    usage = replace(summary_of(team(HOSTILE, 3, 1)), sick=(sick,), notes=(HOSTILE,))
    made = using(report(alpha()), usage)
    assert "<script" not in page(made)
    assert "\x1b" not in rendered(report_tables(made), to_terminal=False)


def test_the_report_with_usage_reads_back_from_json(tmp_path: Path) -> None:
    sick = SickDevice("alpha", "n", "GPU-1", 3, H100, "Lost", ("Xid79: gone",), ("a/p",))
    made = using(report(alpha()), replace(summary_of(team("a", 3, 1)), sick=(sick,)))
    made = replace(made, headline=headline(made))
    file = tmp_path / "report.json"
    file.write_text(to_json(made))
    assert read_report(file) == made


def test_products_with_nothing_free_are_folded_unless_all_are() -> None:
    some = report(cluster("g", whole(H100, [8]), whole(A100, [0])))
    none = report(cluster("g", whole(A100, [0])))
    assert "1 product of 8 devices with nothing free" in page(some)
    assert "with nothing free" not in page(none)
    assert f"Nothing free: {A100}" in rendered(report_tables(some), to_terminal=False)
    assert "Nothing free" not in rendered(report_tables(none), to_terminal=False)


def test_what_takes_the_cpu_of_stranded_nodes() -> None:
    nodes = [node(name).gpus(8).cpu("100").build() for name in ("a", "b", "c")]
    pods = [
        pod("x").of("web").requests(cpu="60").on("a").owned_by("DaemonSet", "proxy"),
        pod("y").of("web").requests(cpu="40").on("b").owned_by("DaemonSet", "proxy"),
        pod("z").of("research").requests(cpu="30", gpu=2).on("b"),
        pod("zz").of("research").requests(cpu="20", gpu=2).on("b"),
        pod("elsewhere").requests(cpu="90").on("c"),
        pod("ended").requests(cpu="90").on("a").phase("Succeeded"),
        pod("tiny").requests(cpu="100m").on("a"),
        pod("broken").requests(cpu="much").on("a"),
    ]
    dump = Dump(tuple(nodes), tuple(one.build() for one in pods))
    stranded = tuple(StrandedNode(name, H100, 8, "cpu", "Free some.") for name in ("a", "b"))
    assert takers(dump, Summary("g", 3, 7, stranded=stranded)) == (
        Taker("cpu", "", "pods with devices", 2, 50_000, 25),
        Taker("cpu", "", "pods without devices", 3, 100_100, 50),
        Taker("cpu", "web", "DaemonSet/proxy", 2, 100_000, 50),
        Taker("cpu", "research", "", 2, 50_000, 25),
    )
    assert takers(dump, Summary("g", 3, 7)) == ()


_TAKEN = "Pods without devices hold 70 %; most of it web DaemonSet/proxy 61 % (12 pods)."


def test_nodes_that_are_stranded_for_one_cause_are_one_line() -> None:
    nodes = [StrandedNode(f"n{n}", H100, 2, "cpu", f"Free {n} CPUs.") for n in range(12)]
    nodes += [
        StrandedNode("t1", H100, 8, "taint", "Lift a."),
        StrandedNode("t2", H100, 8, "taint", "Lift b."),
    ]
    made = report(Summary("g", 14, 0, stranded=tuple(nodes)))
    web = (Taker("cpu", "", WITHOUT_DEVICES, 14, 1, 70), Taker("cpu", "web", "DaemonSet/proxy", 12, 1, 61))
    held = replace(made.clusters[0], takers=web)
    rows = stranded_groups([held]).rows
    assert [row[:3] for row in rows] == [
        ("no CPU left", 24, 12),
        ("behind a taint", 8, 1),
        ("behind a taint", 8, 1),
    ]
    assert [row[-1] for row in rows] == [_TAKEN, "Lift a.", "Lift b."]
    assert rows[0][5] == "n0 and 11 others"
    assert stranded_groups(made.clusters).rows[0][-1] == "Free 0 CPUs."


def test_the_command_says_all_of_it(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "east.json", [gpu_node("g1", 8), gpu_pod("p", "g1", 4, "team-a")])
    found = json.loads(CliRunner().invoke(cli, ["report", str(dump), "-o", "json"]).stdout)
    assert found["headline"] == "4 of 8 GPUs free, 0 stranded; largest gang 1 x 4 in east"
    (group,) = found["clusters"][0]["usage"]["namespaces"]
    assert (group["name"], group["allocated_milli"], group["measured_milli"]) == (["team-a"], 4000, 0)
    text = CliRunner().invoke(cli, ["report", "--demo"]).stdout
    assert "Who uses what: namespace" in text
    assert "Xid79" in text
    of_one = json.loads(
        CliRunner().invoke(cli, ["report", "--demo", "--product", "H100", "-o", "json"]).stdout
    )
    held = {one["summary"]["cluster"]: one["usage"]["total"]["allocated_milli"] for one in of_one["clusters"]}
    assert held == {"alpha": 0, "bravo": 16_000, "charlie": 0}
