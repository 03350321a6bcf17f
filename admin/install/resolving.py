"""Manifests as they are to be applied here and now: those that depend on what is there, made of it.

For whoever applies them otherwise. A Deployment that is there keeps its selector, which cannot change, and
its PodDisruptionBudget selects what it selects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from admin.install import stock
from admin.install.manifest import Json, Manifest, manifest_of
from admin.install.step import Action, Protect, Replace, Step
from admin.install.writing import read
from fairway.kube.client import KubeClient

_KEPT: Final = ("name", "namespace", "labels", "annotations")
"""Of metadata, what is said by people and not by servers."""


async def resolved(planes: Mapping[str, KubeClient], steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with what each action would write; actions that would write nothing are left out.

    Raises KubeError.
    """
    return tuple([await _resolved_step(planes[step.plane], step) for step in steps])


async def _resolved_step(client: KubeClient, step: Step) -> Step:
    found = [await _resolved(client, action) for action in step.actions]
    return replace(step, actions=tuple(action for action in found if action is not None))


async def _resolved(client: KubeClient, action: Action) -> Action | None:
    if isinstance(action, Protect):
        live = await read(client, action.manifest.path)
        if live is not None and not stock.is_ours(live):
            return None
        deployment = await read(client, action.deployment.path)
        return replace(action, manifest=stock.over_pods_of(action.manifest, deployment))
    if not isinstance(action, Replace):
        return action
    live = await read(client, action.manifest.path)
    if live is None:
        return None if action.onto is stock.nobody_in else action
    if stock.is_ours(live) and not stock.was_stock(live):
        return action
    wanted = action.onto(live, action.manifest)
    return None if wanted == live else replace(action, manifest=_stated(wanted, action.manifest))


def _stated(wanted: Json, ours: Manifest) -> Manifest:
    metadata = wanted.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    body = {
        "apiVersion": ours.kind.api_version,
        "kind": ours.kind.kind,
        "metadata": {key: said[key] for key in _KEPT if key in said},
        "spec": wanted.get("spec"),
    }
    return manifest_of(body, str(ours))
