"""TLS of our HTTPS servers: version 1.3, HTTP/1.1, and keys that reach no disk.

The certificate may follow its files without a restart: what is served is looked up at each handshake, and
connections that are open keep what they have (see `Certificates`).
"""

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fairway.service.certificates import Certificates, CertificateSet, TlsFiles


def following_context(files: TlsFiles, *, clock: Callable[[], float] = time.monotonic) -> ssl.SSLContext:
    """A server's context with the pair in ``files``; ``clock`` as for `Certificates`. Raises TlsError."""
    certificates = Certificates(files, clock=clock)
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
    with as_files(current.certificate_pem or b"", current.key_pem or b"") as (certificate, key):
        context.load_cert_chain(certificate, key, password="")
    return context


def serving_context() -> ssl.SSLContext:
    """A server's context, still without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


@contextmanager
def as_files(*contents: bytes) -> Iterator[list[str]]:
    """Paths for a library that reads files only; nothing reaches a disk."""
    descriptors = [os.memfd_create("pem", os.MFD_CLOEXEC) for _ in contents]
    try:
        for descriptor, content in zip(descriptors, contents, strict=True):
            os.write(descriptor, content)
        yield [f"/proc/self/fd/{descriptor}" for descriptor in descriptors]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
