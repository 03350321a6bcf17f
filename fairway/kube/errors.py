"""What can go wrong between Fairway and an API server.

    KubeError
    ├── BadConfig               the kubeconfig, plugin or in-cluster files give no usable credentials
    ├── Unreachable             refused, unresolvable, TLS failure, reset, or too slow
    │   ├── NotSent             no connection: the request certainly did not reach the server
    │   └── Silent              connected, but nothing was read for the idle timeout (half-open)
    ├── Refused                 the server answered with an error status
    │   ├── Unauthorized        401
    │   ├── Forbidden           403
    │   │   └── Denied          403, for want of a permission
    │   ├── NotFound            404
    │   ├── Conflict            409
    │   ├── Expired             410: the history or the continue token asked for is gone
    │   ├── TooManyRequests     429
    │   ├── Invalid             every other 4xx (and an unexpected 3xx)
    │   └── ServerError         5xx
    └── BadObject               an answer, an item or an event that cannot be decoded

Every message names the server and the path (or the file), what was expected and what to do. None
carries a credential.
"""

import re
from typing import ClassVar

_FIRST_SERVER_ERROR = 500
# k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go, v0.36; the name is quoted as Go does.
_DENIED = re.compile(r'User "((?:[^"\\]|\\.)*)" cannot ')


class KubeError(Exception):
    """Any failure of Kubernetes access; ``label`` is its short name in metrics."""

    label: ClassVar[str] = "error"


class BadConfig(KubeError):
    """The files or the plugin that should say where the server is and who we are cannot be used."""

    label = "bad_config"


class Unreachable(KubeError):
    """No answer, or a connection that broke before the answer was complete."""

    label = "unreachable"


class NotSent(Unreachable):
    """No connection could be made, so that the request was not sent."""


class Silent(Unreachable):
    """A stream on which nothing at all arrived for its idle timeout."""

    label = "silent"


class Refused(KubeError):
    """The server answered with an error.

    ``status`` is the HTTP status (or the code of an ERROR event), ``retry_after_s`` what the server
    asked us to wait, if it did.
    """

    label = "refused"
    remedy: ClassVar[str] = "expected success"

    def __init__(self, where: str, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{where}: {status}: {message}; {self.remedy}")
        self.status = status
        self.retry_after_s = retry_after_s


class Unauthorized(Refused):
    """401: the server does not know who we are."""

    label = "unauthorized"
    remedy = "expected accepted credentials: renew the token, certificate or exec plugin in the kubeconfig"


class Forbidden(Refused):
    """403: the server knows us and says no."""

    label = "forbidden"
    remedy = "expected permission: grant this identity the verb on the resource (ClusterRole and its binding)"


class Denied(Forbidden):
    """403 by the authorizer, not by admission: a permission is missing. See `fairway.kube.denials`."""

    @property
    def user(self) -> str:
        """Whom the server takes us for; empty if it does not say."""
        named = _DENIED.search(str(self))
        return "" if named is None else re.sub(r"\\(.)", r"\1", named[1])


class NotFound(Refused):
    """404: no such object, or no such resource."""

    label = "not_found"
    remedy = "expected the object to exist and the resource to be served: check its name and its CRD"


class Conflict(Refused):
    """409: the object exists already, or changed since it was read."""

    label = "conflict"
    remedy = "expected the current resourceVersion: read the object again and decide anew"


class Expired(Refused):
    """410: the resourceVersion or the continue token is older than the history that the server keeps."""

    label = "expired"
    remedy = "expected a resourceVersion within the server's history: list again from the start"


class TooManyRequests(Refused):
    """429: the server sheds load."""

    label = "too_many_requests"
    remedy = "expected room in the server's flow control: wait, or lower --kube-api-qps"


class Invalid(Refused):
    """The server cannot process the request as it stands."""

    label = "invalid"
    remedy = "expected a request this server version supports: read its message"


class ServerError(Refused):
    """5xx: the server failed."""

    label = "server_error"
    remedy = "expected a healthy server: look at its log and at etcd"


class BadObject(KubeError):
    """Something received is not what the resource's type says; the message locates the field."""

    label = "bad_object"


_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}


def refusal(where: str, status: int, message: str, retry_after_s: float | None = None) -> Refused:
    """The error for an HTTP status or the code of a Status object; ``where`` says ``server: METHOD path``."""
    kind = _BY_STATUS.get(status, ServerError if status >= _FIRST_SERVER_ERROR else Invalid)
    if kind is Forbidden and _DENIED.search(message):
        kind = Denied
    return kind(where, status, message, retry_after_s)
