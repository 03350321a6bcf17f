"""The PriorityClasses of one cluster: whether the pods of a gang can be ordered by their size there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estimator.cluster.kind_mirror import KindMirror
from fairway.kube.member_kinds import PriorityClass
from fairway.names import GANG_CLASSES

_NEVER = "Never"


@dataclass(frozen=True, slots=True)
class PriorityRules:
    """A PriorityClass. ``is_default``: of pods that name none; ``preempts``: its pods may push others out."""

    value: int
    is_default: bool
    preempts: bool


def priority_rules(stated: PriorityClass) -> PriorityRules:
    """What of a PriorityClass counts."""
    return PriorityRules(stated.value, stated.global_default, stated.preemption_policy != _NEVER)


def default_value(known: Iterable[PriorityRules]) -> int:
    """What a pod gets that names no class, where these are all there are.

    Of several default classes that with the lowest value counts, as in the admission plugin Priority of
    Kubernetes 1.36.
    """
    return min((rules.value for rules in known if rules.is_default), default=0)


def expected_classes(known: Iterable[PriorityRules]) -> Mapping[str, PriorityRules]:
    """By name, what `GANG_CLASSES` have to be among these: right above what a pod gets that names no class.

    One by one, so that nobody else's pods come between those of a gang; and none of them preempts.
    """
    base = default_value(known)
    return {
        name: PriorityRules(base + rank, is_default=False, preempts=False)
        for rank, name in enumerate(GANG_CLASSES, 1)
    }


class PriorityClassMirror(KindMirror[PriorityRules]):
    """The PriorityClasses of one cluster, by name."""

    def upsert(self, stated: PriorityClass) -> None:
        """A PriorityClass appeared or changed."""
        self._set(stated.metadata.name, priority_rules(stated))

    @property
    def ranks_by_size(self) -> bool:
        """Whether all of `GANG_CLASSES` are there as `expected_classes` has them; False where it has not been
        read.
        """
        if not self.synced:
            return False
        expected = expected_classes(self._values.values())
        return all(self.get(name) == rules for name, rules in expected.items())
