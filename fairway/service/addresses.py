"""Where a listener binds, as Go programs write it: ``:8080``, ``127.0.0.1:8080``, ``[::1]:8080``, ``0``."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

MAX_PORT: Final = 65535
_FORM = 'expected ":PORT", "HOST:PORT", "[IPV6]:PORT", or "0" to disable'


class AddressError(ValueError):
    """A text that is no bind address; the message quotes it and says what was expected."""


@dataclass(frozen=True, slots=True, order=True)
class BindAddress:
    """A TCP address to listen on.

    ``host`` is ``""`` for every interface; ``port`` 0 lets the system choose a free one.
    """

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_bind_address(text: str) -> BindAddress | None:
    """Read a bind address; ``None`` stands for ``"0"``, a listener that is switched off.

    Mirrors the forms that Go's ``net.SplitHostPort`` accepts, and controller-runtime's ``"0"``. An IPv6 host
    needs its brackets; service names such as ``:http`` are not resolved. Raises AddressError.
    """
    if text == "0":
        return None
    host, colon, port_text = text.rpartition(":")
    if not colon:
        raise AddressError(f"{text!r} has no port: {_FORM}")
    # \d would let other scripts' digits through, which int() then reads.
    if not re.fullmatch("[0-9]{1,5}", port_text) or int(port_text) > MAX_PORT:
        raise AddressError(f"{text!r} has no port between 0 and {MAX_PORT}: {_FORM}")
    return BindAddress(_parse_host(host, text), int(port_text))


def _parse_host(host: str, text: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        try:
            IPv6Address(host)
        except ValueError as error:
            raise AddressError(f"{text!r} has no IPv6 address between its brackets: {_FORM}") from error
        return host
    if any(character in "[]:/ " or not character.isprintable() for character in host):
        raise AddressError(f"{text!r} has no valid host: {_FORM}")
    return host
