"""What an API server answers when it does not do what it was asked.

ApiError
├── Invalid       422: the object is not what it may be (also: another uid than named)
├── Forbidden     403
├── NotFound      404
├── Conflict      409: changed since, or already there
├── Expired       410: the history asked for is forgotten
├── TooMany       429
├── Unavailable   5xx, or no connection: certainly not done
└── Timeout       no answer; ``applied`` says what the client does not know
"""

from typing import ClassVar


class ApiError(Exception):
    """An answer that is no success. ``code``: the HTTP status, 0 where there was no answer."""

    code: ClassVar[int] = 0


class Invalid(ApiError):
    """The object or the patch is not as it may be."""

    code = 422


class Forbidden(ApiError):
    """Not allowed, by authorization or admission."""

    code = 403


class NotFound(ApiError):
    """There is no such object."""

    code = 404


class Conflict(ApiError):
    """The object is not the one, or not in the version, that the write named; or it exists already."""

    code = 409


class Expired(ApiError):
    """The position in the history is forgotten."""

    code = 410


class TooMany(ApiError):
    """Flow control; ``retry_after_s`` is what the server asks for."""

    code = 429

    def __init__(self, message: str = "too many requests", retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(ApiError):
    """The server is away or says 5xx; nothing was done."""

    code = 503


class Timeout(ApiError):
    """The connection broke before an answer; ``applied``: whether it was done."""

    def __init__(self, applied: bool) -> None:
        super().__init__("no answer")
        self.applied = applied
