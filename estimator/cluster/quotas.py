"""ResourceQuotas, reduced to what they still leave and to which pods they count."""

from collections.abc import Collection
from dataclasses import dataclass

from estimator.cluster.kind_mirror import NamespacedMirror
from fairway.kube.objects import RawResources, ResourceQuota, object_key
from fairway.resources import PODS, Amounts, ResourceError, is_scheduled, parse_amounts

_PREFIX = "requests."
_POD_COUNTS = (PODS, "count/pods")


@dataclass(frozen=True, slots=True)
class QuotaScope:
    """One scope a pod must be in for the quota to count it."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quota:
    """One ResourceQuota: what it leaves (never negative), by plain resource name."""

    namespace: str
    name: str
    scopes: tuple[QuotaScope, ...]
    free: tuple[tuple[str, int], ...]


def quota_free(hard: Amounts, used: Amounts) -> tuple[tuple[str, int], ...]:
    """What is left per plain resource name; a key not in both is no limit yet, as its usage is unknown.

    Of ``cpu`` and ``requests.cpu``, which limit the same thing, the tighter one holds. Keys that do not
    limit what pods request (``limits.cpu``, object counts, storage) are left out.
    """
    free: Amounts = {}
    for key in hard.keys() & used.keys():
        name = PODS if key in _POD_COUNTS else key.removeprefix(_PREFIX)
        if name == PODS or is_scheduled(name):
            left = max(0, hard[key] - used[key])
            free[name] = min(left, free.get(name, left))
    return tuple(sorted(free.items()))


class QuotaMirror(NamespacedMirror[Quota]):
    """The ResourceQuotas of one cluster; the reflector's sink for them."""

    def upsert(self, quota: ResourceQuota) -> None:
        """A quota appeared or changed."""
        key = object_key(quota.metadata)
        selector = quota.spec.scope_selector
        scopes = [QuotaScope(name) for name in quota.spec.scopes or ()]
        scopes.extend(
            QuotaScope(expression.scope_name, expression.operator, tuple(expression.values or ()))
            for expression in (selector.match_expressions if selector else None) or ()
        )
        parsed = Quota(
            quota.metadata.namespace,
            quota.metadata.name,
            tuple(scopes),
            quota_free(
                self._amounts(key, "hard", quota.status.hard), self._amounts(key, "used", quota.status.used)
            ),
        )
        self._set(key, parsed)

    def of(self, namespace: str) -> Collection[Quota]:
        """The quotas of a namespace."""
        return self.within(namespace).values()

    def _amounts(self, key: str, part: str, raw: RawResources | None) -> Amounts:
        found: Amounts = {}
        for name, value in (raw or {}).items():
            try:
                found.update(
                    (name, amount) for amount in parse_amounts({name.removeprefix(_PREFIX): value}).values()
                )
            except ResourceError as error:
                self._report("resourcequotas", key, f"status.{part}.{error}; the entry is ignored")
        return found
