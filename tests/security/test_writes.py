"""What the programs write, in whole scenarios against an API server that records it: only fields of ours."""

import base64
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import ADMISSION, REQUEUE
from sandbox.fakeapi.seen import Seen
from sandbox.fakeapi.writes import Write, WriteLog
from tests.dispatcher.scenarios import (
    test_groups,
    test_growth,
    test_kicks,
    test_life,
    test_take_back,
    test_tampering,
    test_visibility,
)
from tests.webhook import test_registration
from tests.webhook.builders import Obj, binding, request
from tests.webhook.test_laws import specs
from webhook.review import write_review
from webhook.scope import Scope
from webhook.suspend import decide

BINDINGS = ("resourcebindings", "clusterresourcebindings")
OWNED = {
    ("metadata", "annotations", ADMISSION),
    ("metadata", "annotations", REQUEUE),
    ("spec", "suspension", "scheduling"),
}
PRECONDITIONS = {("metadata", "uid"), ("metadata", "resourceVersion")}
CLEARED = ("spec", "clusters")
"""Only ever to nothing, to take a workload off its clusters."""
OTHER_WRITES = {
    ("patch", "clusterqueues/status"),
    ("patch", "localqueues/status"),
    ("create", "events"),
    ("patch", "events"),
    ("create", "leases"),
    ("patch", "leases"),
    ("update", "leases"),
}


QUIET = {
    "test_what_slipped_through_is_charged_and_left_alone",
    "test_a_flag_cleared_by_hand_is_adoption",
    "test_what_asks_for_no_accelerator_is_left_alone_unless_its_namespace_is_managed",
    "test_a_group_size_that_is_none_is_told",
    "test_groups_of_the_same_name_in_two_namespaces_are_two",
}
"""Scenarios in which nothing is to be written to a binding."""


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


@pytest.mark.parametrize(
    "scenario",
    scenarios(
        test_life, test_take_back, test_growth, test_groups, test_kicks, test_tampering, test_visibility
    ),
)
def test_the_dispatcher_writes_its_own_fields_alone(
    scenario: Callable[[], None], written: list[Write]
) -> None:
    scenario()
    kinds: Counter[str] = Counter()
    for write in written:
        if write.resource not in BINDINGS:
            assert (write.verb, write.resource) in OTHER_WRITES, write
            continue
        assert write.verb == "patch"
        assert write.seen.headers["Content-Type"] == "application/merge-patch+json"
        found = dict(leaves(json.loads(write.body)))
        # Nothing is written to another object than the one that was decided on.
        assert found.keys() >= PRECONDITIONS
        assert found.pop(CLEARED, []) == []
        assert set(found) <= OWNED | PRECONDITIONS, write.body
        assert found.get(("spec", "suspension", "scheduling"), True) in (True, False)
        kinds["binding"] += 1
    # A scenario in which nothing is written would prove nothing; those about what is left alone are few.
    assert kinds["binding"] or scenario.__name__ in QUIET


@given(obj=specs(), managed=st.booleans(), old=st.one_of(st.none(), specs()))
def test_the_webhook_answers_with_its_own_leaf_alone(obj: Obj, managed: bool, old: Obj | None) -> None:
    asked = request(binding(obj)) if old is None else request(binding(obj), binding(old))
    decision = decide(asked, Scope(builtin_catalogue()), managed=managed)
    answer = json.loads(write_review(asked.uid, decision.response))["response"]
    assert answer["allowed"] is True
    assert set(answer) <= {"uid", "allowed", "patch", "patchType", "warnings", "auditAnnotations"}
    if "patch" in answer:
        for step in json.loads(base64.b64decode(answer["patch"])):
            assert step["op"] in ("add", "replace")
            assert (step["path"], step["value"]) in (
                ("/spec/suspension", {"scheduling": True}),
                ("/spec/suspension/scheduling", True),
            )


@pytest.mark.parametrize("scenario", scenarios(test_registration))
def test_the_webhook_writes_its_own_objects_alone(scenario: Callable[[], None], written: list[Write]) -> None:
    scenario()
    for write in written:
        assert write.resource in ("secrets", "mutatingwebhookconfigurations"), write
        if write.verb != "create":
            assert write.path.rpartition("/")[2] == "fairway-webhook"
        else:
            assert json.loads(write.body)["metadata"]["name"] == "fairway-webhook"
