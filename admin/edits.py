"""Changes to a cluster in memory: nodes and pods that come or go, as values over the objects of a dump.

The one idea: an edit makes other objects, and everything after it cannot tell them from objects that were
read, so a what-if question has exactly the answer that the real change would have.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from admin.label_selector import matches, parse_selector
from fairway.kube.dumps import Dump
from fairway.kube.objects import Node, ObjectMeta, Pod
from fairway.selectors import Requirement

_HOSTNAME = "kubernetes.io/hostname"
_CORDON = "node.kubernetes.io/unschedulable"


class EditError(ValueError):
    """An edit means nothing for the clusters at hand; the message repeats it and says what was expected."""


@dataclass(frozen=True, slots=True)
class DropNodes:
    """Nodes go, and their pods with them. ``cluster`` empty: in every cluster that has one."""

    text: str
    cluster: str
    selects: Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class AddNodes:
    """``count`` more nodes like one that is there: its twins but for the name, with its DaemonSets' pods."""

    text: str
    cluster: str
    count: int
    like: str


@dataclass(frozen=True, slots=True)
class DropPods:
    """Pods go."""

    text: str
    cluster: str
    selects: Callable[[Pod], bool]


Edit = DropNodes | AddNodes | DropPods


def drop_node(text: str) -> DropNodes:
    """``[CLUSTER/]NODE``. Raises EditError."""
    cluster, name = _with_cluster(text, "--drop-node [CLUSTER/]NODE")
    return DropNodes(f"without node {name}", cluster, lambda node: node.metadata.name == name)


def drop_nodes(text: str) -> DropNodes:
    """A label selector. Raises SelectorError."""
    requirements = parse_selector(text)
    return DropNodes(
        f"without nodes {text}", "", lambda node: matches(requirements, node.metadata.labels)
    )  # fmt: skip


def add_nodes(count: int, like: str) -> AddNodes:
    """``count`` nodes like ``[CLUSTER/]NODE``. Raises EditError."""
    cluster, name = _with_cluster(like, "--like [CLUSTER/]NODE")
    return AddNodes(f"with {count:,} more like node {name}", cluster, count, name)


def drop_pods(text: str) -> DropPods:
    """``NAMESPACE/``, ``NAMESPACE/NAME`` or ``NAMESPACE/SELECTOR``; ``*/`` is any. Raises EditError."""
    namespace, slash, rest = text.partition("/")
    if not slash or not namespace:
        raise EditError(
            f"--drop-pods {text!r}: expected NAMESPACE/ for all its pods, NAMESPACE/NAME or "
            "NAMESPACE/SELECTOR such as research/app=train; * is any namespace"
        )
    # No name of a pod holds any of these.
    requirements = parse_selector(rest) if any(mark in rest for mark in "=!(<>,") else None
    return DropPods(f"without pods {text}", "", _pod_test(namespace, rest, requirements))


def apply(edits: Iterable[Edit], clusters: Mapping[str, Dump]) -> dict[str, Dump]:
    """The clusters after all edits, one after the other. Raises EditError for one that concerns nothing."""
    edited = dict(clusters)
    for edit in edits:
        if edit.cluster and edit.cluster not in edited:
            known = ", ".join(sorted(edited))
            raise EditError(f"{edit.text}: no cluster {edit.cluster!r}; expected one of {known}")
        names = (edit.cluster,) if edit.cluster else tuple(edited)
        changed = _changed(edit, {name: edited[name] for name in names})
        # What an edit before this one has taken away was there all the same.
        if not changed and not _changed(edit, {name: clusters[name] for name in names}):
            raise EditError(f"{edit.text}: nothing like that in {', '.join(names)}")
        edited.update(changed)
    return edited


def _changed(edit: Edit, clusters: Mapping[str, Dump]) -> dict[str, Dump]:
    """Those of the clusters that the edit changes, after it."""
    match edit:
        case DropNodes():
            found = {name: _without_nodes(dump, edit.selects) for name, dump in clusters.items()}
        case DropPods():
            found = {name: _without_pods(dump, edit.selects) for name, dump in clusters.items()}
        case AddNodes():
            return _with_nodes(edit, clusters)
    return {name: dump for name, dump in found.items() if dump is not clusters[name]}


def _without_nodes(dump: Dump, selects: Callable[[Node], bool]) -> Dump:
    gone = {node.metadata.name for node in dump.nodes if selects(node)}
    if not gone:
        return dump
    return replace(
        dump,
        nodes=tuple(node for node in dump.nodes if node.metadata.name not in gone),
        pods=tuple(pod for pod in dump.pods if _place(pod) not in gone),
    )


def _without_pods(dump: Dump, selects: Callable[[Pod], bool]) -> Dump:
    left = tuple(pod for pod in dump.pods if not selects(pod))
    return dump if len(left) == len(dump.pods) else replace(dump, pods=left)


def _with_nodes(edit: AddNodes, clusters: Mapping[str, Dump]) -> dict[str, Dump]:
    found = {
        name: node
        for name, dump in clusters.items()
        for node in dump.nodes
        if node.metadata.name == edit.like
    }
    if not found:
        raise EditError(f"{edit.text}: no node {edit.like!r} in {', '.join(clusters)}")
    if len(found) > 1:
        raise EditError(f"{edit.text}: {', '.join(found)} have it: write CLUSTER/{edit.like}")
    ((cluster, model),) = found.items()
    dump = clusters[cluster]
    names = tuple(_new_names(edit, {node.metadata.name for node in dump.nodes}))
    daemons = [pod for pod in dump.pods if pod.spec.node_name == edit.like and _is_daemon(pod)]
    pods = [_moved(pod, name) for name in names for pod in daemons]
    return {
        cluster: replace(
            dump, nodes=(*dump.nodes, *(_twin(model, name) for name in names)), pods=(*dump.pods, *pods)
        )
    }


def _new_names(edit: AddNodes, taken: set[str]) -> Iterator[str]:
    number, made = 0, 0
    while made < edit.count:
        number += 1
        name = f"{edit.like}-added-{number}"
        if name not in taken:
            made += 1
            yield name


def _twin(model: Node, name: str) -> Node:
    metadata = model.metadata
    labels = dict(metadata.labels or {})
    if _HOSTNAME in labels:
        labels[_HOSTNAME] = name
    taints = [taint for taint in model.spec.taints or () if taint.key != _CORDON]
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, annotations=metadata.annotations),
        spec=msgspec.structs.replace(model.spec, unschedulable=False, taints=taints or None),
        status=model.status,
    )


def _moved(pod: Pod, node_name: str) -> Pod:
    name = f"{pod.metadata.name}-on-{node_name}"
    return Pod(
        metadata=msgspec.structs.replace(pod.metadata, name=name, uid=""),
        spec=msgspec.structs.replace(pod.spec, node_name=node_name),
        status=pod.status,
    )


def _place(pod: Pod) -> str:
    return pod.spec.node_name or pod.status.nominated_node_name


def _is_daemon(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())


def _pod_test(
    namespace: str, name: str, requirements: tuple[Requirement, ...] | None
) -> Callable[[Pod], bool]:
    def selects(pod: Pod) -> bool:
        if namespace not in ("*", pod.metadata.namespace):
            return False
        if requirements is not None:
            return matches(requirements, pod.metadata.labels)
        return name in ("", pod.metadata.name)

    return selects


def _with_cluster(text: str, expected: str) -> tuple[str, str]:
    cluster, _, name = text.rpartition("/")
    if not name or "/" in cluster:
        raise EditError(f"{text!r}: expected {expected}")
    return cluster, name
