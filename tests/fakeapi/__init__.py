"""A Kubernetes API server in a few hundred lines, for tests and benchmarks; kept honest by tests/kube."""

from tests.fakeapi.server import FakeApi

__all__ = ["FakeApi"]
