"""What an installation says first: what will be held, whom that touches, and who has no queue."""

import asyncio
import dataclasses
from typing import Any

import pytest

from admin.install.session import prepare
from admin.install.settings import Hold, Settings
from fairway.names import ADMISSION, DEFAULT_QUEUE, QUEUEING, SKIP
from fairway.scope import Scope, WorkloadKind
from tests.admin.install.fleet import PACKAGE, SCOPE, SETTINGS, Fleet, binding, fleet

OPTED_IN = dataclasses.replace(SCOPE, only_enabled=True)
EVERYWHERE = dataclasses.replace(SETTINGS, hold_namespaces="all")


async def notes(made: Fleet, settings: Settings = SETTINGS, scope: Scope = OPTED_IN) -> str:
    prepared = await prepare(made.clients, PACKAGE, settings, scope)
    return "\n".join(prepared.notes)


def namespace(made: Fleet, name: str, queueing: str = "", **labels: str) -> None:
    said = {**({QUEUEING: queueing} if queueing else {}), **labels}
    made.apis["karmada"].create("/api/v1/namespaces", {"metadata": {"name": name, "labels": said}})


def bind(made: Fleet, namespace: str, name: str, metadata: object = None, **spec: object) -> None:
    obj = binding(name, **spec)
    obj["metadata"] |= metadata or {}
    made.apis["karmada"].create(
        f"/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings", obj
    )


RUNS = {"clusters": [{"name": "east", "replicas": 1}], "suspension": None}


def test_before_any_namespace_is_labelled_nothing_is_held() -> None:
    async def scenario() -> None:
        async with fleet() as made:
            namespace(made, "silent")
            bind(made, "silent", "runs", **RUNS)
            told = await notes(made)
            assert "held is whatever asks for an accelerator, in namespaces labelled" in told
            assert "fairway.dev/queueing=enabled: by now there is none" in told
            assert "silent" not in told

    asyncio.run(scenario())


def test_what_runs_and_who_has_no_queue_is_named() -> None:
    async def scenario() -> None:
        async with fleet() as made:
            namespace(made, "first", "enabled")
            namespace(made, "second", "enabled", **{DEFAULT_QUEUE: "main"})
            namespace(made, "silent")
            for name in "abcdefg":
                bind(made, "first", name, **RUNS)
            bind(made, "first", "plain", replicaRequirements=None, **RUNS)
            bind(made, "first", "waits")
            bind(made, "second", "skipped", {"labels": {SKIP: ""}}, **RUNS)
            bind(made, "silent", "left", {"annotations": {ADMISSION: "{}"}})
            bind(made, "silent", "theirs")
            told = await notes(made)
            assert "by now first, second" in told
            assert "namespace first: what runs goes on and counts in its queue" in told
            assert "waits: a, b, c, d, e and 2 more" in told
            assert "namespace silent: held by the dispatcher and out of reach" in told
            assert "let go: left" in told
            assert "without a queue: first:" in told
            assert "namespace second" not in told
            everywhere = await notes(made, EVERYWHERE, SCOPE)
            assert "in every namespace not labelled fairway.dev/queueing=disabled" in everywhere
            assert "without a queue: first:" in everywhere

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "scope", "words"),
    [
        (dataclasses.replace(SETTINGS, hold=Hold.NONE), OPTED_IN, ""),
        (
            dataclasses.replace(SETTINGS, observe=True),
            OPTED_IN,
            "held is nothing, but it is told and counted",
        ),
        (
            SETTINGS,
            dataclasses.replace(OPTED_IN, kinds=frozenset([WorkloadKind("Job", "batch")])),
            "whatever asks for an accelerator or is a Job.batch",
        ),
    ],
)
def test_what_will_be_held(settings: Settings, scope: Scope, words: str) -> None:
    async def scenario() -> None:
        async with fleet() as made:
            told = await notes(made, settings, scope)
            assert words in told
            assert ("held is" in told) == bool(words)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        (SETTINGS, ["--hold-namespaces=enabled"]),
        (EVERYWHERE, ["--hold-namespaces=all"]),
        (
            dataclasses.replace(SETTINGS, observe=True, hold_kinds=frozenset([WorkloadKind("Job", "batch")])),
            ["--hold-namespaces=enabled", "--hold-kind=Job.batch", "--observe"],
        ),
    ],
)
def test_the_gate_and_the_dispatcher_are_told_the_same(settings: Settings, flags: list[str]) -> None:
    async def scenario() -> None:
        async with fleet() as made:
            prepared = await prepare(made.clients, PACKAGE, settings, OPTED_IN)
            told = {}
            for step in prepared.steps:
                for action in step.actions:
                    name = action.manifest.name
                    if action.manifest.kind.kind == "Deployment" and name in (
                        "fairway-webhook",
                        "fairway-dispatcher",
                    ):
                        body: Any = action.manifest.body
                        (container,) = body["spec"]["template"]["spec"]["containers"]
                        told[name] = [
                            one for one in container["args"] if one.startswith(("--hold", "--observe"))
                        ]
            assert told == {"fairway-webhook": flags, "fairway-dispatcher": flags}

    asyncio.run(scenario())
