"""The images' recipe: linted, and telling the same as the rest of the repository.

No engine builds it here. `make image-check` runs its steps in a folder.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_DOCKERFILE = _ROOT / "Dockerfile"
_TARGETS = {
    "estimator": "/bin/karmada-scheduler-estimator",
    "dispatcher": "/opt/fairway/bin/fairway-dispatcher",
    "webhook": "/opt/fairway/bin/fairway-webhook",
    "node-agent": "/opt/fairway/bin/fairway-node-agent",
    "fairway": "/opt/fairway/bin/fairway",
}


def _stages() -> dict[str, str]:
    """The text of each stage, by its name."""
    parts = re.split(r"^FROM \S+ AS (\S+)\n", _DOCKERFILE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_it_passes_the_linter() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is not installed")
    done = subprocess.run([linter, str(_DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("target", _TARGETS)
def test_each_program_has_a_target_that_starts_it_as_nobody(target: str) -> None:
    base, stage = _stages()["run"], _stages()[target]
    assert f'ENTRYPOINT ["{_TARGETS[target]}"]' in stage
    users = re.findall(r"^USER (\S+)$", base + stage, re.MULTILINE)
    assert users[-1] == "65532:65532"


def test_the_targets_are_programs_of_the_wheel() -> None:
    scripts = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {path.rpartition("/")[2] for path in _TARGETS.values()} <= set(scripts)


def test_the_build_sees_what_the_wheel_is_made_of() -> None:
    wheel = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    seen = set(re.findall(r"^!(\S+)$", (_ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert {*wheel["packages"], "pyproject.toml", "README.md", "LICENSE", "requirements/run.txt"} == seen


def test_the_version_of_the_label_is_the_version_of_the_code() -> None:
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"ARG VERSION={version}\n" in _DOCKERFILE.read_text()


def test_only_locked_dependencies_are_installed() -> None:
    installs = re.findall(r"install (.*?)(?:\s*\\)?$", _stages()["build"], re.MULTILINE)
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-deps" in installs[1]
