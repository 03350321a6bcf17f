import pytest

from queue_dispatcher.api.cluster_queue import ClusterQueue, StopPolicy
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.selector import NOTHING
from queue_dispatcher.cycle.reasons import Reason, queue_not_found
from queue_dispatcher.workloads.queue_of import QueueNames, Queues, Resolved, may_be_charged, queue_of
from queue_dispatcher.workloads.template import TemplateFacts

LOCAL_QUEUES = (
    LocalQueue("ns", "team", "research", default_class="batch"),
    LocalQueue("ns", "other", "production"),
    LocalQueue("ns", "default", "production"),
    LocalQueue("ns", "stopped", "research", stop_policy=StopPolicy.HOLD),
    LocalQueue("ns", "dangling", "gone"),
    LocalQueue("ns", "unreadable", ""),
    LocalQueue("ns", "closed", "nobody"),
    LocalQueue("elsewhere", "theirs", "research"),
)
QUEUES = Queues(
    cluster_queues={
        "research": ClusterQueue("research"),
        "production": ClusterQueue("production"),
        "nobody": ClusterQueue("nobody", namespace_selector=NOTHING),
        "volcano": ClusterQueue("volcano"),
    },
    local_queues={local.key: local for local in LOCAL_QUEUES},
    volcano=frozenset(("volcano",)),
)
TEAM = Resolved("research", "team", "batch")
OTHER = Resolved("production", "other")


def names(
    binding: str = "",
    policy: str = "",
    namespace: str = "",
    queue: str = "",
    volcano: str = "",
    kueue: str = "",
) -> QueueNames:
    template = TemplateFacts(queue=queue, volcano_queue=volcano, kueue_queue=kueue)
    return QueueNames(binding, template, policy, namespace)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (names(queue="team"), TEAM),
        (names(binding="team", queue="other", policy="other", namespace="other"), TEAM),
        (names(queue="team", volcano="other", policy="other", namespace="other"), TEAM),
        (names(volcano="team", kueue="other", policy="other"), TEAM),
        (names(kueue="team", policy="other", namespace="other"), TEAM),
        (names(policy="team", namespace="other"), TEAM),
        (names(namespace="team"), TEAM),
        # Volcano's queues need no LocalQueue; no other ClusterQueue can be named like that.
        (names(volcano="volcano"), Resolved("volcano")),
        (names(volcano="research", namespace="other"), OTHER),
        (names(kueue="volcano", namespace="other"), OTHER),
        # What was meant for others counts only where it exists here; Volcano writes "default" unasked.
        (names(volcano="theirs", kueue="team"), TEAM),
        (names(volcano="theirs", namespace="team"), TEAM),
    ],
)
def test_the_first_that_names_a_queue_counts(named: QueueNames, expected: Resolved) -> None:
    assert queue_of("ns", {}, named, QUEUES) == expected


@pytest.mark.parametrize(
    ("named", "kind", "told"),
    [
        (names(), "QueueNotFound", "names no queue, and namespace ns has no default queue"),
        (names(queue="missing", namespace="team"), "QueueNotFound", "LocalQueue ns/missing does not exist"),
        (names(queue="theirs"), "QueueNotFound", "LocalQueue ns/theirs does not exist"),
        (names(queue="research"), "QueueNotFound", "LocalQueue ns/research does not exist"),
        (names(queue="dangling"), "QueueNotFound", "LocalQueue ns/dangling leads to ClusterQueue gone"),
        (names(queue="unreadable"), "QueueNotFound", "LocalQueue ns/unreadable names no ClusterQueue"),
        (names(volcano="gone"), "QueueNotFound", "gone (named for Volcano or Kueue)"),
        (
            names(queue="closed"),
            "NamespaceNotAllowed",
            "ClusterQueue nobody takes no workloads of namespace ns",
        ),
    ],
)
def test_no_queue_says_why(named: QueueNames, kind: str, told: str) -> None:
    """volcano-global skips a workload of an unknown queue with a log line."""
    found = queue_of("ns", {}, named, QUEUES)
    assert isinstance(found, Reason)
    assert found.kind == kind
    assert told in found.text


def test_through_a_stopped_local_queue_nothing_is_admitted_but_its_cluster_queue_is_known() -> None:
    found = queue_of("ns", {}, names(queue="stopped"), QUEUES)
    assert isinstance(found, Resolved)
    assert found.cluster_queue == "research"
    assert found.stopped is not None
    assert found.stopped.kind == "QueueStopped"
    assert "ns/stopped" in found.stopped.text


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (names(binding="research"), Resolved("research")),
        (names(policy="research"), Resolved("research")),
        # Labels of the template are written by anyone; a cluster-scoped one has no LocalQueue to check them.
        (
            names(queue="research"),
            queue_not_found("neither the cluster-scoped binding nor its policy names a ClusterQueue"),
        ),
        (names(binding="gone"), queue_not_found("ClusterQueue gone does not exist")),
        (names(binding="nobody"), Resolved("nobody")),
    ],
)
def test_cluster_scoped_bindings_name_a_cluster_queue(named: QueueNames, expected: Resolved | Reason) -> None:
    assert queue_of("", {}, named, QUEUES) == expected


@pytest.mark.parametrize(
    ("cluster_queue", "namespace", "expected"),
    [
        ("research", "ns", True),
        ("gone", "ns", True),
        ("nobody", "ns", True),  # a LocalQueue still leads there
        ("nobody", "elsewhere", False),
        ("nobody", "", True),
    ],
)
def test_which_queue_can_have_admitted_what(cluster_queue: str, namespace: str, expected: bool) -> None:
    assert may_be_charged(cluster_queue, namespace, {}, QUEUES) is expected
