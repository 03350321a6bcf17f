"""Answers about clusters whose objects are at hand, by the same pure cores that the estimator serves from."""

import time
from collections.abc import Callable
from dataclasses import replace

from admin.estimates import Rules
from admin.mirrors import mirror_of
from admin.observing import Observed
from estimator.capacity.answer import unsure
from estimator.capacity.budget import Budget
from estimator.capacity.explain.explain import explain
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import ClusterExplanation, told
from estimator.capacity.gangs.placing import place
from estimator.capacity.gangs.workload_gang import gang_components
from estimator.capacity.local import Localizer, left_out
from estimator.capacity.request import GangQuestion
from estimator.capacity.room import Room
from estimator.capacity.summary import Summary
from estimator.capacity.survey.stock import overdrawn
from estimator.capacity.survey.survey import survey
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import Levels, levels_of, topology_levels
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from fairway.workloads.gang import Gang

_SEARCH_S, _ALL_S = 2.0, 10.0


class LocalEstimates:
    """See `admin.estimates.Estimates`. ``clock`` is monotonic, in seconds, and bounds searches."""

    def __init__(self, rules: Rules, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock

    def summary(self, cluster: Observed) -> Summary:
        """What is there, what is free, how it is chunked."""
        mirror, problems = mirror_of(cluster.dump)
        columns = mirror.columns
        return survey(
            columns,
            self._rules.catalogue,
            self._levels(mirror),
            cluster=cluster.name,
            pods=len(mirror.pods.keys()),
            overdrawn=overdrawn(columns),
            policy=Localizer(mirror, EligibilityCache(), self._rules.tolerations).tolerations,
            age_s=cluster.age_s,
            problems=problems,
        )

    def explanation(self, cluster: Observed, gang: Gang, wanted: int) -> ClusterExplanation:
        """How many copies of the gang fit, up to ``wanted``, where they would go, and why not more."""
        mirror, _ = mirror_of(cluster.dump)
        columns = mirror.columns
        components, unused = gang_components(gang)
        eligible = EligibilityCache()
        here = Localizer(mirror, eligible, self._rules.tolerations).local(components)
        question = GangQuestion(cluster.name, here.components, gang.namespace, gang.topology, wanted)
        search = Budget(self._clock, self._clock() + _SEARCH_S)
        ends_s = self._clock() + _ALL_S

        def expired() -> bool:
            return self._clock() >= ends_s

        room = Room(columns, eligible, here.around)
        quotas = tuple(mirror.quotas.of(gang.namespace))
        topology = Topology(self._levels(mirror), DomainCache())
        placed = place(room, question, topology, expired, search, quotas)
        placed = replace(placed, answer=unsure(placed.answer, *left_out((*gang.problems, *unused), here)))
        explained = explain(Room(columns, eligible, here.around), here.components, expired)
        return ClusterExplanation(told(cluster.name, placed, cluster.age_s), explained)

    def _levels(self, mirror: ClusterMirror) -> Levels:
        if self._rules.levels:
            return levels_of(self._rules.levels)
        return topology_levels(mirror.topologies.levels, mirror.columns)
