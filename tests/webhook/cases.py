"""What is held and what is not, for every way to decide it: the webhook, its conditions, the policies.

The first 23 creations are those that were tried on a live control plane.
"""

from dataclasses import dataclass

from fairway.names import QUEUE, SKIP
from tests.webhook.builders import CPU, GPU, Obj, binding, component, sets, spec

CONFIG_MAP: Obj = {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}}


@dataclass(frozen=True, slots=True)
class Creation:
    name: str
    binding: Obj
    held: bool

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Update:
    name: str
    old: Obj
    new: Obj
    held: bool

    def __str__(self) -> str:
        return self.name


def _creation(
    name: str,
    spec: Obj,
    held: bool,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Creation:
    return Creation(name, binding(spec, labels=labels, annotations=annotations), held)


def _update(name: str, old: Obj, new: Obj, held: bool) -> Update:
    return Update(name, binding(old), binding(new), held)


CREATIONS = (
    _creation("gpu as text", spec({"nvidia.com/gpu": "1"}), True),
    _creation("gpu as number", spec({"nvidia.com/gpu": 1}), True),
    _creation("tpu", spec({"google.com/tpu": "4"}), True),
    _creation("MIG", spec({"nvidia.com/mig-1g.5gb": "1"}), True),
    _creation("vgpu", spec({"volcano.sh/vgpu-number": "1"}), True),
    _creation("gpu.intel.com", spec({"gpu.intel.com/i915": "1"}), True),
    _creation("gpu in a component only", sets(component(requests=CPU), component("b", 1, GPU)), True),
    _creation("components without requirements", sets(component(), component("b")), False),
    _creation("a name that contains tpu", spec({"example.com/output": "1"}), False),
    _creation("none of it", spec({"nvidia.com/gpu": "0"}), False),
    _creation("no replicas but requirements", spec(GPU, replicas=0), True),
    _creation("no replicas, no requirements", spec(replicas=0), False),
    _creation("dispatching is the policy's", spec(GPU, suspension={"dispatching": True}), True),
    _creation(
        "dispatching on clusters is the policy's",
        spec(GPU, suspension={"dispatchingOnClusters": {"clusterNames": ["member1"]}}),
        True,
    ),
    _creation("not suspended, explicitly", spec(GPU, suspension={"scheduling": False}), True),
    _creation("held already", spec(GPU, suspension={"scheduling": True}), False),
    _creation("skip annotation", spec(GPU), False, annotations={SKIP: "true"}),
    _creation("skip label", spec(GPU), False, labels={SKIP: ""}),
    _creation("a ConfigMap", CONFIG_MAP | {"placement": {"clusterAffinity": {"clusterNames": ["m"]}}}, False),
    _creation(
        "attached", CONFIG_MAP | {"requiredBy": [{"namespace": "team", "name": "w-deployment"}]}, False
    ),
    _creation("cpu alone", spec(CPU), False),
    _creation("an empty suspension", spec(GPU, suspension={}), True),
    _creation("both sizes as Karmada never writes them", sets(component(requests=GPU), replicas=2), True),
    # What is beyond those.
    _creation("without a placement", spec(GPU, placement=None), False),
    _creation("a queue named by label", spec(CPU), True, labels={QUEUE: "night"}),
    _creation("a queue named by annotation", spec(), True, annotations={QUEUE: "night"}),
    _creation(
        "a queue named for a ConfigMap", CONFIG_MAP | {"placement": {}}, False, labels={QUEUE: "night"}
    ),
    _creation("a queue named but skipped", spec(GPU), False, labels={QUEUE: "night", SKIP: ""}),
    _creation("a network card", spec({"nvidia.com/hostdev": "1"}), False),
    _creation("sight of all GPUs", spec({"gpu.intel.com/xe_monitoring": "1"}), False),
    _creation("a quantity that does not parse", spec({"nvidia.com/gpu": "one"}), True),
    _creation("none, spelt otherwise", spec({"nvidia.com/gpu": "0.0k"}), False),
    _creation("less than none", spec({"nvidia.com/gpu": "-1"}), False),
    _creation("a thousandth", spec({"nvidia.com/gpu": "1m"}), True),
    _creation(
        "500 components, one with a gpu",
        sets(*(component(f"c{n}", 1, CPU) for n in range(499)), component("last", 1, GPU)),
        True,
    ),
    _creation("500 components of cpu", sets(*(component(f"c{n}", 1, CPU) for n in range(500))), False),
)

_PLACED: Obj = {"clusters": [{"name": "member1", "replicas": 2}]}
_TWO = sets(component("a", 2, GPU), component("b", 2, CPU), **_PLACED)

UPDATES = (
    _update("more replicas", spec(GPU, **_PLACED), spec(GPU, replicas=6, **_PLACED), True),
    _update("more replicas, not placed yet", spec(GPU), spec(GPU, replicas=6), True),
    _update("fewer replicas", spec(GPU, replicas=6, **_PLACED), spec(GPU, replicas=3, **_PLACED), False),
    _update("the scheduler places", spec(GPU), spec(GPU, **_PLACED), False),
    _update("the scheduler moves", spec(GPU, **_PLACED), spec(GPU, clusters=[{"name": "member2"}]), False),
    _update(
        "the dispatcher releases",
        spec(GPU, suspension={"scheduling": True}),
        spec(GPU, suspension={"scheduling": False}),
        False,
    ),
    _update(
        "grown while held",
        spec(GPU, suspension={"scheduling": True}),
        spec(GPU, replicas=9, suspension={"scheduling": True}),
        False,
    ),
    _update(
        "grown while dispatching is suspended",
        spec(GPU, suspension={"dispatching": True}, **_PLACED),
        spec(GPU, replicas=3, suspension={"dispatching": True}, **_PLACED),
        True,
    ),
    _update("nothing", spec(GPU, **_PLACED), spec(GPU, **_PLACED), False),
    _update("more for each replica", spec(GPU, **_PLACED), spec({"nvidia.com/gpu": "2"}, **_PLACED), True),
    _update("less for each replica", spec({"nvidia.com/gpu": 2}, **_PLACED), spec(GPU, **_PLACED), False),
    _update(
        "the same in other words",
        spec(GPU | {"memory": "1024Mi"}, **_PLACED),
        spec({"nvidia.com/gpu": 1, "memory": "1Gi"}, **_PLACED),
        False,
    ),
    _update("more memory", spec(GPU | {"memory": "1Gi"}), spec(GPU | {"memory": "1025Mi"}), True),
    _update("a gpu for a cpu workload", spec(CPU, **_PLACED), spec(CPU | GPU, **_PLACED), True),
    _update("more replicas of a cpu workload", spec(CPU), spec(CPU, replicas=9), False),
    _update("no longer any gpu", spec(CPU | GPU), spec(CPU), False),
    _update("none of a gpu", spec(GPU), spec(GPU | {"amd.com/gpu": "0"}), False),
    _update("a quantity that does not parse", spec(GPU), spec({"nvidia.com/gpu": "two"}), True),
    _update("a quantity that never parsed", spec(GPU | {"x": "?"}), spec(GPU | {"x": "?"}), False),
    _update("a quantity that did not parse", spec(GPU | {"x": "?"}), spec(GPU | {"x": "1"}), True),
    _update("a new component", _TWO, sets(component("a", 2, GPU), component("c", 1, CPU), **_PLACED), True),
    _update(
        "a further component",
        _TWO,
        sets(component("a", 2, GPU), component("b", 2, CPU), component("c", 1, CPU), **_PLACED),
        True,
    ),
    _update("one component less", _TWO, sets(component("a", 2, GPU), **_PLACED), False),
    _update(
        "components in another order",
        _TWO,
        sets(component("b", 2, CPU), component("a", 2, GPU), **_PLACED),
        False,
    ),
    _update(
        "a component with more replicas",
        _TWO,
        sets(component("a", 2, GPU), component("b", 3, CPU), **_PLACED),
        True,
    ),
    _update(
        "a component with fewer replicas",
        _TWO,
        sets(component("a", 1, GPU), component("b", 2, CPU), **_PLACED),
        False,
    ),
    _update(
        "a component that asks for more",
        _TWO,
        sets(component("a", 2, {"nvidia.com/gpu": "2"}), component("b", 2, CPU), **_PLACED),
        True,
    ),
    _update("replicas become components", spec(GPU, **_PLACED), _TWO, True),
)
