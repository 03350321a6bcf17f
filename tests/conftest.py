"""What holds for all tests."""

import os

from hypothesis import settings

# How long an example takes says something of the machine, not of the code: speed belongs to benchmarks.
settings.register_profile("fairway", deadline=None)
settings.load_profile("fairway")

# Whoever runs the tests has a terminal of some size, and workers of pytest-xdist inherit it.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
    os.environ.pop(name, None)
