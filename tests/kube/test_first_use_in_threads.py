"""Files are read by a thread each, and msgspec must not work out a type in two threads at once (0.22)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# In a process of its own, because what has been worked out once in this one cannot race any more, and because
# the fault ended the process with a signal.
RACE = """
import sys, threading
from pathlib import Path
{imports}
sys.setswitchinterval(1e-6)
together = threading.Barrier(4)
def read():
    together.wait()
    {call}
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
KUBECONFIG = {
    "current-context": "a",
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
DUMP = {"kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}]}


@pytest.mark.parametrize(
    ("imports", "call", "content"),
    [
        (
            "from fairway.kube.kubeconfig import read_kubeconfig",
            "read_kubeconfig((sys.argv[1],), None, None)",
            KUBECONFIG,
        ),
        ("from fairway.kube.dumps import read_dump", "read_dump(Path(sys.argv[1]))", DUMP),
    ],
    ids=["kubeconfig", "dump"],
)
def test_files_read_by_threads_at_once_do_not_end_the_process(
    imports: str, call: str, content: object, tmp_path: Path
) -> None:
    file = tmp_path / "file.json"
    file.write_text(json.dumps(content))
    program = RACE.format(imports=imports, call=call)
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", program, str(file)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
