"""All checks, and all that has to be read for them."""

from collections.abc import Mapping
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Role
from admin.doctor.karmada_kinds import KARMADA_KINDS
from admin.doctor.kinds import PLATFORM_KINDS, Kind
from admin.doctor.objects import OBJECTS
from admin.doctor.platform import PLATFORM

CHECKS: Final[tuple[Check, ...]] = (*PLATFORM, *OBJECTS)

KINDS: Final[Mapping[Role, tuple[Kind, ...]]] = {
    **PLATFORM_KINDS,
    Role.KARMADA: (*PLATFORM_KINDS[Role.KARMADA], *KARMADA_KINDS),
}
