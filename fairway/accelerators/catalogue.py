"""The catalogue: which resource name means what kind of device, how it is counted, which labels describe it.

Data, not code: an ordered list of rules, the first whose pattern matches a name decides. The packaged
rules (`fairway.accelerators.builtin`) know the names that device plugins and sharing schemes advertise;
an administrator's file goes before them. A name that no rule knows counts as a whole device, as
kube-scheduler counts it, and can be listed as uncatalogued.

What a name alone cannot say (GPUs that are time-sliced, or cut by MIG under their plain name) is read from
the node's labels in `fairway.accelerators.products`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache

from fairway.accelerators.catalogue_yaml import CatalogueError as CatalogueError
from fairway.accelerators.catalogue_yaml import Record, read_records
from fairway.accelerators.patterns import NamePattern, PatternError, check_template, fill, parse_pattern
from fairway.resources import is_extended


class DeviceClass(StrEnum):
    """How devices of a name are counted.

    ``whole``: interchangeable devices, floor division per node. ``partition``: pre-cut pieces, counted per
    name as they are cut. ``shared``: one device advertised several times without any guarantee, so that
    more than one for a pod means little. ``fraction`` and ``memory-pool``: parts of single devices, whose
    state only the sharing scheme knows; sums over a node say nothing. ``atomic``: whole hosts that form one
    unit together. ``dra``: devices in ResourceSlices. ``auxiliary``: counted like whole devices, but no
    accelerators (network cards, crypto engines). ``not-demand``: takes no device (monitoring, priorities).
    """

    WHOLE = "whole"
    PARTITION = "partition"
    SHARED = "shared"
    FRACTION = "fraction"
    MEMORY_POOL = "memory-pool"
    ATOMIC = "atomic"
    DRA = "dra"
    AUXILIARY = "auxiliary"
    NOT_DEMAND = "not-demand"


class Role(StrEnum):
    """What an amount of the resource means within its sharing scheme."""

    COUNT = "count"
    MEMORY = "memory"
    MEMORY_PERCENTAGE = "memory-percentage"
    CORES = "cores"


class Unit(StrEnum):
    """What 1 of the resource is; ``percent`` is of one device."""

    DEVICES = "devices"
    CORES = "cores"
    MILLICORES = "millicores"
    PERCENT = "percent"
    BYTES = "bytes"
    MIB = "MiB"
    MIB_256 = "256MiB"
    MIB_512 = "512MiB"
    GIB = "GiB"


@dataclass(frozen=True, slots=True)
class Labels:
    """The node labels that describe the devices of a resource; of several keys the first with a value counts.

    ``count``: how many devices there are, ``multiplier``: how many times each is advertised, ``sharing``:
    how they are shared, ``partition``: the piece that each of them is, ``memory``: of one device or piece,
    ``group``: what the node's devices are tied to with those of other nodes (NVLink clique, TPU slice).
    """

    product: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    count: tuple[str, ...] = ()
    multiplier: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()
    group: tuple[str, ...] = ()

    def tell_how_many(self, labels: Mapping[str, str]) -> bool:
        """Whether these say how many devices there are, or how often each is advertised."""
        return any(labels.get(key) for key in (*self.multiplier, *self.count))


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalogue says about one resource.

    ``scheme``: the sharing scheme that the resource belongs to, named as its adapter or, for adapters by
    vendor, the part of their names before the vendor's; or the group of names for the same hardware.
    ``role``: what the resource is there. ``managed``: decided by that scheme alone, so that nodes which lack
    it in allocatable may still have it. ``product`` and ``partition``: as far as the name itself tells them.
    Not ``catalogued``: no rule knows the name.
    """

    resource: str
    device_class: DeviceClass
    vendor: str = ""
    unit: Unit = Unit.DEVICES
    scheme: str = ""
    role: Role = Role.COUNT
    managed: bool = False
    product: str = ""
    partition: str = ""
    labels: Labels = Labels()
    catalogued: bool = True

    @property
    def is_accelerator(self) -> bool:
        """Whether an amount of it is (a part of) an accelerator."""
        return self.device_class not in (DeviceClass.AUXILIARY, DeviceClass.NOT_DEMAND)


@dataclass(frozen=True, slots=True)
class Rule:
    """Names of this pattern mean this entry, whose texts may name parts of the pattern."""

    pattern: NamePattern
    entry: Entry

    def apply(self, name: str) -> Entry | None:
        """The entry for the name, None where the pattern does not match it."""
        parts = self.pattern.match(name)
        if parts is None:
            return None
        entry = self.entry
        labels = Labels(*(tuple(fill(key, parts) for key in keys) for keys in astuple(entry.labels)))
        return replace(
            entry,
            resource=name,
            product=fill(entry.product, parts),
            partition=fill(entry.partition, parts),
            labels=labels,
        )


class Catalogue:
    """Rules in the order in which they are tried. Immutable; answers are remembered."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        # A cluster uses few names, but a hostile one may use many.
        self._remembered = lru_cache(maxsize=4096)(self._search)

    def lookup(self, resource: str) -> Entry | None:
        """What the resource means, None where no rule knows the name; asking again is cheap."""
        return self._remembered(resource)

    def device(self, resource: str) -> Entry | None:
        """As `lookup`, but an extended resource that no rule knows is an uncatalogued whole device."""
        entry = self.lookup(resource)
        if entry is None and is_extended(resource):
            return Entry(resource, DeviceClass.WHOLE, catalogued=False)
        return entry

    def extended_by(self, other: "Catalogue") -> "Catalogue":
        """This catalogue with the other's rules before its own: where both know a name, the other's wins."""
        return Catalogue((*other.rules, *self.rules))

    def _search(self, resource: str) -> Entry | None:
        return next((entry for rule in self.rules if (entry := rule.apply(resource)) is not None), None)


_LABEL_KEYS = tuple(field.name for field in fields(Labels))
_KEYS = ("pattern", "class", "vendor", "unit", "scheme", "role", "managed", "product", "partition", "labels")


def parse_catalogue(text: str, source: str) -> Catalogue:
    """The catalogue in YAML text; ``source`` is what errors call the file.

    Raises CatalogueError for the first thing that is wrong: malformed YAML, aliases, a file that is too
    long, an unknown key, a value of the wrong type, a class, unit or role that does not exist, a bad
    pattern, and a rule that could never apply because an earlier one matches the same names.
    """
    rules: list[Rule] = []
    lines: dict[str, int] = {}
    for record in read_records(text, source, "rules", _KEYS):
        rule = _rule(record)
        shape, name = rule.pattern.shape, rule.pattern.text
        earlier = lines.get(shape)
        if earlier is None and not rule.pattern.parts:
            earlier = next((lines[r.pattern.shape] for r in rules if r.pattern.match(name) is not None), None)
        if earlier is not None:
            record.refuse(
                "pattern", f"{name} is matched by the rule on line {earlier} already: expected it once"
            )
        lines[shape] = record.line
        rules.append(rule)
    return Catalogue(rules)


def _rule(record: Record) -> Rule:
    try:
        pattern = parse_pattern(record.text("pattern"))
    except PatternError as error:
        record.refuse("pattern", str(error))
    device_class = record.choice("class", DeviceClass)
    scheme, managed = record.text("scheme", ""), record.flag("managed")
    if not scheme and device_class in (DeviceClass.FRACTION, DeviceClass.MEMORY_POOL):
        record.refuse("scheme", f"is missing: expected the sharing scheme that decides a {device_class}")
    if not scheme and managed:
        record.refuse("managed", "expected the scheme that manages the resource as well")
    entry = Entry(
        resource=pattern.text,
        device_class=device_class,
        vendor=record.text("vendor", ""),
        unit=record.choice("unit", Unit, Unit.DEVICES),
        scheme=scheme,
        role=record.choice("role", Role, Role.COUNT),
        managed=managed,
        product=_template(record, "product", record.text("product", ""), pattern),
        partition=_template(record, "partition", record.text("partition", ""), pattern),
        labels=_labels(record, pattern),
    )
    return Rule(pattern, entry)


def _labels(record: Record, pattern: NamePattern) -> Labels:
    labels = record.record("labels", _LABEL_KEYS)
    if labels is None:
        return Labels()
    return Labels(
        *(tuple(_template(labels, name, key, pattern) for key in labels.texts(name)) for name in _LABEL_KEYS)
    )


def _template(record: Record, name: str, text: str, pattern: NamePattern) -> str:
    try:
        check_template(text, pattern.parts)
    except PatternError as error:
        record.refuse(name, str(error))
    return text
