"""What the programs print when they are only asked for text."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("program", ["estimator", "node_agent", "queue_dispatcher", "webhook"])
def test_a_reader_that_has_read_enough_is_no_error(program: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", program, "--help"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
