"""How mutating webhooks are called and heeded: the same on the fake and on a real server."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import Invalid, NotFound, Refused, ServerError
from fairway.kube.patching import apply
from tests.kube.conftest import ApiServer
from tests.kube.webhooks import Webhook, allow, denying, patching, webhook
from tests.kube.widgets import GROUP, WIDGETS, Obj, Widget, serve_widgets, widget

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
MERGE = "application/merge-patch+json"
_NUMBERS = itertools.count()


class Bench:
    """A namespace of widgets, and a webhook that may be registered for it."""

    def __init__(self, client: KubeClient, namespace: str, hook: Webhook) -> None:
        self.client, self.namespace, self.hook = client, namespace, hook
        self.configurations: list[str] = []
        self.collection = WIDGETS.object_path("", namespace).removesuffix("/")

    async def register(self, *entries: Obj, name: str = "a") -> None:
        """Register the entries, and wait until that has come into effect."""
        name = f"test-{next(_NUMBERS):03d}-{name}"
        self.configurations.append(name)
        probe = self.hook.entry(f"probe.{GROUP}", self.namespace, failurePolicy="Ignore")
        probe["matchConditions"] = [{"name": "probe", "expression": "object.metadata.name == 'probe'"}]
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [*entries, probe],
        }
        await apply(self.client, f"{CONFIGURATIONS}/{name}", body, Obj)
        answer, self.hook.answer = self.hook.answer, denying(message=f"seen by {name}")
        async with asyncio.timeout(20):
            # Another program is getting ready: there is nothing to await but time.
            while not await self._in_effect(name):  # noqa: ASYNC110 - a server tells nobody
                await asyncio.sleep(0.1)
        self.hook.answer = answer
        self.hook.requests.clear()

    async def _in_effect(self, name: str) -> bool:
        try:
            await self.client.post(self.collection, widget("probe", size=0), Obj, {"dryRun": "All"})
        except Refused as error:
            return f"seen by {name}" in str(error)
        return False

    async def unregister(self) -> None:
        for name in self.configurations:
            await self.client.delete(f"{CONFIGURATIONS}/{name}", Obj)

    async def create(self, name: str, **spec: object) -> Widget:
        return await self.client.post(self.collection, widget(name, **spec), Widget)

    async def patch(self, name: str, body: Obj, suffix: str = "") -> Widget:
        path = f"{self.collection}/{name}{suffix}"
        return await self.client.patch(path, body, Widget, content_type=MERGE)


def with_webhook(server: ApiServer, tmp_path: Path, scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.connect() as client, webhook(tmp_path) as hook:
            bench = Bench(client, await serve_widgets(client), hook)
            try:
                await scenario(bench)
            finally:
                await bench.unregister()

    asyncio.run(run())


SET_COLOR = {"op": "add", "path": "/spec/color", "value": "red"}


def test_a_webhook_changes_what_is_created(server: ApiServer, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.hook.entry("color.test.dev", bench.namespace))
        bench.hook.answer = patching(SET_COLOR)
        assert (await bench.create("one", size=1)).spec.color == "red"
        (request,) = bench.hook.requests
        assert (request["operation"], request["name"], request["namespace"]) == (
            "CREATE",
            "one",
            bench.namespace,
        )
        assert request["kind"] == {"group": GROUP, "version": "v1", "kind": "Widget"}
        assert request["resource"] == {"group": GROUP, "version": "v1", "resource": "widgets"}
        assert request["dryRun"] is False
        assert request["object"]["spec"] == {"size": 1}
        assert (request["object"]["kind"], request["object"]["metadata"]["name"]) == ("Widget", "one")
        unborn = {"uid", "creationTimestamp", "resourceVersion", "generation"}
        assert not unborn & request["object"]["metadata"].keys()
        assert request["object"]["metadata"]["namespace"] == bench.namespace
        assert request.get("oldObject") is None
        assert request["userInfo"]["username"] == "admin"
        assert "subResource" not in request

    with_webhook(server, tmp_path, scenario)


def test_a_webhook_sees_what_an_update_replaces(server: ApiServer, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create("one", size=1)
        await bench.register(bench.hook.entry("color.test.dev", bench.namespace))
        bench.hook.answer = patching(SET_COLOR)
        changed = await bench.patch("one", {"spec": {"size": 2}})
        assert (changed.spec.size, changed.spec.color, changed.metadata.generation) == (2, "red", 2)
        (request,) = bench.hook.requests
        assert request["operation"] == "UPDATE"
        assert (request["oldObject"]["spec"], request["object"]["spec"]) == ({"size": 1}, {"size": 2})
        await bench.patch("one", {"status": {"phase": "x"}}, "/status")
        assert len(bench.hook.requests) == 1

    with_webhook(server, tmp_path, scenario)


def test_match_conditions_decide_who_is_asked(server: ApiServer, tmp_path: Path) -> None:
    conditions = [
        {"name": "sized", "expression": "object.spec.?size.orValue(0) > 2"},
        {"name": "new-or-grown", "expression": "oldObject == null || oldObject.spec.size < object.spec.size"},
        {"name": "not-skipped", "expression": "!('skip' in object.metadata.?annotations.orValue({}))"},
        {"name": "operation", "expression": "request.operation in ['CREATE', 'UPDATE']"},
    ]

    async def scenario(bench: Bench) -> None:
        entry = bench.hook.entry("grown.test.dev", bench.namespace, matchConditions=conditions)
        await bench.register(entry)
        await bench.create("small", size=1)
        await bench.create("unsized")
        await bench.create("large", size=3)
        await bench.patch("large", {"spec": {"size": 3, "color": "x"}})
        await bench.patch("large", {"spec": {"size": 4}})
        await bench.patch("large", {"spec": {"size": 5}, "metadata": {"annotations": {"skip": ""}}})
        asked = [(each["operation"], each["object"]["spec"]["size"]) for each in bench.hook.requests]
        assert asked == [("CREATE", 3), ("UPDATE", 4)]

    with_webhook(server, tmp_path, scenario)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_condition_that_cannot_be_decided_counts_as_a_failed_call(
    server: ApiServer, tmp_path: Path, policy: str
) -> None:
    async def scenario(bench: Bench) -> None:
        conditions = [{"name": "sized", "expression": "object.spec.size > 2"}]
        more = {"matchConditions": conditions, "failurePolicy": policy}
        await bench.register(bench.hook.entry("sized.test.dev", bench.namespace, **more))
        if policy == "Ignore":
            await bench.create("unsized")
        else:
            with pytest.raises(Refused):
                await bench.create("unsized")
        assert bench.hook.requests == []

    with_webhook(server, tmp_path, scenario)


def test_a_dry_run_is_flagged_and_shows_the_change(server: ApiServer, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.hook.entry("color.test.dev", bench.namespace))
        bench.hook.answer = patching(SET_COLOR)
        answer = await bench.client.post(bench.collection, widget("one", size=1), Widget, {"dryRun": "All"})
        assert answer.spec.color == "red"
        assert [each["dryRun"] for each in bench.hook.requests] == [True]
        with pytest.raises(NotFound):
            await bench.client.get_json(f"{bench.collection}/one", Obj)

    with_webhook(server, tmp_path, scenario)


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        ({"message": "too big"}, 400, "too big"),
        ({"message": "too big", "code": 403, "reason": "Forbidden"}, 403, "too big"),
        ({}, 400, "without explanation"),
    ],
)
def test_a_webhook_may_refuse(server: ApiServer, tmp_path: Path, status: Obj, code: int, text: str) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.hook.entry("size.test.dev", bench.namespace, failurePolicy="Ignore"))
        bench.hook.answer = denying(**status)
        expected = f'admission webhook "size.test.dev" denied the request: ?{text}|{text}'
        with pytest.raises(Refused, match=expected) as caught:
            await bench.create("one")
        assert caught.value.status == code

    with_webhook(server, tmp_path, scenario)


def _no_patch_type(request: Obj) -> Obj:
    return patching(SET_COLOR)(request) | {"patchType": "Other"}


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": "!"},
        _no_patch_type,
        lambda request: [][1],
    ],
    ids=["no base64", "another patch type", "a crash"],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_an_unusable_answer_is_a_failed_call(
    server: ApiServer, tmp_path: Path, answer: Callable[[Obj], Obj], policy: str
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.hook.entry("bad.test.dev", bench.namespace, failurePolicy=policy))
        bench.hook.answer = answer
        if policy == "Ignore":
            assert (await bench.create("one", size=1)).spec.size == 1
        else:
            with pytest.raises(ServerError, match=r"bad\.test\.dev"):
                await bench.create("one", size=1)

    with_webhook(server, tmp_path, scenario)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_patch_that_does_not_apply_fails_the_write_in_any_case(
    server: ApiServer, tmp_path: Path, policy: str
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.hook.entry("bad.test.dev", bench.namespace, failurePolicy=policy))
        bench.hook.answer = patching({"op": "test", "path": "/spec/size", "value": 99})
        with pytest.raises(ServerError, match="Internal error occurred"):
            await bench.create("one", size=1)

    with_webhook(server, tmp_path, scenario)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_silent_webhook_is_given_up(server: ApiServer, tmp_path: Path, policy: str) -> None:
    async def scenario(bench: Bench) -> None:
        more = {"failurePolicy": policy, "timeoutSeconds": 1}
        await bench.register(bench.hook.entry("slow.test.dev", bench.namespace, **more))
        bench.hook.is_silent = True
        if policy == "Ignore":
            await bench.create("one", size=1)
        else:
            with pytest.raises(ServerError, match=r'failed calling webhook "slow\.test\.dev"'):
                await bench.create("one", size=1)

    with_webhook(server, tmp_path, scenario)


def test_webhooks_are_asked_one_after_the_other_by_name(server: ApiServer, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        # Registered in the other order than that of their names, which contain a number that counts up.
        second, third = (
            bench.hook.entry(f"{name}.test.dev", bench.namespace) for name in ("second", "third")
        )
        await bench.register(second, third)
        seen: list[Obj] = []

        def appending(request: Obj) -> Obj:
            seen.append(request["object"]["spec"])
            operation = {"op": "add", "path": f"/spec/mark{len(seen)}", "value": len(seen)}
            return patching(operation)(request)

        bench.hook.answer = appending
        await bench.create("one", size=1)
        assert seen == [{"size": 1}, {"size": 1, "mark1": 1}]

    with_webhook(server, tmp_path, scenario)


def test_without_its_configuration_a_webhook_is_not_asked(server: ApiServer, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.hook.answer = allow
        await bench.create("one")
        with pytest.raises(Invalid):
            await bench.client.put(f"{bench.collection}/one", widget("one"), Obj)
        assert bench.hook.requests == []

    with_webhook(server, tmp_path, scenario)
