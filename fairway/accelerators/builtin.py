"""The catalogue that comes with Fairway, and the one that a file of the administrator extends it to.

The one place that opens files of rules; the packaged one is read once.
"""

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from fairway.accelerators.catalogue import Catalogue, CatalogueError, parse_catalogue

_NAME = "catalogue.yaml"


@lru_cache(maxsize=1)
def builtin_catalogue() -> Catalogue:
    """The packaged rules; an administrator's file extends them with `Catalogue.extended_by`."""
    return parse_catalogue((files("fairway.accelerators") / _NAME).read_text("utf-8"), _NAME)


def extended_catalogue(file: Path | None) -> Catalogue:
    """The packaged rules, with those of the file before them if there is one. Raises CatalogueError."""
    if file is None:
        return builtin_catalogue()
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise CatalogueError(f"{file}: no such file; expected a YAML file in UTF-8") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{file}: {error}; expected a YAML file in UTF-8") from None
    return builtin_catalogue().extended_by(parse_catalogue(text, str(file)))
