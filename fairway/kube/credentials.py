"""Where the API server is and who we are, as a value that can be loaded again.

Credentials expire: tokens run out, files are rotated. A source therefore loads a complete, immutable set
each time it is asked, and the client asks when the set's time is up, when one of its files changed, or
when the server answered 401. Kubeconfigs are read in `fairway.kube.kubeconfig_source`.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from fairway.kube.errors import BadConfig

SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
_REFRESH_EARLY_S = 60.0
_SHORTEST_USE_S = 10.0

FileSignature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Credentials:
    """Everything a connection needs.

    ``authorization`` is the header's value. ``expires_at_s`` is in seconds since the epoch, None if unknown.
    ``files``: what these credentials were read from; they are stale when one of them changes.
    """

    server: str
    authorization: str | None = field(default=None, repr=False)
    expires_at_s: float | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    files: tuple[str, ...] = ()


class CredentialSource(Protocol):
    """Loads credentials; every call reads files and runs plugins anew. Raises BadConfig."""

    async def load(self) -> Credentials:
        """The credentials as they are now."""

    async def check(self) -> None:
        """Raises BadConfig where there is no sense in asking: no URL, no such context, no pod around us.

        What may come or mend itself (a server, a plugin, a token file not written yet) is not looked at.
        """


class UrlSource:
    """A plain URL, with a fixed bearer token or none."""

    def __init__(self, url: str, token: str | None) -> None:
        self._credentials = Credentials(url.rstrip("/"), f"Bearer {token}" if token else None)

    async def check(self) -> None:
        """Raises BadConfig for what is no URL of a server."""
        server = self._credentials.server
        try:
            parts = urlsplit(server)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            raise BadConfig(
                f"{server!r} is no address of an API server: expected http(s)://HOST[:PORT] (see --master)"
            )

    async def load(self) -> Credentials:
        """The same each time."""
        return self._credentials


class InClusterSource:
    """The service account that Kubernetes mounts into every pod."""

    def __init__(
        self, directory: str = SERVICE_ACCOUNT_DIRECTORY, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._token_file = os.path.join(directory, "token")
        self._ca_file = os.path.join(directory, "ca.crt")
        self._environ = environ

    async def load(self) -> Credentials:
        """Read the token as it is mounted now."""
        host, port = (self._environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
        try:
            token = self._token()
            problem = "" if host and port and token else "no host, no port or an empty token"
        except (OSError, UnicodeDecodeError) as error:
            token, problem = "", str(error)
        if problem:
            raise BadConfig(
                f"in-cluster configuration ({self._token_file}, $KUBERNETES_SERVICE_HOST): {problem}; "
                "expected to run in a pod with a mounted service account, otherwise name a kubeconfig"
            )
        return Credentials(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            authorization=f"Bearer {token}",
            ca_file=self._ca_file,
            files=(self._token_file, self._ca_file),
        )

    def _token(self) -> str:
        os.stat(self._ca_file)
        return Path(self._token_file).read_text("ascii").strip()

    async def check(self) -> None:
        """Raises BadConfig outside a pod."""
        await self.load()


def refresh_at_s(expires_at_s: float, loaded_at_s: float) -> float:
    """When to replace credentials that expire: a minute before, but after at least 80 % of a short life.

    Not before 10 s of use either, so that a plugin whose clock is wrong is not run for every request.
    """
    early_s = min(_REFRESH_EARLY_S, (expires_at_s - loaded_at_s) / 5.0)
    return max(expires_at_s - early_s, loaded_at_s + _SHORTEST_USE_S)


def file_signature(files: tuple[str, ...]) -> FileSignature:
    """Changes when a file does, also when a symbolic link is pointed elsewhere, as mounted volumes do."""
    return tuple(_one_signature(file) for file in files)


def tls_context(credentials: Credentials) -> ssl.SSLContext | None:
    """The TLS settings of an https server, None for http. Blocks for milliseconds; raises BadConfig."""
    if not credentials.server.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cafile=credentials.ca_file)
        # As Go does: cluster CAs often lack the extensions that the strict mode of newer Pythons asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not credentials.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if credentials.cert_file:
            context.load_cert_chain(credentials.cert_file, credentials.key_file)
    except OSError as error:
        raise BadConfig(
            f"{credentials.server}: TLS files ca={credentials.ca_file} cert={credentials.cert_file} "
            f"key={credentials.key_file}: {error}; expected PEM files that belong together"
        ) from error
    return context


def proxy_for(credentials: Credentials) -> str | None:
    """The kubeconfig's proxy, else the environment's (``$HTTPS_PROXY``, ``$HTTP_PROXY``, ``$NO_PROXY``).

    Never the environment's for a loopback server, as in Go's ``http.ProxyFromEnvironment``.
    """
    if credentials.proxy:
        return credentials.proxy
    url = urlsplit(credentials.server)
    host = url.hostname or ""
    if host == "localhost" or host == "::1" or host.startswith("127.") or proxy_bypass(url.netloc):
        return None
    return getproxies().get(url.scheme)


def _one_signature(file: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ino, status.st_size)
