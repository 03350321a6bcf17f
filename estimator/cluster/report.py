"""How a mirror tells of an object that it cannot read whole."""

from collections.abc import Callable

Report = Callable[[str, str, str], None]
"""Takes the resource (``nodes``), the object's key, and what is wrong and what is made of it."""
