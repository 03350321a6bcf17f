"""Several flavors over several clusters: charged once, and every pod where it is charged."""

import random
from collections.abc import Mapping, Sequence

import pytest

from fairway.names import ADMISSION, QUEUE
from queue_dispatcher.bindings.record import AdmissionRecord, parse_record
from sandbox.simulation.fleet import FLAVOR, Fleet
from sandbox.simulation.karmada.policies import Way, placed, policy
from sandbox.simulation.objects import Obj
from sandbox.simulation.templates import GPU, fated, job, pod_template
from tests.simulation.accounts import asked_each, done_in, ended_in, is_ended, is_held
from tests.simulation.places import shares

TEAM = "team"
NODES = {"a": [8] * 3, "b": [4] * 4}
FLAVORS = {"new": ("a", 20), "old": ("b", 12)}
"""By name: its cluster, and how many GPUs of it the queue owns."""
WAYS: tuple[Way, ...] = ("aggregated", "by room", "copied")


def fleet(
    nodes: Mapping[str, Sequence[int]],
    flavors: Mapping[str, tuple[Sequence[str], int]],
    *,
    seed: int = 1,
    in_one: bool = True,
) -> Fleet:
    """``nodes``: the GPUs of each, by cluster. ``flavors``: their clusters, and the GPUs that the queue owns.

    ``in_one``: policies keep each workload to one cluster, else only what they would copy.
    """
    made = Fleet(nodes, dispatchers=2, seed=seed)
    made.api.delete("resourceflavors", FLAVOR)
    quotas = []
    for name, (clusters, gpus) in flavors.items():
        spec = {"clusterNames": list(clusters)}
        made.api.create("resourceflavors", {"metadata": {"name": name}, "spec": spec})
        quotas.append({"name": name, "resources": [{"name": GPU, "nominalQuota": str(gpus)}]})
    group = {"coveredResources": [GPU], "flavors": quotas}
    made.api.create("clusterqueues", {"metadata": {"name": "main"}, "spec": {"resourceGroups": [group]}})
    of = {"namespace": TEAM, "name": "main"}
    made.api.create("localqueues", {"metadata": of, "spec": {"clusterQueue": "main"}})
    made.api.create("namespaces", {"metadata": {"name": TEAM, "labels": {"fairway.dev/queueing": "enabled"}}})
    for way in WAYS:
        placement = placed(way=way, groups=int(in_one or way == "copied"))
        labels = {"example.com/way": way.replace(" ", "-")}
        made.api.create(
            "propagationpolicies",
            policy(f"all-{way[:2]}", TEAM, [("batch/v1", "Job")], placement, labels=labels),
        )
    made.start()
    return made


def test_a_group_goes_to_the_flavor_that_it_is_charged_to_though_another_cluster_is_emptier() -> None:
    made = fleet(NODES, FLAVORS)
    quota = {"name": GPU, "nominalQuota": "8"}
    group = {"coveredResources": [GPU], "flavors": [{"name": "old", "resources": [quota]}]}
    made.api.create("clusterqueues", {"metadata": {"name": "late"}, "spec": {"resourceGroups": [group]}})
    of = {"namespace": TEAM, "name": "late"}
    made.api.create("localqueues", {"metadata": of, "spec": {"clusterQueue": "late"}})
    made.wait(1_000)
    keys = []
    for number in range(2):
        one = workload(number, random.Random(number))
        said = {QUEUE: "late", "fairway.dev/group": "g", "fairway.dev/group-size": "2"}
        template = pod_template({GPU: 4})
        one["metadata"]["labels"] |= said
        one["spec"] = {**one["spec"], "parallelism": 1, "completions": 1, "template": template}
        keys.append(made.submit(one))
    made.wait(3_000)
    goes = {
        one.key: shares(one.after)
        for one in reversed(made.api.writes)
        if one.resource == "resourcebindings" and one.after is not None and not is_held(one.after)
    }
    assert [goes[key] for key in keys] == [{"b": 1}, {"b": 1}]


def workload(number: int, rng: random.Random) -> Obj:
    made = job(
        f"j{number}", TEAM, pod_template({GPU: rng.choice((1, 1, 2, 4, 8))}), pods=rng.choice((1, 1, 2))
    )
    labels = {QUEUE: "main", "example.com/way": rng.choice(WAYS).replace(" ", "-")}
    annotations = fated(1000 * rng.randint(5, 40))
    return {**made, "metadata": {**made["metadata"], "labels": labels, "annotations": annotations}}


def charged_to(binding: Obj) -> dict[str, int]:
    """By flavor, the GPUs of its record."""
    record = parse_record(binding["metadata"]["annotations"][ADMISSION])
    assert isinstance(record, AdmissionRecord)
    (flavors,) = (names for resource, names in record.flavors if resource == GPU)
    return dict.fromkeys(flavors, dict(record.requests)[GPU])


def test_two_hundred_mixed_jobs() -> None:
    made, rng = fleet(NODES, FLAVORS), random.Random(14)
    made.wait(1_000)
    keys = []
    for number in range(200):
        keys.append(made.submit(workload(number, rng)))
        made.wait(rng.randint(0, 1_500))
    made.until(lambda: all(is_ended(made.binding(key) or {}) for key in keys), within_ms=3_600_000)
    used: dict[str, dict[str, int]] = {name: {} for name in FLAVORS}
    seen = set()
    for one in made.api.writes:
        after = one.after
        if one.resource != "resourcebindings" or after is None or is_held(after):
            continue
        charges = charged_to(after)
        assert len(charges) == 1, f"{one.key} is charged to {charges}"
        (flavor,) = charges
        assert set(shares(after)) == {FLAVORS[flavor][0]}
        seen.add(flavor)
        for of in used.values():
            of.pop(one.key, None)
        if not is_ended(after):
            done = sum(done_in(after, after["spec"].get("replicas", 0)).values())
            used[flavor][one.key] = charges[flavor] - done * asked_each(after)
        assert sum(used[flavor].values()) <= FLAVORS[flavor][1]
    assert seen == set(FLAVORS)


@pytest.mark.parametrize("seed", range(6))
def test_fleets_of_which_some_clusters_are_in_several_flavors_and_some_in_none(seed: int) -> None:
    rng = random.Random(f"flavors {seed}")
    clusters = {f"c{number}": rng.choice((4, 8)) for number in range(rng.randint(2, 4))}
    flavors: dict[str, tuple[list[str], int]] = {}
    for name in ("one", "two", "three"):
        of = rng.sample(list(clusters), rng.choice((1, 1, 2)))
        flavors[name] = (of, rng.randint(4, max(4, sum(clusters[cluster] for cluster in of))))
    made = fleet({name: [gpus] for name, gpus in clusters.items()}, flavors, seed=seed, in_one=False)
    made.wait(1_000)
    keys = []
    for number in range(30):
        for member in range(size := rng.choice((1, 1, 1, 2))):
            one = job(f"j{number}-{member}", TEAM, pod_template({GPU: 1}), pods=rng.randint(1, 4 // size))
            said = {QUEUE: "main", "example.com/way": rng.choice(WAYS).replace(" ", "-")}
            if size > 1:
                said |= {"fairway.dev/group": f"g{number}", "fairway.dev/group-size": f"{size}"}
            one["metadata"] |= {"labels": said, "annotations": fated(1000 * rng.randint(3, 20))}
            keys.append(made.submit(one))
        if rng.random() < 0.1:
            leader = next((one for one in made.replicas.values() if one.is_leading), None)
            if leader is not None:
                leader.restart_after(rng.randint(0, 5_000))
        made.wait(rng.randint(0, 3_000))
    made.until(lambda: all(is_ended(made.binding(key) or {}) for key in keys), within_ms=1_200_000)
    charges: dict[str, dict[str, int]] = {}
    for written in made.api.writes:
        before, after = written.before, written.after
        if written.resource != "resourcebindings" or after is None or is_held(after):
            continue
        goes = shares(after)
        charged = charged_to(after)
        if before is not None and is_held(before) and goes:
            assert all(any(cluster in flavors[name][0] for name in charged) for cluster in goes), written.key
        held = dict.fromkeys(charged, 0)
        for cluster, count in goes.items():
            # The first of its flavors that has the cluster.
            of_it = next((name for name in charged if cluster in flavors[name][0]), "")
            if of_it and cluster not in ended_in(after):
                held[of_it] += count
        charges[written.key] = held if goes else charged
        if before is not None and is_held(before):
            for name in charged:
                used = sum(one.get(name, 0) for one in charges.values())
                assert used <= flavors[name][1], f"{name} at {written.key}"
