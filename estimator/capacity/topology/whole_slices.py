"""TPU pods are kept to slices that are free whole, for as long as one answer is worked out.

Which slices those are is looked at once, before anything is placed: the first pod makes its slice busy for
everybody else, but not for the pods that come with it. Gangs see to it themselves.
"""

from collections.abc import Iterable

from estimator.capacity.room import Room
from estimator.capacity.topology.slices import usable_slices
from estimator.fit.pod_shape import PodShape
from fairway.accelerators.tpu import TPU


def keep_to_whole_slices(room: Room, shapes: Iterable[PodShape]) -> None:
    """From now on TPU pods of these shapes use no row of a slice of several hosts that is not wholly free."""
    for shape in dict.fromkeys(shapes):
        if asks_tpu(shape):
            usable = usable_slices(room, shape)
            room.restrict(shape, usable.rows, usable.reasons)


def asks_tpu(shape: PodShape) -> bool:
    """Whether the pod asks for TPU chips."""
    return any(name == TPU for name, _ in shape.requests)
