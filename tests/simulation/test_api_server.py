"""The API server of the simulation: revisions, preconditions, generations, watches in virtual time."""

import pytest

from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.errors import ApiError, Conflict, Invalid, NotFound
from sandbox.simulation.objects import Obj
from sandbox.simulation.timeline import EPOCH_MS, Timeline


def job(name: str, **spec: object) -> Obj:
    return {"metadata": {"namespace": "n", "name": name}, "spec": spec}


@pytest.fixture
def api() -> ApiServer:
    return ApiServer(Timeline())


def test_the_server_says_what_only_it_can_say(api: ApiServer) -> None:
    made = api.create("jobs", job("a", x=1))
    assert made["metadata"] == {
        "namespace": "n",
        "name": "a",
        "uid": "00000001-0000-4000-8000-000000000000",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
        "resourceVersion": "2",
    }
    assert api.patch("jobs", "n/a", {"spec": {"x": 2}})["metadata"]["generation"] == 2
    assert api.patch("jobs", "n/a", {"status": {"y": 1}}, status=True)["metadata"]["generation"] == 2
    assert api.patch("jobs", "n/a", {"metadata": {"labels": {"l": "v"}}})["metadata"]["generation"] == 2
    assert api.get("jobs", "n/a")["spec"] == {"x": 2}
    assert [written.after is not None for written in api.writes] == [True] * 4


def test_a_status_is_written_apart_and_nothing_else_with_it(api: ApiServer) -> None:
    api.create("jobs", job("a", x=1))
    after = api.patch("jobs", "n/a", {"spec": {"x": 9}, "status": {"y": 1}}, status=True)
    assert (after["spec"], after["status"]) == ({"x": 1}, {"y": 1})
    assert api.patch("jobs", "n/a", {"spec": {"x": 3}, "status": {"y": 2}})["status"] == {"y": 1}


def test_what_changes_nothing_is_no_write(api: ApiServer) -> None:
    made = api.create("jobs", job("a", x=1))
    assert api.patch("jobs", "n/a", {"spec": {"x": 1}}) is made
    assert len(api.writes) == 1


@pytest.mark.parametrize(
    ("precondition", "error"),
    [
        ({"resource_version": "1"}, Conflict),
        ({"uid": "another"}, Invalid),
    ],
)
def test_preconditions(api: ApiServer, precondition: dict[str, str], error: type[ApiError]) -> None:
    api.create("jobs", job("a"))
    with pytest.raises(error):
        api.patch("jobs", "n/a", {"spec": {"x": 1}}, **precondition)  # type: ignore[arg-type]  # both str
    with pytest.raises(NotFound):
        api.patch("jobs", "n/b", {})


def test_a_hook_decides_what_is_stored(api: ApiServer) -> None:
    api.admission["jobs"] = [
        lambda operation, old, new: {**new, "spec": {**new["spec"], "seen": operation}},
    ]
    assert api.create("jobs", job("a"))["spec"] == {"seen": "CREATE"}
    assert api.patch("jobs", "n/a", {"spec": {"x": 1}})["spec"] == {"seen": "UPDATE", "x": 1}


def told(api: ApiServer, from_revision: int) -> list[tuple[int, str, str]]:
    heard: list[tuple[int, str, str]] = []

    def deliver(kind: str, obj: Obj) -> None:
        name = obj.get("metadata", {}).get("name", str(obj.get("code", "")))
        heard.append((api.timeline.now_ms - EPOCH_MS, kind, name))

    api.watch("jobs", from_revision, deliver)
    return heard


def test_a_watch_tells_in_order_each_after_its_delay(api: ApiServer) -> None:
    api.create("jobs", job("a"))
    heard = told(api, 0)
    (watch,) = api.watches()
    watch.delay_ms = 100
    api.create("jobs", job("b"))
    watch.delay_ms = 1
    api.delete("jobs", "n/a")
    api.timeline.run_until(EPOCH_MS + 60_001)
    assert heard == [
        (5, "ADDED", "a"),
        (100, "ADDED", "b"),
        (100, "DELETED", "a"),
        (60_001, "BOOKMARK", ""),
    ]


def test_a_watch_goes_on_from_where_it_was(api: ApiServer) -> None:
    api.create("jobs", job("a"))
    _, revision = api.list("jobs")
    api.create("jobs", job("b"))
    heard = told(api, revision)
    api.timeline.run_until(EPOCH_MS + 10)
    assert heard == [(5, "ADDED", "b")]


def test_a_watch_from_a_forgotten_revision_is_refused(api: ApiServer) -> None:
    api.create("jobs", job("a"))
    api.compact()
    heard = told(api, 1)
    api.timeline.run_until(EPOCH_MS + 10)
    assert heard == [(5, "ERROR", "410")]


def test_a_silent_watch_says_nothing_and_a_closed_one_says_so(api: ApiServer) -> None:
    silent, closed = told(api, 0), told(api, 0)
    one, other = api.watches()
    one.is_silent = True
    other.close()
    api.create("jobs", job("a"))
    api.timeline.run_until(EPOCH_MS + 120_000)
    assert (silent, closed) == ([], [(5, "CLOSED", "")])
    assert len(api.watches()) == 1


def test_what_was_cancelled_does_not_happen() -> None:
    timeline, happened = Timeline(), list[str]()
    timeline.after(5, lambda: happened.append("a")).cancel()
    timeline.after(5, lambda: happened.append("b"))
    timeline.run_until(EPOCH_MS + 10)
    assert (happened, timeline.events, timeline.now_ms - EPOCH_MS) == (["b"], 1, 10)
