"""What holds for all tests."""

import os

from hypothesis import settings

# How long an example takes says something of the machine, not of the code: speed belongs to benchmarks.
settings.register_profile("fairway", deadline=None)
settings.load_profile("fairway")

# Whoever runs the tests has a terminal of some size, and workers of pytest-xdist inherit it.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
    os.environ.pop(name, None)


def pytest_xdist_auto_num_workers() -> int:
    """Of ``-n auto``: more than there are processors, since tests wait for programs a third of their time."""
    return (os.cpu_count() or 1) * 3 // 2
