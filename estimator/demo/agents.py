"""What node agents would have written of the sample clusters' GPUs: who works, who idles, what is broken."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from estimator.demo.objects import Context, Json
from fairway.names import API_VERSION, QUEUE

_GIB = 1024**3
_WINDOW_S = 300
_DAYS = 10
_DAY_S = 86_400
_BEFORE_IDLE_PERCENT = 55
_AMOUNTS = ("allocatedSeconds", "measuredSeconds", "usedSeconds", "quietSeconds")


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
    wholes = ((pod, load, 2, sick.get(index)) for index, (pod, load) in enumerate(held))
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeDevices",
        "metadata": {"name": node, "uid": ctx.uid(), "resourceVersion": ctx.version()},
        "observedAt": ctx.ago(1),
        "windowSeconds": _WINDOW_S,
        "agent": {"version": "0.1.0"},
        "driver": {"version": "580.95.05", "cudaVersion": "13.0"},
        "devices": [*whole, *cut],
        "days": _days(ctx, [*wholes, *((*one, 1, None) for one in instances)]),
    }


def _days(ctx: Context, held: Iterable[tuple[Json, Load, int, Sick | None]]) -> list[Json]:
    """As if each pod had worked since it was made, at ease until its device fell idle; of halves so many."""
    found: list[Json] = []
    now_s = int(ctx.now.timestamp())
    held = tuple(held)
    for ago in range(_DAYS - 1, -1, -1):
        date = ctx.ago(24 * 60 * ago)[:10]
        begin_s = datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()
        end_s = min(now_s, begin_s + _DAY_S)
        teams: dict[tuple[str, str], list[int]] = {}
        for pod, load, halves, sick in held:
            metadata, labels = _metadata(pod), _labels(pod)
            made_s = datetime.fromisoformat(str(metadata["creationTimestamp"])).timestamp()
            lost_s = now_s - 60 * sick.minutes if sick and sick.health == "Lost" else now_s
            idle_s = lost_s if load.idle_min is None else now_s - 60 * load.idle_min
            there = _overlap((begin_s, end_s), (made_s, now_s))
            busy = _overlap((begin_s, end_s), (made_s, idle_s))
            quiet = _overlap((begin_s, end_s), (max(made_s, idle_s), lost_s))
            percent = load.p50 if load.idle_min is None else _BEFORE_IDLE_PERCENT
            amounts = (there, busy + quiet, busy * percent // 100, quiet)
            sums = teams.setdefault((str(metadata["namespace"]), labels.get(QUEUE, "")), [0, 0, 0, 0])
            sums[:] = (total + halves * amount // 2 for total, amount in zip(sums, amounts, strict=True))
        lines: list[Json] = [
            {"namespace": namespace, "queue": queue, **dict(zip(_AMOUNTS, sums, strict=True))}
            for (namespace, queue), sums in sorted(teams.items())
            if any(sums)
        ]
        found.append({"date": date, "observedSeconds": int(end_s - begin_s), "teams": lines})
    return found


def _overlap(day: tuple[float, float], time: tuple[float, float]) -> int:
    return max(0, int(min(day[1], time[1]) - max(day[0], time[0])))


def _metadata(pod: Json) -> Json:
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def _labels(pod: Json) -> dict[str, str]:
    labels = _metadata(pod)["labels"]
    assert isinstance(labels, dict)
    return {str(key): str(value) for key, value in labels.items()}


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
    metadata = _metadata(pod)
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
