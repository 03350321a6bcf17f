"""Required affinity and anti-affinity beside pods that run: their terms and the newcomer's own."""

import pytest

from tests.builders import PodBuilder, selecting
from tests.estimator.running import BARE, FIVE, HOST, RACK, ZONE, Scene, Scenes, app, at, beside, check, web

WEB, CACHE, DB = selecting(app="web"), selecting(app="cache"), selecting(app="db")
TEAMS = {"data": {"team": "x"}, "other": {"team": "y"}, "default": {}}
OF_X, OF_Y = selecting(team="x"), selecting(team="y")
NOT_OF_X = selecting(("team", "NotIn", ["x"]))


def own(on: str, **labels: str) -> PodBuilder:
    return app("web", on, **labels)


def cache(on: str, **labels: str) -> PodBuilder:
    return app("cache", on, **labels)


def db(on: str, **labels: str) -> PodBuilder:
    return app("db", on, **labels)


APART: Scenes = {
    "of its kind, one host each": Scene(web().apart(HOST, WEB), 2, (own("n1"), own("n2"), own("n3"))),
    "of its kind, one zone each": Scene(web().apart(ZONE, WEB), 2, (own("n1"),)),
    "of its kind, all zones taken": Scene(web().apart(ZONE, WEB), 0, (own("n1"), own("n4"), own("n5"))),
    "one without a zone is in nobody's way": Scene(
        web().apart(ZONE, WEB), 11, (own("bare"),), nodes=(*FIVE, BARE)
    ),
    "by a label that no node has": Scene(web().apart("none", WEB), 40, (own("n1"),)),
    "of its kind and version": Scene(
        web(version="2").apart(HOST, WEB, matchLabelKeys=["version"]),
        4,
        (own("n1", version="1"), own("n2", version="2")),
    ),
    "a key of versions that it lacks narrows nothing": Scene(
        web().apart(HOST, WEB, matchLabelKeys=["version"]), 3, (own("n1", version="1"), own("n2"))
    ),
    "of its kind and any other version": Scene(
        web(version="2").apart(HOST, WEB, mismatchLabelKeys=["version"]),
        32,
        (own("n1", version="1"), own("n2", version="2")),
    ),
    "of others, by host": Scene(web().apart(HOST, CACHE), 8, tuple(map(cache, ("n1", "n2", "n3", "n4")))),
    "of others, by zone": Scene(web().apart(ZONE, CACHE), 24, (cache("n1"),)),
    "of others that run nowhere": Scene(web().apart(ZONE, CACHE), 40),
    "of its own namespace unless it says others": Scene(
        web().apart(HOST, CACHE), 32, (cache("n1"), cache("n2").of("data"))
    ),
    "of the namespaces that it says alone": Scene(
        web().apart(HOST, CACHE, namespaces=["data"]), 32, (cache("n1"), cache("n2").of("data"))
    ),
    "of its kind in another namespace": Scene(web().apart(HOST, WEB, namespaces=["data"]), 40, (own("n1"),)),
    "of all namespaces": Scene(
        web().apart(HOST, CACHE, namespaceSelector={}),
        24,
        (cache("n1"), cache("n2").of("data")),
        known=TEAMS,
    ),
    "of all namespaces, unknown as they are": Scene(
        web().apart(HOST, CACHE, namespaceSelector={}), 24, (cache("n1"), cache("n2").of("data")), seen=False
    ),
    "of its kind in all namespaces": Scene(
        web().apart(HOST, WEB, namespaceSelector={}), 3, (own("n1"), own("n2").of("data")), known=TEAMS
    ),
    "of namespaces with a label": Scene(
        web().apart(HOST, CACHE, namespaceSelector=OF_X),
        32,
        (cache("n1"), cache("n2").of("data"), cache("n3").of("other")),
        known=TEAMS,
    ),
    "of namespaces with a label and of those that it says": Scene(
        web().apart(HOST, CACHE, namespaces=["default"], namespaceSelector=OF_X),
        24,
        (cache("n1"), cache("n2").of("data"), cache("n3").of("other")),
        known=TEAMS,
    ),
    "of its kind by its namespace's own label": Scene(
        web().of("data").apart(HOST, WEB, namespaceSelector=OF_X),
        4,
        (own("n1").of("data"), own("n2")),
        known=TEAMS,
    ),
    "of its kind in namespaces that its own is none of": Scene(
        web().of("data").apart(HOST, WEB, namespaceSelector=OF_Y), 40, (own("n1").of("data"),), known=TEAMS
    ),
    "of a namespace by the label that is its name": Scene(
        web().apart(HOST, CACHE, namespaceSelector=selecting(**{"kubernetes.io/metadata.name": "data"})),
        32,
        (cache("n1"), cache("n2").of("data")),
        seen=False,
    ),
    "of namespaces whose labels nobody knows": Scene(
        web().apart(HOST, CACHE, namespaceSelector=OF_X),
        40,
        (cache("n1").of("data"),),
        proven=False,
        seen=False,
    ),
    "of namespaces without a label that nobody knows": Scene(
        web().apart(HOST, {}, namespaceSelector=NOT_OF_X), 40, (cache("n1"),), proven=False, seen=False
    ),
    "of the namespaces that it says and others that nobody knows": Scene(
        web().apart(HOST, CACHE, namespaces=["data"], namespaceSelector=OF_X),
        32,
        (cache("n1").of("data"), cache("n2")),
        proven=False,
        seen=False,
    ),
    "no selector means nobody": Scene(web().apart(HOST, None), 40, (own("n1"), cache("n2"))),
    "an empty selector means everybody": Scene(web().apart(HOST, {}), 4, (cache("n1"),)),
    "by expressions, all of which hold": Scene(
        web().apart(HOST, selecting(("app", "In", ["cache", "db"]), ("tier", "DoesNotExist", []))),
        24,
        (cache("n1"), cache("n2", tier="back"), db("n3"), own("n4")),
    ),
    "several terms at once": Scene(web().apart(HOST, CACHE).apart(ZONE, DB), 16, (cache("n1"), db("n3"))),
    "a pod that is being deleted is there still": Scene(
        web().apart(HOST, CACHE), 32, (cache("n1").terminating(),)
    ),
    "a pod that has ended is not": Scene(
        web().apart(HOST, CACHE), 40, (cache("n1").phase("Succeeded"), cache("n2").phase("Failed"))
    ),
    "a pod that waits for victims on a node is as good as there": Scene(
        web().apart(HOST, CACHE), 32, (cache("").named("c").nominated("n1"),), seen=False
    ),
    "a pod that waits for a node is nowhere": Scene(
        web().apart(HOST, CACHE), 40, (cache("").named("c").phase("Pending"),)
    ),
}

REPELS = db("n1").apart(ZONE, WEB)

REPELLED: Scenes = {
    "from its zone": Scene(web(), 24, (REPELS,)),
    "not others": Scene(web(), 40, (db("n1").apart(ZONE, CACHE),)),
    "from the zones of two": Scene(web(), 8, (REPELS, db("n3").apart(ZONE, WEB))),
    "of its own namespace": Scene(web(), 40, (REPELS.of("data"),)),
    "of the namespaces that it says": Scene(
        web(), 24, (db("n1").of("data").apart(ZONE, WEB, namespaces=["default"]),)
    ),
    "not of its own where it says another": Scene(
        web(), 40, (db("n1").apart(ZONE, WEB, namespaces=["data"]),)
    ),
    "of all namespaces": Scene(
        web(), 24, (db("n1").of("data").apart(ZONE, WEB, namespaceSelector={}),), known=TEAMS
    ),
    "of all namespaces, unknown as they are": Scene(
        web(), 24, (db("n1").of("data").apart(ZONE, WEB, namespaceSelector={}),), seen=False
    ),
    "of namespaces with a label": Scene(
        web().of("data"), 24, (db("n1").of("other").apart(ZONE, WEB, namespaceSelector=OF_X),), known=TEAMS
    ),
    "not of namespaces with another label": Scene(
        web().of("data"), 40, (db("n1").of("data").apart(ZONE, WEB, namespaceSelector=OF_Y),), known=TEAMS
    ),
    "of a namespace by the label that is its name": Scene(
        web(),
        24,
        (
            db("n1")
            .of("data")
            .apart(ZONE, WEB, namespaceSelector=selecting(**{"kubernetes.io/metadata.name": "default"})),
        ),
        seen=False,
    ),
    "of namespaces whose labels nobody knows": Scene(
        web(),
        40,
        (db("n1").of("data").apart(ZONE, WEB, namespaceSelector=OF_X),),
        proven=False,
        seen=False,
    ),
    "of namespaces without a label that nobody knows": Scene(
        web(),
        40,
        (db("n1").of("data").apart(ZONE, WEB, namespaceSelector=NOT_OF_X),),
        proven=False,
        seen=False,
    ),
    "of others in namespaces whose labels nobody knows": Scene(
        web(), 40, (db("n1").of("data").apart(ZONE, CACHE, namespaceSelector=OF_X),), seen=False
    ),
    "of its own version alone": Scene(
        web(version="1"),
        24,
        (
            # the API server has put the keys into the selector already
            db("n1").apart(ZONE, selecting(app="web", version="1"), matchLabelKeys=["version"]),
            db("n3").apart(ZONE, selecting(app="web", version="2"), matchLabelKeys=["version"]),
        ),
    ),
    "of any version but its own": Scene(
        web(version="1"),
        24,
        (
            db("n1", version="2").apart(ZONE, selecting(("version", "NotIn", ["2"]), app="web")),
            db("n3", version="1").apart(ZONE, selecting(("version", "NotIn", ["1"]), app="web")),
        ),
    ),
    "by two terms of one pod": Scene(
        web(), 16, (db("n1").apart(HOST, WEB).apart(ZONE, {}), db("n5").apart(HOST, WEB))
    ),
    "by no selector nobody": Scene(web(), 40, (db("n1").apart(ZONE, None),)),
    "from no zone where its node has none": Scene(
        web(), 48, (db("bare").apart(ZONE, WEB),), nodes=(*FIVE, BARE)
    ),
    "while it is being deleted": Scene(web(), 24, (REPELS.terminating(),)),
    "not once it has ended": Scene(web(), 40, (REPELS.phase("Succeeded"),)),
    "while it waits for victims": Scene(
        web(), 24, (app("db", "").named("d").apart(ZONE, WEB).nominated("n1"),), seen=False
    ),
    "not by affinity": Scene(web(), 40, (db("n1").near(ZONE, WEB),)),
}

MIXED = (at("n1", "a", rack="1"), at("n2", "b", rack="2"), at("n3", "a", rack="2"))

NEAR: Scenes = {
    "others that run nowhere": Scene(web().near(ZONE, CACHE), 0),
    "others on a host": Scene(web().near(HOST, CACHE), 8, (cache("n1"),)),
    "others in a zone": Scene(web().near(ZONE, CACHE), 16, (cache("n1"),)),
    "others without a zone": Scene(web().near(ZONE, CACHE), 0, (cache("bare"),), nodes=(*FIVE, BARE)),
    "others in two zones": Scene(web().near(ZONE, CACHE), 24, (cache("n1"), cache("n5"))),
    "others of another namespace": Scene(web().near(HOST, CACHE), 0, (cache("n1").of("data"),)),
    "others of the namespaces that it says": Scene(
        web().near(HOST, CACHE, namespaces=["data"]), 8, (cache("n1").of("data"), cache("n2"))
    ),
    "others of all namespaces": Scene(
        web().near(HOST, CACHE, namespaceSelector={}), 16, (cache("n1").of("data"), cache("n2")), known=TEAMS
    ),
    "others of namespaces with a label": Scene(
        web().near(HOST, CACHE, namespaceSelector=OF_X),
        8,
        (cache("n1").of("data"), cache("n2").of("other"), cache("n3")),
        known=TEAMS,
    ),
    "others of namespaces whose labels nobody knows": Scene(
        web().near(HOST, CACHE, namespaceSelector=OF_X),
        40,
        (cache("n1").of("data"),),
        nodes=(*FIVE, BARE),
        proven=False,
        seen=False,
    ),
    "others of its own version": Scene(
        web(version="1").near(HOST, CACHE, matchLabelKeys=["version"]),
        8,
        (cache("n1", version="1"), cache("n2", version="2")),
    ),
    "others of any other version": Scene(
        web(version="1").near(HOST, CACHE, mismatchLabelKeys=["version"]),
        8,
        (cache("n1", version="1"), cache("n2", version="2")),
    ),
    "no selector means nobody": Scene(web().near(HOST, None), 0, (cache("n1"), own("n2"))),
    "several terms that one pod must match": Scene(
        web().near(ZONE, CACHE).near(HOST, selecting(tier="front")),
        8,
        (cache("n1", tier="front"), cache("n3"), db("n5", tier="front")),
    ),
    "several terms that no pod matches": Scene(
        web().near(ZONE, CACHE).near(HOST, selecting(tier="front")), 0, (cache("n1"), db("n1", tier="front"))
    ),
    "several terms, of the namespaces that all of them are about": Scene(
        web().near(ZONE, CACHE, namespaces=["data"]).near(HOST, CACHE, namespaces=["data", "default"]),
        8,
        (cache("n1"), cache("n3").of("data")),
    ),
    "each label from another pod": Scene(
        web().near(ZONE, CACHE).near(RACK, CACHE), 24, (cache("n1"), cache("n2")), nodes=MIXED
    ),
    "a pod that is being deleted attracts still": Scene(
        web().near(HOST, CACHE), 8, (cache("n1").terminating(),)
    ),
    "a pod that has ended does not": Scene(web().near(HOST, CACHE), 0, (cache("n1").phase("Failed"),)),
    "a pod that waits for victims attracts nobody": Scene(
        web().near(HOST, CACHE), 0, (app("cache", "").named("c").nominated("n1"),)
    ),
    "near some and apart from others": Scene(
        web().near(ZONE, CACHE).apart(HOST, DB), 8, (cache("n1"), db("n2"))
    ),
}

FULL = own("n5").requests(cpu=8)

COMPANY: Scenes = {
    "the first goes anywhere, the others to its zone": Scene(web().near(ZONE, WEB), 16),
    "those that run say which zone": Scene(web().near(ZONE, WEB), 8, (own("n5"),)),
    "their zone is full": Scene(web().near(ZONE, WEB), 0, (FULL,)),
    "their zone is full but for a node that it may not use": Scene(
        web().near(ZONE, WEB).selects(pool="a"),
        0,
        (own("n3"),),
        nodes=(at("n1", "a", pool="a"), at("n3", "b")),
    ),
    "those of another namespace are not of its kind": Scene(web().near(ZONE, WEB), 16, (FULL.of("data"),)),
    "those without a zone say nothing": Scene(
        web().near(ZONE, WEB), 16, (own("bare"),), nodes=(*FIVE, BARE.cpu(64))
    ),
    "those that are being deleted say it still": Scene(web().near(ZONE, WEB), 8, (own("n5").terminating(),)),
    "those that wait for victims do not": Scene(
        web().near(ZONE, WEB), 16, (app("web", "").named("w").nominated("n5"),)
    ),
    "by a label that no node has": Scene(web().near("none", WEB), 0),
    "by two labels, the finer of which decides": Scene(web().near(ZONE, WEB).near(HOST, WEB), 8),
    "its own version": Scene(
        web(version="2").near(ZONE, WEB, matchLabelKeys=["version"]), 16, (own("n5", version="1"),)
    ),
    "any other version is not its own": Scene(
        web(version="2").near(ZONE, WEB, mismatchLabelKeys=["version"]), 8, (own("n5", version="1"),)
    ),
    "any other version that runs nowhere": Scene(
        web(version="2").near(ZONE, WEB, mismatchLabelKeys=["version"]), 0
    ),
    "its kind and others that are not": Scene(web().near(ZONE, WEB).near(ZONE, CACHE), 0),
    "one host each of one zone": Scene(web().near(ZONE, WEB).apart(HOST, WEB), 2),
    "one host each of the zone with the most hosts, not the most room": Scene(
        web().near(ZONE, WEB).apart(HOST, WEB), 2, nodes=(at("n1", "a", 64), at("n2", "b"), at("n3", "b"))
    ),
    "one host each of their zone": Scene(web().near(ZONE, WEB).apart(HOST, WEB), 1, (own("n1"),)),
    "all namespaces": Scene(
        web().near(ZONE, WEB, namespaceSelector={}), 8, (own("n5").of("data"),), known=TEAMS
    ),
    "namespaces with its own one's label": Scene(
        web().of("data").near(ZONE, WEB, namespaceSelector=OF_X), 16, known=TEAMS
    ),
    "namespaces with another label": Scene(
        web().of("data").near(ZONE, WEB, namespaceSelector=OF_Y), 0, known=TEAMS
    ),
}


@pytest.mark.parametrize("scene", APART.values(), ids=APART)
def test_pods_keep_off_pods_that_run(scene: Scene) -> None:
    check(scene)


@pytest.mark.parametrize("scene", REPELLED.values(), ids=REPELLED)
def test_pods_that_run_keep_others_off(scene: Scene) -> None:
    check(scene)


@pytest.mark.parametrize("scene", NEAR.values(), ids=NEAR)
def test_pods_want_to_be_near_pods_that_run(scene: Scene) -> None:
    check(scene)


@pytest.mark.parametrize("scene", COMPANY.values(), ids=COMPANY)
def test_pods_want_the_company_of_their_own_kind(scene: Scene) -> None:
    check(scene)


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (APART["of others, by host"], "didn't match pod anti-affinity rules"),
        (REPELLED["from its zone"], "didn't satisfy existing pods anti-affinity rules"),
        (NEAR["others on a host"], "didn't match pod affinity rules"),
    ],
)
def test_why_there_is_no_room_is_said_in_the_schedulers_words(scene: Scene, words: str) -> None:
    answer = beside(scene.mirror(), scene.asked)
    assert words in "; ".join(str(reason) for reason in answer.reasons)


@pytest.mark.parametrize(
    ("scene", "what"),
    [
        (APART["of namespaces whose labels nobody knows"], "which the pod's affinity selects by"),
        (
            REPELLED["of namespaces whose labels nobody knows"],
            "which anti-affinity of running pods selects by",
        ),
    ],
)
def test_what_is_not_known_is_told(scene: Scene, what: str) -> None:
    (told,) = [reason for reason in beside(scene.mirror(), scene.asked).reasons if reason.kind == "not_known"]
    assert what in str(told)
