"""What is done to install Fairway, as values: steps, with their actions and conditions.

A step says on which API server it acts, what must be there afterwards, how that is checked and how it is
undone. Nothing in a plan is remembered between runs: each action looks at what is there, so that a run that
was cut off is simply made again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from admin.install.layouts import CertificateFiles
from admin.install.manifest import Json, Manifest

HOST: Final = "host"
KARMADA: Final = "karmada"
"""Names of the planes; a member's is its cluster's name."""


@dataclass(frozen=True, slots=True)
class Apply:
    """The object is there with these fields: server-side apply."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class IssueKubeconfig:
    """A Secret with a kubeconfig made of a ServiceAccount's token, which is read on ``plane``.

    ``manifest``: the Secret, still without data. ``entry``: its key. ``token``: path of the token's Secret.
    ``server``: the URL as the pods that use it reach it. ``cluster``: what the kubeconfig calls it.
    """

    manifest: Manifest
    entry: str
    plane: str
    token: str
    server: str
    cluster: str


@dataclass(frozen=True, slots=True)
class CopyCertificates:
    """A Secret with entries ``tls.crt``, ``tls.key`` and ``ca.crt``, taken from another of the same plane.

    ``source``: the path of the other; ``files``: its entries.
    """

    manifest: Manifest
    source: str
    files: CertificateFiles


@dataclass(frozen=True, slots=True)
class Replace:
    """An object of Karmada's installation made into ours, after what it was is written down.

    ``manifest``: ours, created where there is none. ``onto``: what to make of the one that is there.
    ``record``: the ConfigMap that remembers it, still without data; ``entry``: its key there.
    """

    manifest: Manifest
    onto: Callable[[Json, Manifest], Json]
    record: Manifest
    entry: str


@dataclass(frozen=True, slots=True)
class Protect:
    """A PodDisruptionBudget over the pods of a Deployment, by the selector that this one really has.

    Whoever installed the Deployment chose its selector, which cannot change. A budget of that name that
    others made stays as it is. ``manifest``: ours, with the selector for where there is no Deployment yet.
    """

    manifest: Manifest
    deployment: Manifest


@dataclass(frozen=True, slots=True)
class Remove:
    """An object of ours that the settings want no longer, deleted if it is there.

    ``manifest``: as far as finding it goes. ``is_unlabelled``: one of our programs made it by itself, and
    only its name says that it is ours; such an object alone is no reason for a step of removals.
    """

    manifest: Manifest
    is_unlabelled: bool = False


Action = Apply | IssueKubeconfig | CopyCertificates | Replace | Protect | Remove


@dataclass(frozen=True, slots=True)
class Established:
    """A CustomResourceDefinition is served."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class TokenMinted:
    """The token of a ServiceAccount is in its Secret."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Available:
    """All pods of a Deployment are of its present template, and ready."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Registered:
    """A MutatingWebhookConfiguration sends its reviews to ``url``, in every entry."""

    manifest: Manifest
    url: str


@dataclass(frozen=True, slots=True)
class Ended:
    """No pod of a Deployment that is deleted runs any more. ``program``: their app.kubernetes.io/name."""

    manifest: Manifest
    program: str


Condition = Established | TokenMinted | Available | Registered | Ended


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an installation.

    ``name``: lower case with dashes. ``does``: in one sentence. ``plane``: where. ``until``: what is waited
    for before the next step. ``undone``: how, in one sentence.
    """

    name: str
    does: str
    plane: str
    actions: tuple[Action, ...]
    until: tuple[Condition, ...] = ()
    undone: str = "deleted by fairway uninstall"

    @property
    def checked(self) -> str:
        """How it is known to be done."""
        waits = {
            Established: "is served",
            TokenMinted: "has its token",
            Available: "has all its pods ready",
            Registered: "is there, with our address and an authority to trust",
            Ended: "has no pod left",
        }
        told = [f"{condition.manifest} {waits[type(condition)]}" for condition in self.until]
        if told:
            return "; ".join(told)
        is_removal = all(isinstance(action, Remove) for action in self.actions)
        return "none of them is there" if is_removal else "each object is read back as applied"
