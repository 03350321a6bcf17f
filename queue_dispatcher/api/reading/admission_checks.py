"""Reads which checks a ClusterQueue asks for.

What cannot be read keeps workloads waiting: a check that goes unasked would admit what nobody has approved.
"""

import re
from collections.abc import Iterable
from typing import Final

from queue_dispatcher.api.admission_check import MAX_CHECKS, AdmissionCheck
from queue_dispatcher.api.objects import AdmissionCheckSpec
from queue_dispatcher.api.reading.fields import Problems, duration_ms, shown

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""As Kubernetes wants the name part of an annotation's key."""


def read_admission_checks(
    stated: Iterable[AdmissionCheckSpec], field: str, problems: Problems
) -> tuple[AdmissionCheck, ...]:
    """The checks, in order; of equal names the first. More than `MAX_CHECKS` are read all the same."""
    read: dict[str, AdmissionCheck] = {}
    for index, one in enumerate(stated):
        where = f"{field}[{index}]"
        if one.name in read:
            problems.add(f"{where}.name", f"{shown(one.name)} is named before; left out")
            continue
        if not _NAME.fullmatch(one.name):
            expected = "expected letters, digits, '-', '_' and '.', at most 63"
            problems.add(f"{where}.name", f"{shown(one.name)}: {expected}; nobody can answer, so all wait")
        timeout_ms = duration_ms(one.timeout, None, f"{where}.timeout", problems)
        read[one.name] = AdmissionCheck(one.name, timeout_ms)
    if len(read) > MAX_CHECKS:
        problems.add(field, f"{len(read)} checks: expected at most {MAX_CHECKS}; all are asked for")
    return tuple(read.values())
