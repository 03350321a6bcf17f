"""MIG geometry against a brute force that lays instances slice by slice and shares no code with it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product as every

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.accelerators.mig import (
    NOTHING,
    Instance,
    Taken,
    fits,
    layouts,
    more,
    most_sets,
    potential,
    surely_empty,
    taken_by,
)
from fairway.accelerators.mig_geometry import Geometry, geometry_of, profile_name

CI = settings(max_examples=200, derandomize=True, deadline=None)
MI = 1 << 20

Placement = tuple[str, int]

# --- an oracle: sets of slices, every combination of places tried -----------------------------------------

SEVEN = {
    "1g": (1, range(7)),
    "1g double": (2, (0, 2, 4, 6)),
    "2g": (2, (0, 2, 4)),
    "3g": (4, (0, 4)),
    "4g": (4, (0,)),
    "7g": (8, (0,)),
}
COMPUTE = {"1g": 1, "1g double": 1, "2g": 2, "3g": 3, "4g": 4, "7g": 7}
SEVEN_NAMES = {
    "1g": "1g.5gb",
    "1g double": "1g.10gb",
    "2g": "2g.10gb",
    "3g": "3g.20gb",
    "4g": "4g.20gb",
    "7g": "7g.40gb",
}


def slices(kind: str, start: int) -> frozenset[int]:
    return frozenset(range(start, start + SEVEN[kind][0]))


def places(kinds: Iterable[str]) -> list[Placement]:
    return [(kind, start) for kind in kinds for start in SEVEN[kind][1]]


def valid(layout: Iterable[Placement]) -> bool:
    chosen = list(layout)
    used = [s for kind, start in chosen for s in slices(kind, start)]
    return len(used) == len(set(used)) and sum(COMPUTE[kind] for kind, _ in chosen) <= 7


def all_layouts(kinds: Iterable[str], used: frozenset[int] = frozenset()) -> Iterator[frozenset[Placement]]:
    """Every set of places that do not overlap, whatever is used already kept free."""
    free = [p for p in places(kinds) if not slices(*p) & used]

    def extend(
        i: int, chosen: tuple[Placement, ...], taken: frozenset[int]
    ) -> Iterator[frozenset[Placement]]:
        if i == len(free):
            yield frozenset(chosen)
            return
        yield from extend(i + 1, chosen, taken)
        if not slices(*free[i]) & taken:
            yield from extend(i + 1, (*chosen, free[i]), taken | slices(*free[i]))

    return extend(0, (), frozenset())


def maximal_layouts(kinds: list[str]) -> set[frozenset[Placement]]:
    return {
        layout
        for layout in all_layouts(kinds)
        if valid(layout) and not any(valid({*layout, p}) for p in places(kinds) if p not in layout)
    }


def multisets(found: Iterable[frozenset[Placement]]) -> set[tuple[tuple[str, int], ...]]:
    return {tuple(sorted(Counter(kind for kind, _ in layout).items())) for layout in found}


def a100() -> Geometry:
    found = geometry_of("NVIDIA-A100-SXM4-40GB")
    assert found is not None
    return found


def named(found: Iterable[frozenset[Instance]]) -> set[frozenset[Placement]]:
    kinds = {name: kind for kind, name in SEVEN_NAMES.items()}
    return {frozenset((kinds[i.profile], i.start) for i in layout) for layout in found}


PLAIN = ["1g", "2g", "3g", "4g", "7g"]


# --- layouts ---------------------------------------------------------------------------------------------


def test_there_are_19_layouts_of_the_plain_profiles_in_14_multisets() -> None:
    truth = maximal_layouts(PLAIN)
    assert (len(truth), len(multisets(truth))) == (19, 14)
    assert named(layouts(a100(), [SEVEN_NAMES[kind] for kind in PLAIN])) == truth


def test_there_are_78_layouts_with_the_1g_of_double_memory_in_38_multisets() -> None:
    truth = maximal_layouts(list(SEVEN))
    assert (len(truth), len(multisets(truth))) == (78, 38)
    assert named(layouts(a100(), SEVEN_NAMES.values())) == truth


def test_the_14_multisets_are_those_that_nvidia_draws() -> None:
    found = multisets(named(layouts(a100(), [SEVEN_NAMES[kind] for kind in PLAIN])))
    assert found == {
        (("1g", 7),),
        (("1g", 5), ("2g", 1)),
        (("1g", 3), ("2g", 2)),
        (("1g", 1), ("2g", 3)),
        (("1g", 4), ("3g", 1)),
        (("1g", 3), ("3g", 1)),
        (("1g", 2), ("2g", 1), ("3g", 1)),
        (("1g", 1), ("2g", 1), ("3g", 1)),
        (("2g", 2), ("3g", 1)),
        (("3g", 2),),
        (("1g", 3), ("4g", 1)),
        (("1g", 1), ("2g", 1), ("4g", 1)),
        (("3g", 1), ("4g", 1)),
        (("7g", 1),),
    }


def test_places_run_out_before_compute_slices_do() -> None:
    assert all(sum(COMPUTE[kind] for kind, _ in layout) <= 7 for layout in all_layouts(SEVEN))


def test_two_3g_leave_one_compute_slice_that_nothing_can_use() -> None:
    taken = taken_by(a100(), [Instance("3g.20gb", 0), Instance("3g.20gb", 4)]).found
    assert [more(a100(), name, taken) for name in SEVEN_NAMES.values()] == [0] * 6


# --- how many more ---------------------------------------------------------------------------------------


def test_golden_v7_two_small_instances_block_both_places_of_the_3g() -> None:
    taken = taken_by(a100(), [Instance("1g.5gb", 0), Instance("1g.5gb", 4)])
    assert taken.problems == ()
    assert taken.found == Taken(0b0001_0001)
    assert more(a100(), "3g.20gb", taken.found) == 0
    assert more(a100(), "2g.10gb", taken.found) == 1
    assert more(a100(), "1g.5gb", taken.found) == 5


@pytest.mark.parametrize("kind", SEVEN)
def test_how_many_more_is_right_for_every_mask(kind: str) -> None:
    for bits in every((0, 1), repeat=8):
        used = frozenset(i for i, bit in enumerate(bits) if bit)
        truth = max(len(layout) for layout in all_layouts([kind], used))
        assert more(a100(), SEVEN_NAMES[kind], Taken(sum(1 << i for i in used))) == truth


@CI
@given(
    st.sets(st.integers(0, 7)), st.dictionaries(st.sampled_from(list(SEVEN)), st.integers(0, 3), max_size=3)
)
def test_several_profiles_fit_together_where_some_layout_has_them_all(
    used: set[int], wanted: dict[str, int]
) -> None:
    taken = Taken(sum(1 << i for i in used))
    counts = [Counter(k for k, _ in layout) for layout in all_layouts(wanted, frozenset(used))]
    truth = any(all(has[kind] >= count for kind, count in wanted.items()) for has in counts)
    names = {SEVEN_NAMES[kind]: count for kind, count in wanted.items()}
    assert fits(a100(), names, taken) == truth
    asked = {kind: count for kind, count in wanted.items() if count}
    sets = max((min(has[k] // n for k, n in asked.items()) for has in counts), default=0) if asked else 0
    assert most_sets(a100(), names, taken) == sets


@pytest.mark.parametrize(
    ("wanted", "sets"),
    [
        ({}, 0),
        ({"1g.5gb": 0}, 0),
        ({"1g.5gb": 1}, 7),
        ({"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}, 1),
        ({"3g.20gb": 1, "4g.20gb": 1}, 1),
        ({"3g.20gb": 1, "1g.5gb": 1}, 1),
        ({"2g.10gb": 1, "1g.5gb": 1}, 2),
        ({"1g.5gb+me": 1, "1g.5gb": 6}, 1),
        ({"1g.5gb+me": 2}, 0),
        ({"1g.5gb.me": 1, "1g.5gb+me": 1}, 0),
        ({"1g.5gb": 100_000}, 0),
        ({"9g.90gb": 1}, 0),
        ({"9g.90gb": 1, "1g.5gb": 1}, 0),
    ],
)
def test_whole_sets_on_an_empty_a100(wanted: dict[str, int], sets: int) -> None:
    assert most_sets(a100(), wanted) == sets


def test_nothing_wanted_fits_on_a_full_gpu() -> None:
    assert fits(a100(), {"1g.5gb": 0}, Taken(255))


def test_one_instance_at_most_has_the_media_extensions() -> None:
    one = taken_by(a100(), [Instance("1g.5gb+me", 3)])
    assert one == taken_by(a100(), [Instance("nvidia.com/mig-1g.5gb.me", 3)])
    assert one.found == Taken(0b1000, extension=True)
    assert (more(a100(), "1g.5gb+me"), more(a100(), "1g.5gb+me", one.found)) == (1, 0)
    assert more(a100(), "1g.5gb", one.found) == 6


@pytest.mark.parametrize(
    ("instance", "problem"),
    [
        (Instance("9g.90gb", 0), "MIG instance 9g.90gb at 0: the profile is not in the table"),
        (Instance("1g.10gb+gfx", 0), "MIG instance 1g.10gb+gfx at 0: the profile is not in the table"),
        (Instance("3g.20gb", 1), "MIG instance 3g.20gb at 1: expected it to begin at 0 or 4"),
        (Instance("1g.5gb", 7), "MIG instance 1g.5gb at 7: expected it to begin at 0 or 1 or 2 or 3"),
        (Instance("1g.5gb", -1), "MIG instance 1g.5gb at -1: expected it to begin at 0"),
        (Instance("2g.10gb", 0), "MIG instance 2g.10gb at 0: expected a place beside the other instances"),
        (Instance("1g.5gb+me", 2), "MIG instance 1g.5gb+me at 2: expected a place beside the other"),
    ],
)
def test_an_instance_that_cannot_be_makes_the_gpu_count_as_full(instance: Instance, problem: str) -> None:
    read = taken_by(a100(), [Instance("1g.5gb+me", 1), instance])
    assert len(read.problems) == 1
    assert read.problems[0].startswith(problem)
    assert all(more(a100(), name, read.found) == 0 for name in SEVEN_NAMES.values())


def test_bits_beyond_the_axis_take_nothing() -> None:
    assert more(a100(), "1g.5gb", Taken(1 << 40)) == 7


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
    assert {name: more(geometry, name) for name in counts} == counts


def test_a30_places_lie_on_four_memory_slices() -> None:
    geometry = geometry_of("NVIDIA-A30", 24576 * MI)
    assert geometry is not None
    taken = taken_by(geometry, [Instance("1g.6gb", 1)]).found
    assert [more(geometry, name, taken) for name in ("1g.6gb", "2g.12gb", "4g.24gb")] == [3, 1, 0]


def test_rtx_pro_instances_share_four_media_engines() -> None:
    geometry = geometry_of("NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition")
    assert geometry is not None
    hungry = taken_by(geometry, [Instance("1g.24gb+me.all", 0)]).found
    assert hungry == Taken(0b111, extension=True, media=4)
    assert [more(geometry, name, hungry) for name in ("1g.24gb", "1g.24gb-me", "2g.48gb", "2g.48gb-me")] == [
        0,
        3,
        0,
        1,
    ]
    apart = taken_by(geometry, [Instance("1g.24gb", 3), Instance("1g.24gb", 6)]).found
    assert [more(geometry, name, apart) for name in ("1g.24gb", "2g.48gb")] == [2, 0]


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


# --- without starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "in_use", "empty"),
    [
        (8, {}, 8),
        (8, {"1g.5gb": 3}, 5),
        (8, {"1g.5gb": 3, "7g.40gb": 2}, 3),
        (2, {"1g.5gb": 14}, 0),
        (2, {"1g.5gb": -1}, 2),
        (0, {}, 0),
    ],
)
def test_each_instance_in_use_may_lie_on_a_gpu_of_its_own(
    gpus: int, in_use: dict[str, int], empty: int
) -> None:
    assert surely_empty(gpus, in_use) == empty


def test_empty_gpus_could_be_cut_into_any_one_profile() -> None:
    read = potential(a100(), 3, ["1g.5gb", "nvidia.com/mig-3g.20gb", "5g.25gb"])
    assert read.found == {"1g.5gb": 21, "nvidia.com/mig-3g.20gb": 6}
    assert read.problems == ("MIG profile 5g.25gb: is not in the table, so it counts only as it is cut now",)


def test_an_empty_gpu_is_what_nothing_is_taken_of() -> None:
    assert taken_by(a100(), []).found == NOTHING
