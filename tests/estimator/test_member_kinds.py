"""What decides how pods are admitted, and where their volumes are: read from an API server or a file."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from admin.mirrors import mirror_of
from estimator.capacity.request import Component
from estimator.cluster.kind_mirror import KindMirror
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from estimator.live_source import LiveSource
from estimator.member import (
    CSI_NODES,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    MemberCluster,
)
from fairway.kube.client import KubeClient
from fairway.kube.dumps import read_dump
from fairway.kube.observation import NullReflectorMetrics
from fairway.kube.templates import PodTemplate
from sandbox.fakeapi import FakeApi, Seen, virtual_time
from tests.builders import no_complaints

Json = Mapping[str, object]
T = TypeVar("T")

# By resource its kind, apiVersion and the collection that an object of it goes to.
KINDS = {
    RUNTIME_CLASSES: ("RuntimeClass", "node.k8s.io/v1", "/apis/node.k8s.io/v1/runtimeclasses"),
    LIMIT_RANGES: ("LimitRange", "v1", "/api/v1/namespaces/team/limitranges"),
    NAMESPACES: ("Namespace", "v1", "/api/v1/namespaces"),
    PERSISTENT_VOLUMES: ("PersistentVolume", "v1", "/api/v1/persistentvolumes"),
    VOLUME_CLAIMS: ("PersistentVolumeClaim", "v1", "/api/v1/namespaces/team/persistentvolumeclaims"),
    STORAGE_CLASSES: ("StorageClass", "storage.k8s.io/v1", "/apis/storage.k8s.io/v1/storageclasses"),
    CSI_NODES: ("CSINode", "storage.k8s.io/v1", "/apis/storage.k8s.io/v1/csinodes"),
    PRIORITY_CLASSES: (
        "PriorityClass",
        "scheduling.k8s.io/v1",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ),
}


def known(mirror: ClusterMirror) -> dict[str, tuple[bool, list[str]]]:
    """Whether each kind has been read, and the keys that were found."""
    return {
        RUNTIME_CLASSES: state(mirror.admission.runtime_classes),
        LIMIT_RANGES: state(mirror.admission.limit_ranges),
        NAMESPACES: state(mirror.admission.namespaces),
        PERSISTENT_VOLUMES: state(mirror.volumes.volumes),
        VOLUME_CLAIMS: state(mirror.volumes.claims),
        STORAGE_CLASSES: state(mirror.volumes.classes),
        CSI_NODES: state(mirror.volumes.csi_nodes),
        PRIORITY_CLASSES: state(mirror.priority_classes),
    }


def state(kind: KindMirror[T]) -> tuple[bool, list[str]]:
    return kind.synced, list(kind.keys())


def key(name: str) -> str:
    return f"team/{name}" if "/namespaces/" in KINDS[name][2] else name


def followed(prepare: Callable[[FakeApi], None]) -> dict[str, tuple[bool, list[str]]]:
    """What is known of a cluster after a minute in which all kinds were asked for."""

    async def scene() -> dict[str, tuple[bool, list[str]]]:
        async with FakeApi() as api:
            prepare(api)
            clock = asyncio.get_running_loop().time
            member = MemberCluster("m", ClusterMirror(no_complaints), clock)
            client = KubeClient.from_url(api.url, qps=-1)
            source = LiveSource(member, client, NullReflectorMetrics(), clock=clock, at_once=tuple(KINDS))
            task = asyncio.create_task(source.run())
            await asyncio.sleep(60)
            task.cancel()
            await asyncio.wait((task,))
            return known(member.mirror)

    return virtual_time.run(scene())


def with_one_of_each(api: FakeApi) -> None:
    for name, (_, _, path) in KINDS.items():
        api.create(path, {"metadata": {"name": name}})


def test_what_a_live_cluster_has_of_each_kind_is_known() -> None:
    assert followed(with_one_of_each) == {name: (True, [key(name)]) for name in KINDS}
    assert followed(lambda api: None) == {name: (True, []) for name in KINDS}


@pytest.mark.parametrize(("status", "is_known"), [(403, False), (404, True), (500, False)])
def test_what_may_not_be_read_is_not_known_and_what_is_not_served_is_not_there(
    status: int, is_known: bool
) -> None:
    def prepare(api: FakeApi) -> None:
        plurals = tuple(f"/{name}" for name in KINDS)
        api.fail(status, 10**6, when=lambda seen: seen.path.endswith(plurals))

    assert followed(prepare) == {name: (is_known, []) for name in KINDS}


@pytest.mark.parametrize(
    ("prepare", "waits_s"),
    [
        (lambda api: api.delay(0.5, 1, when=_is_of_limit_ranges), 0.5),
        (lambda api: api.fail(403, 10**6, when=_is_of_limit_ranges), 0.0),
        (lambda api: api.fail(500, 10**6, when=_is_of_limit_ranges), 1.0),
    ],
    ids=["slow", "not allowed", "broken"],
)
def test_the_first_template_waits_for_what_it_depends_on(
    prepare: Callable[[FakeApi], None], waits_s: float
) -> None:
    async def scene() -> None:
        async with FakeApi() as api:
            prepare(api)
            clock = asyncio.get_running_loop().time
            member = MemberCluster("m", ClusterMirror(no_complaints), clock)
            client = KubeClient.from_url(api.url, qps=-1)
            source = LiveSource(member, client, NullReflectorMetrics(), clock=clock)
            task = asyncio.create_task(source.run())
            await member.settle((NODES, PODS), 120.0, 2.0)
            began_s = clock()
            component = Component("", 1, PodShape(), template=PodTemplate())
            await member.learn((component,), 2.0)
            assert waits_s <= clock() - began_s < waits_s + 0.4
            await asyncio.sleep(60)
            began_s = clock()
            await member.learn((component,), 2.0)
            # What has not come by now does not hold up every answer.
            assert clock() - began_s < 0.5
            task.cancel()
            await asyncio.wait((task,))

    virtual_time.run(scene())


def _is_of_limit_ranges(seen: Seen) -> bool:
    return seen.path.endswith("/limitranges")


def items(*names: str) -> list[Json]:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}}
    return [
        node,
        *({"kind": KINDS[name][0], "apiVersion": KINDS[name][1], "metadata": _named(name)} for name in names),
    ]


def _named(name: str) -> Json:
    return {"name": name, **({"namespace": "team"} if "/" in key(name) else {})}


def test_a_file_says_of_which_kinds_it_knows(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"kind": "List", "items": items(*KINDS)}))
    dump = read_dump(file)
    assert known(mirror_of(dump)[0]) == {name: (True, [key(name)]) for name in KINDS}
    file.write_text(json.dumps({"kind": "List", "items": items(PERSISTENT_VOLUMES)}))
    # Who writes a file without LimitRanges has none, as it is with quotas.
    expected = {name: (name == LIMIT_RANGES, list[str]()) for name in KINDS}
    expected[PERSISTENT_VOLUMES] = (True, [PERSISTENT_VOLUMES])
    assert known(mirror_of(read_dump(file))[0]) == expected
