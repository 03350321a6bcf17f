"""The chart is made of the manifests and renders what they build, and refuses values that contradict."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

from manifests.templating.__main__ import outdated, templates
from tests.manifests import kustomizer, templater, tools
from tests.manifests.cases import CI, EVERY_AGENT_VALUE, SAME_AS, all_variants, ci_values, folder
from tests.manifests.objects import (
    CHART,
    MANIFESTS,
    ROOT,
    Json,
    by_key,
    documents,
    of_kind,
    without_namespaces,
)

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
IN_VALUES: Json = {"mode": "per-member", "members": ["member1"]}


def without_keep(objects: list[Json], kind: str) -> list[Json]:
    """The objects without the one annotation that only Helm heeds, which each of the kind must have."""
    kept = []
    for each in objects:
        if each["kind"] == kind:
            annotations = dict(each["metadata"]["annotations"])
            assert annotations.pop("helm.sh/resource-policy") == "keep"
            metadata = {key: value for key, value in each["metadata"].items() if key != "annotations"}
            metadata |= {"annotations": annotations} if annotations else {}
            each = each | {"metadata": metadata}
        kept.append(each)
    return kept


def crds() -> list[Json]:
    return [each for file in (MANIFESTS / "crds").glob("*.yaml") for each in documents(file.read_text())]


def test_the_templates_are_up_to_date() -> None:
    assert outdated(MANIFESTS) == [], "run: make manifests"


def test_every_template_says_what_it_is_made_of() -> None:
    for name, text in templates(MANIFESTS).items():
        (source,) = re.findall(r"Made of (manifests/\S+) by 'make manifests'", text.splitlines()[0])
        assert (ROOT / source).is_file(), name


@pytest.mark.parametrize(("values", "same"), SAME_AS.items())
def test_the_chart_renders_what_kustomize_builds(values: str, same: str) -> None:
    rendered = without_keep(templater.render(ci_values(values)), "PriorityClass")
    assert by_key(rendered) == by_key(without_namespaces(kustomizer.build(folder(same))))


def test_defaults_are_the_overlay_for_the_host_cluster() -> None:
    built = kustomizer.build(MANIFESTS / "overlays" / "host-cluster")
    assert by_key(templater.render({})) == by_key(without_namespaces(built))


def test_target_karmada_is_the_definitions_and_what_kustomize_builds() -> None:
    built = crds() + kustomizer.build(MANIFESTS / "karmada")
    rendered = without_keep(templater.render({"target": "karmada"}), "CustomResourceDefinition")
    assert by_key(rendered) == by_key(without_namespaces(built))


def test_target_member_has_the_node_agents_where_they_are_asked_for() -> None:
    built = [each for name in ("member", "member/node-agent") for each in kustomizer.build(folder(name))]
    rendered = without_keep(templater.render(ci_values("member-node-agent")), "PriorityClass")
    assert by_key(without_namespaces(rendered)) == by_key(without_namespaces(built))
    (namespace,) = of_kind(rendered, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


@pytest.mark.parametrize("target", ["karmada", "member"])
def test_who_tells_owners_has_its_roles_where_it_is_asked_for(target: str) -> None:
    before, with_it = (
        by_key(templater.render({"target": target, "notify": {"enabled": enabled}}))
        for enabled in (False, True)
    )
    built = without_namespaces(kustomizer.build(folder(f"{target}/notify")))
    assert {key: one for key, one in with_it.items() if key not in before} == by_key(built)


def test_elsewhere_karmada_has_the_services_too() -> None:
    services = list(of_kind(templater.render(ci_values("estimator-elsewhere")), "Service"))
    assert by_key(services) == by_key(kustomizer.build(MANIFESTS / "overlays" / "estimator-elsewhere"))


def test_policies_are_the_shipped_ones() -> None:
    shipped = documents((MANIFESTS / "webhook" / "mutating-admission-policies.yaml").read_text())
    rendered = templater.render({"target": "karmada", "policies": {"enabled": True}})
    found = of_kind(rendered, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    assert by_key(found) == by_key(shipped)


def test_monitoring_is_what_kustomize_builds() -> None:
    built = by_key(kustomizer.build(MANIFESTS / "monitoring"))
    rendered = by_key(templater.render({"monitoring": {"enabled": True}}))
    assert {key: rendered.get(key) for key in built} == built


def test_the_agents_are_monitored_as_kustomize_builds_it_and_told_apart_by_cluster() -> None:
    built = by_key(kustomizer.build(folder("member/node-agent/monitoring")))
    asked = {"target": "member", "nodeAgent": {"enabled": True}, "monitoring": {"enabled": True}}
    rendered = by_key(templater.render(asked))
    assert {key: rendered.get(key) for key in built} == built
    (monitor,) = of_kind(templater.render(EVERY_AGENT_VALUE), "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"][-1] == {"targetLabel": "cluster", "replacement": "member1"}


@pytest.mark.parametrize("name", all_variants())
def test_our_helm_is_helm(name: str, tmp_path: Path) -> None:
    values = all_variants()[name]
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    command = (tools.helm(), "template", "fairway", CHART, "--namespace=fairway-system")
    real = documents(tools.run(*command, f"--values={tmp_path / 'values.yaml'}"))
    assert by_key(templater.render(values)) == by_key(real)


def test_helm_renders_into_other_namespaces(tmp_path: Path) -> None:
    values = {"karmada": {"namespace": "k"}, "estimator": IN_VALUES}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    command = (tools.helm(), "template", "fairway", CHART, "--namespace=other")
    real = documents(tools.run(*command, f"--values={tmp_path / 'values.yaml'}"))
    assert by_key(templater.render(values, namespace="other")) == by_key(real)


def test_namespaces_on_the_host_follow_the_release_and_karmada_s_side_does_not() -> None:
    rendered = templater.render({"karmada": {"namespace": "k"}, "estimator": IN_VALUES}, namespace="other")
    assert {each["metadata"]["namespace"] for each in rendered} == {"other", "k"}
    text = json.dumps(rendered)
    assert "https://fairway-webhook.other.svc:443" in text
    assert "--estimator=member1=karmada-scheduler-estimator-member1.k.svc:10352" in text
    left = set(re.findall(r"--[a-z-]+=fairway-system[^\"]*|karmada-system[^\"]*", text))
    assert left == {
        "--certificate-secret=fairway-system/fairway-webhook",
        "--leader-elect-resource-namespace=fairway-system",
    }


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_single_estimator_is_reached_before_it_is_ready(replicas: int) -> None:
    rendered = templater.render({"estimator": IN_VALUES | {"replicas": replicas}})
    (service,) = (each for each in of_kind(rendered, "Service") if "estimator" in each["metadata"]["name"])
    assert service["spec"]["publishNotReadyAddresses"] is (replicas == 1)


def test_chart_and_images_are_of_this_release() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (version, version)


def test_helm_finds_nothing_to_complain_about() -> None:
    assert "0 chart(s) failed" in tools.run(tools.helm(), "lint", "--strict", CHART)


@pytest.mark.parametrize("name", all_variants())
def test_the_schema_accepts(name: str) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(templater.values_with(all_variants()[name]))


def test_every_value_is_in_the_schema_and_the_reverse() -> None:
    def missing(values: Json, schema: Json, path: str) -> list[str]:
        if "properties" not in schema or not isinstance(values, dict):
            return []
        names = values.keys() ^ (schema["properties"].keys() - ({"global"} if not path else set()))
        below = values.keys() & schema["properties"].keys()
        if path.endswith("resources"):
            return []
        return [f"{path}.{name}" for name in names] + [
            each
            for name in below
            for each in missing(values[name], schema["properties"][name], f"{path}.{name}")
        ]

    assert missing(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA, "") == []


MALFORMED: list[tuple[Json, str]] = [
    ({"target": "hosts"}, "target"),
    ({"webhok": {}}, "webhok"),
    ({"webhook": {"replica": 2}}, "replica"),
    ({"webhook": {"replicas": -1}}, "replicas"),
    ({"webhook": {"replicas": "2"}}, "replicas"),
    ({"webhook": {"failurePolicy": "fail"}}, "failurePolicy"),
    ({"webhook": {"podDisruptionBudget": {"maxUnavailable": 0}}}, "maxUnavailable"),
    ({"webhook": {"url": 'https://a"b'}}, "url"),
    ({"scope": {"kinds": ["Job batch"]}}, "kinds"),
    ({"scope": {"namespaces": "some"}}, "namespaces"),
    ({"webhook": {"extraArgs": ["register=false"]}}, "extraArgs"),
    ({"estimator": {"mode": "both"}}, "mode"),
    ({"estimator": {"mode": ["per-member", "for-many"]}}, "mode"),
    ({"estimator": {"members": ["a", "a"]}}, "members"),
    ({"estimator": {"members": ["Member1"]}}, "members"),
    ({"estimator": {"members": ["m" * 36]}}, "members"),
    ({"estimator": {"members": "member1"}}, "members"),
    ({"estimator": {"members": [{"name": "member1"}]}}, "members"),
    ({"estimator": {"certificates": {"secret": ""}}}, "secret"),
    ({"estimator": {"certificates": {"key": "a/b"}}}, "key"),
    ({"estimator": {"external": {"host": "10.0.0.1"}}}, "host"),
    ({"estimator": {"external": {"host": "https://a"}}}, "host"),
    ({"estimator": {"external": {"port": 0}}}, "port"),
    ({"estimator": {"featureGates": ["ResourceQuotaEstimate"]}}, "featureGates"),
    ({"estimator": {"fromPrometheus": {"a": "prometheus:9090"}}}, "fromPrometheus"),
    ({"estimator": {"fromPrometheus": {"a": "https://u:p@prometheus"}}}, "fromPrometheus"),
    ({"networkPolicy": {"prometheusPorts": [0]}}, "prometheusPorts"),
    ({"image": {"tag": "a b"}}, "tag"),
    ({"image": {"registry": "ghcr.io/x/"}}, "registry"),
    ({"image": {"pullSecrets": ["pull"]}}, "pullSecrets"),
    ({"karmada": {"namespace": ""}}, "namespace"),
    ({"networkPolicy": {"karmadaApiServerPort": 65536}}, "karmadaApiServerPort"),
    ({"networkPolicy": {"memberApiServerPorts": []}}, "memberApiServerPorts"),
    ({"log": {"format": "yaml"}}, "format"),
]


@pytest.mark.parametrize(("values", "place"), MALFORMED)
def test_a_malformed_value_is_refused_with_its_place(values: Json, place: str) -> None:
    errors = list(jsonschema.Draft7Validator(SCHEMA).iter_errors(templater.values_with(values)))
    assert any(place in f"{error.json_path} {error.message}" for error in errors)


CONTRADICTING: list[tuple[Json, str]] = [
    ({"estimator": {"members": ["a"]}}, "names a, but estimator.mode is none: expected per-member"),
    (
        {"estimator": {"mode": "for-many"}},
        "mode is for-many, but estimator.members is empty: expected the names",
    ),
    ({"estimator": {"mode": "external", "members": ["a"]}}, "external.host is empty: expected the name"),
    (
        {"estimator": IN_VALUES | {"external": {"host": "e.example"}}},
        "external.host is e.example, but estimator.mode is per-member",
    ),
    (
        {"estimator": IN_VALUES, "dispatcher": {"estimatorClientSecret": ""}},
        "dispatcher.estimatorClientSecret is empty, but estimator.members is not",
    ),
    ({"webhook": {"replicas": 0}}, "webhook.replicas is 0, but webhook.podDisruptionBudget.enabled"),
    ({"dispatcher": {"replicas": 0}}, "dispatcher.replicas is 0, but"),
    ({"estimator": {"replicas": 0}}, "estimator.replicas is 0, but"),
    (
        {"webhook": {"tlsSecret": "t", "extraArgs": ["--tls-cert-file=/x"]}},
        "webhook.tlsSecret is t, and webhook.extraArgs has --tls-cert-file=/x: expected certificates",
    ),
    (
        {"webhook": {"tlsSecret": "t", "extraArgs": ["--certificate-secret=a/b"]}},
        "expected certificates from one source",
    ),
    (
        {"estimator": {"certificates": {"certificate": "karmada.key"}}},
        "certificate and key are both karmada.key",
    ),
    ({"notify": {"enabled": True}}, "notify.enabled, but notify.members is empty: expected the names"),
    (
        {"webhook": {"url": "http://a"}},
        "webhook.url is http://a: expected an address that begins with https://",
    ),
]


@pytest.mark.parametrize(("values", "message"), CONTRADICTING)
def test_values_that_contradict_are_refused(values: Json, message: str) -> None:
    with pytest.raises(templater.Refused, match=re.escape(message)):
        templater.render(values)


def test_a_member_that_is_listed_twice_is_refused_without_the_schema_too() -> None:
    with pytest.raises(templater.Refused, match=re.escape("names a cluster twice (a, b, a)")):
        templater.render({"estimator": {"mode": "for-many", "members": ["a", "b", "a"]}})


@pytest.mark.parametrize("target", ["karmada", "member"])
def test_the_other_sides_are_only_rendered_into_their_namespace(target: str) -> None:
    with pytest.raises(
        templater.Refused, match=f"target {target}: .*expected helm install --namespace fairway-system"
    ):
        templater.render({"target": target}, namespace="default")


@pytest.mark.parametrize(("values", "message"), [*CONTRADICTING, *MALFORMED])
def test_helm_says_the_same(values: Json, message: str, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    command = (tools.helm(), "template", "fairway", CHART, "--namespace=fairway-system")
    assert message in tools.refusal(*command, f"--values={tmp_path / 'values.yaml'}")


def test_every_overlay_has_its_values() -> None:
    overlays = {path.name for path in (MANIFESTS / "overlays").iterdir()}
    assert overlays <= {file.stem.removesuffix("-values") for file in CI.glob("*.yaml")}
