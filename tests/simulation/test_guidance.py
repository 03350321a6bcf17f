"""Where in a cluster the pods of a release go, on the simulated Karmada: see docs/placement.md."""

import pytest

from sandbox.simulation.karmada.overriding import OVERRIDE_POLICIES
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.play import play

MINIMUMS = ("scheduling.volcano.sh/group-min-member", "kai.scheduler/batch-min-member")


def crumbs(*, preplaces: bool = True) -> Story:
    """One small one breaks a node, more of them come, and then what needs the other node whole."""
    story = Story(until_s=30, estimators=True, preplaces=preplaces).cluster("a", gpus=4, nodes=2)
    story = story.queue("main", gpus=8).submit("first", runs_s=60)
    for number in range(3):
        story = story.submit(f"small{number}", runs_s=60, at_s=3 + number)
    return story.submit("large", gpus=4, runs_s=60, at_s=10)


def running(world: World, name: str) -> int:
    """How many pods of the Job have nodes."""
    owners = world.members["a"].owners
    return sum(
        pod.node is not None
        for owner in owners.values()
        if owner.template["metadata"]["name"] == name
        for pod in owner.live
    )


@pytest.mark.parametrize("preplaces", [True, False])
def test_small_pods_leave_whole_nodes_to_large_ones(preplaces: bool) -> None:
    world = World(crumbs(preplaces=preplaces))
    world.timeline.run_until(world.at_ms(20))
    assert running(world, "large") == preplaces


def test_a_policy_goes_with_its_binding_and_is_of_no_others() -> None:
    world = World(crumbs().delete("small0", at_s=15))
    world.timeline.run_until(world.at_ms(14))
    policies = world.api.collection(OVERRIDE_POLICIES).objects
    # The first found all nodes whole, and the large one takes what there is: nothing to tell them.
    named = {one["spec"]["resourceSelectors"][0]["name"] for one in policies.values()}
    assert named == {"small0", "small1", "small2"}
    world.timeline.run_until(world.at_ms(20))
    named = {one["spec"]["resourceSelectors"][0]["name"] for one in policies.values()}
    assert named == {"small1", "small2"}


def test_a_policy_of_that_name_that_is_not_ours_stays_and_the_release_goes_on_without() -> None:
    world = World(crumbs())
    theirs = {"metadata": {"name": "fairway-small0-job", "namespace": "team"}, "spec": {"says": "theirs"}}
    world.api.create(OVERRIDE_POLICIES, theirs)
    world.timeline.run_until(world.at_ms(14))
    policies = world.api.collection(OVERRIDE_POLICIES).objects
    (key,) = (key for key in policies if key.endswith("/fairway-small0-job"))
    assert policies[key]["spec"] == {"says": "theirs"}
    assert len(policies) == 3
    assert running(world, "small0") == 1


@pytest.mark.parametrize(
    ("takes", "told"),
    [
        ("volcano", {"scheduling.volcano.sh/group-min-member": "4"}),
        ("kai-scheduler", {"kai.scheduler/batch-min-member": "4"}),
        ("", {}),
    ],
)
def test_gang_schedulers_are_told_how_many_start_together(takes: str, told: dict[str, str]) -> None:
    story = Story(until_s=30, estimators=True).cluster("a", gpus=4, nodes=2).queue("main", gpus=8)
    world = World(story.submit("train", pods=4, gang=True, runs_s=60, takes=takes))
    world.timeline.run_until(world.at_ms(10))
    (there,) = world.members["a"].owners.values()
    annotations = there.template["metadata"]["annotations"]
    assert {key: value for key, value in annotations.items() if key in MINIMUMS} == told
    assert annotations["fairway.dev/gang"] == "true"
    assert running(world, "train") == 4


def test_no_law_is_broken() -> None:
    played = play(crumbs())
    assert not played.broken


def test_what_a_leader_left_that_died_before_the_release_is_taken_away() -> None:
    story = Story(until_s=30, estimators=True).cluster("a", gpus=4, nodes=2).queue("main", gpus=0)
    world = World(story.submit("first", runs_s=60).quota("main", gpus=8, at_s=5))
    world.timeline.run_until(world.at_ms(3))
    (binding,) = world.api.collection("resourcebindings").objects.values()
    metadata = binding["metadata"]
    owner = {"kind": "ResourceBinding", "name": metadata["name"], "uid": metadata["uid"]}
    left = {
        "name": f"fairway-{metadata['name']}",
        "namespace": metadata["namespace"],
        "labels": {"fairway.dev/guidance": "true"},
        "ownerReferences": [owner],
    }
    world.api.create(OVERRIDE_POLICIES, {"metadata": left, "spec": {"overrideRules": []}})
    world.timeline.run_until(world.at_ms(10))
    assert running(world, "first") == 1
    assert not world.api.collection(OVERRIDE_POLICIES).objects
