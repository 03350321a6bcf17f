"""Kubernetes' quantities for the CEL engine of the tests, as far as admission expressions use them.

Mirrors k8s.io/apiserver/pkg/cel/library/quantity.go of Kubernetes 1.36.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from fairway.quantity import QuantityError, parse_nano

_Quantity = dict[str, str]


def quantity_functions(cel: ModuleType) -> list[Any]:
    """``quantity``, ``isQuantity``, ``isGreaterThan``, ``isLessThan`` for ``cel_expr_python.cel``."""
    types = cel.Type
    boxed = types.Map(types.DYN, types.DYN)

    def function(name: str, result: object, parameters: list[object], run: Callable[..., object]) -> object:
        overload = cel.Overload(
            f"{name}_0",
            return_type=result,
            parameters=parameters,
            is_member=parameters[0] is boxed,
            impl=run,
        )
        return cel.FunctionDecl(name, [overload])

    return [
        function("quantity", types.DYN, [types.STRING], _quantity),
        function("isQuantity", types.BOOL, [types.STRING], _is_quantity),
        function("isGreaterThan", types.BOOL, [boxed, boxed], lambda a, b: _nano(a) > _nano(b)),
        function("isLessThan", types.BOOL, [boxed, boxed], lambda a, b: _nano(a) < _nano(b)),
    ]


def _quantity(text: str) -> _Quantity:
    parse_nano(text)
    return {"quantity": text}


def _is_quantity(text: str) -> bool:
    try:
        parse_nano(text)
    except QuantityError:
        return False
    return True


def _nano(quantity: _Quantity) -> int:
    return parse_nano(quantity["quantity"])
