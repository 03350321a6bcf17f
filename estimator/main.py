"""The program ``karmada-scheduler-estimator``: flags in, a running server, an exit code out."""

import sys
from collections.abc import Sequence

from estimator.flags import parse
from fairway.service.common_flags import Text, tell
from fairway.service.goflags import FlagError
from fairway.service.grpc_environment import prepare_grpc_environment
from fairway.service.version import release


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop. 0 after a clean stop, 1 when it cannot start (the reason is on stderr)."""
    try:
        settings = parse(sys.argv[1:] if argv is None else argv, version=release())
    except FlagError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201 - before there is a log
        return 1
    if isinstance(settings, Text):
        return tell(settings.text)
    prepare_grpc_environment()
    # Only now, since importing gRPC reads the environment.
    from estimator.server import run

    return run(settings)
