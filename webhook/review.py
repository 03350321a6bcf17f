"""The wire of admission webhooks: ``AdmissionReview`` of admission.k8s.io/v1, request in and response out.

The objects of a review stay undecoded here, so that a bad object never spoils the envelope: whoever asked
gets an answer with its uid. A body that is no review at all has no uid to answer to, hence ReviewError.

Mirrors k8s.io/api/admission/v1/types.go of Kubernetes 1.36.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct

API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"
_MAX_UID_LENGTH: Final = 253
_NULL: Final = b"null"
_SHOWN: Final = 200


class ReviewError(ValueError):
    """A body that is no review of this version; the message says what was expected and what to do."""


class GroupVersionResource(KubeStruct, frozen=True):
    """Which resource the rules of the webhook matched, after conversion to the version they name."""

    group: str = ""
    version: str = ""
    resource: str = ""


class ReviewRequest(KubeStruct, frozen=True):
    """What the API server asks; ``object`` and ``old_object`` are JSON, ``null`` where there is none."""

    uid: str = ""
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    operation: str = ""
    object: msgspec.Raw = msgspec.Raw(_NULL)
    old_object: msgspec.Raw = msgspec.Raw(_NULL)


class _Review(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    request: ReviewRequest | None = None


class _Response(KubeStruct, frozen=True, omit_defaults=True):
    uid: str
    # Without a default, since it must not be omitted.
    allowed: bool
    patch: bytes | None = None
    patch_type: str = ""
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = {}  # noqa: RUF012 - msgspec copies empty defaults


class _AnsweredReview(KubeStruct, frozen=True):
    api_version: str
    kind: str
    response: _Response


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that allows: with a JSON patch or without, with warnings for the client, if any.

    ``audit`` are annotations of the API server's audit event, by a name of lower-case words.
    """

    patch: bytes | None = None
    warnings: tuple[str, ...] = ()
    audit: tuple[tuple[str, str], ...] = ()


_decode_review = msgspec.json.Decoder(_Review).decode
_encode_review = msgspec.json.Encoder().encode


def read_review(body: bytes) -> ReviewRequest:
    """The request within a body. Raises ReviewError: no JSON, nested too deeply, another version, no uid."""
    try:
        review = _decode_review(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReviewError(f"the body is no {_KIND}: {str(error)[:_SHOWN]}; expected JSON") from None
    except RecursionError:
        raise ReviewError(f"the body is no {_KIND}: it is nested too deeply") from None
    if review.kind != _KIND:
        raise ReviewError(f"kind: {_shown(review.kind)}: expected {_KIND}: is this URL meant for webhooks?")
    if review.api_version != API_VERSION:
        raise ReviewError(
            f"apiVersion: {_shown(review.api_version)}: expected {API_VERSION}: "
            'set admissionReviewVersions to ["v1"] in the webhook configuration'
        )
    if review.request is None:
        raise ReviewError("request: missing: expected a review that asks something")
    if not 0 < len(review.request.uid) <= _MAX_UID_LENGTH:
        raise ReviewError(
            f"request.uid: expected 1 to {_MAX_UID_LENGTH} characters, found {len(review.request.uid)}: "
            "an answer must repeat it"
        )
    return review.request


def write_review(uid: str, response: Response) -> bytes:
    """The body of the answer to the request with this uid."""
    return _encode_review(
        _AnsweredReview(
            API_VERSION,
            _KIND,
            _Response(
                uid,
                True,
                response.patch,
                "JSONPatch" if response.patch is not None else "",
                response.warnings,
                dict(response.audit),
            ),
        )
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
