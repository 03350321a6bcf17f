"""Random life in a member cluster: nodes, pods and quotas that come, change and go, some of them broken."""

import random
from collections.abc import Callable
from typing import Any

from tests.fakeapi import FakeApi

Obj = dict[str, Any]

_NAMES = tuple(f"n{number}" for number in range(30))
_QUANTITIES = ("1", "8", "500m", "64Gi", "0", "-2", "1e3", "100Ei", 4, 2.5)
_BROKEN = ("one", "", "1 Gi", "9" * 200)


class Life:
    """Changes one thing of the cluster at each step; quantities may be broken, types never are."""

    def __init__(self, api: FakeApi, rng: random.Random) -> None:
        self._api = api
        self._rng = rng
        self._nodes: set[str] = set()
        self._pods: set[str] = set()
        self._number = 0

    def step(self) -> None:
        """One event."""
        act: Callable[[], None] = self._rng.choice(
            (self._node, self._pod, self._pod, self._pod, self._broken_line)
        )
        act()

    def _node(self) -> None:
        name = self._rng.choice(_NAMES)
        path = f"/api/v1/nodes/{name}"
        if name not in self._nodes:
            self._nodes.add(name)
            self._api.create("/api/v1/nodes", self._random_node(name))
        elif self._rng.random() < 0.4:
            self._nodes.discard(name)
            self._api.delete(path)
        else:
            changed = self._random_node(name)
            self._api.update(path, lambda node: node.update(spec=changed["spec"], status=changed["status"]))

    def _pod(self) -> None:
        if self._pods and self._rng.random() < 0.4:
            name = self._rng.choice(sorted(self._pods))
            self._pods.discard(name)
            self._api.delete(f"/api/v1/namespaces/default/pods/{name}")
            return
        self._number += 1
        name = f"p{self._number}"
        self._pods.add(name)
        self._api.create("/api/v1/namespaces/default/pods", self._random_pod(name))

    def _broken_line(self) -> None:
        # The stream goes on after an event that nobody can read.
        self._api.emit("/api/v1/pods", b'{"type":"ADDED","object":{"metadata":{"name":7}}}')

    def _quantity(self) -> object:
        return self._rng.choice(_BROKEN) if self._rng.random() < 0.02 else self._rng.choice(_QUANTITIES)

    def _random_node(self, name: str) -> Obj:
        size = {resource: self._quantity() for resource in ("cpu", "memory", "nvidia.com/gpu", "pods")}
        taint = {"key": "dedicated", "value": self._rng.choice(("a", "b")), "effect": "NoSchedule"}
        return {
            "metadata": {"name": name, "labels": {"zone": self._rng.choice(("z1", "z2"))}},
            "spec": {"unschedulable": self._rng.random() < 0.1, "taints": [taint] * self._rng.randrange(2)},
            "status": {"allocatable": size if self._rng.random() < 0.95 else None},
        }

    def _random_pod(self, name: str) -> Obj:
        container = {
            "name": "main",
            "resources": {"requests": {"cpu": self._quantity(), "nvidia.com/gpu": self._quantity()}},
        }
        return {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": self._rng.choice((*_NAMES, "unknown", "")), "containers": [container]},
            "status": {"phase": self._rng.choice(("Running", "Pending", "Unknown"))},
        }
