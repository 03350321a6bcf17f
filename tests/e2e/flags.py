"""The flags that stand in the manifests, with addresses and files of this machine in place of theirs."""

from collections.abc import Iterator, Mapping, Sequence

Own = Mapping[str, str | Sequence[str] | None]
"""By name of the flag, without dashes: its value, its values, or None for none of it."""

_IN_PODS = ("=/etc/", ".svc")


def localised(shipped: Sequence[str], own: Own) -> list[str]:
    """``own`` replaces flags by name, adds what is not there, and leaves out where None.

    Raises AssertionError where a flag stays that means something only in a pod.
    """
    kept = [flag for flag in shipped if flag.removeprefix("--").partition("=")[0] not in own]
    absent = [flag for flag in kept if any(mark in flag for mark in _IN_PODS)]
    assert not absent, f"{absent} name files or addresses of a pod; say here what stands for them"
    return [*kept, *_written(own)]


def _written(own: Own) -> Iterator[str]:
    for name, value in own.items():
        if value is None:
            continue
        for each in [value] if isinstance(value, str) else value:
            yield f"--{name}={each}"
