"""PCI addresses of devices, which NVML, Linux and drivers write each in their own way."""

import re

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)


def pci_address(text: str) -> str:
    """The address in one form, for comparing; empty where the text is none.

    NVML writes its domain with eight digits and in capitals, Linux with four and in small letters.
    """
    match = _ADDRESS.fullmatch(text)
    return "" if match is None else f"{int(match[1], 16):04x}:{match[2].lower()}"
