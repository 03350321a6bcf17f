"""Who has which token and who may do what: TokenReview and SubjectAccessReview, answered from what was said.

Nothing else of the fake heeds it: everybody may do everything there. It only tells, as programs ask it.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Grant:
    """A verb on ``resource.group`` in a namespace (empty: in all), or on a URL (``*`` ends a prefix)."""

    subject: str
    verb: str
    what: str
    namespace: str = ""


class Access:
    """``asked`` counts the reviews so far, by path."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {TOKEN_REVIEWS: 0, ACCESS_REVIEWS: 0}
        self._users: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._grants: set[Grant] = set()

    def know(self, token: str, user: str, *groups: str) -> None:
        """The token is that of a user in these groups."""
        self._users[token] = user, groups

    def forget(self, token: str) -> None:
        """The token has been revoked."""
        del self._users[token]

    def grant(self, subject: str, verb: str, what: str, namespace: str = "") -> None:
        """A user or a group may do something."""
        self._grants.add(Grant(subject, verb, what, namespace))

    def revoke(self, subject: str) -> None:
        """A user or a group may do nothing any more."""
        self._grants = {grant for grant in self._grants if grant.subject != subject}

    def answer(self, path: str, body: bytes) -> bytes | None:
        """The review with its status; None for any other path."""
        if path not in self.asked:
            return None
        self.asked[path] += 1
        review: dict[str, Any] = msgspec.json.decode(body)
        spec = review["spec"]
        review["status"] = self._identity(spec) if path == TOKEN_REVIEWS else self._verdict(spec)
        return msgspec.json.encode(review)

    def _identity(self, spec: dict[str, Any]) -> dict[str, object]:
        known = self._users.get(spec["token"])
        if known is None:
            return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
        user, groups = known
        return {
            "authenticated": True,
            "user": {"username": user, "groups": [*groups, "system:authenticated"]},
        }

    def _verdict(self, spec: dict[str, Any]) -> dict[str, object]:
        subjects = {spec["user"], *spec.get("groups", ())}
        resource = spec.get("resourceAttributes")
        granted = [grant for grant in self._grants if grant.subject in subjects]
        if resource is not None:
            allowed = any(_covers(grant, resource) for grant in granted)
        else:
            allowed = any(_reaches(grant, spec["nonResourceAttributes"]) for grant in granted)
        return {"allowed": allowed, **({} if allowed else {"reason": "no rule grants it"})}


def _covers(grant: Grant, asked: dict[str, str]) -> bool:
    what = f"{asked['resource']}.{asked['group']}" if asked.get("group") else asked["resource"]
    return (grant.verb, grant.what) == (asked["verb"], what) and grant.namespace in ("", asked["namespace"])


def _reaches(grant: Grant, asked: dict[str, str]) -> bool:
    reached = (
        asked["path"].startswith(grant.what[:-1]) if grant.what.endswith("*") else asked["path"] == grant.what
    )
    return grant.verb == asked["verb"] and reached
