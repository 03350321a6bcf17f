"""The program ``fairway-dispatcher``: flags in, a running dispatcher, an exit code out."""

import sys
from collections.abc import Sequence

from fairway.kube.lease import new_identity
from fairway.service.common_flags import Text, tell
from fairway.service.goflags import FlagError
from fairway.service.grpc_environment import prepare_grpc_environment
from fairway.service.version import release
from queue_dispatcher.flags import parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop. 0 after a clean stop, 1 when it cannot start (the reason is on stderr)."""
    try:
        settings = parse(sys.argv[1:] if argv is None else argv, version=release(), identity=new_identity())
    except FlagError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201 - before there is a log
        return 1
    if isinstance(settings, Text):
        return tell(settings.text)
    prepare_grpc_environment()
    # Only now, since importing gRPC reads the environment.
    from queue_dispatcher.server import run

    return run(settings)
