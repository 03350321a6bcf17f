"""The flags that say a workload: a file, or a shape."""

from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from admin.cli import Command, Failed, WholeNumber

if TYPE_CHECKING:
    from admin.asking import Asked


@dataclass(frozen=True, slots=True)
class ShapeFlags:
    """As given; None and empty where a flag is not."""

    file: Path | None
    gpus: int
    nodes: int
    product: str
    within: str
    cpu: str
    memory: str
    resource: tuple[str, ...]
    fraction: str
    gpu_memory: str
    tpu_topology: str
    copies: int | None
    namespace: str

    @property
    def is_given(self) -> bool:
        """Whether anything is asked about at all."""
        return self.file is not None or self._names_shape

    @property
    def _names_shape(self) -> bool:
        return bool(
            self.gpus
            or self.product
            or self.within
            or self.cpu
            or self.memory
            or self.resource
            or self.fraction
            or self.gpu_memory
            or self.tpu_topology
            or self.nodes != 1
        )

    def asked(self) -> "Asked":
        """What is asked about. Reads the file. Raises Failed."""
        from admin.asking import Asked
        from admin.shape import Shape, ShapeError, parse_fraction, parse_resource
        from admin.workload_file import WorkloadError, read_workload_file

        try:
            if self.file is not None:
                if self._names_shape:
                    raise Failed("--file says all of the workload: give either it or a shape")
                return Asked.of(read_workload_file(self.file), self.copies or 0)
            shape = Shape(
                gpus=self.gpus,
                nodes=self.nodes,
                product=self.product,
                within=self.within,
                cpu=self.cpu,
                memory=self.memory,
                resources=tuple(parse_resource(text) for text in self.resource),
                **({"fraction": parse_fraction(self.fraction)} if self.fraction else {}),
                gpu_memory=self.gpu_memory,
                tpu_topology=self.tpu_topology,
                copies=self.copies or 1,
                namespace=self.namespace,
            )
        except (ShapeError, WorkloadError) as error:
            raise Failed(str(error)) from None
        return Asked(shape, shape.copies)


def shape_flags(command: Command) -> Command:
    """The options that `ShapeFlags` holds; the command gets them as ``flags``."""

    @wraps(command)
    def call(
        file: Path | None,
        gpus: int,
        nodes: int,
        product: str,
        within: str,
        cpu: str,
        memory: str,
        resource: tuple[str, ...],
        fraction: str,
        gpu_memory: str,
        tpu_topology: str,
        copies: int | None,
        namespace: str,
        **rest: object,
    ) -> None:
        shape = (gpus, nodes, product, within, cpu, memory, resource, fraction, gpu_memory, tpu_topology)
        command(flags=ShapeFlags(file, *shape, copies, namespace), **rest)

    for decorate in reversed(
        (
            click.option(
                "-f", "--file", type=click.Path(path_type=Path), help="A workload, in YAML or JSON."
            ),
            click.option(
                "--gpus", type=WholeNumber(0), default=0, metavar="N", help="Whole devices of each pod."
            ),
            click.option(
                "--nodes",
                type=WholeNumber(1),
                default=1,
                metavar="N",
                help="Pods of the gang. Default: 1.",
            ),
            click.option(
                "--product", default="", metavar="TEXT", help="Only on products whose name holds TEXT."
            ),
            click.option(
                "--within",
                default="",
                metavar="LEVEL",
                help="All pods in one domain: rack, block, a label key.",
            ),
            click.option("--cpu", default="", metavar="AMOUNT", help="CPU of each pod, such as 8 or 500m."),
            click.option("--memory", default="", metavar="AMOUNT", help="Memory of each pod, such as 64Gi."),
            click.option(
                "--resource",
                multiple=True,
                metavar="NAME=AMOUNT",
                help="Any resource of each pod; repeat it.",
            ),
            click.option(
                "--fraction", default="", metavar="0.5", help="Part of one shared device for each pod."
            ),
            click.option(
                "--gpu-memory", default="", metavar="AMOUNT", help="Memory of one shared device for each pod."
            ),
            click.option("--tpu-topology", default="", metavar="AxB", help="A whole TPU slice, such as 4x4."),
            click.option(
                "--copies",
                type=WholeNumber(1),
                default=None,
                metavar="N",
                help="Copies wanted. Default: 1, or as the file says.",
            ),
            click.option("--namespace", default="", metavar="NAME", help="Whose quotas hold."),
        )
    ):
        call = decorate(call)
    return call
