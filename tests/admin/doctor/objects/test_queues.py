"""Queues whose fields, tree, flavors, LocalQueues or quotas are not what their authors meant."""

from collections.abc import Callable
from typing import Any

import pytest

from admin.doctor.finding import Verdict
from admin.doctor.karmada_kinds import CRON_JOBS
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    SERVICE_CLASSES,
    VOLCANO_QUEUES,
)
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.cache.objects import NAMESPACES
from tests.admin.doctor.objects.builders import (
    GPU,
    JOBS,
    Obj,
    World,
    binding,
    cluster_queue,
    flavor,
    job,
    local_queue,
    metadata,
    namespace,
    service_class,
    well,
)

Change = Callable[[World], object]


def quota_of(world: World) -> Obj:
    """The quota of the one queue."""
    found = world.one(CLUSTER_QUEUES)["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert isinstance(found, dict)
    return found


def spec_of(world: World) -> Obj:
    found = world.one(CLUSTER_QUEUES)["spec"]
    assert isinstance(found, dict)
    return found


def said(obj: Obj, **values: object) -> Obj:
    """The object, with these fields changed."""
    obj.update(values)
    return obj


def tree(world: World, **parents: str) -> World:
    """ClusterQueues with these parents, empty for none; each with a LocalQueue."""
    for name, parent in parents.items():
        world.add(CLUSTER_QUEUES, cluster_queue(name, 0, **({"parent": parent} if parent else {})))
        world.add(LOCAL_QUEUES, local_queue(name, name))
    return world


def cron_job(
    world: World, limits: Obj, *, labels: Obj | None = None, suspend: bool = False, propagated: bool = True
) -> World:
    pod = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    spec = {"suspend": suspend, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    world.add(CRON_JOBS, {"metadata": metadata("nightly", "team", labels=labels or {}), "spec": spec})
    if propagated:
        nothing: dict[str, Any] = {"replicaRequirements": None}
        world.add(RESOURCE_BINDINGS, binding("nightly", kind="CronJob", held=False, replicas=0, **nothing))
    return world


BROKEN: list[tuple[str, Change, str, Verdict, str, str]] = [
    (
        "what is displaced",
        lambda w: said(spec_of(w), flavorFungibility={"whenCanPreempt": "MayStopSearch"}),
        "queue-effect",
        Verdict.WARNING,
        "ClusterQueue main",
        "spec.flavorFungibility.whenCanPreempt: no effect: nobody is displaced",
    ),
    (
        "spreading where queues below hold the workloads",
        lambda w: (
            w.add(CLUSTER_QUEUES, cluster_queue("root", 0, scoringStrategy={"type": "LeastAllocated"})),
            said(spec_of(w), parent="root"),
        ),
        "queue-effect",
        Verdict.WARNING,
        "ClusterQueue root",
        "spec.scoringStrategy: no effect: it has queues below it",
    ),
    (
        "a strategy that there is not",
        lambda w: said(spec_of(w), queueingStrategy="LIFO"),
        "queue-fields",
        Verdict.WARNING,
        "ClusterQueue main",
        "spec.queueingStrategy: 'LIFO'",
    ),
    (
        "a quota that is no quantity",
        lambda w: (w.objects[RESOURCE_BINDINGS.name].pop(0), said(quota_of(w), nominalQuota="many")),
        "queue-fields",
        Verdict.WARNING,
        "ClusterQueue main",
        "resources[0].nominalQuota",
    ),
    (
        "borrowing without anybody to borrow from",
        lambda w: said(quota_of(w), borrowingLimit=4),
        "queue-fields",
        Verdict.WARNING,
        "ClusterQueue main",
        "of no effect without spec.parent",
    ),
    (
        "a resource covered twice",
        lambda w: (
            spec_of(w)["resourceGroups"].append(
                {"coveredResources": [GPU], "flavors": [{"name": "other", "resources": []}]}
            ),
            w.add(RESOURCE_FLAVORS, flavor("other", "m1")),
        ),
        "queue-fields",
        Verdict.WARNING,
        "ClusterQueue main",
        "is covered before",
    ),
    (
        "a LocalQueue without a queue",
        lambda w: w.add(LOCAL_QUEUES, local_queue("blind", "")),
        "queue-fields",
        Verdict.WARNING,
        "LocalQueue team/blind",
        "spec.clusterQueue: nothing",
    ),
    (
        "a flavor with odd headroom",
        lambda w: w.add(RESOURCE_FLAVORS, flavor("odd", "m1", headroomPercent=101)),
        "queue-fields",
        Verdict.WARNING,
        "ResourceFlavor odd",
        "spec.headroomPercent",
    ),
    (
        "a class with a duration that is none",
        lambda w: w.add(SERVICE_CLASSES, service_class("batch", startTimeout="soon")),
        "queue-fields",
        Verdict.WARNING,
        "ServiceClass batch",
        "spec.startTimeout: 'soon'",
    ),
    (
        "ageing without an end",
        lambda w: said(spec_of(w), ageing={"step": "30m"}),
        "queue-fields",
        Verdict.WARNING,
        "ClusterQueue main",
        "spec.ageing.cap: nothing",
    ),
    (
        "a class that ages without an end",
        lambda w: w.add(SERVICE_CLASSES, service_class("batch", ageing={"step": "30m"})),
        "queue-fields",
        Verdict.WARNING,
        "ServiceClass batch",
        "spec.ageing.cap: nothing",
    ),
    (
        "a queue of Volcano's and one of ours of one name",
        lambda w: w.add(VOLCANO_QUEUES, {"metadata": metadata("main"), "spec": {}}),
        "queue-fields",
        Verdict.WARNING,
        "ClusterQueue main",
        "a Volcano Queue has the same name",
    ),
    (
        "a parent that is not there",
        lambda w: tree(w, child="gone"),
        "queue-tree",
        Verdict.ERROR,
        "ClusterQueue child",
        "gone: no ClusterQueue of that name",
    ),
    (
        "a queue above itself",
        lambda w: tree(w, child="child"),
        "queue-tree",
        Verdict.ERROR,
        "ClusterQueue child",
        "cannot be above itself",
    ),
    (
        "lending more than it has",
        lambda w: (
            w.add(CLUSTER_QUEUES, {"metadata": metadata("root"), "spec": {}}),
            said(spec_of(w), parent="root"),
            said(quota_of(w), lendingLimit=9),
        ),
        "queue-tree",
        Verdict.WARNING,
        "ClusterQueue main",
        "lendingLimit of nvidia.com/gpu is more than its nominalQuota",
    ),
    (
        "a quota of a flavor that is not there",
        lambda w: (
            w.add(CLUSTER_QUEUES, cluster_queue("other", 0))["spec"]["resourceGroups"][0]["flavors"].append(
                {"name": "gone", "resources": [{"name": GPU, "nominalQuota": 1}]}
            )
            or w.add(LOCAL_QUEUES, local_queue("other", "other"))
        ),
        "queue-flavors",
        Verdict.ERROR,
        "ClusterQueue other",
        "flavors[1].name: there is no ResourceFlavor gone",
    ),
    (
        "a flavor without clusters",
        lambda w: w.add(RESOURCE_FLAVORS, flavor("none", clusterSelector={"matchLabels": {"a": "b"}})),
        "queue-flavors",
        Verdict.ERROR,
        "ResourceFlavor none",
        "spec.clusterSelector selects none of the 2 clusters",
    ),
    (
        "a flavor of a cluster that is not joined",
        lambda w: w.one(RESOURCE_FLAVORS)["spec"].update(clusterNames=["m1", "m2", "m9"]),
        "queue-flavors",
        Verdict.WARNING,
        "ResourceFlavor h100",
        "no such cluster: m9",
    ),
    (
        "more quota than devices",
        lambda w: said(quota_of(w), nominalQuota=17),
        "queue-capacity",
        Verdict.WARNING,
        "ResourceFlavor h100",
        "nominalQuota of nvidia.com/gpu is 17 in ClusterQueue main, and there are 16",
    ),
    (
        "more quota than devices in each of several queues",
        lambda w: (
            said(quota_of(w), nominalQuota=17),
            w.add(CLUSTER_QUEUES, *(cluster_queue(f"q{n}", 100 - n) for n in range(1, 5))),
            w.add(LOCAL_QUEUES, *(local_queue(f"q{n}", f"q{n}") for n in range(1, 5))),
        ),
        "queue-capacity",
        Verdict.WARNING,
        "ResourceFlavor h100",
        "is 99 in ClusterQueue q1, 98 in ClusterQueue q2, 97 in ClusterQueue q3, 96 in ClusterQueue q4 "
        "and 1 more, and there are 16",
    ),
    (
        "more quota than devices over several queues",
        lambda w: (
            w.add(CLUSTER_QUEUES, cluster_queue("other", 9))
            and w.add(LOCAL_QUEUES, local_queue("other", "other"))
        ),
        "queue-capacity",
        Verdict.NOTE,
        "ResourceFlavor h100",
        "adds up to 17 in ClusterQueue main, other, and there are 16",
    ),
    (
        "a default class that is not there",
        lambda w: w.one(LOCAL_QUEUES)["spec"].update(defaultServiceClass="gold"),
        "queue-classes",
        Verdict.WARNING,
        "LocalQueue team/main",
        "there is no ServiceClass gold",
    ),
    (
        "a class that a workload names and that is not there",
        lambda w: w.one(JOBS)["metadata"]["labels"].update({"fairway.dev/class": "gold"}),
        "queue-classes",
        Verdict.WARNING,
        "ResourceBinding team/waits-job",
        "fairway.dev/class: there is no ServiceClass gold",
    ),
    (
        "two defaults",
        lambda w: w.add(
            SERVICE_CLASSES,
            service_class("a", globalDefault=True, priority=5),
            service_class("b", globalDefault=True),
        ),
        "queue-classes",
        Verdict.WARNING,
        "ServiceClass b",
        "spec.globalDefault is true of a, b: b counts",
    ),
    (
        "a LocalQueue of a queue that is not there",
        lambda w: w.add(LOCAL_QUEUES, local_queue("lost", "gone")),
        "local-queues",
        Verdict.ERROR,
        "LocalQueue team/lost",
        "there is no ClusterQueue gone",
    ),
    (
        "a LocalQueue of a queue that has others below it",
        lambda w: (
            w.add(CLUSTER_QUEUES, {"metadata": metadata("root"), "spec": {}}),
            said(spec_of(w), parent="root"),
            w.add(LOCAL_QUEUES, local_queue("top", "root")),
        ),
        "local-queues",
        Verdict.ERROR,
        "LocalQueue team/top",
        "root has queues below it",
    ),
    (
        "a LocalQueue in a namespace that the queue does not take",
        lambda w: (
            w.add(NAMESPACES, namespace("other", team="no")),
            said(
                spec_of(w),
                namespaceSelector={"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            ),
            w.add(LOCAL_QUEUES, local_queue(namespace="other")),
        ),
        "local-queues",
        Verdict.ERROR,
        "LocalQueue other/main",
        "does not select namespace other",
    ),
    (
        "a LocalQueue in a namespace that was not read, of a queue that selects",
        lambda w: (
            said(
                spec_of(w),
                namespaceSelector={"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]},
            ),
            w.add(LOCAL_QUEUES, local_queue(namespace="other")),
        ),
        "local-queues",
        Verdict.UNKNOWN,
        "LocalQueue other/main",
        "selects namespace other is not known",
    ),
    (
        "a default queue that is not there",
        lambda w: w.one(NAMESPACES)["metadata"]["labels"].update({"fairway.dev/default-queue": "gone"}),
        "local-queues",
        Verdict.ERROR,
        "Namespace team",
        "there is no LocalQueue team/gone",
    ),
    (
        "a namespace that says something that does not count",
        lambda w: w.one(NAMESPACES)["metadata"]["labels"].update({"fairway.dev/queueing": "Enabled"}),
        "namespaces-queueing",
        Verdict.ERROR,
        "Namespace team",
        "Enabled: expected enabled, named, all, disabled",
    ),
    (
        "a namespace that is reached and has no queue",
        lambda w: (
            w.add(NAMESPACES, namespace("lost", **{"fairway.dev/queueing": "named"})),
            w.add(RESOURCE_BINDINGS, binding("plain", "lost", gpus=0, held=False)),
        ),
        "namespaces-queueing",
        Verdict.WARNING,
        "Namespace lost",
        "it has no LocalQueue",
    ),
    (
        "a queue without a LocalQueue",
        lambda w: w.add(CLUSTER_QUEUES, cluster_queue("alone", 0)),
        "local-queues",
        Verdict.WARNING,
        "ClusterQueue alone",
        "no LocalQueue leads to it",
    ),
    (
        "a selector that takes no namespace",
        lambda w: w.add(
            CLUSTER_QUEUES, cluster_queue("shut", 0, namespaceSelector={"matchLabels": {"no": "where"}})
        ),
        "local-queues",
        Verdict.WARNING,
        "ClusterQueue shut",
        "selects none of the 1 namespaces",
    ),
    (
        "a queue without quota of what is asked",
        lambda w: (
            w.add(RESOURCE_BINDINGS, binding("tpus"))["spec"].update(
                replicaRequirements={"resourceRequest": {"google.com/tpu": "4"}}
            )
            or w.add(JOBS, job("tpus"))
        ),
        "queue-cover",
        Verdict.ERROR,
        "ResourceBinding team/tpus-job",
        "held in ClusterQueue main, which has no quota for google.com/tpu",
    ),
    (
        "a stopped queue with work",
        lambda w: said(spec_of(w), stopPolicy="Hold"),
        "queue-stopped",
        Verdict.WARNING,
        "ResourceBinding team/waits-job",
        "spec.stopPolicy of ClusterQueue main is Hold",
    ),
    (
        "a stopped LocalQueue with work",
        lambda w: w.one(LOCAL_QUEUES)["spec"].update(stopPolicy="Hold"),
        "queue-stopped",
        Verdict.WARNING,
        "ResourceBinding team/waits-job",
        "the LocalQueue's stopPolicy is Hold",
    ),
]


@pytest.mark.parametrize(
    ("change", "check", "verdict", "subject", "told"),
    [row[1:] for row in BROKEN],
    ids=[row[0] for row in BROKEN],
)
def test_a_mistake_turns_its_line_and_no_other(
    change: Change, check: str, verdict: Verdict, subject: str, told: str
) -> None:
    world = well()
    change(world)
    findings = world.findings()
    assert findings.keys() == {check}
    (finding,) = findings[check]
    assert (finding.verdict, finding.subject) == (verdict, subject)
    assert told in finding.message
    assert finding.remedy


def test_without_namespaces_only_what_hangs_on_none_is_told_of_local_queues() -> None:
    world = well()
    spec_of(world)["namespaceSelector"] = {"matchLabels": {"team": "vision"}}
    world.add(LOCAL_QUEUES, local_queue("lost", "gone"))
    world.empty(NAMESPACES)
    world.unread[NAMESPACES.name] = "the file has none of them"
    found = [(one.verdict, one.subject, one.message) for one in world.findings()["local-queues"]]
    assert found == [
        (
            Verdict.ERROR,
            "LocalQueue team/lost",
            "spec.clusterQueue: there is no ClusterQueue gone: its workloads are held",
        ),
        (Verdict.UNKNOWN, "karmada", "namespaces could not be read: the file has none of them"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda w: cron_job(w, {"cpu": "1"}),
        lambda w: cron_job(w, {GPU: "1"}, suspend=True),
        lambda w: cron_job(w, {GPU: "1"}, labels={"fairway.dev/skip": ""}),
        lambda w: cron_job(w, {GPU: "1"}, propagated=False),
        lambda w: cron_job(w, {GPU: {"broken": []}}),
    ],
)
def test_cron_jobs_that_use_nothing_past_the_queues_are_well(change: Change) -> None:
    world = well()
    change(world)
    assert "workloads-ungated" not in world.findings()


def test_a_circle_is_told_of_each_queue_in_it() -> None:
    world = well()
    tree(world, a="b", b="a", c="b")
    assert [f.subject for f in world.findings()["queue-tree"] if f.verdict is Verdict.ERROR] == [
        "ClusterQueue a",
        "ClusterQueue b",
    ]


def test_a_percentage_of_a_capacity_that_nobody_knows_is_told() -> None:
    world = well()
    quota_of(world)["nominalQuota"] = "50%"
    for made in world.objects[CLUSTERS.name]:
        del made["status"]["resourceSummary"]
    assert "as a percentage of flavor h100, whose capacity is not known" in str(
        world.findings()["queue-tree"]
    )


def test_percentages_of_clusters_that_were_not_read_are_unknown_and_no_mistake() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, {"metadata": metadata("root"), "spec": {}})
    spec_of(world)["parent"] = "root"
    quota_of(world).update(nominalQuota="50%", lendingLimit=4)
    assert world.findings() == {}
    world.empty(CLUSTERS)
    world.unread[CLUSTERS.name] = "the file has none of them"
    (found,) = world.findings()["queue-tree"]
    assert (found.verdict, found.message) == (
        Verdict.UNKNOWN,
        "clusters.cluster.karmada.io could not be read: the file has none of them",
    )
    static = {"type": "Static", "resources": {GPU: "8"}}
    world.one(RESOURCE_FLAVORS)["spec"]["capacityPolicy"] = static
    assert "queue-tree" not in world.findings()
    quota_of(world)["lendingLimit"] = 5
    (found,) = world.findings()["queue-tree"]
    assert found.verdict is Verdict.WARNING


def test_a_quota_of_a_queue_above_others_is_noted() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, cluster_queue("root", 2))
    spec_of(world)["parent"] = "root"
    said = world.findings()
    assert [(name, f.verdict, f.subject) for name, (f,) in said.items()] == [
        ("queue-tree", Verdict.NOTE, "ClusterQueue root")
    ]


def test_a_queue_above_others_without_any_quota_is_no_pool() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, cluster_queue("root", 0))
    spec_of(world)["parent"] = "root"
    assert world.findings() == {}


def test_a_tree_within_its_capacity_is_well() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, {"metadata": metadata("root"), "spec": {}})
    spec_of(world)["parent"] = "root"
    quota_of(world).update(nominalQuota="50%", borrowingLimit=8, lendingLimit="25%")
    assert world.findings() == {}


def test_a_capacity_that_an_administrator_states_is_what_counts() -> None:
    world = well()
    quota_of(world)["nominalQuota"] = 20
    policy = {"type": "Static", "resources": {GPU: "20"}}
    world.one(RESOURCE_FLAVORS)["spec"]["capacityPolicy"] = policy
    assert world.findings() == {}
    policy["resources"] = {GPU: "19"}
    assert world.findings().keys() == {"queue-capacity"}


def test_a_queue_that_only_cluster_scoped_work_needs_no_local_queue() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, cluster_queue("wide", 0))
    assert world.findings().keys() == {"local-queues"}
    made = binding("all", "", labels={"fairway.dev/queue": "wide"}, held=False, placed={"m1": 2}, gpus=0)
    world.add(CLUSTER_RESOURCE_BINDINGS, made)
    assert world.findings() == {}


def test_stopped_queues_without_work_are_well() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, cluster_queue("idle", 0, stopPolicy="Hold"))
    world.add(LOCAL_QUEUES, local_queue("idle", "idle"))
    assert world.findings() == {}


def test_what_waits_under_a_stopped_queue_is_told_by_the_queue_that_was_stopped() -> None:
    world = well()
    world.add(CLUSTER_QUEUES, {"metadata": metadata("root"), "spec": {"stopPolicy": "Hold"}})
    spec_of(world)["parent"] = "root"
    (finding,) = world.findings()["queue-stopped"]
    assert "ClusterQueue root is Hold" in finding.message


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceGroups": [{"coveredResources": None, "flavors": None}]},
        {"resourceGroups": [{"flavors": [{"name": "", "resources": [{"name": GPU}]}]}]},
        {"weight": "-1", "parent": "x" * 5000},
        {"namespaceSelector": {"matchExpressions": [{"key": "!", "operator": "Near"}]}},
    ],
)
def test_hostile_queues_cost_nobody_else(spec: Obj) -> None:
    world = well()
    world.add(CLUSTER_QUEUES, {"metadata": metadata("odd"), "spec": spec})
    world.add(LOCAL_QUEUES, local_queue("odd", "odd"))
    said = world.findings()
    assert said
    assert all("odd" in f.subject and len(f.message) < 1000 for found in said.values() for f in found)


def test_queues_of_volcano_are_judged_as_queues() -> None:
    world = well()
    world.empty(CLUSTER_QUEUES, LOCAL_QUEUES)
    world.add(VOLCANO_QUEUES, {"metadata": metadata("main"), "spec": {"capability": {GPU: "8"}}})
    for made in world.objects[JOBS.name]:
        made["metadata"]["labels"] = {}
        made["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "main"}
    assert world.findings() == {}
    world.add(VOLCANO_QUEUES, {"metadata": metadata("low"), "spec": {"parent": "gone"}})
    (finding,) = world.findings()["queue-tree"]
    assert finding.subject == "Queue low"
