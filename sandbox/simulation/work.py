"""What people do to a fleet, drawn by chance, each as the lines it adds to a story.

Beside ordinary work there are services that grow and shrink, bursts, urgent work, tenants who create and
delete as fast as they can, and those who write whatever they may: records forged or from the future, 200 kB
of annotations, placements of 500 clusters, other schedulers. Administrators edit quotas, classes, flavors
and policies, cut the tree of queues and tie it again.
"""

import json
import random
from collections.abc import Callable, Sequence
from typing import Final

from fairway.names import ADMISSION, REQUEUE
from sandbox.simulation.objects import Obj
from sandbox.simulation.story import NAMESPACE, ClusterLine, QueueLine, Story, SubmitLine
from sandbox.simulation.templates import GPU

Does = Callable[[Story, random.Random], Story]
"""Adds to a story what somebody does."""

URGENT: Final = 1_000
MANY_CLUSTERS: Final = 500
_LATER: Final = "2126-01-01T00:00:00Z"


def services(story: Story, rng: random.Random) -> Story:
    """Deployments that grow and shrink, some beyond what there is; some are deleted while they do."""
    for number in range(rng.randint(1, 4)):
        name, at_s = f"service{number}", rng.randint(0, story.until_s // 2)
        story = story.submit(
            name,
            _queue(story, rng),
            kind="Deployment",
            pods=rng.randint(1, 4),
            gpus=rng.choice((1, 2)),
            at_s=at_s,
        )
        for _ in range(rng.randint(1, 5)):
            at_s += rng.randint(1, 15)
            story = story.scale(name, pods=rng.choice((0, 1, 2, 3, 5, 8, 40)), at_s=at_s)
        if rng.random() < 0.3:
            story = story.delete(name, at_s=at_s + rng.randint(0, 10))
    return story


def burst(story: Story, rng: random.Random) -> Story:
    """Much at once, of one team or of all, in the middle of which something urgent comes."""
    at_s = rng.randint(0, story.until_s // 2)
    everybody = rng.random() < 0.5
    of_one = _queue(story, rng)
    for number in range(rng.randint(10, 40)):
        queue = _queue(story, rng) if everybody else of_one
        story = story.submit(f"burst{number}", queue, gpus=rng.choice((1, 1, 2, 4)), runs_s=5, at_s=at_s)
    return story.submit("urgent", _queue(story, rng), priority=URGENT, gpus=2, at_s=at_s + rng.randint(0, 5))


def gangs(story: Story, rng: random.Random) -> Story:
    """Workloads that need several nodes or clusters at once, alone or as groups over bindings."""
    for number in range(rng.randint(1, 4)):
        at_s, queue = rng.randint(0, story.until_s - 10), _queue(story, rng)
        if rng.random() < 0.5:
            story = story.submit(f"gang{number}", queue, pods=rng.randint(2, 4), gpus=2, gang=True, at_s=at_s)
            continue
        size = rng.randint(2, 4)
        for member in range(size):
            # Now and then one never comes, or late.
            late_s = rng.choice((0, 0, 0, 20))
            if member and rng.random() < 0.1:
                continue
            story = story.submit(
                f"group{number}-{member}", queue, group=f"group{number}", group_size=size, at_s=at_s + late_s
            )
    return story


def churn(story: Story, rng: random.Random) -> Story:
    """A tenant who creates and deletes without an end, mostly before anything can start."""
    queue, at_s = _queue(story, rng), rng.randint(0, 10)
    for number in range(rng.randint(20, 60)):
        at_s += rng.random() < 0.3
        name = f"churn{number}"
        story = story.submit(name, queue, at_s=at_s, runs_s=rng.choice((1, 30)))
        story = story.delete(name, at_s=at_s + rng.randint(0, 3))
    return story


def hostile(story: Story, rng: random.Random) -> Story:
    """A tenant who writes whatever the API server lets him write to his own objects."""
    for number in range(rng.randint(1, 6)):
        name, at_s = f"hostile{number}", rng.randint(0, story.until_s - 10)
        queue = _queue(story, rng)
        key = f"{NAMESPACE}/{name}-job"
        story = _submitted(story, rng, name, queue, at_s)
        for _ in range(rng.randint(0, 3)):
            at_s += rng.randint(0, 8)
            match rng.randint(0, 6):
                case 0:
                    story = story.relabel(name, queue=_queue(story, rng), at_s=at_s)
                case 1:
                    story = story.write(
                        f"{NAMESPACE}/{name}", "jobs", _annotated("example.com/note", "$long"), at_s=at_s
                    )
                case 2:
                    story = story.write(key, body=_annotated("example.com/note", "$long"), at_s=at_s)
                case 3:
                    story = story.write(key, body=_annotated(ADMISSION, _forged(rng, queue)), at_s=at_s)
                case 4:
                    story = story.write(key, body=_annotated(REQUEUE, _requeued(rng)), at_s=at_s)
                case 5:
                    body = {"spec": {"suspension": {"scheduling": rng.choice((True, False, None))}}}
                    story = story.write(key, body=json.dumps(body), at_s=at_s)
                case _:
                    story = story.delete(name, at_s=at_s)
    return story


def operators(story: Story, rng: random.Random) -> Story:
    """Karmada's own users: rescheduling by hand, dispatching suspended, clusters set or emptied."""
    names = [line.name for line in story.of(SubmitLine)]
    clusters = [line.name for line in story.of(ClusterLine)]
    for _ in range(rng.randint(0, 4) if names else 0):
        at_s = rng.randint(2, story.until_s)
        name = rng.choice(names)
        kind = next(line.kind for line in story.of(SubmitLine) if line.name == name)
        key = f"{NAMESPACE}/{name}-{kind.lower()}"
        spec: Obj = rng.choice(
            (
                {"rescheduleTriggeredAt": "$now"},
                {"suspension": {"dispatching": True}},
                {"clusters": []},
                {"clusters": [{"name": rng.choice(clusters), "replicas": 1}]},
                {"schedulePriority": {"priority": 7}},
            )
        )
        story = story.write(key, body=json.dumps({"spec": spec}), at_s=at_s)
    return story


def tree(story: Story, rng: random.Random) -> Story:
    """The tree of queues is cut, tied elsewhere, tied into a knot, and put right again, under load."""
    queues = story.of(QueueLine)
    for _ in range(rng.randint(1, 3)):
        line = rng.choice(queues)
        at_s = rng.randint(2, story.until_s - 5)
        parent = rng.choice(("", line.name, rng.choice(queues).name, "nowhere"))
        story = story.write(line.name, "clusterqueues", _parent(parent), at_s=at_s)
        story = story.write(line.name, "clusterqueues", _parent(line.parent), at_s=at_s + rng.randint(1, 20))
    return story


def administration(story: Story, rng: random.Random) -> Story:
    """Quotas go up and down, queues stop and go on, flavors lose clusters and get them back."""
    clusters = [line.name for line in story.of(ClusterLine)]
    for _ in range(rng.randint(1, 5)):
        at_s, line = rng.randint(1, story.until_s), rng.choice(story.of(QueueLine))
        match rng.randint(0, 3):
            case 0:
                story = story.quota(line.name, gpus=rng.randint(0, 2 * line.gpus), at_s=at_s)
            case 1:
                story = story.stop(line.name, at_s=at_s).stop(line.name, policy="None", at_s=at_s + 10)
            case 2:
                body = {"spec": {"weight": str(rng.randint(0, 5))}}
                story = story.write(line.name, "clusterqueues", json.dumps(body), at_s=at_s)
            case _:
                some = {"spec": {"clusterNames": rng.sample(clusters, rng.randint(1, len(clusters)))}}
                story = story.write("gpus", "resourceflavors", json.dumps(some), at_s=at_s)
                every = json.dumps({"spec": {"clusterNames": None}})
                story = story.write("gpus", "resourceflavors", every, at_s=at_s + rng.randint(1, 20))
    return story


def machines(story: Story, rng: random.Random) -> Story:
    """Nodes that fail, are taken away and brought back, or are cordoned."""
    clusters = story.of(ClusterLine)
    for _ in range(rng.randint(1, 3)):
        line = rng.choice(clusters)
        story = story.fault(
            rng.choice(("node_failed", "node_deleted", "node_cordoned")),
            for_s=rng.choice((5, 40, 40, 320)),
            whom=line.name,
            amount=rng.randrange(line.nodes),
            at_s=rng.randint(0, story.until_s),
        )
    return story


EVERYBODY: Final[Sequence[Does]] = (
    services,
    burst,
    gangs,
    churn,
    hostile,
    operators,
    tree,
    administration,
    machines,
)


def _queue(story: Story, rng: random.Random) -> str:
    """A queue without children."""
    lines = story.of(QueueLine)
    parents = {line.parent for line in lines}
    return rng.choice([line.name for line in lines if line.name not in parents])


def _submitted(story: Story, rng: random.Random, name: str, queue: str, at_s: int) -> Story:
    match rng.randint(0, 3):
        case 0:
            return story.submit(name, queue, scheduler="another", at_s=at_s)
        case 1:
            real = tuple(line.name for line in story.of(ClusterLine))
            ghosts = tuple(f"ghost{number:03}" for number in range(MANY_CLUSTERS - len(real)))
            return story.submit(name, queue, clusters=(*ghosts, *real), at_s=at_s)
        case 2:
            return story.submit(name, queue, gpus=rng.choice((9, 1_000, 2**31 - 1)), at_s=at_s)
        case _:
            return story.submit(name, queue, pods=rng.choice((1, 50)), at_s=at_s)


def _annotated(name: str, text: str) -> str:
    return json.dumps({"metadata": {"annotations": {name: text}}})


def _parent(name: str) -> str:
    return json.dumps({"spec": {"parent": name or None}})


def _forged(rng: random.Random, queue: str) -> str:
    """An admission record that somebody would like to have, or that is none."""
    if rng.random() < 0.3:
        return rng.choice(("", "{", "null", "[]", "$long", '{"id":7}'))
    requests = rng.choice(({}, {GPU: 0}, {GPU: 1}, {GPU: 2**62}, {"example.com/gold": 5}))
    record: Obj = {
        "id": rng.choice(("$uid", "$uid", "00000000-0000-4000-8000-000000000000")),
        "queue": rng.choice((queue, queue, "nowhere")),
        "enqueuedAt": rng.choice(("$now", "1970-01-01T00:00:00Z", _LATER)),
        "admittedAt": rng.choice(("$now", "1970-01-01T00:00:00Z", _LATER)),
        "replicas": rng.choice((0, 1, 1_000_000)),
        "requests": requests,
        "flavors": rng.choice(({}, {GPU: ["gpus"]}, {GPU: ["no-such"]})),
        "priority": rng.choice((0, 2**40)),
    }
    return json.dumps(record)


def _requeued(rng: random.Random) -> str:
    """A requeue record that says it is due long ago, or in a hundred years."""
    return json.dumps(
        {
            "count": rng.choice((0, 1, 2**31 - 1)),
            "notBefore": rng.choice(("$now", "1970-01-01T00:00:00Z", _LATER)),
            "enqueuedAt": rng.choice(("1970-01-01T00:00:00Z", _LATER)),
        }
    )
