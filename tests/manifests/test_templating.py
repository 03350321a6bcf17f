"""The generator of the chart's templates: nothing of a source gets lost, and what is out of date is told."""

import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from manifests.templating.__main__ import FOLDER, main, outdated, write
from manifests.templating.sources import Source, SourceError, additions_of, objects_of, the_object
from manifests.templating.tree import Each, Node, When, Written, written
from manifests.templating.values import each_member, on_host
from tests.manifests import templater
from tests.manifests.objects import MANIFESTS, Json

TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        "{{ .Values }}",
        "a\nb\n",
        "a: b",
        "yes",
        "1",
        "- x",
        "#",
        "--v=0",
        "{{- end }}\n",
        "a\n\n",
        " a\nb",
        "~",
        "0x1",
    ]
)
LEAVES = TEXTS | st.integers(-(2**40), 2**40) | st.booleans() | st.none()
KEYS = TEXTS.filter(lambda text: "\n" not in text)
TREES = st.recursive(
    LEAVES,
    lambda below: (
        st.dictionaries(KEYS, below, max_size=3)
        | st.lists(LEAVES | st.dictionaries(KEYS, below, max_size=2), max_size=3)
    ),
    max_leaves=8,
)


def rendered(template: str, root: Json | None = None) -> Json:
    return yaml.safe_load(templater.text_of(template, {"$": root or {}}))


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=3))
def test_what_is_not_marked_is_copied(body: Json) -> None:
    assert rendered(written(body) + "# end\n") == body


MARKED: dict[str, Node] = {
    "always": "x",
    "sometimes": When("$.on", {"a": 1}),
    "items": ["first", When("$.on", "second"), Each("$each := $.names", Written('"n-{{ $each }}"'))],
}


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (
            {"on": True, "names": ["a", "b"]},
            {"sometimes": {"a": 1}, "items": ["first", "second", "n-a", "n-b"]},
        ),
        ({"on": False, "names": []}, {"items": ["first"]}),
    ],
)
def test_what_is_marked_follows_the_values(root: Json, expected: Json) -> None:
    assert rendered(written(MARKED), root) == {"always": "x"} | expected


@pytest.mark.parametrize("body", [{"a": [[1]]}, {"a": [{"b": When("$.on", 1)}]}])
def test_what_cannot_be_written_is_refused(body: Node) -> None:
    with pytest.raises(ValueError, match=r"list in a list|always there"):
        written(body)


def test_texts_name_the_member_and_namespaces_of_the_release() -> None:
    body: Node = {
        "a": "member1-kubeconfig",
        "b": "x.karmada-system.svc",
        "c": "--certificate-secret=fairway-system/x",
        "d": ["fairway-system", 1, When("$.on", "member1")],
    }
    assert on_host(each_member(body)) == {
        "a": Written('"{{ $member }}-kubeconfig"'),
        "b": Written('"x.{{ $.Values.karmada.namespace }}.svc"'),
        "c": "--certificate-secret=fairway-system/x",
        "d": [Written('"{{ $.Release.Namespace }}"'), 1, When("$.on", Written('"{{ $member }}"'))],
    }


SOURCE = Source(
    "x.yaml", {"args": ["--a=1", "--b=2"], "volumes": [When("$.on", {"name": "v", "secret": {"n": 1}})]}
)


def test_places_are_found_by_flag_and_by_name_within_conditions() -> None:
    assert SOURCE.at("/args/[--b]") == "--b=2"
    assert SOURCE.at("/volumes/[v]/secret/n") == 1
    changed = SOURCE.put("/volumes/[v]/secret/n", 2).add("/args/-", "--c=3").add("/new", True)
    assert changed.body == {
        "args": ["--a=1", "--b=2", "--c=3"],
        "volumes": [When("$.on", {"name": "v", "secret": {"n": 2}})],
        "new": True,
    }


@pytest.mark.parametrize("place", ["/args/[--c]", "/args/2", "/nothing", "/args/[--a]/b", "/volumes/[w]"])
def test_a_place_where_nothing_stands_is_an_error_that_names_it(place: str) -> None:
    with pytest.raises(SourceError, match=r"x.yaml: /.*: no .* there; was the source changed\?"):
        SOURCE.put(place, 1)


@pytest.mark.parametrize("place", ["/args", "/args/0/-"])
def test_nothing_is_added_where_it_cannot_be(place: str) -> None:
    with pytest.raises(SourceError, match="expected a list, or a mapping without"):
        SOURCE.add(place, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {op: remove, path: /a}", "expected an addition"),
        ("- nonsense", "expected an addition"),
        ("{", "expected YAML"),
        ("a: 1\n---\nb: 2", "2 objects; expected one"),
        ("", "0 objects; expected one"),
    ],
)
def test_a_patch_that_does_more_than_add_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "patch.yaml").write_text(text)
    with pytest.raises(SourceError, match=rf"(?s)patch.yaml: .*{message}"):
        additions_of(tmp_path, "patch.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone\.yaml"):
        objects_of(tmp_path, "gone.yaml")
    with pytest.raises(SourceError, match=r"gone\.yaml"):
        the_object(tmp_path, "gone.yaml")


def test_templates_that_are_changed_missing_or_too_many_are_told_and_mended(tmp_path: Path) -> None:
    copy = tmp_path / "manifests"
    shutil.copytree(MANIFESTS, copy)
    folder = copy / FOLDER
    (folder / "webhook-service.yaml").write_text("edited")
    (folder / "webhook-deployment.yaml").unlink()
    (folder / "left-over.yaml").write_text("")
    wrong = ["left-over.yaml", "webhook-deployment.yaml", "webhook-service.yaml"]
    assert [name for name in outdated(copy) if not name.startswith("karmada-")] == wrong
    write(copy)
    assert outdated(copy) == []
    assert (folder / "checks.yaml").is_file()


def test_an_argument_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--chek"]) == 2
    assert "--chek: expected --check or nothing" in capsys.readouterr().err
