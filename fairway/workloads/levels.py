"""Topology levels and sizes as annotations state them: text that nobody has checked yet."""

from fairway.selectors import is_label_key, parse_int64
from fairway.workloads.fields import MAX_COUNT, Problems, shown

_LONGEST_KEY = 253 + 1 + 63


def read_level(text: str, field: str, problems: Problems) -> str:
    """The level that ``text`` names: the key of a node label.

    Text that can be no label key is told and kept all the same: no node has such a label, so what is required
    there fits nowhere, which is what a scheduler makes of it.
    """
    if not is_label_key(text):
        problems.append(f"{field}: {shown(text)} is no node label; expected a key such as example.com/rack")
    return text[:_LONGEST_KEY]


def read_size(text: str, field: str, problems: Problems) -> int | None:
    """The number of pods that ``text`` states, at least 1; None, with a problem, where it states none."""
    size = parse_int64(text)
    if size is None or size < 1:
        problems.append(f"{field}: {shown(text)} is no number of pods: expected 1 to {MAX_COUNT}")
        return None
    return min(size, MAX_COUNT)
