"""The conditions as an API server evaluates them: the webhook's tables, and the catalogue name by name."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import Catalogue, parse_catalogue
from fairway.scope import Scope, parse_workload_kind
from tests.webhook.builders import CPU, Obj, binding, component, sets, spec
from tests.webhook.cases import CREATIONS, UPDATES, Creation, Update
from tests.webhook.cel import Evaluator
from webhook.accelerator_expression import accelerator_expression
from webhook.cron_jobs import cron_job_policy
from webhook.match_conditions import (
    MAX_COMPARED_COMPONENTS,
    MatchCondition,
    creation_conditions,
    growth_conditions,
    managed_creation_conditions,
    managed_growth_conditions,
)

SCOPE = Scope(builtin_catalogue())
CREATION = Evaluator(creation_conditions(SCOPE))
GROWTH = Evaluator(growth_conditions(SCOPE))


class _Validation(msgspec.Struct):
    expression: str


class _Validating(msgspec.Struct):
    validations: list[_Validation]


_PART = re.compile(r"\{[a-z_0-9]+(?::([a-z]+))?\}")


def examples(catalogue: Catalogue) -> list[str]:
    """A name or two for every rule."""
    by_kind = (
        {None: "A100-x.y_z", "digits": "4", "upper": "GA102GL_A10"},
        {None: "1g.5gb", "digits": "20", "upper": "3D"},
    )
    return sorted({_filled(rule.pattern.text, parts) for rule in catalogue.rules for parts in by_kind})


def _filled(pattern: str, parts: dict[str | None, str]) -> str:
    return _PART.sub(lambda part: parts[part[1]], pattern)


def is_accelerator(catalogue: Catalogue, name: str) -> bool:
    entry = catalogue.lookup(name)
    return entry is not None and entry.is_accelerator


def names_only(catalogue: Catalogue) -> Evaluator:
    return Evaluator([MatchCondition("name", accelerator_expression(catalogue, "k"))])


BUILTIN_NAMES = names_only(builtin_catalogue())


@pytest.mark.parametrize("case", CREATIONS, ids=str)
def test_a_creation_matches_where_it_is_held(case: Creation) -> None:
    assert CREATION.matches(object=case.binding, oldObject=None) == case.held


@pytest.mark.parametrize("case", UPDATES, ids=str)
def test_an_update_matches_where_it_is_held(case: Update) -> None:
    assert GROWTH.matches(object=case.new, oldObject=case.old) == case.held


def test_every_rule_of_the_catalogue_is_in_the_expression() -> None:
    names = examples(builtin_catalogue())
    found = {name: BUILTIN_NAMES.matches(k=name) for name in names}
    assert found == {name: is_accelerator(builtin_catalogue(), name) for name in names}


@pytest.mark.parametrize(
    "name",
    [
        "example.com/output",
        "example.com/gpu",
        "cpu",
        "memory",
        "nvidia.com/",
        "nvidia.com/gpux",
        "xnvidia.com/gpu",
        "nvidiaXcom/gpu",
        "nvidia.com/gpu/x",
        "nvidia.com/hostdev",
        "aws.amazon.com/efa",
        "requests.nvidia.com/gpu",
        "",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not BUILTIN_NAMES.matches(k=name)


_BUILTIN_DOMAINS = sorted({rule.pattern.text.partition("/")[0] for rule in builtin_catalogue().rules})
_ENDINGS = st.text(st.sampled_from("gpumigAscend910BVx-._/ "), max_size=12)


@given(
    st.one_of(
        st.builds("{}/{}".format, st.sampled_from(_BUILTIN_DOMAINS), _ENDINGS),
        st.builds("{}{}".format, st.sampled_from(examples(builtin_catalogue())), _ENDINGS),
        st.text(max_size=20).filter(lambda text: text.isprintable()),
    )
)
def test_the_expression_agrees_with_the_catalogue_on_any_name(name: str) -> None:
    assert BUILTIN_NAMES.matches(k=name) == is_accelerator(builtin_catalogue(), name)


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ("[]", {"a.io/x": False}),
        ("- {pattern: a.io/x, class: auxiliary}", {"a.io/x": False}),
        (
            '- {pattern: a.io/x, class: auxiliary}\n- {pattern: "a.io/{any}", class: whole}',
            {"a.io/x": False, "a.io/y": True, "b.io/y": False},
        ),
        (
            '- {pattern: "a.io/net-{n}", class: auxiliary}\n- {pattern: "a.io/{any}", class: whole}',
            {"a.io/net-1": False, "a.io/net": True},
        ),
        (
            '- {pattern: "a.io/net-gpu-{n}", class: whole}\n- {pattern: "a.io/net-{n}", class: auxiliary}\n'
            '- {pattern: "a.io/{any}", class: whole}\n- {pattern: "a.io/{any:digits}", class: auxiliary}',
            {"a.io/net-gpu-1": True, "a.io/net-1": False, "a.io/z": True, "a.io/1": True},
        ),
    ],
)
def test_the_order_of_an_administrators_rules_is_kept(rules: str, names: dict[str, bool]) -> None:
    catalogue = parse_catalogue(rules, "own.yaml")
    evaluator = names_only(catalogue)
    assert {name: is_accelerator(catalogue, name) for name in names} == names
    assert {name: evaluator.matches(k=name) for name in names} == names


def test_an_administrators_rule_overrules_the_packaged_one() -> None:
    own = parse_catalogue(
        "- {pattern: nvidia.com/hostdev, class: whole}\n- {pattern: nvidia.com/gpu, class: auxiliary}",
        "own.yaml",
    )
    evaluator = names_only(builtin_catalogue().extended_by(own))
    assert evaluator.matches(k="nvidia.com/hostdev")
    assert not evaluator.matches(k="nvidia.com/gpu")
    assert evaluator.matches(k="nvidia.com/mig-1g.5gb")


@pytest.mark.parametrize(
    ("api_version", "kind", "held"),
    [
        ("batch/v1", "Job", True),
        ("batch.volcano.sh/v1alpha1", "Job", False),
        ("v1", "Pod", True),
        ("x/v1", "Pod", False),
    ],
)
def test_listed_kinds_match(api_version: str, kind: str, held: bool) -> None:
    scope = Scope(builtin_catalogue(), frozenset(map(parse_workload_kind, ("Job.batch", "Pod"))))
    obj = binding(spec(CPU, resource={"apiVersion": api_version, "kind": kind, "name": "w"}))
    assert Evaluator(creation_conditions(scope)).matches(object=obj, oldObject=None) == held


def test_in_a_managed_namespace_every_workload_matches() -> None:
    creation, growth = Evaluator(managed_creation_conditions()), Evaluator(managed_growth_conditions())
    small, big = binding(spec(CPU)), binding(spec(CPU, replicas=3))
    assert creation.matches(object=small, oldObject=None)
    assert growth.matches(object=big, oldObject=small)
    assert not growth.matches(object=small, oldObject=big)
    assert not creation.matches(object=binding(spec(replicas=None)), oldObject=None)


def _cron_job(limits: Obj, *, place: str = "containers", suspend: bool | None = None) -> Obj:
    pod: Obj = {"containers": [{"name": "side"}]}
    pod.setdefault(place, []).append({"name": "main", "resources": {"limits": limits}})
    spec: Obj = {"jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return {"spec": spec if suspend is None else spec | {"suspend": suspend}}


@pytest.mark.parametrize(
    ("cron_job", "passes"),
    [
        (_cron_job({"nvidia.com/gpu": "1"}), False),
        (_cron_job({"nvidia.com/gpu": 1}, place="initContainers"), False),
        (_cron_job({"google.com/tpu": "4"}, suspend=False), False),
        (_cron_job({"nvidia.com/gpu": "1"}, suspend=True), True),
        (_cron_job({"nvidia.com/gpu": "0"}), True),
        (_cron_job(CPU), True),
    ],
)
def test_a_member_refuses_cron_jobs_that_ask_for_accelerators(cron_job: Obj, passes: bool) -> None:
    policy, binding = cron_job_policy(SCOPE)
    (rule,) = msgspec.convert(policy["spec"], _Validating).validations
    assert Evaluator([MatchCondition("validation", rule.expression)]).matches(object=cron_job) == passes
    assert msgspec.convert(binding["spec"], dict[str, object])["validationActions"] == ["Deny"]


def _many(count: int, replicas: int) -> Obj:
    return binding(sets(*(component(f"c{n}", replicas, {"nvidia.com/gpu": "1"}) for n in range(count))))


@pytest.mark.parametrize("count", [MAX_COMPARED_COMPONENTS, MAX_COMPARED_COMPONENTS + 1])
def test_very_many_components_are_compared_as_a_whole(count: int) -> None:
    two, one = _many(count, 2), _many(count, 1)
    assert GROWTH.matches(object=two, oldObject=one)
    assert not GROWTH.matches(object=two, oldObject=two)
    assert GROWTH.matches(object=one, oldObject=two) == (count > MAX_COMPARED_COMPONENTS)
