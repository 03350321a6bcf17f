"""What gRPC's C core reads from the environment, set before the core is loaded.

Karmada's estimator refuses TLS below 1.3, and grpcio has no option for that. The core does have a list of
cipher suites, which governs TLS 1.2 only (the suites of TLS 1.3 are fixed). A list that holds nothing but a
pre-shared-key suite, with no pre-shared key configured, leaves TLS 1.2 without a suite to agree on, so that
such a client is refused with ``no shared cipher`` and TLS 1.3 is untouched.

The core reads these variables once, while ``grpc`` is imported: hence a module that does not import it.
"""

import os
import sys

_NEVER_NEGOTIATED = "PSK-AES128-CBC-SHA"


def prepare_grpc_environment() -> None:
    """Make every TLS handshake of this process TLS 1.3 or newer, and keep the core's own chatter off stderr.

    The core writes an unstructured line for each failed handshake (a TCP probe is one); only its errors
    remain, unless ``GRPC_VERBOSITY`` is set. Raises RuntimeError when ``grpc`` is already imported, since the
    setting would be lost without a trace.
    """
    if "grpc" in sys.modules:
        raise RuntimeError(
            "prepare_grpc_environment() must run before grpc is imported: call it first in main()"
        )
    os.environ["GRPC_SSL_CIPHER_SUITES"] = _NEVER_NEGOTIATED
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
