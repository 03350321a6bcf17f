"""What the programs write, in whole scenarios against an API server that records it: only fields of ours."""

import base64
import inspect
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import ADMISSION, HELD_AT, REQUEUE
from fairway.scope import Scope
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.writes import Purpose
from sandbox.fakeapi.seen import Seen
from sandbox.fakeapi.writes import Write, WriteLog
from tests.dispatcher.scenarios import (
    test_checks,
    test_elastic,
    test_evictions,
    test_groups,
    test_growth,
    test_kicks,
    test_life,
    test_lost,
    test_suspending,
    test_take_back,
    test_tampering,
    test_visibility,
)
from tests.webhook import test_registration
from tests.webhook.builders import AT, Obj, binding, request
from tests.webhook.test_laws import specs
from webhook.review import write_review
from webhook.suspend import decide

BINDINGS = ("resourcebindings", "clusterresourcebindings")
OWNED = {
    ("metadata", "annotations", ADMISSION),
    ("metadata", "annotations", REQUEUE),
    ("metadata", "annotations", HELD_AT),
    ("metadata", "annotations", test_checks.CHECK),
    ("spec", "suspension", "scheduling"),
}
PRECONDITIONS = {("metadata", "uid"), ("metadata", "resourceVersion")}
CLEARED = ("spec", "clusters")
STAYS = [{"name": "m2", "replicas": 2}]
"""Where the rest runs on of what loses a part."""
STANDS = [{"name": "m1"}]
"""Where what is suspended stands still."""
APPLIED = ("metadata", "annotations", "policy.karmada.io/applied-placement")
ELASTIC: list[list[Obj]] = [[{"name": "m1", "replicas": pods}] for pods in (4, 2, 6)]
"""Where elastic work runs, as it starts, gives pods up and becomes whole."""
OTHER_WRITES = {
    ("create", "overridepolicies"),
    ("delete", "overridepolicies"),
    ("patch", "clusterqueues/status"),
    ("patch", "localqueues/status"),
    ("patch", "resourceflavors/status"),
    ("patch", "serviceclasses/status"),
    ("create", "events"),
    ("patch", "events"),
    ("create", "leases"),
    ("patch", "leases"),
    ("update", "leases"),
}
Scenario = Callable[[], None]
SCENARIOS: list[tuple[Scenario, set[Purpose]]] = [
    (test_life.test_a_workload_is_released_placed_and_gives_its_quota_back, {Purpose.ADMIT}),
    (test_life.test_cluster_scoped_workloads_name_a_cluster_queue_directly, {Purpose.ADMIT}),
    (
        test_checks.test_what_is_to_be_tried_later_is_asked_again_and_starts_once_it_may,
        {Purpose.RETRY_CHECK, Purpose.ADMIT},
    ),
    (test_groups.test_nothing_starts_before_all_of_the_group_are_there, {Purpose.ADMIT}),
    (test_growth.test_growth_waits_for_quota_while_what_runs_goes_on, {Purpose.ADMIT}),
    (test_growth.test_scaling_down_gives_quota_back_with_one_write, {Purpose.SHRINK}),
    (test_growth.test_a_held_scale_down_is_let_through_at_once, {Purpose.CLEAR_HOLD}),
    (test_growth.test_growth_that_is_not_placed_in_time_gives_its_quota_back, {Purpose.TAKE_BACK_GROWTH}),
    (test_take_back.test_what_has_started_after_all_has_its_tries_forgotten, {Purpose.STARTED}),
    (
        test_elastic.test_it_starts_in_part_gives_pods_up_and_becomes_whole,
        {Purpose.ADMIT, Purpose.YIELD},
    ),
    (test_kicks.test_a_workload_that_ends_wakes_it, {Purpose.KICK, Purpose.CLEAR_HOLD}),
    (
        test_take_back.test_what_is_placed_after_it_was_taken_back_is_cleared,
        {Purpose.TAKE_BACK, Purpose.REASSERT},
    ),
    (test_take_back.test_what_would_leave_its_pods_behind_is_not_cleared_but_adopted, {Purpose.ADOPT}),
    (
        test_lost.test_what_has_nothing_left_is_taken_back_and_started_elsewhere,
        {Purpose.ADMIT, Purpose.TAKE_BACK_LOST},
    ),
    (
        test_evictions.test_what_karmada_was_long_in_placing_runs_for_as_long_as_it_may,
        {Purpose.BEGAN, Purpose.EVICT},
    ),
    (test_evictions.test_a_queue_is_drained_and_goes_on, {Purpose.EVICT}),
    (
        test_suspending.test_a_place_that_was_kept_is_given_up,
        {Purpose.EVICT, Purpose.WAIT_ON, Purpose.GIVE_UP},
    ),
    (
        test_suspending.test_a_switch_follows_what_the_binding_says,
        {Purpose.ADMIT, Purpose.EVICT, Purpose.SWITCH},
    ),
    (test_lost.test_of_independent_pods_those_that_are_there_are_placed_anew, {Purpose.LEAVE_LOST}),
    (test_tampering.test_a_record_copied_to_a_new_binding_admits_nothing, {Purpose.ADMIT}),
    (test_tampering.test_a_policys_own_suspension_stays_byte_for_byte, {Purpose.ADMIT}),
    (test_tampering.test_what_is_skipped_is_not_touched_and_what_it_holds_is_charged, {Purpose.ADMIT}),
    # Nothing is to be written to a binding that somebody else has let go.
    (test_tampering.test_a_flag_cleared_by_hand_is_adoption, set()),
    (test_visibility.test_statuses_are_written_when_they_change_and_seldom, {Purpose.ADMIT}),
    (test_visibility.test_events_tell_of_those_that_stand_for_others_once, {Purpose.ADMIT}),
]
"""What is played, and for which purposes bindings are written at least."""


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """What a merge patch sets, by path; a list is a leaf."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, value


def scenarios(*modules: ModuleType) -> list[Any]:
    """The tests of these modules that take no parameters."""
    return [
        pytest.param(test, id=f"{module.__name__.rpartition('.')[2]}.{name}")
        for module in modules
        for name, test in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(test) and not inspect.signature(test).parameters
    ]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Write]:
    """Every write that an API server of this test is asked for."""
    seen: list[Write] = []
    begin = WriteLog.begin

    def recorded(log: WriteLog, what: Seen, resource: str, body: bytes) -> Write:
        write = begin(log, what, resource, body)
        seen.append(write)
        return write

    monkeypatch.setattr(WriteLog, "begin", recorded)
    return seen


@pytest.fixture
def purposes(monkeypatch: pytest.MonkeyPatch) -> set[Purpose]:
    """What bindings were written for, where the API server took it."""
    seen: set[Purpose] = set()
    count = DispatcherMetrics.write

    def counted(metrics: DispatcherMetrics, purpose: str, outcome: str) -> None:
        count(metrics, purpose, outcome)
        if outcome == "applied":
            seen.add(Purpose(purpose))

    monkeypatch.setattr(DispatcherMetrics, "write", counted)
    return seen


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [pytest.param(*case, id=case[0].__name__.removeprefix("test_")) for case in SCENARIOS],
)
def test_the_dispatcher_writes_its_own_fields_alone(
    scenario: Scenario, expected: set[Purpose], written: list[Write], purposes: set[Purpose]
) -> None:
    scenario()
    for write in written:
        if write.resource not in BINDINGS:
            assert (write.verb, write.resource) in OTHER_WRITES, write
            continue
        assert write.verb == "patch"
        assert write.seen.headers["Content-Type"] == "application/merge-patch+json"
        found = dict(leaves(json.loads(write.body)))
        # Nothing is written to another object than the one that was decided on.
        assert found.keys() >= PRECONDITIONS
        # Off all clusters, off some that are lost, suspended in one, or where a part runs.
        assert found.pop(CLEARED, []) in ([], STAYS, STANDS, *ELASTIC)
        # What Karmada noted when it placed it before goes with another placement.
        assert found.pop(APPLIED, None) is None
        assert set(found) <= OWNED | PRECONDITIONS, write.body
        assert found.get(("spec", "suspension", "scheduling"), True) in (True, False)
        # What the gate noted is only ever taken off.
        assert found.get(("metadata", "annotations", HELD_AT)) is None
        # Nor does it answer a check itself.
        assert found.get(("metadata", "annotations", test_checks.CHECK)) is None
    # A scenario in which nothing is written would prove nothing.
    assert purposes >= expected
    assert bool(purposes) == bool(expected)


def test_every_purpose_for_which_bindings_are_written_is_played() -> None:
    assert set().union(*(expected for _, expected in SCENARIOS)) == set(Purpose)


@given(obj=specs(), managed=st.booleans(), old=st.one_of(st.none(), specs()))
def test_the_webhook_answers_with_its_own_leaf_alone(obj: Obj, managed: bool, old: Obj | None) -> None:
    asked = request(binding(obj)) if old is None else request(binding(obj), binding(old))
    decision = decide(asked, Scope(builtin_catalogue()), managed=managed, at=AT)
    answer = json.loads(write_review(asked.uid, decision.response))["response"]
    assert answer["allowed"] is True
    assert set(answer) <= {"uid", "allowed", "patch", "patchType", "warnings", "auditAnnotations"}
    if "patch" in answer:
        for step in json.loads(base64.b64decode(answer["patch"])):
            assert step["op"] in ("add", "replace")
            assert (step["path"], step["value"]) in (
                ("/spec/suspension", {"scheduling": True}),
                ("/spec/suspension/scheduling", True),
                ("/metadata/annotations", {HELD_AT: AT}),
                ("/metadata/annotations/fairway.dev~1held-at", AT),
            )


@pytest.mark.parametrize("scenario", scenarios(test_registration))
def test_the_webhook_writes_its_own_objects_alone(scenario: Scenario, written: list[Write]) -> None:
    scenario()
    for write in written:
        assert write.resource in ("secrets", "mutatingwebhookconfigurations"), write
        if write.verb != "create":
            assert write.path.rpartition("/")[2] == "fairway-webhook"
        else:
            assert json.loads(write.body)["metadata"]["name"] == "fairway-webhook"
