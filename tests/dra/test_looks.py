"""What a selector can depend on, and how much work it can make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.dra.cel import cel_selectors
from fairway.dra.devices import AttributeValue, Device, DeviceId, Kind
from fairway.dra.looks import is_too_much, looked_at
from fairway.dra.selection import Selection, Unknown

D = "gpu.example.com"


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("true", set()),
        (f"device.driver == '{D}'", set()),
        ("device.allowMultipleAllocations", set()),
        (f"device.attributes['{D}'].model == 'H100'", {f"{D}/model"}),
        (f'device.attributes["{D}"]["model"] == "H100"', {f"{D}/model"}),
        (f"device . attributes [ '{D}' ] . model == 'H100'", {f"{D}/model"}),
        (f"device.attributes['{D}'].?model.orValue('x') == 'x'", {f"{D}/model"}),
        (f"device.attributes['{D}'][?'model'].hasValue()", {f"{D}/model"}),
        (f"has(device.attributes['{D}'].model)", {f"{D}/model"}),
        (f"'model' in device.attributes['{D}']", {f"{D}/model"}),
        (f"'model' in device.attributes['{D}'].list", {f"{D}/list"}),
        (f"device.capacity['{D}'].memory.compareTo(quantity('40Gi')) >= 0", {f"{D}/memory"}),
        (
            f"device.attributes['{D}'].a == device.attributes['{D}'].b && device.driver == 'x'",
            {f"{D}/a", f"{D}/b"},
        ),
    ],
)
def test_plain_mentions_are_all_that_counts(expression: str, names: set[str]) -> None:
    assert looked_at(expression) == frozenset(names)


@pytest.mark.parametrize(
    "expression",
    [
        "device == device",
        "size(device) > 0",
        f"device.attributes['{D}'].all(k, k != 'x')",
        f"device.attributes['{D}'] == device.attributes['{D}']",
        f"'{D}' in device.attributes",
        "device.attributes[device.driver].model == 'x'",
        f"device.attributes['{D}']['mo' + 'del'] == 'x'",
        f"device.attributes['a' + '{D}'].model == 'x'",
        f"cel.bind(d, device, d.attributes['{D}'].secret == 'x')",
        f"'device.attributes[' + device.attributes['{D}'].y + '].x' == ''",
        f"device.attributes['''{D}'''].x == 1",
        f"device.attributes['{D}\\u002e'].x == 1",
        f"[device][0].attributes['{D}'].x == 1",
    ],
)
def test_anything_else_may_look_at_everything(expression: str) -> None:
    assert looked_at(expression) is None


@pytest.mark.parametrize(
    ("expression", "too_much"),
    [
        (f"device.attributes['{D}'].model == 'H100'", False),
        (f"cel.bind(a, device.attributes['{D}'], a.x && a.y)", False),
        (" && ".join([f"device.attributes['{D}'].model != 'A100'"] * 100), False),
        ("".join(f"cel.bind(x{i}, {'+'.join([f'x{i}'] * 20)}," for i in range(8)), True),
        ("'aaaaaaaaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')" * 12, True),
        ("[1,2,3].all(a, " * 12, True),
    ],
)
def test_what_multiplies_is_bounded(expression: str, too_much: bool) -> None:
    assert is_too_much(expression) is too_much


def test_what_takes_too_long_has_no_verdict_and_does_not_fail_the_pod() -> None:
    pytest.importorskip("cel_expr_python", reason="the extra [dra] is not installed")
    expression = "'a'" + ".replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')" * 20 + " == ''"
    verdict = Selection(cel_selectors()).matches((expression,), Device(DeviceId(D, "p", "d")))
    assert verdict == Unknown("a selector may take too long to evaluate; make it simpler")


names = st.sampled_from(["model", "other", "id"])
values = st.sampled_from(["x", "y"])


@given(names, values, st.dictionaries(names, values), st.dictionaries(names, values))
def test_devices_that_agree_on_what_is_looked_at_have_one_verdict(
    name: str, value: str, first: dict[str, str], second: dict[str, str]
) -> None:
    pytest.importorskip("cel_expr_python", reason="the extra [dra] is not installed")
    expression = f"device.attributes['{D}'].?{name}.orValue('') == '{value}'"
    seen = looked_at(expression)
    assert seen is not None
    devices = [
        Device(
            DeviceId(D, "p", "d"),
            attributes=tuple((f"{D}/{k}", AttributeValue(Kind.STRING, v)) for k, v in sorted(one.items())),
        )
        for one in (first, second)
    ]
    selector = cel_selectors()(expression)
    verdicts = [selector.matches(device) for device in devices]
    parts = [tuple(pair for pair in device.attributes if pair[0] in seen) for device in devices]
    if parts[0] == parts[1]:
        assert verdicts[0] == verdicts[1]
