"""A request as it arrived, and predicates over requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TRUE = ("1", "true")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    peer_certificate: Mapping[str, Any] | None = None

    @property
    def is_watch(self) -> bool:
        return self.params.get("watch") in TRUE

    @property
    def is_write(self) -> bool:
        return self.method in _VERBS

    @property
    def is_dry_run(self) -> bool:
        return self.params.get("dryRun") == "All"

    @property
    def verb(self) -> str:
        """``create``, ``update``, ``patch``, ``apply``, ``delete``, ``watch``, or ``get`` for every read."""
        if self.method == "PATCH" and self.headers.get("Content-Type", "").startswith("application/apply"):
            return "apply"
        return _VERBS.get(self.method) or ("watch" if self.is_watch else "get")

    @property
    def user(self) -> str:
        """The bearer token, which is how tests tell clients apart."""
        return self.headers.get("Authorization", "").partition(" ")[2]


Which = Callable[[Seen], bool]


def any_request(seen: Seen) -> bool:
    """Every request."""
    return True


def requests(*, verb: str | None = None, path: str = "", user: str | None = None) -> Which:
    """Requests of a verb (see `Seen.verb`), with ``path`` within their path, of a user: all that is given."""

    def concerns(seen: Seen) -> bool:
        return (
            (verb is None or seen.verb == verb) and path in seen.path and (user is None or seen.user == user)
        )

    return concerns


def writes(seen: Seen) -> bool:
    """Every request that wants to change something."""
    return seen.is_write
