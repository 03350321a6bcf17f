"""How long after a pod was created does the answer change?

From sending the creation to the API server to the first answer that takes the pod into account. Each
pod holds one GPU on a node where GPUs are what is scarce, so each must lower the answer by exactly one.
"""

import http.client
import time
from collections.abc import Iterator
from statistics import median
from urllib.parse import urlsplit

import msgspec

from benchmarks.caller import Connection, header_block
from benchmarks.cluster import GPU, PodSize, Scale, free_gpus, is_cordoned, kind_of, node_name, replicas_of
from benchmarks.processes import CLUSTER, running_api, starting_estimator
from benchmarks.report import Case, Figure, Result
from benchmarks.shapes import REPLICAS, answer_of, replicas_request
from benchmarks.sides import Setting, await_right_answer

_ONE_GPU = PodSize(cpu_milli=1000, memory_gib=1, gpus=1)
_CHANGES_WITHIN_S = 10.0
_STALLS = ("fairway_estimator_loop_stalls_total", "")


def measure(setting: Setting) -> Result:
    """Figures over as many pods as can be created one by one in the time. Raises StartFailed, CallFailed."""
    scale = setting.main_scale
    with running_api(scale) as api, starting_estimator(api.url) as own:
        await_right_answer(own, scale)
        api_address = urlsplit(api.url)
        client = http.client.HTTPConnection(api_address.hostname or "", api_address.port)
        headers = header_block(REPLICAS, str(own.address))
        message = replicas_request(CLUSTER, _ONE_GPU)
        answer, faults, created_ms, changed_ms = replicas_of(scale, _ONE_GPU), [], [], []
        stalls_before = own.metrics()[_STALLS]
        until_s = time.perf_counter() + setting.seconds
        with Connection(own.address) as connection:
            for number, node in enumerate(_with_free_gpus(scale)):
                began_s = time.perf_counter()
                _create(client, number, node)
                created_ms.append(1e3 * (time.perf_counter() - began_s))
                seen = answer
                while seen == answer and time.perf_counter() < began_s + _CHANGES_WITHIN_S:
                    seen = answer_of(connection.call(headers, message))
                changed_ms.append(1e3 * (time.perf_counter() - began_s))
                if seen != answer - 1:
                    faults.append(f"answered {seen} after pod {number}, expected {answer - 1}")
                    break
                answer = seen
                if time.perf_counter() > until_s:
                    break
        client.close()
        stalls = own.metrics()[_STALLS] - stalls_before
    figures = [
        Figure("p50", median(changed_ms), "ms"),
        Figure("longest", max(changed_ms), "ms"),
        Figure("of that p50 the API server", median(created_ms), "ms"),
        Figure("stalls", stalls, ""),
        Figure("pods created", len(changed_ms), ""),
    ]
    return Result(
        "event_latency", "From creating a pod to a changed answer", [Case(str(scale), figures, faults)]
    )


def _with_free_gpus(scale: Scale) -> Iterator[int]:
    """A node for each GPU that an untolerant pod could get, spread over the nodes."""
    for nth in range(8):
        for node in range(scale.nodes):
            if nth < free_gpus(scale, node) and not kind_of(node).taint and not is_cordoned(node):
                yield node


def _create(client: http.client.HTTPConnection, number: int, node: int) -> None:
    amounts = {"cpu": "1", "memory": "1Gi", GPU: "1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"created-{number}"},
        "spec": {
            "nodeName": node_name(node),
            "containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
        },
    }
    body, headers = msgspec.json.encode(pod), {"Content-Type": "application/json"}
    client.request("POST", "/api/v1/namespaces/team-1/pods", body, headers)
    response = client.getresponse()
    answer = response.read()
    if response.status != http.HTTPStatus.CREATED:
        raise RuntimeError(f"the API server refused a pod: {response.status} {answer[:200]!r}")
