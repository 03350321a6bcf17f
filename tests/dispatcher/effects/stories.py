"""Short stories that end as one field of one object says: from its spec to what is to be seen at the end."""

from collections.abc import Callable

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.cache.objects import NAMESPACES
from tests.dispatcher.scenarios.objects import GPU, Obj, cluster, cluster_queue, local_queue, service_class
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import displaced, note

Told = str
"""What is to be seen."""
Story = Callable[[Obj], Told]


def told(made: Plane, *names: str) -> Told:
    """Of each whether it runs, or why it waits."""
    found = ((name, made.reason(name)) for name in names or ("x",))
    return " ".join("runs" if reason is None else reason.kind for _, reason in found)


def released(made: Plane, *names: str) -> Told:
    """Which of them are released."""
    return " ".join(name for name in names if not made.is_held(name))


# ResourceFlavor


def flavored(made: Plane, spec: Obj, quota: object = 100) -> Plane:
    made.feed(RESOURCE_FLAVORS, {"metadata": {"name": "it"}, "spec": spec})
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"it": {"nominalQuota": quota}}))
    return made


def may_go_to_m1(spec: Obj) -> Told:
    """What may go to m1 alone, which is labelled ``pool: a``; m2 is ``pool: b``."""
    made = flavored(Plane({"m1": 8, "m2": 8}), spec)
    for name, pool in (("m1", "a"), ("m2", "b")):
        made.feed(CLUSTERS, cluster(name, 8, labels={"pool": pool}))
    made.submit("x", clusters=("m1",))
    made.turn()
    return told(made)


def on_nodes(**claim: object) -> Story:
    """What keeps to such nodes."""

    def play(spec: Obj) -> Told:
        made = flavored(Plane({"m1": 8}), spec)
        requirements = {"resourceRequest": {GPU: "1"}, "nodeClaim": claim}
        made.submit("x", more={"replicaRequirements": requirements})
        made.turn()
        return told(made)

    return play


def half_of_it(spec: Obj) -> Told:
    """What waits in a queue that owns half of the flavor."""
    made = flavored(Plane({"m1": 8}), spec, "50%")
    made.submit("x", replicas=2)
    made.turn()
    return told(made)


def half_of_what_estimators_count(spec: Obj) -> Told:
    """The same, where estimators count fewer GPUs than Karmada sums up."""
    made = Plane({"m1": 8}, rooms={"m1": 8})
    made.cache.fleet.estimated("m1", {GPU: 2})
    flavored(made, spec, "50%")
    made.submit("x", replicas=2)
    made.turn()
    return told(made)


def cost(spec: Obj) -> Told:
    """Of 2 GPUs for 100 s."""
    made = flavored(Plane({"m1": 8}), spec)
    made.submit("x", replicas=2)
    made.turn()
    made.place("x", m1=2)
    made.passes(100, step_s=10)
    return f"{made.cache.usages.of_queue('main', made.now.day_ms).cost // 1_000_000} thousand"


# ClusterQueue


def queued(spec: Obj, made: Plane | None = None) -> Plane:
    """The queue is ``main``; above it may be ``root``, which owns 8, and beside it ``other``, without any."""
    made = made or Plane({"m1": 8, "m2": 8})
    made.feed(CLUSTER_QUEUES, cluster_queue("root", {"m1": 8}))
    made.feed(CLUSTER_QUEUES, cluster_queue("other", {"m1": 0}, parent="root", weight=2))
    for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    for name in ("main", "other"):
        local(made, name, name)
    made.feed(CLUSTER_QUEUES, {"metadata": {"name": "main"}, "spec": spec})
    made.passes(1)
    return made


def local(made: Plane, name: str, queue: str, **spec: object) -> None:
    stated = local_queue(name, queue, **spec)
    stated["metadata"]["namespace"] = "team"
    made.feed(LOCAL_QUEUES, stated)


def comes(made: Plane, name: str, pods: int, queue: str = "main", of: str = "low", **said: str) -> None:
    labels = {"fairway.dev/queue": queue, "fairway.dev/class": of}
    made.submit(
        name, replicas=pods, said=labels | {f"fairway.dev/{key}": value for key, value in said.items()}
    )
    made.passes(1)


def runs(made: Plane, name: str, pods: int, queue: str = "main", of: str = "low", **said: str) -> None:
    comes(made, name, pods, queue, of, **said)
    assert not made.is_held(name), made.reason(name)
    made.place(name, m1=pods)
    made.passes(1)


def one_of_m1(spec: Obj) -> Told:
    """What asks for 4 GPUs and may go to m1 alone."""
    made = queued(spec)
    made.submit("x", replicas=4, clusters=("m1",))
    made.turn()
    return told(made)


def one_lends(spec: Obj) -> Told:
    """What waits beside the queue and has nothing of its own."""
    made = queued(spec)
    made.feed(CLUSTER_QUEUES, cluster_queue("root", {}))
    made.passes(1)
    comes(made, "x", 4, "other")
    return told(made)


def who_is_first(spec: Obj) -> Told:
    """Of two queues that both borrow 6 of 8."""
    made = queued(spec)
    made.submit("theirs", "other", replicas=6)
    made.submit("ours", replicas=6)
    made.turn()
    return released(made, "ours", "theirs")


def behind_a_large_one(spec: Obj) -> Told:
    """What fits behind what does not, once that has waited for a while."""
    made = queued(spec)
    runs(made, "runs", 4)
    comes(made, "large", 8)
    made.passes(100, step_s=10)
    comes(made, "x", 2)
    return told(made)


def behind_one_that_knows_when(spec: Obj) -> Told:
    """What is over before the first in line could start, for an hour, after that has waited for a while."""
    made = queued(spec)
    runs(made, "runs", 4, **{"max-runtime": "1h"})
    comes(made, "large", 8)
    made.passes(100, step_s=10)
    comes(made, "x", 2, **{"max-runtime": "60s"})
    return told(made)


def how_many_reserve(spec: Obj) -> Told:
    """Of three that wait."""
    made = queued(spec)
    runs(made, "runs", 6)
    for number in range(3):
        comes(made, f"x{number}", 3)
    made.passes(100, step_s=10)
    return str(len(made.state.reservations.made))


def answered(spec: Obj) -> Told:
    """What check ``budget`` has let go."""
    made = queued(spec)
    made.submit("x", annotations={"check.fairway.dev/budget": "Ready"})
    made.turn()
    return told(made)


def unanswered(spec: Obj) -> Told:
    """What no check has said anything of for 100 s."""
    made = queued(spec)
    made.submit("x")
    made.passes(100, step_s=10)
    return told(made)


def in_namespace_a(spec: Obj) -> Told:
    """What is in a namespace that is labelled ``team: a``."""
    made = queued(spec)
    made.feed(NAMESPACES, {"metadata": {"name": "team", "labels": {"team": "a"}}})
    made.submit("x")
    made.turn()
    return told(made)


def while_one_runs(spec: Obj) -> Told:
    """What runs is in the queue when it comes to say so."""
    made = queued(spec | {"stopPolicy": "None"})
    runs(made, "x", 4)
    comes(made, "y", 8)
    made.feed(CLUSTER_QUEUES, {"metadata": {"name": "main"}, "spec": spec})
    made.passes(3)
    made.delete("x") if not made.is_held("x") else None
    made.passes(3)
    return ("" if "x" in made.bindings else "x ended, y ") + told(made, "y")


def old_or_urgent(spec: Obj) -> Told:
    """Of who has waited for 100 s, and who comes then and is of higher priority."""
    made = queued(spec)
    return _old_or_urgent(made, "low")


def _old_or_urgent(made: Plane, of: str) -> Told:
    runs(made, "runs", 8, of="mid")
    comes(made, "old", 8, of=of)
    made.passes(100, step_s=10)
    comes(made, "urgent", 8, of="mid")
    made.delete("runs")
    made.passes(2)
    return released(made, "old", "urgent")


def which_cluster(spec: Obj) -> Told:
    """Of two of one flavor that are equally empty: where each of two goes."""
    made = Plane({"m1": 8, "m2": 8}, rooms={"m1": 8, "m2": 8})
    made.feed(RESOURCE_FLAVORS, {"metadata": {"name": "f"}, "spec": {"clusterNames": ["m1", "m2"]}})
    queued(spec, made)
    for name in ("x", "y"):
        made.submit(name, clusters=("m1", "m2"))
    made.turn()
    return " ".join((*made.clusters("x"), *made.clusters("y")))


def equal_and_newer(spec: Obj) -> Told:
    """Who is displaced for one that needs all, by another of its priority that came later."""
    made = queued(spec)
    runs(made, "urgent", 6, of="high")
    comes(made, "waits", 8, of="mid")
    runs(made, "newer", 2, of="mid")
    made.delete("urgent")
    made.passes(20)
    return " ".join(displaced(made)) or "nobody"


def higher_and_lower(spec: Obj) -> Told:
    """Who is displaced for one that needs all, of lower priority, or until when nobody is."""
    made = queued(spec)
    runs(made, "lower", 8)
    made.passes(60)
    comes(made, "urgent", 8, of="high")
    made.passes(20)
    told = note(made, "urgent")
    return " ".join(displaced(made)) or told[told.index("used up") :].partition("T")[0]


def gets_its_own_back(spec: Obj) -> Told:
    """What another has borrowed, by work of as high a priority."""
    made = queued(spec)
    runs(made, "theirs", 8, "other", "mid")
    comes(made, "ours", 8, of="mid")
    made.passes(5)
    return " ".join(displaced(made))


def after_100_s_beyond_its_quota(spec: Obj) -> Told:
    """What runs in a queue that owned more once."""
    made = queued(cluster_queue("main", {"m1": 8})["spec"])
    runs(made, "x", 8)
    made.feed(CLUSTER_QUEUES, {"metadata": {"name": "main"}, "spec": spec})
    made.passes(100, step_s=5)
    return " ".join(displaced(made)) or "nobody"


def who_has_used_less(spec: Obj) -> Told:
    """LocalQueue ``a`` used much an hour ago, ``b`` something just now; both want all."""
    made = queued(spec)
    for name in "ab":
        local(made, name, "main")
    for name, pods in (("a", 8), ("b", 1)):
        runs(made, f"{name}0", pods, name)
        made.passes(600, step_s=20)
        made.delete(f"{name}0")
        made.passes(3600 if name == "a" else 1, step_s=60)
    runs(made, "full", 8, of="high")
    for name in "ab":
        comes(made, name, 8, name)
    made.delete("full")
    made.passes(2)
    return released(made, "a", "b")


def budgeted(spec: Obj) -> Told:
    """What waits in a queue with nothing left in its budget, and why."""
    made = queued(spec)
    made.submit("x")
    made.passes(2)
    reason = made.reason("x")
    return "runs" if reason is None else f"{reason.kind}: {reason.text}"


# LocalQueue


def _stated(made: Plane, spec: Obj) -> None:
    """LocalQueue ``it``, as it says."""
    made.feed(LOCAL_QUEUES, {"metadata": {"name": "it", "namespace": "team"}, "spec": spec})


def through_a_local_queue(spec: Obj) -> Told:
    made = Plane({"m1": 8})
    for name, priority in (("low", 0), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    _stated(made, spec)
    made.submit("x", "it")
    made.turn()
    record = made.record("x")
    return told(made) if record is None else f"priority {record['priority']}"


def whose_weight_counts(spec: Obj) -> Told:
    """``it`` has used 3 GPUs for a while and ``b`` two."""
    made = Plane({"m1": 8})
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"m1": 8}, fairSharing={}))
    _stated(made, spec)
    local(made, "b", "main")
    for name, pods in (("it", 3), ("b", 2)):
        made.submit(f"{name}-uses", name, replicas=pods)
        made.turn()
        made.place(f"{name}-uses", m1=pods)
    made.passes(3600, step_s=60)
    for name in ("b", "it"):
        made.submit(f"{name}-waits", name, replicas=8)
    made.delete("it-uses")
    made.delete("b-uses")
    made.passes(2)
    return released(made, "it-waits", "b-waits")


# ServiceClass


def classed(spec: Obj, made: Plane | None = None) -> Plane:
    """The class is ``it``; queue ``main`` owns 8."""
    made = queued(cluster_queue("main", {"m1": 8})["spec"], made)
    made.feed(SERVICE_CLASSES, {"metadata": {"name": "it"}, "spec": spec})
    made.passes(1)
    return made


def first_of_a_class(spec: Obj) -> Told:
    """One of it, and one of mid that came before."""
    made = classed(spec)
    made.submit("mid", replicas=8, said={"fairway.dev/class": "mid"})
    made.submit("it", replicas=8, said={"fairway.dev/class": "it"})
    made.turn()
    return released(made, "it", "mid")


def named_none(spec: Obj) -> Told:
    made = classed(spec)
    made.submit("x")
    made.turn()
    record = made.record("x")
    return f"priority {record['priority']}" if record is not None else told(made)


def unplaced_for(seconds: int) -> Story:
    """What Karmada finds no place for, for so long."""

    def play(spec: Obj) -> Told:
        made = classed(spec)
        made.submit("x", said={"fairway.dev/class": "it"})
        made.turn()
        made.refuse("x")
        for _ in range(seconds // 5):
            made.passes(5)
            if not made.is_held("x"):
                made.refuse("x")
        requeue, record = made.requeue("x"), made.record("x")
        tries = requeue["count"] if requeue else record.get("tries", 0) if record else 0
        return f"tried in vain {tries} times, {told(made)}"

    return play


def pods_that_do_not_run(spec: Obj) -> Told:
    made = classed(spec)
    made.submit("x", replicas=4, said={"fairway.dev/class": "it"})
    made.turn()
    made.place("x", m1=4)
    made.report("x", m1={"active": 4, "ready": 0})
    made.passes(100, step_s=5)
    return "taken back" if made.requeue("x") else "waited for"


def cluster_lost_for_100_s(spec: Obj) -> Told:
    made = Plane({"m1": 8, "m2": 8})
    made.feed(RESOURCE_FLAVORS, {"metadata": {"name": "m1"}, "spec": {"clusterNames": ["m1", "m2"]}})
    classed(spec, made)
    made.passes(100, step_s=10)
    runs(made, "x", 4, of="it")
    taint = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}
    made.cluster("m1", 8, ready=False, spec={"taints": [taint]})
    made.passes(100, step_s=5)
    return "taken off" if "m1:4" not in made.clusters("x") else "waited for"


def waits_for_100_s(spec: Obj) -> Told:
    """Whether room is kept for it, in a queue that does so after ten minutes."""
    made = classed(spec)
    stated = cluster_queue("main", {"m1": 8}, strategy="BackfillFIFO", reservation={"after": "10m"})
    made.feed(CLUSTER_QUEUES, stated)
    runs(made, "runs", 8)
    comes(made, "x", 8, of="it")
    made.passes(100, step_s=10)
    return "kept" if made.state.reservations.made else "not yet"


def runs_for_100_s(spec: Obj) -> Told:
    made = classed(spec)
    runs(made, "x", 4, of="it")
    made.passes(100, step_s=5)
    return told(made)


def urgent_beside_it(spec: Obj) -> Told:
    """Who goes for one that is urgent, after it has run for 100 s."""
    made = classed(spec)
    policy = {"withinClusterQueue": "LowerPriority"}
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"m1": 8}, preemption=policy))
    runs(made, "x", 8, of="it")
    made.passes(100, step_s=10)
    comes(made, "urgent", 8, of="high")
    made.passes(5)
    return " ".join(displaced(made)) or "nobody"


def ages(spec: Obj) -> Told:
    return _old_or_urgent(classed(spec), "it")
