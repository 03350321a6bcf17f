"""Dynamic Resource Allocation as Kubernetes states it: slices, classes, claims; only what decides something.

The shape is that of ``resource.k8s.io/v1``, which v1beta2 shares. Two things of v1beta1 are read as well:
requests without ``exactly``, and devices whose content stands under ``basic``. As in `fairway.kube.objects`,
every field is optional and a wrong type is a located error.

Mirrors k8s.io/api/resource/v1/types.go of Kubernetes 1.36.
"""

import msgspec

from fairway.kube.objects import ApiObject, KubeStruct, RawQuantity, RawResources
from fairway.kube.templates import NodeSelector
from fairway.taints import Taint, Toleration


class DeviceAttribute(KubeStruct, frozen=True):
    """One attribute: exactly one of its fields is set; the lists are alpha in 1.36."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")
    int_values: list[int] | None = msgspec.field(default=None, name="ints")
    bool_values: list[bool] | None = msgspec.field(default=None, name="bools")
    string_values: list[str] | None = msgspec.field(default=None, name="strings")
    version_values: list[str] | None = msgspec.field(default=None, name="versions")


class CapacityRange(KubeStruct, frozen=True):
    """The amounts between ``min`` and ``max`` that are ``step`` apart."""

    min: RawQuantity = None
    max: RawQuantity = None
    step: RawQuantity = None


class CapacityRequestPolicy(KubeStruct, frozen=True):
    """How much of a capacity one share takes: the default, and which amounts may be asked for."""

    default: RawQuantity = None
    valid_values: list[RawQuantity] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(KubeStruct, frozen=True):
    """One capacity of a device."""

    value: RawQuantity = None
    request_policy: CapacityRequestPolicy | None = None


class Counter(KubeStruct, frozen=True):
    """An amount of one counter."""

    value: RawQuantity = None


class CounterSet(KubeStruct, frozen=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(KubeStruct, frozen=True):
    """What a device takes of one counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class BasicDevice(KubeStruct, frozen=True):
    """Where v1beta1 keeps attributes and capacities of a device."""

    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None


class SliceDevice(KubeStruct, frozen=True):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[CounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[Taint] | None = None
    binding_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None
    basic: BasicDevice | None = None


class SlicePool(KubeStruct, frozen=True):
    """Which pool a slice belongs to, in which generation, and how many slices that generation has."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(KubeStruct, frozen=True):
    """Devices or counters of a pool, and the nodes that reach them."""

    driver: str = ""
    pool: SlicePool = SlicePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[SliceDevice] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(ApiObject, frozen=True):
    """What a driver offers."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class CelSelector(KubeStruct, frozen=True):
    """A CEL expression over ``device``."""

    expression: str = ""


class DeviceSelector(KubeStruct, frozen=True):
    """A condition on devices; CEL is the only kind there is."""

    cel: CelSelector | None = None


class DeviceClassSpec(KubeStruct, frozen=True):
    """Which devices are of the class, and the extended resource that stands for them."""

    selectors: list[DeviceSelector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True):
    """A kind of device that requests refer to by name."""

    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(KubeStruct, frozen=True):
    """How much of each capacity a request asks of every device."""

    requests: RawResources | None = None


class ExactDeviceRequest(KubeStruct, frozen=True):
    """Devices of one class, a count or all of them."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[Toleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ExactDeviceRequest, frozen=True):
    """One of several alternatives, in order of preference."""

    name: str = ""


class DeviceRequest(ExactDeviceRequest, frozen=True):
    """One request of a claim; the fields of `ExactDeviceRequest` stand here themselves in v1beta1 only."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(KubeStruct, frozen=True):
    """What devices of the named requests (none named: of all) must have in common, or must not."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(KubeStruct, frozen=True):
    """The requests of a claim."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None


class ResourceClaimSpec(KubeStruct, frozen=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(KubeStruct, frozen=True):
    """One device, or one share of it, that a claim holds."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: RawResources | None = None


class DeviceResults(KubeStruct, frozen=True):
    """All that a claim holds."""

    results: list[DeviceResult] | None = None


class AllocationResult(KubeStruct, frozen=True):
    """An allocation, and the nodes that can use it."""

    devices: DeviceResults = DeviceResults()
    node_selector: NodeSelector | None = None


class ResourceClaimConsumer(KubeStruct, frozen=True):
    """Who uses the claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(KubeStruct, frozen=True):
    """What a claim got; no allocation means that it waits."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumer] | None = None


class ResourceClaim(ApiObject, frozen=True):
    """A claim on devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(KubeStruct, frozen=True):
    """What each claim made from a template asks for."""

    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject, frozen=True):
    """A claim for each pod that refers to it."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
