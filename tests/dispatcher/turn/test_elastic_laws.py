"""Whatever happens to elastic work, and whoever dies at whatever write: its laws."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queue_dispatcher.turn.shrinking import shrink, surplus_of
from queue_dispatcher.turn.turn import turn
from tests.dispatcher.turn.test_elastic import SETTLED_S, Elastic

GPUS = 16
NAMES = st.sampled_from("abcde")


class ElasticLaws(RuleBasedStateMachine):
    """Records and clusters agree, nobody has more than it asks for, quota suffices, and what started with its
    minimum keeps it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.plane = Elastic(m1=10, m2=6)
        self.least: dict[str, int] = {}
        self.names = 0

    def live(self, name: str) -> str | None:
        """A workload of those that there are."""
        names = sorted(self.plane.bindings)
        return names["abcde".index(name) % len(names)] if names else None

    @rule(least=st.integers(0, 6), most=st.integers(1, 12), is_deployment=st.booleans())
    def submit(self, least: int, most: int, is_deployment: bool) -> None:
        self.names += 1
        name = f"w{self.names}"
        self.least[name] = least if 0 < least < most else most
        said = {"fairway.dev/min-replicas": str(least)} if least else {}
        if is_deployment:
            self.plane.submit(name, said=said, replicas=most, kind="Deployment", api_version="apps/v1")
        else:
            self.plane.submit(name, said=said, replicas=most)

    @rule(name=NAMES)
    def end(self, name: str) -> None:
        one = self.live(name)
        if one is not None:
            self.plane.delete(one)
            del self.least[one]

    @rule(seconds=st.sampled_from((1, SETTLED_S)))
    def passes(self, seconds: int) -> None:
        self.plane.passes(seconds, step_s=seconds)

    @rule()
    def decide(self) -> None:
        self.plane.turn()

    @rule(made=st.integers(0, 3))
    def die(self, made: int) -> None:
        """The process dies after so many of a turn's writes."""
        turned = turn(self.plane.state, (), self.plane.now)
        for write in turned.writes[:made]:
            self.plane.write(write)
        self.plane.restart()

    @rule(name=NAMES)
    def karmada_looks(self, name: str) -> None:
        """Its scheduler confirms what is released where it is."""
        one = self.live(name)
        if one is not None and not self.plane.is_held(one):
            clusters = self.plane.bindings[one]["spec"].get("clusters") or ()
            self.plane.place(one, **{share["name"]: share["replicas"] for share in clusters})

    @rule(name=NAMES, fewer=st.integers(1, 8))
    def give_way(self, name: str, fewer: int) -> None:
        one = self.live(name)
        if one is None:
            return
        self.plane.turn()
        entry = self.plane.entry(one)
        places = {share.cluster: share.replicas for share in entry.binding.placed}
        taken: dict[str, int] = {}
        for cluster, replicas in places.items():
            taken[cluster] = min(replicas, fewer - sum(taken.values()))
        taken = {cluster: pods for cluster, pods in taken.items() if pods}
        surplus = surplus_of(entry)
        write = shrink(entry, taken, self.plane.now)
        assert (write is not None) == (0 < sum(taken.values()) <= surplus)
        if write is not None:
            self.plane.write(write)

    @precondition(lambda self: bool(self.plane.bindings))
    @rule(name=NAMES, cluster=st.sampled_from(("m1", "m2")))
    def lose(self, name: str, cluster: str) -> None:
        """Karmada takes it off a cluster."""
        one = self.live(name)
        assert one is not None
        left = {
            share["name"]: share["replicas"]
            for share in self.plane.bindings[one]["spec"].get("clusters") or ()
            if share["name"] != cluster
        }
        self.plane.lose(one, **left)
        # What that leaves it is as much as anybody can keep for it.
        self.least[one] = min(self.least[one], sum(left.values()) or self.least[one])

    @invariant()
    def nobody_has_more_than_it_asks_for(self) -> None:
        for name, binding in self.plane.bindings.items():
            assert self.placed(name) <= binding["spec"]["replicas"]
            assert self.plane.replicas(name) <= binding["spec"]["replicas"]

    @invariant()
    def nothing_placed_is_beyond_its_record(self) -> None:
        for name in self.plane.bindings:
            assert self.placed(name) <= self.plane.replicas(name)

    @invariant()
    def what_runs_has_its_minimum(self) -> None:
        for name in self.plane.bindings:
            placed = self.placed(name)
            assert placed == 0 or placed >= self.least[name], (name, placed, self.least[name])

    @invariant()
    def quota_suffices(self) -> None:
        assert sum(self.placed(name) for name in self.plane.bindings) <= GPUS
        self.plane.cache.settle()
        assert self.plane.charged() <= GPUS

    @invariant()
    def held_is_what_runs_with_a_part(self) -> None:
        for name, binding in self.plane.bindings.items():
            if self.placed(name) and not self.plane.is_held(name):
                assert self.plane.replicas(name) == binding["spec"]["replicas"]

    def placed(self, name: str) -> int:
        clusters = self.plane.bindings[name]["spec"].get("clusters") or ()
        return sum(share.get("replicas", 0) for share in clusters)


ElasticLaws.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestElasticLaws = ElasticLaws.TestCase
