"""Spreading that does not give way, beside pods that run: which of them count, and which nodes."""

import pytest

from tests.builders import PodBuilder, selecting
from tests.estimator.running import BARE, FIVE, HOST, RACK, ZONE, Scene, Scenes, app, at, beside, check, web

WEB, CACHE = selecting(app="web"), selecting(app="cache")
TAINTED = at("n5", "c").taint("gpu:NoSchedule")


def own(on: str, number: int = 0, **labels: str) -> PodBuilder:
    return app("web", on, **labels).named(f"web-{on}-{number}")


def several(on: str, number: int) -> tuple[PodBuilder, ...]:
    return tuple(own(on, index) for index in range(number))


def zoned(skew: int = 1, **fields: object) -> PodBuilder:
    return web().spread(ZONE, WEB, skew, **fields)


OWN: Scenes = {
    "nobody runs": Scene(zoned(), 26),
    "those behind catch up, the full zone stays": Scene(
        zoned(), 2, several("n1", 3), nodes=(at("n1", "a"), at("n2", "b", cpu=1), at("n3", "c", cpu=1))
    ),
    "three in a zone": Scene(zoned(), 23, several("n1", 3)),
    "far ahead": Scene(zoned(), 17, several("n1", 20)),
    "a wider skew": Scene(zoned(skew=3), 30),
    "a wider skew beside pods that run": Scene(zoned(skew=3), 25, several("n1", 5)),
    "a full zone counts as the emptiest": Scene(
        zoned(), 2, (app("other", "n5").requests(cpu=8),), nodes=FIVE
    ),
    "a full zone of its own": Scene(zoned(), 4, (own("n5").requests(cpu=8),), nodes=FIVE),
    "pods of others do not count": Scene(
        zoned(), 26, tuple(app("other", "n1").named(f"o{i}") for i in range(5))
    ),
    "pods of other namespaces do not count": Scene(
        zoned(), 26, tuple(one.of("other") for one in several("n1", 5))
    ),
    "pods that are being deleted do not count": Scene(
        zoned(), 26, tuple(one.terminating() for one in several("n1", 5))
    ),
    "pods that have ended do not count": Scene(
        zoned(), 26, tuple(one.phase("Succeeded") for one in several("n1", 5))
    ),
    "pods that wait for victims do not count": Scene(
        zoned(), 26, tuple(own("", index).nominated("n1") for index in range(5))
    ),
    "pods on nodes that nobody has seen do not count": Scene(zoned(), 26, several("ghost", 5)),
    "nodes without the label take none": Scene(zoned(), 26, nodes=(*FIVE, BARE)),
    "nor do their pods count": Scene(zoned(), 26, several("bare", 3), nodes=(*FIVE, BARE)),
    "a key that no node carries": Scene(web().spread("none", WEB), 0),
    "by host": Scene(web().spread(HOST, WEB), 40, (own("n1"),)),
    "by version": Scene(
        web(version="2").spread(ZONE, WEB, matchLabelKeys=["version"]),
        26,
        tuple(own("n1", index, version="1") for index in range(5)),
    ),
    "by a key of versions that it lacks": Scene(
        web().spread(ZONE, WEB, matchLabelKeys=["version"]),
        21,
        tuple(own("n1", index, version="1") for index in range(5)),
    ),
}

OTHERS: Scenes = {
    "others keep them off zones ahead": Scene(
        web().spread(ZONE, CACHE), 24, (app("cache", "n1"), app("cache", "n2"))
    ),
    "others that are as even as can be": Scene(web().spread(ZONE, CACHE), 40, (app("cache", "n1"),)),
    "others in a wider skew": Scene(
        web().spread(ZONE, CACHE, 2), 40, (app("cache", "n1"), app("cache", "n2"))
    ),
    "others in too few zones": Scene(
        web().spread(ZONE, CACHE, minDomains=4),
        8,
        tuple(app("cache", name) for name in ("n1", "n2", "n3", "n4", "n5")),
    ),
    "an empty selector counts nobody": Scene(web().spread(ZONE, {}), 40, several("n1", 5), nodes=FIVE),
    "no selector counts nobody": Scene(web().spread(ZONE, None), 40, several("n1", 5)),
    "nodes without the label take none all the same": Scene(
        web().spread(ZONE, None), 40, nodes=(*FIVE, BARE)
    ),
    "a key that no node carries": Scene(web().spread("none", CACHE), 0),
    "that gives way is not looked at": Scene(
        web().spread("none", WEB, whenUnsatisfiable="ScheduleAnyway"), 40
    ),
}

MIN: Scenes = {
    "as many zones as there must be": Scene(zoned(minDomains=3), 26),
    "too few count as one that is empty": Scene(zoned(minDomains=4), 3),
    "too few in a wider skew": Scene(zoned(skew=2, minDomains=4), 6),
    "too few beside pods that run": Scene(zoned(skew=2, minDomains=4), 5, (own("n1"),)),
    "too few beside more pods than may be": Scene(zoned(minDomains=4), 2, several("n1", 3)),
}

POLICIES: Scenes = {
    "nodes that the pod does not select make no zones": Scene(
        zoned().selects(pool="x"),
        9,
        nodes=(at("n1", "a", pool="x"), at("n2", "b", 1), at("n3", "c", 4, pool="x")),
    ),
    "unless they shall": Scene(
        zoned(nodeAffinityPolicy="Ignore").selects(pool="x"),
        2,
        nodes=(at("n1", "a", pool="x"), at("n2", "b", 1), at("n3", "c", 4, pool="x")),
    ),
    "pods there count then": Scene(
        zoned(nodeAffinityPolicy="Ignore").selects(pool="x"),
        6,
        several("n2", 2),
        nodes=(at("n1", "a", pool="x"), at("n2", "b", 4), at("n3", "c", 4, pool="x")),
    ),
    "nodes with taints make zones": Scene(zoned(), 2, nodes=(*FIVE[:4], TAINTED)),
    "unless taints are honoured": Scene(zoned(nodeTaintsPolicy="Honor"), 32, nodes=(*FIVE[:4], TAINTED)),
    "taints that the pod tolerates change nothing": Scene(
        zoned(nodeTaintsPolicy="Honor").tolerates("gpu:NoSchedule"), 26, nodes=(*FIVE[:4], TAINTED)
    ),
    "pods on tainted nodes do not count then": Scene(
        zoned(nodeTaintsPolicy="Honor"),
        16,
        several("n2", 3),
        nodes=(at("n1", "a"), at("n2", "a").taint("gpu:NoSchedule"), at("n3", "b")),
    ),
    "pods on tainted nodes count otherwise": Scene(
        zoned(),
        14,
        several("n2", 3),
        nodes=(at("n1", "a"), at("n2", "a").taint("gpu:NoSchedule"), at("n3", "b")),
    ),
    "a cordoned zone counts as the emptiest": Scene(zoned(), 2, nodes=(*FIVE[:4], at("n5", "c").cordoned())),
}

TWO = (at("n1", "a", 4, rack="1"), at("n2", "a", 4, rack="2"), at("n3", "b", 4, rack="3"))

SEVERAL: Scenes = {
    "two labels": Scene(zoned().spread(RACK, WEB), 5, nodes=TWO, proven=False),
    "two labels beside pods that run": Scene(
        zoned().spread(RACK, WEB), 4, (own("n1"),), nodes=TWO, proven=False
    ),
    "a node counts with both labels only": Scene(
        zoned().spread(RACK, WEB), 5, several("n4", 3), nodes=(*TWO, at("n4", "a", 4)), proven=False
    ),
    "of its own and of others": Scene(
        zoned().spread(HOST, CACHE), 25, tuple(app("cache", "n1").named(f"c{i}") for i in range(2))
    ),
    "and one host each": Scene(zoned().apart(HOST, WEB), 3, (own("n1"), own("n3"))),
}

ALL = {
    f"{name}: {title}": scene
    for name, table in (
        ("own", OWN),
        ("others", OTHERS),
        ("minDomains", MIN),
        ("policies", POLICIES),
        ("several", SEVERAL),
    )
    for title, scene in table.items()
}


@pytest.mark.parametrize("scene", ALL.values(), ids=ALL)
def test_pods_are_spread_beside_those_that_run(scene: Scene) -> None:
    check(scene)


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (OTHERS["others keep them off zones ahead"], "didn't match pod topology spread constraints"),
        (OTHERS["a key that no node carries"], "(missing required label)"),
    ],
)
def test_why_there_is_no_room_is_said_in_the_schedulers_words(scene: Scene, words: str) -> None:
    assert words in "; ".join(str(reason) for reason in beside(scene.mirror(), scene.asked).reasons)
