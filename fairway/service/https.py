"""A TLS context for an HTTP server whose certificate follows its files, without a restart.

What is served is looked up at each handshake, at most once a second; connections that are open keep what they
have. Files that do not fit together leave the last good pair in force (`fairway.service.tls`).
"""

import ssl
import time
from collections.abc import Callable

from fairway.service.certificates import CertificateSet, TlsFiles
from fairway.service.serving import as_files, serving_context
from fairway.service.tls import ServerCertificates


def following_context(files: TlsFiles, *, clock: Callable[[], float] = time.monotonic) -> ssl.SSLContext:
    """TLS 1.3 and HTTP/1.1 with the pair in ``files``. Raises TlsError.

    ``clock`` gives seconds and paces the looks at the files.
    """
    certificates = ServerCertificates(files, clock=clock)
    served = certificates.current()
    first = newest = _context(served)

    def choose(connection: ssl.SSLObject, name: str, asked: ssl.SSLContext) -> None:
        nonlocal served, newest
        current = certificates.current()
        if current is not served:
            served, newest = current, _context(current)
        connection.context = newest

    # OpenSSL asks for every client, also for one that names no host.
    first.sni_callback = choose
    return first


def _context(current: CertificateSet) -> ssl.SSLContext:
    context = serving_context()
    with as_files(current.certificate_pem, current.key_pem) as (certificate, key):
        context.load_cert_chain(certificate, key, password="")
    return context
