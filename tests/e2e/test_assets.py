"""What is missing is said by its name; needs no real program."""

from pathlib import Path

import pytest

from tests.e2e.assets import KARMADA, KUBERNETES, Assets, MissingAssets, find
from tests.e2e.flags import Own, localised


def filled(folder: Path, *without: str) -> Path:
    for name in {*KUBERNETES, *KARMADA} - {*without}:
        (folder / name).touch()
    return folder


def test_one_folder_may_be_both(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    found = find({"KUBEBUILDER_ASSETS": str(folder), "KARMADA_ASSETS": str(folder)})
    assert found == Assets(folder, folder)
    assert found.workload_schemas == ()


@pytest.mark.parametrize("variable", ["KUBEBUILDER_ASSETS", "KARMADA_ASSETS"])
def test_a_variable_that_is_not_set(tmp_path: Path, variable: str) -> None:
    folder = str(filled(tmp_path))
    environment = {"KUBEBUILDER_ASSETS": folder, "KARMADA_ASSETS": folder}
    del environment[variable]
    with pytest.raises(MissingAssets, match=f"^{variable} is not set"):
        find(environment)


@pytest.mark.parametrize("name", [*KUBERNETES, *KARMADA])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    folder = str(filled(tmp_path, name))
    with pytest.raises(MissingAssets, match=f"lacks {name};"):
        find({"KUBEBUILDER_ASSETS": folder, "KARMADA_ASSETS": folder})


@pytest.mark.parametrize(
    ("shipped", "own", "expected"),
    [
        (["--v=0", "--port=1"], {"port": "2"}, ["--v=0", "--port=2"]),
        (["--estimator=x=y.svc:1"], {"estimator": ["a=1", "b=2"]}, ["--estimator=a=1", "--estimator=b=2"]),
        (["--enable", "--v=0"], {"enable": None}, ["--v=0"]),
        (["--v=0"], {"extra": "1"}, ["--v=0", "--extra=1"]),
    ],
)
def test_flags(shipped: list[str], own: Own, expected: list[str]) -> None:
    assert localised(shipped, own) == expected


@pytest.mark.parametrize(
    "flag", ["--kubeconfig=/etc/fairway/karmada/kubeconfig", "--url=https://x.y.svc:443"]
)
def test_nothing_of_a_pod_stays(flag: str) -> None:
    with pytest.raises(AssertionError, match="of a pod"):
        localised([flag], {})
