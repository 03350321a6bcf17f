"""A context of a kubeconfig as the source of credentials.

The official client does the reading (``kubernetes.aio.config``, v37): exec plugins, OIDC, cloud providers,
embedded certificates. A module of its own, for that client brings all of Kubernetes' models, 25 MB of memory
that programs which run as their pod's service account do without.
"""

import asyncio
import os
from datetime import datetime

from kubernetes.aio.client import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigLoader

from fairway.kube.credentials import Credentials, FileSignature, file_signature
from fairway.kube.errors import BadConfig
from fairway.kube.kubeconfig import Kubeconfig, default_paths, read_kubeconfig

_PLUGIN_TIMEOUT_S = 60.0


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
