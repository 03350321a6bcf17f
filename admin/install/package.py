"""The manifests that the programs are shipped with, sorted by where they belong.

They are the same files that ``kubectl apply -k`` takes; kustomize's own files are left out, because what an
overlay would change, settings change here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from admin.install.manifest import Manifest, ManifestError, manifests_in

_SUFFIXES: Final = (".yaml", ".yml")
DISPATCHER: Final = "dispatcher"
ESTIMATOR: Final = "estimator"
WEBHOOK: Final = "webhook"
OPTIONAL: Final = "optional"
"""What an installation does without: whoever wants it applies it, as kustomize leaves it out, too."""
NOTIFY: Final = "notify"
"""What tells owners is no part of an installation: whoever wants it applies it."""
EXAMPLE_CLUSTER: Final = "member1"
"""The cluster that packaged manifests of one cluster are written for."""


@dataclass(frozen=True, slots=True)
class Package:
    """All that is shipped.

    ``host``: of the webhook and the dispatcher. ``estimators``: what all estimators share; ``per_member``:
    the estimator of the cluster `EXAMPLE_CLUSTER`; ``for_many``: one for many clusters, and
    ``redirections``: what sends questions about that cluster to it.
    """

    crds: tuple[Manifest, ...]
    karmada: tuple[Manifest, ...]
    interpreters: tuple[Manifest, ...]
    member: tuple[Manifest, ...]
    host: tuple[Manifest, ...]
    estimators: tuple[Manifest, ...]
    per_member: tuple[Manifest, ...]
    for_many: tuple[Manifest, ...]
    redirections: tuple[Manifest, ...]


def component_of(manifest: Manifest) -> str:
    """The program an object belongs to, by its label or else by its name; empty where it serves all."""
    if manifest.component:
        return manifest.component
    return next((name for name in (DISPATCHER, ESTIMATOR, WEBHOOK) if name in manifest.name), "")


def packaged() -> Package:
    """The manifests of this release. Raises ManifestError where it lacks them."""
    root = files("manifests")
    base = root / "base"
    return Package(
        crds=tuple(_below(root / "crds")),
        karmada=tuple(_below(root / "karmada", without=("interpreters", "crds", OPTIONAL, NOTIFY))),
        interpreters=tuple(_below(root / "karmada" / "interpreters")),
        member=tuple(_below(root / "member", without=("node-agent", NOTIFY))),
        host=tuple(_below(base, without=("estimator", "estimator-per-member", "estimator-for-many", NOTIFY))),
        estimators=tuple(_below(base / "estimator")),
        per_member=tuple(_below(base / "estimator-per-member")),
        for_many=tuple(_below(base / "estimator-for-many")),
        redirections=tuple(
            each
            for each in _below(root / "overlays" / "estimator-for-many" / EXAMPLE_CLUSTER)
            if each.kind.kind == "Service"
        ),
    )


def _below(folder: Traversable, without: tuple[str, ...] = ()) -> Iterator[Manifest]:
    if not folder.is_dir():
        raise ManifestError(
            f"{folder}: no such folder; expected the manifests of this release: install it again"
        )
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            if entry.name not in without:
                yield from _below(entry)
        elif entry.name.endswith(_SUFFIXES):
            yield from manifests_in(entry.read_text(encoding="utf-8"), str(entry))
