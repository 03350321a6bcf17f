"""Exit codes, the same for every command, so that scripts can tell answers from failures."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command ended with.

    ``OK``: done; for a workload, it fits somewhere. ``FAILED``: bad usage, or nothing could be read.
    ``PARTIAL``: some clusters could not be read or are in doubt, and that matters for the answer.
    ``NOWHERE``: everything was read, and the workload fits in no cluster; one that was submitted
    waits.
    ``UNKNOWN``: there is no such workload in any queue.
    """

    OK = 0
    FAILED = 1
    PARTIAL = 2
    NOWHERE = 3
    UNKNOWN = 4
