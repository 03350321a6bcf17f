"""MIG profiles: the pieces that each kind of NVIDIA GPU can be cut into, and where on it they may lie.

A GPU is an axis of memory slices, eight on most products; an instance of a profile lies on it at one of few
starts. The tables are placements as ``nvidia-smi mig -lgipp`` prints them for A100, H100, H100 NVL and RTX
PRO 6000 Blackwell, and profiles with their largest counts as NVIDIA's MIG user guide and mig-parted list them
for the other products, whose axis has the same shape. Beside memory slices a GPU has one set of media
extensions, which a ``+me`` profile takes whole; RTX PRO GPUs have four media engines that profiles divide.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_RESOURCE = "nvidia.com/mig-"
_SHARED = ".shared"
_PROFILE = re.compile(r"([0-9]{1,2}g\.[0-9]{1,4}gb)(?:[.+]?(me\.all|me|gfx)|(-me))?")
_WORD = re.compile(r"[A-Z0-9]+")
_GIGABYTES = re.compile(r"([0-9]{1,4})GB?")
_GI = 1 << 30


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of instance: compute slices, memory slices, and the memory slices it may begin at, rising.

    ``extension``: it takes the GPU's one set of media extensions; ``media``: so many of its media engines.
    """

    name: str
    compute: int
    size: int
    starts: tuple[int, ...]
    extension: bool = False
    media: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """The pieces of one kind of GPU. ``gib``: nominal memory, as in the name of its largest profile.

    ``aliases``: names that other driver versions give to the same profiles.
    """

    gib: int
    slices: int
    profiles: tuple[Profile, ...]
    media: int = 0
    aliases: tuple[tuple[str, str], ...] = ()

    def profile(self, name: str) -> Profile | None:
        """The profile of that name, None where the table does not know it for this kind of GPU."""
        name = dict(self.aliases).get(name, name)
        return next((profile for profile in self.profiles if profile.name == name), None)

    def most(self, name: str) -> int:
        """How many instances of the profile fit on an empty GPU; 0 for one that the table does not know.

        Places alone decide, media apart: compute slices never run out before they do.
        """
        profile = self.profile(profile_name(name))
        if profile is None:
            return 0
        count = end = 0
        for start in profile.starts:
            if start >= end:
                count, end = count + 1, start + profile.size
        if profile.extension:
            count = min(count, 1)
        return min(count, self.media // profile.media) if profile.media else count


def profile_name(text: str) -> str:
    """The name of a profile from how labels and resource names spell it: ``1g.5gb.me`` is ``1g.5gb+me``.

    Takes a whole resource name (``nvidia.com/mig-1g.5gb.me``, also with ``.shared``) or only the profile.
    Text that is no profile comes back as it is.
    """
    bare = text.removeprefix(_RESOURCE).removesuffix(_SHARED)
    found = _PROFILE.fullmatch(bare)
    if found is None:
        return bare
    return found[1] + (f"+{found[2]}" if found[2] else found[3] or "")


def geometry_of(product: str, memory_bytes: int = 0, profiles: Iterable[str] = ()) -> Geometry | None:
    """What GPUs of a product can be cut into; None where that is not known for sure.

    ``product`` as labels have it (``NVIDIA-A100-SXM4-40GB``, ``nvidia-h100-80gb``). Products of one name
    come with different memory: ``memory_bytes`` of the whole GPU decides, or else a size in the product's
    name, or else which of the kinds has all the ``profiles`` that are seen on the node.
    """
    words = frozenset(_WORD.findall(product.upper()))
    kinds = next((kinds for name, kinds in _PRODUCTS if name <= words), ())
    named = [int(found[1]) * _GI for found in map(_GIGABYTES.fullmatch, words) if found]
    for size in [memory_bytes] if memory_bytes else named:
        # The driver keeps a few per cent for itself.
        near = [g for g in kinds if abs(size - g.gib * _GI) * 20 <= g.gib * _GI]
        if near:
            return min(near, key=lambda g: abs(size - g.gib * _GI))
    seen = [profile_name(name) for name in profiles]
    fitting = [g for g in kinds if all(g.profile(name) for name in seen)]
    return fitting[0] if len(fitting) == 1 and not memory_bytes else None


def most_instances(product: str, profile: str) -> int:
    """How many instances of the profile a device can be cut into; 1 where the profile is not known."""
    geometry = geometry_of(product, 0, (profile,))
    return max(1, geometry.most(profile) if geometry else 1)


def _seven(gib: int, one: int, double: int, three: int, **aliases: str) -> Geometry:
    """A GPU of eight memory and seven compute slices, from the GB in the names of its profiles."""
    return Geometry(
        gib,
        8,
        (
            Profile(f"1g.{one}gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
            Profile(f"1g.{one}gb+me", 1, 1, (0, 1, 2, 3, 4, 5, 6), extension=True),
            Profile(f"1g.{double}gb", 1, 2, (0, 2, 4, 6)),
            Profile(f"2g.{double}gb", 2, 2, (0, 2, 4)),
            Profile(f"3g.{three}gb", 3, 4, (0, 4)),
            Profile(f"4g.{three}gb", 4, 4, (0,)),
            Profile(f"7g.{gib}gb", 7, 8, (0,), extension=True),
        ),
        aliases=tuple(aliases.items()),
    )


def _rtx_pro_6000() -> Geometry:
    """Twelve memory slices; one, two or four of its four media engines, all of them (.all) or none (-me)."""
    sizes = ((1, 24, 3, (0, 3, 6, 9)), (2, 48, 6, (0, 6)), (4, 96, 12, (0,)))
    profiles: list[Profile] = []
    for compute, gb, size, starts in sizes:
        name, whole = f"{compute}g.{gb}gb", compute == 4
        profiles.append(Profile(name, compute, size, starts, extension=whole, media=compute))
        profiles.append(Profile(f"{name}+gfx", compute, size, starts, extension=whole, media=compute))
        if not whole:
            profiles.append(Profile(f"{name}+me.all", compute, size, starts, extension=True, media=4))
            profiles.append(Profile(f"{name}-me", compute, size, starts))
        if compute == 1:
            profiles.append(Profile(f"{name}+me", compute, size, starts, extension=True, media=1))
    return Geometry(96, 12, tuple(profiles), media=4)


_A100_40 = _seven(40, 5, 10, 20)
_80 = _seven(80, 10, 20, 40)
_H100_94 = _seven(94, 12, 24, 47)
_96 = _seven(96, 12, 24, 48)
_GB200_186 = _seven(186, 23, 47, 93, **{"3g.95gb": "3g.93gb", "4g.95gb": "4g.93gb", "7g.189gb": "7g.186gb"})
_GB300_278 = _seven(
    278,
    35,
    70,
    139,
    **{
        "1g.31gb": "1g.35gb",
        "1g.31gb+me": "1g.35gb+me",
        "3g.126gb": "3g.139gb",
        "4g.126gb": "4g.139gb",
        "7g.251gb": "7g.278gb",
    },
)
_A30 = Geometry(
    24,
    4,
    (
        Profile("1g.6gb", 1, 1, (0, 1, 2, 3)),
        Profile("1g.6gb+me", 1, 1, (0, 1, 2, 3), extension=True),
        Profile("2g.12gb", 2, 2, (0, 2)),
        Profile("2g.12gb+me", 2, 2, (0, 2), extension=True),
        Profile("4g.24gb", 4, 4, (0,), extension=True),
    ),
)

# By the words that a product's name has.
_PRODUCTS: tuple[tuple[frozenset[str], tuple[Geometry, ...]], ...] = (
    (frozenset({"A30"}), (_A30,)),
    (frozenset({"A100"}), (_A100_40, _80)),
    (frozenset({"A800"}), (_A100_40, _80)),
    (frozenset({"H100"}), (_80, _H100_94, _96)),
    (frozenset({"H800"}), (_80, _H100_94)),
    (frozenset({"H20"}), (_96,)),
    (frozenset({"H200"}), (_seven(141, 18, 35, 71),)),
    (frozenset({"GH200"}), (_96, _seven(144, 18, 36, 72))),
    (frozenset({"B200"}), (_seven(180, 23, 45, 90),)),
    (frozenset({"GB200"}), (_GB200_186,)),
    (frozenset({"B300"}), (_seven(269, 34, 67, 135),)),
    (frozenset({"GB300"}), (_GB300_278,)),
    (frozenset({"RTX", "PRO", "6000", "BLACKWELL"}), (_rtx_pro_6000(),)),
)
