"""The real programs, where there are any."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def kubectl() -> str:
    """kubectl beside the real API server; without it the test is skipped, and says so."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    program = Path(folder) / "kubectl"
    if not folder or not program.is_file():
        pytest.skip("no kubectl in KUBEBUILDER_ASSETS")
    return str(program)


def helm() -> str:
    """helm, as HELM names it or as it is on the path; without it the test is skipped, and says so."""
    program = os.environ.get("HELM") or shutil.which("helm")
    if not program:
        pytest.skip("no helm: neither HELM nor the path has one")
    return program


def run(*command: str | Path, given: str | None = None) -> str:
    """What the command prints; what it says against it is in the failure."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}"
    return done.stdout


def refusal(*command: str | Path) -> str:
    """What the command says when it refuses."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0, f"{' '.join(map(str, command))}: went well: {done.stdout[:500]}"
    return done.stderr
