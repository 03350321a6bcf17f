"""Steps carried out in order: each action, then what the step waits for, then the next step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from admin.install.performing import Change, Performer
from admin.install.readiness import Waiting, ready
from admin.install.step import Step
from fairway.kube.client import KubeClient


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a step."""

    step: Step
    changes: tuple[Change, ...]


async def preview(
    steps: Sequence[Step], planes: Mapping[str, KubeClient], *, force: bool
) -> tuple[Done, ...]:
    """What each step would change; nothing is written. Raises InstallError."""
    performer = Performer(planes, force=force, dry_run=True)
    return tuple([await _carried_out(step, performer) for step in steps])


async def install(
    steps: Sequence[Step],
    planes: Mapping[str, KubeClient],
    waiting: Waiting,
    told: Callable[[Done], None],
    *,
    force: bool,
) -> tuple[Done, ...]:
    """Carry out all steps; ``told`` hears of each when it is done. Raises InstallError."""
    performer = Performer(planes, force=force, dry_run=False)
    done = []
    for step in steps:
        waiting.seen(f"{step.plane}: {step.does}")
        carried_out = await _carried_out(step, performer)
        for condition in step.until:
            await ready(planes, step.plane, condition, waiting)
        told(carried_out)
        done.append(carried_out)
    return tuple(done)


async def _carried_out(step: Step, performer: Performer) -> Done:
    return Done(step, tuple([await performer.perform(step.plane, action) for action in step.actions]))
