"""What an uninstallation takes, to be asked for before anything is half-way gone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from admin.install.kinds import Kind, the
from admin.install.rights import Right
from admin.install.step import HOST, KARMADA

_WORK: Final = "work.karmada.io"
_HOLDING: Final = (
    "MutatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
)
_REPLACED: Final = ("Deployment", "Service")


def rights_to_uninstall(
    kinds: Mapping[str, Sequence[Kind]], namespace: str, karmada_namespace: str, queues: Sequence[Kind]
) -> frozenset[Right]:
    """Everything that is looked for in the whole of an API server, and deleted in our namespaces.

    ``kinds``: what is deleted on each plane; ``namespace``: Fairway's; ``karmada_namespace``: of Karmada's
    pods on the host; ``queues``: the kinds of queues, where these go too.
    """
    found = set[Right]()
    for plane, removed in kinds.items():
        ours = (namespace, karmada_namespace) if plane == HOST else (namespace,)
        found |= {right for kind in removed for right in _removal(plane, kind, ours)}
        if plane not in (HOST, KARMADA):
            # Whose PriorityClass pods name is kept.
            found.add(Right(plane, "", "pods", "", "list"))
    for kind in queues:
        found |= set(_removal(KARMADA, kind, ("",)))
    return frozenset({*found, *_of_the_host(namespace, karmada_namespace), *_of_karmada(namespace)})


def _removal(plane: str, kind: Kind, namespaces: Sequence[str]) -> Iterator[Right]:
    yield Right(plane, kind.group, kind.plural, "", "list")
    for namespace in namespaces if kind.is_namespaced else ("",):
        yield Right(plane, kind.group, kind.plural, namespace, "delete")


def _of_the_host(namespace: str, karmada_namespace: str) -> Iterator[Right]:
    """Waiting for our pods to end, and giving Karmada's estimators back."""
    yield Right(HOST, "", "pods", namespace, "list")
    for name in _REPLACED:
        kind = the(name)
        for verb in ("get", "create", "update"):
            yield Right(HOST, kind.group, kind.plural, karmada_namespace, verb)


def _of_karmada(namespace: str) -> Iterator[Right]:
    """Holding no longer, giving held bindings back, and what our programs made by themselves."""
    for name in _HOLDING:
        kind = the(name)
        yield from _removal(KARMADA, kind, ("",))
    for name, within in (
        ("MutatingWebhookConfiguration", ""),
        ("ClusterRoleBinding", ""),
        ("Secret", namespace),
        ("Lease", namespace),
    ):
        kind = the(name)
        yield Right(KARMADA, kind.group, kind.plural, within, "get")
    lease = the("Lease")
    yield Right(KARMADA, lease.group, lease.plural, namespace, "delete")
    yield Right(KARMADA, "", "namespaces", "", "list")
    for plural in ("resourcebindings", "clusterresourcebindings"):
        for verb in ("get", "list", "patch"):
            yield Right(KARMADA, _WORK, plural, "", verb)
