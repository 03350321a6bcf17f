"""Groups over time: who is part of a decision that was cut short, and who asks for quota like anybody."""

import json
from collections.abc import Callable

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, SERVICE_CLASSES
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.preparation import prepare
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Fate, Write
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import Obj, service_class
from tests.dispatcher.turn.builders import JOBS, Plane


def of(size: int, name: str = "ring") -> dict[str, str]:
    return {"fairway.dev/group": name, "fairway.dev/group-size": str(size)}


def plane(quota: int = 4) -> Plane:
    made = Plane()
    made.queue("main", {"m1": quota})
    return made


def relabel(made: Plane, name: str, said: dict[str, str], queue: str = "main") -> None:
    """Its owner changes the labels of its template."""
    job = objects.job(name, {"fairway.dev/queue": queue} | said)
    job["metadata"]["namespace"] = "team"
    made.feed(JOBS, job)


def finish(made: Plane, *names: str) -> None:
    for name in names:
        made.report(name, m1={"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1})


def pair(made: Plane, size: int = 2) -> None:
    """A group of two that runs."""
    for name in ("a", "b"):
        made.submit(name, said=of(size))
    made.turn()
    for name in ("a", "b"):
        made.place(name, m1=1)
    made.turn()


# Everybody who was not part of the decision.


def relabelled(made: Plane) -> None:
    made.submit("c", gpus=50)
    pair(made)
    relabel(made, "c", of(3))


def relabelled_long_after(made: Plane) -> None:
    made.submit("c", gpus=50)
    pair(made)
    finish(made, "a", "b")
    made.elapsed_ms += 24 * 3_600_000
    relabel(made, "c", of(3))


def relabelled_in_a_stopped_queue(made: Plane) -> None:
    made.submit("c", gpus=50)
    pair(made)
    made.feed(CLUSTER_QUEUES, objects.cluster_queue("main", {"m1": 4}, stopPolicy="Hold"))
    relabel(made, "c", of(3))


def made_again_in_the_second_of_the_admission(made: Plane) -> None:
    pair(made)
    made.delete("b")
    made.submit("c", gpus=8, said=of(2))


def read_late(made: Plane) -> None:
    made.submit("c", gpus=50, queue="nowhere", said=of(2))
    pair(made)
    finish(made, "a")
    made.delete("a")
    relabel(made, "c", of(2))


def made_again_before_another_grows(made: Plane) -> None:
    pair(made)
    made.delete("b")
    made.elapsed_ms += 60_000
    made.submit("c", gpus=8, said=of(2))
    made.elapsed_ms += 60_000

    def grow(obj: Obj) -> None:
        obj["spec"]["replicas"] = 2
        obj["spec"].setdefault("suspension", {})["scheduling"] = True

    made.edit("a", grow)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    "story",
    [
        relabelled,
        relabelled_long_after,
        relabelled_in_a_stopped_queue,
        made_again_in_the_second_of_the_admission,
        read_late,
        made_again_before_another_grows,
    ],
)
def test_who_joins_a_group_that_was_released_asks_for_quota(
    story: Callable[[Plane], None], restarts: bool
) -> None:
    made = plane()
    story(made)
    if restarts:
        made.restart()
    made.passes(120, step_s=5)
    assert made.is_held("c")
    assert made.charged() <= 4


def test_many_who_join_a_group_are_not_released_past_the_window() -> None:
    made = plane()
    names = [made.submit(f"c{number}", gpus=500) for number in range(30)]
    made.submit("a", said=of(1))
    made.turn()
    for name in names:
        relabel(made, name, of(31))
    made.passes(10)
    assert made.released() == ["a"]
    assert made.charged() == 1


# Whom a decision left out that was cut short.


def cut_short(made: Plane, *, after: int) -> None:
    """Whatever is decided, only so many writes are made, and another process takes over."""
    for write in turn(made.state, (), made.now).writes[:after]:
        made.write(write)
    made.restart()


def half_released(made: Plane, members: int = 3, after: int = 1) -> None:
    for number in range(members):
        made.submit(f"g{number}", said=of(members))
    made.elapsed_ms += 1_500
    cut_short(made, after=after)


def nothing(made: Plane) -> None:
    """The rest is still there."""


def rival(made: Plane) -> None:
    made.submit("rival", gpus=2)


def joined(made: Plane) -> None:
    made.submit("joined", said=of(3))


def sought_to_join(made: Plane) -> None:
    relabel(made, "big", of(3))


def ended(made: Plane) -> None:
    made.place("g0", m1=1)
    finish(made, "g0")


def leads_elsewhere(made: Plane) -> None:
    made.feed(CLUSTER_QUEUES, objects.cluster_queue("other", {"m1": 10}))
    local = objects.local_queue("main", "other")
    local["metadata"]["namespace"] = "team"
    made.feed(LOCAL_QUEUES, local)


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize("story", [nothing, rival, joined, sought_to_join, ended, leads_elsewhere])
def test_a_half_released_group_is_rolled_forward_whole(story: Callable[[Plane], None], after: int) -> None:
    made = plane(3)
    made.submit("big", gpus=50)
    half_released(made, after=after)
    story(made)
    made.turn()
    assert made.released() == ["g0", "g1", "g2"]
    assert {(made.record(name) or {})["queue"] for name in made.released()} == {"main"}
    decisions = [(made.record(name) or {})["decision"] for name in made.released()]
    assert decisions[0]["members"] == 3
    assert decisions == [decisions[0]] * 3


def asks_for_more(made: Plane) -> None:
    made.edit("g2", lambda obj: obj["spec"].update(replicas=9))


def mate_is_deleted(made: Plane) -> None:
    made.delete("g0")


def record_of_another_version(made: Plane) -> None:
    def older(obj: Obj) -> None:
        said = obj["metadata"]["annotations"]
        record = json.loads(said["fairway.dev/admission"])
        record.pop("decision", None)
        said["fairway.dev/admission"] = json.dumps(record)

    for name in made.released():
        made.edit(name, older)


@pytest.mark.parametrize("story", [asks_for_more])
def test_no_more_is_rolled_forward_than_was_decided(story: Callable[[Plane], None]) -> None:
    made = plane(3)
    half_released(made)
    story(made)
    made.passes(30)
    assert made.released() == ["g0", "g1"]
    assert made.charged() == 2


@pytest.mark.parametrize("story", [mate_is_deleted, record_of_another_version])
def test_what_cannot_be_proven_to_be_left_out_stands_in_line(story: Callable[[Plane], None]) -> None:
    made = plane(3)
    half_released(made, after=2)
    made.queue("main", {"m1": 1})
    story(made)
    made.passes(30)
    assert made.is_held("g2")
    made.queue("main", {"m1": 100})
    made.turn()
    assert not made.is_held("g2")


# Who was taken back.


def quick(made: Plane) -> None:
    made.feed(SERVICE_CLASSES, service_class("quick", globalDefault=True, startTimeout="1m"))


def taken_back(made: Plane, *names: str) -> None:
    """All of them ran, and these lost their places, and found no others."""
    quick(made)
    made.turn()
    for name in made.released():
        made.place(name, m1=1)
    made.turn()
    for name in names:
        made.lose(name)
        made.refuse(name)
    made.passes(70)
    assert all(made.is_held(name) for name in names)


def test_who_was_taken_back_is_tried_again_when_its_mates_are_gone() -> None:
    made = plane()
    for name in "abc":
        made.submit(name, said=of(3))
    taken_back(made, "c")
    finish(made, "a", "b")
    made.turn()
    made.delete("a")
    made.delete("b")
    made.passes(55)
    assert not made.is_held("c")


def test_those_who_were_taken_back_are_tried_again_each_for_itself() -> None:
    made = plane()
    for name in "abcd":
        made.submit(name, said=of(4))
    taken_back(made, "c", "d")
    made.submit("other")
    made.passes(55)
    assert made.released() == ["a", "b", "c", "other"]


def test_a_group_that_never_was_whole_is_taken_back_whole() -> None:
    made = plane(5)
    quick(made)
    for name in "abcd":
        made.submit(name, said=of(4))
    made.turn()
    for name in "abcd":
        made.refuse(name) if name in "cd" else made.place(name, m1=1)
    made.passes(59)
    assert made.released() == ["a", "b", "c", "d"]
    made.passes(5)
    assert made.released() == []
    assert made.charged() == 0
    reasons = [(made.requeue(name) or {})["reason"] for name in "abcd"]
    mates = "Unschedulable: 0 clusters have room"
    assert all(f"which starts with it, did not start: {mates}" in reason for reason in reasons[:2])
    assert reasons[2:] == [mates] * 2
    made.submit("other", gpus=2)
    made.passes(60)
    assert made.released() == ["other"]
    made.queue("main", {"m1": 6})
    made.turn()
    assert made.released() == ["a", "b", "c", "d", "other"]


def test_a_group_of_which_all_was_taken_back_starts_together_again() -> None:
    made = plane(3)
    for name in "abc":
        made.submit(name, said=of(3))
    taken_back(made, *"abc")
    made.submit("other")
    made.passes(55)
    assert made.released() == ["other"]
    made.queue("main", {"m1": 4})
    made.turn()
    assert made.released() == ["a", "b", "c", "other"]


def test_who_was_taken_back_asks_for_quota_also_when_that_is_forgotten() -> None:
    made = plane()
    for name in "abc":
        made.submit(name, said=of(3))
    taken_back(made, "c")
    made.submit("other", gpus=2)
    made.turn()
    made.edit("c", lambda obj: obj["metadata"]["annotations"].pop("fairway.dev/requeue"))
    made.passes(55)
    assert made.is_held("c")


# A member of which nobody can tell for a while whether it was released.


def begun(made: Plane) -> dict[str, Write]:
    """The writes of a group of two that was just decided, for which all of the quota goes; one more waits."""
    for name in ("a", "b"):
        made.submit(name, said=of(2))
    writes = {write.uid: write for write in turn(made.state, (), made.now).writes}
    made.submit("c", gpus=2)
    return writes


def followed(made: Plane) -> dict[str, Write]:
    """As `begun`: "a" was left open, and the write of "b" is to follow it."""
    writes = begun(made)
    hear(made.state, Wrote(writes["a"], Fate.OPEN, "?"), made.now)
    hear(made.state, Wrote(writes["b"], Fate.DROPPED), made.now)
    return writes | {write.uid: write for write in turn(made.state, (), made.now).writes}


@pytest.mark.parametrize("of_a", [Fate.FAILED, Fate.GONE])
@pytest.mark.parametrize(
    ("of_b", "then"),
    [
        (Fate.APPLIED, ["a", "b"]),
        (Fate.OPEN, ["a"]),
        # Neither was released, and what failed comes behind others.
        (Fate.DROPPED, ["c"]),
        (Fate.FAILED, ["c"]),
        (Fate.GONE, ["c"]),
    ],
)
def test_a_group_stays_charged_while_a_member_may_be_released_by_a_write_under_way(
    of_a: Fate, of_b: Fate, then: list[str]
) -> None:
    made = plane(2)
    writes = followed(made)
    sent = prepare(made.state, writes["b"], made.now)
    assert sent is not None
    hear(made.state, Wrote(writes["a"], of_a, "no"), made.now)
    made.passes(30)
    # Its write is under way: nobody else starts, and nothing of the group is tried over and over.
    assert (made.charged(), made.released()) == (2, [])
    assert not turn(made.state, (), made.now).writes
    if of_b is Fate.APPLIED:
        made.store("b", sent)
    hear(made.state, Wrote(writes["b"], of_b, "no"), made.now)
    for write in turn(made.state, (), made.now).writes:
        made.write(write)
    assert (made.charged(), made.released()) == (2, then)
    if of_b is Fate.OPEN:
        hear(made.state, Wrote(writes["b"], Fate.FAILED, "no"), made.now)
        made.passes(60)
        assert (made.charged(), made.released()) == (2, ["a", "b"])


def test_what_has_not_been_sent_when_its_group_is_called_off_is_not_sent() -> None:
    made = plane(2)
    writes = followed(made)
    hear(made.state, Wrote(writes["a"], Fate.FAILED, "no"), made.now)
    assert made.charged() == 2
    assert prepare(made.state, writes["b"], made.now) is None
    made.cache.settle()
    assert made.charged() == 0


def test_a_group_is_called_off_although_the_member_it_waits_for_is_deleted() -> None:
    made = plane(2)
    writes = followed(made)
    assert prepare(made.state, writes["b"], made.now) is not None
    hear(made.state, Wrote(writes["a"], Fate.FAILED, "no"), made.now)
    made.delete("b")
    made.passes(30)
    hear(made.state, Wrote(writes["b"], Fate.GONE, "no"), made.now)
    made.passes(30)
    assert (made.charged(), made.released()) == (2, ["c"])


def test_who_is_on_its_way_stays_charged_though_another_of_its_group_asks_for_something_else() -> None:
    made = plane(2)
    writes = begun(made)
    sent = prepare(made.state, writes["a"], made.now)
    assert sent is not None
    made.edit("b", lambda obj: obj["spec"].update(replicas=2))
    assert prepare(made.state, writes["b"], made.now) is None
    made.passes(30)
    assert made.released() == []
    made.store("a", sent)
    hear(made.state, Wrote(writes["a"], Fate.APPLIED), made.now)
    made.passes(60)
    # What the other asks for by now was no part of the decision.
    assert (made.charged(), made.released()) == (1, ["a"])


def test_what_is_rolled_forward_follows_although_its_write_fails_and_the_other_has_gone() -> None:
    made = plane(2)
    half_released(made, members=2)
    (write,) = turn(made.state, (), made.now).writes
    made.delete("g0")
    hear(made.state, Wrote(write, Fate.FAILED, "no"), made.now)
    made.passes(30)
    assert made.released() == ["g1"]
