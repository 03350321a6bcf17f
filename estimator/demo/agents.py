"""What node agents would have written of the sample clusters' GPUs: who works, who idles, what is broken."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estimator.demo.objects import Context, Json
from fairway.names import API_VERSION
from fairway.usage.definitions import THRESHOLDS

_GIB = 1024**3
_WINDOW_S = 300
_DAYS = 10
_QUIET_PERCENT = THRESHOLDS.quiet_percent


@dataclass(frozen=True, slots=True)
class Load:
    """What a device does: utilisation in percent, memory at its peak, and since when it has done nothing."""

    p50: int
    p95: int
    memory_gib: int
    idle_min: float | None = None
    throttled_s: int = 0


BUSY = Load(94, 99, 71)
STEADY = Load(61, 88, 52)
LIGHT = Load(9, 31, 9)
FORGOTTEN = Load(0, 0, 74, idle_min=26 * 60)
QUIET = Load(0, 2, 1, idle_min=12)
SMALL = Load(35, 60, 22)
UNUSED = Load(0, 1, 1, idle_min=190)
HOT = Load(92, 98, 66, throttled_s=84)
NOTHING = Load(0, 0, 0, idle_min=60 * 24)


@dataclass(frozen=True, slots=True)
class Sick:
    """What is wrong with a device: its health, a code, a sentence, and since when."""

    health: str
    code: str
    message: str
    minutes: float


def node_devices(
    ctx: Context,
    node: str,
    product: str,
    memory_gib: int,
    holding: Iterable[tuple[Json, Iterable[Load]]] = (),
    *,
    devices: int = 8,
    instances: Iterable[tuple[Json, Load]] = (),
    sick: Mapping[int, Sick] | None = None,
) -> Json:
    """The object of one node. ``holding``: pods and what each of their devices does, in order of the devices.

    ``instances``: pods that hold a MIG instance ``3g.40gb`` each, two on a device, behind the whole devices.
    """
    sick, instances = sick or {}, tuple(instances)
    held = [(pod, load) for pod, loads in holding for load in loads]
    whole: list[Json] = []
    for index in range(devices):
        pod, load = held[index] if index < len(held) else (None, NOTHING)
        whole.append(_device(ctx, index, product, memory_gib, pod, load, sick.get(index)))
    cut: list[Json] = []
    for number, (pod, load) in enumerate(instances):
        if number % 2 == 0:
            parent = _device(ctx, devices + number // 2, product, memory_gib, None, None, None)
            cut.append({**parent, "migEnabled": True})
        made = _device(ctx, devices + number // 2, product, memory_gib // 2, pod, load, None, kind="MIG")
        cut.append({**made, "parent": parent["id"], "migProfile": "3g.40gb"})
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeDevices",
        "metadata": {"name": node, "uid": ctx.uid(), "resourceVersion": ctx.version()},
        "observedAt": ctx.ago(1),
        "windowSeconds": _WINDOW_S,
        "agent": {"version": "0.1.0"},
        "driver": {"version": "580.95.05", "cudaVersion": "13.0"},
        "devices": [*whole, *cut],
        "days": _days(ctx, [*((pod, load, 2) for pod, load in held), *((*one, 1) for one in instances)]),
    }


def _days(ctx: Context, held: Iterable[tuple[Json, Load, int]]) -> list[Json]:
    """As if each pod had been there all the time and done the same; of halves of devices so many."""
    held = tuple(held)
    found: list[Json] = []
    for ago in range(_DAYS - 1, -1, -1):
        date, _, time = ctx.ago(1 + 24 * 60 * ago).partition("T")
        hours, minutes, seconds = (int(part) for part in time[:8].split(":"))
        observed_s = 86_400 if ago else 3600 * hours + 60 * minutes + seconds
        teams: dict[str, list[int]] = {}
        for pod, load, halves in held:
            metadata = pod["metadata"]
            assert isinstance(metadata, dict)
            amounts = teams.setdefault(str(metadata["namespace"]), [0, 0, 0])
            amounts[0] += halves * observed_s // 2
            amounts[1] += halves * observed_s * load.p50 // 200
            amounts[2] += halves * observed_s // 2 if load.p95 < _QUIET_PERCENT else 0
        lines: list[Json] = [
            {
                "namespace": namespace,
                "allocatedSeconds": allocated,
                "measuredSeconds": allocated,
                "usedSeconds": used,
                "quietSeconds": idle,
            }
            for namespace, (allocated, used, idle) in sorted(teams.items())
        ]
        found.append({"date": date, "observedSeconds": observed_s, "teams": lines})
    return found


def _device(
    ctx: Context,
    index: int,
    product: str,
    memory_gib: int,
    pod: Json | None,
    load: Load | None,
    sick: Sick | None,
    kind: str = "GPU",
) -> Json:
    made: Json = {
        "id": f"{kind}-{ctx.uid()}",
        "index": index,
        "product": product,
        "memoryBytes": memory_gib * _GIB,
        "busId": f"00000000:{16 + index:02X}:00.0",
        "numaNode": index // 4,
        "health": sick.health if sick else "Healthy",
    }
    if sick:
        made["problems"] = [{"code": sick.code, "message": sick.message, "since": ctx.ago(sick.minutes)}]
    made["holders"] = [] if pod is None else [_holder(pod)]
    if load is not None and (sick is None or sick.health != "Lost"):
        made["window"] = _window(ctx, load)
    return made


def _holder(pod: Json) -> Json:
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    held = {"namespace": metadata["namespace"], "pod": metadata["name"], "uid": metadata["uid"]}
    return {**held, "container": "main", "source": "PodResources"}


def _window(ctx: Context, load: Load) -> Json:
    window: Json = {
        "utilizationP50": load.p50,
        "utilizationP95": load.p95,
        "utilizationMax": min(100, load.p95 + 1) if load.p95 else 0,
        "memoryPeakBytes": load.memory_gib * _GIB,
        "memoryUsedBytes": load.memory_gib * _GIB,
        "throttledSeconds": load.throttled_s,
        "samples": _WINDOW_S // 5,
        "source": "NVML",
    }
    return window if load.idle_min is None else {**window, "idleSince": ctx.ago(load.idle_min)}
