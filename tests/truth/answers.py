"""What Fairway answers about cases, over each way in: Place, MaxAvailableReplicas and ``fairway explain``."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
from click.testing import CliRunner

from admin.main import cli
from estimator.pb import estimator_pb2 as pb
from fairway.capacity.v1 import capacity_pb2
from sandbox.fakeapi import FakeApi
from tests.estimator.serving import DEFAULTS, Caller, CapacityCaller, kubeconfig, running, snapshot
from tests.truth.amounts import Amounts, amounts
from tests.truth.cases import Case
from tests.truth.draft import REQUIRED
from tests.truth.fields import Json, objects, strings, table, text, words

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"


@dataclass(frozen=True)
class Answer:
    """A number and how sure of it Fairway is; Karmada is told no ``proven``, which is None then."""

    value: int
    proven: bool | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """The same question asked in each way."""

    place: Answer
    replicas: Answer
    explain: Answer

    def by_way(self) -> dict[str, Answer]:
        return {"Place": self.place, "MaxAvailableReplicas": self.replicas, "explain": self.explain}


def write(cases: Sequence[Case], folder: Path) -> None:
    """The cases' clusters and workloads as files."""
    for case in cases:
        dump_file(case, folder).write_text(json.dumps(case.dump()))
        workload_file(case, folder).write_text(json.dumps(case.workload()))


def dump_file(case: Case, folder: Path) -> Path:
    return folder / f"{_cluster(case)}.json"


def workload_file(case: Case, folder: Path) -> Path:
    return folder / f"{_cluster(case)}-workload.json"


def explained(case: Case, folder: Path) -> Answer:
    """By the command, as a user calls it."""
    files = [str(dump_file(case, folder)), "-f", str(workload_file(case, folder))]
    found = CliRunner().invoke(cli, ["explain", *files, "-o", "json"])
    if not found.stdout.startswith("{"):
        raise AssertionError(f"case {case.seed}: {found.output}") from found.exception
    (cluster,) = objects(json.loads(found.stdout), "clusters")
    placement = table(cluster, "placement")
    reasons = tuple(text(reason, "text") for reason in objects(placement, "reasons"))
    fits, proven = placement["fits"], placement["proven"]
    assert isinstance(fits, int)
    assert isinstance(proven, bool)
    return Answer(fits, proven, reasons)


@asynccontextmanager
async def server(cases: Sequence[Case], folder: Path) -> AsyncIterator["Served"]:
    """One estimator for all the cases' clusters, with Karmada's API server serving their workloads."""
    async with FakeApi() as karmada:
        for case in cases:
            karmada.create(DEPLOYMENTS.format(case.namespace), case.workload())
        settings = replace(
            DEFAULTS,
            clusters=tuple(snapshot(_cluster(case), dump_file(case, folder)) for case in cases),
            karmada=kubeconfig(folder / "karmada", karmada.url),
        )
        async with running(settings) as (port, _), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Served(channel)


class Served:
    """Questions to a running estimator."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._karmada = Caller(channel)
        self._capacity = CapacityCaller(channel)

    async def place(self, case: Case) -> Answer:
        """As many pods of the template as fit."""
        pods = capacity_pb2.PodSet(name="main", count=1, template_json=json.dumps(case.template).encode())
        gang = capacity_pb2.Gang(namespace=case.namespace, name=case.name, pod_sets=[pods])
        request = capacity_pb2.PlaceRequest(clusters=[_cluster(case)], gang=gang)
        (found,) = await self._capacity.place(request)
        return Answer(found.fits, found.proven, tuple(reason.text for reason in found.reasons))

    async def replicas(self, case: Case) -> Answer:
        """As karmada-scheduler 1.19 asks."""
        request = pb.MaxAvailableReplicasRequest(cluster=_cluster(case))
        request.replica_requirements.CopyFrom(_requirements(case))
        name = f"kind=Deployment, name={case.namespace}/{case.name}"
        found = await self._karmada.replicas(request, object_text=name, timeout_s=30.0)
        return Answer(found.value, None, found.reasons)


def _cluster(case: Case) -> str:
    return f"case-{case.seed}"


def _requirements(case: Case) -> pb.ReplicaRequirements:
    """What Karmada's default interpreter makes of a Deployment: nothing of sidecars or the pod as a whole."""
    spec = table(case.template, "spec")
    wanted = pb.ReplicaRequirements(namespace=case.namespace)
    total: Amounts = {}
    for container in objects(spec, "containers"):
        for name, amount in _requests(container).items():
            total[name] = total.get(name, amount * 0) + amount
    for container in objects(spec, "initContainers"):
        for name, amount in _requests(container).items():
            total[name] = max(total.get(name, amount), amount)
    for name, amount in total.items():
        written = f"{amount * 1000}m" if name == "cpu" else str(amount)
        data = pb.Quantity(string=written).SerializeToString()
        wanted.resource_request_bytes[name] = data
    wanted.node_claim.node_selector.update(strings(spec, "nodeSelector"))
    for toleration in objects(spec, "tolerations"):
        message = pb.Toleration(
            key=text(toleration, "key"),
            operator=text(toleration, "operator"),
            value=text(toleration, "value"),
            effect=text(toleration, "effect"),
        )
        wanted.node_claim.tolerations_bytes.append(message.SerializeToString())
    if required := table(spec, "affinity", "nodeAffinity", REQUIRED):
        selector = pb.NodeSelector()
        for term in objects(required, "nodeSelectorTerms"):
            selector.node_selector_terms.add(
                match_expressions=[_requirement(each) for each in objects(term, "matchExpressions")],
                match_fields=[_requirement(each) for each in objects(term, "matchFields")],
            )
        wanted.node_claim.node_affinity_bytes = selector.SerializeToString()
    return wanted


def _requests(container: Json) -> Amounts:
    return amounts(container, "resources", "limits") | amounts(container, "resources", "requests")


def _requirement(requirement: Json) -> pb.NodeSelectorRequirement:
    return pb.NodeSelectorRequirement(
        key=text(requirement, "key"),
        operator=text(requirement, "operator"),
        values=words(requirement, "values"),
    )


async def served(cases: Sequence[Case], folder: Path) -> list[tuple[Answer, Answer]]:
    """Place and MaxAvailableReplicas of each case, of whose files the folder is full."""
    async with server(cases, folder) as asked:
        return [(await asked.place(case), await asked.replicas(case)) for case in cases]


def answers(cases: Sequence[Case], folder: Path) -> list[Answers]:
    """All three ways for each case, by way of files in the folder."""
    write(cases, folder)
    over_grpc = asyncio.run(served(cases, folder))
    return [
        Answers(place, replicas, explained(case, folder))
        for case, (place, replicas) in zip(cases, over_grpc, strict=True)
    ]
