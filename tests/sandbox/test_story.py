"""The story that ``make demo`` tells, told whole: the real programs, as processes."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDE = {**os.environ, "COLUMNS": "150"}


def test_the_story_comes_to_its_end_and_everything_happens_in_order() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sandbox"],
        cwd=ROOT,
        env=WIDE,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    happened = [(words[2], words[3]) for words in told if len(words) > 3 and words[1] == "s"]
    at = {event: place for place, event in enumerate(happened)}
    everybody = [f"research/sweep-{n}" for n in range(1, 5)] + ["research/hotfix", "product/pretrain"]
    for workload in (*everybody, "research/embed"):
        assert at["held", workload] < at["placed", workload] < at["finished", workload]
    assert at["placed", "research/hotfix"] < at["placed", "research/sweep-4"], "the urgent one goes first"
    assert (
        at["held", "product/pretrain"] < at["finished", "research/sweep-1"] < at["placed", "product/pretrain"]
    )
    assert "unplaced" not in {what for what, _ in happened}
    assert "WaitingForCapacity" in done.stdout
    assert "WaitingForBorrowing" in done.stdout
