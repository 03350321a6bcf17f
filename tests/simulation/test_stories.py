"""Short stories, each of something that must go well. Most were drawn by chance, and cut down to this."""

import pytest

from sandbox.simulation.story import Story
from tests.simulation.play import play

ROOMY = Story(until_s=60).cluster("a", gpus=8, nodes=10).queue("main", gpus=80)


def crowd(story: Story, count: int, **like: object) -> Story:
    """So many workloads alike."""
    for number in range(count):
        story = story.submit(f"of-many-{number}", **like)  # type: ignore[arg-type]  # what `submit` takes
    return story


STORIES = {
    "nothing happens": Story(until_s=10).cluster("a").queue("main"),
    "jobs run one after the other": crowd(Story(until_s=10).cluster("a").queue("main", gpus=2), 6, runs_s=5),
    "a leader dies right after a write": crowd(ROOMY, 8, gpus=4, pods=4).fault("kill_after_write", for_s=60),
    "a leader dies right before a write": crowd(ROOMY, 8, gpus=4, pods=4).fault(
        "kill_before_write", for_s=60
    ),
    "a leader is stopped beyond its lease": crowd(ROOMY, 20, gpus=8, runs_s=10).fault(
        "pause", at_s=1, for_s=40
    ),
    "answers get lost": crowd(ROOMY, 20, gpus=8, runs_s=10).fault("timeout_after", for_s=20, amount=4),
    "somebody else is always faster": crowd(ROOMY, 12, gpus=8).fault("conflict", for_s=40, amount=30),
    "the API server is away": crowd(ROOMY, 12, gpus=8, runs_s=10).fault("api_away", at_s=1, for_s=30),
    "watches lag": crowd(ROOMY, 30, gpus=8, runs_s=10).fault("watch_lag", for_s=60, amount=15_000),
    "quota is raised": Story(until_s=20)
    .cluster("a")
    .queue("main", gpus=1)
    .submit("x", gpus=4)
    .quota("main", gpus=4, at_s=10),
    "an urgent job of another queue is not last": crowd(
        Story(until_s=90).cluster("a", gpus=8, nodes=10).queue("old", gpus=80).queue("new", gpus=80),
        60,
        queue="old",
        runs_s=60,
    )
    .submit("urgent", queue="new", priority=100, at_s=2)
    .fault("karmada_slow", for_s=60, amount=10),
    "nobody looks at what another scheduler is to place": crowd(
        Story(until_s=30).cluster("a", gpus=16, nodes=2).queue("main", gpus=32).queue("other", gpus=32),
        12,
        scheduler="another",
    ).submit("innocent", queue="other", at_s=5),
    "the head of a strict queue can never run": Story(estimators=True)
    .cluster("a")
    .queue("main", strict=True)
    .submit("head", impossible=True)
    .submit("behind", at_s=2),
    "half of a group finds no room": Story(until_s=30)
    .cluster("a", gpus=2)
    .cluster("b", gpus=2)
    .cluster("c", gpus=4)
    .queue("main", gpus=8)
    .submit("x", clusters=("a",), kind="Deployment")
    .submit("y", clusters=("b",), kind="Deployment")
    .submit("g0", group="g", group_size=2, at_s=20, clusters=("a",))
    .submit("g1", gpus=2, group="g", group_size=2, at_s=20, clusters=("b",)),
    "a cluster is lost and comes back": Story(until_s=60, failover=True)
    .cluster("a")
    .queue("main")
    .submit("x", tries=1, kind="Deployment")
    .fault("cluster_lost", at_s=20, for_s=600, whom="a"),
    "a new leader has not heard of what the last one admitted": Story(until_s=60)
    .cluster("a")
    .queue("main", gpus=1)
    .submit("x", gpus=4, runs_s=60, at_s=2)
    .submit("z", queue="later", priority=100, gpus=4, runs_s=60, at_s=3)
    .fault("watch_silent", whom="dispatcher-1/resourcebindings", at_s=5)
    .quota("main", gpus=4, at_s=10)
    .fault("kill", whom="dispatcher-0", at_s=12, for_s=30)
    .relabel("z", queue="main", at_s=14),
    "growth finds no room": Story(until_s=30)
    .cluster("a", gpus=4)
    .cluster("b")
    .queue("main")
    .submit("service", pods=2, kind="Deployment", clusters=("a",))
    .scale("service", pods=8, at_s=10)
    .submit("x", at_s=15),
    "a workload opts out by its own label": Story().cluster("a").queue("main").submit("x", skip=True),
    "work without GPUs names a queue": Story().cluster("a").queue("main").submit("x", gpus=0),
    "a former leader's clock was ahead": crowd(
        Story(until_s=300)
        .cluster("a")
        .cluster("b", gpus=64)
        .queue("main", gpus=200)
        .submit("full", gpus=8, kind="Deployment", clusters=("a",))
        .fault("clock_apart", whom="dispatcher-0", amount=3_600_000)
        .fault("kill", whom="dispatcher-0", for_s=1)
        .fault("kill", whom="dispatcher-1", for_s=30),
        12,
        clusters=("a",),
        at_s=45,
    )
    .submit("n", at_s=100)
    .fault("kill", whom="dispatcher-0", at_s=55, for_s=600),
    "growth asked for later comes first": crowd(
        Story(until_s=60).cluster("a", nodes=8).queue("main"), 30, at_s=5, runs_s=5
    )
    .submit("s0", kind="Deployment", pods=3)
    .submit("s1", kind="Deployment", pods=3)
    .scale("s0", pods=4, at_s=8)
    .scale("s1", pods=4, at_s=8),
    "a group that fits in two clusters, not in one": Story(until_s=10, estimators=True)
    .cluster("a", gpus=2)
    .cluster("b", gpus=2)
    .queue("main", gpus=3)
    .submit("g0", gpus=2, runs_s=1, group="g", group_size=2)
    .submit("g1", runs_s=1, group="g", group_size=2),
    "what nobody looks at hides no room": Story(estimators=True)
    .cluster("a", gpus=1)
    .cluster("b", gpus=4)
    .queue("q", gpus=1)
    .queue("main", gpus=4)
    .submit("x", queue="q", scheduler="another")
    .submit("y", gpus=2, pods=2),
    "pods never become ready, and nobody minds": Story()
    .cluster("a", gpus=4)
    .queue("main", gpus=4)
    .submit("x", gpus=4, hangs=True)
    .submit("y", at_s=5),
    "pods never become ready, and are to": Story()
    .cluster("a", gpus=4)
    .queue("main", gpus=4)
    .submit("x", gpus=4, hangs=True, ready=True)
    .submit("y", at_s=5),
    "a service that found no place grows beyond its quota": Story(until_s=60, estimators=True)
    .cluster("a", gpus=2)
    .queue("one", gpus=1)
    .queue("two", gpus=2)
    .queue("more", gpus=2)
    .submit("x", queue="one", runs_s=3, at_s=2)
    .submit("y", queue="more", pods=2, runs_s=1, at_s=2)
    .submit("service", queue="two", kind="Deployment", priority=1, at_s=9)
    .submit("z", queue="two", pods=2, runs_s=10, priority=100, at_s=6)
    .scale("service", pods=3, at_s=32),
    "somebody lets go by hand of what fits nowhere": Story(until_s=60)
    .cluster("a", gpus=2)
    .queue("main", gpus=2)
    .queue("other", gpus=2)
    .submit("stray", pods=3, kind="Deployment")
    .submit("foreign", pods=2, scheduler="another")
    .suspend("stray", held=False, at_s=5)
    .suspend("foreign", held=False, at_s=5)
    .submit("x", queue="other", at_s=10),
    "a group whose smallest came first": Story(until_s=1, estimators=True)
    .cluster("a", gpus=2)
    .cluster("b", gpus=1)
    .queue("main", gpus=3)
    .submit("large", gpus=2, runs_s=1, group="g", group_size=2, at_s=1)
    .submit("small", runs_s=1, group="g", group_size=2),
    "who waits for quota joins a group that runs": Story(until_s=60)
    .cluster("a")
    .queue("main", gpus=4)
    .submit("service", gpus=2, kind="Deployment")
    .submit("g0", runs_s=50, group="g", group_size=2)
    .submit("g1", runs_s=50, group="g", group_size=2)
    .submit("x", gpus=3)
    .relabel("x", queue="main", group="g", group_size=3, at_s=20),
    "a group changes while half of it is released": Story(until_s=90)
    .cluster("a", gpus=9)
    .queue("main")
    .submit("g0", kind="Deployment", group="g", group_size=3)
    .submit("g1", kind="Deployment", group="g", group_size=3)
    .submit("g2", kind="Deployment", group="g", group_size=3, at_s=42)
    .scale("g2", pods=2, at_s=43)
    .fault("kill_after_write", at_s=42, for_s=22)
    .fault("kill_after_write", at_s=42, for_s=22),
    "growth keeps to the one cluster that is left of its flavor": Story(until_s=1, estimators=True)
    .cluster("a")
    .cluster("b", gpus=1)
    .queue("main", gpus=2)
    .submit("service", kind="Deployment")
    .scale("service", pods=2, at_s=1)
    .write("gpus", kind="resourceflavors", body='{"spec": {"clusterNames": ["a"]}}'),
    "there is room for one before what was decided without it is written": Story(seed=7975, until_s=90)
    .cluster("a", gpus=2)
    .cluster("b", gpus=4)
    .queue("all", gpus=0)
    .queue("main", gpus=6)
    .submit("w6", runs_s=1, at_s=21)
    .submit("w7", queue="other")
    .submit("w8", gang=True, way="by room", at_s=33)
    .submit("w9", pods=3, way="by room", ready=True, at_s=18)
    .submit("w10", gpus=4, runs_s=40, way="by room", at_s=6)
    .submit("w15", queue="other", priority=10, ready=True, at_s=37)
    .fault("karmada_away", for_s=34, at_s=21),
    "what is lost stays where it would wait for quota that somebody took by hand": Story(
        until_s=60, lost_after_s=60
    )
    .cluster("a")
    .cluster("b", gpus=1)
    .queue("main", gpus=1)
    .submit("x", runs_s=300, clusters=("a", "b"))
    .submit("stray", runs_s=300)
    .suspend("stray", held=False, at_s=2)
    .fault("cluster_lost", whom="a", at_s=5, for_s=240),
    "room is taken by what Karmada writes there long after the cluster is back": Story(
        until_s=30, estimators=True, lost_after_s=0
    )
    .cluster("a", gpus=2)
    .cluster("b")
    .queue("main", gpus=3)
    .submit("x", gpus=2, clusters=("a",))
    .submit("y", clusters=("a",))
    .fault("cluster_lost", whom="a", at_s=1, for_s=400)
    .stop("main", policy="HoldAndDrain", at_s=22)
    .stop("main", policy="None", at_s=222),
    "nobody hears that it began": Story(until_s=60)
    .cluster("a")
    .queue("main", gpus=1)
    .submit("x", gpus=4, runs_s=400, may_run_s=90)
    .fault("watch_silent", whom="dispatcher-0/resourcebindings", at_s=9)
    .quota("main", gpus=4, at_s=10),
    "who is behind the head of a strict queue has no turn": crowd(
        Story(until_s=60, estimators=True)
        .cluster("a", nodes=2, gpus=4)
        .queue("main", gpus=8, strict=True)
        .queue("other", gpus=6)
        .submit("busy", queue="other", runs_s=200)
        .submit("head", gpus=8, at_s=1)
        .submit("behind", at_s=2),
        60,
        queue="other",
        runs_s=2,
        at_s=5,
    ),
    "what a draining reservation has of quota is not taken by what would be over in time": Story(
        until_s=60, estimators=True
    )
    .cluster("a")
    .cluster("b")
    .queue("main", gpus=14, backfill=True, reserves_s=0, drains_s=0)
    .submit("runs", gpus=6, runs_s=50, says_s=55, clusters=("a",))
    .submit("gang", gpus=8, clusters=("a",), at_s=2)
    .submit("small", runs_s=20, says_s=25, clusters=("b",), at_s=10),
}


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str) -> None:
    played = play(STORIES[name])
    assert not played.broken, "\n".join(map(str, played.broken))
