"""What its kind has a switch for is suspended by a policy, which follows what its binding says."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from queue_dispatcher.api.kinds import SERVICE_CLASSES
from queue_dispatcher.cache.overrides import OVERRIDE_POLICIES
from queue_dispatcher.turn.suspending import WAITS_MS
from queue_dispatcher.turn.switching import REFUSALS, STOPS_MS
from tests.dispatcher.scenarios.objects import GPU, Obj, service_class
from tests.dispatcher.turn.builders import JOB_SETS, Plane
from tests.dispatcher.turn.test_evictions import tells
from tests.dispatcher.turn.test_suspending import (
    COOLDOWN_S,
    DIVIDED,
    DRAINED,
    HERE,
    ONE,
    PREEMPTS,
    TAKEN_OFF,
    ends,
    note,
    plane,
    purposes,
    queue,
    since_s,
    stands,
    stay,
    urgent,
)

POLICY: Final = "suspended-by-fairway-x-jobset"
REPLICAS: Final[Obj] = {"placement": {"replicaScheduling": DIVIDED}}
WHOLE: Final[Obj] = {
    "replicas": 0,
    "replicaRequirements": None,
    "placement": {"spreadConstraints": [ONE]},
    "components": [
        {"name": "workers", "replicas": 4, "replicaRequirements": {"resourceRequest": {GPU: "1"}}}
    ],
}
"""As Karmada states it where it knows of components."""
STILL: Final[Obj] = {
    "conditions": [{"type": "Suspended", "status": "True"}],
    "replicatedJobsStatus": [{"name": "workers", "active": 0, "suspended": 1}],
}
RUNS: Final[Obj] = {"replicatedJobsStatus": [{"name": "workers", "active": 1, "ready": 1}]}
STANDS: Final = {"held": True, "clusters": [{"name": "m1", "replicas": 4}]}
GOES_ON: Final = {"held": False, "clusters": [{"name": "m1", "replicas": 4}]}


def runs(made: Plane, more: Obj = REPLICAS, **spec: object) -> None:
    """A JobSet of four pods runs in m1."""
    made.submit("x", replicas=4, kind="JobSet", said={"fairway.dev/class": "low"}, more=more)
    states(made, **spec)
    made.turn()
    assert not made.is_held("x"), made.reason("x")
    made.place("x", m1=0 if "components" in more else 4)
    reports(made, RUNS)


def states(made: Plane, **spec: object) -> None:
    """Its JobSet says that much."""
    stated = made.template(JOB_SETS, "x")
    stated["spec"] |= spec
    made.feed(JOB_SETS, stated)


def reports(made: Plane, status: Obj) -> None:
    made.report("x", m1=status)
    made.turn()


def drained(made: Plane) -> None:
    queue(made, **DRAINED)
    made.passes(2)


def leaves(made: Plane) -> None:
    """Its pods are gone, and the other one starts."""
    reports(made, STILL)
    made.rooms = {"m1": 9, "m2": 9}
    made.passes(15)
    assert not made.is_held("urgent"), made.reason("urgent")
    made.place("urgent", m1=4)
    made.rooms = {"m1": 0, "m2": 0}
    made.passes(1)


def switch(made: Plane) -> Obj | None:
    """What the policy that suspends it says, and where."""
    policy = made.policies.get(POLICY)
    if policy is None:
        return None
    (rule,) = policy["spec"]["overrideRules"]
    (entry,) = rule["overriders"]["plaintext"]
    return {entry["path"]: entry["value"], "in": rule["targetCluster"]["clusterNames"]}


ON: Final = {"/spec/suspend": True, "in": ["m1"]}


@pytest.mark.parametrize("more", [REPLICAS, WHOLE], ids=["replicas", "components"])
def test_what_is_displaced_is_suspended_where_it_is_and_goes_on_there(more: Obj) -> None:
    made = plane(**PREEMPTS)
    runs(made, more)
    stated = {"name": "m1", "replicas": 4} if more is REPLICAS else {"name": "m1"}
    urgent(made)
    assert (stands(made), switch(made)) == ({"held": True, "clusters": [stated]}, ON)
    said = stay(made)
    assert said is not None
    assert since_s(made, said.pop("until")) == pytest.approx(COOLDOWN_S + WAITS_MS / 1000, abs=5)
    assert said == HERE
    assert (made.record("x"), made.charged()) == (None, 4)
    leaves(made)
    assert made.charged() == 4
    ends(made)
    made.passes(COOLDOWN_S)
    assert (stands(made), switch(made)) == ({"held": False, "clusters": [stated]}, None)
    assert (made.requeue("x"), made.charged()) == (None, 4)
    assert "give_up" not in purposes(made)


def test_the_binding_is_written_before_the_policy_comes_and_before_it_goes() -> None:
    """So what runs is charged in each moment."""
    made = plane()
    runs(made)
    drained(made)
    reports(made, STILL)
    queue(made)
    made.passes(10)
    assert purposes(made) == ["admit", "evict", "switch", "wait_on", "admit", "switch"]


def test_it_is_charged_whole_until_its_cluster_says_that_none_of_it_is_left() -> None:
    made = plane()
    runs(made)
    drained(made)
    assert made.charged() == 4
    for status in (
        {},
        {"replicatedJobsStatus": [{"active": 0}]},
        {**STILL, "replicatedJobsStatus": [{"active": 1}, {"active": 0}]},
        {**STILL, "conditions": [{"type": "Suspended", "status": "False"}]},
        {**STILL, "replicatedJobsStatus": "none"},
    ):
        reports(made, status)
        assert made.charged() == 4, status
    assert note(made).startswith("suspended in cluster m1, where 4 of its pods are still to go")
    reports(made, STILL)
    assert made.charged() == 0


def test_it_gives_up_its_place_and_the_policy_goes_with_it() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    leaves(made)
    made.passes(WAITS_MS / 1000 + COOLDOWN_S, step_s=10)
    assert (stands(made), stay(made), switch(made)) == (TAKEN_OFF, None, None)
    assert "PlaceGivenUp" in [one[0] for one in tells(made)[0]]


# Whoever leads dies between two writes, or somebody else writes.


def dies_before_the_policy_comes(made: Plane) -> None:
    urgent(made)
    del made.policies[POLICY]
    made.restart()


def dies_before_the_policy_goes(made: Plane) -> None:
    urgent(made)
    kept = made.policies[POLICY]
    leaves(made)
    ends(made)
    made.passes(COOLDOWN_S)
    assert not made.is_held("x")
    made.policies[POLICY] = kept
    made.restart()


@pytest.mark.parametrize(
    ("dies", "held", "policy"),
    [(dies_before_the_policy_comes, True, ON), (dies_before_the_policy_goes, False, None)],
)
def test_who_takes_over_sees_from_both_objects_what_is_left_to_do(
    dies: Callable[[Plane], None], policy: Obj | None, *, held: bool
) -> None:
    made = plane(**PREEMPTS)
    runs(made)
    dies(made)
    made.state.advance(made.now)
    made.cache.settle()
    assert made.charged() == 4
    made.turn()
    assert (made.is_held("x"), switch(made), made.charged()) == (held, policy, 4)


def opted_out(obj: Obj) -> None:
    obj["metadata"]["annotations"]["fairway.dev/skip"] = "true"


def let_go(obj: Obj) -> None:
    obj["spec"]["suspension"] = {"scheduling": False}


def forgotten(obj: Obj) -> None:
    del obj["metadata"]["annotations"]["fairway.dev/requeue"]


def moved(obj: Obj) -> None:
    obj["spec"]["clusters"] = [{"name": "m2", "replicas": 4}]


@pytest.mark.parametrize(
    ("change", "policy"), [(opted_out, None), (let_go, None), (forgotten, None), (moved, ON)]
)
def test_whatever_others_make_of_the_binding_the_policy_follows(
    change: Callable[[Obj], None], policy: Obj | None
) -> None:
    """What Karmada has placed elsewhere comes back, suspended."""
    made = plane()
    runs(made)
    drained(made)
    made.edit("x", change)
    made.passes(10)
    assert switch(made) == policy
    assert made.is_held("x") is (policy is not None)
    assert list(made.clusters("x")) == ["m1:4"]


def test_a_policy_that_somebody_deletes_comes_again() -> None:
    made = plane()
    runs(made)
    drained(made)
    made.policies.clear()
    made.cache.overrides.policies.delete(f"team/{POLICY}")
    made.passes(10)
    assert switch(made) == ON


def test_a_policy_that_is_written_late_goes_again() -> None:
    """By a leader that is none any more."""
    made = plane()
    runs(made)
    drained(made)
    late = made.told[-1]
    assert late is not None
    queue(made)
    reports(made, STILL)
    made.passes(10)
    assert switch(made) is None
    made.switch(late)
    assert switch(made) == ON
    made.turn()
    assert (switch(made), made.is_held("x")) == (None, False)


def test_the_policy_of_a_workload_of_another_uid_goes() -> None:
    made = plane()
    runs(made)
    drained(made)
    made.delete("x")
    runs_not = made.submit("x", replicas=4, kind="JobSet", said={"fairway.dev/class": "low"}, more=REPLICAS)
    made.turn()
    assert (made.is_held(runs_not), switch(made)) == (True, None)


def test_nothing_is_written_over_and_over_while_the_watch_is_late() -> None:
    made = plane()
    runs(made)
    made.lags = True
    drained(made)
    made.passes(3)
    assert purposes(made).count("switch") == 1
    made.passes(5)
    assert purposes(made).count("switch") == 2


# What cannot be suspended so.


def test_where_the_policy_is_refused_it_is_taken_off() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    made.refusal = "nothing would suspend it in its cluster: forbidden"
    urgent(made)
    assert (stands(made), made.charged()) == (STANDS, 4)
    made.passes(10)
    assert purposes(made).count("switch") == REFUSALS
    assert (stands(made), stay(made), made.charged()) == (TAKEN_OFF, None, 0)


@pytest.mark.parametrize("spec", [PREEMPTS, {}], ids=["displaced", "drained"])
def test_what_does_not_stop_is_taken_off(spec: dict[str, Any]) -> None:
    """Its controller is not there, or somebody sets the switch back."""
    made = plane(**spec)
    runs(made)
    begun_s = made.elapsed_ms / 1000
    if spec:
        urgent(made)
    else:
        drained(made)
    while stands(made) == STANDS and made.elapsed_ms / 1000 - begun_s < 1_000:
        assert made.charged() == 4
        made.passes(1)
    told = [one for one in tells(made)[0] if one[0] == "PlaceGivenUp"]
    why = "taken off the cluster where it was suspended, as its pods did not stop there"
    assert told == [("PlaceGivenUp", why)]
    waits_s = STOPS_MS / 1000 + (COOLDOWN_S if spec else 0)
    assert made.elapsed_ms / 1000 - begun_s == pytest.approx(waits_s, abs=5)
    assert (stands(made), stay(made), switch(made), made.charged()) == (TAKEN_OFF, None, None, 0)


def test_what_has_stopped_stands_still_for_as_long_as_its_queue_is_drained() -> None:
    made = plane()
    runs(made)
    drained(made)
    reports(made, STILL)
    made.passes(2 * STOPS_MS / 1000, step_s=10)
    assert (stands(made), switch(made), made.charged()) == (STANDS, ON, 0)


def test_what_is_in_a_cluster_that_is_lost_is_not_said_not_to_stop() -> None:
    made = plane()
    runs(made)
    drained(made)
    made.cluster("m1", 4, ready=False)
    made.passes(2 * STOPS_MS / 1000, step_s=10)
    assert (stands(made), switch(made), made.charged()) == (STANDS, ON, 4)


def suspended_by_others(made: Plane) -> None:
    made.override("theirs", "/spec/suspend")


def unread(made: Plane) -> None:
    made.cache.queues.cannot_read(OVERRIDE_POLICIES.name, "forbidden")


def copied(made: Plane) -> None:
    many = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
    made.edit("x", lambda obj: obj["spec"].update(placement=many))
    made.place("x", m1=4)


@pytest.mark.parametrize("change", [suspended_by_others, unread, copied])
def test_what_no_policy_of_ours_could_suspend_is_taken_off(change: Callable[[Plane], None]) -> None:
    made = plane()
    runs(made)
    change(made)
    drained(made)
    assert (stands(made), stay(made), switch(made)) == (TAKEN_OFF, None, None)


def test_what_comes_to_be_copied_while_it_stands_still_is_taken_off() -> None:
    made = plane()
    runs(made)
    drained(made)
    copied(made)
    made.passes(10)
    assert (stands(made), switch(made)) == (TAKEN_OFF, None)


def test_what_others_set_elsewhere_does_not_matter() -> None:
    made = plane()
    runs(made)
    made.override("theirs", "/metadata/labels/team")
    drained(made)
    assert (stands(made), switch(made)) == (STANDS, ON)


@pytest.mark.parametrize("spec", [{"suspend": True}, {"managedBy": "kueue.x-k8s.io/multikueue"}])
def test_what_somebody_else_suspends_or_runs_is_taken_off(spec: Obj) -> None:
    made = plane()
    runs(made, **spec)
    drained(made)
    assert (stands(made), stay(made), switch(made)) == (TAKEN_OFF, None, None)


def test_what_its_owner_suspends_meanwhile_is_left_to_him_when_it_goes_on() -> None:
    made = plane()
    runs(made)
    drained(made)
    reports(made, STILL)
    states(made, suspend=True)
    made.passes(2)
    assert switch(made) == ON
    queue(made)
    made.passes(10)
    assert (stands(made), switch(made)) == (GOES_ON, None)


def test_what_has_ended_in_the_meantime_has_ended_and_keeps_no_policy() -> None:
    made = plane()
    runs(made)
    drained(made)
    reports(made, {"conditions": [{"type": "Completed", "status": "True"}]})
    made.passes(6)
    assert type(made.entry("x").state).__name__ == "Finished"
    assert switch(made) is None


def test_whoever_only_observes_writes_no_policy() -> None:
    made = plane()
    runs(made)
    drained(made)
    made.policies.clear()
    made.cache.overrides.policies.delete(f"team/{POLICY}")
    made.cache.observes = True
    made.passes(10)
    assert switch(made) is None


def test_a_set_whose_estimators_are_silent_goes_on_as_a_whole() -> None:
    made = plane()
    runs(made, WHOLE)
    drained(made)
    reports(made, STILL)
    made.silent = ("m1", "m2")
    queue(made)
    made.passes(600, step_s=5)
    assert stands(made) == {"held": False, "clusters": [{"name": "m1"}]}
    assert switch(made) is None


def test_a_class_that_lets_it_run_no_longer_takes_it_off() -> None:
    made = plane()
    made.feed(SERVICE_CLASSES, service_class("low", 0, maxRuntime="100s"))
    runs(made)
    made.passes(110)
    assert (stands(made), stay(made), switch(made)) == (TAKEN_OFF, None, None)
