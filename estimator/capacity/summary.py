"""What a cluster's accelerators look like to an administrator: free, how it is chunked, what is stranded.

Pure values; `estimator.capacity.survey` makes them from a mirror, the wire and the report carry them. All
counts are of physical devices unless a name says otherwise: ``milli`` is a thousandth of a device.
Definitions, as in the report: *allocated* is what non-terminal pods request, not what they use; *free* is
healthy less allocated on nodes that take pods at all (not cordoned); *placeable* n is how many pods of n
devices fit now that bring half of their devices' fair share of the node's cpu and memory each; *stranded* is
free but of no use to such a pod of one device, with the cause.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placeable:
    """So many pods of ``devices`` devices each would fit now."""

    devices: int
    pods: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """On so many nodes exactly ``free`` devices are free."""

    free: int
    nodes: int


@dataclass(frozen=True, slots=True)
class LargestGang:
    """The largest gang of pods of ``devices`` devices each that fits in one domain of the level now.

    ``level`` is the label key, empty for the whole cluster; ``domain`` its value there.
    """

    devices: int
    level: str
    domain: str
    pods: int


@dataclass(frozen=True, slots=True)
class Partition:
    """A fixed partition (MIG profile): how many there are, how many are free.

    ``potential``: how many more could be cut from devices that nothing runs on, were they re-partitioned.
    """

    profile: str
    resource: str
    total: int
    free: int
    potential: int


@dataclass(frozen=True, slots=True)
class Fractions:
    """Devices that a sharing scheme divides: what is free of them together, and in one piece."""

    scheme: str
    devices: int
    free_milli: int
    largest_free_milli: int
    largest_free_memory: int
    untouched: int


@dataclass(frozen=True, slots=True)
class Product:
    """One product of one resource in one cluster."""

    product: str
    resource: str
    device_class: str
    nodes: int
    total: int
    unhealthy: int
    cordoned: int
    allocated: int
    free: int
    stranded: int
    placeable: tuple[Placeable, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    gangs: tuple[LargestGang, ...] = ()
    partitions: tuple[Partition, ...] = ()
    fractions: tuple[Fractions, ...] = ()
    advertised_per_device: int = 1
    """How many times each device is advertised (time-slicing, MPS); the counts above are physical."""


@dataclass(frozen=True, slots=True)
class StrandedNode:
    """Free devices of a node that no pod can use now, and what would free them in a sentence.

    ``cause`` is one word: ``cpu``, ``memory``, ``pods``, ``taint``, ``unhealthy``, ``fragments``.
    """

    node: str
    product: str
    free: int
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class SliceShape:
    """TPU slices, or other atomic groups, of one shape: whole groups that are free, busy or broken."""

    accelerator: str
    topology: str
    hosts: int
    slices: int
    free: int
    partly_busy: int
    incomplete: int


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain of a topology level: its nodes and devices. ``path``: the label values, coarsest first."""

    path: tuple[str, ...]
    nodes: int
    total: int
    free: int
    whole_nodes_free: int


@dataclass(frozen=True, slots=True)
class Level:
    """One topology level of one product, its domains in order of their path."""

    level: str
    product: str
    domains: tuple[Domain, ...]
    unlabelled_nodes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One cluster. ``age_s``: how old the state is; ``doubt``: why it may not be true, else empty."""

    cluster: str
    nodes: int
    pods: int
    products: tuple[Product, ...] = ()
    stranded: tuple[StrandedNode, ...] = ()
    slices: tuple[SliceShape, ...] = ()
    levels: tuple[Level, ...] = ()
    uncatalogued: tuple[str, ...] = ()
    age_s: float = 0.0
    doubt: str = ""
    problems: tuple[str, ...] = ()
