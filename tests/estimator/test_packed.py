"""What agents wrote, kept small: the same objects come back, in whatever order they are looked at."""

import msgspec
import pytest

from estimator.cluster.packed import Unpacking, packed
from fairway.kube.node_devices import NodeDevice, NodeDevices
from fairway.kube.objects import ObjectMeta

NAMES = [f"node-{number}" for number in range(100)]
WRITTEN = {
    name: NodeDevices(metadata=ObjectMeta(name=name), devices=[NodeDevice(id=f"GPU-{name}")])
    for name in NAMES
}
PACKED = {name: packed(one) for name, one in WRITTEN.items()}


@pytest.mark.parametrize(
    ("order", "looked_at"),
    [
        pytest.param(NAMES, NAMES, id="in the order that was said"),
        pytest.param(["gone", *NAMES], NAMES, id="a node that no agent wrote of is among them"),
        pytest.param(NAMES, NAMES[::-1], id="in another order"),
        pytest.param(NAMES, NAMES[::7], id="some of them"),
        pytest.param([], NAMES, id="no order was said"),
    ],
)
def test_what_was_packed_comes_back(order: list[str], looked_at: list[str]) -> None:
    unpacking = Unpacking(PACKED, order)
    assert {name: unpacking[name] for name in looked_at} == {name: WRITTEN[name] for name in looked_at}
    assert (len(unpacking), list(unpacking), "gone" in unpacking) == (100, NAMES, False)


def test_days_and_all_metadata_but_the_name_are_left_out() -> None:
    metadata = ObjectMeta(name="a", uid="u", labels={"a": "b"})
    told = msgspec.structs.replace(WRITTEN["node-0"], metadata=metadata, days=msgspec.Raw(b"[1]"))
    (back,) = Unpacking({"a": packed(told)}, ["a"]).values()
    assert (back.metadata, back.days) == (ObjectMeta(name="a"), msgspec.Raw(b"[]"))
