"""Objects that the schemas accept, and objects that they refuse and why: one of each for every rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.dispatcher.crds.schemas import plural

Json = Any


@dataclass(frozen=True)
class Example:
    """An object of a kind. ``refused``: what the answer must contain; empty where the object is accepted.

    ``field``: the path that the answer must name. ``before``: the spec that it changes.
    """

    about: str
    kind: str
    spec: Json
    refused: str = ""
    field: str = ""
    name: str = "example"
    before: Json = None

    def document(self, spec: Json = None) -> Json:
        """The object, or the same with another spec."""
        metadata = {"name": self.name}
        if self.kind == "LocalQueue":
            metadata["namespace"] = "default"
        content = self.spec if spec is None else spec
        head: Mapping[str, Json] = {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": self.kind,
            "metadata": metadata,
        }
        return {**head, **({} if content is ABSENT else {"spec": content})}

    @property
    def collection(self) -> str:
        """URL path of the objects of the kind."""
        namespace = "/namespaces/default" if self.kind == "LocalQueue" else ""
        return f"/apis/fairway.dev/v1alpha1{namespace}/{plural(self.kind)}"


ABSENT = object()
LONG = "a" * 64


def quotas(*stated: str | Mapping[str, Json]) -> Json:
    """Quotas of resources: names with a nominal quota of 8, or as given."""
    return [{"name": one, "nominalQuota": 8} if isinstance(one, str) else dict(one) for one in stated]


def group(covered: list[str], **flavors: Json) -> Json:
    return {
        "coveredResources": covered,
        "flavors": [{"name": name, "resources": resources} for name, resources in flavors.items()],
    }


def queue(*groups: Json, **spec: Json) -> Json:
    return {"resourceGroups": list(groups), **spec} if groups else spec


def gpus(**limits: Json) -> Json:
    """One group with one flavor and a quota of GPUs."""
    return group(["gpu"], h100=[{"name": "gpu", "nominalQuota": 8, **limits}])


def _weighing(weight: Json) -> tuple[tuple[str, Json], ...]:
    """Both kinds of queues, of such a weight."""
    return (
        ("ClusterQueue", queue(weight=weight)),
        ("LocalQueue", {"clusterQueue": "a", "weight": weight}),
    )


NOT_UNIQUE = "Duplicate value"
PAIR = "each flavor needs exactly one quota for each of coveredResources"
ONE_GROUP = "a resource can be covered by one group only"
ONE_NAMING = "a flavor can be named by one group only"
NEED_PARENT = "borrowingLimit and lendingLimit need a parent"
VALUES = "In and NotIn need values, Exists and DoesNotExist have none"
FITS_TYPE = "resources are required with type Static, and not allowed with any other"
TOO_LONG_NAME = "metadata.name must have at most 63 characters"
ABOVE_ZERO = "must be above 0"
PATTERN = "should match"
_KEPT = "spec.reservation"
_CHECKS = "spec.admissionChecks"
_HALF_LIFE = "spec.fairSharing.halfLife"
_REDUCED = "spec.quotaReduction."
_GROUPS = "spec.resourceGroups"
_QUOTA = "spec.resourceGroups[0].flavors[0].resources[0]"


def _selector(**expression: Json) -> Json:
    return {"matchExpressions": [expression]}


def _selectors(kind: str, field: str) -> tuple[Example, ...]:
    """The examples that a field with a label selector has."""

    def example(about: str, selector: Json, refused: str = "", at: str = "") -> Example:
        return Example(
            f"{field}: {about}", kind, {field: selector}, refused, f"spec.{field}{at}" if refused else ""
        )

    first = ".matchExpressions[0]"
    return (
        example("everything", {}),
        example("labels", {"matchLabels": {"team": "a"}}),
        example("In with values", _selector(key="team", operator="In", values=["a", "b"])),
        example("Exists", _selector(key="team", operator="Exists")),
        example("DoesNotExist with an empty list", _selector(key="x", operator="DoesNotExist", values=[])),
        example("In without values", _selector(key="team", operator="In"), VALUES, f"{first}.values"),
        example("NotIn an empty list", _selector(key="x", operator="NotIn", values=[]), VALUES, first),
        example("Exists with values", _selector(key="x", operator="Exists", values=["a"]), VALUES, first),
        example(
            "an operator of nodes", _selector(key="x", operator="Gt", values=["1"]), "Unsupported", first
        ),
    )


FLAVORS = (
    Example("all clusters", "ResourceFlavor", {}),
    Example("no spec", "ResourceFlavor", ABSENT, "Required", "spec"),
    Example("the longest name", "ResourceFlavor", {}, name=LONG[:63]),
    Example("a name too long", "ResourceFlavor", {}, TOO_LONG_NAME, "metadata.name", LONG),
    Example("named clusters", "ResourceFlavor", {"clusterNames": ["m1", "m2"]}),
    Example(
        "a cluster twice", "ResourceFlavor", {"clusterNames": ["m1", "m1"]}, NOT_UNIQUE, "spec.clusterNames"
    ),
    *_selectors("ResourceFlavor", "clusterSelector"),
    Example("nodes", "ResourceFlavor", {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}),
    Example(
        "taints",
        "ResourceFlavor",
        {"nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}]},
    ),
    Example(
        "a taint without an effect",
        "ResourceFlavor",
        {"nodeTaints": [{"key": "spot"}]},
        "Required",
        "spec.nodeTaints[0].effect",
    ),
    Example(
        "an effect that there is not",
        "ResourceFlavor",
        {"nodeTaints": [{"key": "spot", "effect": "Never"}]},
        "Unsupported",
        "spec.nodeTaints[0].effect",
    ),
    Example("a toleration", "ResourceFlavor", {"tolerations": [{"key": "gpu", "value": "h100"}]}),
    Example("a toleration of all", "ResourceFlavor", {"tolerations": [{"operator": "Exists"}]}),
    Example("of a key", "ResourceFlavor", {"tolerations": [{"key": "gpu", "operator": "Exists"}]}),
    Example(
        "a toleration of no key",
        "ResourceFlavor",
        {"tolerations": [{"value": "h100"}]},
        "without a key, which means any taint, the operator must be Exists",
        "spec.tolerations[0].operator",
    ),
    Example(
        "a value that is not compared",
        "ResourceFlavor",
        {"tolerations": [{"key": "gpu", "operator": "Exists", "value": "h100"}]},
        "with operator Exists there is no value",
        "spec.tolerations[0].value",
    ),
    Example("from estimators", "ResourceFlavor", {"capacityPolicy": {"type": "FromEstimator"}}),
    Example(
        "an amount",
        "ResourceFlavor",
        {"capacityPolicy": {"type": "Static", "resources": {"cpu": "1500m", "memory": "2Ti", "gpu": 64}}},
    ),
    Example(
        "no amount",
        "ResourceFlavor",
        {"capacityPolicy": {"type": "Static"}},
        FITS_TYPE,
        "spec.capacityPolicy",
    ),
    Example(
        "an amount of nothing",
        "ResourceFlavor",
        {"capacityPolicy": {"type": "Static", "resources": {}}},
        FITS_TYPE,
        "spec.capacityPolicy",
    ),
    Example(
        "an amount that is not used",
        "ResourceFlavor",
        {"capacityPolicy": {"type": "FromClusters", "resources": {"gpu": 1}}},
        FITS_TYPE,
        "spec.capacityPolicy",
    ),
    Example(
        "a percentage of itself",
        "ResourceFlavor",
        {"capacityPolicy": {"type": "Static", "resources": {"gpu": "50%"}}},
        PATTERN,
        "spec.capacityPolicy.resources.gpu",
    ),
    Example(
        "less than nothing",
        "ResourceFlavor",
        {"capacityPolicy": {"type": "Static", "resources": {"gpu": -1}}},
        "should be",
        "spec.capacityPolicy.resources.gpu",
    ),
    Example("headroom", "ResourceFlavor", {"headroomPercent": 100}),
    Example(
        "too much headroom", "ResourceFlavor", {"headroomPercent": 101}, "should be", "spec.headroomPercent"
    ),
)

_FUNGIBLE = "spec.flavorFungibility"
_BOTH_TRY_NEXT = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
_NEEDS_BOTH = "needs whenCanBorrow and whenCanPreempt to be TryNextFlavor"

QUEUES = (
    Example("fungible flavors", "ClusterQueue", {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}),
    Example(
        "a preference",
        "ClusterQueue",
        {"flavorFungibility": {**_BOTH_TRY_NEXT, "preference": "PreemptionOverBorrowing"}},
    ),
    Example(
        "a preference between what is not compared",
        "ClusterQueue",
        {"flavorFungibility": {"preference": "PreemptionOverBorrowing"}},
        _NEEDS_BOTH,
        f"{_FUNGIBLE}.preference",
    ),
    Example(
        "a policy that there is not",
        "ClusterQueue",
        {"flavorFungibility": {"whenCanBorrow": "Always"}},
        "Unsupported",
        f"{_FUNGIBLE}.whenCanBorrow",
    ),
    Example("no quota", "ClusterQueue", {}),
    Example("no spec", "ClusterQueue", ABSENT, "Required", "spec"),
    Example("the longest name", "ClusterQueue", {}, name=LONG[:63]),
    Example("a name too long", "ClusterQueue", {}, TOO_LONG_NAME, "metadata.name", LONG),
    Example("a parent", "ClusterQueue", queue(parent="research")),
    Example("itself", "ClusterQueue", queue(parent="example"), "cannot be its own parent", "spec.parent"),
    Example("a parent that is no name", "ClusterQueue", queue(parent="Research"), PATTERN, "spec.parent"),
    Example("a quota", "ClusterQueue", queue(gpus())),
    Example("limits", "ClusterQueue", queue(gpus(borrowingLimit=4, lendingLimit="2"), parent="research")),
    Example("a limit above nominal", "ClusterQueue", queue(gpus(lendingLimit=64), parent="research")),
    Example("borrowing from none", "ClusterQueue", queue(gpus(borrowingLimit=0)), NEED_PARENT, _GROUPS),
    Example("lending to none", "ClusterQueue", queue(gpus(lendingLimit=0)), NEED_PARENT, _GROUPS),
    *(
        Example(f"a quota of {text}", "ClusterQueue", queue(gpus(nominalQuota=text)))
        for text in (
            0,
            8,
            "8",
            "1500m",
            "1.5Gi",
            ".5",
            "1e3",
            "25%",
            "12.5%",
            "0%",
            "100%",
            "100.0%",
            "3.125%",
        )
    ),
    *(
        Example(f"a quota of {text}", "ClusterQueue", queue(gpus(nominalQuota=text)), PATTERN, _QUOTA)
        for text in ("", "-1", "eight", "8 GPUs", "101%", "100.1%", "-5%", "%", "12.3456%", "25 %", "1Gi%")
    ),
    Example("a negative number", "ClusterQueue", queue(gpus(nominalQuota=-1)), "should be", _QUOTA),
    Example("half a number", "ClusterQueue", queue(gpus(nominalQuota=0.5)), "nteger", _QUOTA),
    Example(
        "negative limits", "ClusterQueue", queue(gpus(borrowingLimit=-1), parent="p"), "should be", _QUOTA
    ),
    Example("bad lending", "ClusterQueue", queue(gpus(lendingLimit="all"), parent="p"), PATTERN, _QUOTA),
    Example(
        "several of everything",
        "ClusterQueue",
        queue(
            group(["cpu", "gpu"], h100=quotas("cpu", "gpu"), a100=quotas("gpu", "cpu")),
            group(["tpu"], v5e=quotas("tpu")),
        ),
    ),
    Example(
        "a resource without quota",
        "ClusterQueue",
        queue(group(["cpu", "gpu"], x=quotas("gpu"))),
        PAIR,
        _GROUPS,
    ),
    Example(
        "a quota not covered", "ClusterQueue", queue(group(["gpu"], x=quotas("gpu", "cpu"))), PAIR, _GROUPS
    ),
    Example("another resource", "ClusterQueue", queue(group(["gpu"], x=quotas("cpu"))), PAIR, _GROUPS),
    Example(
        "covered twice", "ClusterQueue", queue(group(["gpu", "gpu"], x=quotas("gpu"))), NOT_UNIQUE, _GROUPS
    ),
    Example("two quotas", "ClusterQueue", queue(group(["gpu"], x=quotas("gpu", "gpu"))), NOT_UNIQUE, _GROUPS),
    Example(
        "a flavor twice",
        "ClusterQueue",
        queue({"coveredResources": ["gpu"], "flavors": [{"name": "x", "resources": quotas("gpu")}] * 2}),
        NOT_UNIQUE,
        _GROUPS,
    ),
    Example(
        "a resource in two groups",
        "ClusterQueue",
        queue(group(["gpu"], x=quotas("gpu")), group(["gpu"], y=quotas("gpu"))),
        ONE_GROUP,
        _GROUPS,
    ),
    Example(
        "a flavor in two groups",
        "ClusterQueue",
        queue(group(["gpu"], x=quotas("gpu")), group(["cpu"], x=quotas("cpu"))),
        ONE_NAMING,
        _GROUPS,
    ),
    Example("a group of no flavor", "ClusterQueue", queue(group(["gpu"])), "at least 1", _GROUPS),
    Example("no covered resources", "ClusterQueue", queue(group([], x=[])), "at least 1", _GROUPS),
    *(
        Example(f"weight {text}", kind, spec)
        for text in (1, 9999, "0.5", "2", "0.001")
        for kind, spec in _weighing(text)
    ),
    *(
        Example(f"weight {text}", kind, spec, refused, "spec.weight")
        for text, refused in (
            (0, ABOVE_ZERO),
            ("0", ABOVE_ZERO),
            ("0.000", ABOVE_ZERO),
            (-1, "should be"),
            (10000, "should be"),
            ("heavy", PATTERN),
            ("0.0001", PATTERN),
            ("1e3", PATTERN),
        )
        for kind, spec in _weighing(text)
    ),
    *(
        Example(f"reduced {stated}", "ClusterQueue", queue(quotaReduction=stated))
        for stated in ({}, {"policy": "Keep"}, {"policy": "Evict", "delay": "0s"}, {"delay": "2562047h"})
    ),
    *(
        Example(
            f"reduced {of} {said}", "ClusterQueue", queue(quotaReduction={of: said}), refused, _REDUCED + of
        )
        for of, said, refused in (
            ("policy", "evict", "Unsupported"),
            ("delay", "-1s", PATTERN),
            ("delay", "soon", PATTERN),
            ("delay", "2562048h", "must be at most 2562047h"),
        )
    ),
    *(
        Example(f"shared {stated}", "ClusterQueue", queue(fairSharing=stated))
        for stated in ({}, {"halfLife": "1s"}, {"halfLife": "2562047h"})
    ),
    *(
        Example(f"shared {text}", "ClusterQueue", queue(fairSharing={"halfLife": text}), refused, _HALF_LIFE)
        for text, refused in (("0s", ABOVE_ZERO), ("7d", PATTERN), ("2562048h", "must be at most 2562047h"))
    ),
    *(
        Example(f"budget {stated}", "ClusterQueue", queue(budgets=[{"name": "team", **stated}]))
        for stated in (
            {"deviceHours": 0},
            {"deviceHours": "999999.999", "period": "Day", "policy": "Hard"},
            {"deviceHours": 720, "period": "Week", "policy": "Soft"},
        )
    ),
    *(
        Example(
            f"budget {stated}", "ClusterQueue", queue(budgets=[{"name": "team", **stated}]), refused, field
        )
        for stated, refused, field in (
            ({}, "Required", "spec.budgets[0].deviceHours"),
            ({"deviceHours": -1}, "should be", "spec.budgets[0].deviceHours"),
            ({"deviceHours": 1000000}, "should be", "spec.budgets[0].deviceHours"),
            ({"deviceHours": "much"}, PATTERN, "spec.budgets[0].deviceHours"),
            ({"deviceHours": 1, "period": "Year"}, "Unsupported", "spec.budgets[0].period"),
            ({"deviceHours": 1, "policy": "Firm"}, "Unsupported", "spec.budgets[0].policy"),
        )
    ),
    *(
        Example(f"preemption budget {stated}", "ClusterQueue", queue(preemption={"budget": stated}))
        for stated in ({"deviceHours": 0}, {"deviceHours": "99.5", "period": "Week"})
    ),
    *(
        Example(
            f"preemption budget {stated}",
            "ClusterQueue",
            queue(preemption={"budget": stated}),
            refused,
            f"spec.preemption.budget.{field}",
        )
        for stated, refused, field in (
            ({}, "Required", "deviceHours"),
            ({"deviceHours": -1}, "should be", "deviceHours"),
            ({"deviceHours": 1, "period": "Year"}, "Unsupported", "period"),
        )
    ),
    *(Example(f"price {text}", "ResourceFlavor", {"price": text}) for text in (0, 3, "2.49", "0.001")),
    *(
        Example(f"price {text}", "ResourceFlavor", {"price": text}, refused, "spec.price")
        for text, refused in ((-1, "should be"), ("2.4999", PATTERN), ("cheap", PATTERN))
    ),
    *(
        Example(f"strategy {word}", "ClusterQueue", queue(queueingStrategy=word))
        for word in ("StrictFIFO", "BestEffortFIFO", "BackfillFIFO")
    ),
    Example(
        "no such strategy",
        "ClusterQueue",
        queue(queueingStrategy="Random"),
        "Unsupported",
        "spec.queueingStrategy",
    ),
    *(
        Example(f"checks {stated}", "ClusterQueue", queue(admissionChecks=stated))
        for stated in ([], [{"name": "a"}], [{"name": "A.b_c-9"}, {"name": LONG[:63], "timeout": "1h30m"}])
    ),
    *(
        Example(
            f"checks {stated}", "ClusterQueue", queue(admissionChecks=stated), refused, f"{_CHECKS}{field}"
        )
        for stated, refused, field in (
            ([{}], "Required", "[0].name"),
            ([{"name": ""}], PATTERN, "[0].name"),
            ([{"name": "a/b"}], PATTERN, "[0].name"),
            ([{"name": "a-"}], PATTERN, "[0].name"),
            ([{"name": LONG}], "Too long", "[0].name"),
            ([{"name": "a"}, {"name": "a"}], NOT_UNIQUE, ""),
            ([{"name": "a", "timeout": "0s"}], ABOVE_ZERO, "[0].timeout"),
            ([{"name": "a", "timeout": "1d"}], PATTERN, "[0].timeout"),
            ([{"name": f"a{n}"} for n in range(9)], "Too many", ""),
        )
    ),
    *(
        Example(f"reservation {stated}", "ClusterQueue", queue(reservation=stated))
        for stated in (
            {},
            {"after": "0s", "drainAfter": "0s"},
            {"after": "2h"},
            {"drainAfter": "5m", "holdTimeout": "1ms", "depth": 8},
            {"after": "90s", "drainAfter": "1.5m", "depth": 1},
        )
    ),
    *(
        Example(
            f"reservation {stated}", "ClusterQueue", queue(reservation=stated), refused, f"{_KEPT}.{field}"
        )
        for stated, refused, field in (
            ({"after": "5"}, PATTERN, "after"),
            ({"after": "2562048h"}, "must be at most 2562047h", "after"),
            ({"after": "2562047h1m"}, "must be at most 2562047h", "after"),
            ({"drainAfter": "-1h"}, PATTERN, "drainAfter"),
            ({"drainAfter": "2562048h"}, "must be at most 2562047h", "drainAfter"),
            ({"drainAfter": "59s"}, "must be at least after", "drainAfter"),
            ({"after": "1h", "drainAfter": "59m"}, "must be at least after", "drainAfter"),
            ({"holdTimeout": "0s"}, ABOVE_ZERO, "holdTimeout"),
            ({"depth": 0}, "should be", "depth"),
            ({"depth": 9}, "should be", "depth"),
        )
    ),
    Example("drained", "ClusterQueue", queue(stopPolicy="HoldAndDrain")),
    Example("no such policy", "ClusterQueue", queue(stopPolicy="Stop"), "Unsupported", "spec.stopPolicy"),
    *_selectors("ClusterQueue", "namespaceSelector"),
    Example("ageing", "ClusterQueue", queue(ageing={"step": "10m", "cap": 100})),
    Example(
        "ageing without cap", "ClusterQueue", queue(ageing={"step": "10m"}), "Required", "spec.ageing.cap"
    ),
    Example(
        "no step", "ClusterQueue", queue(ageing={"step": "0s", "cap": 1}), ABOVE_ZERO, "spec.ageing.step"
    ),
    Example("words", "ClusterQueue", queue(ageing={"step": "ten", "cap": 1}), PATTERN, "spec.ageing.step"),
    Example(
        "sinking", "ClusterQueue", queue(ageing={"step": "1s", "cap": -1}), "should be", "spec.ageing.cap"
    ),
    Example(
        "preemption",
        "ClusterQueue",
        queue(preemption={"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "Any"}),
    ),
    Example("spreads", "ClusterQueue", queue(scoringStrategy={"type": "LeastAllocated"})),
    Example(
        "no such scoring",
        "ClusterQueue",
        queue(scoringStrategy={"type": "RequestedToCapacityRatio"}),
        "Unsupported",
        "spec.scoringStrategy.type",
    ),
    Example(
        "scoring by nothing",
        "ClusterQueue",
        queue(scoringStrategy={}),
        "Required",
        "spec.scoringStrategy.type",
    ),
    Example(
        "no such preemption",
        "ClusterQueue",
        queue(preemption={"withinClusterQueue": "Any"}),
        "Unsupported",
        "spec.preemption.withinClusterQueue",
    ),
)

LOCAL_QUEUES = (
    Example("a door", "LocalQueue", {"clusterQueue": "team-a"}),
    Example("no spec", "LocalQueue", ABSENT, "Required", "spec"),
    Example("no ClusterQueue", "LocalQueue", {}, "Required", "spec.clusterQueue"),
    Example("the longest name", "LocalQueue", {"clusterQueue": "a"}, name=LONG[:63]),
    Example("a name too long", "LocalQueue", {"clusterQueue": "a"}, TOO_LONG_NAME, "metadata.name", LONG),
    Example("a class", "LocalQueue", {"clusterQueue": "team-a", "defaultServiceClass": "batch"}),
    Example("held", "LocalQueue", {"clusterQueue": "a", "stopPolicy": "Hold"}, before={"clusterQueue": "a"}),
    Example(
        "another ClusterQueue",
        "LocalQueue",
        {"clusterQueue": "team-b"},
        "cannot be changed",
        "spec.clusterQueue",
        before={"clusterQueue": "team-a"},
    ),
)


def _durations(field: str) -> tuple[Example, ...]:
    """The examples that a field with a duration has; ``field`` may be one of ``requeue``."""

    def spec(value: str) -> Json:
        outer, _, inner = field.rpartition(".")
        return {outer: {inner: value}} if outer else {inner: value}

    kind = "ServiceClass"
    return (
        *(Example(f"{field} {text}", kind, spec(text)) for text in ("1m", "90s", "0.5h", "90000ms")),
        Example(f"{field} of nothing", kind, spec("0s"), ABOVE_ZERO, f"spec.{field}"),
        Example(f"{field} without unit", kind, spec("5"), PATTERN, f"spec.{field}"),
        Example(f"{field} below zero", kind, spec("-5m"), PATTERN, f"spec.{field}"),
    )


CLASSES = (
    Example("defaults", "ServiceClass", {}),
    Example("no spec", "ServiceClass", ABSENT, "Required", "spec"),
    Example("the longest name", "ServiceClass", {}, name=LONG[:63]),
    Example("a name too long", "ServiceClass", {}, TOO_LONG_NAME, "metadata.name", LONG),
    Example("priority", "ServiceClass", {"priority": -1_000_000_000, "globalDefault": True}),
    Example("a system's priority", "ServiceClass", {"priority": 2_000_000_000}, "should be", "spec.priority"),
    *(
        example
        for field in (
            "startTimeout",
            "requeue.backoffBase",
            "requeue.backoffMax",
            "maxWait",
            "maxRuntime",
            "minRuntime",
        )
        for example in _durations(field)
    ),
    Example(
        "backoff", "ServiceClass", {"requeue": {"backoffBase": "1h", "backoffMax": "1h", "backoffLimit": 3}}
    ),
    *(
        Example(
            f"backoff that sinks, {spec}",
            "ServiceClass",
            {"requeue": spec},
            "backoffBase must not be above",
            "spec.requeue",
        )
        for spec in ({"backoffBase": "2h"}, {"backoffMax": "59s"}, {"backoffBase": "90s", "backoffMax": "1m"})
    ),
    Example(
        "tries below zero", "ServiceClass", {"requeue": {"backoffLimit": -1}}, "should be", "spec.requeue"
    ),
    Example("a time to run in", "ServiceClass", {"readyTimeout": "1h"}),
    Example("no time to run in", "ServiceClass", {"readyTimeout": "0s"}, "above 0", "spec.readyTimeout"),
    Example("a time for a cluster to come back", "ServiceClass", {"clusterLostTimeout": "1h"}),
    Example("a cluster that is waited for without end", "ServiceClass", {"clusterLostTimeout": "0s"}),
    Example("a cluster that is waited for for ages", "ServiceClass", {"clusterLostTimeout": "2562047h"}),
    *(
        Example(f"{field} of {text}", "ServiceClass", {field: text}, refused, f"spec.{field}")
        for field, text, refused in (
            ("clusterLostTimeout", "2562047h1m", "must be at most 2562047h"),
            ("maxWait", "2562048h", ABOVE_ZERO),
        )
    ),
    Example("a wait beyond the longest whole hours", "ServiceClass", {"maxWait": "2562047h1m"}),
    Example(
        "a time beyond 64 bits of nanoseconds",
        "ServiceClass",
        {"clusterLostTimeout": "2562048h"},
        "must be at most 2562047h",
        "spec.clusterLostTimeout",
    ),
    Example(
        "a time without a unit",
        "ServiceClass",
        {"clusterLostTimeout": "15"},
        "should match",
        "spec.clusterLostTimeout",
    ),
    Example("run times", "ServiceClass", {"minRuntime": "10m", "maxRuntime": "600s"}),
    Example(
        "run times that cross",
        "ServiceClass",
        {"minRuntime": "11m", "maxRuntime": "10m"},
        "minRuntime must not be above maxRuntime",
        "spec.minRuntime",
    ),
    Example("not preemptible", "ServiceClass", {"preemptible": "Never"}),
    Example("no such word", "ServiceClass", {"preemptible": "Sometimes"}, "Unsupported", "spec.preemptible"),
    Example("no ageing", "ServiceClass", {"ageing": {"step": "1h", "cap": 0}}),
    Example(
        "no ageing step", "ServiceClass", {"ageing": {"step": "0h", "cap": 1}}, ABOVE_ZERO, "spec.ageing.step"
    ),
)

EXAMPLES = (*FLAVORS, *QUEUES, *LOCAL_QUEUES, *CLASSES)
