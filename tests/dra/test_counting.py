"""How many more pods with the same claims a node serves: a table for each rule."""

from typing import ClassVar

import pytest

from fairway.kube.resource_slices import ResourceClaim, ResourceClaimSpec
from tests.dra.objects import (
    DRIVER,
    Fields,
    Scene,
    claim_spec,
    device,
    device_class,
    devices,
    distinct,
    exactly,
    first_of,
    held,
    on_node,
    published,
    request,
    same,
)

ROOT = "resource.kubernetes.io/pcieRoot"
TAINT: Fields = {"key": "broken", "effect": "NoSchedule"}


def rooted(*sizes: int) -> list[Fields]:
    """Groups of devices, each under a PCIe root of its own, listed in turn as far as they go."""
    groups = [
        [
            device(f"g{g}-{i}", None, None, (), None, **{"resource.kubernetes.io__pcieRoot": f"r{g}"})
            for i in range(n)
        ]
        for g, n in enumerate(sizes)
    ]
    return [one for group in groups for one in group]


def test_golden_vector_10_devices_under_one_root() -> None:
    scene = on_node(rooted(4, 3, 1))
    answer = scene.ask(claim_spec(request("g", 4), constraints=[same(ROOT)]))
    assert (answer.value, answer.upper_bound) == (1, 1)
    assert scene.ask(claim_spec(request("g", 4))).value == 2


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param(claim_spec(request("g")), 8, id="one each"),
        pytest.param(claim_spec(request("g", 3)), 2, id="three each, rounded down"),
        pytest.param(claim_spec(request("g", 9)), 0, id="more than there are"),
        pytest.param(claim_spec(request("g", 1, "model=big")), 4, id="by selector"),
        pytest.param(
            claim_spec(request("g", 2), constraints=[same(f"{DRIVER}/model")]), 4, id="of one model"
        ),
        pytest.param(claim_spec(request("g"), constraints=[same("none/such")]), 0, id="lacks the attribute"),
        pytest.param(
            claim_spec(request("g", 1, "model=big"), request("h", 2, "model=small")),
            2,
            id="disjoint requests",
        ),
        pytest.param(
            claim_spec(request("g"), request("h", 2)), 2, id="requests that compete for the same devices"
        ),
        pytest.param(
            claim_spec(
                request("g", 1, "model=big"),
                request("h", 1, "model=small"),
                constraints=[same(f"{DRIVER}/model")],
            ),
            0,
            id="a constraint over requests that contradicts them",
        ),
        pytest.param(
            claim_spec(
                request("g", 2),
                request("h", 1),
                constraints=[same(f"{DRIVER}/model", "g")],
            ),
            2,
            id="a constraint on one of two requests",
        ),
        pytest.param(claim_spec(request("g", None)), 1, id="all devices, once"),
        pytest.param(claim_spec(request("g", None, "model=none")), 0, id="all of no device"),
        pytest.param(
            claim_spec(request("g", None), constraints=[same(f"{DRIVER}/model")]), 0, id="all, but not alike"
        ),
        pytest.param(
            claim_spec(request("g", None, "model=big"), constraints=[same(f"{DRIVER}/model")]),
            1,
            id="all alike",
        ),
        pytest.param(
            claim_spec(first_of("g", ("big", exactly(1, "model=big")), ("small", exactly(2, "model=small")))),
            6,
            id="the second choice once the first is used up",
        ),
        pytest.param(
            claim_spec(
                first_of("g", ("big", exactly(1, "model=big")), ("small", exactly(1, "model=small"))),
                constraints=[same("none/such", "g/big")],
            ),
            4,
            id="a constraint on one alternative only",
        ),
        pytest.param(
            claim_spec(
                first_of("g", ("big", exactly(1, "model=big")), ("small", exactly(1, "model=small"))),
                constraints=[same("none/such", "g")],
            ),
            0,
            id="a constraint on a request and so on its alternatives",
        ),
        pytest.param(claim_spec(request("g", 2, adminAccess=True)), 1000, id="access for administrators"),
        pytest.param(claim_spec(request("g", 9, adminAccess=True)), 0, id="administrators need devices too"),
        pytest.param(claim_spec(), 1000, id="no request"),
    ],
)
def test_pods_on_a_node_of_eight(spec: ResourceClaimSpec, count: int) -> None:
    offered = [*devices(4, "big", model="big"), *devices(4, "small", model="small")]
    answer = on_node(offered).ask(spec)
    assert answer.value == count
    assert answer.upper_bound >= count


@pytest.mark.parametrize(
    ("claims", "count"),
    [
        pytest.param([held("x", {"device": "gpu-0"})], 3, id="one taken"),
        pytest.param(
            [held("x", {"device": "gpu-0"}), held("x", {"device": "gpu-1"})], 3, id="one claim, seen twice"
        ),
        pytest.param([held("x", {"device": "gpu-0", "adminAccess": True})], 4, id="only looked at"),
        pytest.param([held("x", {"device": "gpu-0", "pool": "b"})], 4, id="of the same name in another pool"),
        pytest.param([held("x", {"device": "gone"})], 4, id="of no slice"),
        pytest.param([held("x", *({"device": f"gpu-{i}"} for i in range(4)))], 0, id="all taken"),
    ],
)
def test_what_claims_hold_is_not_free(claims: list[ResourceClaim], count: int) -> None:
    assert on_node(devices(4), *claims).ask(claim_spec(request("g"))).value == count


def test_all_devices_need_every_one_of_them() -> None:
    spec = claim_spec(request("g", None))
    assert on_node(devices(4)).ask(spec).value == 1
    assert on_node(devices(4), held("x", {"device": "gpu-0"})).ask(spec).value == 0
    assert on_node([*devices(3), device("d", taints=[TAINT])]).ask(spec).value == 0


def test_all_devices_are_not_known_while_a_pool_of_the_node_is_being_updated() -> None:
    scene = on_node(devices(2))
    scene.slices.append(published("t", devices(1), pool="b", count=2))
    assert scene.ask(claim_spec(request("g"))).value == 2
    answer = scene.ask(claim_spec(request("g", None)))
    assert answer.value == 0
    assert "generation 1 has 1 slices" in " ".join(answer.reasons)


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 3),
        ([{"key": "broken", "operator": "Exists"}], 4),
        ([{"operator": "Exists"}], 4),
        ([{"key": "broken", "operator": "Exists", "effect": "NoExecute"}], 3),
        ([{"key": "other", "operator": "Exists"}], 3),
    ],
)
def test_tainted_devices_need_a_toleration(tolerations: list[Fields], count: int) -> None:
    offered = [*devices(2), device("n", taints=[{"key": "k", "effect": "None"}]), device("t", taints=[TAINT])]
    assert on_node(offered).ask(claim_spec(request("g", tolerations=tolerations))).value == count


@pytest.mark.parametrize("count", [1, 2])
def test_administrators_see_each_device_once_in_a_claim(count: int) -> None:
    twice = claim_spec(request("g", count, adminAccess=True), request("h", 1, adminAccess=True))
    once = claim_spec(request("g", count, adminAccess=True))
    scene = on_node(devices(2), held("x", {"device": "gpu-0"}), held("y", {"device": "gpu-1"}))
    assert scene.ask(twice).value == (1000 if count == 1 else 0)
    assert scene.ask(once, once).value == 1000


def test_administrators_take_nothing_from_who_holds_it() -> None:
    scene = on_node(devices(3), held("x", {"device": "gpu-0"}))
    spec = claim_spec(request("look", 1, adminAccess=True), request("g", 1))
    assert scene.ask(spec).value == 2


class TestDistinctAttributes:
    """Different values on any two devices: pods take one device of a value each."""

    SPEC = claim_spec(request("g", 2), constraints=[distinct(ROOT)])

    @pytest.mark.parametrize(
        ("sizes", "value", "most"),
        [((1, 1), 1, 1), ((3, 3), 3, 3), ((4, 1), 1, 1), ((2, 1, 1), 2, 2), ((4,), 0, 0)],
    )
    def test_groups(self, sizes: tuple[int, ...], value: int, most: int) -> None:
        answer = on_node(rooted(*sizes)).ask(self.SPEC)
        assert (answer.value, answer.upper_bound) == (value, most)

    def test_the_first_choice_may_not_be_the_best(self) -> None:
        answer = on_node(rooted(1, 1, 2)).ask(self.SPEC)
        assert (answer.value, answer.upper_bound) == (1, 2)
        assert "might serve up to 2" in answer.reasons[-1]

    def test_values_of_different_types_are_different(self) -> None:
        offered = [device("a", x=1), device("b", x=True), device("c", x="1"), device("d", x="v1.0.0")]
        spec = claim_spec(request("g", 4), constraints=[distinct(f"{DRIVER}/x")])
        assert on_node(offered).ask(spec).value == 1
        alike = claim_spec(request("g", 2), constraints=[same(f"{DRIVER}/x")])
        assert on_node(offered).ask(alike).value == 0


SLICES = {f"memory-{i}": 1 for i in range(8)}


def mig_gpu(gpu: int) -> list[Fields]:
    """A GPU that can be cut: 3g at two places, 1g at seven; a counter for each slice of memory."""
    counter_set = f"gpu-{gpu}"

    def part(name: str, first: int, size: int, compute: int, profile: str) -> Fields:
        taken: dict[str, object] = {f"memory-{i}": 1 for i in range(first, first + size)}
        return device(name, counters={counter_set: {**taken, "compute": compute}}, profile=profile)

    return [
        part(f"{gpu}-7g", 0, 8, 7, "7g"),
        *(part(f"{gpu}-3g-{at}", at, 4, 3, "3g") for at in (0, 4)),
        *(part(f"{gpu}-1g-{at}", at, 1, 1, "1g") for at in range(7)),
    ]


class TestCounters:
    """Devices that are cut from one another: what one takes, others lack."""

    COUNTERS: ClassVar[Fields] = {**SLICES, "compute": 7}

    def scene(self, *holds: str) -> Scene:
        claims = [held(name, {"device": name}) for name in holds]
        counters = {"gpu-0": dict(self.COUNTERS), "gpu-1": dict(self.COUNTERS)}
        return on_node([*mig_gpu(0), *mig_gpu(1)], *claims, **counters)

    @pytest.mark.parametrize(
        ("holds", "profile", "count"),
        [
            ((), "7g", 2),
            ((), "3g", 4),
            ((), "1g", 14),
            (("0-1g-0", "0-1g-4"), "3g", 2),
            (("0-1g-0", "0-1g-4"), "1g", 12),
            (("0-3g-4",), "1g", 11),
            (("0-1g-6",), "7g", 1),
            (("0-7g",), "3g", 2),
        ],
    )
    def test_profiles(self, holds: tuple[str, ...], profile: str, count: int) -> None:
        answer = self.scene(*holds).ask(claim_spec(request("g", 1, f"profile={profile}")))
        assert answer.value == count
        assert answer.upper_bound >= count

    def test_a_pod_with_two_profiles(self) -> None:
        spec = claim_spec(request("g", 1, "profile=3g"), request("h", 3, "profile=1g"))
        answer = self.scene().ask(spec)
        assert answer.value == 2

    def test_counters_of_pools_with_the_same_name_are_not_confused(self) -> None:
        scene = self.scene("0-7g")
        other = [published("t1", mig_gpu(0), driver="other.example.com", count=2)]
        other.append(
            published(
                "t0",
                driver="other.example.com",
                count=2,
                counter_sets={"gpu-0": dict(self.COUNTERS)},
                nodeName=None,
            )
        )
        scene.slices += other
        assert scene.ask(claim_spec(request("g", 1, "profile=7g"))).value == 2

    def test_more_held_than_there_is_counts_as_nothing_left(self) -> None:
        assert self.scene("0-7g", "0-3g-0").ask(claim_spec(request("g", 1, "profile=1g"))).value == 7


def sharable(name: str, value: object, policy: Fields | None = None, **attributes: object) -> Fields:
    capacity: Fields = {"value": value} if policy is None else {"value": value, "requestPolicy": policy}
    return device(name, {"memory": capacity}, None, (), {"allowMultipleAllocations": True}, **attributes)


def asking(amount: str | None, count: int = 1, name: str = "memory") -> ResourceClaimSpec:
    asked = {} if amount is None else {name: amount}
    return claim_spec(request("g", count, capacity={"requests": asked}))


class TestShares:
    """Devices that several claims hold: each takes of the capacities."""

    STEPS: ClassVar[Fields] = {"default": "10", "validRange": {"min": "10", "max": "40", "step": "15"}}
    VALUES: ClassVar[Fields] = {"default": "10", "validValues": ["10", "20", "40"]}

    @pytest.mark.parametrize(
        ("policy", "amount", "count"),
        [
            (None, None, 1),
            (None, "1", 80),
            (None, "30", 2),
            (None, "81", 0),
            ({"default": "20"}, None, 4),
            ({"default": "20"}, "5", 16),
            (STEPS, None, 8),
            (STEPS, "1", 8),
            (STEPS, "11", 3),
            (STEPS, "25", 3),
            (STEPS, "26", 2),
            (STEPS, "41", 0),
            (VALUES, "11", 4),
            (VALUES, "21", 2),
            (VALUES, "41", 0),
        ],
    )
    def test_a_share_is_rounded_as_the_device_says(
        self, policy: Fields | None, amount: str | None, count: int
    ) -> None:
        assert on_node([sharable("s", "80", policy)]).ask(asking(amount)).value == count

    def test_a_capacity_that_the_device_lacks_is_no_match(self) -> None:
        assert on_node([sharable("s", "80")]).ask(asking("1", name="cores")).value == 0

    def test_a_capacity_may_be_asked_for_with_its_domain(self) -> None:
        assert on_node([sharable("s", "80")]).ask(asking("40", name=f"{DRIVER}/memory")).value == 2

    def test_a_device_for_one_is_taken_whole_whatever_is_asked(self) -> None:
        offered = [device("a", {"memory": "80"}), device("b", {"memory": "20"})]
        assert on_node(offered).ask(asking("40")).value == 1

    def test_shares_that_are_held_leave_the_rest(self) -> None:
        holds = held("x", {"device": "s", "shareID": "1", "consumedCapacity": {"memory": "50"}})
        assert on_node([sharable("s", "80")], holds).ask(asking("10")).value == 3

    def test_a_device_held_whole_has_no_shares(self) -> None:
        assert on_node([sharable("s", "80")], held("x", {"device": "s"})).ask(asking("10")).value == 0

    def test_shares_that_cannot_be_read_take_the_device_whole(self) -> None:
        holds = held("x", {"device": "s", "shareID": "1", "consumedCapacity": {"memory": "lots"}})
        assert on_node([sharable("s", "80")], holds).ask(asking("10")).value == 0

    def test_shares_of_different_devices(self) -> None:
        offered = [sharable("s", "80"), sharable("t", "30")]
        assert on_node(offered).ask(asking("20", 2)).value == 1
        assert on_node(offered).ask(asking("20")).value == 5

    def test_two_claims_of_a_pod_may_share_a_device(self) -> None:
        assert on_node([sharable("s", "80")]).ask(asking("20"), asking("20")).value == 2

    @pytest.mark.parametrize("limit", [1, 5, 7])
    def test_shares_of_nothing_are_never_used_up(self, limit: int) -> None:
        spec = claim_spec(*(request(name, capacity={"requests": {"memory": "0"}}) for name in ("g", "h")))
        scene = on_node([sharable("s", "80"), device("d", {"memory": "80"})])
        assert scene.ask(spec, limit=limit).value == limit

    def test_all_devices_means_those_with_enough_left(self) -> None:
        offered = [sharable("s", "80"), sharable("t", "30")]
        spec = claim_spec(request("g", None, capacity={"requests": {"memory": "20"}}))
        assert on_node(offered).ask(spec).value == 4

    def test_counters_are_taken_by_the_first_share_only(self) -> None:
        shared = sharable("s", "80")
        shared["consumesCounters"] = [{"counterSet": "c", "counters": {"n": {"value": "1"}}}]
        scene = on_node([shared], c={"n": "1"})
        assert scene.ask(asking("20")).value == 4
        taking_too = device("t", {"memory": "80"}, {"c": {"n": "1"}})
        assert on_node([shared, taking_too], c={"n": "2"}).ask(asking("20")).value == 5
        held_share = held("x", {"device": "s", "shareID": "1", "consumedCapacity": {"memory": "20"}})
        assert on_node([shared], held_share, c={"n": "1"}).ask(asking("20")).value == 3


class TestWhatCannotBeTold:
    """A verdict that is missing promises nothing."""

    def test_an_unknown_verdict_gives_none_but_bounds_the_number(self) -> None:
        answer = on_node([device(f"d{i}", n=i, x=1) for i in range(4)]).ask(
            claim_spec(request("g", 2, "?x=1"))
        )
        assert (answer.value, answer.upper_bound, answer.gives_up) == (0, 2, False)
        assert "is out of reach" in answer.reasons[0]
        assert answer.reasons[-1] == "and 1 more such verdicts are missing"

    def test_an_error_on_one_device_gives_none(self) -> None:
        answer = on_node([device(f"d{i}", n=i) for i in range(4)]).ask(claim_spec(request("g", 1, "!n=3")))
        assert (answer.value, answer.upper_bound, answer.gives_up) == (0, 3, True)

    @pytest.mark.parametrize("mark", ["?", "!"])
    def test_devices_in_use_need_no_verdict(self, mark: str) -> None:
        scene = on_node([device(f"d{i}", n=i) for i in range(4)], held("x", {"device": "d3"}))
        assert scene.ask(claim_spec(request("g", 1, f"{mark}n=3"))).value == 3
        assert scene.ask(claim_spec(request("g", 1, f"{mark}n=3", adminAccess=True))).value == 0

    def test_a_spent_budget_gives_a_lower_bound(self) -> None:
        spec = claim_spec(request("g"), request("h", 2))
        answers = [on_node(devices(12)).ask(spec, steps=steps) for steps in (0, 1, 60, 10_000)]
        assert [answer.value for answer in answers] == [0, 0, 2, 4]
        assert all(answer.upper_bound == 4 for answer in answers)
        assert "its steps being used up" in answers[2].reasons[-1]

    def test_a_hopeless_search_ends_with_the_budget(self) -> None:
        offered = [device(f"d{i}", x=i, y=i) for i in range(32)]
        spec = claim_spec(
            request("g", 8),
            request("h", 8),
            constraints=[distinct(f"{DRIVER}/x"), same(f"{DRIVER}/y", "h")],
        )
        assert on_node(offered).ask(spec, steps=5000).value == 0

    @pytest.mark.parametrize("limit", [-1, 0, 1, 3, 100])
    def test_no_more_than_the_limit(self, limit: int) -> None:
        assert on_node(devices(8)).ask(claim_spec(request("g", 2)), limit=limit).value == max(
            0, min(limit, 4)
        )


def test_a_claim_holds_no_more_than_32_devices() -> None:
    scene = on_node([*devices(33, "big", model="big"), *devices(8, "small", model="small")])
    assert scene.ask(claim_spec(request("g", None, "model=big"))).value == 0
    both = claim_spec(
        first_of("g", ("many", exactly(30, "model=big")), ("few", exactly(1, "model=big"))),
        request("h", 4, "model=small"),
    )
    assert scene.ask(both).value == 2
    assert scene.ask(claim_spec(request("g", 32, "model=big")), claim_spec(request("h", 8))).value == 1


def test_equal_devices_are_not_tried_again() -> None:
    """Six of ten cannot come from groups of five: hopeless at once, though there are many ways to try."""
    offered = [*rooted(5, 5), *devices(30, "other")]
    spec = claim_spec(
        request("g", 6), request("h", 1), constraints=[same(ROOT, "g"), distinct(f"{DRIVER}/none", "h")]
    )
    answer = on_node(offered).ask(spec, steps=2000)
    assert answer.value == answer.upper_bound == 0


def test_devices_of_the_network_belong_to_no_node_alone() -> None:
    spec = claim_spec(request("g"))
    assert not on_node(devices(2)).ask(spec).beyond_node
    scene = Scene([published("s", devices(2), allNodes=True)])
    answer = scene.ask(spec)
    assert (answer.value, answer.beyond_node) == (2, True)


def test_devices_that_are_attached_later_count_and_say_so() -> None:
    offered = [device("d", more={"bindingConditions": ["attached"]})]
    answer = on_node(offered).ask(claim_spec(request("g")))
    assert answer.value == 1
    assert "attached only once a pod has them" in answer.reasons[-1]


def test_a_class_chooses_devices_as_a_request_does() -> None:
    scene = on_node([*devices(3, "big", model="big"), *devices(5, "small", model="small")])
    scene.classes = [device_class("gpu", "model=big")]
    assert scene.ask(claim_spec(request("g"))).value == 3


def test_the_reason_names_what_matches_and_what_is_free() -> None:
    scene = on_node(devices(4, model="big"), held("x", {"device": "gpu-0"}))
    answer = scene.ask(claim_spec(request("g", 4)))
    assert answer.reasons == ("claim c0: request g asks for 4; of 4 devices 4 match and 3 of them are free",)
