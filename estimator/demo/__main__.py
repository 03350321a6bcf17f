"""``python -m estimator.demo``: the real server on sample clusters, asked as Karmada asks."""

import asyncio
import gzip
import json
import signal
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import grpc
import yaml
from rich.console import Console
from rich.text import Text

from estimator.demo.asking import Reply, ask
from estimator.demo.fleet import fleet
from estimator.demo.objects import Json, as_list
from estimator.demo.questions import Question, questions
from estimator.demo.report import answers_by_rpc, next_steps, output
from estimator.demo.server_process import Server, ServerError, serving


def main() -> int:
    """Show everything; 0 when every question was answered, 1 when the server failed."""
    console = output()
    server = Server()
    with tempfile.TemporaryDirectory(prefix="fairway-demo-") as folder:
        dumps = write_dumps(fleet(datetime.now(UTC)), Path(folder))
        console.print("Three sample clusters, each as kubectl would dump it:")
        for name, file in dumps.items():
            console.print(f"  {name:8} {file.name:16} {file.stat().st_size / 1000:5.0f} kB")
        try:
            answers = asyncio.run(_run(server, dumps))
        except (ServerError, grpc.aio.AioRpcError) as error:
            _show_failure(console, server, error)
            return 1
        except (KeyboardInterrupt, asyncio.CancelledError):
            console.print("interrupted")
            return 1
    console.print(f"\nThe server read them and answered {len(answers) * len(dumps)} gRPC calls:\n")
    console.print(answers_by_rpc(answers))
    # Not broken: commands are to be copied.
    console.print(Text(next_steps(_interpreter())), soft_wrap=True)
    return 0


def _interpreter() -> str:
    """The running Python, as one would type it here."""
    python = Path(sys.executable)
    return str(python.relative_to(Path.cwd())) if python.is_relative_to(Path.cwd()) else str(python)


def write_dumps(clusters: Mapping[str, list[Json]], folder: Path) -> dict[str, Path]:
    """Each cluster as a file, in one after the other of the forms that a dump may take."""
    paths: dict[str, Path] = {}
    for (name, objects), suffix in zip(clusters.items(), (".json", ".yaml", ".json.gz"), strict=True):
        text = json.dumps(as_list(objects), indent=4) + "\n"
        paths[name] = path = folder / f"{name}{suffix}"
        match suffix:
            case ".json":
                path.write_text(text, encoding="utf-8")
            case ".yaml":
                path.write_text(yaml.safe_dump(json.loads(text)), encoding="utf-8")
            case _:
                path.write_bytes(gzip.compress(text.encode()))
    return paths


async def _run(server: Server, dumps: Mapping[str, Path]) -> list[tuple[Question, Mapping[str, Reply]]]:
    task = asyncio.current_task()
    assert task is not None
    # Ended from outside, the demonstration still ends its server.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with serving(server, dumps), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        return [
            (question, {cluster: await ask(channel, question, cluster) for cluster in dumps})
            for question in questions()
        ]


def _show_failure(console: Console, server: Server, error: Exception) -> None:
    reason = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
    console.print(Text(f"\nThe demonstration failed: {reason}. The end of the server's log:\n"))
    console.print(Text("".join(server.log) or "(nothing)"))


if __name__ == "__main__":
    sys.exit(main())
