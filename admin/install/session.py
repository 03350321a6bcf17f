"""From the flags to steps that can be carried out: everything is checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass

from admin.install.leftovers import without_absent
from admin.install.manifest import ManifestError
from admin.install.package import Package
from admin.install.performing import InstallError
from admin.install.plan import plan
from admin.install.planes import members_of
from admin.install.preflight import obstacles, reached, unsuitable
from admin.install.settings import Settings
from admin.install.step import HOST, KARMADA, Step
from admin.install.surroundings import Problem, look_around
from admin.install.touched import touched
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.scope import Scope


@dataclass(frozen=True, slots=True)
class Prepared:
    """Steps that nothing is known to stand in the way of; ``notes``: worth knowing before."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...]


async def prepare(
    planes: Mapping[str, KubeClient], package: Package, settings: Settings, scope: Scope
) -> Prepared:
    """Look around, plan, and look for what is in the way. Raises InstallError with all of it."""
    versions, problems = await reached(planes)
    if problems:
        raise _unprepared(problems)
    try:
        problems = await unsuitable(planes, versions, settings)
        if any(each.plane in (HOST, KARMADA) for each in problems):
            raise _unprepared(problems)
        seen = await look_around(planes, members_of(list(planes)), settings, scope)
        problems += seen.problems
        if seen.around is None or problems:
            raise _unprepared(problems)
        notes = await touched(planes[KARMADA], settings, scope)
        steps = await without_absent(planes, plan(package, settings, seen.around))
        problems = await obstacles(planes, steps)
    except KubeError as error:
        raise InstallError(f"{error}") from None
    except ManifestError as error:
        raise InstallError(f"the manifests of this release: {error}") from None
    if problems:
        raise _unprepared(problems)
    return Prepared(steps, (*notes, *seen.notes))


def _unprepared(problems: list[Problem]) -> InstallError:
    told = "\n".join(f"  {problem}" for problem in problems)
    return InstallError(f"nothing was written, because:\n{told}")
