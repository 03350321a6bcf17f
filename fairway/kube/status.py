"""The API server's Status object: the body of an error answer and the object of an ERROR event."""

import msgspec

from fairway.kube.errors import Refused, refusal
from fairway.kube.objects import KubeStruct

_SHOWN_BYTES = 300


class StatusDetails(KubeStruct, frozen=True):
    """The part of a Status that is for machines."""

    retry_after_seconds: float | None = None


class Status(KubeStruct, frozen=True):
    """meta/v1 Status, as far as an error is concerned."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


_DECODER = msgspec.json.Decoder(Status)


def refusal_from_body(where: str, http_status: int, body: bytes, retry_after: str | None) -> Refused:
    """The error of an HTTP answer.

    ``body`` is normally a Status object; what a proxy in between wrote instead is quoted, cut short.
    ``retry_after`` is the header, which counts only in its form of whole seconds.
    """
    delay_s = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    try:
        status = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:_SHOWN_BYTES].decode("utf-8", "replace").strip()
        return refusal(where, http_status, text or "no explanation given", delay_s)
    if delay_s is None:
        delay_s = _asked_delay_s(status)
    return refusal(where, http_status, _text(status), delay_s)


def refusal_from_status(where: str, status: Status) -> Refused:
    """The error of an ERROR event, whose code (500 if it has none) stands for the HTTP status."""
    return refusal(where, status.code or 500, _text(status), _asked_delay_s(status))


def _text(status: Status) -> str:
    return status.message or status.reason or "no explanation given"


def _asked_delay_s(status: Status) -> float | None:
    return None if status.details is None else status.details.retry_after_seconds
