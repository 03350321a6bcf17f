"""A part of a whole in percent, rounded alike wherever it is shown."""


def percent(part: int, whole: int) -> int | None:
    """To the nearest whole number, halves up; None of nothing."""
    return (100 * part + whole // 2) // whole if whole else None
