"""What an administrator may choose about an installation; everything has a default that works.

``fairway install --help`` says what each is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fairway.scope import WorkloadKind
from fairway.scope_flags import Namespaces

REGISTRY: Final = "ghcr.io/fairway-dev"
NAMESPACE: Final = "fairway-system"
KARMADA_NAMESPACE: Final = "karmada-system"


class EstimatorMode(StrEnum):
    """How members get their estimator."""

    PER_MEMBER = "per-member"
    SHARED = "shared"
    NONE = "none"


class Hold(StrEnum):
    """Who holds bindings when they are created."""

    WEBHOOK = "webhook"
    POLICIES = "policies"
    NONE = "none"


class Interpreters(StrEnum):
    """Which ResourceInterpreterCustomizations are installed.

    ``MISSING``: for kinds that Karmada does not understand by itself. ``ALL``: also those that replace what
    Karmada has, which changes how workloads that run already are counted.
    """

    MISSING = "missing"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """What to install.

    ``namespace``: of Fairway on every API server. ``karmada_namespace``: where Karmada's pods run.
    ``karmada_server``: Karmada's API server as pods of the host reach it, empty for as the kubeconfig says.
    ``member_servers``: the same for members, by cluster; those left out are reached as Karmada reaches them.
    ``catalogue``: further resource names, as YAML.
    ``certificates``: name of the Secret that estimators serve with, empty for the one that is there.
    ``hold_namespaces``: whose workloads are held. ``observe``: nothing is, but what would be is told.
    ``dispatcher_flags``: more flags of the dispatcher, as it takes them; each wins over what stands before.
    """

    registry: str = REGISTRY
    tag: str = ""
    namespace: str = NAMESPACE
    karmada_namespace: str = KARMADA_NAMESPACE
    karmada_server: str = ""
    member_servers: Mapping[str, str] = field(default_factory=dict)
    estimator: EstimatorMode = EstimatorMode.PER_MEMBER
    certificates: str = ""
    catalogue: str = ""
    interpreters: Interpreters = Interpreters.MISSING
    hold: Hold = Hold.WEBHOOK
    hold_kinds: frozenset[WorkloadKind] = frozenset()
    hold_namespaces: Namespaces = "enabled"
    observe: bool = False
    dispatcher_flags: tuple[str, ...] = ()
    sample_queue: bool = False
