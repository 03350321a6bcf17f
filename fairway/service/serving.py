"""What HTTPS servers of ours have in common: TLS 1.3, HTTP/1.1, and keys that reach no disk."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def serving_context() -> ssl.SSLContext:
    """A server's context, TLS 1.3 only, still without a certificate."""
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
