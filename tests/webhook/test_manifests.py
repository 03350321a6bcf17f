"""The files of manifests/webhook are what the code makes, and they are what they should be."""

from pathlib import Path

import msgspec
import pytest
import yaml

from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope, parse_workload_kind
from webhook.bindings import CLUSTER_SCOPED, NAMESPACED
from webhook.main import main
from webhook.manifests import configuration_yaml, policies_yaml
from webhook.policies import policies

FOLDER = Path(__file__).parents[2] / "manifests"
URL = "https://fairway-webhook.fairway-system.svc:443"
SCOPE = Scope(builtin_catalogue())


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("policies", "webhook/mutating-admission-policies.yaml"),
        ("configuration", "webhook/mutating-webhook-configuration.yaml"),
        ("cronjobs", "webhook/accelerator-cronjobs.yaml"),
    ],
)
def test_the_files_are_what_the_program_prints(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 0
    assert capsys.readouterr().out == (FOLDER / name).read_text("utf-8"), (
        f"run: fairway-webhook {command} > manifests/{name}"
    )


def test_the_yaml_says_what_the_objects_say() -> None:
    assert list(yaml.safe_load_all(policies_yaml(SCOPE))) == msgspec.json.decode(
        msgspec.json.encode(policies(SCOPE))
    )
    (configuration,) = yaml.safe_load_all(configuration_yaml(SCOPE, URL, b"PEM", "Ignore"))
    assert [entry["clientConfig"]["caBundle"] for entry in configuration["webhooks"]] == ["UEVN"] * 4
    assert {entry["failurePolicy"] for entry in configuration["webhooks"]} == {"Ignore"}


def test_policies_and_webhook_ask_the_same_of_the_same_requests() -> None:
    (configuration,) = yaml.safe_load_all(configuration_yaml(SCOPE, URL, None, "Fail"))
    asked = [
        obj["spec"] for obj in yaml.safe_load_all(policies_yaml(SCOPE)) if "matchConstraints" in obj["spec"]
    ]
    assert len(asked) == len(configuration["webhooks"]) == 4
    for policy, entry in zip(asked, configuration["webhooks"], strict=True):
        constraints = policy["matchConstraints"]
        assert policy["matchConditions"] == entry["matchConditions"]
        assert constraints["resourceRules"] == entry["rules"]
        assert constraints.get("namespaceSelector", {}) == entry["namespaceSelector"]
        assert policy["reinvocationPolicy"] == entry["reinvocationPolicy"]


@pytest.mark.parametrize("only_enabled", [False, True])
def test_what_is_in_no_namespace_is_asked_about_where_it_is_meant(only_enabled: bool) -> None:
    """The API server applies a namespaceSelector to whatever has no namespace as if it matched."""
    scope = Scope(builtin_catalogue(), only_enabled=only_enabled)
    (configuration,) = yaml.safe_load_all(configuration_yaml(scope, URL, None, "Fail"))
    for entry in configuration["webhooks"]:
        (rule,) = entry["rules"]
        is_meant = not only_enabled and not entry["name"].startswith("managed-")
        assert rule["resources"] == ([NAMESPACED, CLUSTER_SCOPED] if is_meant else [NAMESPACED])
        assert rule["scope"] == ("*" if is_meant else "Namespaced")


def test_kinds_and_catalogue_of_the_command_line_are_in_the_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("- {pattern: example.com/output, class: whole}\n")
    assert main(["policies", "--hold-kind", "Job.batch", f"--catalogue={own}"]) == 0
    printed = capsys.readouterr().out
    assert "'example.com/output'" in printed
    assert "startsWith('batch/')" in printed
    assert printed != policies_yaml(Scope(builtin_catalogue(), frozenset([parse_workload_kind("Job.batch")])))


def test_a_bad_catalogue_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("- {pattern: 7}\n")
    assert main(["policies", f"--catalogue={own}"]) == 1
    assert "own.yaml:1" in capsys.readouterr().err
