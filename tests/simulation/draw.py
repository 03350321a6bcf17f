"""Stories drawn from seeds: what a busy fleet is like, and what may befall it."""

import random
from dataclasses import replace
from typing import get_args

from sandbox.simulation import work
from sandbox.simulation.karmada.policies import Way
from sandbox.simulation.story import (
    ClusterLine,
    DeleteLine,
    FaultKind,
    FaultLine,
    Line,
    Preemptible,
    QueueLine,
    Story,
    SubmitLine,
    WriteLine,
)

_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
_PEOPLE = (work.services, work.burst, work.gangs, work.churn, work.tree, work.administration)
_AMOUNTS = {
    "watch_lag": (500, 20_000),
    "watch_split": (500, 20_000),
    "conflict": (1, 4),
    "too_many": (1, 6),
    "server_error": (1, 6),
    "timeout_before": (1, 4),
    "timeout_after": (1, 4),
    "kill_before_write": (1, 4),
    "kill_after_write": (1, 4),
    "slow_writes": (200, 5_000),
    "karmada_slow": (5, 40),
    "estimator_slow": (200, 8_000),
    "estimator_wrong": (1, 4),
}
_LASTS_S = {
    "pause": (2, 40),
    "kill": (0, 20),
    "api_away": (1, 20),
    "karmada_away": (1, 60),
    "cluster_lost": (5, 60),
    "watch_silent": (1, 1),
    "watch_compacted": (1, 1),
    "clock_apart": (0, 0),
    "clock_jump": (0, 0),
}
_CLOCKS_MS = (-3_600_000, -60_000, -2_000, 2_000, 60_000, 3_600_000)


def draw(seed: int) -> Story:
    """The story of a seed: always the same."""
    rng = random.Random(seed)
    until_s = rng.choice((30, 60, 90))
    story = Story(seed=seed, until_s=until_s, estimators=rng.random() < 0.6, failover=rng.random() < 0.2)
    clusters = [f"c{number}" for number in range(rng.randint(1, 3))]
    for name in clusters:
        story = story.cluster(name, gpus=rng.choice((2, 4, 8)))
    whole = sum(line.gpus for line in story.of(ClusterLine))
    queues = [f"q{number}" for number in range(rng.randint(1, 4))]
    parent = "all" if rng.random() < 0.5 else ""
    if parent:
        story = story.queue(parent, gpus=random.Random(f"root of {seed}").choice((0, 0, 0, 2, 4)))
    for name in queues:
        story = story.queue(
            name,
            gpus=rng.randint(1, max(2, whole)),
            parent=parent,
            strict=rng.random() < 0.33,
            weight=rng.choice((1, 1, 2)),
            lends=rng.choice((None, None, 0, 2)) if parent else None,
            borrows=rng.choice((None, None, 0, 2)) if parent else None,
        )
    story = _work(story, rng, queues, clusters)
    if rng.random() < 0.3:
        story = rng.choice(_PEOPLE)(story, rng)
    story = _edits(story, rng, queues)
    story = _shares(_faults(story, rng, clusters), random.Random(f"shares of {seed}"))
    story = _deeper(story, random.Random(f"depth of {seed}"))
    story = _asides(story, random.Random(f"asides of {seed}"), clusters)
    story = _comings_and_goings(story, random.Random(f"comings of {seed}"))
    story = _unanswered(story, random.Random(f"unanswered of {seed}"))
    story = _joiners(story, random.Random(f"joiners of {seed}"))
    story = _losses(story, random.Random(f"losses of {seed}"), clusters)
    story = _spreading(story, random.Random(f"spreading of {seed}"))
    story = _evictions(story, random.Random(f"evictions of {seed}"))
    story = _reservations(story, random.Random(f"reservations of {seed}"))
    story = _displacing(story, random.Random(f"displacing of {seed}"), clusters)
    story = _ageing(story, random.Random(f"ageing of {seed}"))
    return _ways(story, random.Random(f"ways of {seed}"))


def _work(story: Story, rng: random.Random, queues: list[str], clusters: list[str]) -> Story:
    number, burst = 0, rng.random() < 0.3
    for _ in range(rng.randint(2, 24)):
        at_s = rng.randint(0, 3) if burst else rng.randint(0, story.until_s - 10)
        is_service = rng.random() < 0.08
        size = rng.randint(2, 3) if rng.random() < 0.1 else 0
        queue = rng.choice(queues) if rng.random() < 0.98 else "nowhere"
        for member in range(size or 1):
            story = story.submit(
                f"w{number}",
                queue=queue,
                at_s=at_s,
                gpus=0 if not size and rng.random() < 0.01 else rng.choice((1, 1, 1, 2, 4)),
                pods=rng.choice((1, 1, 1, 2, 3)),
                runs_s=rng.choice((3, 10, 20, 40)),
                kind="Deployment" if is_service else "Job",
                priority=rng.choice((0, 0, 0, 10, 100)),
                gang=rng.random() < 0.3,
                clusters=(rng.choice(clusters),) if rng.random() < 0.2 else (),
                group=f"g{number - member}" if size else "",
                group_size=size,
                scheduler="another" if rng.random() < 0.01 else "",
                impossible=rng.random() < 0.02,
                skip=rng.random() < 0.01,
                hangs=rng.random() < 0.02,
                tries=rng.choice((None, None, None, 2)),
                ready=rng.random() < 0.3,
            )
            number += 1
        if is_service and rng.random() < 0.7:
            story = story.scale(f"w{number - 1}", pods=rng.randint(1, 5), at_s=at_s + rng.randint(5, 20))
    return story


def _edits(story: Story, rng: random.Random, queues: list[str]) -> Story:
    names = [line.name for line in story.of(SubmitLine)]
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        at_s, name = rng.randint(2, story.until_s), rng.choice(names)
        match rng.randint(0, 7):
            case 0:
                story = story.quota(rng.choice(queues), gpus=rng.randint(0, 12), at_s=at_s)
            case 1:
                queue = rng.choice(queues)
                story = story.stop(queue, at_s=at_s).stop(
                    queue, policy="None", at_s=at_s + rng.randint(1, 20)
                )
            case 2:
                story = story.relabel(name, queue=rng.choice(queues), at_s=at_s)
            case 3:
                story = story.suspend(name, held=rng.random() < 0.5, at_s=at_s)
            case 4:
                story = story.delete(name, at_s=at_s, what=rng.choice(("workload", "binding")))
            case 5:
                story = story.delete(rng.choice(queues), at_s=at_s, what=rng.choice(("queue", "local_queue")))
            case _:
                story = story.scribble(name, at_s=at_s)
    return story


def _faults(story: Story, rng: random.Random, clusters: list[str]) -> Story:
    for _ in range(rng.choice((0, 1, 2, 4, 8))):
        kind = rng.choice(_KINDS)
        if kind.startswith("estimator") and not story.estimators:
            continue
        least, most = _LASTS_S.get(kind, (5, 30))
        amount = 1
        if kind in _AMOUNTS:
            amount = rng.randint(*_AMOUNTS[kind])
        elif kind.startswith("node"):
            amount = 0
        elif kind.startswith("clock"):
            amount = rng.choice(_CLOCKS_MS)
        whom = ""
        if kind.startswith(("cluster", "estimator", "node")):
            whom = rng.choice(clusters)
        elif kind == "watch_split":
            whom = rng.choice(("resourcebindings", "clusterqueues", "clusters", "jobs"))
        elif kind == "watch_silent":
            whom = rng.choice(("dispatcher-0", "dispatcher-1/resourcebindings", "resourcebindings", ""))
        elif kind.startswith(("clock", "kill", "pause")) and rng.random() < 0.5:
            whom = rng.choice(("dispatcher-0", "dispatcher-1"))
        story = story.fault(
            kind, at_s=rng.randint(0, story.until_s), for_s=rng.randint(least, most), whom=whom, amount=amount
        )
    return story


def _shares(story: Story, rng: random.Random) -> Story:
    """Quotas that are percentages, where what they are of stays the same."""
    changes = any(line.kind.startswith(("cluster", "node")) for line in story.of(FaultLine))
    if changes or any(line.kind == "resourceflavors" for line in story.of(WriteLine)) or rng.random() < 0.7:
        return story
    lines = (
        replace(line, share=rng.choice((10, 25, 33, 50, 100)))
        if isinstance(line, QueueLine) and rng.random() < 0.7
        else line
        for line in story.lines
    )
    return replace(story, lines=tuple(lines))


def _spreading(story: Story, rng: random.Random) -> Story:
    """Now and then queues whose work is spread."""
    lines = (
        replace(line, spreads=rng.random() < 0.3) if isinstance(line, QueueLine) else line
        for line in story.lines
    )
    return replace(story, lines=tuple(lines))


def _deeper(story: Story, rng: random.Random) -> Story:
    """Now and then a queue between others and the one above them."""
    below = [line for line in story.of(QueueLine) if line.parent]
    if len(below) < 2 or rng.random() < 0.5:
        return story
    moved = rng.sample(below, rng.randint(1, len(below)))
    lends, borrows = rng.choice((None, None, 2)), rng.choice((None, None, 2))
    middle = QueueLine(
        "middle", gpus=rng.choice((0, 2)), parent=below[0].parent, lends=lends, borrows=borrows
    )
    lines = (replace(line, parent=middle.name) if line in moved else line for line in story.lines)
    return replace(story, lines=(*lines, middle))


def _asides(story: Story, rng: random.Random, clusters: list[str]) -> Story:
    """What is no business of queues: a binding without placement; a cluster that is barred for a while."""
    if rng.random() < 0.1:
        story = story.dependency("settings", at_s=rng.randint(0, story.until_s))
    if rng.random() < 0.1:
        name, at_s = rng.choice(clusters), rng.randint(0, story.until_s - 15)
        if not any(line.share for line in story.of(QueueLine)) and rng.random() < 0.5:
            # Also while it does not answer, and Karmada has said so.
            story = story.fault("cluster_lost", at_s=at_s, for_s=60, whom=name)
            at_s += 40
        story = _barred(story, name, at_s, for_s=rng.randint(3, 15))
    if rng.random() < 0.05:
        # In the midst of the release of a group.
        queue = rng.choice(_leaves(story)).name
        at_s = rng.randint(0, story.until_s - 10)
        for number in range(3):
            story = story.submit(f"half{number}", queue, group="half", group_size=3, at_s=at_s)
        kind: FaultKind = rng.choice(("kill_before_write", "kill_after_write"))
        story = story.fault(kind, at_s=at_s, for_s=20, amount=rng.randint(1, 3))
    return story


def _comings_and_goings(story: Story, rng: random.Random) -> Story:
    """A group of which most are deleted while it runs, and that others join one after the other."""
    if rng.random() < 0.93:
        return story
    queue = max(_leaves(story), key=lambda one: one.gpus)
    at_s = rng.randint(0, story.until_s)
    come, go = {0: (0, 1, 2, 3), 20: (4, 5), 40: (6,)}, {15: (0, 1, 2), 35: (4,)}
    for after_s, numbers in come.items():
        for number in numbers:
            name = f"pack{number}"
            story = story.submit(
                name, queue.name, group="pack", group_size=4, runs_s=120, at_s=at_s + after_s
            )
    for after_s, numbers in go.items():
        for number in numbers:
            story = story.delete(f"pack{number}", at_s=at_s + after_s, what="workload")
    return story


def _unanswered(story: Story, rng: random.Random) -> Story:
    """Estimators that are gone for longer than anything is patient, some while work is put aside."""
    if not story.estimators or rng.random() < 0.9:
        return story
    at_s = rng.randint(0, story.until_s)
    if rng.random() < 0.5:
        # Others who stand in no line take all there is, and the estimators see them later than Karmada.
        queue = rng.choice(_leaves(story)).name
        for line in story.of(ClusterLine):
            for number in range(line.gpus * line.nodes):
                name, only = f"squatter-{line.name}-{number}", (line.name,)
                story = story.submit(name, queue, runs_s=60, at_s=at_s, clusters=only, skip=True)
        story = story.fault("estimator_wrong", at_s=at_s + 2, for_s=20, amount=4)
        story = story.submit("late", queue, priority=1000, at_s=at_s + 10)
    return story.fault("estimator_gone", at_s=at_s + 25, for_s=rng.randint(300, 400))


def _losses(story: Story, rng: random.Random, clusters: list[str]) -> Story:
    """A cluster that is lost for about as long as it is waited for, and work that outlasts that."""
    if rng.random() < 0.75 or any(line.share for line in story.of(QueueLine)):
        return story
    story = replace(story, lost_after_s=rng.choice((0, 45, 60, 60, 120)))
    if len(clusters) == 1:
        # Somewhere to go.
        clusters = [*clusters, "c1"]
        story = story.cluster("c1", gpus=8)
    queue, at_s = rng.choice(_leaves(story)).name, rng.randint(0, 20)
    group = rng.random() < 0.2
    for number in range(rng.randint(1, 4)):
        story = story.submit(
            f"long{number}",
            queue,
            pods=rng.choice((1, 2, 3)),
            runs_s=rng.choice((300, 600)),
            kind="Job" if rng.random() < 0.8 else "Deployment",
            gang=rng.random() < 0.6,
            group="long" if group else "",
            group_size=2 if group else 0,
            at_s=at_s,
        )
    for _ in range(rng.choice((1, 1, 2))):
        # Now and then all of them, as where the way to them is cut.
        whom, for_s = rng.choice((*clusters, *clusters, "")), rng.choice((60, 150, 240, 400))
        story = story.fault("cluster_lost", at_s=at_s + rng.randint(5, 60), for_s=for_s, whom=whom)
    return story


def _evictions(story: Story, rng: random.Random) -> Story:
    """Now and then work that may run for a while only, and queues that are drained under it."""
    if rng.random() < 0.4:
        lines = (_bounded(line, rng) if isinstance(line, SubmitLine) else line for line in story.lines)
        story = replace(story, lines=tuple(lines))
    if rng.random() < 0.8:
        return story
    for _ in range(rng.choice((1, 1, 2))):
        queue, at_s = rng.choice(story.of(QueueLine)).name, rng.randint(2, story.until_s)
        story = story.stop(queue, policy="HoldAndDrain", at_s=at_s)
        for_s = rng.choice((1, 5, 30, 60, 200))
        if rng.random() < 0.9:
            story = story.stop(queue, policy="None", at_s=at_s + for_s)
    return story


def _bounded(line: SubmitLine, rng: random.Random) -> SubmitLine:
    may_run_s = rng.choice((0, 0, 5, 15, 40, 90))
    runs_s = rng.choice((line.runs_s, line.runs_s, 200)) if may_run_s else line.runs_s
    return replace(line, may_run_s=may_run_s, says_s=rng.choice((0, 0, 0, 10, 60)), runs_s=runs_s)


def _reservations(story: Story, rng: random.Random) -> Story:
    """Half of the queues that are not strict keep room for what waits; and often much waits there that needs
    most of it at once, while small work keeps coming.
    """
    lines = tuple(
        _reserving(line, rng)
        if isinstance(line, QueueLine) and not line.strict and rng.random() < 0.5
        else line
        for line in story.lines
    )
    story = replace(story, lines=lines)
    backfill = [line for line in _leaves(story) if line.backfill]
    return _crowd(story, rng, backfill) if backfill and rng.random() < 0.6 else story


def _reserving(line: QueueLine, rng: random.Random) -> QueueLine:
    reserves_s = rng.choice((0, 0, 5, 15, 60))
    return replace(
        line,
        backfill=True,
        reserves_s=reserves_s,
        drains_s=rng.choice((reserves_s, reserves_s + 30, 120, 600)),
        holds_s=rng.choice((20, 90, 400, 86_400, 86_400)),
        depth=rng.choice((1, 1, 2, 3)),
    )


def _crowd(story: Story, rng: random.Random, queues: list[QueueLine]) -> Story:
    """Small work that comes without a pause, some of which says for how long it runs and some of which does
    not; and amid it what needs as much at once as its queue, or a cluster, has.
    """
    queue, at_s = rng.choice(queues), 0
    most = max(line.gpus * line.nodes for line in story.of(ClusterLine))
    size = max(1, min(queue.gpus or most, most))
    # What it says is true of some, and a limit to others, that they run up to or beyond.
    says = rng.choice(((0,), (0, 1), (1,)))
    for number in range(rng.randint(5, 30)):
        at_s += rng.choice((0, 1, 2, 5))
        runs_s = rng.choice((5, 10, 20, 60))
        bound_s = rng.choice((runs_s - 3, runs_s, runs_s + 5, 4 * runs_s)) if rng.choice(says) else 0
        story = story.submit(
            f"small{number}",
            queue.name if rng.random() < 0.8 else rng.choice(queues).name,
            gpus=1 if rng.random() < 0.8 else 2,
            runs_s=runs_s,
            may_run_s=bound_s if rng.random() < 0.5 else 0,
            says_s=bound_s,
            at_s=at_s,
        )
    for number in range(rng.choice((1, 1, 2, 3))):
        whole = max(1, size - rng.choice((0, 0, 1, 2)))
        pods = rng.choice([count for count in (1, 2, 3, 4) if whole % count == 0])
        story = story.submit(
            f"large{number}",
            queue.name,
            gpus=whole // pods,
            pods=pods,
            gang=rng.random() < 0.7,
            runs_s=rng.choice((10, 40)),
            says_s=rng.choice((0, 0, 60)),
            priority=rng.choice((0, 0, 0, 10)),
            at_s=rng.randint(1, 15),
        )
    return story


def _displacing(story: Story, rng: random.Random, clusters: list[str]) -> Story:
    """A third of the fleets have queues whose work displaces others, mostly in trees that lend; and often
    there comes what is urgent, or what a queue owns, while nothing is free.
    """
    if rng.random() < 0.65:
        return story
    if not any(line.parent for line in story.of(QueueLine)) and rng.random() < 0.6:
        lines = (
            replace(line, parent="pool", borrows=rng.choice((None, None, 2)))
            if isinstance(line, QueueLine)
            else line
            for line in story.lines
        )
        story = replace(story, lines=tuple(lines)).queue("pool", gpus=rng.choice((0, 0, 2)))
    calm = not story.of(FaultLine) and not story.of(DeleteLine)
    lines = (_of_displacing(line, rng, calm=calm) for line in story.lines)
    story = replace(story, lines=tuple(lines))
    return _urgent(story, rng, clusters) if rng.random() < 0.7 else story


def _ageing(story: Story, rng: random.Random) -> Story:
    """In a third of the fleets whose clocks are right waiting raises priorities in some of the queues: above
    those of a higher one in time, or only beside each other.
    """
    clocks = any(line.kind.startswith("clock") for line in story.of(FaultLine))
    if clocks or rng.random() < 0.67:
        return story
    lines = (
        replace(line, ages_s=rng.choice((1, 2, 5, 15)), ages_by=rng.choice((1, 5, 20, 120)))
        if isinstance(line, QueueLine) and rng.random() < 0.7
        else line
        for line in story.lines
    )
    return replace(story, lines=tuple(lines))


def _of_displacing(line: Line, rng: random.Random, *, calm: bool) -> Line:
    match line:
        case QueueLine() if rng.random() < 0.7:
            return replace(
                line,
                displaces=rng.choice(
                    ("Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority")
                ),
                reclaims=rng.choice(("Never", "LowerPriority", "Any", "Any")),
            )
        case SubmitLine():
            return replace(
                line,
                preemptible=_preemptible(rng),
                min_run_s=rng.choice((0, 0, 0, 0, 10, 60)),
                stays=calm and rng.random() < 0.03,
                stops_s=rng.choice((0, 0, 0, 5, 25)),
            )
    return line


def _preemptible(rng: random.Random) -> Preemptible:
    drawn = rng.random()
    if drawn < 0.8:
        return "Always"
    return "BorrowedOnly" if drawn < 0.9 else "Never"


def _urgent(story: Story, rng: random.Random, clusters: list[str]) -> Story:
    """Work of one queue, or of few, takes all that there is; then comes what has more right to it."""
    leaves = _leaves(story)
    greedy = rng.sample(leaves, rng.randint(1, min(2, len(leaves))))
    left, number = sum(line.gpus * line.nodes for line in story.of(ClusterLine)), 0
    while left > 0:
        gpus = min(left, rng.choice((1, 1, 2, 4)))
        left, number = left - gpus, number + 1
        story = story.submit(
            f"greedy{number}",
            rng.choice(greedy).name,
            gpus=gpus,
            runs_s=rng.choice((40, 120, 240)),
            priority=rng.choice((0, 0, 0, 10)),
            preemptible=_preemptible(rng),
            min_run_s=rng.choice((0, 0, 0, 0, 0, 20, 60)),
            stops_s=rng.choice((0, 0, 0, 5, 25)),
            says_s=rng.choice((0, 0, 0, 300)),
            at_s=rng.choice((0, 0, 1, 3)),
        )
    may = [line for line in leaves if (line.displaces, line.reclaims) != ("Never", "Never")] or leaves
    small = 0
    for number in range(rng.randint(2, 8)):
        queue, at_s = rng.choice(may if rng.random() < 0.8 else leaves), rng.randint(10, story.until_s)
        for _ in range(rng.choice((0, 0, 1, 4))):
            # Which would like to have what others leave.
            of, small = rng.choice(leaves).name, small + 1
            story = story.submit(f"contender{small}", of, runs_s=30, at_s=at_s + rng.randint(-2, 4))
        story = story.submit(
            f"urgent{number}",
            queue.name,
            gpus=rng.choice((1, 1, 2, 4)),
            pods=rng.choice((1, 1, 2, 3)),
            gang=rng.random() < 0.5,
            runs_s=rng.choice((10, 30, 90)),
            priority=rng.choice((0, 5, 10, 100, 1000)),
            clusters=(rng.choice(clusters),) if rng.random() < 0.15 else (),
            at_s=at_s,
        )
    return story


def _leaves(story: Story) -> list[QueueLine]:
    """The queues in which work can wait."""
    above = {line.parent for line in story.of(QueueLine)}
    return [line for line in story.of(QueueLine) if line.name not in above]


def _barred(story: Story, cluster: str, at_s: int, for_s: int) -> Story:
    barred, open_ = ('[{"key": "example.com/barred", "effect": "NoSchedule"}]', "null")
    for taints, since_s in ((barred, 0), (open_, for_s)):
        body = f'{{"spec": {{"taints": {taints}}}}}'
        story = story.write(cluster, kind="clusters", body=body, at_s=at_s + since_s)
    return story


def _joiners(story: Story, rng: random.Random) -> Story:
    """Who joins a group later on: made like one of its members, or there already and given its labels."""
    submitted = story.of(SubmitLine)
    members, others = [one for one in submitted if one.group], [one for one in submitted if not one.group]
    for number in range(rng.choice((0, 1, 2)) if members else 0):
        mate = rng.choice(members)
        at_s = rng.randint(mate.at_s, max(mate.at_s, story.until_s))
        size = mate.group_size + rng.choice((0, 1))
        if others and rng.random() < 0.5:
            of = rng.choice(others)
            at_s = max(at_s, of.at_s)
            story = story.relabel(of.name, queue=mate.queue, group=mate.group, group_size=size, at_s=at_s)
        else:
            joiner = replace(
                mate, name=f"joiner{number}", gpus=rng.choice((1, 4, 50)), at_s=at_s, group_size=size
            )
            story = replace(story, lines=(*story.lines, joiner))
    return story


def _ways(story: Story, rng: random.Random) -> Story:
    """How work is divided, and by whom."""
    lines = (
        replace(line, way=_way(line, rng)) if isinstance(line, SubmitLine) else line for line in story.lines
    )
    return replace(story, lines=tuple(lines), preplaces=rng.random() < 0.85)


def _way(line: SubmitLine, rng: random.Random) -> Way:
    drawn = rng.random()
    if drawn < 0.2:
        return "by room"
    return "copied" if drawn < 0.3 and line.gang else "aggregated"
