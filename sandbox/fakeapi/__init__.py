"""A Kubernetes API server in a few hundred lines, for tests and benchmarks; kept honest by tests/kube."""

from sandbox.fakeapi.faults import ConnectionCut, Cut
from sandbox.fakeapi.seen import Seen, requests, writes
from sandbox.fakeapi.server import FakeApi
from sandbox.fakeapi.store import ApiFault
from sandbox.fakeapi.writes import Write

__all__ = ["ApiFault", "ConnectionCut", "Cut", "FakeApi", "Seen", "Write", "requests", "writes"]
