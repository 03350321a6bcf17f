"""What docs/install-manifests.md says is there, is there: values, Secrets, folders, components."""

import re
from collections.abc import Iterator

import pytest
import yaml

from tests.manifests import templater
from tests.manifests.cases import all_variants
from tests.manifests.installed import documented, secrets_of
from tests.manifests.objects import CHART, MANIFESTS, OVERLAYS, ROOT, Json, of_kind

PAGE = (ROOT / "docs" / "install-manifests.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]


def leaves(values: Json, path: str = "") -> Iterator[str]:
    for key, value in values.items():
        below = f"{path}.{key}".removeprefix(".")
        if isinstance(value, dict) and value and key != "resources":
            yield from leaves(value, below)
        else:
            yield below


def told(row: str) -> Iterator[str]:
    """The values in a row's first column; one that begins with a dot is beside the first."""
    first, *others = re.findall(r"`([^`]+)`", row.split("|")[1])
    yield first
    for other in others:
        yield first.rpartition(".")[0] + other if other.startswith(".") else other


def test_every_value_of_the_chart_is_told() -> None:
    rows = {value for row in ROWS for value in told(row)}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for leaf in leaves(values):
        assert leaf in rows or "*." + leaf.partition(".")[2] in rows, f"{leaf}: not in the table of values"


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_overlay_is_told(name: str) -> None:
    assert any(row.startswith(f"| `{name}` |") for row in ROWS)


def test_every_component_is_told() -> None:
    for folder in (MANIFESTS / "components").iterdir():
        assert any(f"`{folder.name}`" in row.split("|")[1] for row in ROWS), folder.name


def test_every_folder_that_is_told_is_there() -> None:
    for path in re.findall(r"manifests/[\w/.-]+", PAGE):
        assert (ROOT / path.rstrip(".")).exists(), path


def test_no_secret_is_told_that_nobody_mounts() -> None:
    secrets = {"karmada-system/karmada-scheduler-estimator-cert", "karmada-system/<cluster>-kubeconfig"}
    for values in (
        {"webhook": {"tlsSecret": "fairway-webhook-tls"}},
        {"dispatcher": {"visibilityTlsSecret": "fairway-dispatcher-tls"}},
        {"estimator": {"mode": "per-member", "members": ["a"]}},
    ):
        for deployment in of_kind(templater.render(values), "Deployment"):
            secrets |= secrets_of(deployment)
    for cron_job in of_kind(templater.render({"notify": {"enabled": True, "members": ["a"]}}), "CronJob"):
        secrets |= secrets_of(cron_job["spec"]["jobTemplate"] | {"metadata": cron_job["metadata"]})
    secrets = {secret.replace("fairway-notify-a", "fairway-notify-<cluster>") for secret in secrets}
    assert documented().keys() == secrets - {"karmada-system/a-kubeconfig"}


def test_every_value_is_rendered_by_some_test_with_another_one() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for leaf in leaves(values):
        assert any(_changes(variant, values, leaf) for variant in all_variants().values()), leaf


def _changes(variant: Json, values: Json, leaf: str) -> bool:
    for key in leaf.split("."):
        if key not in variant:
            return False
        variant, values = variant[key], values[key]
    return bool(variant != values)
