"""Certificates of the estimators' connections, as the ways to install Karmada lay them out.

Mirrors Karmada 1.19: artifacts/deploy and hack/deploy-karmada.sh; pkg/karmadactl/addons/estimator; the
chart's _karmada_scheduler_estimator templates. Which of them is there is told by the Secrets of Karmada's
namespace, by their names and the names of their entries: nothing in them is read.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final


class LayoutError(ValueError):
    """No certificates that fit, or more than one kind; the message says what was looked for."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A Secret and its entries: the certificate, its key, and the authority of the other side."""

    secret: str
    certificate: str
    key: str
    authority: str

    @property
    def entries(self) -> tuple[str, str, str]:
        """All entries, in that order."""
        return self.certificate, self.key, self.authority


@dataclass(frozen=True, slots=True)
class Layout:
    """``server``: what estimators serve with. ``client``: what those who ask them show."""

    name: str
    server: CertificateFiles
    client: CertificateFiles


HACK: Final = Layout(
    "Karmada's scripts",
    CertificateFiles("karmada-scheduler-estimator-cert", "tls.crt", "tls.key", "ca.crt"),
    CertificateFiles("karmada-scheduler-scheduler-estimator-client-cert", "tls.crt", "tls.key", "ca.crt"),
)
_KARMADACTL_FILES: Final = CertificateFiles("karmada-cert", "karmada.crt", "karmada.key", "ca.crt")
KARMADACTL: Final = Layout("karmadactl or the operator", _KARMADACTL_FILES, _KARMADACTL_FILES)


def helm(secret: str) -> Layout:
    """The chart's; its Secret is named after the release."""
    files = CertificateFiles(secret, "karmada.crt", "karmada.key", "server-ca.crt")
    return Layout("Karmada's chart", files, files)


def find_layout(secrets: Mapping[str, AbstractSet[str]], namespace: str, chosen: str = "") -> Layout:
    """The layout that the Secrets of Karmada's namespace show; the names of their entries by their names.

    ``chosen``: the name of the Secret to serve with, where the administrator says so. Raises LayoutError.
    """
    charts = [helm(name) for name in sorted(secrets) if name.endswith("-cert") or name == chosen]
    found = [layout for layout in (HACK, *charts, KARMADACTL) if _fits(layout, secrets)]
    if chosen:
        found = [layout for layout in found if layout.server.secret == chosen]
    names = dict.fromkeys(layout.server.secret for layout in found)
    if len(names) == 1:
        return found[0]
    if found:
        raise LayoutError(
            f"host: namespace {namespace}: Secrets {', '.join(names)} all hold certificates for estimators; "
            "say which with --certificates SECRET"
        )
    raise LayoutError(_nothing(secrets, namespace, chosen))


def _fits(layout: Layout, secrets: Mapping[str, AbstractSet[str]]) -> bool:
    return all(
        secrets.get(files.secret, frozenset()) >= {*files.entries} for files in (layout.server, layout.client)
    )


def _nothing(secrets: Mapping[str, AbstractSet[str]], namespace: str, chosen: str) -> str:
    looked_for = "; ".join(_described(each) for each in (HACK, KARMADACTL, helm("<release>-cert")))
    near = [name for name in sorted(secrets) if name.endswith("-cert") or name == chosen]
    found = (
        "; ".join(f"{name} has {_listed(sorted(secrets[name]))}" for name in near)
        or "none that ends in -cert"
    )
    if chosen and chosen not in secrets:
        found = f"no Secret {chosen}; {found}"
    return (
        f"host: namespace {namespace}: no certificates for estimators: found {found}; expected one of: "
        f"{looked_for}. Is --karmada-namespace where Karmada's pods run?"
    )


def _described(layout: Layout) -> str:
    both = dict.fromkeys((layout.server, layout.client))
    return f"{layout.name}: " + " and ".join(
        f"Secret {each.secret} with {_listed(each.entries)}" for each in both
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
