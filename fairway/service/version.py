"""Which release this is."""

from importlib import metadata


def release() -> str:
    """The installed version, such as ``0.1.0``; ``0.0.0+source`` in a checkout that is not installed."""
    try:
        return metadata.version("fairway")
    except metadata.PackageNotFoundError:
        return "0.0.0+source"
