"""A kubeconfig file, checked before the official loader sees it.

The official loader is lenient and fails late, with messages that do not say where. Here the files are
parsed once into the few fields that matter, so that a mistake is reported by file and field; then the
official merger builds what its loader takes. All of it blocks, so callers run it in a thread.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from kubernetes.aio.config.kube_config import ConfigNode, KubeConfigMerger

from fairway.kube.errors import BadConfig
from fairway.kube.yaml_text import NoYaml, yaml_value

_HINT = "expected a kubeconfig as kubectl reads it; check it with: kubectl config view"


class _User(msgspec.Struct, frozen=True, rename="camel"):
    exec: dict[str, object] | None = None
    token_file: str | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User | None = None


class _Cluster(msgspec.Struct, frozen=True):
    server: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str = ""


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    contexts: list[_NamedContext] | None = None
    users: list[_NamedUser] | None = None


# msgspec works out a type when it is first used, and two threads that do so at once crash the process. Every
# cluster's file is read by a thread of its own, so it is done here, once.
msgspec.convert({}, _File)


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One context of a kubeconfig.

    ``merged`` is what the official ``KubeConfigLoader`` takes. ``uses_plugin``: the user's credentials come
    from an exec plugin. ``files``: the files read, including a token file.
    """

    merged: ConfigNode
    context: str
    uses_plugin: bool
    files: tuple[str, ...]


_Named = TypeVar("_Named", _NamedUser, _NamedCluster, _NamedContext)


def default_paths() -> tuple[str, ...]:
    """Where kubectl looks: every file of ``$KUBECONFIG``, else ``~/.kube/config``."""
    listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    return tuple(path for path in listed if path) or (str(Path.home() / ".kube" / "config"),)


def read_kubeconfig(paths: tuple[str, ...], context: str | None, master: str | None) -> Kubeconfig:
    """Read and merge ``paths`` (the first to name something wins), and choose ``context`` or the current one.

    ``master`` replaces the server URL, as ``--master`` does in Go programs. Raises BadConfig.
    """
    present = tuple(path for path in (os.path.expanduser(path) for path in paths) if os.path.exists(path))
    if not present:
        raise BadConfig(
            f"kubeconfig {os.pathsep.join(paths)}: no such file; expected a readable kubeconfig there"
        )
    where = f"kubeconfig {os.pathsep.join(present)}"
    files = {path: _parse(path) for path in present}

    chosen = context or next((file.current_context for file in files.values() if file.current_context), None)
    if chosen is None:
        raise BadConfig(f"{where}: no current-context; expected one, or name a context")
    contexts = [item for file in files.values() for item in file.contexts or ()]
    entry = _find(where, "contexts", contexts, chosen).context
    clusters = [item for file in files.values() for item in file.clusters or ()]
    server = master or _find(where, "clusters", clusters, entry.cluster).cluster.server
    if not server.startswith(("http://", "https://")):
        raise BadConfig(
            f"{where}: clusters[name={entry.cluster}].cluster.server: expected an http(s) URL, got {server!r}"
        )

    user, user_file = _User(), present[0]
    if entry.user or server.startswith("https://"):
        users = [item for file in files.values() for item in file.users or ()]
        found = _find(where, "users", users, entry.user)
        user = found.user or user
        user_file = next(path for path, file in files.items() if found in (file.users or ()))
    token_file = (
        () if user.token_file is None else (os.path.join(os.path.dirname(user_file), user.token_file),)
    )

    merged = KubeConfigMerger(os.pathsep.join(present)).config
    if master:
        for cluster in merged.value["clusters"]:
            cluster.value["cluster"]["server"] = master
    return Kubeconfig(merged, chosen, user.exec is not None, present + token_file)


def _parse(path: str) -> _File:
    try:
        return msgspec.convert(yaml_value(Path(path).read_bytes()), _File)
    except (OSError, msgspec.ValidationError, NoYaml) as error:
        raise BadConfig(f"kubeconfig {path}: {error}; {_HINT}") from error


def _find(where: str, section: str, items: list[_Named], name: str) -> _Named:
    for item in items:
        if item.name == name:
            return item
    known = ", ".join(sorted(item.name for item in items)) or "none"
    raise BadConfig(f"{where}: {section}: expected an entry named {name!r}, found: {known}")
