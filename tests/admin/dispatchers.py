"""A dispatcher's visibility API with answers as given, in a thread of its own."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from fairway.visibility import (
    QueueList,
    QueueView,
    Reservation,
    ReservedAmount,
    Start,
    Usage,
    Waiting,
    WorkloadView,
)

GPU = "nvidia.com/gpu"


def usage(used: int, nominal: int, **limits: int) -> Usage:
    return Usage("h100", GPU, nominal, used, max(0, used - nominal), **limits)


def waiting(name: str, position: int, kind: str = "WaitingForQuota") -> WorkloadView:
    return WorkloadView(
        namespace="team-a",
        name=name,
        kind="Job",
        binding=f"{name}-job",
        state="Pending",
        local_queue="main",
        cluster_queue="research",
        service_class="batch",
        priority=100,
        position_in_cluster_queue=position,
        position_in_local_queue=position,
        enqueued_at="2026-03-14T09:26:53.000Z",
        request={GPU: 8, "cpu": 4500},
        waiting=Waiting(kind, "2 nvidia.com/gpu too few are left", "workloads finish"),
    )


def started(name: str, start: Start, **clusters: int) -> WorkloadView:
    return WorkloadView("team-a", name, "Job", f"{name}-job", "Starting", clusters=clusters, start=start)


HELD = Reservation(
    "Reserved",
    f"16 {GPU} of flavor h100 reserved for it; it can start at 2026-03-14T10:26:53.000Z at the latest",
    since="2026-03-14T09:27:53.000Z",
    drains_at="2026-03-14T09:36:53.000Z",
    held_until="2026-03-15T09:27:53.000Z",
    starts_at="2026-03-14T10:26:53.000Z",
    cluster="east",
    amounts=[ReservedAmount("h100", GPU, 16, 12)],
)
PRETRAIN = started("pretrain", Start("Placed", 16, 14, 3, 240, "it is the fullest", ["east"]), east=16)
RESEARCH = QueueView(
    "research",
    "all",
    "BestEffortFIFO",
    pending=3,
    admitted=2,
    usage=[usage(12, 8, borrowing_limit=8)],
    waiting={"WaitingForQuota": 2, "NeverFits": 1},
    workloads=[waiting("train", 1), waiting("tune", 2)],
    starting=3,
    starts=[PRETRAIN, started("sweep", Start("Placing"))],
)
QUEUES = QueueList(
    [QueueView("all", usage=[usage(0, 8)]), RESEARCH, QueueView("idle", "all", stopped="stopPolicy is Hold")],
    unresolved=[waiting("lost", 0, "QueueNotFound")],
    in_flight=2,
    window=10,
    as_of="2026-03-14T09:27:00Z",
)


@contextmanager
def dispatcher(answers: Mapping[str, object]) -> Iterator[str]:
    """Serve JSON, or bytes as they are, by path behind ``/visibility/v1``; the URL of the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0].removeprefix("/visibility/v1"))
            body = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(b"no such queue: known are research, all" if answer is None else body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
