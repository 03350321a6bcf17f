"""What a real kube-scheduler did with the cases of the first seeds, kept so that it is asked only once."""

import hashlib
import json
from pathlib import Path

from tests.truth.cases import Case

FILE = Path(__file__).with_name("recorded.json")


def digest(case: Case) -> str:
    """A few letters that change with the case."""
    told = json.dumps([case.items, case.template, case.tolerates_extended], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def read() -> dict[int, tuple[str, tuple[int, ...]]]:
    """By seed: the case's digest, and how many pods were bound in each run."""
    lines = json.loads(FILE.read_text())
    return {int(seed): (text, tuple(bound)) for seed, (text, *bound) in lines.items()}


def write(bound: dict[int, tuple[Case, tuple[int, ...]]]) -> None:
    """Replace the record; a line for each seed."""
    lines = [
        f'  "{seed}": {json.dumps([digest(case), *counts])}' for seed, (case, counts) in sorted(bound.items())
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
