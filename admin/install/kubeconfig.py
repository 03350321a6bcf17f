"""Credentials made for our programs: a kubeconfig out of a ServiceAccount's token."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from admin.install.manifest import Json, Manifest, ManifestError, encoded, manifest_of
from admin.yaml_text import yaml_text
from fairway.kube.objects import KubeStruct

_TOKEN: Final = "token"
_AUTHORITY: Final = "ca.crt"


class _Secret(KubeStruct, frozen=True):
    data: dict[str, str] | None = None


def secret_data(secret: Json) -> Mapping[str, str]:
    """The entries of a Secret, still in base64."""
    return msgspec.convert(secret, _Secret).data or {}


def has_token(secret: Json) -> bool:
    """Whether the control plane has filled in the token and its authority."""
    return {_TOKEN, _AUTHORITY} <= secret_data(secret).keys()


def kubeconfig(secret: Json, server: str, cluster: str, user: str, where: str) -> str:
    """A kubeconfig with the token in this Secret. Raises ManifestError for one that holds none."""
    data = secret_data(secret)
    missing = [entry for entry in (_TOKEN, _AUTHORITY) if not data.get(entry)]
    if missing:
        raise ManifestError(
            f"{where}: data: expected {' and '.join(missing)}, as a token controller fills in"
        )
    try:
        token = base64.b64decode(data[_TOKEN], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ManifestError(f"{where}: data.{_TOKEN}: expected a token in base64") from None
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": data[_AUTHORITY]}}
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    return yaml_text(config)


def filled(secret: Manifest, data: Mapping[str, str]) -> Manifest:
    """A Secret with these entries, which are in base64."""
    return manifest_of({**secret.body, "data": dict(data)}, str(secret))


def filled_with_text(secret: Manifest, entry: str, text: str) -> Manifest:
    """A Secret with one entry."""
    return filled(secret, {entry: encoded(text)})
