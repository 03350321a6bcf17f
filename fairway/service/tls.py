"""Server credentials for gRPC whose certificates follow their files, without a restart or a failed call.

gRPC asks for the configuration at every new handshake, on a thread of its own; established connections keep
what they have. So the files are looked at when somebody connects (at most once a second), and whatever cannot
be used leaves the last good set in force, with a log line and a count.

Meaning as in Karmada's pkg/util/grpcconnection (1.19): certificate and key alone encrypt; with a client CA,
clients must show a certificate that it signed, unless verification is switched off.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

import grpc

from fairway.service.certificates import (
    CertificateReading,
    CertificateSet,
    TlsError,
    TlsFiles,
    fingerprint,
    load,
)

logger = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 1.0


class ServerCertificates:
    """The certificates in force, and the files they follow. Safe to use from any thread."""

    def __init__(self, files: TlsFiles, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Load ``files``; ``clock`` gives seconds and paces the looks at them. Raises TlsError."""
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_s = clock()
        self._mark = fingerprint(files)
        self._set = load(files)
        self._problem = ""
        self._reloads = 0
        self._failures = 0

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials for ``server.add_secure_port``; every handshake sees the newest usable certificates."""
        current = _Configuration(self)
        credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
            current.initial,
            current.newer,
            require_client_authentication=self._files.client_ca is not None and self._files.verify_clients,
        )
        return credentials

    def current(self) -> CertificateSet:
        """The set in force, after a look at the files if the last one is a second old."""
        with self._lock:
            now_s = self._clock()
            if now_s - self._looked_s >= CHECK_INTERVAL_S:
                self._looked_s = now_s
                self._follow_files()
            return self._set

    def reading(self) -> CertificateReading:
        """What to measure, after a look at the files as in ``current``."""
        current = self.current()
        return CertificateReading(
            current.certificate_expires_s, current.client_ca_expires_s, self._reloads, self._failures
        )

    def _follow_files(self) -> None:
        try:
            mark = fingerprint(self._files)
            if mark == self._mark and not self._problem:
                return
            newer = load(self._files)
        except TlsError as error:
            self._failures += 1
            if str(error) != self._problem:
                logger.error("certificates not reloaded, the old ones stay in force: %s", error)
            self._problem = str(error)
            return
        self._mark, self._problem = mark, ""
        if newer != self._set:
            self._set = newer
            self._reloads += 1
            logger.info("certificates reloaded", extra={"certificate": str(self._files.certificate)})


class _Configuration:
    """gRPC's view: the first configuration, then a newer one or ``None`` for each handshake."""

    def __init__(self, certificates: ServerCertificates) -> None:
        self._certificates = certificates
        self._served = certificates.current()
        self.initial = _grpc_configuration(self._served)

    def newer(self) -> grpc.ServerCertificateConfiguration | None:
        current = self._certificates.current()
        if current is self._served:
            return None
        self._served = current
        return _grpc_configuration(current)


def _grpc_configuration(current: CertificateSet) -> grpc.ServerCertificateConfiguration:
    configuration: grpc.ServerCertificateConfiguration = grpc.ssl_server_certificate_configuration(
        [(current.key_pem, current.certificate_pem)], root_certificates=current.client_ca_pem
    )
    return configuration
