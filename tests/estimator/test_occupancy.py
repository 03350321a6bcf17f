"""What pods are to each other, event by event: the same as if it were all seen at once, in any order."""

from collections.abc import Iterable, Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.occupancy import PodTraits, Selected
from fairway.pod_terms import HostPort, Selector, matches
from fairway.selectors import Requirement, label_requirement
from tests.builders import (
    Complaints,
    NodeBuilder,
    PodBuilder,
    cluster,
    delete,
    node,
    pod,
    selecting,
    upsert,
)
from tests.estimator.running import FIVE, HOST, ZONE, Scene, app, at, beside, web

CI = settings(max_examples=60, derandomize=True, deadline=None)
WEB, CACHE = selecting(app="web"), selecting(app="cache")

NODES = tuple(f"n{number}" for number in range(6))
APPS, SPACES = ("web", "cache", "db"), ("default", "data")


def one_of(app: str) -> Selector:
    return (label_requirement("app", "In", (app,)),)


QUESTIONS = [
    Selected(spaces, selectors, leaving, promised)
    for spaces in (None, frozenset(["default"]), frozenset(SPACES))
    for selectors in ((), (one_of("web"),), (one_of("web"), one_of("cache")), (one_of("db"),))
    for leaving in (False, True)
    for promised in (False, True)
]


def told(mirror: ClusterMirror, questions: Iterable[Selected] = QUESTIONS) -> dict[object, object]:
    """All that others may ask of the pods, by the names of their nodes."""
    columns = mirror.columns
    occupancy = columns.occupancy
    names = {row: columns.rows[row] for row in range(len(columns.rows))}

    def by_name(rows: Iterable[tuple[int, int]]) -> dict[str, int]:
        found = {}
        for row, pods in rows:
            held = names[row]
            if pods:
                assert held is not None
                found[held.name] = pods
        return found

    said: dict[object, object] = {}
    for asked in questions:
        said[asked] = by_name(enumerate(occupancy.counts(asked, len(columns.rows)).tolist()))
    for space in SPACES:
        said[space] = {term: by_name(rows.items()) for term, rows in occupancy.repelling(space)}
    for number in (80, 81):
        said[number] = {columns.rows[row].name for row in occupancy.holding(HostPort(number))}  # type: ignore[union-attr]  # what is held has a row
    said["claims"] = {claim: by_name(rows.items()) for claim, rows in occupancy.claims().items()}
    said["namespaces"] = set(occupancy.namespaces)
    return said


def a_pod(rng: Random, name: str) -> PodBuilder:
    built = pod(name, rng.choice(SPACES)).labelled({"app": rng.choice(APPS)}).requests(cpu=0)
    where = rng.choice((*NODES, "ghost", ""))
    built = built.nominated(where or "n0") if rng.random() < 0.15 else built.on(where) if where else built
    if rng.random() < 0.3:
        built = built.port(rng.choice((80, 81)), address=rng.choice(("", "10.0.0.1")))
    for _ in range(rng.choice((0, 0, 1, 2))):
        spaces = rng.choice(({}, {"namespaces": ["data"]}, {"namespaceSelector": selecting(a="b")}))
        built = built.apart(rng.choice((HOST, ZONE)), selecting(app=rng.choice(APPS)), **spaces)
    if rng.random() < 0.2:
        built = built.terminating()
    if rng.random() < 0.1:
        built = built.phase("Succeeded")
    if rng.random() < 0.2:
        built = built.volume(rng.choice(("x", "y")))
    return built


def a_node(rng: Random, name: str) -> NodeBuilder:
    return at(name, rng.choice(("a", "b", "")))


def events(rng: Random, count: int) -> Iterator[tuple[str, NodeBuilder | PodBuilder | None]]:
    """What appears or changes under a name, None where it goes."""
    for _ in range(count):
        if rng.random() < 0.2:
            name = rng.choice(NODES)
            yield name, a_node(rng, name) if rng.random() < 0.7 else None
        else:
            name = f"p{rng.randrange(12)}"
            yield name, a_pod(rng, name) if rng.random() < 0.7 else None


@CI
@given(st.integers(0, 2**32 - 1))
def test_any_events_come_to_what_is_there_at_their_end(seed: int) -> None:
    rng = Random(seed)
    mirror = cluster()
    there: dict[str, NodeBuilder | PodBuilder] = {}
    for name, thing in events(rng, 60):
        before = there.pop(name, None)
        # a pod of another namespace is another pod
        if before is not None and (thing is None or _space(thing) != _space(before)):
            delete(mirror, before)
        if thing is not None:
            upsert(mirror, thing)
            there[name] = thing
        if rng.random() < 0.2:  # columns that are kept up to date from now on
            told(mirror, rng.sample(QUESTIONS, 5))
    fresh = list(there.values())
    rng.shuffle(fresh)
    assert told(mirror) == told(cluster(*fresh))
    for thing in fresh:
        delete(mirror, thing)
    assert told(mirror) == told(cluster())


def _space(thing: NodeBuilder | PodBuilder) -> str:
    return thing.namespace if isinstance(thing, PodBuilder) else ""


def parts(keys: str = "ab", values: str = "xyz") -> st.SearchStrategy[Requirement]:
    several = st.lists(st.sampled_from(values), min_size=1, max_size=3).map(tuple)
    listed = st.tuples(st.sampled_from(keys), st.sampled_from(("In", "NotIn")), several)
    plain = st.tuples(st.sampled_from(keys), st.sampled_from(("Exists", "DoesNotExist")), st.just(()))
    return st.one_of(listed, plain).map(lambda stated: label_requirement(*stated))


@CI
@given(
    st.lists(st.lists(parts(), max_size=4).map(tuple), max_size=3),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")),
)
def test_what_selectors_say_of_one_label_comes_to_one_rule(
    selectors: list[Selector], labels: dict[str, str]
) -> None:
    said = Selected(None, tuple(selectors))
    expected = all(matches(selector, labels) for selector in selectors)
    assert said.selects(PodTraits("default", tuple(sorted(labels.items())))) == expected


def test_columns_grow_with_the_cluster() -> None:
    mirror = cluster(at("n1"), app("web", "n1"))
    asked = Selected(None, (one_of("web"),))
    assert mirror.columns.occupancy.counts(asked, 1).tolist() == [1]
    for number in range(200):
        upsert(mirror, at(f"m{number}"))
        upsert(mirror, app("web", f"m{number}"))
    assert mirror.columns.occupancy.counts(asked, 201).tolist() == [1] * 201


def test_more_questions_than_are_kept_up_to_date_are_answered_all_the_same() -> None:
    mirror = cluster(at("n1"))
    asked = [Selected(None, (one_of(f"a{number}"),)) for number in range(200)]
    for turn in range(3):
        for number, question in enumerate(asked):
            upsert(mirror, app(f"a{number}", "n1").named(f"p{number}-{turn}"))
            assert mirror.columns.occupancy.counts(question, 1).tolist() == [turn + 1]


# --- what changes while pods run ---------------------------------------------------------------------------

ALONE = web().apart(HOST, CACHE)
NEAR = web().near(ZONE, CACHE)


def test_labels_of_a_running_pod_change() -> None:
    mirror = cluster(*FIVE, app("cache", "n1"))
    assert beside(mirror, ALONE).value == 32
    upsert(mirror, app("cache", "n1").labelled({"app": "idle"}))
    assert beside(mirror, ALONE).value == 40
    upsert(mirror, app("cache", "n1"))
    assert beside(mirror, ALONE).value == 32


def test_a_running_pod_begins_to_leave_and_goes() -> None:
    spread = web().spread(ZONE, CACHE)
    there = tuple(app("cache", "n1").named(f"c{number}") for number in range(2))
    mirror = cluster(*FIVE, *there)
    assert (beside(mirror, spread).value, beside(mirror, ALONE).value) == (24, 32)
    upsert(mirror, there[0].terminating())
    assert (beside(mirror, spread).value, beside(mirror, ALONE).value) == (40, 32)
    delete(mirror, there[0])
    delete(mirror, there[1])
    assert beside(mirror, ALONE).value == 40


def test_a_pod_that_waited_for_victims_is_bound_elsewhere() -> None:
    mirror = cluster(*FIVE, app("cache", "").named("c").nominated("n1"))
    assert (beside(mirror, ALONE).value, beside(mirror, NEAR).value) == (32, 0)
    upsert(mirror, app("cache", "n5").named("c"))
    assert (beside(mirror, ALONE).value, beside(mirror, NEAR).value) == (32, 8)


def test_a_node_moves_to_another_zone() -> None:
    mirror = cluster(*FIVE, app("cache", "n1"))
    assert beside(mirror, NEAR).value == 16
    upsert(mirror, at("n1", "c"))
    assert beside(mirror, NEAR).value == 16  # n1 and n5
    upsert(mirror, at("n2", "c"))
    assert beside(mirror, NEAR).value == 24
    upsert(mirror, node("n1").cpu(8))
    assert beside(mirror, NEAR).value == 0


def test_a_pod_is_seen_before_its_node_and_stays_when_that_goes_for_a_while() -> None:
    mirror = cluster(*FIVE[1:], app("cache", "n1"))
    assert (beside(mirror, NEAR).value, beside(mirror, ALONE).value) == (0, 32)
    upsert(mirror, FIVE[0])
    assert (beside(mirror, NEAR).value, beside(mirror, ALONE).value) == (16, 32)
    delete(mirror, FIVE[0])
    assert (beside(mirror, NEAR).value, beside(mirror, ALONE).value) == (0, 32)
    upsert(mirror, FIVE[0])
    assert beside(mirror, NEAR).value == 16


def test_a_node_of_the_same_name_in_another_zone_has_the_pods_that_are_bound_to_it() -> None:
    mirror = cluster(*FIVE, app("cache", "n1"))
    delete(mirror, FIVE[0])
    upsert(mirror, at("n1", "c"))
    assert beside(mirror, NEAR).value == 16


def test_a_namespace_goes_with_its_pods() -> None:
    everywhere = web().apart(HOST, CACHE, namespaceSelector={})
    there = [app("cache", name).of("gone") for name in ("n1", "n2")]
    mirror = cluster(*FIVE, *there)
    assert beside(mirror, everywhere).value == 24
    for one in there:
        delete(mirror, one)
    assert beside(mirror, everywhere).value == 40
    assert list(mirror.columns.occupancy.namespaces) == []


# --- what cannot be read -----------------------------------------------------------------------------------

_Term = tuple[str, object, dict[str, object]]
TERMS: tuple[_Term, ...] = (
    ("", WEB, {}),
    (ZONE, selecting(("app", "Like", ["web"])), {}),
    (ZONE, WEB, {"namespaceSelector": selecting(("a", "In", []))}),
)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (TERMS[0], "[0].topologyKey: expected a node label, found none"),
        (TERMS[1], "[0].labelSelector: 'Like' on app is not an operator"),
        (TERMS[2], "[0].namespaceSelector: In on a names no values"),
        ((ZONE, selecting(app="!"), {}), "[0].labelSelector: In on app: '!' is not a label value"),
        ((ZONE, selecting(("app", "Gt", ["1"])), {}), "[0].labelSelector: Gt on app: expected In, NotIn"),
    ],
)
def test_a_term_of_a_running_pod_that_makes_no_sense_is_reported_and_its_others_count(
    bad: _Term, message: str
) -> None:
    key, selector, fields = bad
    said = Complaints()
    odd = app("db", "n1").apart(key, selector, **fields).apart(HOST, WEB)
    mirror = cluster(*FIVE, odd, app("db", "n2").apart(HOST, WEB), report=said)
    ((resource, name, told_of),) = said
    assert (resource, name) == ("pods", "default/db-n1")
    assert message in told_of
    assert told_of.endswith("; the term is counted as repelling nobody")
    assert beside(mirror, web()).value == 24


def test_what_one_pod_takes_on_a_node_is_no_matter_of_how_its_fields_are_ordered() -> None:
    first = pod("a").labelled({"a": "1", "b": "2"}).on("n1")
    second = pod("b").labelled({"b": "2", "a": "1"}).on("n1")
    mirror = cluster(*FIVE, first, second)
    scene = Scene(web().apart(HOST, selecting(a="1", b="2")), 32, (first, second))
    assert beside(mirror, scene.asked).value == scene.fits
