"""Products are spelled one way, and found in any."""

import pytest

from fairway.accelerators.product_names import holds, spelled
from fairway.usage.percent import percent


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"),
        ("Quadro RTX 6000/8000", "Quadro-RTX-6000-8000"),
        (" Tesla T4 ", "Tesla-T4"),
        ("", ""),
    ],
)
def test_a_product_is_spelled_as_labels_spell_it(product: str, name: str) -> None:
    assert spelled(product) == name
    assert holds(product, name)
    assert holds(name, product)


@pytest.mark.parametrize(
    ("text", "is_found"), [("", True), ("h100 80", True), ("A100", False), ("--", False), ("-80", True)]
)
def test_a_text_is_looked_for_in_either_spelling(text: str, is_found: bool) -> None:
    assert holds("NVIDIA-H100-80GB-HBM3", text) is is_found
    assert holds("NVIDIA H100 80GB HBM3", text) is is_found


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(0, 0, None), (1, 3, 33), (2, 3, 67), (1, 200, 1), (1, 201, 0)]
)
def test_percent_is_rounded_to_the_nearest(part: int, whole: int, expected: int | None) -> None:
    assert percent(part, whole) == expected
