"""What a pod asks of devices that HAMi shares: one claim for each container that asks.

All amounts of a container are per device: ``nvidia.com/gpu: 2`` with ``nvidia.com/gpumem: 5000`` is 5000 MiB
on each of two devices. Where only the sum over several containers is known, it is taken for one container,
which asks for more than they do: more memory on each device, all of it at once, on different devices.

What HAMi's admission refuses or HAMi then gives no devices for is a problem, and such a pod fits nowhere.

Mirrors MutateAdmission, GenerateResourceRequests and Fit in pkg/device/<vendor>/ of HAMi 2.10. The resource
quotas that HAMi keeps of its own are not looked at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairway.accelerators.annotation import MOST, listed, truth
from fairway.accelerators.devices import PPM, DeviceClaim, DeviceFilter, PodAsk, Read
from fairway.accelerators.hami_vendors import Rule, Vendor

POLICY = "hami.io/gpu-scheduler-policy"
SOFT_MODE = "huawei.com/vnpu-mode"
SOFT = "hami-core"
TEMPLATE = "template"

_PERCENT = PPM // 100
_NO_MODE = " "

_Asked = Mapping[str, int]
_Claims = tuple[DeviceClaim, ...] | str


def hami_claims(vendor: Vendor, ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    """The claims on the vendor's devices; None where no container asks. With a problem it fits nowhere."""
    names = (vendor.count, *vendor.managed)
    if not any(name in names for container in ask.containers for name, _ in container):
        return None
    choice = _choice(vendor, dict(ask.annotations))
    each = [_container(vendor, dict(container), choice) for container in ask.containers]
    problems = tuple(dict.fromkeys(read for read in each if isinstance(read, str)))
    claims = tuple(claim for read in each if not isinstance(read, str) for claim in read)
    return Read((), problems) if problems else Read(claims) if claims else None


@dataclass(frozen=True, slots=True)
class _Choice:
    filter: DeviceFilter
    same_numa: bool
    untouched: bool
    soft: bool


def _choice(vendor: Vendor, annotations: Mapping[str, str]) -> _Choice:
    mode = annotations.get(vendor.mode) if vendor.mode else None
    return _Choice(
        DeviceFilter(
            products=_wanted(annotations.get(vendor.use_type, "")),
            not_products=listed(annotations.get(vendor.avoid_type, "")),
            ids=_ids(annotations, vendor.use_id),
            not_ids=tuple(id for name in vendor.avoid_id for id in listed(annotations.get(name, ""))),
            # An empty mode is one that no device is in.
            mode="" if mode is None else mode or _NO_MODE,
        ),
        same_numa=truth(annotations.get(vendor.same_numa, "")) is True,
        untouched="mutex" in listed(annotations.get(POLICY, "")),
        soft=annotations.get(SOFT_MODE) == SOFT,
    )


def _wanted(text: str) -> tuple[str, ...]:
    # A list of nothing but commas is one that nothing is on, and no name has a comma in it.
    return listed(text) or ((",",) if text.strip() else ())


def _ids(annotations: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    lists = [wanted for name in names if (wanted := _wanted(annotations.get(name, "")))]
    if len(lists) < 2:
        return lists[0] if lists else ()
    return tuple(id for id in lists[0] if all(id in others for others in lists[1:])) or (",",)


def _container(vendor: Vendor, asked: _Asked, choice: _Choice) -> _Claims:
    names = [name for name in (vendor.memory, vendor.percentage, vendor.cores) if name in asked]
    if vendor.count not in asked and not names:
        return ()
    for name in (vendor.count, *names):
        most = MOST // vendor.memory_unit if name == vendor.memory else MOST
        if not 0 <= asked.get(name, 0) <= most:
            return f"{name} is {asked[name]}, expected a plain number from 0 to {most}" + (
                ", in MiB: 16384 for 16Gi" if name == vendor.memory and vendor.memory_unit == 1 else ""
            )
    count = asked.get(vendor.count, vendor.default_count)
    if vendor.count not in asked and not count:
        return f"{names[0]} is asked for without {vendor.count}; HAMi gives such a container no device"
    if not count:
        return ()
    return _BY_RULE[vendor.rule](vendor, asked, count, choice)


def _share(vendor: Vendor, asked: _Asked, count: int, choice: _Choice) -> _Claims:
    memory = asked.get(vendor.memory, 0) * vendor.memory_unit
    percent = asked.get(vendor.percentage)
    cores = asked.get(vendor.cores)
    if cores is None:
        wants_all = percent == 100 if percent is not None else vendor.memory not in asked
        cores = 100 if vendor.whole_takes_cores and wants_all else vendor.default_cores
    if vendor.many_take_cores and count > 1:
        cores = 100
    cores = min(cores, 100)
    return (
        DeviceClaim(
            count,
            memory,
            # Zero percent is as good as none asked for.
            0 if memory else min(percent or 100, 100) * _PERCENT,
            cores,
            exclusive=cores == 100 or choice.untouched,
            same_numa=choice.same_numa,
            filter=choice.filter,
        ),
    )


def _share_of_cores(vendor: Vendor, asked: _Asked, count: int, choice: _Choice) -> _Claims:
    cores = asked.get(vendor.cores, vendor.default_cores)
    if not 1 <= cores <= 100:
        return f"{vendor.cores} is {cores}, expected percent from 1 to 100"
    memory = asked.get(vendor.memory, 0)
    return (
        DeviceClaim(
            count,
            memory,
            0 if memory else PPM,
            # Every pod has cores, so that all of them are free only on a device that nobody uses.
            exclusive=cores == 100 or choice.untouched,
            filter=choice.filter,
            cores_ppm=cores * _PERCENT,
        ),
    )


def _slot(vendor: Vendor, asked: _Asked, count: int, choice: _Choice) -> _Claims:
    if choice.untouched and vendor.mutex_spans_cards:
        return f"annotation {POLICY} is mutex, which for {vendor.count} goes by cards that nodes do not show"
    return (DeviceClaim(count, exclusive=choice.untouched, filter=choice.filter),)


def _size(vendor: Vendor, asked: _Asked, count: int, choice: _Choice) -> _Claims:
    if count not in (1, 2, 4, 8):
        return f"{vendor.count} is {count}, expected 1, 2, 4 or 8, as many as HAMi finds links between"
    memory = asked.get(vendor.memory, 0) or vendor.whole_memory
    size = next((size for size in vendor.templates if memory <= size), vendor.whole_memory)
    # Others of the same size could share the device; which size it has taken is not kept, so nobody does.
    return (DeviceClaim(count, size, exclusive=True, same_numa=count in (2, 4), filter=choice.filter),)


def _template(vendor: Vendor, asked: _Asked, count: int, choice: _Choice) -> _Claims:
    memory, cores = asked.get(vendor.memory, 0) or vendor.whole_memory, asked.get(vendor.cores, 0)
    filter = choice.filter
    if choice.soft:
        cores = min(cores, 100)
        filter = DeviceFilter(ids=filter.ids, not_ids=filter.not_ids, mode=SOFT)
    elif cores:
        return f"{vendor.cores} is asked for without annotation {SOFT_MODE}: {SOFT}"
    elif memory > vendor.largest_memory:
        return f"{vendor.memory} is {memory}, more than the {vendor.largest_memory} MiB of a device"
    else:
        memory = next((size for size in vendor.templates if memory <= size), vendor.whole_memory)
        if memory < vendor.whole_memory:
            if count > 1:
                return f"{vendor.count} is {count} with part of the memory, expected 1 device or all memory"
            # Beside pods that share softly a template does not always fit, and HAMi's rule for it is
            # about cores counted in two units.
            filter = DeviceFilter(ids=filter.ids, not_ids=filter.not_ids, mode=TEMPLATE)
    exclusive = cores == 100 or choice.untouched
    if not vendor.in_pairs:
        return (DeviceClaim(count, memory, 0, cores, exclusive, filter=filter),)
    if count > 2 and count % 2:
        return f"{vendor.count} is {count}, expected 1 or an even number"
    exclusive |= count > 2
    return (DeviceClaim(2, memory, 0, cores, exclusive, same_numa=True, filter=filter),) * ((count + 1) // 2)


_BY_RULE: dict[Rule, Callable[[Vendor, _Asked, int, _Choice], _Claims]] = {
    Rule.SHARE: _share,
    Rule.SHARE_OF_CORES: _share_of_cores,
    Rule.SLOT: _slot,
    Rule.SIZE: _size,
    Rule.TEMPLATE: _template,
}
