"""The envelope: what is no review is told apart and said; an answer has the form that an API server wants."""

import base64
import json

import msgspec
import pytest

from tests.webhook.builders import GPU, binding, review, spec
from webhook.review import Response, ReviewError, read_review, write_review


def body(**changes: object) -> bytes:
    return msgspec.json.encode(review(binding(spec(GPU))) | changes)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "the body is no AdmissionReview"),
        (b"garbage", "the body is no AdmissionReview"),
        (b"[]", "Expected `object`, got `array`"),
        (b"\x00\xff\xfe", "the body is no AdmissionReview"),
        (b'{"kind":"\xff"}', "the body is no AdmissionReview"),
        (b"{}", "kind: '': expected AdmissionReview"),
        (body(kind="Pod"), "kind: 'Pod': expected AdmissionReview"),
        (body(kind="x" * 5000), "..."),
        (body(apiVersion="admission.k8s.io/v1beta1"), 'set admissionReviewVersions to ["v1"]'),
        (body(apiVersion=""), "apiVersion: '': expected admission.k8s.io/v1"),
        (body(request=None), "request: missing"),
        (body(request="x"), "$.request"),
        (body(request={}), "request.uid: expected 1 to 253 characters, found 0"),
        (body(request={"uid": "u" * 254}), "found 254"),
        (body(request={"uid": 7}), "$.request.uid"),
        (b'{"kind":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the body is no AdmissionReview"),
        (b'{"x":' + b'{"x":' * 100_000 + b"1" + b"}" * 100_001, "nested too deeply"),
        (body()[:-1], "the body is no AdmissionReview"),
    ],
)
def test_what_is_no_review_is_said(raw: bytes, problem: str) -> None:
    with pytest.raises(ReviewError) as refused:
        read_review(raw)
    assert problem in str(refused.value)
    assert len(str(refused.value)) < 500


def test_the_request_keeps_its_objects_as_they_came() -> None:
    request = read_review(body())
    assert json.loads(bytes(request.object)) == binding(spec(GPU))
    assert bytes(request.old_object) == b"null"


def test_an_answer_without_a_patch() -> None:
    assert json.loads(write_review("u", Response())) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_an_answer_with_a_patch_is_base64_and_names_its_type() -> None:
    answer = json.loads(write_review("u", Response(b"[]", ("careful",), (("held", "creation"),))))["response"]
    assert base64.b64decode(answer["patch"]) == b"[]"
    assert answer["patchType"] == "JSONPatch"
    assert answer["warnings"] == ["careful"]
    assert answer["auditAnnotations"] == {"held": "creation"}
