"""How fast gangs are released and come to nodes, all at once and through a full queue; what is written."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from benchmarks.karmada.ways import Topics, Way, running
from benchmarks.report import Figure
from tests.e2e.objects import POLICIES, STRICT
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, job, policy_of_all, whole

_FLEET: Final = {"a": (8,) * 40, "b": (8,) * 40}
_PODS: Final = 2
_GPUS: Final = 2
_AT_A_TIME: Final = 10
_WITHIN_S: Final = 300.0
_END_TOLD_S: Final = 20.0
"""After the last of its pods has ended."""
_BINDINGS: Final = "fairway_binding_writes_total"
_EVENTS: Final = "fairway_events_total"
_STATUSES: Final = "fairway_status_writes_total"


async def measured(way: Way, gangs: int) -> Topics:
    """Both, with so many gangs of two pods of two GPUs each, and room for all of them."""
    async with running(way, _FLEET) as plane:
        tenant = Tenant(plane, "rates")
        await tenant.begin(0)
        path = f"{POLICIES}/namespaces/{tenant.namespace}/propagationpolicies"
        placement = policy_of_all(tenant.namespace, job("any"), whole(*_FLEET))
        await plane.karmada.client.post(path, placement, dict, STRICT)
        before = await _samples(plane)
        at_once = await _all_at_once(tenant, _gangs("burst", gangs))
        queued = await _through_a_full_queue(tenant, _gangs("queue", gangs))
        wrote = await _samples(plane)
        wrote.subtract(before)
    return {"all at once": at_once, "through a full queue": queued, "writes": _writes(wrote, 2 * gangs)}


def _gangs(name: str, count: int) -> list[Workload]:
    return [job(f"{name}{number:03}", _PODS, _GPUS, gang=True) for number in range(count)]


async def _all_at_once(tenant: Tenant, gangs: Sequence[Workload]) -> list[Figure]:
    """They all wait for quota, and it comes."""
    keys = await _submitted(tenant, gangs)
    await tenant.quota(_GPUS * _PODS * len(gangs))
    await _until(tenant, lambda: len(_whole(tenant, gangs)) == len(gangs), "all of them running")
    figures = [
        Figure("released", _rate(_released_s(tenant, keys)), "a second"),
        Figure("with nodes", _rate([_bound_s(tenant, gang) for gang in gangs]), "a second"),
        *_starts(tenant, gangs),
    ]
    for gang in gangs:
        await tenant.finish(gang)
    await _ended(tenant, keys)
    return figures


async def _through_a_full_queue(tenant: Tenant, gangs: Sequence[Workload]) -> list[Figure]:
    """Each that ends lets the next one start."""
    await tenant.quota(0)
    keys = await _submitted(tenant, gangs)
    await tenant.quota(_GPUS * _PODS * _AT_A_TIME)
    left = {gang.name: gang for gang in gangs}
    while left:
        await _until(tenant, lambda: _whole(tenant, left.values()), f"one of {len(left)} left running")
        for name in _whole(tenant, left.values()):
            await tenant.finish(left.pop(name))
    over = await _ended(tenant, keys)
    seen = tenant.plane.karmada.bindings
    ended_s = sorted(seen.first_s(key, lambda binding: binding.has_ended) for key in over)
    nexts_s = sorted(_released_s(tenant, keys))[_AT_A_TIME:]
    lags_s = [next_s - end_s for end_s, next_s in zip(ended_s, nexts_s, strict=False)]
    return [
        Figure("released", _rate(_released_s(tenant, keys)), "a second"),
        *_starts(tenant, gangs),
        *_quantiles("end seen to next release", lags_s, 0.5, 0.9),
        Figure("not seen to end", len(keys) - len(over), ""),
    ]


async def _ended(tenant: Tenant, keys: Sequence[str]) -> list[str]:
    """Those that Karmada says have ended, when it has said so of all, or says nothing more."""

    def over() -> list[str]:
        return [key for key in keys if tenant.binding(key).has_ended]

    with suppress(AssertionError):
        await tenant.plane.changes.until(lambda: len(over()) == len(keys), "all of them ended", _END_TOLD_S)
    return over()


async def _submitted(tenant: Tenant, gangs: Sequence[Workload]) -> list[str]:
    """Their keys, once all of them are held."""
    keys = [await tenant.create(gang) for gang in gangs]
    await _until(tenant, lambda: all(map(tenant.knows, keys)), "all bindings")
    return keys


def _starts(tenant: Tenant, gangs: Sequence[Workload]) -> list[Figure]:
    """From release to clusters, and to nodes for all pods."""
    seen = tenant.plane.karmada.bindings
    keys = list(map(tenant.key, gangs))
    released_s = _released_s(tenant, keys)
    placed_s = [seen.first_s(key, lambda binding: binding.is_placed) for key in keys]
    bound_s = [_bound_s(tenant, gang) for gang in gangs]
    to_clusters = [after - before for before, after in zip(released_s, placed_s, strict=True)]
    to_nodes = [after - before for before, after in zip(released_s, bound_s, strict=True)]
    return [
        *_quantiles("to clusters", to_clusters, 0.5, 0.99),
        *_quantiles("to nodes", to_nodes, 0.5, 0.99),
    ]


def _released_s(tenant: Tenant, keys: Iterable[str]) -> list[float]:
    seen = tenant.plane.karmada.bindings
    return [seen.first_s(key, lambda binding: binding.is_released) for key in keys]


def _bound_s(tenant: Tenant, gang: Workload) -> float:
    """When the last of its pods had a node."""
    firsts_s = [
        member.kubelet.pods.first_s(key, lambda pod: pod.spec.node_name)
        for member in tenant.plane.members.values()
        for key, versions in member.kubelet.pods.past.items()
        if versions[0].object.workload == gang.name
    ]
    return max(firsts_s)


def _whole(tenant: Tenant, gangs: Iterable[Workload]) -> list[str]:
    """Those all of whose pods run."""
    members = tenant.plane.members.values()
    running = Counter(pod.workload for member in members for pod in member.kubelet.running(tenant.namespace))
    return [gang.name for gang in gangs if running[gang.name] == _PODS]


async def _until(tenant: Tenant, holds: Callable[[], object], what: str) -> None:
    await tenant.plane.changes.until(holds, what, _WITHIN_S)


def _rate(moments_s: Sequence[float]) -> float:
    """How many a second between the first and the last."""
    return (len(moments_s) - 1) / (max(moments_s) - min(moments_s))


def _quantiles(what: str, durations_s: Sequence[float], *shares: float) -> list[Figure]:
    ordered = sorted(durations_s)
    return [
        Figure(f"{what} p{share * 100:.0f}", 1_000 * ordered[int(share * (len(ordered) - 1))], "ms")
        for share in shares
    ]


async def _samples(plane: Plane) -> Counter[str]:
    """What both dispatchers have written."""
    counted: Counter[str] = Counter()
    for each in plane.fairway.dispatchers.values():
        for name in (_BINDINGS, _EVENTS, _STATUSES):
            found = await each.samples(name)
            counted.update({sample: round(value) for sample, value in found.items()})
    return counted


def _writes(wrote: Counter[str], gangs: int) -> list[Figure]:
    """By what is written, a gang."""

    def of(beginning: str) -> float:
        return sum(count for sample, count in wrote.items() if sample.startswith(beginning)) / gangs

    policies = sum(count for sample, count in wrote.items() if 'purpose="guide"' in sample) / gangs
    return [
        Figure("bindings", of(_BINDINGS) - policies, "a gang"),
        Figure("policies", policies, "a gang"),
        Figure("Events", of(_EVENTS), "a gang"),
        Figure("statuses", of(_STATUSES), "a gang"),
    ]
