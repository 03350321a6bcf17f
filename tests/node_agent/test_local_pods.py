"""The pods of one node: found by uid and name."""

import msgspec
import pytest

from fairway.kube.node_devices import HolderOwner
from node_agent.local_pods import LocalPods, PodOnNode, local_pod
from tests.node_agent.pods import owned_by, pod

HASH = "36b6d6be73b1065af369b3985edafa09"


def test_a_pod_is_found_by_uid_hash_and_name() -> None:
    pods = LocalPods()
    pods.upsert(pod("kube-system/etcd-a", "uid-1", annotations={"kubernetes.io/config.mirror": HASH}))
    found = pods.by_uid("uid-1")
    assert found is not None
    assert found is pods.by_uid(HASH) is pods.by_name("kube-system", "etcd-a")
    assert pods.by_uid("") is pods.by_uid("uid-2") is pods.by_name("default", "etcd-a") is None
    pods.delete("kube-system/etcd-a")
    assert pods.by_uid(HASH) is pods.by_uid("uid-1") is None
    assert not pods.keys()
    pods.delete("kube-system/etcd-a")


def test_a_pod_of_the_same_name_takes_the_other_s_place() -> None:
    pods = LocalPods()
    pods.upsert(pod("team/train-0", "old"))
    pods.upsert(pod("team/train-0", "new"))
    assert pods.by_uid("old") is None
    assert pods.by_uid("new") is pods.by_name("team", "train-0") is not None


def test_a_uid_that_a_pod_has_goes_before_one_that_a_pod_claims() -> None:
    """Anybody may write the annotation, until kubelet deletes the pod for it."""
    pods = LocalPods()
    pods.upsert(pod("team/liar", "uid-1", annotations={"kubernetes.io/config.mirror": "uid-2"}))
    pods.upsert(pod("team/honest", "uid-2"))
    pods.upsert(pod("team/liar", "uid-1", annotations={"kubernetes.io/config.mirror": "uid-2"}))
    found = pods.by_uid("uid-2")
    assert found is not None
    assert found.name == "honest"


def test_the_controller_as_it_stands_on_the_pod() -> None:
    owners = [owned_by("Node", "a"), owned_by("ReplicaSet", "web-7d4", controller=True)]
    assert local_pod(pod("team/web", "uid", owners=owners)).owner == HolderOwner(
        "apps/v1", "ReplicaSet", "web-7d4"
    )
    assert local_pod(pod("team/bare", "uid", owners=owners[:1])).owner is None


def test_names_by_container_id_and_marks_of_schemes() -> None:
    found = local_pod(
        pod(
            "team/a",
            "uid",
            {"main": "containerd://" + "1a" * 32, "waits": ""},
            annotations={"hami.io/vgpu-devices-allocated": "x", "note": "y"},
            init={"setup": "cri-o://" + "2b" * 32},
        )
    )
    assert found.containers == {"1a" * 32: "main", "2b" * 32: "setup"}
    assert found.marks == {"hami.io/vgpu-devices-allocated": "x"}


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("no status", '{"metadata": {"name": "a"}}'),
        ("nulls", '{"metadata": {"name": "a", "annotations": null}, "status": {"containerStatuses": null}}'),
    ],
)
def test_pods_that_say_little(what: str, text: str) -> None:
    assert local_pod(msgspec.json.decode(text, type=PodOnNode)).name == "a", what
