"""What every answer of fairway.capacity.v1 has to be, whatever was asked."""

from collections import Counter

import grpc

from fairway.capacity.v1 import capacity_pb2 as pb
from tests.estimator.serving import CapacityCaller
from tests.fuzz.refusals import Refusals


async def flaw(caller: CapacityCaller, rpc: str, data: bytes, timeout_s: float = 60.0) -> str | None:
    """What is wrong with how the server takes the request; None for an answer or a refusal in words."""
    refusals = Refusals()
    while True:
        call = caller.call(rpc, data, timeout_s=timeout_s)
        code, details = await call.code(), await call.details()
        if not await refusals.again(code, details):
            break
    if code is grpc.StatusCode.INVALID_ARGUMENT and details:
        return None
    if code is not grpc.StatusCode.OK:
        return f"gRPC error {code}: {details}"
    wanted, may_end = _wanted(rpc, data), _may_end(rpc, data)
    verdicts = _verdicts(rpc, await call)
    found = next((told for one in verdicts if (told := _wrong(one, wanted, may_end))), None)
    return found and f"answered {found}"


def _verdicts(rpc: str, data: bytes) -> list[pb.ClusterPlacement]:
    match rpc:
        case "Place":
            return list(pb.PlaceResponse.FromString(data).clusters)
        case "Explain":
            return [one.placement for one in pb.ExplainResponse.FromString(data).clusters]
        case _:
            pb.SummaryResponse.FromString(data)
            return []


def _wanted(rpc: str, data: bytes) -> int:
    """How many copies are asked for; 0 for as many as fit."""
    match rpc:
        case "Place":
            return pb.PlaceRequest.FromString(data).gang.copies
        case "Explain":
            return pb.ExplainRequest.FromString(data).gang.copies
        case _:
            return 0


def _may_end(rpc: str, data: bytes) -> frozenset[bytes] | None:
    """The workloads of which it is asked whether they have to end; None where that is not asked."""
    endings = pb.PlaceRequest.FromString(data).endings if rpc == "Place" else pb.Endings()
    return frozenset(map(_key, (one.workload for one in endings.endings))) if endings.of_choice else None


def _key(name: pb.WorkloadName) -> bytes:
    return name.SerializeToString(deterministic=True)


def _wrong(found: pb.ClusterPlacement, wanted: int, may_end: frozenset[bytes] | None) -> str | None:
    """What contradicts itself in the verdict on one cluster."""
    ending = [*map(_key, found.earliest.workloads)]
    pods: Counter[tuple[int, str]] = Counter()
    for one in found.placement:
        pods[one.nth, one.pod_set] += one.pods
    times = max((one.nth + 1 for one in found.placement), default=0)
    placed = min(found.fits, wanted or found.fits)
    rules = {
        "less than nothing": found.fits >= 0,
        "room to come for what fits": not found.HasField("earliest") or found.fits < max(1, wanted),
        "room to come nowhere": not found.HasField("earliest")
        or sum(one.pods for one in found.earliest.placement) >= max(1, wanted),
        "the end of others": (may_end or frozenset()).issuperset(ending),
        "an end twice": len(ending) == len(set(ending)),
        "a choice without a time": may_end is None
        or not found.HasField("earliest")
        or found.earliest.HasField("at_ms"),
        "fewer than nobody": bool(ending) or not found.earliest.may_be_fewer,
        "more than the bound": found.fits <= found.upper_bound < 2**31 - 1,
        "proof of nothing": found.fits == found.upper_bound or not found.proven,
        "no proof of what is certain": found.proven
        or found.fits < found.upper_bound
        or any(reason.kind in ("template", "not_known") for reason in found.reasons),
        "a number for spreading that is none": -1 <= found.spread_fits <= found.fits,
        "pods of a node that are none": all(one.pods > 0 and one.node for one in found.placement),
        "half a copy": not pods or (placed > 0 and all(n % placed == 0 for n in pods.values())),
        "more placements than fit": times <= 1 or times * wanted <= found.fits,
        "placements unlike each other": {*pods} == {(n, name) for n in range(times) for _, name in pods},
        "nothing, without doubt or proof": bool(found.fits)
        or found.proven
        or any(reason.kind in ("doubt", "either_way") for reason in found.reasons),
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    return f"{', '.join(broken)}: {found}" if broken else None
