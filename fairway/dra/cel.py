"""Selectors evaluated by a real CEL engine, the optional package ``cel-expr-python``.

The engine is Google's own (C++). It gets the device as plain maps, and quantities and versions as
`fairway.dra.cel_values` has them. Kubernetes answers an unknown domain with an empty map, not with an error,
which no plain map does; so an expression that fails is asked once more with every text in it as a domain. One
that succeeds at once needs no second look: a failure is only ever absorbed where it decides nothing.

Mirrors k8s.io/dynamic-resource-allocation/cel/compile.go of Kubernetes 1.36.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from fairway.dra import cel_values
from fairway.dra.devices import Device
from fairway.dra.looks import looked_at
from fairway.dra.selection import Compile, Selector, Undecided, Unknown, Verdict, shown, without_cel

if TYPE_CHECKING:
    from cel_expr_python.cel import Expression

# A quote always begins a match, closed or not, so that each character is looked at once: in a comment nobody
# closes them, and whoever writes thousands there shall not be looked at for seconds.
_TEXT = re.compile(r"\"((?:[^\"\\\n]|\\.?)*+)\"?|'((?:[^'\\\n]|\\.?)*+)'?")
_LOOKS_AT_DOMAINS = re.compile(
    r"\bin\s+device\s*\.\s*(?:attributes|capacity)\b(?!\s*[\[.])"
    r"|\bdevice\s*\.\s*(?:attributes|capacity)\s*\.\s*(?:all|exists|exists_one|filter|map|size)\s*\("
    r"|\bsize\s*\(\s*device\b"
)
_MISSING = "NOT_FOUND"
ENGINE_ERRORS = (RuntimeError, ValueError, TypeError)
"""What the engine raises: its own errors, and those of the binding about texts that are not UTF-8."""


def cel_selectors() -> Compile:
    """Compiles selectors with the engine; where the package is not installed, every verdict is Unknown."""
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext.ext_bindings import ExtBindings
        from cel_expr_python.ext.ext_optional import ExtOptional
        from cel_expr_python.ext.ext_strings import ExtStrings
    except ImportError:
        return without_cel
    types = cel.Type
    of = {"text": types.STRING, "int": types.INT, "bool": types.BOOL, "any": types.DYN}
    of["boxed"] = types.Map(types.DYN, types.DYN)
    functions = [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    f"{name}_{index}",
                    return_type=of[result],
                    parameters=[of[kind] for kind in kinds.split()],
                    # Kubernetes declares this one alone as a function, sign(q).
                    is_member=kinds.startswith("boxed") and name != "sign",
                    impl=implementation,
                )
                for index, (implementation, result, kinds) in enumerate(overloads)
            ],
        )
        for name, overloads in cel_values.FUNCTIONS.items()
    ]
    env = cel.NewEnv(
        variables={"device": types.DYN},
        extensions=[ExtBindings(), ExtOptional(), ExtStrings()],
        functions=functions,
    )

    def compile_selector(expression: str) -> Selector:
        try:
            return _CelSelector(expression, env.compile(expression))
        except ENGINE_ERRORS as error:
            reason = f"selector {shown(expression)} is not understood: {_first_line(str(error))}"
            return Undecided(Unknown(reason))

    return compile_selector


def cel_when_needed() -> Compile:
    """The same, but the engine, which takes tens of megabytes, is loaded for the first selector."""
    engine = cache(cel_selectors)
    return lambda expression: engine()(expression)


class _CelSelector:
    def __init__(self, expression: str, compiled: "Expression") -> None:
        self._shown = shown(expression)
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
        except ENGINE_ERRORS as error:
            return Unknown(f"selector {self._shown}: {_first_line(str(error))}")
        if isinstance(value, bool):
            return value
        text = str(value)
        if kind.lower().strip("*") != "error":
            return Unknown(f"selector {self._shown} is {kind}: expected true or false", fails=True)
        return Unknown(f"selector {self._shown}: {_first_line(text)}", fails=text.startswith(_MISSING))


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:200]
