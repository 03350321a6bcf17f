"""Karmada's Lua machine: Lua 5.1, the same libraries taken away, the same one added, the same conversions.

Mirrors pkg/resourceinterpreter/customized/declarative/luavm (lua.go) and pkg/util/lifted/lua at f8fdd02, on
PUC-Rio's Lua 5.1 instead of gopher-lua. Karmada ends a script after a second; here it is after so many
instructions, which is the same on every machine.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from lupa import lua51

from fairway.kube.objects import KubeStruct
from tests.interpreters.go_json import Json, to_json, with_empty_maps
from tests.interpreters.kube_library import FUNCTIONS, KubeError

_T = TypeVar("_T")
Object = dict[str, Any]  # whatever a YAML file holds
_INSTRUCTIONS = 5_000_000
_FORBIDDEN = (
    "collectgarbage",
    "dofile",
    "getfenv",
    "getmetatable",
    "load",
    "loadfile",
    "loadstring",
    "rawequal",
    "rawget",
    "rawset",
    "setfenv",
    "setmetatable",
    "module",
    "newproxy",
)
_PREPARE = """
local functions, instructions = ...
local sethook, preload, load = debug.sethook, package.preload, loadstring
local kube, kept = {}, " _G package table string math os "
for name, call in pairs(functions) do
  kube[name] = function(...)
    local done, value = call(...)
    if not done then error(value, 0) end
    return value
  end
end
for name, value in pairs(_G) do
  if type(value) == "table" and not string.find(kept, " " .. name .. " ", 1, true) then
    _G[name] = nil
  end
end
python = nil
for name in pairs(package.loaded) do package.loaded[name] = nil end
package.loaders = {package.loaders[1]}
package.path, package.cpath, package.seeall, package.loadlib = nil, nil, nil, nil
preload.kube = function() return kube end
os = {time = os.time, date = os.date}
for _, name in ipairs({"gsub", "rep", "dump"}) do
  string[name] = function() error("string." .. name .. " is not supported by Karmada") end
end
return function(script, name, ...)
  assert(load(script))()
  sethook(function() error("the script takes too long") end, "", instructions)
  local results = {pcall(_G[name], ...)}
  sethook()
  return results[1], results[2], results[3]
end
"""


class ScriptError(Exception):
    """A script failed, as Karmada would report it in an event of the object."""


class Toleration(KubeStruct, frozen=True):
    """One of a node claim."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeClaim(KubeStruct, frozen=True):
    """Where pods may run."""

    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] = ()
    hard_node_affinity: dict[str, Any] | None = None


class Requirements(KubeStruct, frozen=True):
    """What one replica asks for."""

    node_claim: NodeClaim | None = None
    resource_request: dict[str, str] = msgspec.field(default_factory=dict)
    priority_class_name: str = ""
    namespace: str = ""


class Component(KubeStruct, frozen=True):
    """One component of a binding."""

    name: str
    replicas: int
    replica_requirements: Requirements | None = None


class Reference(KubeStruct, frozen=True):
    """One dependency."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class LuaVm:
    """The operations of one kind; ``scripts`` as in ``spec.customizations``, by field."""

    def __init__(self, scripts: Mapping[str, Mapping[str, str]]) -> None:
        self._scripts = {field: each["luaScript"] for field, each in scripts.items()}
        self._lua = lua51.LuaRuntime(
            unpack_returned_tuples=True, register_eval=False, register_builtins=False
        )
        functions = self._lua.table_from({name: self._callable(call) for name, call in FUNCTIONS.items()})
        self._run = self._lua.execute(_PREPARE, functions, _INSTRUCTIONS)
        for name in _FORBIDDEN:
            self._lua.globals()[name] = None

    def operations(self) -> set[str]:
        """The fields that have a script."""
        return set(self._scripts)

    def components(self, obj: Object) -> list[Component]:
        """GetComponents. Raises ScriptError."""
        found = self._called("componentResource", "GetComponents", obj)
        if found is None:
            return []
        components = _converted(found, list[Component], struct=False)
        for component in components:
            _check_int32(component.replicas)
        return components

    def replicas(self, obj: Object) -> tuple[int, Requirements | None]:
        """GetReplicas. Raises ScriptError."""
        found = self._called("replicaResource", "GetReplicas", obj)
        number, asked = found if isinstance(found, tuple) else (found, None)
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise ScriptError(f"result {number!r} is not number")
        _check_int32(number)
        if asked is None:
            return int(number), None
        return int(number), _converted(asked, Requirements, struct=True)

    def revised(self, obj: Object, replicas: int) -> Object:
        """ReviseReplica. Raises ScriptError."""
        found = self._called("replicaRevision", "ReviseReplica", obj, replicas)
        return _converted(found, Object, obj, struct=True)

    def healthy(self, obj: Object) -> bool:
        """InterpretHealth. Raises ScriptError."""
        found = self._called("healthInterpretation", "InterpretHealth", obj)
        if not isinstance(found, bool):
            raise ScriptError(f"result {found!r} is not bool")
        return found

    def reflected(self, obj: Object) -> Object:
        """ReflectStatus. Raises ScriptError."""
        return _converted(self._called("statusReflection", "ReflectStatus", obj), Object, obj, struct=True)

    def aggregated(self, obj: Object, items: list[Json]) -> Object:
        """AggregateStatus. Raises ScriptError."""
        found = self._called("statusAggregation", "AggregateStatus", obj, items)
        return _converted(found, Object, struct=True)

    def dependencies(self, obj: Object) -> set[tuple[str, str, str]]:
        """GetDependencies as (kind, namespace, name), checked as Karmada checks them. Raises ScriptError."""
        found = self._called("dependencyInterpretation", "GetDependencies", obj)
        references = _converted(found, list[Reference], struct=False)
        for each in references:
            if not (each.api_version and each.kind and each.name):
                raise ScriptError(f"dependency without apiVersion, kind or name: {each}")
        return {(each.kind, each.namespace, each.name) for each in references}

    def run(self, script: str, name: str, *arguments: Json) -> object:
        """The function ``name`` of any script. Raises ScriptError."""
        done, *results = self._run(script, name, *(self._decoded(argument) for argument in arguments))
        if not done:
            raise ScriptError(str(results[0]))
        return tuple(results) if len(results) > 1 and results[1] is not None else results[0]

    def _called(self, field: str, name: str, *arguments: Json) -> object:
        # Through JSON, as Karmada hands them over: all numbers are floating point.
        return self.run(self._scripts[field], name, *json.loads(json.dumps(arguments)))

    def _decoded(self, value: Json) -> object:
        if isinstance(value, dict):
            # A null is no entry at all.
            return self._lua.table_from({key: self._decoded(v) for key, v in value.items() if v is not None})
        if isinstance(value, list):
            return self._lua.table_from([self._decoded(entry) for entry in value if entry is not None])
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def _callable(self, call: Callable[..., Json | float]) -> Callable[..., tuple[bool, object]]:
        def called(*arguments: object) -> tuple[bool, object]:
            try:
                return True, self._decoded(call(*arguments))
            except KubeError as error:
                return False, str(error)

        return called


def _converted(value: object, to: type[_T], *references: Json, struct: bool) -> _T:
    try:
        return msgspec.convert(with_empty_maps(to_json(value), *references, struct=struct), to)
    except ValueError as error:
        raise ScriptError(str(error)) from error


def _check_int32(number: float) -> None:
    if number != int(number) or not -(2**31) <= number < 2**31:
        raise ScriptError(f"{number} is no int32")
