"""Random life in a member cluster: nodes, pods and quotas that come, change and go, some of them broken."""

import json
import random
from collections.abc import Callable
from typing import Any

from sandbox.fakeapi import FakeApi

Obj = dict[str, Any]

_NAMES = tuple(f"n{number}" for number in range(30))
_TPU_HOSTS = frozenset(_NAMES[:8])
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
        chips = "google.com/tpu" if name in _TPU_HOSTS else "nvidia.com/gpu"
        size = {resource: self._quantity() for resource in ("cpu", "memory", chips, "pods")}
        taint = {"key": "dedicated", "value": self._rng.choice(("a", "b")), "effect": "NoSchedule"}
        return {
            "metadata": {"name": name, "labels": self._labels(name), "annotations": self._annotations(name)},
            "spec": {"unschedulable": self._rng.random() < 0.1, "taints": [taint] * self._rng.randrange(2)},
            "status": {"allocatable": size if self._rng.random() < 0.95 else None},
        }

    def _labels(self, name: str) -> Obj:
        labels = {
            "kubernetes.io/hostname": name,
            "zone": self._rng.choice(("z1", "z2")),
            "example.com/rack": self._rng.choice(("r1", "r2", "r3", "")),
        }
        if name in _TPU_HOSTS:
            labels["cloud.google.com/gke-tpu-accelerator"] = "tpu-v6e-slice"
            labels["cloud.google.com/gke-tpu-topology"] = self._rng.choice(
                ("4x4", "4x4", "4x4", "2x2", "4by4")
            )
            labels["cloud.google.com/gke-nodepool"] = f"pool-{int(name[1:]) // 4}"
        return {key: value for key, value in labels.items() if self._rng.random() < 0.97}

    def _annotations(self, name: str) -> Obj:
        """Devices that are shared, on some nodes, sometimes cut short."""
        if self._rng.random() < 0.7:
            return {}
        device = {
            "id": f"GPU-{name}",
            "index": 0,
            "count": 10,
            "devmem": 24000,
            "devcore": 100,
            "type": "A10",
        }
        told = json.dumps([{**device, "numa": 0, "mode": "hami-core", "health": True}])
        cut = self._rng.randrange(len(told)) if self._rng.random() < 0.1 else len(told)
        return {"hami.io/node-nvidia-register": told[:cut]}

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
