"""A binding as the harness sees it: read from the stored JSON, without any code of the dispatcher."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.fakeapi.store import Collection, Event, Obj, Record, Store

ADMISSION = "fairway.dev/admission"
REQUEUE = "fairway.dev/requeue"
GPU = "nvidia.com/gpu"

Json = Any


@dataclass(frozen=True, slots=True)
class View:
    """``record`` and ``requeue`` are the dispatcher's annotations, decoded; None where absent."""

    namespace: str
    name: str
    uid: str
    created: str
    generation: int
    observed_generation: int
    held: bool
    replicas: int
    gpus: int
    clusters: Mapping[str, int]
    record: Json
    requeue: Json
    is_finished: bool
    unschedulable: bool

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def placed(self) -> int:
        """Replicas on all clusters."""
        return sum(self.clusters.values())


def view(obj: Obj) -> View:
    """The view of a stored binding."""
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    clusters = {target["name"]: target.get("replicas", 0) for target in spec.get("clusters") or ()}
    ended = {
        item["clusterName"]
        for item in status.get("aggregatedStatus") or ()
        for condition in (item.get("status") or {}).get("conditions") or ()
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
    }
    scheduled = [c for c in status.get("conditions") or () if c["type"] == "Scheduled"]
    return View(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        created=metadata["creationTimestamp"],
        generation=metadata["generation"],
        observed_generation=status.get("schedulerObservedGeneration", 0),
        held=bool((spec.get("suspension") or {}).get("scheduling")),
        replicas=spec["replicas"],
        gpus=int(spec["replicaRequirements"]["resourceRequest"][GPU]),
        clusters=clusters,
        record=_decoded(annotations.get(ADMISSION)),
        requeue=_decoded(annotations.get(REQUEUE)),
        is_finished=bool(clusters) and ended >= clusters.keys(),
        unschedulable=any(c["status"] == "False" for c in scheduled),
    )


def _decoded(text: str | None) -> Json:
    return None if text is None else json.loads(text)


def bindings(store: Store) -> Collection:
    """The collection of all ResourceBindings."""
    return store.collection("work.karmada.io/v1alpha2", "resourcebindings")


def view_of(record: Record) -> View:
    return view(record.decode())


async def changes(collection: Collection) -> AsyncIterator[Event]:
    """Every change from now on, in order; none is left out."""
    wakeup, number = asyncio.Event(), collection.next_event
    collection.wakeups.add(wakeup)
    try:
        while True:
            wakeup.clear()
            events = collection.events_from(number)
            number += len(events)
            for event in events:
                yield event
            if not events:
                await wakeup.wait()
    finally:
        collection.wakeups.discard(wakeup)
