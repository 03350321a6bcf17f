"""What the pages tell to run after ``make demo`` is there then, and what it installs is locked."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def _project() -> dict[str, dict[str, object]]:
    return tomllib.loads((_ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_package_itself_is_installed_without_asking_for_more(target: str, tmp_path: Path) -> None:
    command = ["make", "--dry-run", f"VENV={tmp_path / 'venv'}", target]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=60, check=True)
    installs = [line for line in done.stdout.splitlines() if " -m pip install " in line]
    assert "--require-hashes" in installs[0]
    assert installs[-1].endswith("--no-deps --no-build-isolation -e .")


def test_what_builds_the_package_is_locked_by_hash() -> None:
    locked = (_ROOT / "requirements" / "build.txt").read_text()
    required = _project()["build-system"]["requires"]
    assert isinstance(required, list)
    for name in (*(re.split("[<>=]", text)[0] for text in required), "editables"):
        assert re.search(rf"^{name}==\S+ \\\n +--hash=sha256:", locked, re.MULTILINE), name
    versions = set(re.findall(r"^\S+==\S+", locked, re.MULTILINE))
    assert versions <= set(
        re.findall(r"^\S+==\S+", (_ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE)
    )


def test_every_program_that_the_readme_runs_from_the_environment_is_installed() -> None:
    named = set(re.findall(r"\.venv/bin/([\w-]+)", (_ROOT / "README.md").read_text()))
    scripts = _project()["project"]["scripts"]
    assert isinstance(scripts, dict)
    assert named <= {*scripts, "python"}
    assert "fairway" in named
