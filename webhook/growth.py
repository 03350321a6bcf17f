"""Does an update ask for more than before? Compared field by field, since that is what can be said at once.

More replicas, more of a resource for each replica, a new component, or more of either within a component.
Whether the workload as a whole still fits what was admitted is the dispatcher's to say, which gives a growth
back at once that needs no quota: this must only never miss one. The same rule as an expression, for control
planes that apply it themselves, is in `webhook.match_conditions`.
"""

from fairway.kube.objects import RawQuantity, RawResources
from fairway.quantity import QuantityError, parse_nano
from fairway.scope import is_positive
from webhook.bindings import BindingSpec, Component, Requirements

_SHOWN = 63


def growth(old: BindingSpec, new: BindingSpec) -> str | None:
    """What grew, in words, or None; a quantity that does not parse is more, unless it was there before."""
    if (new.replicas or 0) > (old.replicas or 0):
        return f"replicas from {old.replicas or 0} to {new.replicas}"
    more = _more(old.replica_requirements, new.replica_requirements)
    return more or _component_growth(old.components or [], new.components or [])


def _component_growth(old: list[Component], new: list[Component]) -> str | None:
    # Names are unique; where they are not, counting still notices a further one.
    if len(new) > len(old):
        return f"components from {len(old)} to {len(new)}"
    before = {component.name: component for component in old}
    for component in new:
        name = component.name[:_SHOWN]
        was = before.get(component.name)
        if was is None:
            return f"component {name} is new"
        if (component.replicas or 0) > (was.replicas or 0):
            return f"replicas of component {name} from {was.replicas or 0} to {component.replicas}"
        if more := _more(was.replica_requirements, component.replica_requirements):
            return f"{more} in component {name}"
    return None


def _more(old: Requirements | None, new: Requirements | None) -> str | None:
    before: RawResources = (old.resource_request if old else None) or {}
    after: RawResources = (new.resource_request if new else None) or {}
    for name, quantity in after.items():
        if _is_more(before.get(name), quantity):
            return f"requests of {name[:_SHOWN]} from {_text(before.get(name))} to {_text(quantity)}"
    return None


def _is_more(old: RawQuantity, new: RawQuantity) -> bool:
    if old is None:
        return is_positive(new)
    if new is None or str(new) == str(old):
        return False
    try:
        return parse_nano(new) > parse_nano(old)
    except QuantityError:
        return True


def _text(quantity: RawQuantity) -> str:
    return "none" if quantity is None else str(quantity)[:_SHOWN]
