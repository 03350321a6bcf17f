"""Taints and tolerations: which nodes a pod may not be placed on.

Mirrors Toleration.ToleratesTaint and the TaintToleration and NodeUnschedulable plugins of Kubernetes 1.36.
The numeric operators Lt and Gt (1.35, alpha) tolerate nothing, as with their feature gate off. Both are as
objects state them, so that they are decoded into what is compared.
"""

from collections.abc import Iterable

import msgspec

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"


class Taint(msgspec.Struct, frozen=True, order=True, gc=False):
    """A taint as a node states it."""

    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
"""What a cordoned node is treated as carrying: a pod that tolerates it may be placed all the same."""


class Toleration(msgspec.Struct, frozen=True, order=True, gc=False):
    """A toleration as a pod states it; an empty field is a wildcard, except that no operator means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


def first_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that keeps the pod off the node, or None; PreferNoSchedule keeps nothing off."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in tolerations):
            return taint
    return None
