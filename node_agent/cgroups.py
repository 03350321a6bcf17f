"""From the text of /proc/<pid>/cgroup to the pod and the container that the process belongs to.

A path is read from its root downwards. The first pod in it is the node's own, and what stands below that pod
is the container's to name: a process may make cgroups that look like those of another pod, but only below its
own. Further pods follow where a whole cluster runs in a container (kind, k3d); the caller takes the first one
that its kubelet knows.

kubelet's names of a pod (``pkg/kubelet/cm/pod_container_manager_linux.go``, ``cgroup_manager_linux.go``):
``pod<uid>``, by the systemd driver ``<parents joined by ->-pod<uid with _ for ->.slice``. The container
within: ``<id>`` or ``<runtime>-<id>.scope``; ids are 64 hexadecimal digits in containerd, CRI-O, Docker and
Podman.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_POD = re.compile(
    r"(?:.*[-_])?pod"
    r"(?:(?P<uid>[0-9a-f]{8}(?P<dash>[-_])[0-9a-f]{4}(?P=dash)[0-9a-f]{4}(?P=dash)[0-9a-f]{4}(?P=dash)[0-9a-f]{12})"
    r"|(?P<hash>[0-9a-f]{32}))(?:\.slice)*"
)
_CONTAINER = re.compile(r"(?:(?P<prefix>.*)[-_])?(?P<id>[0-9a-f]{64})(?:\.scope)?")
_MONITORS = ("conmon",)
"""Scopes beside a container, of the process that waits for it: they bear its id and are not the container."""
_DELETED = " (deleted)"
# Some controllers may be moved by systemd within a container; of these the first that names a pod is
# believed.
_CONTROLLERS = ("", "devices", "memory", "pids", "cpu", "name=systemd")
_MOST_PARTS = 256


class NoPod(StrEnum):
    """Why no pod is found in a path."""

    HOST = "runs on the host, in no container"
    NO_POD = "runs in a container of no pod"
    HIDDEN = "its cgroup is named from another cgroup namespace, which hides the pod"
    UNREADABLE = "its cgroup file is not what Linux writes"


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container of a pod. ``pod_uid`` has dashes, or for a static pod is its 32 digit hash.

    ``container_id`` is empty where the process is in the pod's cgroup and in none of its containers.
    """

    pod_uid: str
    container_id: str = ""
    is_static: bool = False


def pod_containers(text: str) -> tuple[PodContainer, ...] | NoPod:
    """The pod and container of a process, those of a pod around it first; or why there is none.

    ``text`` is the file of either cgroup version. Where controllers disagree, one order of them decides.
    """
    paths = _paths(text)
    if not paths:
        return NoPod.UNREADABLE
    parts = {controller: _parts(path) for controller, path in paths.items()}
    ordered = [*(name for name in _CONTROLLERS if name in parts), *sorted(set(parts) - set(_CONTROLLERS))]
    for controller in ordered:
        found = _containers(parts[controller])
        if found:
            return found
    if any(_is_hidden(each) for each in parts.values()):
        return NoPod.HIDDEN
    is_contained = any(_CONTAINER.fullmatch(part) for each in parts.values() for part in each)
    return NoPod.NO_POD if is_contained else NoPod.HOST


def _paths(text: str) -> dict[str, str]:
    """Paths by controller, the unified hierarchy's by the empty name."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3 and fields[0].isdecimal() and fields[2].startswith("/"):
            for controller in fields[1].split(","):
                paths[controller] = fields[2]
    return paths


def _parts(path: str) -> list[str]:
    """The steps of a path. ``slice:prefix:id``, which runc makes of a parent meant for systemd, is three."""
    return [part for part in re.split("[/:]", path.removesuffix(_DELETED), maxsplit=_MOST_PARTS) if part]


def _is_hidden(parts: list[str]) -> bool:
    """Whether the steps up from another namespace's root end above a pod that they do not name."""
    below = next((part for part in parts if part != ".."), "")
    return parts[:1] == [".."] and (not below or _CONTAINER.fullmatch(below) is not None)


def _containers(parts: list[str]) -> tuple[PodContainer, ...]:
    found: list[PodContainer] = []
    for part in parts:
        pod = _POD.fullmatch(part)
        if pod is not None:
            uid = pod["uid"]
            container = (
                PodContainer(pod["hash"], is_static=True) if uid is None else PodContainer(_dashed(uid))
            )
            # A slice within the pod's own, as nested drivers make it, is the same pod.
            if not found or (found[-1].pod_uid, found[-1].container_id) != (container.pod_uid, ""):
                found.append(container)
        elif found and not found[-1].container_id:
            match = _CONTAINER.fullmatch(part)
            if match is not None and not (match["prefix"] or "").endswith(_MONITORS):
                found[-1] = PodContainer(found[-1].pod_uid, match["id"], found[-1].is_static)
    return tuple(found)


def _dashed(uid: str) -> str:
    return uid.replace("_", "-")
