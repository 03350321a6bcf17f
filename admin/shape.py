"""A workload said in flags: so many pods of so many devices, of a product, inside one domain."""

import re
from dataclasses import dataclass
from fractions import Fraction

from admin.printable import counted
from admin.stated_resources import refusal
from fairway.resources import MEMORY, ResourceError, parse_amounts

_TOPOLOGY = re.compile(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3}){1,2}")
_DECIMAL = re.compile(r"[01]?\.[0-9]{1,6}|[01]")
_MOST = 1_000_000


class ShapeError(ValueError):
    """The flags do not make up a shape; the message names them and says what was expected."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the flags say; amounts as Kubernetes writes them, 0 and empty where a flag is not given.

    ``nodes``: pods of the gang. ``fraction``: of one device, between 0 and 1. ``within``: a topology level by
    its label key or short name.
    """

    gpus: int = 0
    nodes: int = 1
    product: str = ""
    within: str = ""
    cpu: str = ""
    memory: str = ""
    resources: tuple[tuple[str, str], ...] = ()
    fraction: Fraction = Fraction(0)
    gpu_memory: str = ""
    tpu_topology: str = ""
    copies: int = 1
    namespace: str = ""

    def __post_init__(self) -> None:
        shares = bool(self.fraction or self.gpu_memory)
        kinds = [bool(self.gpus), bool(self.tpu_topology), shares]
        if sum(kinds) > 1:
            raise ShapeError(
                "--gpus, --tpu-topology and --fraction or --gpu-memory exclude each other: give one"
            )
        if self.fraction and self.gpu_memory:
            raise ShapeError("--fraction and --gpu-memory both say how much of a device: give one")
        if self.fraction and not 0 < self.fraction < 1:
            raise ShapeError("--fraction: expected more than 0 and less than 1, such as 0.5")
        if self.tpu_topology and not _TOPOLOGY.fullmatch(self.tpu_topology):
            raise ShapeError(f"--tpu-topology {self.tpu_topology!r}: expected AxB or AxBxC, such as 4x4")
        if not any((*kinds, self.cpu, self.memory, self.resources)):
            raise ShapeError(
                "nothing is asked for: give a workload with --file, or --gpus, --fraction, --gpu-memory, "
                "--tpu-topology, --cpu, --memory or --resource"
            )
        for flag, number in (("--gpus", self.gpus), ("--nodes", self.nodes), ("--copies", self.copies)):
            if not (0 if flag == "--gpus" else 1) <= number <= _MOST:
                raise ShapeError(f"{flag} {number}: expected a positive number of at most {_MOST:,}")
        for flag, name, text in (
            ("--cpu", "cpu", self.cpu),
            ("--memory", MEMORY, self.memory),
            ("--gpu-memory", MEMORY, self.gpu_memory),
            *(("--resource", *stated) for stated in self.resources),
        ):
            if text:
                _check(flag, name, text)

    def __str__(self) -> str:
        asked = [
            f"{counted(self.gpus, 'GPU')}" if self.gpus else "",
            f"{float(self.fraction):g} of a GPU" if self.fraction else "",
            f"{self.gpu_memory} of a GPU's memory" if self.gpu_memory else "",
            f"{self.cpu} CPUs" if self.cpu else "",
            f"{self.memory} memory" if self.memory else "",
            *(f"{text} {name}" for name, text in self.resources),
        ]
        what = ", ".join(part for part in asked if part)
        pods = f"a TPU slice of {self.tpu_topology}" if self.tpu_topology else counted(self.nodes, "pod")
        of = f" of {what}" if what else ""
        product = f", on {self.product}" if self.product else ""
        within = f", within one {self.within}" if self.within else ""
        return f"{pods}{of}{product}{within}"


def amount_of(name: str, text: str) -> int:
    """The amount that the text states, as in `fairway.resources`. Raises ShapeError."""
    try:
        return parse_amounts({name: text})[name]
    except ResourceError as error:
        raise ShapeError(f"{error}") from None


def _check(flag: str, name: str, text: str) -> None:
    """Raises ShapeError for what no pod may ask for, and for nothing at all."""
    stated = f"{flag} {name}={text}" if flag == "--resource" else f"{flag} {text}"
    why = refusal(name, text)
    if why:
        raise ShapeError(f"{stated}: {why}")
    if not amount_of(name, text):
        raise ShapeError(f"{stated}: expected more than 0, or leave it out")


def parse_resource(text: str) -> tuple[str, str]:
    """``NAME=AMOUNT``. Raises ShapeError."""
    name, equals, amount = text.rpartition("=")
    if not equals or not name or not amount:
        raise ShapeError(f"--resource {text!r}: expected NAME=AMOUNT, such as nvidia.com/gpu=8")
    return name, amount


def parse_fraction(text: str) -> Fraction:
    """A decimal between 0 and 1, exactly. Raises ShapeError."""
    if not _DECIMAL.fullmatch(text):
        raise ShapeError(f"--fraction {text!r}: expected more than 0 and less than 1, such as 0.5")
    return Fraction(text)
