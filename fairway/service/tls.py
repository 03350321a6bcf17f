"""Server credentials for gRPC whose certificates follow their files, without a restart or a failed call.

gRPC asks for the configuration at every new handshake, on a thread of its own; established connections keep
what they have. So the files are looked at when somebody connects (see `Certificates`).

Meaning as in Karmada's pkg/util/grpcconnection (1.19): certificate and key alone encrypt; with a client CA,
clients must show a certificate that it signed, unless verification is switched off.
"""

import time
from collections.abc import Callable

import grpc

from fairway.service.certificates import Certificates, CertificateSet, TlsFiles


class ServerCertificates(Certificates):
    """The certificates of a gRPC server."""

    def __init__(self, files: TlsFiles, *, clock: Callable[[], float] = time.monotonic) -> None:
        """See `Certificates`. Raises TlsError."""
        super().__init__(files, clock=clock)
        self._verifies = files.verify_clients and files.authorities is not None

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials for ``server.add_secure_port``; every handshake sees the newest usable certificates."""
        served = self.current()

        def newer() -> grpc.ServerCertificateConfiguration | None:
            nonlocal served
            current = self.current()
            if current is served:
                return None
            served = current
            return _configuration(current)

        credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
            _configuration(served), newer, require_client_authentication=self._verifies
        )
        return credentials


def _configuration(current: CertificateSet) -> grpc.ServerCertificateConfiguration:
    configuration: grpc.ServerCertificateConfiguration = grpc.ssl_server_certificate_configuration(
        [(current.key_pem, current.certificate_pem)], root_certificates=current.authorities_pem
    )
    return configuration
