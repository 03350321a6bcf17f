"""One authority for all that runs here, and what it issues; for loopback only.

Services of Karmada are called by their names in a cluster, so that certificates of servers carry these too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.certs import DAY, NOW, Authority

ADMIN = "admin"
EXPIRES = NOW + 29 * DAY
"""Later than what `fairway doctor` warns of."""
_SERVICES = ("localhost", "*.karmada-system.svc", "*.karmada-system.svc.cluster.local")


@dataclass(frozen=True, slots=True)
class Pki:
    """Files in one folder: ``ca.crt``, and pairs such as ``server.crt`` and ``server.key``."""

    folder: Path
    authority: Authority

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Everything in an empty folder."""
        folder.mkdir()
        made = cls(folder, Authority("e2e-ca"))
        made.ca.write_bytes(made.authority.pem)
        made.serve("server")
        # The names that karmada-webhook looks for.
        made.serve("tls")
        made.serve("accounts")
        for client in ("client", "front-proxy-client"):
            made.authority.issue(client, expires=EXPIRES).write(folder, client)
        (folder / "tokens.csv").write_text(f'{ADMIN},admin,admin,"system:masters"\n')
        return made

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def serve(self, stem: str) -> tuple[Path, Path]:
        """A new certificate for servers, and its key."""
        return self.authority.issue(stem, expires=EXPIRES, names=_SERVICES).write(self.folder, stem)

    def file(self, name: str) -> Path:
        """One of them."""
        return self.folder / name
