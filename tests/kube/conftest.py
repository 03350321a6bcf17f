"""The servers of the conformance suite: the fake one always, the real one where its programs are."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import pytest

from fairway.kube.client import KubeClient
from sandbox.fakeapi import FakeApi
from tests.envtest import RealApi, assets, real_api


class ApiServer(Protocol):
    """Users are ``admin``, ``nobody`` who may do nothing, and ``stranger`` whose token is unknown."""

    def connect(self, user: str = "admin") -> AbstractAsyncContextManager[KubeClient]: ...

    async def crash(self) -> None:
        """Go away without a word."""

    async def return_(self) -> None:
        """Serve again: the same objects, but no history from before."""


class Fake:
    def __init__(self) -> None:
        self._api = FakeApi(tokens={"admin", "nobody"})
        nobody = "Bearer nobody"
        self._api.fail(403, 1_000_000, when=lambda seen: seen.headers.get("Authorization") == nobody)

    @asynccontextmanager
    async def connect(self, user: str = "admin") -> AsyncIterator[KubeClient]:
        async with self._api, KubeClient.from_url(self._api.url, token=user, qps=-1) as client:
            yield client

    async def crash(self) -> None:
        await self._api.refuse()

    async def return_(self) -> None:
        self._api.compact()
        await self._api.start()


class Real:
    def __init__(self, api: RealApi) -> None:
        self._api = api

    @asynccontextmanager
    async def connect(self, user: str = "admin") -> AsyncIterator[KubeClient]:
        async with KubeClient.from_kubeconfig(str(self._api.kubeconfig), context=user, qps=-1) as client:
            yield client

    async def crash(self) -> None:
        await asyncio.to_thread(self._api.kill)

    async def return_(self) -> None:
        await asyncio.to_thread(self._api.start)


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("envtest")) as api:
        yield api


@pytest.fixture(params=["fake", pytest.param("envtest", marks=pytest.mark.envtest)])
def server(request: pytest.FixtureRequest) -> ApiServer:
    return Fake() if request.param == "fake" else Real(request.getfixturevalue("real"))
