"""The agents of these tests write what the node agent writes of the same devices."""

from dataclasses import replace

import msgspec
import pytest

from fairway.kube.node_devices import Health, Holder, HolderSource
from node_agent.document import Troubles, document, encoded
from node_agent.reading import DeviceReading, NodeReading, Trouble
from tests.estimator.agents import GIB, NOW_S, PRODUCT, AgentBuilder, agent

GPUS = tuple(DeviceReading(f"GPU-a-{n}", index=n, product=PRODUCT, memory_bytes=80 * GIB) for n in range(2))
SICK = replace(GPUS[0], troubles=(Trouble("Xid79", "", Health.UNHEALTHY),))
CUT = (
    replace(GPUS[0], mig_enabled=True),
    *(
        DeviceReading(
            f"MIG-a-0-{n + 1}",
            index=n,
            product=PRODUCT,
            memory_bytes=10 * GIB,
            parent="GPU-a-0",
            mig_enabled=True,
            mig_profile="1g.10gb",
        )
        for n in range(2)
    ),
)
P = Holder("default", "p", "", "c", None, HolderSource.POD_RESOURCES, 0)
Q = Holder("default", "q", "", "c", None, HolderSource.CGROUP, 0)


@pytest.mark.parametrize(
    ("built", "devices", "holders", "problem"),
    [
        (agent("a").gpus(2), GPUS, {}, ""),
        (agent("a").gpus(2).bad(0), (SICK, GPUS[1]), {}, ""),
        (agent("a").gpus(1).cut(0, "1g.10gb", 2), CUT, {}, ""),
        (
            agent("a").gpus(2).held(1, "default/p").run_by(1, "default/q"),
            GPUS,
            {"GPU-a-1": (P, Q)},
            "",
        ),
        (
            agent("a").gpus(2).held(0, "default/p").untold(1).troubled("kubelet does not answer"),
            GPUS,
            {"GPU-a-0": (P,)},
            "kubelet does not answer",
        ),
    ],
)
def test_the_agents_of_tests_write_as_the_node_agent_does(
    built: AgentBuilder,
    devices: tuple[DeviceReading, ...],
    holders: dict[str, tuple[Holder, ...]],
    problem: str,
) -> None:
    since = Troubles().see(devices, NOW_S)
    made = document(
        "a", NodeReading(devices=devices), holders, {}, since, version="0.1.0", problem=problem, wall_s=NOW_S
    )
    written = msgspec.json.decode(encoded(made.object, None)[0])
    assert _told(built.object()) == _told(written)


def _told(found: object) -> object:
    """Without what says the same whether it is there or not, and since when a problem is there."""
    if isinstance(found, dict):
        skipped = ("since", "message", "missing", "days")
        kept = {key: _told(value) for key, value in found.items() if key not in skipped}
        return {key: value for key, value in kept.items() if value not in (0, False, "", {})}
    return [_told(one) for one in found] if isinstance(found, list) else found
