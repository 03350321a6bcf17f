"""Which real programs there are: from the folders that ``KUBEBUILDER_ASSETS`` and ``KARMADA_ASSETS`` name."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
KARMADA = (
    "karmada-scheduler",
    "karmada-controller-manager",
    "karmada-webhook",
    "karmada-aggregated-apiserver",
    "crds",
    "webhook-configuration.yaml",
)


class MissingAssets(LookupError):
    """The message says which variable or which file is missing."""


@dataclass(frozen=True, slots=True)
class Assets:
    """The two folders, each with all that is needed; they may be one."""

    kubernetes: Path
    karmada: Path

    @property
    def kubectl(self) -> Path:
        return self.kubernetes / "kubectl"

    @property
    def workload_schemas(self) -> tuple[Path, ...]:
        """CustomResourceDefinitions of workload kinds, where there are any: JobSet, Volcano Job."""
        return tuple(sorted((self.karmada / "workload-crds").glob("*.yaml")))


def find(environment: Mapping[str, str] = os.environ) -> Assets:
    """Both folders. Raises MissingAssets."""
    return Assets(
        _folder(environment, "KUBEBUILDER_ASSETS", KUBERNETES),
        _folder(environment, "KARMADA_ASSETS", KARMADA),
    )


def _folder(environment: Mapping[str, str], variable: str, names: tuple[str, ...]) -> Path:
    value = environment.get(variable, "")
    if not value:
        raise MissingAssets(f"{variable} is not set; it names a folder with {', '.join(names)}")
    folder = Path(value)
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise MissingAssets(f"{variable}={folder} lacks {', '.join(missing)}; see docs/e2e.md")
    return folder
