"""What one may do oneself, as SelfSubjectAccessReviews answer it: everything that no test has denied."""

from collections.abc import Callable, Mapping

import msgspec

from sandbox.fakeapi.store import Obj

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Denied = Callable[[Mapping[str, str]], bool]
"""Whether what a review asks about, its ``resourceAttributes``, is denied."""


class SelfReviews:
    """``denied`` decides; by default nothing is."""

    def __init__(self) -> None:
        self.denied: Denied = lambda attributes: False

    def answer(self, path: str, body: bytes) -> bytes | None:
        """The review with its status; None for any other path."""
        if path != PATH:
            return None
        review: Obj = msgspec.json.decode(body)
        review["status"] = {"allowed": not self.denied(review["spec"]["resourceAttributes"])}
        return msgspec.json.encode(review)
