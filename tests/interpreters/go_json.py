"""Lua tables as Karmada turns them into JSON, with everything that goes wrong on the way.

Mirrors layeh.com/gopher-json (Encode) and Karmada's pkg/resourceinterpreter/customized/declarative/luavm
(lua_convert.go) at f8fdd02: a table that is reached twice is refused, an empty one is an empty list until the
objects it came from say otherwise, and one that they do not know is left out.
"""

from collections.abc import Sequence

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class ConversionError(ValueError):
    """Karmada could not make JSON of a Lua value, or not the type that it wants."""


def to_json(value: object) -> Json:
    """A Lua value as JSON; every table may be reached only once. Raises ConversionError."""
    return _encoded(value, set())


def _encoded(value: object, seen: set[str]) -> Json:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if not hasattr(value, "items"):
        raise ConversionError(f"cannot encode {value!r} to JSON")
    # str() of a table is its address, lupa's objects for one table differ.
    if str(value) in seen:
        raise ConversionError("cannot encode recursively nested tables to JSON")
    seen.add(str(value))
    entries = dict(value.items())
    if all(isinstance(key, str) for key in entries):
        found = {str(key): _encoded(entry, seen) for key, entry in entries.items()}
        return found or []
    if list(entries) != list(range(1, len(entries) + 1)):
        raise ConversionError("cannot encode sparse array, or mixed or invalid key types")
    return [_encoded(entry, seen) for entry in entries.values()]


def with_empty_maps(value: Json, *references: Json, struct: bool) -> Json:
    """Empty lists put right: to empty maps where a reference has one, away where none has either."""
    if value == []:
        return {} if struct else []
    lists: set[tuple[str, ...]] = set()
    maps: set[tuple[str, ...]] = set()
    for reference in references:
        _find_empty(reference, (), lists, maps)
    return _mended(value, (), lists, maps)


def _find_empty(
    value: Json, path: tuple[str, ...], lists: set[tuple[str, ...]], maps: set[tuple[str, ...]]
) -> None:
    children: Sequence[tuple[tuple[str, ...], Json]]
    if isinstance(value, dict):
        children = [((*path, key), entry) for key, entry in value.items()]
    elif isinstance(value, list):
        children = [(path, entry) for entry in value]
    else:
        return
    for where, entry in children:
        if entry == []:
            lists.add(where)
        elif entry == {}:
            maps.add(where)
        else:
            _find_empty(entry, where, lists, maps)


def _mended(
    value: Json, path: tuple[str, ...], lists: set[tuple[str, ...]], maps: set[tuple[str, ...]]
) -> Json:
    def kept(where: tuple[str, ...], entry: Json) -> bool:
        return entry != [] or where in maps or where in lists

    def mended(where: tuple[str, ...], entry: Json) -> Json:
        return {} if entry == [] and where in maps else _mended(entry, where, lists, maps)

    if isinstance(value, dict):
        return {key: mended((*path, key), entry) for key, entry in value.items() if kept((*path, key), entry)}
    if isinstance(value, list):
        return [mended(path, entry) for entry in value if kept(path, entry)]
    return value
