"""What GPUs can be cut into by MIG, and how many of each piece fit on one: tables, and trying every place."""

from itertools import combinations

import pytest

from fairway.accelerators.mig_geometry import Geometry, Profile, geometry_of, profile_name

MI = 1 << 20


def a100() -> Geometry:
    found = geometry_of("NVIDIA-A100-SXM4-40GB")
    assert found is not None
    return found


def fit_together(profile: Profile, starts: tuple[int, ...]) -> bool:
    used = [start + offset for start in starts for offset in range(profile.size)]
    return len(used) == len(set(used)) and profile.compute * len(starts) <= 7


@pytest.mark.parametrize("profile", [p for p in a100().profiles if not p.extension], ids=lambda p: p.name)
def test_as_many_fit_as_there_are_places_beside_each_other(profile: Profile) -> None:
    choices = [c for n in range(8) for c in combinations(profile.starts, n) if fit_together(profile, c)]
    assert a100().most(profile.name) == max(map(len, choices))


def test_of_what_is_no_profile_none_fits() -> None:
    assert [a100().most(name) for name in ("9g.90gb", "1g.10gb+gfx", "")] == [0, 0, 0]
    assert a100().most("nvidia.com/mig-1g.5gb.me") == 1


# --- the tables ------------------------------------------------------------------------------------------

# Product label, memory in MiB, and the largest number of each profile as NVIDIA's user guide has it.
TABLES: list[tuple[str, int, dict[str, int]]] = [
    (
        "NVIDIA-A100-SXM4-40GB",
        40960,
        {"1g.5gb": 7, "1g.5gb+me": 1, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    ),
    (
        "NVIDIA-A100-SXM4-80GB",
        81920,
        {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    ),
    (
        "NVIDIA-H100-80GB-HBM3",
        81559,
        {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    ),
    (
        "NVIDIA-H100-NVL",
        95830,
        {"1g.12gb": 7, "1g.12gb+me": 1, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
    ),
    (
        "NVIDIA-GH200-480GB",
        97871,
        {"1g.12gb": 7, "1g.12gb+me": 1, "1g.24gb": 4, "2g.24gb": 3, "3g.48gb": 2, "4g.48gb": 1, "7g.96gb": 1},
    ),
    (
        "NVIDIA-GH200-144G-HBM3e",
        0,
        {
            "1g.18gb": 7,
            "1g.18gb+me": 1,
            "1g.36gb": 4,
            "2g.36gb": 3,
            "3g.72gb": 2,
            "4g.72gb": 1,
            "7g.144gb": 1,
        },
    ),
    (
        "NVIDIA-H200",
        143771,
        {
            "1g.18gb": 7,
            "1g.18gb+me": 1,
            "1g.35gb": 4,
            "2g.35gb": 3,
            "3g.71gb": 2,
            "4g.71gb": 1,
            "7g.141gb": 1,
        },
    ),
    (
        "NVIDIA-B200",
        183359,
        {
            "1g.23gb": 7,
            "1g.23gb+me": 1,
            "1g.45gb": 4,
            "2g.45gb": 3,
            "3g.90gb": 2,
            "4g.90gb": 1,
            "7g.180gb": 1,
        },
    ),
    (
        "NVIDIA-B300-SXM6-AC",
        275040,
        {
            "1g.34gb": 7,
            "1g.34gb+me": 1,
            "1g.67gb": 4,
            "2g.67gb": 3,
            "3g.135gb": 2,
            "4g.135gb": 1,
            "7g.269gb": 1,
        },
    ),
    (
        "NVIDIA-GB200",
        189471,
        {
            "1g.23gb": 7,
            "1g.23gb+me": 1,
            "1g.47gb": 4,
            "2g.47gb": 3,
            "3g.93gb": 2,
            "3g.95gb": 2,
            "7g.186gb": 1,
        },
    ),
    (
        "NVIDIA-GB300",
        284208,
        {"1g.35gb": 7, "1g.31gb": 7, "1g.70gb": 4, "2g.70gb": 3, "3g.139gb": 2, "4g.126gb": 1, "7g.278gb": 1},
    ),
    ("NVIDIA-A30", 24576, {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1}),
    (
        "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        97887,
        {
            "1g.24gb": 4,
            "1g.24gb+me": 1,
            "1g.24gb+gfx": 4,
            "1g.24gb+me.all": 1,
            "1g.24gb-me": 4,
            "2g.48gb": 2,
            "2g.48gb+gfx": 2,
            "2g.48gb+me.all": 1,
            "2g.48gb-me": 2,
            "4g.96gb": 1,
            "4g.96gb+gfx": 1,
        },
    ),
]


@pytest.mark.parametrize(("product", "memory_mib", "counts"), TABLES)
def test_an_empty_gpu_holds_as_many_of_each_profile_as_its_vendor_says(
    product: str, memory_mib: int, counts: dict[str, int]
) -> None:
    geometry = geometry_of(product, memory_mib * MI)
    assert geometry is not None
    assert {name: geometry.most(name) for name in counts} == counts


@pytest.mark.parametrize(
    ("product", "memory_mib", "profiles", "gib"),
    [
        ("A100-SXM4-40GB", 0, (), 40),
        ("NVIDIA-A100-80GB-PCIe", 0, (), 80),
        ("nvidia-h100-80gb", 0, (), 80),
        ("a100", 40960, (), 40),
        ("NVIDIA-H100-PCIe", 0, (), None),
        ("NVIDIA-H100-PCIe", 0, ("1g.12gb", "3g.47gb"), 94),
        ("NVIDIA-H100-PCIe", 0, ("nvidia.com/mig-3g.48gb",), 96),
        ("NVIDIA-H100-PCIe", 0, ("9g.90gb",), None),
        ("NVIDIA-H100-PCIe", 0, ("1g.12gb",), None),
        ("NVIDIA-GH200-480GB", 0, (), None),
        ("NVIDIA-A100-SXM-64GB", 65536, (), None),
        ("NVIDIA-H20", 97871, (), 96),
        ("NVIDIA-H20-3e", 143771, (), None),
        ("NVIDIA-H200-NVL", 143771, (), 141),
        ("NVIDIA-H2000", 81920, (), None),
        ("Tesla-T4", 15360, (), None),
        ("", 0, (), None),
    ],
)
def test_product_and_memory_tell_the_kind_of_gpu_or_nothing_does(
    product: str, memory_mib: int, profiles: tuple[str, ...], gib: int | None
) -> None:
    found = geometry_of(product, memory_mib * MI, profiles)
    assert (found.gib if found else None) == gib


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1g.5gb", "1g.5gb"),
        ("nvidia.com/mig-1g.5gb", "1g.5gb"),
        ("nvidia.com/mig-1g.5gb.shared", "1g.5gb"),
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me"),
        ("nvidia.com/mig-1g.10gb.me.shared", "1g.10gb+me"),
        ("1g.10gbme", "1g.10gb+me"),
        ("1g.10gb+me", "1g.10gb+me"),
        ("nvidia.com/mig-1g.24gb.me.all", "1g.24gb+me.all"),
        ("nvidia.com/mig-2g.48gb.gfx", "2g.48gb+gfx"),
        ("nvidia.com/mig-2g.48gb-me", "2g.48gb-me"),
        ("1c.3g.20gb", "1c.3g.20gb"),
        ("INVALID", "INVALID"),
        ("", ""),
    ],
)
def test_profiles_are_read_as_resources_and_labels_spell_them(text: str, name: str) -> None:
    assert profile_name(text) == name
