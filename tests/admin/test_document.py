"""The report as JSON and YAML."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from admin.comparison import compare
from admin.document import DocumentError, NodeLine, read_report, to_json
from admin.yaml_text import yaml_text
from tests.admin.examples import alpha, everything, report


def test_json_comes_back_as_the_same_report(tmp_path: Path) -> None:
    made = everything()
    line = NodeLine("n", "nvidia.com/gpu", "H100", 8, 3, 5, "")
    made = replace(made, clusters=(replace(made.clusters[0], nodes=(line,)), *made.clusters[1:]))
    made = replace(made, changes=compare(report(alpha()), made))
    file = tmp_path / "report.json"
    file.write_text(to_json(made))
    assert read_report(file) == made


def test_what_pods_that_fit_bring_is_named() -> None:
    named = json.loads(to_json(everything()))["pod_share"]
    assert named == "half of its devices' fair share of the node's CPU and memory"


def test_yaml_says_the_same_as_json() -> None:
    assert yaml.safe_load(yaml_text(everything())) == json.loads(to_json(everything()))


def test_fields_of_later_releases_are_passed_over(tmp_path: Path) -> None:
    content = json.loads(to_json(report(alpha())))
    content["new"] = content["clusters"][0]["summary"]["new"] = {"x": 1}
    file = tmp_path / "report.json"
    file.write_text(json.dumps(content))
    assert read_report(file) == report(alpha())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"", "Input data was truncated"),
        (b"{}", "format: expected 'fairway-report/1', found ''"),
        (b'{"format": "fairway-report/9"}', "found 'fairway-report/9'"),
        (b'{"kind": "List", "items": []}', "format: expected"),
        (b"[]", "Expected `object`"),
        (b"\xff\xfe", "malformed"),
        (b'{"format": "fairway-report/1"}', "missing required field `made_at`"),
    ],
)
def test_what_is_no_report_is_told_with_file_and_field(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "report.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DocumentError) as raised:
        read_report(file)
    assert said in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_field_of_the_wrong_type_is_located(tmp_path: Path) -> None:
    content = json.loads(to_json(report(alpha())))
    content["clusters"][0]["summary"]["nodes"] = "many"
    file = tmp_path / "report.json"
    file.write_text(json.dumps(content))
    with pytest.raises(DocumentError, match=r"clusters\[0\]\.summary\.nodes"):
        read_report(file)
