"""Preconditions: which object, in which version, a write is meant for."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.kube.objects import ObjectMeta


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The object that a patch is meant for; with an empty ``resource_version`` in whatever state it is."""

    uid: str
    resource_version: str = ""

    @classmethod
    def exactly(cls, metadata: ObjectMeta) -> "Preconditions":
        """That object in that very version."""
        return cls(metadata.uid, metadata.resource_version)

    def within(self, body: Mapping[str, object]) -> dict[str, object]:
        """``body`` with these preconditions in its metadata, beside what it says there."""
        metadata = body.get("metadata")
        named: dict[str, object] = dict(metadata) if isinstance(metadata, Mapping) else {}
        named["uid"] = self.uid
        if self.resource_version:
            named["resourceVersion"] = self.resource_version
        return {**body, "metadata": named}
