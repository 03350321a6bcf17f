"""The servers of the conformance suite, for what installing relies on."""

from tests.kube.conftest import real, server

__all__ = ["real", "server"]
