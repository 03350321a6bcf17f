"""Whose bearer token is sent to a dispatcher: one from a file, or that of a kubeconfig's user.

Read or asked for anew whenever it may have changed, so that a live view outlives the token it began with. A
token is only ever sent over TLS or to this machine, and no message names it.
"""

import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from fairway.kube.access import Access, AccessKeeper
from fairway.kube.errors import BadConfig
from fairway.kube.kubeconfig_source import KubeconfigSource

HOW_TO_GET_ONE = (
    "a token of karmada-apiserver is made by: kubectl --kubeconfig KARMADA create token NAME > FILE, and "
    "sent with --token-file FILE"
)
_BEARER = "Bearer "


class TokenError(Exception):
    """No token can be had; the message says why and what to do."""


class Tokens(Protocol):
    """A token that may change."""

    async def current(self) -> str:
        """The token as it is now; empty where there is none. Raises TokenError."""

    async def replaced(self) -> str:
        """Another one than that which was just refused; empty where there is none. Raises TokenError."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Where the token comes from. With ``token_file`` from there, else from the kubeconfig's context.

    ``kubeconfig`` None stands for the files that kubectl would read, which need not be there.
    """

    token_file: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""

    @property
    def is_explicit(self) -> bool:
        """Whether somebody has said that there is a token to send."""
        return bool(self.token_file or self.kubeconfig or self.context)

    def tokens(self, url: str) -> Tokens:
        """The tokens to send to a URL. Raises TokenError where they would be readable on their way."""
        if not is_private(url):
            if self.is_explicit:
                raise TokenError(
                    f"--dispatcher {url}: a token would go there in plaintext: expected https://, or this "
                    "machine by kubectl port-forward"
                )
            return NoTokens()
        if self.token_file is not None:
            return FileTokens(self.token_file)
        return KubeconfigTokens(self)


class NoTokens:
    """Nothing is sent."""

    async def current(self) -> str:
        """None."""
        return ""

    async def replaced(self) -> str:
        """None."""
        return ""


class FileTokens:
    """A token in a file, read each time, as mounted tokens are replaced there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._last = ""

    async def current(self) -> str:
        """What is in the file."""
        try:
            token = self._file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise TokenError(f"--token-file {self._file}: {reason}; {HOW_TO_GET_ONE}") from None
        if not token or not token.isascii() or any(character.isspace() for character in token):
            raise TokenError(
                f"--token-file {self._file}: expected one token and nothing else; {HOW_TO_GET_ONE}"
            )
        self._last = token
        return token

    async def replaced(self) -> str:
        """What is in the file, if that is another one."""
        last = self._last
        now = await self.current()
        return now if now != last else ""


class KubeconfigTokens:
    """The token of a kubeconfig's user, whatever it comes from: the file, a plugin, a provider."""

    def __init__(self, bearer: Bearer) -> None:
        path = None if bearer.kubeconfig is None else str(bearer.kubeconfig)
        self._keeper = AccessKeeper(KubeconfigSource(path, bearer.context or None, None), time.time)
        self._where = f"kubeconfig {path or 'that kubectl would read'}"
        self._is_explicit = bearer.is_explicit
        self._last: Access | None = None

    async def current(self) -> str:
        """The user's token, fresh as far as can be known."""
        try:
            self._last = await self._keeper.usable()
        except BadConfig as error:
            if self._is_explicit:
                raise TokenError(str(error)) from None
            # Nobody spoke of a kubeconfig; the dispatcher says whether it needs a token.
            return ""
        return self._token(self._last)

    async def replaced(self) -> str:
        """Another token than the one that was refused."""
        if self._last is None:
            return ""
        try:
            replacement = await self._keeper.replacement(self._last)
        except BadConfig as error:
            raise TokenError(str(error)) from None
        if replacement is None:
            return ""
        self._last = replacement
        return self._token(replacement)

    def _token(self, access: Access) -> str:
        authorization = access.credentials.authorization or ""
        if authorization.startswith(_BEARER):
            return authorization.removeprefix(_BEARER)
        if self._is_explicit:
            kind = "a client certificate" if access.credentials.cert_file else "no token"
            raise TokenError(f"{self._where}: its user has {kind}; {HOW_TO_GET_ONE}")
        return ""


def is_private(url: str) -> bool:
    """Whether nobody on the way to the URL can read what is sent."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return parts.scheme == "https" or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
