"""Everything a running webhook was told, checked and immutable. ``webhook.flags`` makes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairway.scope_flags import ScopeSettings
from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings, LogSettings
from webhook.certificate_secret import SecretName
from webhook.configuration import FailurePolicy


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """How to reach karmada-apiserver; without a kubeconfig and a master as the pod that we run in."""

    kubeconfig: Path | None
    context: str
    master: str


@dataclass(frozen=True, slots=True)
class FilesSettings:
    """Certificates that somebody else renews; without authorities, those of the callers' systems count."""

    certificate: Path
    key: Path
    authorities: Path | None


@dataclass(frozen=True, slots=True)
class RegistrationSettings:
    """The name of the webhook configuration to keep right, and how strict it is."""

    name: str
    failure_policy: FailurePolicy


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration of a webhook process.

    ``url`` is where the API server reaches us, without a path. ``certificates`` are files or the Secret in
    which our own are kept. ``registration`` is None where somebody else registers us. With ``observe``
    nothing is held.
    """

    address: BindAddress
    url: str
    host: str
    certificates: FilesSettings | SecretName
    registration: RegistrationSettings | None
    scope: ScopeSettings
    api: ApiSettings
    endpoints: EndpointSettings
    logs: LogSettings
    observe: bool = False

    @property
    def asks_karmada(self) -> bool:
        """Whether anything is read of its API server: the webhook answers reviews without it, too."""
        return self.registration is not None or isinstance(self.certificates, SecretName)


@dataclass(frozen=True, slots=True)
class ManifestRequest:
    """Print manifests and exit; ``configuration``: the one with this URL and strictness."""

    scope: ScopeSettings
    manifests: Literal["policies", "cronjobs", "configuration"] = "policies"
    configuration: tuple[str, FailurePolicy] = ("", "Fail")
