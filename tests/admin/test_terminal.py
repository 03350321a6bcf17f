"""Reports and verdicts in a terminal."""

from dataclasses import replace

import pytest

from admin.comparison import compare
from admin.terminal.changes import changes_tables
from admin.terminal.console import rendered
from admin.terminal.report import report_tables
from admin.terminal.verdicts import verdict_tables
from admin.verdicts import FORMAT, Verdicts, word
from estimator.capacity.gangs.placements import (
    Blocked,
    ClusterExplanation,
    ClusterPlacement,
    Explanation,
    NearMiss,
)
from estimator.capacity.summary import Summary
from estimator.reasons import Reason
from tests.admin.examples import WHEN, alpha, bravo, everything, large, report

EVIL = "node\x1b[2J\x1b[31m\r\n\u202e"


def table(made: object) -> str:
    return rendered(report_tables(made), to_terminal=False)  # type: ignore[arg-type]


def test_the_report_has_one_line_for_each_product_and_cluster() -> None:
    made = everything()
    made = replace(made, changes=compare(report(alpha(), bravo(), made_at="2026-03-13T09:00:00Z"), made))
    text = table(made)
    lines = [line.split() for line in text.splitlines()]
    assert "Accelerator capacity: 3 clusters, 132 nodes, read 2026-03-14 09:26 UTC" in text
    assert [
        "NVIDIA-H100-80GB-HBM3",
        "64",
        "512",
        "509",
        "396",
        "97",
        "9",
        "22",
        "47",
        "97",
        "9",
        "0",
    ] in lines
    assert any(line[:4] == ["NVIDIA-A100-SXM4-80GB", "alpha", "128", "81"] for line in lines)
    assert "9 x 8, 6 x 8 in one block" in text
    assert "8:9 7:1 5:1 4:2 2:2 1:1 0:48" in text
    assert "10 no CPU left (2 nodes)" in text
    assert ["1g.10gb", "NVIDIA-A100-SXM4-80GB", "alpha", "14", "5", "21"] in lines
    assert ["hami", "NVIDIA-L4", "alpha", "16", "9.4", "1", "23,034", "7"] in lines
    assert "delta could not be read" in text
    assert "Changed since 2026-03-13 09:00 UTC" in text
    assert text.isascii()


def test_a_narrow_terminal_gets_fewer_columns_and_whole_numbers() -> None:
    text = rendered(report_tables(everything(), narrow=True), to_terminal=False)
    (line,) = (line.split() for line in text.splitlines() if "9 x 8" in line)
    assert line[:7] == ["NVIDIA-H100-80GB-HBM3", "bravo", "97", "9", "22", "47", "97"]
    assert "8:9 7:1" not in text


def test_a_cluster_without_accelerators_says_so() -> None:
    assert "No accelerators were found." in table(report(Summary("cpu", 3, 9)))


def test_many_clusters_are_cut_and_counted() -> None:
    text = table(large(clusters=60, nodes=20))
    assert text.count("and 20 more clusters") == 3
    assert len(text.splitlines()) < 300


def test_names_cannot_command_the_terminal() -> None:
    evil = replace(
        alpha(), cluster=EVIL, problems=(EVIL,), doubt=EVIL,
        stranded=tuple(replace(node, node=EVIL, remedy=EVIL, cause=EVIL) for node in alpha().stranded),
        products=tuple(replace(product, product=EVIL) for product in alpha().products),
    )  # fmt: skip
    made = report(evil)
    made = replace(made, changes=compare(report(), made))
    text = table(made)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"node\x1b[2J\x1b[31m\r\n\u202e" in text


def test_nothing_changed_is_said() -> None:
    text = rendered(changes_tables(compare(report(alpha()), report(alpha())), "Changes"), to_terminal=False)
    assert text == "Changes\nNothing has changed.\n"


def verdicts(*clusters: ClusterExplanation, wanted: int = 1) -> Verdicts:
    words = {cluster.placement.cluster: word(cluster.placement, wanted) for cluster in clusters}
    return Verdicts(FORMAT, WHEN, "0.1.0", "2 pods of 8 GPUs", wanted, words, clusters)


NO = Reason("insufficient", "insufficient nvidia.com/gpu on 7 nodes")


def test_a_verdict_says_what_fits_and_why_not_more() -> None:
    why = Explanation(
        "workers",
        3,
        (Blocked(Reason("taint", "taint x:NoSchedule on 2 nodes"), 2), Blocked(NO, 7)),
        (NearMiss("n-1", "2 nvidia.com/gpu", "6 of 8 nvidia.com/gpu are free."),),
    )
    text = rendered(
        verdict_tables(
            verdicts(
                ClusterExplanation(ClusterPlacement("a", 2, 2, True, 1, "example.com/rack", (NO,)), (why,)),
                ClusterExplanation(ClusterPlacement("b", 0, 5, False, reasons=(NO,)), (why,)),
                wanted=2,
            )
        ),
        to_terminal=False,
    )
    lines = [line.split() for line in text.splitlines()]
    assert ["a", "fits", "all", "2", "2", "2", "yes", "1", "one", "rack", "0", "s"] in lines
    assert ["b", "does", "not", "fit", "now", "0", "5", "no", "-", "0", "s"] in lines
    assert "at risk: a kube-scheduler that spreads pods one at a time would place 1 of 2 copies" in text
    assert ["2", "taint", "x:NoSchedule", "on", "2", "nodes"] in lines
    assert any(line[:3] == ["n-1", "2", "nvidia.com/gpu"] for line in lines)


@pytest.mark.parametrize("count", [1, 40])
def test_reasons_of_many_clusters_are_cut(count: int) -> None:
    clusters = (ClusterExplanation(ClusterPlacement(f"c{n:02}", 0, 0, True)) for n in range(count))
    text = rendered(verdict_tables(verdicts(*clusters)), to_terminal=False)
    assert ("and 28 more clusters: their reasons are in the JSON" in text) is (count == 40)
