"""Certificates of our own, kept in a Secret on the control plane so that all replicas serve with the same.

Whoever finds a step of the rotation due makes it and writes it on top of the version it read; whoever comes
second is told that the Secret changed, reads it and finds nothing due any more. A Secret that cannot be read
is begun anew: better a short break than certificates that nobody can renew.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, Forbidden, KubeError, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.patching import Patched, merge_patch
from fairway.kube.preconditions import Preconditions
from webhook.certificates import CertificateError, Issued, renewed, split_bundle
from webhook.tls import Serving

logger = logging.getLogger(__name__)

_TRIES: Final = 5
_AUTHORITIES, _AUTHORITY_KEY, _CERTIFICATE, _KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
_TYPE: Final = "kubernetes.io/tls"


class _Secret(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class SecretName:
    """Which Secret."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def collection(self) -> str:
        """The path of the Secrets of its namespace."""
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    @property
    def path(self) -> str:
        """Its own path."""
        return f"{self.collection}/{self.name}"


class CertificateSecret:
    """The Secret as a source of certificates for ``host``; ``wall_clock`` is in seconds since the epoch."""

    def __init__(
        self, client: KubeClient, name: SecretName, host: str, wall_clock: Callable[[], float]
    ) -> None:
        self._client = client
        self._name = name
        self._host = host
        self._wall_clock = wall_clock
        self._problem = ""

    async def read(self) -> Serving:
        """What to serve with now, after whatever step of the rotation is due. Raises KubeError.

        A step that may not be written is not made: what is stored serves on, for as long as it is valid.
        """
        for _ in range(_TRIES):
            secret = await self._get()
            stored = None if secret is None else self._issued(secret)
            issued = self._renewed(stored)
            try:
                is_kept = issued == stored or await self._write(secret, issued)
            except Forbidden as error:
                if stored is None:
                    raise
                self._tell(error)
                return Serving(stored.certificate, stored.key, stored.bundle)
            if is_kept:
                self._problem = ""
                return Serving(issued.certificate, issued.key, issued.bundle)
        raise KubeError(
            f"Secret {self._name}: changed {_TRIES} times while it was being renewed: expected it to be ours "
            "alone: does something else write it?"
        )

    def _tell(self, error: Forbidden) -> None:
        if str(error) != self._problem:
            logger.error("Secret %s: certificates are not renewed: %s", self._name, error)
        self._problem = str(error)

    async def _get(self) -> _Secret | None:
        try:
            return await self._client.get_json(self._name.path, _Secret)
        except NotFound:
            return None

    def _issued(self, secret: _Secret) -> Issued | None:
        data = secret.data or {}
        try:
            return Issued(
                split_bundle(data[_AUTHORITIES]), data[_AUTHORITY_KEY], data[_CERTIFICATE], data[_KEY]
            )
        except (KeyError, CertificateError) as error:
            logger.warning("Secret %s is begun anew: %s", self._name, error)
            return None

    def _renewed(self, stored: Issued | None) -> Issued:
        now = datetime.fromtimestamp(self._wall_clock(), UTC)
        try:
            return renewed(stored, self._host, now)
        except CertificateError as error:
            logger.warning("Secret %s is begun anew: %s", self._name, error)
            return renewed(None, self._host, now)

    async def _write(self, secret: _Secret | None, issued: Issued) -> bool:
        """Whether it was stored; not, if another replica was faster."""
        data = {
            _AUTHORITIES: issued.bundle,
            _AUTHORITY_KEY: issued.authority_key,
            _CERTIFICATE: issued.certificate,
            _KEY: issued.key,
        }
        if secret is not None:
            when = Preconditions.exactly(secret.metadata)
            written = await merge_patch(self._client, self._name.path, {"data": data}, msgspec.Raw, when)
            if isinstance(written, Patched):
                logger.info("certificates renewed", extra={"secret": str(self._name)})
            return isinstance(written, Patched)
        obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": self._name.namespace, "name": self._name.name},
            "type": _TYPE,
            "data": data,
        }
        try:
            await self._client.post(self._name.collection, obj, msgspec.Raw)
        except Conflict:
            return False
        logger.info("certificates made", extra={"secret": str(self._name)})
        return True
