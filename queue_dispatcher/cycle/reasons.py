"""Why a workload waits: of a kind, so that programs can count them, with sentences for people to act on.

The kinds are those of the visibility API, of Events and of the metric label ``reason``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairway.names import CHECK_PREFIX, REQUEUE
from fairway.printable import printable

Kind = Literal[
    "QueueNotFound",
    "QueueStopped",
    "NamespaceNotAllowed",
    "Unreadable",
    "ForeignScheduler",
    "NeverFits",
    "WaitingForQuota",
    "WaitingForBorrowing",
    "WaitingForCapacity",
    "WaitingForEstimate",
    "BehindHead",
    "BehindReservation",
    "WaitingForCheck",
    "CheckTimedOut",
    "CheckRejected",
    "WaitingForGangMembers",
    "BackingOff",
    "BudgetExhausted",
    "ReleaseWindowFull",
    "MaxRuntimeExceeded",
    "LeftAlone",
]

Borrowers = Sequence[tuple[str, str]]
"""Queues that use more than they own, and how much more, as people read amounts."""
MAX_BORROWERS = 3
"""How many of them are named."""


@dataclass(frozen=True, slots=True)
class Reason:
    """``text`` is the sentence for people, ``unblock`` what would end the wait. Both are fit for eyes,
    whatever is in the names and messages that they are made of.

    ``about``: the queue of `namespace_not_allowed`, the namespace of the head in `behind_head` and of the
    workload in `behind_reservation`. ``passes``: the wait ends by itself, so that nobody need hear of it.
    ``stranger_unblocks``: ``unblock`` for those who may not know whom it is about, if that is to be told.
    """

    kind: Kind
    text: str
    unblock: str
    about: str = ""
    passes: bool = False
    stranger_unblocks: str = ""

    def __post_init__(self) -> None:
        for name in ("text", "unblock", "stranger_unblocks"):
            if not (text := getattr(self, name)).isprintable():
                object.__setattr__(self, name, printable(text))


def queue_not_found(problem: str) -> Reason:
    """No queue can be told for the workload."""
    ends = "label the workload with an existing LocalQueue of its namespace, or create that queue"
    return Reason("QueueNotFound", problem, ends)


def queue_stopped(queue: str, why: str) -> Reason:
    """The queue, or one above it, admits nothing at present; ``why`` says which and by what."""
    ends = f"an administrator mends or resumes queue {queue}"
    return Reason("QueueStopped", f"queue {queue} admits nothing: {why}", ends)


def budget_exhausted(queue: str, budget: str, renews: str) -> Reason:
    """The queue has used up a hard budget, which is new again at ``renews``, RFC 3339."""
    text = f"budget {budget} of queue {queue} is used up until {renews}"
    return Reason("BudgetExhausted", text, f"the budget is renewed at {renews}, or raised")


def namespace_not_allowed(queue: str, namespace: str) -> Reason:
    """The ClusterQueue's namespaceSelector does not select the namespace."""
    text = f"ClusterQueue {queue} takes no workloads of namespace {namespace}"
    ends = f"name another queue, or let {queue}'s namespaceSelector select the namespace"
    return Reason("NamespaceNotAllowed", text, ends, queue)


def unreadable(problem: str) -> Reason:
    """The binding, its template or its class says what cannot be understood; ``problem`` by field."""
    return Reason(
        "Unreadable", problem, "correct the field; the workload is looked at again as soon as it changes"
    )


def foreign_scheduler(name: str) -> Reason:
    """The policy has another scheduler than Karmada's place the workload."""
    return Reason(
        "ForeignScheduler",
        f"its policy names scheduler {name[:63]} (spec.schedulerName), which is not Karmada's: nobody would "
        "place it if it were released",
        "the policy is deleted and made again without schedulerName, which cannot be changed; or, if that "
        "scheduler places bindings as Karmada's does, an administrator names it to the dispatcher with "
        "--scheduler-name",
    )


def never_fits(problem: str, ends: str = "ask for less, or have the quota or the capacity raised") -> Reason:
    """More than the queue may ever use, or than there is, even if nothing else ran."""
    return Reason("NeverFits", problem, ends)


def waiting_for_quota(
    node: str, flavor: str, resource: str, missing: str, used: str = "", borrowers: Borrowers = ()
) -> Reason:
    """The quota of ``node`` (the queue, or one above it) is in use; ``used``: by its own workloads."""
    text = f"queue {node} is short of {missing} {resource} of flavor {flavor}{_borrowed(borrowers)}"
    ends = f"workloads that use {resource} in queue {node} finish, or its quota is raised"
    return Reason("WaitingForQuota", text, ends)


def waiting_for_borrowing(
    node: str,
    flavor: str,
    resource: str,
    missing: str,
    used: str = "",
    borrowers: Borrowers = (),
    *,
    is_held: bool = False,
) -> Reason:
    """The queue's own quota is used up, and its borrowing limit or its lenders give no more.

    ``is_held``: the lenders would, but for the heads of StrictFIFO queues among them that wait for it.
    """
    text = (
        f"queue {node} would have to borrow {missing} {resource} of flavor {flavor} more than it can now"
        f"{f'; it uses {used} itself' if used else ''}{_borrowed(borrowers)}"
    )
    own = f"workloads of queue {node} finish, " if used else ""
    ends = f"{own}queues beside it use less of what they lend, or its borrowingLimit is raised"
    if is_held:
        text += ": the heads of StrictFIFO queues that own it wait for it"
        ends = f"those heads start, or queues beside {node} use less of what they lend"
    return Reason("WaitingForBorrowing", text, ends)


def _borrowed(borrowers: Borrowers) -> str:
    """Who has borrowed what is missing, those with most first."""
    if not borrowers:
        return ""
    first, *others = borrowers[:MAX_BORROWERS]
    more = ", and others" if len(borrowers) > MAX_BORROWERS else ""
    beside = "".join(f", {name} {amount}" for name, amount in others)
    return f"; queue {first[0]} borrows {first[1]}{beside}{more}"


def waiting_for_capacity(problem: str) -> Reason:
    """Quota there is, but no room on the clusters."""
    return Reason("WaitingForCapacity", problem, "workloads on those clusters finish, or room is added there")


def waiting_for_estimate(
    problem: str = "the estimators are being asked whether it fits", ends: str = ""
) -> Reason:
    """The estimators are being asked whether it fits, or do not answer.

    ``ends``: what would end the wait, where it is more than an answer to what is being asked.
    """
    return Reason("WaitingForEstimate", problem, ends or "the estimators answer", passes=not ends)


def behind_head(head: str, because: str, namespace: str = "") -> Reason:
    """The queue is StrictFIFO, and the workload at its head waits; ``namespace`` is that one's."""
    text = f"{head} is at the head of the StrictFIFO queue and waits: {because}"
    return Reason("BehindHead", text, f"{head} starts or is deleted", namespace)


def behind_reservation(of: str, lacking: str, when: str, most_s: int, namespace: str = "") -> Reason:
    """It has room, which is kept for another workload.

    ``lacking``: what that one waits for, and ``when`` it can start. ``most_s``: for how long it might use
    that, 0 where nobody may; ``namespace`` is the other one's.
    """
    text = f"the room that it would take is kept for {of}, which waits longer, for {lacking}: {when}"
    passes = ""
    if most_s > 0:
        passes = f"; or it has a maxRuntime of {most_s} s or less, and so ends before that one can start"
    ends, apart = f"{of} starts or is deleted{passes}", f"that workload starts or is deleted{passes}"
    return Reason("BehindReservation", text, ends, namespace, stranger_unblocks=apart)


def waiting_for_check(check: str, said: str = "", others: int = 0) -> Reason:
    """Somebody else has to say Ready first. ``said``: what is there instead, if anything; ``others``: how
    many more checks have not said so.
    """
    more = f", nor have {others} more" if others else ""
    text = f"check {check} has not said that it may start{more}{f': {said}' if said else ''}"
    return Reason("WaitingForCheck", text, _check_ends(check))


def check_timed_out(check: str, after_s: int) -> Reason:
    """Nobody has answered for so long; an answer counts all the same."""
    text = f"check {check} has not been answered for more than {after_s} s"
    return Reason("CheckTimedOut", text, f"{_check_ends(check)}; ask whoever runs it")


def check_rejected(check: str, said: str) -> Reason:
    """Somebody else says that it may not start."""
    text = f"check {check} says that it may not start{f': {said}' if said else ''}"
    return Reason("CheckRejected", text, _check_ends(check))


def _check_ends(check: str) -> str:
    return f"whoever runs check {check} sets annotation {CHECK_PREFIX}{check} of its binding to Ready"


def waiting_for_gang_members(group: str, present: int, wanted: int) -> Reason:
    """Workloads of its group have not been created yet."""
    text = f"{present} of the {wanted} workloads of group {group} are there and can be released"
    ends = f"the other workloads of group {group} are created, or what holds them is mended"
    return Reason("WaitingForGangMembers", text, ends)


def backing_off(until: str, times: int, because: str) -> Reason:
    """It was released, did not start in time and was taken back."""
    text = f"did not start ({because}), {times} times so far; tried again at {until}"
    return Reason("BackingOff", text, "time passes; see why Karmada could not place it")


def displaced(until: str, why: str) -> Reason:
    """Others needed its room more."""
    return Reason("BackingOff", f"{why}; tried again at {until}", "time passes")


def max_runtime_exceeded(why: str) -> Reason:
    """It has run for as long as it may, was taken back, and is not started again by itself."""
    ends = f"delete it; or, to let it run again, remove annotation {REQUEUE} of its binding"
    return Reason("MaxRuntimeExceeded", why or "it ran for as long as it may", ends)


def release_window_full(in_flight: int) -> Reason:
    """Karmada is still placing what was released before."""
    text = f"Karmada is still placing {in_flight} workloads that were released before"
    return Reason("ReleaseWindowFull", text, "Karmada places them", passes=True)


def releases_being_written() -> Reason:
    """As many releases that say where to as may be are on their way to the API server."""
    text = "as many releases as may be at once are on their way to karmada-apiserver"
    return Reason("ReleaseWindowFull", text, "karmada-apiserver takes them", passes=True)


def left_alone(problem: str, ends: str) -> Reason:
    """Held, and none of Fairway's to release."""
    return Reason("LeftAlone", problem, ends)


BEHIND_STRANGER = Reason(
    "BehindHead",
    "a workload of another namespace is at the head of the StrictFIFO queue and waits",
    "that workload starts or is deleted",
)
"""`behind_head` as those are told who may not know who the head is, nor what it asks for."""
BEHIND_STRANGERS_RESERVATION = Reason(
    "BehindReservation",
    "the room that it would take is kept for a workload of another namespace, which waits longer",
    "that workload starts or is deleted",
)
"""`behind_reservation` as those are told who may not know whose it is."""


def told_to(sees: Callable[[str], bool], reason: Reason) -> Reason:
    """The reason, without names of other namespaces than those that the reader ``sees``.

    Only those who wait behind a head or a reservation are told of another workload; all others name queues,
    flavors, resources and clusters, and what the workload says itself.
    """
    stranger = _STRANGERS.get(reason.kind)
    if stranger is None or sees(reason.about):
        return reason
    return replace(stranger, unblock=reason.stranger_unblocks or stranger.unblock)


_STRANGERS: Final[Mapping[str, Reason]] = {
    one.kind: one for one in (BEHIND_STRANGER, BEHIND_STRANGERS_RESERVATION)
}
