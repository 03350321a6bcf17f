"""Writes recording rules and dashboards; with ``--check`` only says which are not up to date, and exits 1."""

import sys
from pathlib import Path
from typing import Final

import yaml

from manifests.observability.dashboards import DASHBOARDS
from manifests.observability.rules import recording_rules

ROOT: Final = Path(__file__).parents[1]
RULES: Final = "member/node-agent/monitoring/recording-rules.yaml"
_HEAD: Final = (
    "# Made of fairway/usage/definitions.py by 'make manifests': edit that, or manifests/observability.\n"
)


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines stay that."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def files() -> dict[str, str]:
    """Every file that is made, by its place below ``manifests``."""
    return {RULES: _rules(), **{f"monitoring/grafana/{one.file}": one.json for one in DASHBOARDS}}


def _rules() -> str:
    rules = [
        {
            "record": rule.record,
            "expr": rule.expression,
            **({"labels": dict(rule.labels)} if rule.labels else {}),
        }
        for rule in recording_rules()
    ]
    made = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "namespace": "fairway-node-agent",
            "name": "fairway-devices",
            "labels": {
                "app.kubernetes.io/name": "fairway-node-agent",
                "app.kubernetes.io/component": "node-agent",
                "app.kubernetes.io/part-of": "fairway",
            },
        },
        "spec": {"groups": [{"name": "fairway-devices", "interval": "1m", "rules": rules}]},
    }
    return _HEAD + yaml.dump(made, Dumper=_Dumper, sort_keys=False, width=10_000)


def outdated(root: Path) -> list[str]:
    """Files that are missing or not up to date."""
    made = files()
    return [
        name for name in made if not (root / name).is_file() or (root / name).read_text("utf-8") != made[name]
    ]


def main(arguments: list[str]) -> int:
    """Do what the arguments say; the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"{' '.join(arguments)}: expected --check or nothing\n")
        return 2
    stale = outdated(ROOT)
    if arguments:
        for name in stale:
            sys.stderr.write(f"manifests/{name}: not up to date: run 'make manifests'\n")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(files()[name], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
