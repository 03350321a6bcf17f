"""``python -m tests.fuzz --seconds 600``: does the server survive, and do other callers notice anything?

A real server process serves two clusters: ``fuzzed``, a fake API server whose objects change at random and
which now and then restarts, hangs, expires its history or refuses; and ``control``, a file. Random requests
go to both services. After each round the control question must have its one right answer, no reply may be an
internal error or contradict itself, and the process must live within a bounded amount of memory. At the end,
the answers about the fuzzed cluster must equal those of a server started afresh on the same API server.

With ``--cases 10000`` instead: random clusters and workloads, and the answers what kube-scheduler binds.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

import grpc

from estimator.pb import estimator_pb2 as pb
from sandbox.fakeapi import FakeApi
from tests.estimator.serving import Caller, CapacityCaller, gpu_node, replicas_request, write_dump
from tests.fuzz.capacity_answers import flaw
from tests.fuzz.capacity_requests import CAPACITY_RPCS, capacity_request
from tests.fuzz.objects import Life
from tests.fuzz.refusals import Refusals
from tests.fuzz.requests import RPCS, request
from tests.fuzz.truth import judged
from tests.truth.judging import Figures

_ANSWERS = {
    "MaxAvailableReplicas": lambda data: pb.MaxAvailableReplicasResponse.FromString(data).max_replicas,
    "MaxAvailableComponentSets": lambda data: pb.MaxAvailableComponentSetsResponse.FromString(data).max_sets,
    "GetUnschedulableReplicas": lambda data: (
        pb.UnschedulableReplicasResponse.FromString(data).unschedulable_replicas
    ),
}
_LARGEST = 2**31 - 2
_MAX_GROWTH_MIB = 64
_ROUND_CALLS, _ROUND_CAPACITY_CALLS = 200, 40
_ROUND_EVENTS = 50
_CATCH_UP_TRIES = 120
_CONTROL = replicas_request("control", {"nvidia.com/gpu": "1"})
_CONTROL_ANSWER = 400


_drains: set[asyncio.Task[None]] = set()


class Found(Exception):
    """The fuzzing found something; the message says what to look at."""


async def fuzz(seconds: float, seed: int) -> int:
    """Rounds until the time is up; how many calls were made. Raises Found."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        dump = write_dump(Path(folder) / "control.json", [gpu_node(f"c{number}", 8) for number in range(50)])
        kubeconfig = Path(folder) / "kubeconfig"
        async with FakeApi() as api:
            write_kubeconfig(kubeconfig, api.url)
            server, port = await start(kubeconfig, dump)
            try:
                calls = await storm(api, server.pid, port, rng, seconds)
                await compare(api, kubeconfig, dump, port, rng)
            finally:
                await end(server)
    return calls


async def storm(api: FakeApi, pid: int, port: int, rng: random.Random, seconds: float) -> int:
    life = Life(api, rng)
    calls, rounds, base_mib = 0, 0, 0
    ends_s = time.monotonic() + seconds
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        caller, own = Caller(channel), CapacityCaller(channel)
        while time.monotonic() < ends_s:
            await disturb(api, rng)
            for _ in range(_ROUND_EVENTS):
                life.step()
            await asyncio.gather(
                *(one_call(caller, rng) for _ in range(_ROUND_CALLS)),
                *(one_capacity_call(own, rng) for _ in range(_ROUND_CAPACITY_CALLS)),
            )
            answer = (await caller.replicas(_CONTROL)).value
            if answer != _CONTROL_ANSWER:
                raise Found(f"round {rounds}: the control answer is {answer} instead of {_CONTROL_ANSWER}")
            calls += _ROUND_CALLS + _ROUND_CAPACITY_CALLS
            rounds += 1
            mib = resident_mib(pid)
            if rounds == 20:
                base_mib = mib
            if base_mib and mib > base_mib + _MAX_GROWTH_MIB:
                raise Found(f"round {rounds}: {mib} MiB resident, {base_mib} after the first rounds: a leak")
            if rounds % 20 == 0:
                print(f"{calls:>9} calls, {rounds * _ROUND_EVENTS} events, {mib} MiB", flush=True)
    return calls


async def one_call(caller: Caller, rng: random.Random) -> None:
    rpc = rng.choice(RPCS)
    data = request(rng, rpc)
    refusals = Refusals()
    while True:
        try:
            answer, trailing = await caller.raw(rpc, data, timeout_s=20, explain=True)
            break
        except grpc.aio.AioRpcError as error:
            if not await refusals.again(error.code(), error.details()):
                raise Found(f"{rpc} {data.hex()}: gRPC error {error.code()}: {error.details()}") from None
    value = _ANSWERS[rpc](answer)
    if not -1 <= value <= _LARGEST:
        raise Found(f"{rpc} {data.hex()}: answered {value}")
    if "(internal)" in trailing["fairway-reasons"]:
        raise Found(f"{rpc} {data.hex()}: {json.loads(trailing['fairway-reasons'])}")


async def one_capacity_call(caller: CapacityCaller, rng: random.Random) -> None:
    rpc = rng.choice(CAPACITY_RPCS)
    data = capacity_request(rng, rpc)
    found = await flaw(caller, rpc, data)
    if found is not None:
        raise Found(f"{rpc} {data.hex()}: {found}")


async def disturb(api: FakeApi, rng: random.Random) -> None:
    """Now and then the API server has a bad moment."""
    match rng.randrange(40):
        case 0:
            await api.refuse()
            await api.start()
        case 1:
            api.drop_connections()
        case 2:
            api.compact()
            api.drop_connections()
        case 3:
            api.fail(rng.choice((429, 500, 503, 410)), times=3)
        case 4:
            api.end_watches()


async def compare(api: FakeApi, kubeconfig: Path, dump: Path, port: int, rng: random.Random) -> None:
    """What was built up event by event answers like what is read at once."""
    fresh, fresh_port = await start(kubeconfig, dump)
    shapes = [
        replicas_request(
            "fuzzed", {"cpu": f"{rng.randint(1, 900)}m", "nvidia.com/gpu": str(rng.randint(0, 4))}
        )
        for _ in range(200)
    ]
    try:
        async with (
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as old_channel,
            grpc.aio.insecure_channel(f"127.0.0.1:{fresh_port}") as fresh_channel,
        ):
            for _ in range(_CATCH_UP_TRIES):
                old = [await Caller(old_channel).replicas(shape) for shape in shapes]
                if old == [await Caller(fresh_channel).replicas(shape) for shape in shapes]:
                    return
                # Both may still be catching up with the last events and faults.
                await asyncio.sleep(0.5)
            raise Found("after the storm the answers differ from those of a fresh server")
    finally:
        await end(fresh)


async def start(kubeconfig: Path, dump: Path) -> tuple[asyncio.subprocess.Process, int]:
    """A server process that answers the control question, and its port."""
    arguments = ["--cluster", f"fuzzed={kubeconfig}", "--snapshot", f"control={dump}", "--server-port=0"]
    endpoints = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--logging-format=json"]
    gates = "--feature-gates=SchedulingOvercommitProtection=true,ResourceQuotaEstimate=true"
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "estimator", *arguments, *endpoints, gates, stderr=asyncio.subprocess.PIPE
    )
    assert server.stderr is not None
    async with asyncio.timeout(30):
        async for line in server.stderr:
            record = json.loads(line)
            if "port" in record:
                _drains.add(asyncio.create_task(drain(server.stderr)))
                return server, int(record["port"])
    raise Found("the server did not start")


async def drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(1 << 16):
        pass


async def end(server: asyncio.subprocess.Process) -> None:
    if server.returncode is not None:
        raise Found(f"the server died with exit code {server.returncode}")
    server.terminate()
    if await server.wait() != 0:
        raise Found(f"the server ended with exit code {server.returncode}")


def write_kubeconfig(file: Path, url: str) -> None:
    cluster = {"name": "c", "cluster": {"server": url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "contexts": [context],
        "users": [user],
    }
    file.write_text(json.dumps({**config, "current-context": "c"}))


def resident_mib(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 >> 20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--cases", type=int, default=0)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    if asked.cases:
        logging.disable(logging.WARNING)
        tally = Figures()
        for each in judged(asked.cases, asked.seed):
            for fault in each.faults():
                sys.exit(f"FOUND: {fault}")
            tally.add(each)
        print(*tally.lines(), f"{asked.cases} cases, nothing found", sep="\n")
        sys.exit()
    try:
        made = asyncio.run(fuzz(asked.seconds, asked.seed))
    except Found as found:
        sys.exit(f"FOUND: {found}")
    print(f"{made} calls, nothing found")
