"""Amounts for people: as Kubernetes prints them, in steps that can be read."""

from fairway.resources import CPU, EPHEMERAL_STORAGE, MEMORY, format_amount

_MI = 1024 * 1024


def amount_text(resource: str, amount: int) -> str:
    """The amount as Kubernetes prints it, in steps that people can read: from 1Mi whole Mi, rounded down."""
    return format_amount(resource, amount - amount % _step(resource, amount))


def lacking_text(resource: str, amount: int) -> str:
    """As `amount_text`, but rounded up, so that having so much more is enough."""
    return format_amount(resource, amount + -amount % _step(resource, amount))


def _step(resource: str, amount: int) -> int:
    if resource in (MEMORY, EPHEMERAL_STORAGE) and amount >= _MI:
        return _MI
    return 10 if resource == CPU and amount >= 1000 else 1
