"""TPU pods are kept to slices that are free whole, for as long as one answer is worked out.

Which slices those are is looked at once, before anything is placed: the first pod of a gang makes its slice
busy for everybody else, but not for the gang's other pods.
"""

from collections.abc import Iterable
from dataclasses import replace

from estimator.capacity.request import Component, PodShape
from estimator.capacity.room import Room
from estimator.capacity.slices import usable_slices
from fairway.accelerators.tpu import TPU


def asks_tpu(shape: PodShape) -> bool:
    """Whether the pod asks for TPU chips."""
    return any(name == TPU for name, _ in shape.requests)


def keep_to_whole_slices(room: Room, shapes: Iterable[PodShape]) -> None:
    """From now on TPU pods of these shapes use no row of a slice of several hosts that is not wholly free."""
    for shape in dict.fromkeys(shapes):
        if asks_tpu(shape):
            usable = usable_slices(room, shape)
            room.restrict(shape, usable.rows, usable.reasons)


def in_whole_slices(room: Room, components: tuple[Component, ...]) -> tuple[Component, ...]:
    """The components of a gang, TPU pods bound to whole slices in the room and to each other.

    Pods of a component that states no topology come in whole slices, or have one to themselves.
    """
    bound: list[Component] = []
    for component in components:
        if component.topology is None and asks_tpu(component.shape):
            topology = usable_slices(room, component.shape).topology(component)
            component = replace(component, topology=topology)
        bound.append(component)
    keep_to_whole_slices(room, (component.shape for component in components))
    return tuple(bound)
