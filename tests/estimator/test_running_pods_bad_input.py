"""Odd, huge and changing pods and terms: every question is answered, and right where that can be said."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from estimator.capacity.gangs.templates import MAX_RULES
from sandbox.fakeapi import FakeApi
from tests.builders import PodBuilder, cluster, delete, pod, selecting, upsert
from tests.estimator.running import FIVE, HOST, ZONE, app, at, beside, web
from tests.estimator.serving import estimator, kubeconfig, live, replicas_request

WEB, CACHE = selecting(app="web"), selecting(app="cache")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MEGABYTE = "k" * 2**20
CONTRADICTORY = selecting(("app", "In", ["cache"]), ("app", "NotIn", ["cache"]))
MANY_VALUES = selecting(("app", "In", ["cache", *(f"v{number}" for number in range(20_000))]))
MANY_PARTS = selecting(*((f"k{number}", "DoesNotExist", []) for number in range(900)), app="cache")
TOO_MANY_PARTS = selecting(*((f"k{number}", "DoesNotExist", []) for number in range(MAX_RULES)), app="cache")


def repeated(times: int) -> PodBuilder:
    asked = web()
    for _ in range(times):
        asked = asked.apart(HOST, CACHE)
    return asked


# Templates beside a cache on n1, and how many fit.
TEMPLATES: dict[str, tuple[PodBuilder, int]] = {
    "apart from a contradiction": (web().apart(HOST, CONTRADICTORY), 40),
    "near a contradiction": (web().near(HOST, CONTRADICTORY), 0),
    "spread by a contradiction": (web().spread(ZONE, CONTRADICTORY), 40),
    "apart by twenty thousand values": (web().apart(HOST, MANY_VALUES), 32),
    "apart by nine hundred parts": (web().apart(HOST, MANY_PARTS), 32),
    "near by nine hundred parts": (web().near(HOST, MANY_PARTS), 8),
    "apart by more parts than anybody has": (web().apart(HOST, TOO_MANY_PARTS), 0),
    "near by more parts than anybody has": (web().near(HOST, TOO_MANY_PARTS), 0),
    "in namespaces by more parts than anybody has": (
        web().apart(HOST, CACHE, namespaceSelector=TOO_MANY_PARTS),
        0,
    ),
    "spread by more parts than anybody has": (web().spread(ZONE, TOO_MANY_PARTS), 0),
    "the same term three hundred times": (repeated(300), 32),
    "more terms than anybody has": (repeated(MAX_RULES + 1), 0),
    "apart in domains with a name of a megabyte": (web().apart(MEGABYTE, WEB), 40),
    "near in domains with a name of a megabyte": (web().near(MEGABYTE, WEB), 0),
    "spread over domains with a name of a megabyte": (web().spread(MEGABYTE, WEB), 0),
    "apart in a namespace with a name of a megabyte": (web().apart(HOST, CACHE, namespaces=[MEGABYTE]), 40),
    "keys of labels that make no sense": (web().apart(HOST, CACHE, matchLabelKeys=["", "!", MEGABYTE]), 32),
    "a selector that makes no sense": (web().apart(HOST, selecting(("app", MEGABYTE, ["x"]))), 0),
}


@pytest.mark.parametrize(("asked", "fits"), TEMPLATES.values(), ids=TEMPLATES)
def test_odd_templates_are_answered(asked: PodBuilder, fits: int) -> None:
    assert beside(cluster(*FIVE, app("cache", "n1")), asked).value == fits


def test_odd_templates_are_answered_by_the_server_and_leave_others_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApi() as member, FakeApi() as karmada:
            for one in FIVE:
                member.create("/api/v1/nodes", one.object())
            member.create("/api/v1/namespaces/default/pods", app("cache", "n1").object())
            for number, (asked, _) in enumerate(TEMPLATES.values()):
                karmada.create(DEPLOYMENTS, asked.named(f"d{number}").deployment())
            settings = kubeconfig(tmp_path / "karmada", karmada.url)
            async with estimator(live("m", member.url), karmada=settings) as caller:
                request = replicas_request("m", {"cpu": "1"}, namespace="default")
                for number, (title, (_, fits)) in enumerate(TEMPLATES.items()):
                    reply = await caller.replicas(
                        request, object_text=f"kind=Deployment, name=default/d{number}"
                    )
                    assert reply.value == fits, (title, reply.reasons)
                    assert sum(map(len, reply.reasons)) < 8000, title

    asyncio.run(scenario())


def test_ten_thousand_label_sets_are_told_apart() -> None:
    crowd = tuple(
        app("crowd", f"n{number % 5 + 1}").named(f"p{number}").labelled({"app": "crowd", "id": str(number)})
        for number in range(10_000)
    )
    mirror = cluster(*(one.pods(5_000) for one in FIVE), *crowd)
    assert beside(mirror, web().apart(HOST, selecting(id="7"))).value == 32
    assert beside(mirror, web().apart(HOST, selecting(app="crowd"))).value == 0
    assert beside(mirror, web().near(HOST, selecting(("id", "In", ["1", "3"])))).value == 16
    for one in crowd:
        delete(mirror, one)
    assert beside(mirror, web().apart(HOST, selecting(app="crowd"))).value == 40


def test_two_thousand_pods_that_each_keep_others_off_are_all_heeded() -> None:
    wary = tuple(
        app("wary", "n1").named(f"p{number}").apart(HOST, selecting(app=f"a{number}"))
        for number in range(2_000)
    )
    mirror = cluster(*(one.pods(5_000) for one in FIVE), *wary)
    assert beside(mirror, web()).value == 40
    assert beside(mirror, web().labelled({"app": "a1999"})).value == 32
    delete(mirror, wary[1999])
    assert beside(mirror, web().labelled({"app": "a1999"})).value == 40


def test_a_megabyte_of_labels_on_a_running_pod_and_on_a_node() -> None:
    huge = pod("huge").labelled({MEGABYTE: MEGABYTE}).requests(cpu=0).apart(MEGABYTE, {}).on("n1")
    mirror = cluster(*FIVE, at("n6", "c").label({MEGABYTE: "x"}), huge)
    assert beside(mirror, web()).value == 48
    upsert(mirror, huge.on("n6"))
    assert beside(mirror, web()).value == 40


def relabel(api: FakeApi, path: str, labels: dict[str, str]) -> None:
    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["labels"] = labels

    api.update(path, change)


def test_pods_and_nodes_that_change_while_questions_run_give_what_was_true_at_some_moment(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with FakeApi() as member, FakeApi() as karmada:
            for one in FIVE:
                member.create("/api/v1/nodes", one.object())
            member.create("/api/v1/namespaces/default/pods", app("cache", "n1").object())
            karmada.create(DEPLOYMENTS, web().apart(ZONE, CACHE).deployment())
            settings = kubeconfig(tmp_path / "karmada", karmada.url)
            async with estimator(live("m", member.url), karmada=settings) as caller:

                async def ask() -> int:
                    request = replicas_request("m", {"cpu": "1"}, namespace="default")
                    about = "kind=Deployment, name=default/web"
                    return (await caller.replicas(request, object_text=about)).value

                seen = {await ask()}
                for turn in range(60):
                    name, zone = ("cache", "idle")[turn % 2], ("a", "c")[turn // 2 % 2]
                    relabel(member, "/api/v1/namespaces/default/pods/cache-n1", {"app": name})
                    relabel(member, "/api/v1/nodes/n1", {HOST: "n1", ZONE: zone})
                    seen.add(await ask())
                # apart from zone a with n1 and n2, from zone c with n1 and n5, or from nobody
                assert seen <= {24, 40}
                async with asyncio.timeout(20):
                    while await ask() != 40:
                        pass

    asyncio.run(scenario())
