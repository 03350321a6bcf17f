"""What is wrong with one field of an object, for the people who wrote it.

An object with a problem stays in use as far as that is safe: what cannot be read never grants anything.
"""

from dataclasses import dataclass

from fairway.printable import printable


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """``field``: its path, such as ``spec.resourceGroups[0].flavors[1].name``.

    ``message``: what was found, what was expected, how it is read meanwhile, and so what to do.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return printable(f"{self.field}: {self.message}")
