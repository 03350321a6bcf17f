"""Reports and verdicts in a terminal."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin.comparison import compare
from admin.tables import Column, Kind, kept
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
    return rendered(report_tables(made), to_terminal=False)  # type: ignore[arg-type]  # whatever a report is made of


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
        "3",
        "396",
        "16",
        "97",
        "9",
        "88",
        "9",
        "22",
        "47",
        "97",
        "0",
    ] in lines
    # As in the first table, the devices add up: unhealthy, allocated, held and free are the total.
    columns = ["PRODUCT", "CLUSTER", "TOTAL", "UNHEALTHY", "ALLOCATED", "CORDONED", "FREE", "STRANDED"]
    assert [line[:8] for line in lines if line[:2] == columns[:2]] == [columns]
    assert any(
        line[:8] == ["NVIDIA-A100-SXM4-80GB", "alpha", "128", "2", "81", "8", "37", "6"] for line in lines
    )
    assert "9 x 8, 6 x 8 in one block" in text
    assert "8:9 7:1 5:1 4:2 2:2 1:1 0:48" in text
    assert "10 no CPU left (2 nodes)" in text
    assert ["1g.10gb", "NVIDIA-A100-SXM4-80GB", "alpha", "14", "5", "21"] in lines
    assert ["hami", "NVIDIA-L4", "alpha", "16", "9.4", "1", "23,034", "7"] in lines
    assert "delta could not be read" in text
    assert "Changed since 2026-03-13 09:00 UTC" in text
    assert text.isascii()


@pytest.mark.parametrize(
    ("width", "heading", "line"),
    [
        (40, "PRODUCT FREE x8 x1", "NVIDIA-H100-80GB-HBM3 97 9 97"),
        (60, "PRODUCT TOTAL FREE STRANDED x8 x1", "NVIDIA-H100-80GB-HBM3 512 97 9 9 97"),
        (
            80,
            "PRODUCT TOTAL ALLOCATED CORDONED FREE STRANDED x8 x4 x1",
            "NVIDIA-H100-80GB-HBM3 512 396 16 97 9 9 22 97",
        ),
        (
            200,
            "PRODUCT NODES TOTAL UNHEALTHY ALLOCATED CORDONED FREE STRANDED USABLE x8 x4 x2 x1",
            "NVIDIA-H100-80GB-HBM3 64 512 3 396 16 97 9 88 9 22 47 97",
        ),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_and_whole_names_and_numbers(
    monkeypatch: pytest.MonkeyPatch, width: int, heading: str, line: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = rendered(report_tables(everything()), to_terminal=True).splitlines()
    assert max(map(len, lines)) <= width
    told = [" ".join(each.split()) for each in lines]
    assert told[told.index(heading) + 1] == line


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from((0, 0, 10, 20)), st.sampled_from(Kind))),
    st.integers(0, 120),
)
def test_columns_are_given_up_only_where_there_is_no_room(
    made: list[tuple[int, int, Kind]], room: int
) -> None:
    columns = [Column("", kind, drop) for _, drop, kind in made]
    widths = [width for width, _, _ in made]
    shown = kept(columns, widths, room)
    assert list(shown) == sorted(shown)
    left_out = set(range(len(columns))) - set(shown)
    assert all(columns[n].drop or columns[n].kind is Kind.FIGURE for n in left_out)
    given_up = [columns[n].drop for n in left_out if columns[n].kind is not Kind.FIGURE]
    assert all(columns[n].drop <= min(given_up, default=room + 99) for n in shown)
    if sum(width + 2 for width in widths) - 2 <= room:
        assert not given_up


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


@pytest.mark.parametrize("width", [40, 60, 80])
def test_verdicts_keep_names_and_words_whole_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    told = verdicts(ClusterExplanation(ClusterPlacement("europe-west", 0, 1_024, True, reasons=(NO,))))
    lines = rendered(verdict_tables(told), to_terminal=True).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("europe-west  does not fit now    0") for line in lines)


@pytest.mark.parametrize("count", [1, 40])
def test_reasons_of_many_clusters_are_cut(count: int) -> None:
    clusters = (ClusterExplanation(ClusterPlacement(f"c{n:02}", 0, 0, True)) for n in range(count))
    text = rendered(verdict_tables(verdicts(*clusters)), to_terminal=False)
    assert ("and 28 more clusters: their reasons are in the JSON" in text) is (count == 40)
