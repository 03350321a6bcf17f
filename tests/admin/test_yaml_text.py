"""What the command writes as YAML is read back as it was, by whoever reads as kubectl does."""

import msgspec
import pytest
import yaml

from admin.yaml_text import yaml_text
from fairway.kube.dump_yaml import yaml_documents

TEXTS = (
    *("y", "Y", "n", "N", "yes", "No", "on", "OFF", "true", "null", "~", ""),
    *(
        "8",
        "+8",
        "010",
        "0o17",
        "-0o7",
        "0x1F",
        "0b11",
        "1_000",
        "1e3",
        ".5",
        "1:30",
        "2026-01-31",
        "<<",
        "=",
    ),
    *("a: b", "- a", "# a", " a", "a\nb", "ü", "'", '"'),
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_stays_text(text: str) -> None:
    value = {text or "key": [text, {"of": text}]}
    (document,) = yaml_documents(yaml_text(value).encode())
    assert [msgspec.json.decode(one) for one in document.items] == [value]
    assert yaml.safe_load(yaml_text(value)) == value
