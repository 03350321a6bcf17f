"""The executor against scripted answers, in virtual time."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import pytest

from fairway.kube.errors import (
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    NotSent,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from fairway.kube.patching import Gone, OutcomeUnknown, Patched, PatchResult, Stale
from fairway.kube.preconditions import Preconditions
from fairway.kube.transport import TimedOut
from queue_dispatcher.release.executor import ATTEMPTS, LATE_S, SETTLES_S, UNREADABLE_S, Executor
from queue_dispatcher.release.troubles import TRIES
from queue_dispatcher.turn.writes import Companion, Fate, Prepared, Purpose, Write

STALE = Stale("changed")
UNKNOWN = OutcomeUnknown(Unreachable("no answer"))


def admit(uid: str, line: str = "queue-a") -> Write:
    return Write(uid, line, Purpose.ADMIT)


@dataclass
class Server:
    """Answers as scripted by path, "applied" after that; objects are their own paths. ``reads``: None for one
    that is answered.
    """

    answers: dict[str, list[PatchResult[str] | KubeError]] = field(default_factory=dict)
    reads: dict[str, list[KubeError | None]] = field(default_factory=dict)
    patched: list[str] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    hangs: dict[str, asyncio.Event] = field(default_factory=dict)

    async def patch(self, path: str, body: Mapping[str, object], when: Preconditions) -> PatchResult[str]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self.gate.wait()
        await asyncio.sleep(0)
        self.under_way -= 1
        self.patched.append(path)
        answer = next(iter(self.answers.get(path, [])), None)
        if answer is None:
            return Patched(path)
        self.answers[path].pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return answer

    async def ensure(self, companion: Companion) -> None:
        if companion.path in self.hangs:
            await self.hangs[companion.path].wait()
        self.patched.append(companion.path)
        answer = next(iter(self.answers.get(companion.path, [])), None)
        if answer is not None:
            self.answers[companion.path].pop(0)
            assert isinstance(answer, KubeError)
            raise answer

    async def read(self, path: str) -> str:
        error = self.reads[path].pop(0) if self.reads.get(path) else None
        if error is not None:
            raise error
        return path


@dataclass
class Notes:
    """A reconciler that writes down what it is told; ``unwanted`` writes are not prepared."""

    told: list[str] = field(default_factory=list)
    unwanted: set[str] = field(default_factory=set)
    first: Companion | None = None
    firsts: dict[str, Companion] = field(default_factory=dict)
    body: Mapping[str, object] | None = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)

    async def at_rest(self) -> None:
        pass

    def prepare(self, write: Write) -> Prepared | None:
        if write.uid in self.unwanted:
            return None
        first = self.firsts.get(write.uid, self.first)
        return Prepared(write.uid, self.body, Preconditions(write.uid, "1"), first)

    def saw(self, obj: str) -> None:
        self.told.append(f"saw {obj}")

    def wrote(self, write: Write, fate: Fate, message: str = "") -> None:
        self.told.append(f"{fate} {write.uid}")
        self.messages[write.uid] = message


class Scene:
    def __init__(self, *, leads: Callable[[], bool] = lambda: True, workers: int = 32) -> None:
        self.server, self.reconciler = Server(), Notes()
        self.server.gate.set()
        self.now_s = 0.0
        self.outcomes: list[str] = []
        self.executor = Executor(
            self.server,
            self.reconciler,
            leads,
            observe=lambda purpose, outcome: self.outcomes.append(outcome),
            workers=workers,
            clock=lambda: self.now_s,
            sleep=self._sleep,
            rng=random.Random(1),
        )

    async def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Begun within, and everybody has had a while."""
        task = asyncio.create_task(self.executor.run())
        await self.steps()
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def steps(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Until nothing is waiting any more."""
        task = asyncio.create_task(self.executor.run())
        for _ in range(10_000):
            await asyncio.sleep(0)
            if not self.executor.waiting:
                break
        assert not self.executor.waiting
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_a_write_is_made_and_told() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.executor.submit([admit("a")])
        await scene.settle()
        assert scene.server.patched == ["a"]
        assert scene.reconciler.told == ["saw a", "applied a"]
        assert scene.outcomes == ["applied"]

    asyncio.run(scenario())


def test_writes_of_a_line_keep_their_order_and_lines_go_side_by_side() -> None:
    async def scenario() -> None:
        scene = Scene()
        writes = [admit(f"{line}{number}", line) for number in range(10) for line in "abc"]
        scene.executor.submit(writes)
        await scene.settle()
        for line in "abc":
            assert [path for path in scene.server.patched if path[0] == line] == [
                f"{line}{number}" for number in range(10)
            ]
        assert scene.server.most_under_way == 3

    asyncio.run(scenario())


def test_only_so_many_are_under_way_at_once() -> None:
    async def scenario() -> None:
        scene = Scene(workers=4)
        scene.executor.submit([admit(f"w{number}", f"line{number}") for number in range(50)])
        await scene.settle()
        assert scene.server.most_under_way == 4
        assert len(scene.server.patched) == 50

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answers", "told", "outcomes"),
    [
        pytest.param([STALE], ["saw a", "saw a", "applied a"], ["stale", "applied"], id="changed: once more"),
        pytest.param(
            [STALE] * ATTEMPTS,
            ["saw a"] * ATTEMPTS + ["given_up a"],
            ["stale"] * ATTEMPTS + ["given_up"],
            id="changed again and again",
        ),
        pytest.param([Gone("gone")], ["gone a"], ["gone"], id="gone"),
        pytest.param([UNKNOWN], ["saw a", "saw a", "applied a"], ["unknown", "applied"], id="no answer"),
        pytest.param(
            [OutcomeUnknown(ServerError("PATCH", 500, "etcd"))],
            ["saw a", "saw a", "applied a"],
            ["unknown", "applied"],
            id="the server fails",
        ),
        pytest.param([Forbidden("PATCH", 403, "no")], ["refused a"], ["forbidden"], id="forbidden"),
        pytest.param(
            [TooManyRequests("PATCH", 429, "busy", 7.0)], ["dropped a"], ["too_many_requests"], id="busy"
        ),
        pytest.param([NotSent("refused")], ["dropped a"], ["unreachable"], id="no connection"),
    ],
)
def test_what_an_answer_means(
    answers: list[PatchResult[str] | KubeError], told: list[str], outcomes: list[str]
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = list(answers)
        scene.executor.submit([admit("a")])
        await scene.settle()
        assert scene.reconciler.told == told
        assert scene.outcomes == outcomes

    asyncio.run(scenario())


def test_an_unknown_outcome_is_read_until_it_is_known() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN]
        scene.server.reads["a"] = [Unreachable("still away")] * (TRIES - 1)
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        assert scene.reconciler.told == ["saw a", "saw a", "applied a", "saw b", "applied b"]
        assert scene.now_s > 0.0

    asyncio.run(scenario())


def test_a_changed_object_that_may_not_be_read_is_left_for_later_and_holds_up_no_other_line() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [STALE]
        scene.server.reads["a"] = [Forbidden("GET", 403, "no")]
        scene.executor.submit([admit("a"), admit("b"), admit("x", "other")])
        await scene.settle()
        assert sorted(scene.reconciler.told) == ["applied x", "dropped b", "refused a", "saw x"]
        assert scene.now_s < 1.0

    asyncio.run(scenario())


NO_READ = [
    pytest.param(Forbidden("GET", 403, "no"), id="may not be read"),
    pytest.param(ServerError("GET", 500, "storage"), id="cannot be read"),
]


@pytest.mark.parametrize("error", NO_READ)
@pytest.mark.parametrize("is_made", [True, False])
def test_an_unknown_outcome_that_cannot_be_read_is_waited_for_by_nobody_else(
    error: KubeError, is_made: bool
) -> None:
    """Whether it was applied must be known before anything else happens to that object."""

    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN]
        scene.server.reads["a"] = [error] * 10
        saw = scene.reconciler.saw

        def seen(obj: str) -> None:
            saw(obj)
            if is_made and obj == "a":
                scene.reconciler.unwanted.add("a")

        scene.reconciler.saw = seen  # type: ignore[method-assign]  # the patch has got through
        scene.executor.submit([admit("a"), admit("b")])
        async with scene.running():
            assert scene.reconciler.told[:2] == ["open a", "dropped b"]
            assert str(error) in scene.reconciler.messages["a"]
            scene.executor.submit([admit("c")])
            await scene.steps()
            assert "applied c" in scene.reconciler.told
            assert scene.server.patched == ["a", "c"]
            assert "saw a" in scene.reconciler.told
            assert ("failed a" in scene.reconciler.told) is not is_made
        assert scene.now_s >= 5 * UNREADABLE_S

    asyncio.run(scenario())


@pytest.mark.parametrize("error", NO_READ)
def test_what_an_earlier_attempt_may_have_made_is_open_where_it_cannot_be_read(error: KubeError) -> None:
    """It changed since: that may have been our own patch, stored a moment after the answer."""

    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN, STALE]
        scene.server.reads["a"] = [None, *[error] * 10]
        scene.executor.submit([admit("a"), admit("b")])
        async with scene.running():
            assert scene.reconciler.told[:3] == ["saw a", "open a", "dropped b"]

    asyncio.run(scenario())


LATER = [
    pytest.param([Forbidden("PATCH", 403, "no")], "refused a", id="refused"),
    pytest.param([TooManyRequests("PATCH", 429, "busy")], "dropped a", id="busy"),
    pytest.param([STALE] * (ATTEMPTS - 1), "given_up a", id="changed again and again"),
]


@pytest.mark.parametrize(("answers", "told"), LATER)
@pytest.mark.parametrize("becomes", ["made", "not made", "unreadable"])
def test_what_an_earlier_attempt_may_have_made_is_looked_at_again_at_the_end(
    answers: list[PatchResult[str] | KubeError], told: str, becomes: str
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN, *answers]
        if becomes == "unreadable":
            reads = 1 + answers.count(STALE)
            scene.server.reads["a"] = [*[None] * reads, *[Forbidden("GET", 403, "no")] * 10]
        saw = scene.reconciler.saw

        def seen(obj: str) -> None:
            saw(obj)
            if becomes == "made" and scene.now_s >= LATE_S:
                scene.reconciler.unwanted.add("a")

        scene.reconciler.saw = seen  # type: ignore[method-assign]  # the first attempt was stored late
        scene.executor.submit([admit("a")])
        async with scene.running():
            ends = [one for one in scene.reconciler.told if one != "saw a"]
            assert ends[:1] == {"made": [], "not made": [told], "unreadable": ["open a"]}[becomes]

    asyncio.run(scenario())


def test_a_changed_object_that_cannot_be_read_is_left_for_later() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [STALE]
        scene.server.reads["a"] = [ServerError("GET", 500, "storage")] * (TRIES + 1)
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        assert scene.reconciler.told == ["failed a", "dropped b"]

    asyncio.run(scenario())


def test_an_object_found_gone_when_it_is_read_again_is_told_so() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN]
        scene.server.reads["a"] = [NotFound("GET", 404, "none")]
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        assert scene.reconciler.told == ["gone a", "saw b", "applied b"]

    asyncio.run(scenario())


def test_what_is_done_already_or_no_longer_wanted_is_not_made() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.unwanted = {"a"}
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        assert scene.server.patched == ["b"]

    asyncio.run(scenario())


def test_after_a_failure_the_rest_of_the_line_is_decided_anew_and_other_lines_go_on() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [Forbidden("PATCH", 403, "no")]
        scene.executor.submit([admit("a"), admit("b"), admit("c"), admit("x", "other")])
        await scene.settle()
        assert sorted(scene.reconciler.told) == ["applied x", "dropped b", "dropped c", "refused a", "saw x"]

    asyncio.run(scenario())


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [TooManyRequests("PATCH", 429, "busy", 7.0)]
        scene.executor.submit([admit("a")])
        await scene.settle()
        scene.executor.submit([admit("a"), admit("x", "other")])
        await scene.settle()
        assert scene.now_s >= 7.0
        assert scene.server.patched[0] == "a"
        assert sorted(scene.server.patched[1:]) == ["a", "x"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(TooManyRequests("PATCH", 429, "busy", 7.0), id="busy"),
        pytest.param(OutcomeUnknown(ServerError("PATCH", 500, "no webhook", 7.0)), id="the server fails"),
    ],
)
def test_where_the_server_fails_at_one_object_others_do_not_wait_for_it(
    answer: PatchResult[str] | KubeError,
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [answer] * 2 * TRIES
        scene.executor.submit([admit("a")])
        await scene.settle()
        scene.executor.submit([admit("x", "other")])
        await scene.settle()
        before_s = scene.now_s
        scene.executor.submit([admit("a"), admit("y", "other")])
        await scene.settle()
        assert "failed a" in scene.reconciler.told
        assert str(getattr(answer, "error", answer)) == scene.reconciler.messages["a"]
        assert scene.now_s - before_s < 7.0

    asyncio.run(scenario())


def test_after_three_failures_in_a_row_others_of_its_line_have_their_turn() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [TooManyRequests("PATCH", 429, "busy")] * TRIES
        for _ in range(TRIES):
            scene.executor.submit([admit("a")])
            await scene.settle()
        assert scene.reconciler.told == ["dropped a", "dropped a", "failed a"]

    asyncio.run(scenario())


def test_what_was_applied_without_an_answer_is_not_given_up() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN] * TRIES
        saw = scene.reconciler.saw

        def seen(obj: str) -> None:
            saw(obj)
            if scene.outcomes.count("unknown") == TRIES:
                scene.reconciler.unwanted.add("a")

        scene.reconciler.saw = seen  # type: ignore[method-assign]  # the last patch has got through
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        assert "failed a" not in scene.reconciler.told
        assert "applied b" in scene.reconciler.told

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "times"),
    [(TimedOut("no answer in time"), 1), (ServerError("PATCH", 504, "storage is slow"), TRIES)],
)
@pytest.mark.parametrize("is_made", [True, False])
def test_what_was_not_answered_in_time_is_given_up_unless_it_is_made_a_moment_later(
    is_made: bool, error: TimedOut | ServerError, times: int
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [OutcomeUnknown(error)] * times
        saw, patch = scene.reconciler.saw, scene.server.patch
        made_s = 0.0

        async def patched(path: str, body: Mapping[str, object], when: Preconditions) -> PatchResult[str]:
            nonlocal made_s
            made_s = scene.now_s + LATE_S
            return await patch(path, body, when)

        def seen(obj: str) -> None:
            saw(obj)
            if is_made and scene.now_s >= made_s:
                scene.reconciler.unwanted.add(obj)

        scene.server.patch = patched  # type: ignore[method-assign]  # it is stored a moment later
        scene.reconciler.saw = seen  # type: ignore[method-assign]
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        made, not_made = ["saw b", "applied b"], ["failed a", "dropped b"]
        assert scene.reconciler.told == ["saw a"] * times + (made if is_made else not_made)

    asyncio.run(scenario())


def test_who_does_not_lead_writes_nothing() -> None:
    async def scenario() -> None:
        scene = Scene(leads=lambda: len(scene.server.patched) < 2)
        scene.executor.submit([admit(uid) for uid in "abcd"])
        await scene.settle()
        assert scene.server.patched == ["a", "b"]
        assert scene.reconciler.told[-2:] == ["dropped c", "dropped d"]

    asyncio.run(scenario())


@pytest.mark.parametrize(("is_made", "told"), [(False, ["dropped a"]), (True, [])])
def test_leadership_is_looked_at_again_after_a_pause(*, is_made: bool, told: list[str]) -> None:
    """What may have been made by then is dropped only once it is known not to have been."""

    async def scenario() -> None:
        leads = [True]
        scene = Scene(leads=lambda: leads[0])

        def lose(purpose: str, outcome: str) -> None:
            leads[0] = outcome != "unknown"
            if is_made and outcome == "not_leading":
                scene.reconciler.unwanted.add("a")

        scene.executor._observe = lose
        scene.server.answers["a"] = [UNKNOWN]
        scene.executor.submit([admit("a")])
        await scene.settle()
        assert scene.server.patched == ["a"]
        assert scene.reconciler.told == ["saw a", "saw a", *told]

    asyncio.run(scenario())


def test_a_defect_costs_its_line_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        scene = Scene()
        prepare = scene.reconciler.prepare

        def broken(write: Write) -> Prepared | None:
            if write.uid == "a":
                raise ZeroDivisionError
            return prepare(write)

        scene.reconciler.prepare = broken  # type: ignore[method-assign]  # a defect that a test can make
        scene.executor.submit([admit("a"), admit("b"), admit("x", "other")])
        await scene.settle()
        assert sorted(scene.reconciler.told) == ["applied x", "dropped b", "refused a", "saw x"]

    asyncio.run(scenario())
    assert "ZeroDivisionError" in caplog.text


def test_a_defect_in_finding_out_about_an_open_write_is_told_and_harms_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.answers["a"] = [UNKNOWN]
        scene.server.reads["a"] = [Forbidden("GET", 403, "no")]
        prepare = scene.reconciler.prepare

        def broken(write: Write) -> Prepared | None:
            if "open a" in scene.reconciler.told and write.uid == "a":
                raise ZeroDivisionError
            return prepare(write)

        scene.reconciler.prepare = broken  # type: ignore[method-assign]  # a defect that a test can make
        scene.executor.submit([admit("a")])
        async with scene.running():
            assert scene.reconciler.told == ["open a", "saw a", "refused a"]
            scene.executor.submit([admit("b")])
            await scene.steps()
            assert scene.server.patched == ["a", "b"]

    asyncio.run(scenario())
    assert "ZeroDivisionError" in caplog.text


def test_more_can_be_submitted_while_a_line_is_busy() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.server.gate.clear()
        scene.executor.submit([admit("a")])
        task = asyncio.create_task(scene.settle())
        for _ in range(10):
            await asyncio.sleep(0)
        assert scene.server.under_way == 1
        scene.executor.submit([admit("b")])
        assert scene.executor.waiting == 2
        scene.server.gate.set()
        await task
        assert scene.server.patched == ["a", "b"]

    asyncio.run(scenario())


POLICY = Companion("policy", {})
DOWN = Unreachable("down")
GUIDED = [
    pytest.param([], [], ["policy", "a"], ["saw a", "applied a"], ["applied", "applied"], id="made first"),
    pytest.param(
        [],
        [STALE],
        ["policy", "a", "a"],
        ["saw a", "saw a", "applied a"],
        ["applied", "stale", "applied"],
        id="made once",
    ),
    pytest.param(
        [Forbidden("policy", 403, "no")],
        [],
        ["policy", "a"],
        ["saw a", "applied a"],
        ["forbidden", "applied"],
        id="gone without where it is refused",
    ),
    *(
        pytest.param(
            [error],
            [],
            ["policy", "a"],
            ["saw a", "applied a"],
            [error.label, "applied"],
            id=f"gone without: {what}",
        )
        for error, what in (
            (ServerError("policy", 500, "etcdserver: request is too large"), "the server fails at it"),
            (TimedOut("policy: no answer in time"), "it hangs"),
            (NotFound("policy", 404, "no"), "not served"),
            (Conflict("policy", 409, "no"), "changed again and again"),
        )
    ),
    pytest.param(
        [DOWN], [], ["policy"], ["dropped a"], ["unreachable"], id="not released where it may be lost"
    ),
]


@pytest.mark.parametrize("no", [Forbidden("policy", 403, "no"), TimedOut("no answer in time")])
@pytest.mark.parametrize("body", [{}, None], ids=["to be there", "to be gone"])
def test_what_is_needed_and_refused_is_told_and_the_write_is_not_made(
    body: Mapping[str, object] | None, no: KubeError
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.first = Companion("policy", body, "keep its pods")
        scene.server.answers = {"policy": [no, no]}
        scene.executor.submit([admit("a"), admit("b")])
        await scene.settle()
        assert scene.server.patched == ["policy", "policy"]
        assert scene.reconciler.told == ["refused a", "dropped b"]
        assert scene.reconciler.messages["a"].startswith("nothing would keep its pods: ")
        assert scene.outcomes == [no.label, no.label]

    asyncio.run(scenario())


@pytest.mark.parametrize(("first", "then", "sent", "told", "outcomes"), GUIDED)
def test_what_comes_first_is_there_before_the_write(
    first: list[KubeError],
    then: list[PatchResult[str] | KubeError],
    sent: list[str],
    told: list[str],
    outcomes: list[str],
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.first = POLICY
        scene.server.answers = {"policy": [*first], "a": [*then]}
        scene.executor.submit([admit("a")])
        await scene.settle()
        assert (scene.server.patched, scene.reconciler.told, scene.outcomes) == (sent, told, outcomes)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answers", "told", "outcomes"),
    [
        ([], ["applied a"], ["applied"]),
        ([Forbidden("policy", 403, "no")], ["refused a"], ["forbidden"]),
        ([DOWN], ["dropped a"], ["unreachable"]),
    ],
)
def test_where_there_is_nothing_to_write_beside_it_nothing_is_patched(
    answers: list[PatchResult[str] | KubeError], told: list[str], outcomes: list[str]
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.first = Companion("policy", {}, "suspend it in its cluster")
        scene.reconciler.body = None
        scene.server.answers = {"policy": answers}
        scene.executor.submit([Write("a", "a", Purpose.SWITCH)])
        await scene.settle()
        assert scene.server.patched == ["policy"]
        assert (scene.reconciler.told, scene.outcomes) == (told, outcomes)

    asyncio.run(scenario())


def test_what_comes_first_is_made_side_by_side_and_known_before_the_writes_follow_in_turn() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.first = POLICY
        at_s: list[float] = []
        ensure, patch = scene.server.ensure, scene.server.patch

        async def ensured(companion: Companion) -> None:
            at_s.append(scene.now_s)
            await ensure(companion)

        async def patched(path: str, body: Mapping[str, object], when: Preconditions) -> PatchResult[str]:
            assert scene.now_s >= at_s["abc".index(path)] + SETTLES_S
            return await patch(path, body, when)

        scene.server.ensure = ensured  # type: ignore[method-assign]  # when it was made
        scene.server.patch = patched  # type: ignore[method-assign]
        scene.executor.submit([admit(uid) for uid in "abc"])
        await scene.settle()
        assert scene.server.patched == ["policy", "policy", "policy", "a", "b", "c"]

    asyncio.run(scenario())


def test_a_defect_in_what_comes_first_is_told_and_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.first = POLICY

        async def broken(companion: Companion) -> None:
            raise ZeroDivisionError

        scene.server.ensure = broken  # type: ignore[method-assign]  # a defect
        scene.executor.submit([admit("a")])
        await scene.settle()
        scene.reconciler.first = None
        scene.executor.submit([admit("b")])
        await scene.settle()
        assert scene.reconciler.told == ["refused a", "saw b", "applied b"]

    asyncio.run(scenario())
    assert "what comes before the admit of binding a failed" in caplog.text


def test_who_leads_no_more_once_the_policy_is_there_releases_nothing() -> None:
    async def scenario() -> None:
        leads = True
        scene = Scene(leads=lambda: leads)
        scene.reconciler.first = POLICY
        ensure = scene.server.ensure

        async def slowly(companion: Companion) -> None:
            nonlocal leads
            await ensure(companion)
            leads = False

        scene.server.ensure = slowly  # type: ignore[method-assign]  # the lease ends meanwhile
        scene.executor.submit([admit("a")])
        await scene.settle()
        assert (scene.server.patched, scene.reconciler.told) == (["policy"], ["dropped a"])

    asyncio.run(scenario())


def test_what_is_wanted_no_more_once_the_policy_is_there_is_not_released() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reconciler.first = POLICY
        ensure = scene.server.ensure

        async def slowly(companion: Companion) -> None:
            await ensure(companion)
            scene.reconciler.unwanted.add("a")

        scene.server.ensure = slowly  # type: ignore[method-assign]  # the workload changes meanwhile
        scene.executor.submit([admit("a")])
        await scene.settle()
        assert (scene.server.patched, scene.reconciler.told) == (["policy"], [])

    asyncio.run(scenario())


def test_policies_that_hang_keep_no_other_write_from_being_made() -> None:
    async def scenario() -> None:
        scene = Scene(workers=2)
        scene.reconciler.firsts = {f"g{number}": POLICY for number in range(5)}
        hung = scene.server.hangs[POLICY.path] = asyncio.Event()
        scene.executor.submit([admit(f"g{number}") for number in range(5)])
        scene.executor.submit([Write("k", "k", Purpose.KICK)])
        async with scene.running():
            assert (scene.server.patched, scene.executor.waiting) == (["k"], 5)
            hung.set()
        await scene.settle()
        assert [path for path in scene.server.patched if path[0] == "g"] == [f"g{n}" for n in range(5)]

    asyncio.run(scenario())


def test_what_is_submitted_again_waits_for_the_policy_that_was_under_way_for_it() -> None:
    async def scenario() -> None:
        scene = Scene()
        hung = scene.server.hangs["slow"] = asyncio.Event()
        scene.server.answers = {"a": [Forbidden("PATCH", 403, "no")]}
        scene.reconciler.firsts = {"b": Companion("slow", {})}
        scene.executor.submit([admit("a"), admit("b")])
        async with scene.running():
            assert scene.reconciler.told == ["refused a", "dropped b"]
            scene.reconciler.firsts = {"b": Companion("fast", {})}
            scene.executor.submit([admit("b")])
            await scene.steps()
            assert scene.server.patched == ["a"]
            hung.set()
            await scene.steps()
        assert scene.server.patched == ["a", "slow", "fast", "b"]

    asyncio.run(scenario())
