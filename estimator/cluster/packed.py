"""What node agents wrote, whole and kept small: a fifth of the memory that typed values take.

Who-uses-what needs nearly all of an object, and needs it seldom; the answers that come often need little of
it, and have that in columns.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import ObjectMeta

_DECODER = msgspec.json.Decoder(NodeDevices)
_QUICKLY = 1
_IN_A_ROW = 32
_NO_DAYS = NodeDevices().days


def packed(found: NodeDevices) -> bytes:
    """The object in little space, of its metadata the name alone, and without the sums of its days."""
    kept = msgspec.structs.replace(found, metadata=ObjectMeta(name=found.metadata.name), days=_NO_DAYS)
    return zlib.compress(msgspec.json.encode(kept), _QUICKLY)


class Unpacking(Mapping[str, NodeDevices]):
    """What was `packed`, each object unpacked when it is looked at, since all of them are large.

    ``order``: that in which they are going to be looked at, each once. For one thread.

    Decompression lets go of the interpreter, and has it again before another thread has woken up, who then
    asks for it anew. Done more often than the switch interval, that keeps an event loop out for tens of
    milliseconds: so a few are decompressed in a row, and a longer time passes before the next.
    """

    def __init__(self, packed: Mapping[str, bytes], order: Iterable[str]) -> None:
        self._packed = packed
        self._order = (key for key in order if key in packed)
        self._texts: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> NodeDevices:
        if key not in self._texts:
            keys = dict.fromkeys((key, *islice(self._order, _IN_A_ROW)))
            self._texts = {one: zlib.decompress(self._packed[one]) for one in keys}
        return _DECODER.decode(self._texts[key])

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
