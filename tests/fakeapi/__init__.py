"""A Kubernetes API server in a few hundred lines, for tests and benchmarks; kept honest by tests/kube."""

from tests.fakeapi.faults import ConnectionCut, Cut
from tests.fakeapi.seen import Seen, requests, writes
from tests.fakeapi.server import FakeApi
from tests.fakeapi.store import ApiFault
from tests.fakeapi.writes import Write

__all__ = ["ApiFault", "ConnectionCut", "Cut", "FakeApi", "Seen", "Write", "requests", "writes"]
