"""``--config FILE``: flags of a command in a file, under the same names. Flags on the command line win.

One file serves both ways: what only the way there has is passed over on the way back.
"""

import re
from pathlib import Path
from typing import Final

import click

from admin.cli import Failed
from fairway.kube.yaml_text import NoYaml, yaml_value

_FLAG: Final = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}")
_SCALARS: Final = (str, int, float, bool)


def read_config(
    context: click.Context, parameter: click.Parameter, file: Path | None, others: click.Command | None = None
) -> None:
    """Take the file's values as defaults of the command; flags of ``others`` are passed over.

    Raises Failed, naming file and key.
    """
    del parameter
    if file is None:
        return
    try:
        values = yaml_value(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Failed(f"--config {file}: no such file; expected YAML") from None
    except (OSError, UnicodeDecodeError, NoYaml) as error:
        raise Failed(f"--config {file}: {error}; expected one YAML document") from None
    if not isinstance(values, dict):
        raise Failed(f"--config {file}: expected flags as keys, such as 'karmada-server: https://...'")
    known = _flags(context.command)
    passed_over = _flags(others) if others is not None else {}
    defaults: dict[str, object] = {}
    for number, (key, value) in enumerate(values.items(), 1):
        flag = known.get(str(key))
        if flag is None and str(key) in passed_over:
            continue
        if flag is None or flag.name is None:
            # A file given by mistake may hold credentials.
            named = key if isinstance(key, str) and _FLAG.fullmatch(key) else f"entry {number}"
            raise Failed(
                f"--config {file}: {named}: no such flag; expected one of {', '.join(sorted(known))}"
            )
        defaults[flag.name] = _value(f"--config {file}: {key}", value, flag)
    context.default_map = {**defaults, **(context.default_map or {})}


def _flags(command: click.Command) -> dict[str, click.Parameter]:
    return {
        option.removeprefix("--"): each
        for each in command.params
        for option in each.opts
        if option.startswith("--") and option not in ("--config", "--help")
    }


def _value(where: str, value: object, flag: click.Parameter) -> object:
    is_repeated = isinstance(flag, click.Option) and flag.multiple
    if is_repeated and isinstance(value, list) and all(isinstance(each, _SCALARS) for each in value):
        return [str(each) for each in value]
    if not is_repeated and isinstance(value, _SCALARS):
        return value if isinstance(value, bool) else str(value)
    raise Failed(f"{where}: expected {'a list of texts' if is_repeated else 'one value'}")
