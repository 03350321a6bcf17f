"""Ports of nodes that pods hold already, beside pods that want one: by number, protocol and address."""

import pytest

from tests.builders import PodBuilder, pod
from tests.estimator.running import BARE, FIVE, Scene, Scenes, beside, check, web


def held(on: str, port: int = 80, protocol: str = "TCP", address: str = "") -> PodBuilder:
    return pod(f"holder-{on}").requests(cpu=0).port(port, protocol, address).on(on)


def wants(port: int = 80, protocol: str = "TCP", address: str = "") -> PodBuilder:
    return web().port(port, protocol, address)


SCENES: Scenes = {
    "nobody has it": Scene(wants(), 5),
    "pods without ports of the node do not keep each other off": Scene(web().port(0, container=80), 40),
    "taken on four of five": Scene(wants(), 1, tuple(held(on) for on in ("n1", "n2", "n3", "n4"))),
    "taken everywhere": Scene(wants(), 0, tuple(held(one.name) for one in FIVE)),
    "another port": Scene(wants(), 5, (held("n1", 81),)),
    "another protocol": Scene(wants(), 5, (held("n1", protocol="UDP"),)),
    "the same other protocol": Scene(wants(protocol="UDP"), 4, (held("n1", protocol="UDP"),)),
    "one address conflicts with all of them": Scene(wants(), 4, (held("n1", address="10.0.0.1"),)),
    "all addresses conflict with one": Scene(wants(address="10.0.0.1"), 4, (held("n1"),)),
    "all addresses by their number": Scene(wants(address="10.0.0.1"), 4, (held("n1", address="0.0.0.0"),)),
    "one address leaves others": Scene(
        wants(address="10.0.0.2"), 4, (held("n1", address="10.0.0.1"), held("n2", address="10.0.0.2"))
    ),
    "both of two ports must be free": Scene(wants().port(443), 3, (held("n1"), held("n2", 443))),
    "whoever holds it, in whatever namespace": Scene(wants(), 4, (held("n1").of("other"),)),
    "a pod that is being deleted holds it still": Scene(wants(), 4, (held("n1").terminating(),)),
    "a pod that has ended holds none": Scene(wants(), 5, (held("n1").phase("Succeeded"),)),
    "a pod that waits for victims on a node holds it": Scene(
        wants(),
        4,
        (pod("w").requests(cpu=0).port(80).nominated("n1"),),
        seen=False,
    ),
    "a sidecar holds it": Scene(wants(), 4, (pod("s").sidecar().port(80).requests(cpu=0).on("n1"),)),
    "an init container that ends holds none": Scene(
        wants(), 5, (pod("i").init().port(80).requests(cpu=0).on("n1"),)
    ),
    "a sidecar wants it": Scene(web().sidecar().port(80), 4, (held("n1"),)),
    "an init container that ends wants none": Scene(web().init().port(80), 40, (held("n1"),)),
    "on the network of the node each port of a container is one": Scene(
        web().port(0, container=80).host_network(), 4, (held("n1"),)
    ),
    "a node without labels": Scene(wants(), 1, (held("n1"),), nodes=(FIVE[0], BARE)),
}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_ports_of_nodes_are_one_pods_each(scene: Scene) -> None:
    check(scene)


def test_why_there_is_no_room_is_said_in_the_schedulers_words() -> None:
    mirror = Scene(wants(), 1, (held("n1"), held("n2"))).mirror()
    told = [str(reason) for reason in beside(mirror, wants()).reasons]
    assert any("didn't have free ports for the requested pod ports" in text and "2" in text for text in told)
