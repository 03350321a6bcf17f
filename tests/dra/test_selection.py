"""Selectors: remembered verdicts, what happens without an engine, and a real engine where it is installed."""

from dataclasses import dataclass, field

import pytest

from fairway.dra.cel import cel_selectors
from fairway.dra.devices import AttributeValue, Capacity, Device, DeviceId, Kind
from fairway.dra.selection import Selection, Unknown, Verdict, without_cel

DRIVER = "gpu.example.com"
GI = 2**30 * 10**9


def gpu(name: str = "gpu-0", model: str = "H100") -> Device:
    return Device(
        DeviceId(DRIVER, "a", name),
        attributes=(
            (f"{DRIVER}/healthy", AttributeValue(Kind.BOOL, True)),
            (f"{DRIVER}/lanes", AttributeValue(Kind.LIST, (AttributeValue(Kind.INT, 4),))),
            (f"{DRIVER}/model", AttributeValue(Kind.STRING, model)),
            (f"{DRIVER}/numa", AttributeValue(Kind.INT, 1)),
            (f"{DRIVER}/odd", AttributeValue(Kind.VERSION, "nine")),
            (f"{DRIVER}/version", AttributeValue(Kind.VERSION, "9.0.1-rc.2+build")),
            ("pci.example.com/root", AttributeValue(Kind.STRING, "r0")),
        ),
        capacities=((f"{DRIVER}/cores", Capacity(1_500_000_000)), (f"{DRIVER}/memory", Capacity(80 * GI))),
    )


@dataclass
class Recorder:
    """A selector that says yes, and notes whom it was asked about."""

    asked: list[str] = field(default_factory=list)
    looks_at: frozenset[str] | None = None

    def matches(self, device: Device) -> Verdict:
        self.asked.append(device.id.name)
        return True


def test_equal_devices_are_asked_about_once() -> None:
    recorder = Recorder()
    selection = Selection(lambda _: recorder)
    for device in (gpu("a"), gpu("b"), gpu("c", "A100"), gpu("a")):
        assert selection.matches(("x",), device) is True
    assert recorder.asked == ["a", "c"]


def test_numbers_and_truth_values_are_not_confused() -> None:
    recorder = Recorder()
    selection = Selection(lambda _: recorder)
    for value in (AttributeValue(Kind.INT, 1), AttributeValue(Kind.BOOL, True)):
        device = Device(DeviceId(DRIVER, "a", str(value.kind)), attributes=((f"{DRIVER}/x", value),))
        selection.matches(("x",), device)
    assert recorder.asked == ["int", "bool"]


def test_selectors_are_asked_in_order_up_to_the_first_that_fails() -> None:
    verdicts: dict[str, Verdict] = {"yes": True, "no": False, "what": Unknown("who knows")}

    @dataclass
    class Fixed:
        verdict: Verdict
        looks_at: frozenset[str] | None = None

        def matches(self, device: Device) -> Verdict:
            return self.verdict

    selection = Selection(lambda expression: Fixed(verdicts[expression]))
    assert selection.matches((), gpu()) is True
    assert selection.matches(("yes", "no", "what"), gpu()) is False
    assert selection.matches(("yes", "what", "no"), gpu()) == Unknown("who knows")


def test_without_an_engine_nothing_is_known_and_the_remedy_is_named() -> None:
    verdict = Selection(without_cel).matches(("device.driver == 'x'" + " " * 100,), gpu())
    assert isinstance(verdict, Unknown)
    assert "install fairway with the extra [dra]" in verdict.reason
    assert len(verdict.reason) < 250


def test_an_endless_selector_is_refused() -> None:
    verdict = Selection(lambda _: Recorder()).matches(("x" * 10241,), gpu())
    assert isinstance(verdict, Unknown)


@pytest.fixture(scope="module")
def selection() -> Selection:
    pytest.importorskip("cel_expr_python", reason="the extra [dra] is not installed")
    return Selection(cel_selectors())


class TestEngine:
    """Real CEL; the package is optional."""

    @pytest.mark.parametrize(
        ("expression", "matches"),
        [
            ("device.driver == 'gpu.example.com'", True),
            ("device.allowMultipleAllocations", False),
            ("device.attributes['gpu.example.com'].model == 'H100'", True),
            ("device.attributes['gpu.example.com'].healthy", True),
            ("device.attributes['gpu.example.com'].numa in [0, 2]", False),
            ("4 in device.attributes['gpu.example.com'].lanes", True),
            ("device.attributes['pci.example.com'].root.startsWith('r')", True),
            ("device.attributes['gpu.example.com'].model.lowerAscii() == 'h100'", True),
            ("device.attributes['gpu.example.com'].model.matches('^[AH]100$')", True),
            ("cel.bind(d, device.attributes['gpu.example.com'], d.healthy && d.numa == 1)", True),
            ("device.attributes['gpu.example.com'].?none.orValue('x') == 'x'", True),
            ("device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) == 0", True),
            ("device.capacity['gpu.example.com'].memory == quantity('81920Mi')", True),
            ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('80Gi'))", False),
            ("device.capacity['gpu.example.com'].memory.isLessThan(quantity('80Gi').add(1))", True),
            ("sign(device.capacity['gpu.example.com'].memory.sub(quantity('80Gi'))) == 0", True),
            ("quantity('3').sub(quantity('1')).add(quantity('2')).sub(1) == quantity('3')", True),
            ("device.capacity['gpu.example.com'].memory.asInteger() == 85899345920", True),
            ("device.capacity['gpu.example.com'].cores.isInteger()", False),
            ("isQuantity('10x') || !isQuantity('10Mi')", False),
            ("device.attributes['gpu.example.com'].version.isLessThan(semver('9.0.1'))", True),
            ("device.attributes['gpu.example.com'].version.isGreaterThan(semver('9.0.1-rc.1.9'))", True),
            ("device.attributes['gpu.example.com'].version == semver('9.0.1-rc.2')", True),
            ("semver('1.0.0-alpha').isGreaterThan(semver('1.0.0-1'))", True),
            ("semver('10.2.3').major() + semver('10.2.3').minor() + semver('10.2.3').patch() == 15", True),
            ("isSemver('1.2') || !isSemver('1.2.3')", False),
            # An unknown domain is an empty map, but it is not there.
            ("has(device.attributes['none.example.com'].model)", False),
            ("!has(device.attributes['none.example.com'].model)", True),
            ("'model' in device.attributes['none.example.com']", False),
            ("'none.example.com' in device.attributes", False),
            ("!('none.example.com' in device.attributes)", True),
        ],
    )
    def test_verdicts(self, selection: Selection, expression: str, matches: bool) -> None:
        assert selection.matches((expression,), gpu()) is matches

    @pytest.mark.parametrize(
        ("expression", "fails", "text"),
        [
            ("device.attributes['gpu.example.com'].none == 1", True, "none"),
            ("device.attributes['none.example.com'].model == 'x'", True, "model"),
            ("device.attributes['gpu.example.com'].model", True, "expected true or false"),
            ("device.attributes['gpu.example.com'].odd.major() == 9", False, "expected a semantic version"),
            ("device.capacity['gpu.example.com'].cores.asInteger() == 1", False, "not a whole number"),
            ("device.capacity['gpu.example.com'].cores.major() == 1", False, "expected a semantic version"),
            ("sign(device.attributes['gpu.example.com'].version) == 1", False, "expected a quantity"),
            ("sign(quantity('10x')) == 1", False, "is not a Kubernetes quantity"),
            ("quantity('10').sign() == 1", False, "is not understood"),
            ("semver('x') == semver('y')", False, "is not a semantic version"),
            ("device.attributes['gpu.example.com'].model > 3", False, "overload"),
            ("device.attributes['gpu.example.com'].model.find('H') == 'H'", False, "is not understood"),
            ("device.attributes[", False, "is not understood"),
            ("", False, "is not understood"),
            pytest.param("(" * 5000, False, "is not understood", id="deeply nested"),
            pytest.param("'\ud800' == device.driver", False, "is not understood", id="no UTF-8"),
            (
                "'x.example.com' in device.attributes || device.attributes['y.example.com'].z",
                False,
                "y.example.com",
            ),
        ],
    )
    def test_what_has_no_verdict_says_why(
        self, selection: Selection, expression: str, fails: bool, text: str
    ) -> None:
        verdict = selection.matches((expression,), gpu())
        assert isinstance(verdict, Unknown)
        assert verdict.fails is fails
        assert text in verdict.reason
