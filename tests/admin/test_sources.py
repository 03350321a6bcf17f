"""What the command line names as clusters."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from admin.named_sources import named_sources
from admin.sources import (
    DumpSource,
    EstimatorSource,
    FileKind,
    LiveSource,
    Source,
    SourceError,
    check_names,
    file_kind,
    parse_source,
)
from fairway.kube.errors import BadConfig

FILES: Mapping[str, FileKind] = {
    "/kube/config": FileKind.KUBECONFIG,
    "/kube/a@b.yaml": FileKind.KUBECONFIG,
    "dumps/alpha.json.gz": FileKind.DUMP,
    "odd=name.json": FileKind.DUMP,
    "./odd=name.json": FileKind.DUMP,
    "folder": FileKind.FOLDER,
}
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: here
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: c}}, {name: there, context: {cluster: c}}]
users: []
"""


def kind_of(path: Path) -> FileKind:
    written = {str(Path(name)): kind for name, kind in FILES.items()}
    return written.get(str(path), FileKind.MISSING)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("a=/kube/config", LiveSource("a", Path("/kube/config"), "")),
        ("/kube/config", LiveSource("", Path("/kube/config"), "")),
        ("a=/kube/config@admin@prod", LiveSource("a", Path("/kube/config"), "admin@prod")),
        ("/kube/config@prod", LiveSource("prod", Path("/kube/config"), "prod")),
        ("a=/kube/a@b.yaml", LiveSource("a", Path("/kube/a@b.yaml"), "")),
        ("a=/kube/a@b.yaml@c", LiveSource("a", Path("/kube/a@b.yaml"), "c")),
        ("dumps/alpha.json.gz", DumpSource("alpha", Path("dumps/alpha.json.gz"))),
        ("x.1=dumps/alpha.json.gz", DumpSource("x.1", Path("dumps/alpha.json.gz"))),
        ("./odd=name.json", DumpSource("odd=name", Path("odd=name.json"))),
        (
            "x=dumps/alpha.json.gz,./odd=name.json",
            DumpSource("x", Path("dumps/alpha.json.gz"), (Path("odd=name.json"),)),
        ),
        ("grpc://localhost:10352", EstimatorSource("", "localhost:10352")),
        ("a=grpc://[::1]:10352/", EstimatorSource("a", "[::1]:10352")),
    ],
)
def test_a_source_is_what_its_text_and_its_file_say(text: str, source: Source) -> None:
    assert parse_source(text, kind_of) == source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=", "names nothing"),
        ("nope.json", "no file nope.json"),
        ("localhost:10352", "write grpc://localhost:10352"),
        ("-", "no file -; for standard input write /dev/stdin"),
        ("https://api:6443", "the only scheme is grpc://"),
        ("grpc://localhost", "expected grpc://HOST:PORT"),
        ("grpc://localhost:99999", "expected grpc://HOST:PORT"),
        ("a=grpc://h:1:2", "expected grpc://HOST:PORT"),
        ("folder", "is a folder: name its files"),
        (
            "dumps/alpha.json.gz,dumps/alpha.json.gz",
            "several files of one cluster: expected a name, as NAME=",
        ),
        ("a=dumps/alpha.json.gz,nope.json", "no file dumps/alpha.json.gz,nope.json"),
        ("a=dumps/alpha.json.gz,/kube/config", "no file dumps/alpha.json.gz,/kube/config"),
        ("dumps/alpha.json.gz@prod", "is no kubeconfig"),
    ],
)
def test_a_bad_source_is_told_with_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=r"expected|name its files|means nothing") as raised:
        parse_source(text, kind_of)
    assert said in str(raised.value)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (KUBECONFIG.encode(), FileKind.KUBECONFIG),
        (b'{"apiVersion": "v1", "current-context": "x"}', FileKind.KUBECONFIG),
        (b'{"kind": "List", "items": []}', FileKind.DUMP),
        (b"kind: List\nitems:\n- kind: Node\n  metadata: {name: clusters}\n", FileKind.DUMP),
        (rb'{"kind": "ConfigMap", "data": {"c": "{\"current-context\": 1}"}}', FileKind.DUMP),
        (b"\x1f\x8b\x08", FileKind.DUMP),
        (b"", FileKind.DUMP),
    ],
)
def test_a_file_is_told_by_its_beginning(tmp_path: Path, content: bytes, kind: FileKind) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert file_kind(file) is kind
    assert file_kind(tmp_path) is FileKind.FOLDER
    assert file_kind(tmp_path / "none") is FileKind.MISSING


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(SourceError, match="'a' is given twice, as dump x and as estimator h:1"):
        check_names([DumpSource("a", Path("x")), EstimatorSource("a", "h:1")])
    check_names([EstimatorSource("", "h:1"), EstimatorSource("", "h:2")])


def test_a_kubeconfig_without_a_name_has_that_of_its_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    assert [source.name for source in named_sources([str(file), f"{file}@there"])] == ["here", "there"]
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert named_sources([]) == (LiveSource("here", None, ""),)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(BadConfig, match="no such file"):
        named_sources([])
