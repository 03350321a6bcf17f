"""The catalogue that comes with Fairway, read once: the one place that opens the packaged file."""

from functools import lru_cache
from importlib.resources import files

from fairway.accelerators.catalogue import Catalogue, parse_catalogue

_NAME = "catalogue.yaml"


@lru_cache(maxsize=1)
def builtin_catalogue() -> Catalogue:
    """The packaged rules; an administrator's file extends them with `Catalogue.extended_by`."""
    return parse_catalogue((files("fairway.accelerators") / _NAME).read_text("utf-8"), _NAME)
