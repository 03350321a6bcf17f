"""What a failure means for a reflector's position in the history."""

from fairway.kube.errors import (
    BadConfig,
    Expired,
    Forbidden,
    KubeError,
    Refused,
    ServerError,
    Silent,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)

_SILENT_STREAMS = 2
_SERVER_ERRORS = 8


def relist_reason(error: KubeError, silent_streams: int, failures: int) -> str | None:
    """Why the position is no longer good after ``error``, or None if a watch may go on from it.

    ``silent_streams``: how many streams in a row, including the one that ``error`` ended, brought nothing. A
    second one from the same position means that the server does not know that position, as after an etcd
    restored from an older backup: it would stay silent until its history catches up.

    ``failures``: how many attempts in a row failed, including this one. A server in trouble answers 5xx, but
    kube-apiserver also says 500 to a version it cannot read, which no waiting cures.
    """
    if isinstance(error, Expired):
        return "expired"
    if isinstance(error, Silent):
        return "silent" if silent_streams >= _SILENT_STREAMS else None
    if isinstance(error, ServerError):
        return "refused" if failures >= _SERVER_ERRORS else None
    transient = BadConfig | Unreachable | Unauthorized | Forbidden | TooManyRequests
    return None if isinstance(error, transient) else "refused"


def means_no_watch_list(error: Refused) -> bool:
    """Whether the refusal of an initial stream says that the server does not offer it.

    Which status says so differs by server version and feature gates: any 4xx without a meaning of its own.
    """
    return not isinstance(error, Unauthorized | Forbidden | Expired | TooManyRequests | ServerError)
