"""Every row of the table of states, and what people and crashes do to bindings."""

import pytest

from fairway.names import HELD_AT, QUEUE, REQUEUE, SKIP
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.charged import charged_queue, is_charged, reserved
from queue_dispatcher.bindings.derivation import read_state
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import write_requeue
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    Growing,
    HeldWithin,
    InFlight,
    Pending,
    Placed,
    Reassert,
    Shrinking,
    State,
    Unplaced,
    Unresolved,
)
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cycle.reasons import Reason, queue_not_found, queue_stopped, unreadable
from queue_dispatcher.workloads.demand import Requests
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import NO_FACTS, TemplateFacts
from tests.dispatcher.bindings.builders import (
    ADMITTED_MS,
    CREATED_MS,
    aggregated,
    binding,
    phase_of,
    rb,
    read,
    record,
    requeue,
    scheduled,
)
from tests.dispatcher.workloads.builders import GPU

TEAM = Resolved("research", "team")
LOST = queue_not_found("no such queue")
STOPPED = queue_stopped("ns/team", "stopped")
DUPLICATED = {"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}
PRESERVED = {"preserveResourcesOnDeletion": True}
SKIPPED = TemplateFacts(is_skipped=True)
SEEN_MS = ADMITTED_MS + 3_600_000


def state(
    of: Binding,
    queue: Resolved | Reason = TEAM,
    template: TemplateFacts | Reason | None = NO_FACTS,
    in_scope: bool = True,
    copies: int = 1,
    seen_ms: int = SEEN_MS,
) -> State:
    phase = phase_of(of)
    return read_state(of, template, queue, in_scope=in_scope, copies=copies, phase=phase, seen_ms=seen_ms)


def gpus(amount: int) -> tuple[tuple[str, int], ...]:
    return ((GPU, amount),) if amount else ()


class TestForeign:
    @pytest.mark.parametrize(
        "spec",
        [
            {"replicas": 0, "replicaRequirements": None},  # a ConfigMap
            {"placement": None},  # a dependency that follows another binding
        ],
    )
    def test_what_karmada_does_not_schedule_as_a_workload(self, spec: dict[str, object]) -> None:
        assert state(binding(spec=spec)) == Foreign()

    def test_what_was_admitted_stays_charged_though_its_policy_is_gone(self) -> None:
        one = binding(held=False, record=record(), placed={"a": 4}, spec={"placement": None})
        assert state(one) == Admitted(record(), Placed())

    def test_what_is_out_of_scope_and_not_held(self) -> None:
        assert state(binding(held=None), in_scope=False) == Foreign()

    @pytest.mark.parametrize("placed", [None, {"a": 1}])
    def test_out_of_scope_and_held_by_somebody_else(self, placed: dict[str, int] | None) -> None:
        assert state(binding(held=True, placed=placed), in_scope=False) == Foreign()

    @pytest.mark.parametrize("held", [True, False])
    def test_opted_out_on_the_binding(self, held: bool) -> None:
        assert state(binding(held=held, annotations={SKIP: ""})) == Foreign()

    def test_opted_out_on_the_template(self) -> None:
        assert state(binding(held=False), template=SKIPPED) == Foreign()

    def test_on_its_way_out_before_it_was_admitted(self) -> None:
        assert state(binding(metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"})) == Foreign()


class TestLetGo:
    """What is held by the gate, or by us, and is none of a queue's business any more."""

    @pytest.mark.parametrize(
        ("marks", "template", "in_scope"),
        [
            ({}, SKIPPED, True),  # the gate does not see it
            ({HELD_AT: ""}, SKIPPED, True),
            ({HELD_AT: "2026-11-20T12:00:00Z"}, SKIPPED, False),
            ({HELD_AT: "", SKIP: ""}, NO_FACTS, True),
            ({HELD_AT: "", SKIP: ""}, None, True),
            ({HELD_AT: ""}, NO_FACTS, False),
            ({HELD_AT: ""}, None, False),
            ({REQUEUE: write_requeue(requeue())}, NO_FACTS, False),
        ],
    )
    @pytest.mark.parametrize("placed", [None, {"a": 1}])
    def test_without_a_record(
        self,
        marks: dict[str, str],
        template: TemplateFacts | None,
        in_scope: bool,
        placed: dict[str, int] | None,
    ) -> None:
        one = binding(annotations=marks, placed=placed)
        for queue in (TEAM, LOST):
            found = state(one, queue, template, in_scope)
            assert found == HeldWithin(None, is_charged=False)
            # Nor is it while it waits to be let go of, however long that takes.
            assert not is_charged(found, one)

    def test_growth_of_what_was_admitted_and_is_skipped_by_now(self) -> None:
        one = binding(replicas=6, record=record(), placed={"a": 4})
        assert state(one, template=SKIPPED) == HeldWithin(record())

    @pytest.mark.parametrize(
        "one",
        [
            binding(annotations={HELD_AT: ""}, metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"}),
            binding(placed={"a": 4}, status=aggregated(a="Complete")),
        ],
    )
    def test_not_what_goes_or_has_ended(self, one: Binding) -> None:
        assert not isinstance(state(one, template=SKIPPED), HeldWithin)


class TestWaiting:
    def test_pending(self) -> None:
        assert state(binding()) == Pending(TEAM, gpus(8), 1, CREATED_MS)

    def test_duplicated_is_wanted_for_every_cluster_expected(self) -> None:
        assert state(binding(spec=DUPLICATED), copies=3) == Pending(TEAM, gpus(24), 3, CREATED_MS)

    def test_divided_is_wanted_once(self) -> None:
        assert state(binding(), copies=3) == Pending(TEAM, gpus(8), 1, CREATED_MS)

    def test_taken_back_it_keeps_its_place_and_waits_its_time(self) -> None:
        found = state(binding(requeue=requeue(2, 5, "no room")))
        assert found == Pending(TEAM, gpus(8), 1, CREATED_MS, 5, 2, "no room")

    def test_an_edited_requeue_record_wins_no_place_in_the_line(self) -> None:
        text = '{"count": 1, "notBefore": "1970-01-01T00:00:00Z", "enqueuedAt": "1970-01-01T00:00:00Z"}'
        found = state(binding(requeue=text))
        assert isinstance(found, Pending)
        assert (found.enqueued_ms, found.due_ms, found.tries) == (CREATED_MS, 0, 1)

    def test_a_malformed_requeue_record_is_as_none_and_noted(self) -> None:
        one = binding(requeue="{")
        assert state(one) == Pending(TEAM, gpus(8), 1, CREATED_MS)
        assert "fairway.dev/requeue" in one.notes[0]

    def test_a_malformed_admission_record_is_as_none(self) -> None:
        assert isinstance(state(binding(record='{"id": 7}')), Pending)

    def test_a_record_copied_from_another_binding_is_as_none(self) -> None:
        one = binding(record=record(uid="another"))
        assert isinstance(state(one), Pending)
        assert "another" in one.notes[0]

    @pytest.mark.parametrize(
        ("of", "queue", "template", "told"),
        [
            ({}, LOST, NO_FACTS, "no such queue"),
            ({}, Resolved("research", "team", stopped=STOPPED), NO_FACTS, "stopped"),
            ({}, TEAM, None, "Job ns/train, which the binding is about, is not there"),
            ({}, TEAM, unreadable("garbage"), "garbage"),
            ({}, TEAM, TemplateFacts(problems=("no size",)), "no size"),
            ({"replicas": -1}, TEAM, NO_FACTS, "spec.replicas: -1"),
        ],
    )
    def test_unresolved_says_why(
        self,
        of: dict[str, object],
        queue: Resolved | Reason,
        template: TemplateFacts | Reason | None,
        told: str,
    ) -> None:
        found = state(binding(**of), queue, template)
        assert isinstance(found, Unresolved)
        assert told in found.reason.text
        assert found.enqueued_ms == CREATED_MS


class TestAdmitted:
    def test_released_and_not_placed_yet(self) -> None:
        assert state(binding(held=False, record=record())) == Admitted(record(), InFlight())

    def test_the_queue_that_admitted_it_is_charged_whatever_its_label_says_now(self) -> None:
        one = binding(held=False, record=record())
        assert isinstance(state(one, LOST), Admitted)
        assert charged_queue(one, LOST) == charged_queue(one, Resolved("other")) == "research"

    @pytest.mark.parametrize("reason", ["Unschedulable", "NoClusterFit", "SchedulerError", "QuotaExceeded"])
    def test_karmada_could_not_place_it(self, reason: str) -> None:
        found = state(binding(held=False, record=record(), status=scheduled("False", reason)))
        assert found == Admitted(record(), Unplaced(reason, "why", ADMITTED_MS))

    def test_a_condition_of_an_earlier_try_says_nothing(self) -> None:
        status = scheduled("False", "Unschedulable", ADMITTED_MS - 60_000)
        assert state(binding(held=False, record=record(), status=status)) == Admitted(record(), InFlight())

    def test_scheduled_stays_true_after_an_eviction_and_says_nothing(self) -> None:
        status = scheduled("True", "Success")
        assert state(binding(held=False, record=record(), status=status)) == Admitted(record(), InFlight())

    def test_placed(self) -> None:
        one = binding(held=False, record=record(), placed={"a": 3, "b": 1})
        assert state(one) == Admitted(record(), Placed())

    def test_placed_in_part_it_is_still_in_flight(self) -> None:
        one = binding(held=False, record=record(), placed={"a": 3})
        assert state(one) == Admitted(record(), InFlight())

    def test_without_replicas_there_is_nothing_to_place(self) -> None:
        of = record(0)
        assert state(binding(replicas=0, held=False, record=of)) == Admitted(of, Placed(unbound=0))

    def test_karmada_took_it_off_its_clusters(self) -> None:
        status = scheduled("False", "NoClusterFit", ADMITTED_MS + 3_600_000)
        found = state(binding(held=False, record=record(), status=status))
        assert found == Admitted(record(), Unplaced("NoClusterFit", "why", ADMITTED_MS + 3_600_000))

    def test_grown_while_nobody_held_it_is_charged_as_it_will_be(self) -> None:
        """volcano-global lets work that was released once grow without end."""
        one = binding(replicas=9, held=False, record=record(4), placed={"a": 4})
        found = state(one)
        assert isinstance(found, Admitted)
        assert reserved(found, one) == gpus(18)

    def test_a_spec_that_cannot_be_read_leaves_it_what_it_has(self) -> None:
        one = binding(replicas=-4, held=False, record=record(), placed={"a": 4})
        found = state(one)
        assert isinstance(found, Admitted)
        assert reserved(found, one) == gpus(8)

    @pytest.mark.parametrize("held", [True, False])
    def test_opted_out_or_deleted_afterwards_it_is_charged_and_not_touched(self, held: bool) -> None:
        for one in (
            binding(replicas=2, held=held, record=record(), placed={"a": 4}, annotations={SKIP: ""}),
            binding(
                replicas=2, held=held, record=record(), placed={"a": 4}, metadata={"deletionTimestamp": "now"}
            ),
        ):
            assert isinstance(state(one), Admitted)
            assert reserved(state(one), one) == gpus(8)

    def test_a_cluster_that_joined_has_a_copy_more_than_was_admitted(self) -> None:
        one = binding(
            held=False, record=record(4, copies=2), placed={"a": 4, "b": 4, "c": 4}, spec=DUPLICATED
        )
        found = state(one)
        assert isinstance(found, Admitted)
        assert reserved(found, one) == gpus(24)


class TestShrinking:
    def test_scaled_down_the_record_is_to_be_lowered(self) -> None:
        one = binding(replicas=3, held=False, record=record(4), placed={"a": 4})
        found = state(one)
        assert found == Shrinking(record(3), Placed())
        assert reserved(found, one) == gpus(8)  # until that is written

    def test_copies_are_kept_for_clusters_that_may_come_back(self) -> None:
        of = record(4, copies=3)
        one = binding(held=False, record=of, placed={"a": 4}, spec=DUPLICATED)
        assert state(one) == Admitted(of, Placed())

    def test_a_record_edited_upwards_comes_down_again(self) -> None:
        one = binding(held=False, record=record(4, gpus=800), placed={"a": 4})
        assert state(one) == Shrinking(record(4), Placed())

    @pytest.mark.parametrize("held", [False, True])
    @pytest.mark.parametrize(
        ("replicas", "each", "lowered", "pods"),
        [
            # less of one resource, more of another
            (4, {GPU: "1", "cpu": "2"}, ((GPU, 4), ("cpu", 4_000)), 4),
            # none of one, more of another
            (4, {"cpu": "2"}, (("cpu", 4_000),), 4),
            # more pods that want less
            (6, {GPU: "1", "cpu": "1"}, ((GPU, 6), ("cpu", 4_000)), 4),
            # fewer pods that want more
            (3, {GPU: "1", "cpu": "2"}, ((GPU, 3), ("cpu", 4_000)), 3),
        ],
    )
    def test_each_resource_comes_down_though_more_of_another_is_wanted(
        self, held: bool, replicas: int, each: dict[str, str], lowered: Requests, pods: int
    ) -> None:
        had = record(4, requests=((GPU, 8), ("cpu", 4_000)))
        spec = {"replicaRequirements": {"resourceRequest": each}}
        found = state(binding(replicas=replicas, held=held, record=had, spec=spec))
        assert isinstance(found, Shrinking)
        assert found.record == record(pods, requests=tuple(sorted(lowered)))
        again = state(binding(replicas=replicas, held=held, record=found.record, spec=spec))
        assert isinstance(again, Growing if held else Admitted)

    def test_a_copy_more_than_was_admitted_is_charged_while_the_record_is_lowered(self) -> None:
        had = record(4, copies=2, requests=(("cpu", 9), (GPU, 16)))
        one = binding(held=False, record=had, placed={"a": 4, "b": 4}, spec=DUPLICATED)
        found = state(one, copies=3)
        assert found == Shrinking(record(4, copies=2), Placed(), copies=3)
        assert dict(reserved(found, one))[GPU] == 24

    def test_a_record_edited_downwards_saves_nothing(self) -> None:
        one = binding(held=False, record=record(4, gpus=1), placed={"a": 4})
        found = state(one)
        assert isinstance(found, Admitted)
        assert reserved(found, one) == gpus(8)


class TestHeldAfterAdmission:
    def test_growth_waits_for_the_difference_since_it_was_seen(self) -> None:
        found = state(binding(replicas=6, record=record(4), placed={"a": 4}))
        assert found == Growing(record(4), "research", "team", gpus(12), gpus(4), 1, SEEN_MS)

    @pytest.mark.parametrize(
        ("held_at", "since_ms"),
        [
            (format_ms(SEEN_MS - 7), SEEN_MS - 7),
            ("", SEEN_MS),  # a gate without a clock
            ("yesterday", SEEN_MS),
            ("2026-11-20T12:00:00", SEEN_MS),
            (format_ms(SEEN_MS + 3_600_000), SEEN_MS),
            ("9999-12-31T23:59:59Z", SEEN_MS),
            (format_ms(CREATED_MS - 1), CREATED_MS),
            ("1970-01-01T00:00:00.001Z", CREATED_MS),
        ],
    )
    @pytest.mark.parametrize("of", [record(4), None])
    def test_since_when_a_growth_waits(self, held_at: str, since_ms: int, of: AdmissionRecord | None) -> None:
        one = binding(replicas=6, record=of, placed={"a": 4}, annotations={HELD_AT: held_at})
        found = state(one)
        assert isinstance(found, Growing)
        assert found.enqueued_ms == since_ms

    def test_growth_of_requests_before_it_is_placed(self) -> None:
        found = state(binding(gpus=3, record=record(4)))
        assert isinstance(found, Growing)
        assert found.need == gpus(4)

    def test_growth_of_requests_reaches_the_members_whatever_is_held(self) -> None:
        """Karmada pins replicas while a binding is held, not what stands in the pod template."""
        assert state(binding(gpus=3, record=record(4), placed={"a": 4})) == HeldWithin(record(4, gpus=12))

    def test_growth_of_a_component_reaches_the_members_whatever_is_held(self) -> None:
        spec = {
            "replicas": 0,
            "replicaRequirements": None,
            "components": [
                {"name": "worker", "replicas": 3, "replicaRequirements": {"resourceRequest": {GPU: 2}}}
            ],
            # What Karmada counted with when it placed the set pins nothing.
            "clusters": [{"name": "a", "components": [{"name": "worker", "replicas": 2}]}],
        }
        assert state(binding(spec=spec, record=record(2))) == HeldWithin(record(3))

    def test_growth_in_pods_that_ask_for_nothing_has_to_be_let_go_all_the_same(self) -> None:
        found = state(binding(replicas=6, gpus=0, record=record(4, gpus=0), placed={"a": 4}))
        assert isinstance(found, Growing)
        assert found.need == ()

    @pytest.mark.parametrize("requests", [0, 2])
    def test_growth_that_karmada_placed_although_it_is_held_waits_for_nothing(self, requests: int) -> None:
        one = binding(replicas=6, gpus=requests, record=record(4, gpus=4 * requests), placed={"a": 4, "b": 2})
        assert state(one) == HeldWithin(record(6, gpus=6 * requests))

    def test_held_growth_is_charged_as_it_is(self) -> None:
        one = binding(replicas=6, record=record(4), placed={"a": 4})
        assert reserved(state(one), one) == gpus(8)

    @pytest.mark.parametrize(("outcome", "amount"), [("True", 12), ("False", 8)])
    def test_growth_that_was_let_go_by_hand_keeps_room_only_while_it_may_be_placed(
        self, outcome: str, amount: int
    ) -> None:
        status = scheduled(outcome, "Unschedulable" if outcome == "False" else "Success")
        one = binding(replicas=6, record=record(4), placed={"a": 4}, held=False, status=status)
        assert reserved(state(one), one) == gpus(amount)

    def test_growth_through_a_stopped_local_queue_is_blocked(self) -> None:
        one = binding(replicas=6, record=record(4), placed={"a": 4})
        found = state(one, Resolved("research", "team", stopped=STOPPED))
        assert isinstance(found, Growing)
        assert found.blocked == STOPPED

    @pytest.mark.parametrize("placed", [None, {"a": 4}])
    def test_held_by_hand_or_by_half_a_kick_it_is_let_go(self, placed: dict[str, int] | None) -> None:
        assert state(binding(record=record(4), placed=placed)) == HeldWithin(record(4))

    def test_scaled_down_while_held_the_record_is_lowered_in_the_same_write(self) -> None:
        found = state(binding(replicas=3, record=record(4), placed={"a": 4}))
        assert found == HeldWithin(record(3))

    def test_copies_that_run_already_are_no_growth(self) -> None:
        one = binding(record=record(4, copies=2), placed={"a": 4, "b": 4, "c": 4}, spec=DUPLICATED)
        assert state(one) == HeldWithin(record(4, copies=3))

    def test_a_spec_that_cannot_be_read_keeps_it_held(self) -> None:
        one = binding(replicas=-1, record=record(4), placed={"a": 4})
        assert isinstance(state(one), Admitted)


class TestAdopted:
    @pytest.mark.parametrize("text", [None, "{", '{"id": ""}', "[]"])
    def test_running_without_a_record_that_can_be_read(self, text: str | None) -> None:
        one = binding(held=False, placed={"a": 4}, record=text)
        found = state(one)
        assert found == Adopted(TEAM, 1)
        assert reserved(found, one) == gpus(8)
        assert charged_queue(one, TEAM) == "research"

    def test_the_flag_was_cleared_by_hand(self) -> None:
        one = binding(held=None)
        assert state(one) == Adopted(TEAM, 1)
        assert reserved(state(one), one) == gpus(8)

    def test_without_a_queue_it_takes_up_capacity(self) -> None:
        one = binding(held=False, placed={"a": 4})
        assert state(one, LOST) == Adopted(LOST, 1)
        assert charged_queue(one, LOST) == ""

    def test_duplicated_for_every_cluster_expected(self) -> None:
        one = binding(held=False, spec=DUPLICATED)
        assert state(one, copies=3) == Adopted(TEAM, 3)
        assert reserved(state(one, copies=3), one) == gpus(24)

    def test_its_growth_waits_like_any(self) -> None:
        one = binding(replicas=6, placed={"a": 4})
        assert state(one) == Growing(None, "research", "team", gpus(12), gpus(4), 1, SEEN_MS)
        assert reserved(state(one), one) == ()  # what is placed counts

    def test_its_growth_without_a_queue(self) -> None:
        one = binding(replicas=6, placed={"a": 4})
        assert state(one, LOST) == Unresolved(LOST, SEEN_MS)
        assert is_charged(state(one, LOST), one)

    def test_its_growth_without_a_template_is_blocked(self) -> None:
        found = state(binding(replicas=6, placed={"a": 4}), template=None)
        assert isinstance(found, Growing)
        assert found.blocked is not None
        assert found.blocked.kind == "Unreadable"

    def test_held_by_hand_it_is_let_go(self) -> None:
        assert state(binding(placed={"a": 4})) == HeldWithin(None)

    def test_scaled_down_while_held_it_is_let_go(self) -> None:
        assert state(binding(replicas=2, placed={"a": 4})) == HeldWithin(None)

    @pytest.mark.parametrize("queue", [TEAM, LOST])
    @pytest.mark.parametrize(("in_scope", "expected"), [(True, HeldWithin(None)), (False, Foreign())])
    def test_held_by_somebody_else_it_is_let_go_only_if_it_is_ours(
        self, queue: Resolved | Reason, in_scope: bool, expected: State
    ) -> None:
        assert state(binding(placed={"a": 4}), queue, in_scope=in_scope) == expected


class TestTakenBack:
    def test_placed_again_by_karmada_it_is_cleared_again(self) -> None:
        one = binding(placed={"a": 4}, requeue=requeue())
        assert state(one) == Reassert()
        assert is_charged(state(one), one)
        assert not one.is_settled  # and never will be, so there is nothing to wait for

    def test_even_if_the_requeue_record_was_damaged(self) -> None:
        assert state(binding(placed={"a": 4}, requeue="garbage")) == Reassert()

    def test_its_pods_would_outlive_it(self) -> None:
        one = binding(placed={"a": 4}, requeue=requeue(), spec=PRESERVED)
        assert state(one) == Adopted(TEAM, 1, restore=True)

    def test_its_pods_would_outlive_it_and_no_queue_is_known(self) -> None:
        one = binding(placed={"a": 4}, requeue=requeue(), spec=PRESERVED)
        assert state(one, LOST) == Adopted(LOST, 1)

    def test_admitted_anew_the_old_note_does_not_count(self) -> None:
        one = binding(held=False, placed={"a": 4}, record=record(), requeue=requeue())
        assert state(one) == Admitted(record(), Placed())


class TestFinished:
    @pytest.mark.parametrize("of", [record(), None])
    @pytest.mark.parametrize("held", [True, False])
    def test_in_every_cluster(self, of: object, held: bool) -> None:
        """volcano-global gives quota back only when the binding is deleted."""
        one = binding(
            held=held, record=of, placed={"a": 2, "b": 2}, status=aggregated(a="Complete", b="Failed")
        )
        assert state(one) == Finished()
        assert not is_charged(state(one), one)

    def test_in_one_of_two_it_goes_on(self) -> None:
        one = binding(held=False, record=record(), placed={"a": 2, "b": 2}, status=aggregated(a="Failed"))
        assert state(one) == Admitted(record(), Placed())
        assert one.finished == {"a"}

    def test_a_cluster_without_any_of_it_never_finishes_and_does_not_count(self) -> None:
        one = binding(held=False, record=record(), placed={"a": 4, "b": 0}, status=aggregated(a="Complete"))
        assert state(one) == Finished()

    def test_not_placed_any_more_it_is_not_finished(self) -> None:
        one = binding(held=False, record=record(), status=aggregated(a="Complete"))
        assert state(one) == Admitted(record(), InFlight())

    def test_finished_elsewhere_than_where_it_is(self) -> None:
        one = binding(held=False, record=record(), placed={"b": 4}, status=aggregated(a="Complete"))
        assert state(one) == Admitted(record(), Placed())


def test_cluster_scoped_bindings_go_through_the_same_states() -> None:
    one = read(rb(metadata={"namespace": "", "labels": {QUEUE: "research"}}))
    assert (one.key, one.queue) == ("train-job", "research")
    assert isinstance(state(one, Resolved("research")), Pending)
