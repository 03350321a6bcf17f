"""Whose token ``fairway queues`` sends, and what it does when the dispatcher refuses or asks for patience."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from admin.dispatcher import Dispatcher, DispatcherError
from admin.tokens import Bearer, is_private
from fairway.visibility import QueueList

TOKEN = "token-one"


@dataclass
class Asked:
    """What a dispatcher was asked with; ``refuse`` answers before anything else."""

    url: str = ""
    authorizations: list[str] = field(default_factory=list)
    namespaces: list[list[str]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    refuse: Callable[[str], web.Response | None] = lambda _: None

    async def queues(self, bearer: Bearer | None, *namespaces: str) -> QueueList:
        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        dispatcher = Dispatcher(self.url, None, bearer, namespaces)
        async with dispatcher.connected(sleep=sleep) as connection:
            return await connection.queues()


@asynccontextmanager
async def asked() -> AsyncIterator[Asked]:
    told = Asked()

    async def answer(request: web.BaseRequest) -> web.Response:
        authorization = request.headers.get("Authorization", "")
        told.authorizations.append(authorization)
        told.namespaces.append(request.query.getall("namespace", []))
        return told.refuse(authorization) or web.Response(body=msgspec.json.encode(QueueList()))

    server = web.Server(answer)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    told.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield told
    finally:
        listener.close()
        await server.shutdown(0)


def run(scenario: Callable[[Asked], Awaitable[None]]) -> None:
    async def play() -> None:
        async with asked() as told:
            await scenario(told)

    asyncio.run(play())


def kubeconfig(folder: Path, user: dict[str, Any]) -> Path:
    file = folder / "config"
    file.write_text(
        json.dumps(
            {
                "current-context": "x",
                "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "x", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            }
        )
    )
    return file


def test_a_token_from_a_file_is_sent_and_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")

    async def scenario(told: Asked) -> None:
        def refuse(authorization: str) -> web.Response | None:
            if authorization == "Bearer token-two":
                return None
            # Meanwhile it is replaced, as mounted tokens are.
            file.write_text("token-two")
            return web.json_response({"error": "expired"}, status=401)

        told.refuse = refuse
        await told.queues(Bearer(file))
        await told.queues(Bearer(file))
        assert told.authorizations == [f"Bearer {TOKEN}", "Bearer token-two", "Bearer token-two"]

    run(scenario)


def test_a_token_that_is_refused_twice_is_told_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)

    async def scenario(told: Asked) -> None:
        told.refuse = lambda _: web.json_response({"error": "who are you?"}, status=401)
        with pytest.raises(DispatcherError, match=r"who are you\?; .* create token NAME > FILE"):
            await told.queues(Bearer(file))
        assert told.authorizations == [f"Bearer {TOKEN}"]

    run(scenario)


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"token": TOKEN}, id="token"),
        pytest.param({"tokenFile": "token"}, id="file"),
        pytest.param(
            {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": sys.executable,
                    "args": [
                        "-c",
                        'print(\'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
                        f'"status":{{"token":"{TOKEN}"}}}}\')',
                    ],
                    "interactiveMode": "Never",
                }
            },
            id="plugin",
        ),
    ],
)
def test_the_token_of_a_kubeconfigs_user_is_sent(user: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    if "tokenFile" in user:
        user = {"tokenFile": str(tmp_path / "token")}
    file = kubeconfig(tmp_path, user)

    async def scenario(told: Asked) -> None:
        await told.queues(Bearer(None, file, "x"))
        assert told.authorizations == [f"Bearer {TOKEN}"]

    run(scenario)


@pytest.mark.parametrize("user", [{"username": "u", "password": "p"}, {}])
def test_a_user_without_a_token_is_told_how_to_make_one(user: dict[str, Any], tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, user)

    async def scenario(told: Asked) -> None:
        with pytest.raises(DispatcherError, match="its user has no token; a token of karmada-apiserver"):
            await told.queues(Bearer(None, file))
        assert not told.authorizations

    run(scenario)


def test_without_any_kubeconfig_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    async def scenario(told: Asked) -> None:
        await told.queues(Bearer())
        await told.queues(None)
        assert told.authorizations == ["", ""]

    run(scenario)


def test_the_token_that_kubectl_would_use_is_sent_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": TOKEN})))

    async def scenario(told: Asked) -> None:
        await told.queues(Bearer(), "team-a", "team-b")
        assert told.authorizations == [f"Bearer {TOKEN}"]
        assert told.namespaces == [["team-a", "team-b"]]

    run(scenario)


@pytest.mark.parametrize("status", [429, 503])
def test_a_dispatcher_that_asks_for_patience_is_asked_again_then(status: int) -> None:
    async def scenario(told: Asked) -> None:
        waits = iter(["1", "3", "60"])

        def refuse(_: str) -> web.Response | None:
            wait = next(waits, None)
            if wait is None:
                return None
            return web.json_response({"error": "later"}, status=status, headers={"Retry-After": wait})

        told.refuse = refuse
        await told.queues(None)
        assert told.pauses == [1, 3, 5]

    run(scenario)


def test_patience_ends() -> None:
    async def scenario(told: Asked) -> None:
        told.refuse = lambda _: web.json_response(
            {"error": "never"}, status=429, headers={"Retry-After": "1"}
        )
        with pytest.raises(DispatcherError, match="HTTP 429: never"):
            await told.queues(None)
        assert len(told.authorizations) == 5

    run(scenario)


def test_a_token_follows_no_redirect(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)

    async def scenario(told: Asked) -> None:
        told.refuse = lambda _: web.Response(status=302, headers={"Location": "http://192.0.2.1/steal"})
        with pytest.raises(DispatcherError, match="HTTP 302"):
            await told.queues(Bearer(file))
        assert len(told.authorizations) == 1

    run(scenario)


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://dispatcher.example", True),
        ("http://127.0.0.1:8082", True),
        ("http://localhost:8082", True),
        ("http://[::1]:8082", True),
        ("http://10.0.0.1:8082", False),
        ("http://dispatcher.example", False),
        ("http://127.0.0.1.example", False),
        ("http://localhost@evil.example", False),
        ("http://[", False),
    ],
)
def test_where_a_token_may_be_sent(url: str, private: bool) -> None:
    assert is_private(url) == private
