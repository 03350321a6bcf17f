"""The PriorityClasses of one cluster: whether the pods of a gang can be ordered by their size there."""

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


class PriorityClassMirror(KindMirror[PriorityRules]):
    """The PriorityClasses of one cluster, by name."""

    def upsert(self, stated: PriorityClass) -> None:
        """A PriorityClass appeared or changed."""
        preempts = stated.preemption_policy != _NEVER
        self._set(stated.metadata.name, PriorityRules(stated.value, stated.global_default, preempts))

    @property
    def ranks_by_size(self) -> bool:
        """Whether all of `GANG_CLASSES` are there, right above what a pod gets that names no class.

        One by one, so that nobody else's pods come between those of a gang; and none of them preempts. False
        where it has not been read. Of several default classes that with the lowest value counts, as in the
        admission plugin Priority of Kubernetes 1.36.
        """
        if not self.synced:
            return False
        defaults = [rules.value for rules in self._values.values() if rules.is_default]
        base = min(defaults, default=0)
        return all(
            self.get(name) == PriorityRules(base + rank, is_default=False, preempts=False)
            for rank, name in enumerate(GANG_CLASSES, 1)
        )
