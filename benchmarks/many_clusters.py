"""How many clusters can one process serve: how soon are all of them read, in how much memory, at whose cost?

Member clusters of 200 nodes each behind TLS, all read at once. One more, which is a file, is asked a plain
question a hundred times a second meanwhile: its answers must stay right, and soon. In the second case some
clusters accept connections and say nothing, in the third lists come in pages.
"""

import select
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks import cluster
from benchmarks.caller import Connection, header_block
from benchmarks.cluster import Scale, replicas_of
from benchmarks.proc import cpu_s, cpu_wait_s, memory_mib, open_files
from benchmarks.processes import (
    CLUSTER,
    Estimator,
    StartFailed,
    await_listening,
    running_module,
    starting,
    tail,
)
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import REPLICAS, answer_of, replicas_request
from benchmarks.sides import PROBE, Setting
from webhook.certificates import renewed

EACH = Scale(200, 2000)
_FULL_CLUSTERS = 500
_PODS_TO_CLUSTERS = 300
_MEMORY_MIB, _DELAY_MS, _P99_MS = Target(900.0), Target(20.0), Target(50.0)
_ASK_EVERY_S, _LOOK_EVERY_S, _SETTLES_S = 0.01, 2.0, 2.0
_ALL_WITHIN_S = 900.0
_SERVES_WITHIN_S = 60.0
_NO_OPINION = -1
_SYNCED = ("fairway_estimator_cluster_synced", "")
_WORST_DELAY = ("fairway_estimator_loop_worst_delay_seconds", "")


@dataclass(frozen=True, slots=True)
class _Clusters:
    """So many that answer, and so many more that hang."""

    answering: int
    hanging: int = 0
    in_pages: bool = False

    def __str__(self) -> str:
        hanging = f" and {self.hanging} that hang" if self.hanging else ""
        return f"{self.answering} clusters{hanging}, {'in pages' if self.in_pages else 'streamed'}"


def measure(setting: Setting) -> Result:
    """Figures of each case. Raises StartFailed, CallFailed."""
    most = max(1, setting.sync_pods // _PODS_TO_CLUSTERS)
    fewer = max(1, most // 5)
    situations = (
        _Clusters(most),
        _Clusters(fewer),
        _Clusters(fewer, hanging=max(1, fewer * 3 // 7)),
        _Clusters(fewer, in_pages=True),
    )
    return Result(
        "many_clusters",
        f"Many clusters in one process, each of {EACH}, over TLS",
        [_case(situation) for situation in situations],
    )


def _case(clusters: _Clusters) -> Case:
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        directory = Path(name)
        url = stack.enter_context(_fleet(directory, clusters))
        options = ["--snapshot", f"{CLUSTER}={_dump(directory)}"]
        for number in range(clusters.answering + clusters.hanging):
            options += ["--cluster", f"c{number:04d}={_kubeconfig(directory, url, f'c{number:04d}')}"]
        own = stack.enter_context(starting(*options))
        await_listening(own)
        seen = _asked_until_synced(own, clusters.answering + 1)
        time.sleep(_SETTLES_S)
        full = clusters.answering == _FULL_CLUSTERS
        waited_ms = sorted(1e3 * waited_s for waited_s in seen.waited_s)
        figures = [
            Figure("all read after", seen.synced_s, "s"),
            Figure("CPU a cluster", 1e3 * cpu_s(own.pid) / clusters.answering, "ms"),
            Figure("kept from a CPU", seen.cpu_wait_s, "s"),
            Figure("question p50", waited_ms[len(waited_ms) // 2], "ms"),
            Figure("p99", waited_ms[len(waited_ms) * 99 // 100], "ms", _P99_MS),
            Figure("longest stall", 1e3 * seen.worst_delay_s, "ms", _DELAY_MS),
            Figure("memory", memory_mib(own.pid, "VmRSS"), "MiB", _MEMORY_MIB if full else None),
            Figure("peak", memory_mib(own.pid, "VmHWM"), "MiB"),
            Figure("files open a cluster", open_files(own.pid) / clusters.answering, ""),
        ]
        return Case(str(clusters), figures, seen.faults)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What happened until all clusters had been read."""

    synced_s: float
    cpu_wait_s: float
    worst_delay_s: float
    waited_s: list[float]
    faults: list[str]


def _asked_until_synced(own: Estimator, clusters: int) -> _Seen:
    expected = replicas_of(EACH, PROBE)
    headers, message = header_block(REPLICAS, str(own.address)), replicas_request(CLUSTER, PROBE)
    waited_s: list[float] = []
    wrong: set[int] = set()
    worst_s, look_s = 0.0, time.perf_counter()
    with Connection(own.address, timeout_s=60.0) as connection:
        # Until the file has been read, the estimator may say that it has no opinion.
        while answer_of(connection.call(headers, message)) == _NO_OPINION:
            if time.perf_counter() - own.started_s > _SERVES_WITHIN_S:
                raise StartFailed(f"no answer about a file in time:\n{own.last_words()}")
        while True:
            began_s = time.perf_counter()
            if (answer := answer_of(connection.call(headers, message))) != expected:
                wrong.add(answer)
            waited_s.append(time.perf_counter() - began_s)
            if time.perf_counter() >= look_s:
                metrics = own.metrics()
                worst_s = max(worst_s, metrics[_WORST_DELAY])
                took_s = time.perf_counter() - own.started_s
                if metrics[_SYNCED] >= clusters:
                    break
                if took_s > _ALL_WITHIN_S:
                    raise StartFailed(
                        f"{metrics[_SYNCED]:.0f} of {clusters} clusters read after {took_s:.0f} s:\n"
                        f"{own.last_words()}"
                    )
                look_s = time.perf_counter() + _LOOK_EVERY_S
            time.sleep(_ASK_EVERY_S)
    faults = [f"answered {sorted(wrong)}, the right answer is {expected}"] if wrong else []
    return _Seen(took_s, cpu_wait_s(own.pid), worst_s, waited_s, faults)


@contextmanager
def _fleet(directory: Path, clusters: _Clusters) -> Iterator[str]:
    issued = renewed(None, "127.0.0.1", datetime.now(UTC))
    certificate, key = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(issued.certificate)
    key.write_bytes(issued.key)
    (directory / "ca.crt").write_bytes(issued.bundle)
    command = ["benchmarks.fleet", "--nodes", str(EACH.nodes), "--pods", str(EACH.pods)]
    command += ["--hanging-from", str(clusters.answering)]
    command += ["--certificate", str(certificate), "--key", str(key)]
    command += ["--in-pages"] if clusters.in_pages else []
    with running_module(command) as (process, log):
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _SERVES_WITHIN_S)
        url = process.stdout.readline().decode().strip() if readable else ""
        if not url:
            raise StartFailed(f"the clusters did not come up:\n{tail(log)}")
        yield url


def _kubeconfig(directory: Path, url: str, name: str) -> Path:
    server = {"server": f"{url}/{name}", "certificate-authority": str(directory / "ca.crt")}
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": server}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    file = directory / f"{name}.yaml"
    file.write_bytes(msgspec.json.encode(config))
    return file


def _dump(directory: Path) -> Path:
    items = [{"apiVersion": "v1", "kind": "Node", **node} for node in cluster.nodes(EACH)]
    items += [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in cluster.pods(EACH)]
    file = directory / "dump.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return file
