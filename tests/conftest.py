"""What holds for all tests."""

from hypothesis import settings

# How long an example takes says something of the machine, not of the code: speed belongs to benchmarks.
settings.register_profile("fairway", deadline=None)
settings.load_profile("fairway")
