"""What runs with other settings have left: looked for beforehand, so that plans show what is there."""

from collections.abc import Mapping, Sequence

import msgspec

from admin.install import stock
from admin.install.step import Remove, Step
from admin.install.writing import Body, read
from fairway.kube.client import KubeClient
from fairway.kube.objects import KubeStruct, ObjectMeta


class _Head(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


def is_leftover(live: Body, removal: Remove) -> bool:
    """Whether the object that is there is ours to delete."""
    return (removal.is_unlabelled or stock.is_ours(live)) and not stock.was_stock(live)


def uid_of(live: Body) -> str:
    """The uid, by which only this very object is deleted."""
    return msgspec.convert(live, _Head).metadata.uid


async def without_absent(planes: Mapping[str, KubeClient], steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps without those that would only delete what is not there. Raises KubeError."""
    kept = []
    for step in steps:
        removals = [each for each in step.actions if isinstance(each, Remove)]
        if not removals or await _is_any_there(planes[step.plane], removals):
            kept.append(step)
    return tuple(kept)


async def _is_any_there(client: KubeClient, removals: Sequence[Remove]) -> bool:
    for removal in removals:
        if removal.is_unlabelled:
            continue
        live = await read(client, removal.manifest.path)
        if live is not None and is_leftover(live, removal):
            return True
    return False
