"""The OverridePolicy that suspends a workload in its cluster, by the switch that its kind has.

It is there as long as the binding says that the workload is suspended, and follows that: it is written after
the binding is held, and goes after it has been released. So what runs is charged in each moment, whoever dies
between the two, and whoever leads next sees from both objects what is left to do. It is a policy of its own,
for the one that guides pods stays as it is while they are placed.

Mirrors Karmada 1.13 to 1.19 (pkg/controllers/binding): whatever becomes of an OverridePolicy, the Works of
the bindings that it is about are made anew, whether or not their scheduling is suspended.
"""

from collections.abc import Mapping
from typing import Final

from fairway.names import SUSPENDED
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.override_policy import API_VERSION, MAX_NAME, add, policy_of, rule
from queue_dispatcher.workloads.pausing import Switch, has_switch

_PREFIX: Final = "suspended-by-fairway-"


def may_have_policy(binding: Binding) -> bool:
    """Whether a policy can be called after the binding, and be found about it."""
    return bool(binding.namespace) and len(_PREFIX) + len(binding.name) <= MAX_NAME


def calls_for_policy(binding: Binding) -> bool:
    """Whether a policy has to be there for the binding as it is; if not, none may be."""
    workload = binding.workload
    return binding.suspended is not None and has_switch(workload.group, workload.kind)


def policy_name(binding: Binding) -> str:
    """What the policy of a binding is called."""
    return f"{_PREFIX}{binding.name}"


def policy_path(binding: Binding) -> str:
    """Where the policy of a binding is served; the binding has a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{binding.namespace}/overridepolicies/{policy_name(binding)}"


def binding_key(policy_key: str) -> str:
    """The key of the binding after which a policy of this key is called; empty for none."""
    namespace, _, name = policy_key.partition("/")
    return f"{namespace}/{name.removeprefix(_PREFIX)}" if name.startswith(_PREFIX) else ""


def suspending_policy(binding: Binding, cluster: str, switch: Switch) -> Mapping[str, object]:
    """The policy, as it is to be applied, for what is suspended in that cluster."""
    entry = add(switch.pointer, switch.value)
    return policy_of(binding, policy_name(binding), [rule((cluster,), [entry])], {SUSPENDED: "true"})
