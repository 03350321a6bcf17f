"""Pods that come and go on a fake API server, so many events a second, until it is ended.

A process of its own, so that whoever measures is not held up by it. Each pod holds a core of a node.
"""

import argparse
import http.client
import itertools
import time
from urllib.parse import urlsplit

import msgspec

from benchmarks.cluster import node_name

_PODS = "/api/v1/namespaces/team-1/pods"
_KEPT = 25
_OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "events", "uid": "1", "controller": True}


def make(url: str, nodes: int, rate: float) -> None:
    """Create a pod, and from the 25th on delete another, in turn."""
    address = urlsplit(url)
    client = http.client.HTTPConnection(address.hostname or "", address.port)
    due_s = time.monotonic()
    for number in itertools.count():
        _send(client, "POST", _PODS, _pod(number // 2, nodes)) if number % 2 == 0 else _end(client, number)
        due_s += 1 / rate
        time.sleep(max(0.0, due_s - time.monotonic()))


def _end(client: http.client.HTTPConnection, number: int) -> None:
    gone = number // 2 - _KEPT
    if gone >= 0:
        _send(client, "DELETE", f"{_PODS}/event-{gone}")


def _pod(number: int, nodes: int) -> object:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"event-{number}", "ownerReferences": [_OWNER]},
        "spec": {
            "nodeName": node_name(number * 7 % nodes),
            "containers": [{"name": "main", "resources": resources}],
        },
    }


def _send(client: http.client.HTTPConnection, method: str, path: str, body: object = None) -> None:
    data = None if body is None else msgspec.json.encode(body)
    client.request(method, path, data, {"Content-Type": "application/json"})
    response = client.getresponse()
    answer = response.read()
    if response.status >= 300:
        raise RuntimeError(f"the API server refused {method} {path}: {response.status} {answer[:200]!r}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="pods that come and go")
    parser.add_argument("--url", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    asked = parser.parse_args()
    make(asked.url, asked.nodes, asked.rate)
