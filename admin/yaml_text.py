"""What the command writes as YAML, which kubectl reads back as it is meant."""

import re

import msgspec
import yaml


class _Dumper(yaml.SafeDumper):
    """Puts in quotes as well what kubectl takes for a boolean or a number, and PyYAML for text."""


for _tag, _written, _first in (
    ("bool", r"[yYnN]", "yYnN"),
    ("int", r"[-+]?0[oO][0-7]+|[-+]?0[xXbB][0-9a-fA-F]+", "-+0"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    # Numbers may have a _ anywhere.
    ("float", r"(?=.*_)[-+]?[0-9_.][-+0-9a-fA-FxXoO_.]*", "-+.0123456789"),
):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_written})\Z"), list(_first))


def yaml_text(value: object, *, width: int = 110) -> str:
    """Of any of the command's results, or of an object; ``width``: where lines are broken at the earliest."""
    made: str = yaml.dump(
        msgspec.to_builtins(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width
    )
    return made
