"""Who uses what in one cluster as pages of fairway.capacity.v1, each small enough for any client, and back.

A page ends where it has become long; whatever a cluster holds, none is longer than that by more than 256
devices of one pod. Texts that others wrote into objects are cut where they would break that.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from estimator.capacity.usage import UsageAnswer
from estimator.capacity_wire import MAX_INT32, MAX_INT64
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.node_devices import Health
from fairway.usage.definitions import Finding
from fairway.usage.measured import Measured
from fairway.usage.owner import Owner
from fairway.usage.use import ClusterUsage, HoldingPod, SickDevice, Use

PAGE_BYTES = 256 << 10
"""Where a page ends; clients take 4 MiB unless they say otherwise."""

_LONGEST_NAME, _LONGEST_ID, _LONGEST_SENTENCE = 253, 128, 1000
_MOST_NAMED = 64
_MOST_USES = 256
_KNOWN_FINDINGS = {finding.value: finding for finding in Finding}
_KNOWN_HEALTH = {health.value: health for health in Health}


def encode_pages(cluster: str, parts: Iterable[ClusterUsage], age_s: float, doubt: str) -> list[bytes]:
    """The cluster's parts as pages, one at least. ``age_s``, ``doubt``: as in `UsageAnswer`."""
    pages: list[bytes] = []
    page, size = pb.UsagePage(cluster=cluster, age_s=age_s, doubt=doubt), 0
    for one in chain.from_iterable(map(_messages, parts)):
        length = len(one) * 4 if isinstance(one, str) else one.ByteSize()
        if size and size + length > PAGE_BYTES:
            pages.append(page.SerializeToString())
            page, size = pb.UsagePage(cluster=cluster, age_s=age_s, doubt=doubt), 0
        size += length
        match one:
            case pb.UsingPod():
                page.pods.append(one)
            case pb.SickDevice():
                page.sick.append(one)
            case _:
                page.notes.append(one)
    return [*pages, page.SerializeToString()]


def _messages(part: ClusterUsage) -> Iterator[pb.UsingPod | pb.SickDevice | str]:
    return chain(_pods(part.uses), map(_sick, part.sick), map(_sentence, part.notes))


def answers_of(pages: Iterable[pb.UsagePage]) -> tuple[UsageAnswer, ...]:
    """The answers that the pages carry, in the order in which the clusters appear."""
    of: dict[str, list[pb.UsagePage]] = {}
    for page in pages:
        of.setdefault(page.cluster, []).append(page)
    return tuple(_answer(cluster, told) for cluster, told in of.items())


def _pods(uses: Iterable[Use]) -> Iterator[pb.UsingPod]:
    """The uses of one pod come one after the other, and belong together."""
    last, message = None, pb.UsingPod()
    for use in uses:
        if use.pod is not last or len(message.uses) >= _MOST_USES:
            if last is not None:
                yield message
            last, message = use.pod, _pod(use.pod)
        message.uses.append(_use(use))
    if last is not None:
        yield message


def _pod(pod: HoldingPod) -> pb.UsingPod:
    return pb.UsingPod(
        namespace=_cut(pod.namespace),
        name=_cut(pod.name),
        owner_kind=_cut(pod.owner.kind),
        owner_name=_cut(pod.owner.name),
        queue=_cut(pod.queue),
        node=_cut(pod.node),
        age_s=_long(pod.age_s),
    )


def _use(use: Use) -> pb.DeviceUse:
    return pb.DeviceUse(
        product=_cut(use.product),
        milli=min(use.milli, MAX_INT64),
        pieces=min(use.pieces, MAX_INT64),
        findings=sorted(use.findings),
        device=None if use.device is None else _device(use.device),
    )


def _device(device: Measured) -> pb.MeasuredDevice:
    return pb.MeasuredDevice(
        id=_cut(device.id, _LONGEST_ID),
        index=_index(device.index),
        product=_cut(device.product, _LONGEST_ID),
        memory_bytes=_long(device.memory_bytes),
        parent=_cut(device.parent, _LONGEST_ID),
        profile=_cut(device.profile, _LONGEST_ID),
        health=device.health.value,
        p50_percent=device.p50_percent,
        p95_percent=device.p95_percent,
        memory_peak_bytes=_long(device.memory_peak_bytes),
        idle_s=_long(device.idle_s),
        throttled_s=_long(device.throttled_s),
        window_s=_long(device.window_s),
    )


def _sick(device: SickDevice) -> pb.SickDevice:
    return pb.SickDevice(
        node=_cut(device.node),
        device=_cut(device.device),
        index=_index(device.index),
        product=_cut(device.product),
        health=device.health,
        problems=map(_sentence, device.problems[:_MOST_NAMED]),
        pods=map(_cut, device.pods[:_MOST_NAMED]),
    )


def _cut(text: str, longest: int = _LONGEST_NAME) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _sentence(text: str) -> str:
    return _cut(text, _LONGEST_SENTENCE)


def _long(value: int | None) -> int | None:
    # Nearly always it is not: two calls less for each of six numbers of a device.
    if value is None or -MAX_INT64 <= value <= MAX_INT64:
        return value
    return max(-MAX_INT64, min(value, MAX_INT64))


def _index(value: int) -> int:
    return max(-1, min(value, MAX_INT32))


def _answer(cluster: str, pages: list[pb.UsagePage]) -> UsageAnswer:
    usage = ClusterUsage(
        cluster,
        tuple(use for page in pages for message in page.pods for use in _uses_of(message)),
        tuple(_sick_of(cluster, message) for page in pages for message in page.sick),
        tuple(note for page in pages for note in page.notes),
    )
    return UsageAnswer(usage, pages[0].age_s, pages[0].doubt)


def _uses_of(message: pb.UsingPod) -> Iterator[Use]:
    pod = HoldingPod(
        message.namespace,
        message.name,
        Owner(message.owner_kind, message.owner_name),
        message.queue,
        message.node,
        message.age_s if message.HasField("age_s") else None,
    )
    for use in message.uses:
        yield Use(
            pod,
            use.product,
            use.milli,
            use.pieces,
            _device_of(pod.node, use.device) if use.HasField("device") else None,
            # A newer server may find more.
            frozenset(_KNOWN_FINDINGS[name] for name in use.findings if name in _KNOWN_FINDINGS),
        )


def _device_of(node: str, message: pb.MeasuredDevice) -> Measured:
    def known(field: str, value: int) -> int | None:
        return value if message.HasField(field) else None

    return Measured(
        message.id,
        node,
        message.index,
        message.product,
        message.memory_bytes,
        message.parent,
        message.profile,
        _KNOWN_HEALTH.get(message.health, Health.DEGRADED),
        (),
        (),
        known("p50_percent", message.p50_percent),
        known("p95_percent", message.p95_percent),
        known("memory_peak_bytes", message.memory_peak_bytes),
        known("idle_s", message.idle_s),
        known("throttled_s", message.throttled_s),
        message.window_s,
    )


def _sick_of(cluster: str, message: pb.SickDevice) -> SickDevice:
    return SickDevice(
        cluster,
        message.node,
        message.device,
        message.index,
        message.product,
        message.health,
        tuple(message.problems),
        tuple(message.pods),
    )
