from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PodSet(_message.Message):
    __slots__ = ("name", "count", "template_json", "topology")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_JSON_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    template_json: bytes
    topology: Topology
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., template_json: _Optional[bytes] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ...) -> None: ...

class Topology(_message.Message):
    __slots__ = ("mode", "level", "slice_size")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[Topology.Mode]
        REQUIRED: _ClassVar[Topology.Mode]
        PREFERRED: _ClassVar[Topology.Mode]
        EXCLUSIVE: _ClassVar[Topology.Mode]
        SLICED: _ClassVar[Topology.Mode]
    MODE_UNSPECIFIED: Topology.Mode
    REQUIRED: Topology.Mode
    PREFERRED: Topology.Mode
    EXCLUSIVE: Topology.Mode
    SLICED: Topology.Mode
    MODE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SLICE_SIZE_FIELD_NUMBER: _ClassVar[int]
    mode: Topology.Mode
    level: str
    slice_size: int
    def __init__(self, mode: _Optional[_Union[Topology.Mode, str]] = ..., level: _Optional[str] = ..., slice_size: _Optional[int] = ...) -> None: ...

class Gang(_message.Message):
    __slots__ = ("namespace", "pod_sets", "topology", "workload_json", "copies", "name", "where", "waits")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_SETS_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pod_sets: _containers.RepeatedCompositeFieldContainer[PodSet]
    topology: Topology
    workload_json: bytes
    copies: int
    name: str
    where: _containers.RepeatedCompositeFieldContainer[Assignment]
    waits: bool
    def __init__(self, namespace: _Optional[str] = ..., pod_sets: _Optional[_Iterable[_Union[PodSet, _Mapping]]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., workload_json: _Optional[bytes] = ..., copies: _Optional[int] = ..., name: _Optional[str] = ..., where: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., waits: _Optional[bool] = ...) -> None: ...

class PlaceRequest(_message.Message):
    __slots__ = ("clusters", "gang", "assumed", "search_ms", "want_placement", "placements", "without", "endings")
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    ASSUMED_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MS_FIELD_NUMBER: _ClassVar[int]
    WANT_PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    ENDINGS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedScalarFieldContainer[str]
    gang: Gang
    assumed: _containers.RepeatedCompositeFieldContainer[Gang]
    search_ms: int
    want_placement: bool
    placements: int
    without: _containers.RepeatedCompositeFieldContainer[WorkloadName]
    endings: Endings
    def __init__(self, clusters: _Optional[_Iterable[str]] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ..., assumed: _Optional[_Iterable[_Union[Gang, _Mapping]]] = ..., search_ms: _Optional[int] = ..., want_placement: _Optional[bool] = ..., placements: _Optional[int] = ..., without: _Optional[_Iterable[_Union[WorkloadName, _Mapping]]] = ..., endings: _Optional[_Union[Endings, _Mapping]] = ...) -> None: ...

class Endings(_message.Message):
    __slots__ = ("endings", "of_choice")
    ENDINGS_FIELD_NUMBER: _ClassVar[int]
    OF_CHOICE_FIELD_NUMBER: _ClassVar[int]
    endings: _containers.RepeatedCompositeFieldContainer[Ending]
    of_choice: bool
    def __init__(self, endings: _Optional[_Iterable[_Union[Ending, _Mapping]]] = ..., of_choice: _Optional[bool] = ...) -> None: ...

class Ending(_message.Message):
    __slots__ = ("workload", "at_ms", "surplus", "kept")
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    SURPLUS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    workload: WorkloadName
    at_ms: int
    surplus: int
    kept: int
    def __init__(self, workload: _Optional[_Union[WorkloadName, _Mapping]] = ..., at_ms: _Optional[int] = ..., surplus: _Optional[int] = ..., kept: _Optional[int] = ...) -> None: ...

class EarliestRoom(_message.Message):
    __slots__ = ("at_ms", "pods", "placement", "workloads", "may_be_fewer", "gives")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    MAY_BE_FEWER_FIELD_NUMBER: _ClassVar[int]
    GIVES_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    pods: int
    placement: _containers.RepeatedCompositeFieldContainer[Assignment]
    workloads: _containers.RepeatedCompositeFieldContainer[WorkloadName]
    may_be_fewer: bool
    gives: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, at_ms: _Optional[int] = ..., pods: _Optional[int] = ..., placement: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., workloads: _Optional[_Iterable[_Union[WorkloadName, _Mapping]]] = ..., may_be_fewer: _Optional[bool] = ..., gives: _Optional[_Iterable[int]] = ...) -> None: ...

class PlaceResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterPlacement]
    def __init__(self, clusters: _Optional[_Iterable[_Union[ClusterPlacement, _Mapping]]] = ...) -> None: ...

class ClusterPlacement(_message.Message):
    __slots__ = ("cluster", "fits", "upper_bound", "proven", "spread_fits", "level", "reasons", "placement", "age_s", "empty_bound", "ranks_by_size", "packs", "earliest")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    UPPER_BOUND_FIELD_NUMBER: _ClassVar[int]
    PROVEN_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FITS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    EMPTY_BOUND_FIELD_NUMBER: _ClassVar[int]
    RANKS_BY_SIZE_FIELD_NUMBER: _ClassVar[int]
    PACKS_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    fits: int
    upper_bound: int
    proven: bool
    spread_fits: int
    level: str
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    placement: _containers.RepeatedCompositeFieldContainer[Assignment]
    age_s: float
    empty_bound: int
    ranks_by_size: bool
    packs: bool
    earliest: EarliestRoom
    def __init__(self, cluster: _Optional[str] = ..., fits: _Optional[int] = ..., upper_bound: _Optional[int] = ..., proven: _Optional[bool] = ..., spread_fits: _Optional[int] = ..., level: _Optional[str] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ..., placement: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., age_s: _Optional[float] = ..., empty_bound: _Optional[int] = ..., ranks_by_size: _Optional[bool] = ..., packs: _Optional[bool] = ..., earliest: _Optional[_Union[EarliestRoom, _Mapping]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("pod_set", "node", "pods", "spare", "nth")
    POD_SET_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    SPARE_FIELD_NUMBER: _ClassVar[int]
    NTH_FIELD_NUMBER: _ClassVar[int]
    pod_set: str
    node: str
    pods: int
    spare: bool
    nth: int
    def __init__(self, pod_set: _Optional[str] = ..., node: _Optional[str] = ..., pods: _Optional[int] = ..., spare: _Optional[bool] = ..., nth: _Optional[int] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("kind", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    text: str
    def __init__(self, kind: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("clusters", "gang", "assumed", "search_ms")
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    ASSUMED_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedScalarFieldContainer[str]
    gang: Gang
    assumed: _containers.RepeatedCompositeFieldContainer[Gang]
    search_ms: int
    def __init__(self, clusters: _Optional[_Iterable[str]] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ..., assumed: _Optional[_Iterable[_Union[Gang, _Mapping]]] = ..., search_ms: _Optional[int] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterExplanation]
    def __init__(self, clusters: _Optional[_Iterable[_Union[ClusterExplanation, _Mapping]]] = ...) -> None: ...

class ClusterExplanation(_message.Message):
    __slots__ = ("placement", "pod_sets")
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    POD_SETS_FIELD_NUMBER: _ClassVar[int]
    placement: ClusterPlacement
    pod_sets: _containers.RepeatedCompositeFieldContainer[PodSetExplanation]
    def __init__(self, placement: _Optional[_Union[ClusterPlacement, _Mapping]] = ..., pod_sets: _Optional[_Iterable[_Union[PodSetExplanation, _Mapping]]] = ...) -> None: ...

class PodSetExplanation(_message.Message):
    __slots__ = ("pod_set", "fits_alone", "blocked", "near_misses")
    POD_SET_FIELD_NUMBER: _ClassVar[int]
    FITS_ALONE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    NEAR_MISSES_FIELD_NUMBER: _ClassVar[int]
    pod_set: str
    fits_alone: int
    blocked: _containers.RepeatedCompositeFieldContainer[Blocked]
    near_misses: _containers.RepeatedCompositeFieldContainer[NearMiss]
    def __init__(self, pod_set: _Optional[str] = ..., fits_alone: _Optional[int] = ..., blocked: _Optional[_Iterable[_Union[Blocked, _Mapping]]] = ..., near_misses: _Optional[_Iterable[_Union[NearMiss, _Mapping]]] = ...) -> None: ...

class Blocked(_message.Message):
    __slots__ = ("reason", "nodes")
    REASON_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    nodes: int
    def __init__(self, reason: _Optional[_Union[Reason, _Mapping]] = ..., nodes: _Optional[int] = ...) -> None: ...

class NearMiss(_message.Message):
    __slots__ = ("node", "missing", "remedy")
    NODE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    node: str
    missing: str
    remedy: str
    def __init__(self, node: _Optional[str] = ..., missing: _Optional[str] = ..., remedy: _Optional[str] = ...) -> None: ...

class SummaryRequest(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, clusters: _Optional[_Iterable[str]] = ...) -> None: ...

class SummaryResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterSummary]
    def __init__(self, clusters: _Optional[_Iterable[_Union[ClusterSummary, _Mapping]]] = ...) -> None: ...

class ClusterSummary(_message.Message):
    __slots__ = ("cluster", "nodes", "pods", "products", "stranded", "slices", "levels", "uncatalogued", "age_s", "doubt", "problems")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    PRODUCTS_FIELD_NUMBER: _ClassVar[int]
    STRANDED_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    UNCATALOGUED_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    DOUBT_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    nodes: int
    pods: int
    products: _containers.RepeatedCompositeFieldContainer[Product]
    stranded: _containers.RepeatedCompositeFieldContainer[StrandedNode]
    slices: _containers.RepeatedCompositeFieldContainer[SliceShape]
    levels: _containers.RepeatedCompositeFieldContainer[Level]
    uncatalogued: _containers.RepeatedScalarFieldContainer[str]
    age_s: float
    doubt: str
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cluster: _Optional[str] = ..., nodes: _Optional[int] = ..., pods: _Optional[int] = ..., products: _Optional[_Iterable[_Union[Product, _Mapping]]] = ..., stranded: _Optional[_Iterable[_Union[StrandedNode, _Mapping]]] = ..., slices: _Optional[_Iterable[_Union[SliceShape, _Mapping]]] = ..., levels: _Optional[_Iterable[_Union[Level, _Mapping]]] = ..., uncatalogued: _Optional[_Iterable[str]] = ..., age_s: _Optional[float] = ..., doubt: _Optional[str] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class Product(_message.Message):
    __slots__ = ("product", "resource", "device_class", "nodes", "total", "unhealthy", "cordoned", "allocated", "free", "stranded", "placeable", "chunks", "gangs", "partitions", "fractions", "advertised_per_device")
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_CLASS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNHEALTHY_FIELD_NUMBER: _ClassVar[int]
    CORDONED_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    STRANDED_FIELD_NUMBER: _ClassVar[int]
    PLACEABLE_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    GANGS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FRACTIONS_FIELD_NUMBER: _ClassVar[int]
    ADVERTISED_PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    product: str
    resource: str
    device_class: str
    nodes: int
    total: int
    unhealthy: int
    cordoned: int
    allocated: int
    free: int
    stranded: int
    placeable: _containers.RepeatedCompositeFieldContainer[Placeable]
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    gangs: _containers.RepeatedCompositeFieldContainer[LargestGang]
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    fractions: _containers.RepeatedCompositeFieldContainer[Fractions]
    advertised_per_device: int
    def __init__(self, product: _Optional[str] = ..., resource: _Optional[str] = ..., device_class: _Optional[str] = ..., nodes: _Optional[int] = ..., total: _Optional[int] = ..., unhealthy: _Optional[int] = ..., cordoned: _Optional[int] = ..., allocated: _Optional[int] = ..., free: _Optional[int] = ..., stranded: _Optional[int] = ..., placeable: _Optional[_Iterable[_Union[Placeable, _Mapping]]] = ..., chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ..., gangs: _Optional[_Iterable[_Union[LargestGang, _Mapping]]] = ..., partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ..., fractions: _Optional[_Iterable[_Union[Fractions, _Mapping]]] = ..., advertised_per_device: _Optional[int] = ...) -> None: ...

class Placeable(_message.Message):
    __slots__ = ("devices", "pods")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    devices: int
    pods: int
    def __init__(self, devices: _Optional[int] = ..., pods: _Optional[int] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("free", "nodes")
    FREE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    free: int
    nodes: int
    def __init__(self, free: _Optional[int] = ..., nodes: _Optional[int] = ...) -> None: ...

class LargestGang(_message.Message):
    __slots__ = ("devices", "level", "domain", "pods")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    devices: int
    level: str
    domain: str
    pods: int
    def __init__(self, devices: _Optional[int] = ..., level: _Optional[str] = ..., domain: _Optional[str] = ..., pods: _Optional[int] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("profile", "resource", "total", "free", "potential")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    POTENTIAL_FIELD_NUMBER: _ClassVar[int]
    profile: str
    resource: str
    total: int
    free: int
    potential: int
    def __init__(self, profile: _Optional[str] = ..., resource: _Optional[str] = ..., total: _Optional[int] = ..., free: _Optional[int] = ..., potential: _Optional[int] = ...) -> None: ...

class Fractions(_message.Message):
    __slots__ = ("scheme", "devices", "free_milli", "largest_free_milli", "largest_free_memory", "untouched")
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    FREE_MILLI_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FREE_MILLI_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FREE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    UNTOUCHED_FIELD_NUMBER: _ClassVar[int]
    scheme: str
    devices: int
    free_milli: int
    largest_free_milli: int
    largest_free_memory: int
    untouched: int
    def __init__(self, scheme: _Optional[str] = ..., devices: _Optional[int] = ..., free_milli: _Optional[int] = ..., largest_free_milli: _Optional[int] = ..., largest_free_memory: _Optional[int] = ..., untouched: _Optional[int] = ...) -> None: ...

class StrandedNode(_message.Message):
    __slots__ = ("node", "product", "free", "cause", "remedy")
    NODE_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    node: str
    product: str
    free: int
    cause: str
    remedy: str
    def __init__(self, node: _Optional[str] = ..., product: _Optional[str] = ..., free: _Optional[int] = ..., cause: _Optional[str] = ..., remedy: _Optional[str] = ...) -> None: ...

class SliceShape(_message.Message):
    __slots__ = ("accelerator", "topology", "hosts", "slices", "free", "partly_busy", "incomplete")
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    PARTLY_BUSY_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    accelerator: str
    topology: str
    hosts: int
    slices: int
    free: int
    partly_busy: int
    incomplete: int
    def __init__(self, accelerator: _Optional[str] = ..., topology: _Optional[str] = ..., hosts: _Optional[int] = ..., slices: _Optional[int] = ..., free: _Optional[int] = ..., partly_busy: _Optional[int] = ..., incomplete: _Optional[int] = ...) -> None: ...

class Level(_message.Message):
    __slots__ = ("level", "product", "domains", "unlabelled_nodes")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    UNLABELLED_NODES_FIELD_NUMBER: _ClassVar[int]
    level: str
    product: str
    domains: _containers.RepeatedCompositeFieldContainer[Domain]
    unlabelled_nodes: int
    def __init__(self, level: _Optional[str] = ..., product: _Optional[str] = ..., domains: _Optional[_Iterable[_Union[Domain, _Mapping]]] = ..., unlabelled_nodes: _Optional[int] = ...) -> None: ...

class Domain(_message.Message):
    __slots__ = ("path", "nodes", "total", "free", "whole_nodes_free")
    PATH_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    WHOLE_NODES_FREE_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    nodes: int
    total: int
    free: int
    whole_nodes_free: int
    def __init__(self, path: _Optional[_Iterable[str]] = ..., nodes: _Optional[int] = ..., total: _Optional[int] = ..., free: _Optional[int] = ..., whole_nodes_free: _Optional[int] = ...) -> None: ...

class BoundRequest(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterWorkloads]
    def __init__(self, clusters: _Optional[_Iterable[_Union[ClusterWorkloads, _Mapping]]] = ...) -> None: ...

class ClusterWorkloads(_message.Message):
    __slots__ = ("cluster", "workloads")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    workloads: _containers.RepeatedCompositeFieldContainer[WorkloadName]
    def __init__(self, cluster: _Optional[str] = ..., workloads: _Optional[_Iterable[_Union[WorkloadName, _Mapping]]] = ...) -> None: ...

class WorkloadName(_message.Message):
    __slots__ = ("namespace", "group", "kind", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    group: str
    kind: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., group: _Optional[str] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class BoundResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterBound]
    def __init__(self, clusters: _Optional[_Iterable[_Union[ClusterBound, _Mapping]]] = ...) -> None: ...

class ClusterBound(_message.Message):
    __slots__ = ("cluster", "workloads", "doubt", "age_s")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    DOUBT_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    workloads: _containers.RepeatedCompositeFieldContainer[WorkloadPods]
    doubt: str
    age_s: float
    def __init__(self, cluster: _Optional[str] = ..., workloads: _Optional[_Iterable[_Union[WorkloadPods, _Mapping]]] = ..., doubt: _Optional[str] = ..., age_s: _Optional[float] = ...) -> None: ...

class WorkloadPods(_message.Message):
    __slots__ = ("known", "bound", "waiting")
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    known: bool
    bound: int
    waiting: int
    def __init__(self, known: _Optional[bool] = ..., bound: _Optional[int] = ..., waiting: _Optional[int] = ...) -> None: ...

class PromiseRequest(_message.Message):
    __slots__ = ("holder", "since_ms", "ttl_ms", "clusters")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    holder: str
    since_ms: int
    ttl_ms: int
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterPromises]
    def __init__(self, holder: _Optional[str] = ..., since_ms: _Optional[int] = ..., ttl_ms: _Optional[int] = ..., clusters: _Optional[_Iterable[_Union[ClusterPromises, _Mapping]]] = ...) -> None: ...

class ClusterPromises(_message.Message):
    __slots__ = ("cluster", "promised")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    promised: _containers.RepeatedCompositeFieldContainer[Promised]
    def __init__(self, cluster: _Optional[str] = ..., promised: _Optional[_Iterable[_Union[Promised, _Mapping]]] = ...) -> None: ...

class Promised(_message.Message):
    __slots__ = ("workload", "gang")
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    workload: WorkloadName
    gang: Gang
    def __init__(self, workload: _Optional[_Union[WorkloadName, _Mapping]] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ...) -> None: ...

class PromiseResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterBound]
    def __init__(self, clusters: _Optional[_Iterable[_Union[ClusterBound, _Mapping]]] = ...) -> None: ...

class UsageRequest(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, clusters: _Optional[_Iterable[str]] = ...) -> None: ...

class UsagePage(_message.Message):
    __slots__ = ("cluster", "pods", "sick", "notes", "age_s", "doubt")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    SICK_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    DOUBT_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    pods: _containers.RepeatedCompositeFieldContainer[UsingPod]
    sick: _containers.RepeatedCompositeFieldContainer[SickDevice]
    notes: _containers.RepeatedScalarFieldContainer[str]
    age_s: float
    doubt: str
    def __init__(self, cluster: _Optional[str] = ..., pods: _Optional[_Iterable[_Union[UsingPod, _Mapping]]] = ..., sick: _Optional[_Iterable[_Union[SickDevice, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ..., age_s: _Optional[float] = ..., doubt: _Optional[str] = ...) -> None: ...

class UsingPod(_message.Message):
    __slots__ = ("namespace", "name", "owner_kind", "owner_name", "queue", "node", "age_s", "uses")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_KIND_FIELD_NUMBER: _ClassVar[int]
    OWNER_NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    owner_kind: str
    owner_name: str
    queue: str
    node: str
    age_s: int
    uses: _containers.RepeatedCompositeFieldContainer[DeviceUse]
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., owner_kind: _Optional[str] = ..., owner_name: _Optional[str] = ..., queue: _Optional[str] = ..., node: _Optional[str] = ..., age_s: _Optional[int] = ..., uses: _Optional[_Iterable[_Union[DeviceUse, _Mapping]]] = ...) -> None: ...

class DeviceUse(_message.Message):
    __slots__ = ("product", "milli", "pieces", "findings", "device")
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    MILLI_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    product: str
    milli: int
    pieces: int
    findings: _containers.RepeatedScalarFieldContainer[str]
    device: MeasuredDevice
    def __init__(self, product: _Optional[str] = ..., milli: _Optional[int] = ..., pieces: _Optional[int] = ..., findings: _Optional[_Iterable[str]] = ..., device: _Optional[_Union[MeasuredDevice, _Mapping]] = ...) -> None: ...

class MeasuredDevice(_message.Message):
    __slots__ = ("id", "index", "product", "memory_bytes", "parent", "profile", "health", "p50_percent", "p95_percent", "memory_peak_bytes", "idle_s", "throttled_s", "window_s")
    ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    P50_PERCENT_FIELD_NUMBER: _ClassVar[int]
    P95_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    IDLE_S_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_S_FIELD_NUMBER: _ClassVar[int]
    WINDOW_S_FIELD_NUMBER: _ClassVar[int]
    id: str
    index: int
    product: str
    memory_bytes: int
    parent: str
    profile: str
    health: str
    p50_percent: int
    p95_percent: int
    memory_peak_bytes: int
    idle_s: int
    throttled_s: int
    window_s: int
    def __init__(self, id: _Optional[str] = ..., index: _Optional[int] = ..., product: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., parent: _Optional[str] = ..., profile: _Optional[str] = ..., health: _Optional[str] = ..., p50_percent: _Optional[int] = ..., p95_percent: _Optional[int] = ..., memory_peak_bytes: _Optional[int] = ..., idle_s: _Optional[int] = ..., throttled_s: _Optional[int] = ..., window_s: _Optional[int] = ...) -> None: ...

class SickDevice(_message.Message):
    __slots__ = ("node", "device", "index", "product", "health", "problems", "pods")
    NODE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    node: str
    device: str
    index: int
    product: str
    health: str
    problems: _containers.RepeatedScalarFieldContainer[str]
    pods: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., device: _Optional[str] = ..., index: _Optional[int] = ..., product: _Optional[str] = ..., health: _Optional[str] = ..., problems: _Optional[_Iterable[str]] = ..., pods: _Optional[_Iterable[str]] = ...) -> None: ...
