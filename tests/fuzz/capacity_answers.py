"""What every answer of fairway.capacity.v1 has to be, whatever was asked."""

from collections import Counter

import grpc

from fairway.capacity.v1 import capacity_pb2 as pb
from tests.estimator.serving import CapacityCaller


async def flaw(caller: CapacityCaller, rpc: str, data: bytes, timeout_s: float = 60.0) -> str | None:
    """What is wrong with how the server takes the request; None for an answer or a refusal in words."""
    call = caller.call(rpc, data, timeout_s=timeout_s)
    code, details = await call.code(), await call.details()
    if code is grpc.StatusCode.INVALID_ARGUMENT and details:
        return None
    if code is not grpc.StatusCode.OK:
        return f"gRPC error {code}: {details}"
    wanted = _wanted(rpc, data)
    found = next((told for one in _verdicts(rpc, await call) if (told := _wrong(one, wanted))), None)
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


def _wrong(found: pb.ClusterPlacement, wanted: int) -> str | None:
    """What contradicts itself in the verdict on one cluster."""
    pods: Counter[tuple[int, str]] = Counter()
    for one in found.placement:
        pods[one.nth, one.pod_set] += one.pods
    times = max((one.nth + 1 for one in found.placement), default=0)
    placed = min(found.fits, wanted or found.fits)
    rules = {
        "less than nothing": found.fits >= 0,
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
