"""Selectors evaluated by a real CEL engine, the optional package ``cel-expr-python``.

The engine is Google's own (C++). It gets the device as plain maps, and quantities and versions as
`fairway.dra.cel_values` has them. Kubernetes answers an unknown domain with an empty map, not with an error,
which no plain map does; so an expression that fails is asked once more with every text in it as a domain. One
that succeeds at once needs no second look: a failure is only ever absorbed where it decides nothing.

Mirrors k8s.io/dynamic-resource-allocation/cel/compile.go of Kubernetes 1.36.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Protocol, cast

from fairway.dra import cel_values
from fairway.dra.devices import Device
from fairway.dra.looks import looked_at
from fairway.dra.selection import Compile, Selector, Undecided, Unknown, Verdict, without_cel

# A quote always begins a match, closed or not, so that each character is looked at once: in a comment nobody
# closes them, and whoever writes thousands there shall not be looked at for seconds.
_TEXT = re.compile(r"\"((?:[^\"\\\n]|\\.?)*+)\"?|'((?:[^'\\\n]|\\.?)*+)'?")
_LOOKS_AT_DOMAINS = re.compile(
    r"\bin\s+device\s*\.\s*(?:attributes|capacity)\b(?!\s*[\[.])"
    r"|\bdevice\s*\.\s*(?:attributes|capacity)\s*\.\s*(?:all|exists|exists_one|filter|map|size)\s*\("
    r"|\bsize\s*\(\s*device\b"
)
_MISSING = "NOT_FOUND"
_REFUSED = (RuntimeError, ValueError, TypeError)
"""What the engine raises: its own errors, and those of the binding about texts that are not UTF-8."""


class _Type(Protocol):
    def name(self) -> str: ...


class _Value(Protocol):
    def type(self) -> _Type: ...
    def value(self) -> object: ...


class _Expression(Protocol):
    def eval(self, *, data: Mapping[str, object]) -> _Value: ...


class _Env(Protocol):
    def compile(self, expression: str) -> _Expression: ...


class _Types(Protocol):
    BOOL: _Type
    DYN: _Type
    INT: _Type
    STRING: _Type

    def Map(self, key: _Type, value: _Type) -> _Type: ...


class _Engine(Protocol):
    NewEnv: Callable[..., _Env]
    FunctionDecl: Callable[..., object]
    Overload: Callable[..., object]
    Type: _Types


def cel_selectors() -> Compile:
    """Compiles selectors with the engine; where the package is not installed, every verdict is Unknown."""
    try:
        engine = cast("_Engine", importlib.import_module("cel_expr_python.cel"))
        extensions = [
            cast(
                "Callable[[], object]",
                getattr(importlib.import_module(f"cel_expr_python.ext.{module}"), name),
            )()
            for module, name in (
                ("ext_bindings", "ExtBindings"),
                ("ext_optional", "ExtOptional"),
                ("ext_strings", "ExtStrings"),
            )
        ]
    except ImportError:
        return without_cel
    env = engine.NewEnv(
        variables={"device": engine.Type.DYN}, extensions=extensions, functions=_functions(engine)
    )

    def compile_selector(expression: str) -> Selector:
        try:
            return _CelSelector(expression, env.compile(expression))
        except _REFUSED as error:
            reason = f"selector {_shown(expression)} is not understood: {_first_line(str(error))}"
            return Undecided(Unknown(reason))

    return compile_selector


def cel_when_needed() -> Compile:
    """The same, but the engine, which takes tens of megabytes, is loaded for the first selector."""
    engine: list[Compile] = []

    def compile_selector(expression: str) -> Selector:
        if not engine:
            engine.append(cel_selectors())
        return engine[0](expression)

    return compile_selector


class _CelSelector:
    def __init__(self, expression: str, compiled: _Expression) -> None:
        self._shown = _shown(expression)
        self._compiled = compiled
        self._domains = {double or single for double, single in _TEXT.findall(expression)}
        self.looks_at = looked_at(expression)
        self._looks_at_domains = _LOOKS_AT_DOMAINS.search(expression) is not None

    def matches(self, device: Device) -> Verdict:
        value = cel_values.device_value(device)
        verdict = self._evaluate(value)
        if not isinstance(verdict, Unknown):
            return verdict
        if self._looks_at_domains:
            return Unknown(verdict.reason)
        for name in ("attributes", "capacity"):
            domains = value[name]
            if isinstance(domains, dict):
                domains |= {domain: {} for domain in self._domains if domain not in domains}
        return self._evaluate(value)

    def _evaluate(self, device: Mapping[str, object]) -> Verdict:
        try:
            result = self._compiled.eval(data={"device": device})
            kind, value = result.type().name(), result.value()
        except _REFUSED as error:
            return Unknown(f"selector {self._shown}: {_first_line(str(error))}")
        if isinstance(value, bool):
            return value
        text = str(value)
        if kind.lower().strip("*") != "error":
            return Unknown(f"selector {self._shown} is {kind}: expected true or false", fails=True)
        return Unknown(f"selector {self._shown}: {_first_line(text)}", fails=text.startswith(_MISSING))


def _functions(engine: _Engine) -> list[object]:
    types = engine.Type
    text, number, truth, anything = types.STRING, types.INT, types.BOOL, types.DYN
    boxed = types.Map(anything, anything)

    def function(name: str, *overloads: tuple[Callable[..., object], _Type, list[_Type]]) -> object:
        return engine.FunctionDecl(
            name,
            [
                engine.Overload(
                    f"{name}_{index}",
                    return_type=result,
                    parameters=parameters,
                    # Kubernetes declares this one alone as a function, sign(q).
                    is_member=parameters[0] is boxed and name != "sign",
                    impl=implementation,
                )
                for index, (implementation, result, parameters) in enumerate(overloads)
            ],
        )

    return [
        function("quantity", (cel_values.quantity, anything, [text])),
        function("isQuantity", (cel_values.is_quantity, truth, [text])),
        function("semver", (cel_values.semver, anything, [text])),
        function("isSemver", (cel_values.is_semver, truth, [text])),
        function("compareTo", (cel_values.compare_to, number, [boxed, boxed])),
        function("isGreaterThan", (cel_values.is_greater_than, truth, [boxed, boxed])),
        function("isLessThan", (cel_values.is_less_than, truth, [boxed, boxed])),
        function(
            "add",
            (cel_values.add, anything, [boxed, boxed]),
            (cel_values.add_int, anything, [boxed, number]),
        ),
        function(
            "sub",
            (cel_values.sub, anything, [boxed, boxed]),
            (cel_values.sub_int, anything, [boxed, number]),
        ),
        function("sign", (cel_values.sign, number, [boxed])),
        function("isInteger", (cel_values.is_integer, truth, [boxed])),
        function("asInteger", (cel_values.as_integer, number, [boxed])),
        function("major", (cel_values.major, number, [boxed])),
        function("minor", (cel_values.minor, number, [boxed])),
        function("patch", (cel_values.patch, number, [boxed])),
    ]


def _shown(expression: str) -> str:
    return repr(expression if len(expression) <= 80 else expression[:77] + "...")


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:200]
