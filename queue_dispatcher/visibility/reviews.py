"""Who a bearer token is, and what that one may do, asked of karmada-apiserver: TokenReview and
SubjectAccessReview (authentication.k8s.io/v1, authorization.k8s.io/v1).

Nothing of a token is kept or written anywhere: it is sent to the API server, and remembered as a keyed hash.
Times are those for which components of Kubernetes remember such answers (k8s.io/apiserver,
pkg/server/options).
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.kube.objects import KubeStruct
from queue_dispatcher.visibility.remembered import Remembered

IDENTITY_S: Final = 10.0
"""For how long an answer holds: what is revoked is refused after that."""
RIGHT_S: Final = 10.0
MOST_TOKENS: Final = 2_000
MOST_RIGHTS: Final = 50_000
TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Identity(msgspec.Struct, frozen=True):
    """Who asks, as the API server says it."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ReviewFailed(Exception):
    """The API server could not be asked; the message says what to do and names no address."""


class _User(KubeStruct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(KubeStruct, frozen=True):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(KubeStruct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(KubeStruct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(KubeStruct, frozen=True):
    status: _AccessStatus = _AccessStatus()


_NOBODY = Identity("")
_Review = TypeVar("_Review", _TokenReview, _AccessReview)


class Reviews:
    """Asks through ``client``; ``clock`` is monotonic, in seconds. ``failed`` is told each error."""

    def __init__(
        self,
        client: KubeClient,
        failed: Callable[[KubeError], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._failed = failed
        self._salt = secrets.token_bytes(32)
        self._identities = Remembered[Identity](MOST_TOKENS, clock)
        # Apart, so that a flood of wrong tokens does not displace those that are known.
        self._strangers = Remembered[Identity](MOST_TOKENS, clock)
        self._rights = Remembered[bool](MOST_RIGHTS, clock)

    def known(self, token: str) -> bool:
        """Whether the token was looked at a moment ago, so that nobody has to be asked."""
        key = self._key(token)
        return self._identities.get(key) is not None or self._strangers.get(key) is not None

    async def identity(self, token: str) -> Identity | None:
        """Whose token it is; None for one that the API server does not know. Raises ReviewFailed."""
        key = self._key(token)
        known = self._identities.get(key)
        if known is not None:
            return known
        found = await self._strangers.asked(key, lambda: self._review(key, token), _stranger_s)
        return found if found.username else None

    async def may(self, who: Identity, what: Mapping[str, object]) -> bool:
        """Whether somebody may do something: a part of a SubjectAccessReview's spec. Raises ReviewFailed."""
        spec: dict[str, object] = {
            "user": who.username,
            "uid": who.uid,
            "groups": list(who.groups),
            "extra": dict(who.extra),
            **what,
        }
        body = msgspec.json.encode(
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        )

        async def ask() -> bool:
            found = await self._post(ACCESS_REVIEWS, body, _AccessReview)
            return found.status.allowed and not found.status.denied

        return await self._rights.asked(hashlib.sha256(body).digest(), ask, lambda _: RIGHT_S)

    async def _review(self, key: bytes, token: str) -> Identity:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        found = await self._post(TOKEN_REVIEWS, msgspec.json.encode(review), _TokenReview)
        user = found.status.user
        if not (found.status.authenticated and user.username):
            return _NOBODY
        extra = tuple(sorted((name, tuple(values)) for name, values in (user.extra or {}).items()))
        identity = Identity(user.username, user.uid, tuple(user.groups or ()), extra)
        self._identities.put(key, identity, IDENTITY_S)
        return identity

    async def _post(self, path: str, body: bytes, type: type[_Review]) -> _Review:
        try:
            return await self._client.post(path, body, type)
        except KubeError as error:
            self._failed(error)
            raise ReviewFailed(
                f"karmada-apiserver cannot be asked who may see what ({error.label}); nothing is shown until "
                "it can: see the log of fairway-dispatcher"
            ) from None

    def _key(self, token: str) -> bytes:
        return hashlib.blake2b(token.encode(errors="replace"), key=self._salt).digest()


def _stranger_s(found: Identity) -> float:
    return IDENTITY_S if not found.username else 0.0
