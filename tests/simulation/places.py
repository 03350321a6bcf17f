"""Places: what was proven is what happens."""

from dataclasses import dataclass, field

from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at
from tests.simulation.accounts import is_held, placed
from tests.simulation.submitted import Submitted


@dataclass
class Places(Submitted):
    """The laws about places, beside all others."""

    _chosen: dict[str, dict[str, int]] = field(default_factory=dict)
    """By key: where it was released to, until it is moved for a reason."""
    chosen: int = 0
    left: int = 0

    def _wrote(self, written: Written, before: Obj, after: Obj) -> None:
        super()._wrote(written, before, after)
        if is_held(before) and not is_held(after) and not placed(before):
            self._chosen.pop(written.key, None)
            if placed(after):
                self.chosen += 1
                self._chosen[written.key] = shares(after)
            else:
                self.left += 1

    def _binding_changed(self, written: Written) -> None:
        super()._binding_changed(written)
        chosen, after = self._chosen.get(written.key), written.after
        if chosen is None:
            return
        if (
            after is None
            or is_held(after)
            or sum(chosen.values()) != at(after, "spec", "replicas", default=0)
        ):
            del self._chosen[written.key]
        elif shares(after) != chosen and written.user == "karmada-scheduler":
            del self._chosen[written.key]
            if all(self._is_open(cluster) for cluster in chosen):
                told = f"released to {chosen}, and placed on {shares(after)}"
                self._break("it goes where it was proven", written.key, told)


def shares(binding: Obj) -> dict[str, int]:
    """Replicas by cluster."""
    clusters = at(binding, "spec", "clusters", default=()) or ()
    return {share["name"]: int(share.get("replicas", 0)) for share in clusters}
