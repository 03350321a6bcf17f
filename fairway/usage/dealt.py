"""Which devices a pod's share of its node is: requests say how much, kubelet and processes say which."""

from collections import Counter
from collections.abc import Iterable, Iterator

from fairway.accelerators.mig_geometry import most_instances
from fairway.accelerators.product_names import spelled
from fairway.usage.bound_pod import BoundPod
from fairway.usage.held import WHOLE_NANO, Held
from fairway.usage.measured import Holds, Measured
from fairway.usage.use import WHOLE_MILLI, HoldingPod, Use

_NANO_IN_MILLI = WHOLE_NANO // WHOLE_MILLI


class Dealer:
    """The measured devices of a node by the pods that hold them. Every pod there is to be asked about once.

    What cannot be divided into thousandths goes to one pod after the other, so that the parts of a device add
    up: the same to the same pod as long as they come in the same order.

    ``unasked``: the pods found so far that use devices which they neither asked for nor were given.
    """

    def __init__(self, devices: Iterable[Measured]) -> None:
        self.unasked: list[str] = []
        self._dealt: Counter[str] = Counter()
        self._by_id = {device.id: device for device in devices}
        self._held: dict[tuple[str, str], list[tuple[Holds, Measured]]] = {}
        for device in sorted(self._by_id.values(), key=lambda device: (device.index, device.id)):
            for holds in device.holders:
                self._held.setdefault((holds.namespace, holds.pod), []).append((holds, device))

    def knows(self, pod: BoundPod) -> bool:
        """Whether a pod of this name holds any of the devices."""
        return (pod.namespace, pod.name) in self._held

    def dealt(self, pod: HoldingPod, uid: str, holdings: Iterable[Held]) -> Iterator[Use]:
        """What the pod holds, device by device as far as anybody tells which; the rest in one piece.

        A device that is opened for other pods is theirs, and not among it.
        """
        left = self._holding(pod, uid)
        named: dict[str, Measured | None] = {}
        for held in holdings:
            if held.device:
                if held.device not in named:
                    named[held.device] = self._named(held.device, left)
                yield self.use_of(pod, held, 1, named[held.device])
                continue
            missing = held.pieces
            for id_, (holds, device) in tuple(left.items()):
                if missing and bool(device.parent) == held.is_instance:
                    del left[id_]
                    pieces = min(missing, max(1, holds.shares))
                    missing -= pieces
                    if not held.opener:
                        yield self.use_of(pod, held, pieces, device)
            if missing and not held.opener:
                yield self.use_of(pod, held, missing, None)
        for holds, device in left.values():
            if holds.given:
                # Asked for by a claim (Dynamic Resource Allocation), not by the name of a resource.
                yield self.use_of(pod, Held(spelled(device.product), _part(device), 1), 1, device)
        if any(not (holds.given or holds.noted) for holds, _ in left.values()):
            self.unasked.append(f"{pod.namespace}/{pod.name} on {pod.node}")

    def use_of(self, pod: HoldingPod, held: Held, pieces: int, device: Measured | None) -> Use:
        """So many of the pieces."""
        product = held.product or (spelled(device.product) if device else "")
        if held.nano == WHOLE_NANO:
            return Use(pod, product, WHOLE_MILLI, pieces, device)
        whole = (device.parent or device.id) if device else ""
        before = self._dealt[whole] // _NANO_IN_MILLI
        self._dealt[whole] += held.nano * pieces
        return Use(pod, product, self._dealt[whole] // _NANO_IN_MILLI - before, 1, device)

    def _named(self, device: str, left: dict[str, tuple[Holds, Measured]]) -> Measured | None:
        """The device that a sharing scheme calls so: by its id, or by its number on the node; its agent has
        found out which that is where the pod holds one by its annotation."""
        known = self._by_id.get(device)
        if known is None:
            noted = [one for holds, one in left.values() if holds.noted]
            known = next((one for one in noted if str(one.index) == device), noted[0] if noted else None)
        left.pop(known.id if known else device, None)
        return known

    def _holding(self, pod: HoldingPod, uid: str) -> dict[str, tuple[Holds, Measured]]:
        """The devices that the pod holds, those that kubelet gave it first."""
        found = [
            (holds, device)
            for holds, device in self._held.get((pod.namespace, pod.name), ())
            if not holds.uid or not uid or holds.uid == uid
        ]
        found.sort(key=lambda pair: (not pair[0].given, not pair[0].noted))
        left: dict[str, tuple[Holds, Measured]] = {}
        for holds, device in found:
            # A process is mostly seen on a device that kubelet gave as well.
            left.setdefault(device.id, (holds, device))
        return left


def _part(device: Measured) -> int:
    """Of a device a MIG instance is, in billionths."""
    if not device.parent:
        return WHOLE_NANO
    return -(-WHOLE_NANO // most_instances(device.product, device.profile))
