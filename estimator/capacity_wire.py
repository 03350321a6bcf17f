"""Summaries, placements and explanations to protobuf and back, for fairway.capacity.v1.

One function each way for every value: the server encodes, the ``fairway`` command decodes, and what was
encoded comes back equal. Numbers beyond a field's width saturate instead of failing, in one place. Requests
are read in `estimator.capacity_requests`.
"""

from estimator.capacity.gangs.placements import (
    Assignment,
    Blocked,
    ClusterExplanation,
    ClusterPlacement,
    Explanation,
    NearMiss,
)
from estimator.capacity.summary import (
    Chunk,
    Domain,
    Fractions,
    LargestGang,
    Level,
    Partition,
    Placeable,
    Product,
    SliceShape,
    StrandedNode,
    Summary,
)
from estimator.reasons import Reason
from fairway.capacity.v1 import capacity_pb2 as pb

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
NOT_WORKED_OUT = -1
"""What ``spread_fits`` is on the wire where nobody worked it out."""


def encode_summary(summary: Summary) -> pb.ClusterSummary:
    """One cluster's summary as a message; counts saturate at the width of their fields."""
    return pb.ClusterSummary(
        cluster=summary.cluster,
        nodes=_int32(summary.nodes),
        pods=_int32(summary.pods),
        products=map(_encode_product, summary.products),
        stranded=(
            pb.StrandedNode(
                node=node.node,
                product=node.product,
                free=_int64(node.free),
                cause=node.cause,
                remedy=node.remedy,
            )
            for node in summary.stranded
        ),
        slices=(
            pb.SliceShape(
                accelerator=shape.accelerator,
                topology=shape.topology,
                hosts=_int32(shape.hosts),
                slices=_int32(shape.slices),
                free=_int32(shape.free),
                partly_busy=_int32(shape.partly_busy),
                incomplete=_int32(shape.incomplete),
            )
            for shape in summary.slices
        ),
        levels=map(_encode_level, summary.levels),
        uncatalogued=summary.uncatalogued,
        age_s=summary.age_s,
        doubt=summary.doubt,
        problems=summary.problems,
    )


def summary_of(message: pb.ClusterSummary) -> Summary:
    """The summary that a message carries."""
    return Summary(
        cluster=message.cluster,
        nodes=message.nodes,
        pods=message.pods,
        products=tuple(map(_product, message.products)),
        stranded=tuple(StrandedNode(m.node, m.product, m.free, m.cause, m.remedy) for m in message.stranded),
        slices=tuple(
            SliceShape(m.accelerator, m.topology, m.hosts, m.slices, m.free, m.partly_busy, m.incomplete)
            for m in message.slices
        ),
        levels=tuple(
            Level(
                m.level,
                m.product,
                tuple(Domain(tuple(d.path), d.nodes, d.total, d.free, d.whole_nodes_free) for d in m.domains),
                m.unlabelled_nodes,
            )
            for m in message.levels
        ),
        uncatalogued=tuple(message.uncatalogued),
        age_s=message.age_s,
        doubt=message.doubt,
        problems=tuple(message.problems),
    )


def encode_placement(placement: ClusterPlacement) -> pb.ClusterPlacement:
    """A verdict as a message; a ``spread_fits`` that is None becomes `NOT_WORKED_OUT`."""
    spread_fits = NOT_WORKED_OUT if placement.spread_fits is None else placement.spread_fits
    return pb.ClusterPlacement(
        cluster=placement.cluster,
        fits=_int32(placement.fits),
        upper_bound=_int32(placement.upper_bound),
        proven=placement.proven,
        spread_fits=_int32(spread_fits),
        level=placement.level,
        reasons=map(_encode_cause, placement.reasons),
        placement=(
            pb.Assignment(pod_set=one.pod_set, node=one.node, pods=_int32(one.pods))
            for one in placement.placement
        ),
        age_s=placement.age_s,
    )


def placement_of(message: pb.ClusterPlacement) -> ClusterPlacement:
    """The verdict that a message carries."""
    return ClusterPlacement(
        cluster=message.cluster,
        fits=message.fits,
        upper_bound=message.upper_bound,
        proven=message.proven,
        spread_fits=None if message.spread_fits < 0 else message.spread_fits,
        level=message.level,
        reasons=tuple(map(_cause, message.reasons)),
        placement=tuple(Assignment(m.pod_set, m.node, m.pods) for m in message.placement),
        age_s=message.age_s,
    )


def encode_explanation(explanation: ClusterExplanation) -> pb.ClusterExplanation:
    """A verdict and its explanation as a message."""
    return pb.ClusterExplanation(
        placement=encode_placement(explanation.placement),
        pod_sets=(
            pb.PodSetExplanation(
                pod_set=one.pod_set,
                fits_alone=_int32(one.fits_alone),
                blocked=(
                    pb.Blocked(reason=_encode_cause(blocked.cause), nodes=_int32(blocked.nodes))
                    for blocked in one.blocked
                ),
                near_misses=(
                    pb.NearMiss(node=miss.node, missing=miss.missing, remedy=miss.remedy)
                    for miss in one.near_misses
                ),
            )
            for one in explanation.pod_sets
        ),
    )


def explanation_of(message: pb.ClusterExplanation) -> ClusterExplanation:
    """The explanation that a message carries."""
    return ClusterExplanation(
        placement_of(message.placement),
        tuple(
            Explanation(
                m.pod_set,
                m.fits_alone,
                tuple(Blocked(_cause(blocked.reason), blocked.nodes) for blocked in m.blocked),
                tuple(NearMiss(miss.node, miss.missing, miss.remedy) for miss in m.near_misses),
            )
            for m in message.pod_sets
        ),
    )


def _encode_cause(cause: Reason) -> pb.Reason:
    return pb.Reason(kind=cause.kind, text=cause.text)


def _cause(message: pb.Reason) -> Reason:
    return Reason(message.kind, message.text)


def _encode_product(product: Product) -> pb.Product:
    return pb.Product(
        product=product.product,
        resource=product.resource,
        device_class=product.device_class,
        nodes=_int32(product.nodes),
        total=_int64(product.total),
        unhealthy=_int64(product.unhealthy),
        cordoned=_int64(product.cordoned),
        allocated=_int64(product.allocated),
        free=_int64(product.free),
        stranded=_int64(product.stranded),
        placeable=(pb.Placeable(devices=_int32(p.devices), pods=_int64(p.pods)) for p in product.placeable),
        chunks=(pb.Chunk(free=_int64(chunk.free), nodes=_int32(chunk.nodes)) for chunk in product.chunks),
        gangs=(
            pb.LargestGang(
                devices=_int32(gang.devices), level=gang.level, domain=gang.domain, pods=_int64(gang.pods)
            )
            for gang in product.gangs
        ),
        partitions=(
            pb.Partition(
                profile=partition.profile,
                resource=partition.resource,
                total=_int64(partition.total),
                free=_int64(partition.free),
                potential=_int64(partition.potential),
            )
            for partition in product.partitions
        ),
        fractions=(
            pb.Fractions(
                scheme=fractions.scheme,
                devices=_int64(fractions.devices),
                free_milli=_int64(fractions.free_milli),
                largest_free_milli=_int64(fractions.largest_free_milli),
                largest_free_memory=_int64(fractions.largest_free_memory),
                untouched=_int64(fractions.untouched),
            )
            for fractions in product.fractions
        ),
        advertised_per_device=_int32(product.advertised_per_device),
    )


def _product(m: pb.Product) -> Product:
    return Product(
        product=m.product,
        resource=m.resource,
        device_class=m.device_class,
        nodes=m.nodes,
        total=m.total,
        unhealthy=m.unhealthy,
        cordoned=m.cordoned,
        allocated=m.allocated,
        free=m.free,
        stranded=m.stranded,
        placeable=tuple(Placeable(p.devices, p.pods) for p in m.placeable),
        chunks=tuple(Chunk(c.free, c.nodes) for c in m.chunks),
        gangs=tuple(LargestGang(g.devices, g.level, g.domain, g.pods) for g in m.gangs),
        partitions=tuple(
            Partition(p.profile, p.resource, p.total, p.free, p.potential) for p in m.partitions
        ),
        fractions=tuple(
            Fractions(
                f.scheme, f.devices, f.free_milli, f.largest_free_milli, f.largest_free_memory, f.untouched
            )
            for f in m.fractions
        ),
        # Absent from a server that does not tell: then every device is advertised once.
        advertised_per_device=m.advertised_per_device or 1,
    )


def _encode_level(level: Level) -> pb.Level:
    return pb.Level(
        level=level.level,
        product=level.product,
        domains=(
            pb.Domain(
                path=domain.path,
                nodes=_int32(domain.nodes),
                total=_int64(domain.total),
                free=_int64(domain.free),
                whole_nodes_free=_int32(domain.whole_nodes_free),
            )
            for domain in level.domains
        ),
        unlabelled_nodes=_int32(level.unlabelled_nodes),
    )


def _int32(value: int) -> int:
    return max(-MAX_INT32 - 1, min(MAX_INT32, value))


def _int64(value: int) -> int:
    return max(-MAX_INT64 - 1, min(MAX_INT64, value))
