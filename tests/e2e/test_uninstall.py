"""`fairway uninstall` gives back what is held, leaves what runs alone, and nothing of ours stays."""

from tests.e2e.objects import MERGE, WORK
from tests.e2e.tenant import Tenant
from tests.e2e.uninstalling import left, uninstall
from tests.e2e.watching import eventually
from tests.e2e.workloads import aggregated, job

BOTH = aggregated("a", "b")


async def test_gives_everything_back(tenant: Tenant) -> None:
    plane = tenant.plane
    await tenant.quota(2)
    runs, waits, others = job("runs", 2), job("waits", 2), job("others", 1, 0, queue="")
    runs_key = await tenant.submit(runs, BOTH)
    await tenant.placed(runs_key)
    await tenant.running(runs, 2)
    uids = tenant.pod_uids(runs)
    waits_key = await tenant.submit(waits, BOTH)
    await tenant.waits_for(waits, "WaitingForQuota")
    # In nobody's queue, for a cluster that there is not, and suspended by somebody else.
    others_key = await tenant.submit(others, aggregated("elsewhere"))
    await plane.changes.until(lambda: tenant.knows(others_key), "its binding")
    held = {"spec": {"suspension": {"scheduling": True}}}
    path = f"{WORK}/namespaces/{tenant.namespace}/resourcebindings/{others.binding}"
    await plane.karmada.client.patch(path, held, dict, content_type=MERGE)

    try:
        text = await uninstall(plane)
        await tenant.placed(waits_key)
        await tenant.running(waits, 2)
        assert tenant.pod_uids(runs) == uids
        assert tenant.binding(others_key).is_held, text
        for key in (runs_key, waits_key):
            annotations = tenant.binding(key).metadata.annotations or {}
            assert not [name for name in annotations if "fairway.dev" in name]
        await plane.fairway.until_held(held=False)
        passes = job("passes", 1)
        key = await tenant.submit(passes, BOTH)
        await tenant.placed(key)
        assert not any(binding.is_held for binding in tenant.versions(key))
        found: list[str] = []

        async def nothing_left() -> bool:
            found[:] = await left(plane)
            return not found

        # Namespaces take their time.
        try:
            await eventually(nothing_left, "everything of ours deleted", 30.0)
        except AssertionError as error:
            raise AssertionError(f"{error}: {found}; it said:\n{text}") from None
    finally:
        await plane.install_again()
