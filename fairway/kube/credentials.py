"""Where the API server is and who we are, as a value that can be loaded again.

Credentials expire: tokens run out, files are rotated. A source therefore loads a complete, immutable set
each time it is asked, and the client asks when the set's time is up, when one of its files changed, or
when the server answered 401. The official client does the reading (``kubernetes.aio.config``, v37): exec
plugins, OIDC, cloud providers, embedded certificates, the in-cluster service account.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes.aio.client import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.config.kube_config import KubeConfigLoader

from fairway.kube.errors import BadConfig
from fairway.kube.kubeconfig import Kubeconfig, default_paths, read_kubeconfig

SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
_PLUGIN_TIMEOUT_S = 60.0
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


class KubeconfigSource:
    """A context of a kubeconfig; no ``path`` means the files that kubectl would read."""

    def __init__(self, path: str | None, context: str | None, master: str | None) -> None:
        self._paths = (path,) if path else default_paths()
        self._context = context
        self._master = master
        # Kept between loads, because OIDC refresh tokens rotate and live on in the merged configuration.
        self._kubeconfig: Kubeconfig | None = None
        self._signature: FileSignature = ()

    async def load(self) -> Credentials:
        """Run the official loader, and with it the user's exec plugin, within a minute."""
        kubeconfig = await self._current()
        configuration = Configuration()
        loader = KubeConfigLoader(kubeconfig.merged, active_context=kubeconfig.context, config_base_path=None)
        where = f"kubeconfig {os.pathsep.join(kubeconfig.files)}, context {kubeconfig.context!r}"
        try:
            async with asyncio.timeout(_PLUGIN_TIMEOUT_S):
                await loader.load_and_set(configuration)
        except TimeoutError as error:
            raise BadConfig(
                f"{where}: no credentials within {_PLUGIN_TIMEOUT_S:.0f} s; expected the plugin or provider "
                "to answer: run its command by hand"
            ) from error
        except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
            raise BadConfig(f"{where}: {error}; check it with: kubectl config view") from error
        # The official loader logs a failing plugin and goes on without credentials.
        if kubeconfig.uses_plugin and not configuration.api_key and not configuration.cert_file:
            raise BadConfig(
                f"{where}: the exec plugin gave neither token nor certificate; its error is in the "
                "log above: run its command by hand"
            )
        expiry: datetime | None = getattr(loader, "exec_plugin_expiry", None)
        return _from_configuration(
            configuration, kubeconfig.files, expires_at_s=None if expiry is None else expiry.timestamp()
        )

    async def check(self) -> None:
        """Raises BadConfig for files that are none, or name neither the context nor a server."""
        await self._current()

    async def _current(self) -> Kubeconfig:
        # Taken before reading, so that a change in between is read again next time.
        signature = file_signature(self._paths)
        if self._kubeconfig is None or signature != self._signature:
            # YAML in pure Python takes tens of milliseconds for a large kubeconfig.
            self._kubeconfig = await asyncio.to_thread(
                read_kubeconfig, self._paths, self._context, self._master
            )
            self._signature = signature
        return self._kubeconfig


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
        configuration = Configuration()
        loader = InClusterConfigLoader(
            self._token_file, self._ca_file, try_refresh_token=False, environ=self._environ
        )
        try:
            loader.load_and_set(configuration)
        except (ConfigException, OSError, UnicodeDecodeError) as error:
            raise BadConfig(
                f"in-cluster configuration ({self._token_file}, $KUBERNETES_SERVICE_HOST): {error}; "
                "expected to run in a pod with a mounted service account, otherwise name a kubeconfig"
            ) from error
        return _from_configuration(configuration, (self._token_file, self._ca_file), expires_at_s=None)

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


def _from_configuration(
    configuration: Configuration, files: tuple[str, ...], expires_at_s: float | None
) -> Credentials:
    token: str = configuration.api_key.get("BearerToken", "").strip()
    tls_files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return Credentials(
        server=configuration.host.rstrip("/"),
        authorization=token or None,
        expires_at_s=expires_at_s,
        ca_file=configuration.ssl_ca_cert,
        cert_file=configuration.cert_file,
        key_file=configuration.key_file,
        verify=configuration.verify_ssl,
        tls_server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
        files=tuple(dict.fromkeys(file for file in (*files, *tls_files) if file)),
    )


def _one_signature(file: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ino, status.st_size)
