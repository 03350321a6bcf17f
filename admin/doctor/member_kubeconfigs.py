"""Kubeconfigs of member clusters in Secrets of the host cluster, as Karmada's estimators use them.

Whoever may write such a Secret must not be able to have this machine run a program or read a file of it: only
kubeconfigs that carry everything in themselves are taken.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from admin.doctor.evidence import Plane
from admin.doctor.kinds import SECRETS
from fairway.kube.yaml_text import NoYaml, yaml_value

_SUFFIX: Final = "-kubeconfig"
_CLUSTER_KEYS: Final = frozenset(
    {"server", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name"}
)
_USER_KEYS: Final = frozenset({"client-certificate-data", "client-key-data", "token"})


class BadMember(ValueError):
    """A kubeconfig that is not taken; the message says why."""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str = ""
    cluster: dict[str, object] | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str = ""
    user: dict[str, object] | None = None


class _File(msgspec.Struct, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None


def member_kubeconfigs(host: Plane, namespace: str) -> dict[str, bytes]:
    """By cluster: the value of key ``NAME-kubeconfig`` of Secret ``NAME-kubeconfig``. Raises NotRead."""
    found = {}
    for secret in host.listed(SECRETS):
        name = secret.metadata.name
        data = (secret.data or {}).get(name)
        if secret.metadata.namespace == namespace and name.endswith(_SUFFIX) and data:
            found[name.removesuffix(_SUFFIX)] = data
    return found


def check_self_contained(text: bytes) -> None:
    """Raises BadMember for a kubeconfig that names a program, a file or a proxy, or is none."""
    try:
        file = msgspec.convert(yaml_value(text), _File)
    except msgspec.ValidationError as error:
        raise BadMember(f"expected a kubeconfig: {error}") from None
    except NoYaml:
        raise BadMember("expected a kubeconfig, found what is no YAML") from None
    for section, allowed, entries in (
        ("clusters", _CLUSTER_KEYS, [(each.name, each.cluster) for each in file.clusters or ()]),
        ("users", _USER_KEYS, [(each.name, each.user) for each in file.users or ()]),
    ):
        for name, fields in entries:
            for key, value in (fields or {}).items():
                if key not in allowed and value:
                    raise BadMember(
                        f"{section}[name={name}].{key}: from a Secret only certificates, keys and tokens "
                        "in the kubeconfig itself are taken; give it by --member instead"
                    )


@contextmanager
def as_files(texts: dict[str, bytes]) -> Iterator[Sequence[tuple[str, Path]]]:
    """The kubeconfigs as files that nobody else can read, for a while."""
    with TemporaryDirectory(prefix="fairway-doctor-") as folder:
        files = []
        for number, (name, text) in enumerate(sorted(texts.items())):
            path = Path(folder) / f"{number}.kubeconfig"
            path.touch(mode=0o600)
            path.write_bytes(text)
            files.append((name, path))
        yield files
