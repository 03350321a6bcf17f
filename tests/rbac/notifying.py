"""``fairway notify`` as its ServiceAccount, with a workload of every kind that it may look up."""

from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from admin.notify.document import Outcome
from estimator.karmada.kinds import KINDS, WatchedKind
from sandbox.fakeapi import FakeApi, Seen
from sandbox.fakeapi.virtual_time import run
from tests.admin.notify.world import World, idle
from tests.rbac import roles
from tests.rbac.roles import NOTIFY

_MORE = (
    WatchedKind("Pod", "", "v1", "pods"),
    WatchedKind("ReplicaSet", "apps", "v1", "replicasets"),
    WatchedKind("CronJob", "batch", "v1", "cronjobs"),
)


def everything() -> dict[str, list[Seen]]:
    """What is asked of a member and of Karmada, by their names in the manifests."""

    async def main() -> dict[str, list[Seen]]:
        async with AsyncExitStack() as stack:
            world = World(Path(stack.enter_context(TemporaryDirectory())), stack, token=NOTIFY)
            member, karmada = await world.member("east"), await world.control_plane()
            for number, kind in enumerate((*KINDS, *_MORE)):
                for cluster in (member, karmada):
                    _serve(cluster.api, kind)
                name = f"w{number}"
                made = karmada.make(kind.api_version, kind.kind, name, plural=kind.plural)
                template = made["metadata"]["uid"]
                top = member.make(kind.api_version, kind.kind, name, of=template, plural=kind.plural)
                member.pod(f"{name}-0", idle(f"GPU-{number}"), by=top)
            member.pod("own", idle("GPU-own"))
            member.api.authorization, karmada.api.authorization = (
                roles.notify("member"),
                roles.notify("karmada"),
            )
            first = await world.run()
            assert {line.outcome for line in first.lines} == {Outcome.TOLD}
            assert {line.where for line in first.lines} == {"east", "karmada"}
            assert len(first.lines) == len(KINDS) + len(_MORE) + 1
            assert first.failures == ()
            return {"member": member.api.seen, "karmada": karmada.api.seen}

    return run(main())


def _serve(api: FakeApi, kind: WatchedKind) -> None:
    """As a CustomResourceDefinition does, so that the kind is called as it is."""
    spec = {
        "group": kind.group,
        "scope": "Namespaced",
        "names": {"plural": kind.plural, "kind": kind.kind},
        "versions": [{"name": kind.version, "served": True}],
    }
    name = f"{kind.plural}.{kind.group}"
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.create(path, {"metadata": {"name": name}, "spec": spec})
