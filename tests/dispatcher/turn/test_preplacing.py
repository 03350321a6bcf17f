"""Releases that state where to: what they say, what they take no part in, and what comes in between."""

from collections.abc import Sequence

import msgspec
import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.cache.tally import state_name
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.turn.basis import MAX_PREPLACED
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.window import START
from queue_dispatcher.turn.writes import Fate, Write
from sandbox.fakeapi.patching import merge_patch
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import Obj, Options
from tests.dispatcher.turn.builders import JOBS, Plane

TWO = {"m1": 100, "m2": 100}
GROUP = {"fairway.dev/group": "g", "fairway.dev/group-size": "2"}


def plane(**rooms: int) -> Plane:
    return Plane(TWO, rooms=rooms)


def where(made: Plane, name: str) -> list[str]:
    return list(made.clusters(name))


def in_one() -> Obj:
    placement = objects.binding("any")["spec"]["placement"]
    spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    return {"placement": {**placement, "spreadConstraints": spread}}


@pytest.mark.parametrize(
    ("rooms", "expected"),
    [({"m1": 9, "m2": 20}, ["m1:4"]), ({"m1": 9}, ["m1:4"]), ({"m1": 3, "m2": 2}, ["m1:3", "m2:1"])],
)
def test_in_one_write_it_is_released_and_placed(rooms: dict[str, int], expected: list[str]) -> None:
    made = plane(**rooms)
    made.submit("x", replicas=4)
    made.turn()
    assert where(made, "x") == expected
    assert len(made.writes) == 1
    assert not made.cache.running.in_flight
    assert made.charged() == 4


def test_it_needs_no_word_of_karmada() -> None:
    made = plane(m1=9)
    made.submit("x")
    made.turn()
    made.passes(3600, step_s=60)
    made.restart()
    made.passes(3600, step_s=60)
    assert where(made, "x") == ["m1:1"]
    assert len(made.writes) == 1


def test_what_karmada_does_not_place_keeps_none_of_them_waiting() -> None:
    made = plane(m1=100, m2=100)
    for number in range(START + 5):
        made.submit(f"k{number}", duplicated=True)
    made.turn()
    assert len(made.released()) == START
    for number in range(MAX_PREPLACED):
        made.submit(f"p{number}")
    made.turn()
    assert len(made.released()) == START + MAX_PREPLACED
    waits = [why.kind for name in made.bindings if (why := made.reason(name)) is not None]
    assert waits == ["ReleaseWindowFull"] * 5


@pytest.mark.parametrize("confirms", [True, False])
def test_once_karmada_looks_at_the_later_ones_it_has_passed_over_the_earlier(*, confirms: bool) -> None:
    made = plane(m1=100, m2=100)
    made.submit("unseen", duplicated=True)
    made.passes(2)
    made.submit("later")
    made.passes(2)
    if confirms:
        made.place("later", m1=1)
    made.passes(20)
    assert state_name(made.entry("unseen")) == ("Unobserved" if confirms else "Admitted")


def test_only_so_many_are_on_their_way_to_the_api_server() -> None:
    made = plane(m1=1000, m2=1000)
    made.queue("main", {"m1": 1000, "m2": 1000})
    for number in range(MAX_PREPLACED + 5):
        made.submit(f"p{number}")
    first = turn(made.state, (), made.now)
    for probing in first.probings:
        made.answer(probing)
    assert len(turn(made.state, (), made.now).writes) == MAX_PREPLACED
    assert not turn(made.state, (), made.now).writes
    waits = [why for name in made.bindings if (why := made.reason(name)) is not None]
    assert [why.kind for why in waits] == ["ReleaseWindowFull"] * 5
    assert all("karmada-apiserver" in why.text for why in waits)


def test_halves_of_groups_that_are_refused_for_ever_keep_none_of_the_others_waiting() -> None:
    made = Plane(dict.fromkeys(TWO, 1000), rooms=dict.fromkeys(TWO, 1000))
    for number in range(MAX_PREPLACED + 5):
        said = {"fairway.dev/group": f"g{number}", "fairway.dev/group-size": "2"}
        for name in ("first", "second"):
            made.submit(f"{name}{number}", said=said)
    for _ in range(10):
        made.elapsed_ms += 1_000
        while True:
            turned = turn(made.state, (), made.now)
            for write in turned.writes:
                if write.uid.startswith("first"):
                    made.write(write)
                else:
                    hear(made.state, Wrote(write, Fate.REFUSED, "exceeded quota"), made.now)
            for probing in turned.probings:
                made.answer(probing)
            if not turned.writes and not turned.probings:
                break
    assert len(made.released()) == MAX_PREPLACED + 5
    made.submit("other")
    made.turn()
    assert where(made, "other")


def decided(made: Plane) -> Sequence[Write]:
    """The releases that are decided next, none of which is written yet."""
    while True:
        turned = turn(made.state, (), made.now)
        if turned.writes:
            return turned.writes
        assert turned.probings
        for probing in turned.probings:
            made.answer(probing)


def bar(made: Plane, cluster: str) -> None:
    barred = objects.cluster(cluster, 100)
    barred["spec"]["taints"] = [{"key": "example.com/barred", "effect": "NoSchedule"}]
    made.feed(CLUSTERS, barred)


def test_a_cluster_that_is_barred_before_the_write_is_not_written_and_another_is() -> None:
    made = plane(m1=9, m2=5)
    made.submit("x")
    (write,) = decided(made)
    bar(made, "m1")
    made.write(write)
    assert made.is_held("x")
    made.turn()
    assert where(made, "x") == ["m2:1"]


def test_a_group_is_not_begun_once_a_cluster_of_any_of_it_is_barred() -> None:
    made = Plane(TWO, rooms={"m1": 9, "m2": 5})
    made.submit("a", said=GROUP, clusters=("m1",))
    made.submit("b", said=GROUP, clusters=("m2",))
    writes = decided(made)
    bar(made, "m2")
    for write in writes:
        made.write(write)
    made.cache.settle()
    assert made.released() == []
    assert made.charged() == 0


POLICIES: list[tuple[str, Obj]] = [
    ("by weights", {"replicaScheduling": {"replicaDivisionPreference": "Weighted"}}),
    ("in one", {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}),
    ("in two at least", {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2}]}),
    ("by region", {"spreadConstraints": [{"spreadByField": "region", "minGroups": 1}]}),
    ("elsewhere", {"clusterAffinity": {"clusterNames": ["m2"]}}),
]


@pytest.mark.parametrize("policy", [row[1] for row in POLICIES], ids=[row[0] for row in POLICIES])
def test_what_another_policy_was_to_say_is_not_written(policy: Obj) -> None:
    made = plane(m1=3, m2=2)
    made.submit("x", replicas=4)
    (write,) = decided(made)
    made.edit("x", lambda obj: obj.update(merge_patch(obj, {"spec": {"placement": policy}})))
    made.write(write)
    made.cache.settle()
    assert made.is_held("x")
    assert made.charged() == 0


def test_what_is_being_written_is_on_its_way_however_long_that_takes() -> None:
    made = plane(m1=4)
    made.submit("x", replicas=4)
    (write,) = decided(made)
    made.elapsed_ms += 300_000
    turn(made.state, (), made.now)
    assert made.state.estimates is not None
    assert made.state.estimates.assumed(made.elapsed_ms).keys() == {"m1"}
    made.write(write)
    made.passes(60)
    assert not made.state.estimates.assumed(made.elapsed_ms)


FLAVORS = [
    # Room in each cluster, quota of each flavor, what is asked for, where it goes, what that is charged to.
    ("the preferred", {"m1": 4, "m2": 9}, {"m1": 9, "m2": 9}, 4, ["m1:4"], ["m1"]),
    ("no quota of the preferred", {"m1": 9, "m2": 9}, {"m1": 3, "m2": 9}, 4, ["m2:4"], ["m2"]),
    ("no room in the preferred", {"m1": 3, "m2": 9}, {"m1": 9, "m2": 9}, 4, ["m2:4"], ["m2"]),
    ("a flavor too small for it", {"m1": 9, "m2": 9}, {"m1": 9, "m2": 1}, 4, ["m1:4"], ["m1"]),
    ("in both together", {"m1": 3, "m2": 2}, {"m1": 9, "m2": 9}, 4, ["m1:3", "m2:1"], ["m1", "m2"]),
    ("no quota for both together", {"m1": 3, "m2": 2}, {"m1": 9, "m2": 3}, 4, [], []),
    ("room without quota, and the reverse", {"m1": 9, "m2": 3}, {"m1": 3, "m2": 9}, 4, [], []),
]


@pytest.mark.parametrize(
    ("rooms", "quotas", "replicas", "places", "flavors"),
    [case[1:] for case in FLAVORS],
    ids=[case[0] for case in FLAVORS],
)
def test_the_flavor_chooses_the_cluster(
    rooms: dict[str, int],
    quotas: dict[str, int],
    replicas: int,
    places: list[str],
    flavors: list[str],
) -> None:
    made = plane(**rooms)
    made.queue("main", quotas)
    made.submit("x", replicas=replicas)
    made.turn()
    assert where(made, "x") == places
    assert made.is_held("x") is not bool(places)
    assert made.charged() == (replicas if places else 0)
    record = made.record("x")
    assert (record or {"flavors": {}})["flavors"].get("nvidia.com/gpu", []) == flavors


APPEARING = [
    # Room in each cluster as of the answers about each flavor, and then about both; where it goes.
    ("in the one asked about first", {"m1": 9}, ["m1:4"]),
    ("in the other", {"m2": 9}, ["m2:4"]),
    ("in both, and the preferred has all", {"m1": 4, "m2": 4}, ["m1:4"]),
    ("in both together", {"m1": 3, "m2": 1}, ["m1:3", "m2:1"]),
]


@pytest.mark.parametrize(
    ("later", "places"), [case[1:] for case in APPEARING], ids=[case[0] for case in APPEARING]
)
def test_room_that_appears_once_each_flavor_was_asked_about_is_charged_where_it_is(
    later: dict[str, int], places: list[str]
) -> None:
    made = plane()
    made.submit("x", replicas=4)
    for rooms in ({}, {}, later):
        made.rooms = rooms
        (probing,) = turn(made.state, (), made.now).probings
        made.answer(probing)
    (write,) = turn(made.state, (), made.now).writes
    # Before anybody has seen it placed.
    assert made.charged() == 4 * len(places)
    made.write(write)
    assert where(made, "x") == places
    clusters = [place.partition(":")[0] for place in places]
    assert (made.record("x") or {})["flavors"] == {"nvidia.com/gpu": clusters}


@pytest.mark.parametrize("is_one", [False, True])
def test_a_group_goes_where_each_was_proven(is_one: bool) -> None:
    made = plane(m1=2, m2=3)
    more = in_one() if is_one else {}
    for name in ("a", "b"):
        made.submit(name, replicas=2, said=GROUP, more=more)
    made.turn()
    assert made.released() == ["a", "b"]
    assert all(where(made, name) for name in ("a", "b"))


def test_a_group_of_which_karmada_has_to_place_one_is_its_own_to_place() -> None:
    made = plane(m1=9, m2=9)
    made.submit("a", said=GROUP)
    made.submit("b", said=GROUP, duplicated=True)
    made.turn()
    assert made.released() == ["a", "b"]
    assert where(made, "a") == where(made, "b") == []


@pytest.mark.parametrize(("tried", "expected"), [(False, ["m2:1"]), (True, [])])
def test_of_several_terms_the_first_unless_karmada_has_tried_any(tried: bool, expected: list[str]) -> None:
    made = plane(m1=9, m2=3)
    terms = [{"affinityName": name, "clusterNames": [name]} for name in ("m2", "m1")]
    placement = {**objects.binding("any")["spec"]["placement"], "clusterAffinities": terms}
    made.submit("x", more={"placement": placement})
    if tried:
        made.refuse("x")
    made.turn()
    assert made.released() == ["x"]
    assert where(made, "x") == expected


GROWTH = [
    # Room for what is added, where that is then, and how many are charged.
    ("where it runs", {}, {"m1": 9, "m2": 9}, ["m1:4"]),
    # Another flavor's cluster has room, and it is charged to this one.
    ("no room in its flavor", {}, {"m2": 9}, ["m1:2"]),
    ("Karmada has to place it", {"duplicated": True, "clusters": ("m1",)}, {"m1": 9}, ["m1:2"]),
]


@pytest.mark.parametrize(
    ("options", "rooms", "expected"), [case[1:] for case in GROWTH], ids=[case[0] for case in GROWTH]
)
def test_growth(options: Options, rooms: dict[str, int], expected: list[str]) -> None:
    made = plane(m1=9)
    options["replicas"] = 2
    made.submit("x", **options)
    made.turn()
    if "duplicated" in options:
        made.place("x", m1=2)
        made.turn()
    assert where(made, "x") == ["m1:2"]
    made.rooms = rooms
    made.edit("x", lambda obj: obj["spec"].update(replicas=4, suspension={"scheduling": True}))
    made.passes(1)
    assert where(made, "x") == expected
    is_karmadas = "duplicated" in options
    assert made.is_held("x") is (not is_karmadas and expected == ["m1:2"])
    assert made.cache.running.in_flight == ({"x"} if is_karmadas else set())
    assert made.charged() == (2 if made.is_held("x") else 4)


def test_growth_beside_a_cluster_that_is_barred_by_now() -> None:
    """What runs there stays, and the rest goes elsewhere."""
    made = Plane({"m1": 100, "m2": 100}, rooms={"m1": 9})
    made.feed(RESOURCE_FLAVORS, objects.flavor("all", "m1", "m2"))
    made.queue("main", {"all": 100})
    made.submit("x", replicas=2, clusters=("m1", "m2"))
    made.turn()
    assert where(made, "x") == ["m1:2"]
    bar(made, "m1")
    made.rooms = {"m2": 9}
    made.edit("x", lambda obj: obj["spec"].update(replicas=3, suspension={"scheduling": True}))
    made.passes(1)
    assert where(made, "x") == ["m1:2", "m2:1"]
    assert not made.is_held("x")


def test_growth_over_clusters_of_one_flavor() -> None:
    """It stays together where it can, and nobody is told of what runs as on its way."""
    made = Plane({"m1": 100, "m2": 100}, rooms={"m1": 2, "m2": 9})
    made.feed(RESOURCE_FLAVORS, objects.flavor("all", "m1", "m2"))
    made.queue("main", {"all": 100})
    made.submit("x", replicas=2, clusters=("m1", "m2"))
    made.turn()
    (first,) = where(made, "x")
    made.rooms = {"m1": 1, "m2": 1}
    made.edit("x", lambda obj: obj["spec"].update(replicas=4, suspension={"scheduling": True}))
    made.passes(1)
    grown = {"m1:2": ["m1:3", "m2:1"], "m2:2": ["m1:1", "m2:3"]}
    assert where(made, "x") == grown[first]
    estimates = made.state.estimates
    assert estimates is not None
    told = {name: [gang.copies for gang in of] for name, of in estimates.assumed(made.elapsed_ms).items()}
    assert told == {"m1": [1], "m2": [1]}


SILENT = [
    # Clusters, each a flavor; those that are silent; how long each answer takes.
    ("all of them", 2, ("m0", "m1"), 0),
    ("one, while the other has no room", 2, ("m1",), 0),
    ("late", 2, ("m0", "m1"), 9),
]


@pytest.mark.parametrize(
    ("flavors", "silent", "late_s"), [row[1:] for row in SILENT], ids=[row[0] for row in SILENT]
)
def test_where_no_estimator_answers_karmada_chooses_among_all_flavors(
    flavors: int, silent: tuple[str, ...], late_s: int
) -> None:
    made = Plane({f"m{number}": 100 for number in range(flavors)}, rooms={})
    made.silent = silent
    made.submit("x")
    due: list[tuple[int, Probing]] = []
    waited_s = 0
    while made.is_held("x") and waited_s < 200:
        waited_s += 1
        made.elapsed_ms += 1_000
        for at_s, probing in [one for one in due if one[0] <= waited_s]:
            due.remove((at_s, probing))
            made.answer(probing)
        turned = turn(made.state, (), made.now)
        for write in turned.writes:
            made.write(write)
        due += [(waited_s + late_s, probing) for probing in turned.probings]
    assert 60 <= waited_s <= 95
    assert where(made, "x") == []
    assert (made.record("x") or {})["flavors"] == {
        "nvidia.com/gpu": [f"m{number}" for number in range(flavors)]
    }


@pytest.mark.parametrize(
    "quotas",
    [{"m1": 9, "m2": 9}, {"m1": 9}, {"m1": 9, "m2": 1}],
    ids=["a cluster in none", "clusters in none", "a flavor too small for it"],
)
def test_a_group_goes_where_its_flavors_are(quotas: dict[str, int]) -> None:
    made = Plane({**TWO, "m3": 100}, rooms={"m1": 9, "m2": 8, "m3": 7})
    made.queue("main", quotas)
    for name in ("a", "b"):
        made.submit(name, replicas=2, said=GROUP)
    made.turn()
    assert [where(made, name) for name in ("a", "b")] == [["m1:2"], ["m1:2"]]


def test_members_of_a_group_go_to_flavors_that_have_no_cluster_in_common() -> None:
    made = plane(m1=9, m2=9)
    for name, of in (("m1", "big"), ("m2", "small")):
        made.feed(RESOURCE_FLAVORS, objects.flavor(name, name, nodeLabels={"pool": of}))
    for name, of in (("a", "big"), ("b", "small")):
        claim = {"nodeSelector": {"pool": of}}
        requirements = {"resourceRequest": {"nvidia.com/gpu": "1"}, "nodeClaim": claim}
        made.submit(name, said=GROUP, more={"replicaRequirements": requirements})
    made.turn()
    assert [where(made, name) for name in ("a", "b")] == [["m1:1"], ["m2:1"]]


PARTS = [
    # By resource, its flavors with their clusters and quotas, in the queue's order; why it waits.
    ([("nvidia.com/gpu", {"m1": 9}), ("cpu", {"m2": 9})], ""),
    ([("cpu", {"c1": 1, "c2": 9}), ("nvidia.com/gpu", {"m1": 9})], "it asks for 2 cpu of flavor c1"),
]


@pytest.mark.parametrize(("groups", "why"), PARTS, ids=["by clusters", "by size"])
def test_its_parts_have_flavors_that_have_no_cluster_in_common(
    groups: list[tuple[str, dict[str, int]]], why: str
) -> None:
    made = plane(m1=9, m2=9)
    for flavor, cluster in (("c1", "m1"), ("c2", "m2")):
        made.feed(RESOURCE_FLAVORS, objects.flavor(flavor, cluster))
    queue = objects.cluster_queue("main", {})
    queue["spec"]["resourceGroups"] = [
        objects.cluster_queue("main", quotas, resource=resource)["spec"]["resourceGroups"][0]
        for resource, quotas in groups
    ]
    made.feed(CLUSTER_QUEUES, queue)
    requests = {"nvidia.com/gpu": "1", "cpu": "2"}
    made.submit("x", more={"replicaRequirements": {"resourceRequest": requests}})
    made.turn()
    assert made.is_held("x") is bool(why)
    told = made.reason("x")
    assert why in (told.text if told is not None else "")


def in_two() -> Obj:
    placement = objects.binding("any")["spec"]["placement"]
    spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]
    return {"placement": {**placement, "spreadConstraints": spread}}


def test_where_more_clusters_have_room_than_it_may_have_the_next_flavor_is_tried() -> None:
    made = Plane(dict.fromkeys(("m1", "m2", "m3", "m4"), 100), rooms={"m1": 2, "m2": 2, "m3": 2, "m4": 9})
    made.feed(RESOURCE_FLAVORS, objects.flavor("old", "m1", "m2", "m3"))
    made.feed(RESOURCE_FLAVORS, objects.flavor("new", "m4"))
    made.queue("main", {"old": 100, "new": 100})
    made.submit("x", replicas=6, more=in_two())
    made.passes(2)
    assert where(made, "x") == ["m4:6"]
    assert len(made.asked) == 2


LEFT = [
    # Room for what may go to two clusters at most, and those of which nobody knows.
    ("nobody knows where", {}, ("m1", "m2")),
    ("together it is enough, but not in two", {"m0": 2, "m1": 2, "m2": 2}, ()),
]


@pytest.mark.parametrize(("rooms", "silent"), [row[1:] for row in LEFT], ids=[row[0] for row in LEFT])
def test_what_goes_to_karmada_after_all_takes_part_in_its_window(
    rooms: dict[str, int], silent: tuple[str, ...]
) -> None:
    made = Plane(dict.fromkeys(("m0", "m1", "m2", "m3"), 1000), rooms={**rooms, "m3": 100})
    made.silent = silent
    more = in_two()
    more["placement"]["clusterAffinity"] = {"clusterNames": ["m0", "m1", "m2"]}
    for number in range(3 * START):
        made.submit(f"a{number}", replicas=6, more=more)
    made.passes(250)
    # Now and then one more, to try whether Karmada is there.
    assert START <= len(made.released()) <= START + 6
    assert made.cache.running.in_flight == set(made.released())
    told = made.reason(f"a{3 * START - 1}")
    assert told is not None
    assert told.kind in ("ReleaseWindowFull", "WaitingForEstimate")
    for number in range(START):
        made.submit(f"b{number}", clusters=("m3",))
    made.passes(5)
    assert [where(made, f"b{number}") for number in range(START)] == [["m3:1"]] * START


def test_what_karmada_placed_before_it_is_to_check_again() -> None:
    made = plane(m1=9, m2=5)
    applied = {"policy.karmada.io/applied-placement": "{}"}
    made.submit("x", annotations=applied)
    made.submit("k", annotations=applied, duplicated=True)
    made.turn()
    assert where(made, "x") == ["m1:1"]
    assert not applied.keys() & made.bindings["x"]["metadata"]["annotations"].keys()
    assert applied.keys() <= made.bindings["k"]["metadata"]["annotations"].keys()


def test_what_its_pods_are_told_keeps_what_its_template_says_when_it_is_released() -> None:
    made = plane(m1=9)
    made.witnesses = (Witness((("pod", (("n1", 1),)),)),)
    made.submit("x")
    (probing,) = turn(made.state, (), made.now).probings
    made.answer(probing)
    (write,) = turn(made.state, (), made.now).writes
    zone = {"key": "zone", "operator": "In", "values": ["z"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    job = objects.job("x", {"fairway.dev/queue": "main"}, affinity=affinity)
    job["metadata"] |= {"namespace": "team", "annotations": {"fairway.dev/gang": "False"}}
    made.feed(JOBS, job)
    made.write(write)
    assert made.is_held("x")
    made.turn()
    (told,) = made.told
    assert told is not None
    assert told.body is not None
    assert where(made, "x") == ["m1:1"]
    assert b'"zone"' in msgspec.json.encode(told.body)
    assert b'"n1"' in msgspec.json.encode(told.body)
