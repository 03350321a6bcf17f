"""What one may do oneself, as SelfSubjectAccessReviews answer it: everything that no test has denied.

And who one is, as SelfSubjectReviews answer it.
"""

from collections.abc import Callable, Mapping

import msgspec

from sandbox.fakeapi.store import Obj

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

Denied = Callable[[Mapping[str, str]], bool]
"""Whether what a review asks about, its ``resourceAttributes``, is denied."""


class SelfReviews:
    """``denied`` decides; by default nothing is. ``user``: the UserInfo of whoever asks who they are."""

    def __init__(self) -> None:
        self.denied: Denied = lambda attributes: False
        self.user: Obj = {"username": "nobody-in-particular"}

    def answer(self, path: str, body: bytes) -> bytes | None:
        """The review with its status; None for any other path."""
        if path == WHO:
            return msgspec.json.encode(msgspec.json.decode(body) | {"status": {"userInfo": self.user}})
        if path != PATH:
            return None
        review: Obj = msgspec.json.decode(body)
        review["status"] = {"allowed": not self.denied(review["spec"]["resourceAttributes"])}
        return msgspec.json.encode(review)
