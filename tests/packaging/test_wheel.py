"""The wheel that the source distribution makes gives every program: what the repository has is not missed."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 300
_PROGRAMS = {
    "karmada-scheduler-estimator": "Usage:\n  karmada-scheduler-estimator",
    "fairway-estimator": "Usage:\n  karmada-scheduler-estimator",
    "fairway-dispatcher": "Usage:\n  fairway-dispatcher",
    "fairway-webhook": "Usage:\n  fairway-webhook",
    "fairway-node-agent": "Usage:\n  fairway-node-agent",
    "fairway": "Usage: fairway",
}


class Installed:
    """The wheel of the source distribution, unpacked by pip; dependencies are those that run these tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (sources,) = _built("sdist", _ROOT, folder / "sdist")
        with tarfile.open(sources) as archive:
            archive.extractall(folder / "sources", filter="data")
        (unpacked,) = (folder / "sources").iterdir()
        (wheel,) = _built("wheel", unpacked, folder / "dist")
        self.wheel = wheel
        self.site = folder / "site"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        _ran([*pip, "--disable-pip-version-check", "--target", str(self.site), str(wheel)], cwd=folder)

    def run(self, command: Sequence[str]) -> str:
        """What the command printed; it sees the wheel before anything else, and not the repository."""
        env = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONSAFEPATH": "1"}
        return _ran(command, cwd=self.folder, env=env)


def _built(target: str, sources: Path, folder: Path) -> list[Path]:
    _ran([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)], cwd=sources)
    return list(folder.iterdir())


def _files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _ran(command: Sequence[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("program", _PROGRAMS)
def test_every_program_is_there_and_helps(installed: Installed, program: str) -> None:
    script = installed.site / "bin" / program
    assert _PROGRAMS[program] in installed.run([sys.executable, str(script), "--help"])


def test_nothing_is_read_from_the_repository(installed: Installed) -> None:
    packages = ["admin", "estimator", "fairway", "node_agent", "queue_dispatcher", "sandbox", "webhook"]
    asked = f"import {', '.join(packages)}\nfor each in ({', '.join(packages)}): print(each.__file__)"
    found = installed.run([sys.executable, "-c", asked]).splitlines()
    assert len(found) == len(packages)
    assert [file for file in found if not Path(file).is_relative_to(installed.site)] == []


def test_the_repository_makes_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    (wheel,) = _built("wheel", _ROOT, tmp_path)
    assert _files(installed.wheel) == _files(wheel)


def test_every_manifest_is_in_it(installed: Installed) -> None:
    kept = subprocess.run(
        ["git", "ls-files", "manifests"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if kept.returncode:
        pytest.skip("not a git checkout: what belongs to the repository is not known")
    assert [name for name in kept.stdout.split() if not (installed.site / name).exists()] == []


def test_the_first_half_of_the_demo_runs(installed: Installed) -> None:
    printed = installed.run([sys.executable, "-m", "estimator.demo"])
    assert "nvidia.com/gpu" in printed
