"""Marked secrets, files that hold them, and where they show."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from tests.certs import Authority

MARK = "Sw0rdfish"
TOKEN, PASSWORD, PLUGIN_TOKEN = f"{MARK}-token", f"{MARK}-password", f"{MARK}-plugin"
KEY = Authority("secret").issue("client")


def kubeconfig(file: Path, url: str, user: dict[str, Any]) -> Path:
    """A kubeconfig with this user."""
    file.write_text(
        json.dumps(
            {
                "current-context": "x",
                "clusters": [{"name": "x", "cluster": {"server": url}}],
                "users": [{"name": "x", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            }
        )
    )
    return file


def plugin(folder: Path, output: str, code: int = 0) -> dict[str, Any]:
    """A user whose credentials come from a program that prints this."""
    script = folder / "plugin.py"
    script.write_text(f"import sys\nprint({output!r})\nsys.exit({code})\n")
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }


def credential(token: str) -> str:
    """What a plugin prints."""
    review = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    return json.dumps({**review, "status": {"token": token}})


def secrets_in(text: str) -> list[str]:
    """The marks, plain and in base64 wherever they stand in a text, and lines of keys."""
    marks = [MARK, *(_within(MARK, before) for before in range(3))]
    marks += ["PRIVATE KEY", *KEY.key.decode().splitlines()[1:-1]]
    marks.append(base64.b64encode(KEY.key).decode()[40:120])
    return [mark for mark in marks if mark in text]


def _within(mark: str, before: int) -> str:
    """What base64 makes of the mark when so many bytes stand before it, whatever they and the next are."""
    encoded = base64.b64encode(b"x" * before + mark.encode()).decode().rstrip("=")
    whole = (before + len(mark)) * 8 // 6
    return encoded[-(-before * 8 // 6) : whole]
