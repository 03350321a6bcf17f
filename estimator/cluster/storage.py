"""What claims, volumes and storage classes say, as far as it decides where pods can go."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairway.kube.objects import RawResources, VolumeClaimSpec
from fairway.pod_terms import Selector, label_selector, matches
from fairway.resources import ResourceError, parse_amounts
from fairway.selectors import SelectorError, Term

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
BLOCK = "Block"
_STORAGE = "storage"

Tell = Callable[[str], None]
"""Takes what is wrong and what is made of it."""


@dataclass(frozen=True, slots=True)
class VolumeAsk:
    """What a claim asks of its volume. ``storage_class``: None where it leaves that to the cluster's default.

    ``selector`` is about the volume's labels; None where it cannot be read, and then nothing matches.
    """

    storage_class: str | None = None
    size_bytes: int = 0
    access_modes: frozenset[str] = frozenset()
    is_block: bool = False
    selector: Selector | None = ()

    def suits(self, volume: "Volume") -> bool:
        """Whether a volume that is kept for the claim is large enough and of its mode."""
        return volume.size_bytes >= self.size_bytes and volume.is_block == self.is_block

    def takes(self, volume: "Volume") -> bool:
        """Whether a volume of the right class, claimed by nobody, would do."""
        return (
            self.selector is not None
            and self.suits(volume)
            and self.access_modes <= volume.access_modes
            and matches(self.selector, volume.labels)
        )


def read_ask(spec: VolumeClaimSpec, tell: Tell) -> VolumeAsk:
    """What a claim's spec asks for; what cannot be read is told."""
    try:
        selector = () if spec.selector is None else label_selector(spec.selector)
    except SelectorError as error:
        tell(f"spec.selector: {error}; no volume matches it")
        selector = None
    return VolumeAsk(
        spec.storage_class_name,
        size_bytes(spec.resources.requests if spec.resources else None, "spec.resources.requests", tell),
        frozenset(spec.access_modes or ()),
        spec.volume_mode == BLOCK,
        selector,
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim. ``volume``: the name of its volume, empty while it has none."""

    ask: VolumeAsk
    uid: str = ""
    volume: str = ""
    is_bound: bool = False
    is_lost: bool = False
    is_going: bool = False
    selected_node: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume. ``terms``: the nodes that reach it, None for all; ``zones``: label key to values.

    ``claim``: the key of the claim that it is kept for. ``labels`` only of those that can still be claimed.
    """

    storage_class: str = ""
    size_bytes: int = 0
    access_modes: frozenset[str] = frozenset()
    is_block: bool = False
    terms: tuple[Term, ...] | None = None
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    claim: str = ""
    claim_uid: str = ""
    driver: str = ""
    handle: str = ""
    is_available: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    def is_kept_for(self, key: str, uid: str) -> bool:
        """Whether it is kept for that claim."""
        return self.claim == key and self.claim_uid in ("", uid)


@dataclass(frozen=True, slots=True)
class ClassRules:
    """A StorageClass. ``waits``: a volume is chosen or made for the first pod, where that pod goes.

    ``driver``: who makes volumes, empty where nobody does; ``terms``: on which nodes, None for all.
    """

    driver: str = ""
    waits: bool = False
    terms: tuple[Term, ...] | None = None
    is_default: bool = False
    created: str = ""


def size_bytes(raw: RawResources | None, field: str, tell: Tell) -> int:
    """The amount of storage that a resource list at ``field`` states, 0 where that cannot be read."""
    try:
        return parse_amounts({_STORAGE: (raw or {}).get(_STORAGE)}).get(_STORAGE, 0)
    except ResourceError as error:
        tell(f"{field}.{error}; it counts as none")
        return 0
