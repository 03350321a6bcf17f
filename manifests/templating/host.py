"""The table of places of the host cluster's side: webhook, dispatcher, estimators.

The Services that lead karmada-scheduler to an estimator elsewhere are here too, for the same members.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from manifests.templating.files import TemplateFile
from manifests.templating.sources import Source, additions_of, objects_of, the_object
from manifests.templating.tree import Each, Node, When, Written
from manifests.templating.values import (
    CONTAINER,
    EACH_MEMBER,
    EXAMPLE_MEMBER,
    POD,
    all_of,
    any_of,
    budget,
    each_member,
    member_ports,
    metrics_from,
    mode,
    on_host,
    optional,
    patched,
    pods,
    secret,
    target,
    text_of,
    to_karmada,
)

_MEMBER_FOLDER: Final = f"overlays/estimator-for-many/{EXAMPLE_MEMBER}"
_VISIBILITY: Final = "components/visibility"
_IS_VISIBLE: Final = "$.Values.dispatcher.visibilityTlsSecret"
_POLICIES: Final = "$.Values.networkPolicy.enabled"
_TEMPLATES: Final = "$.Values.estimator.karmadaKubeconfigSecret"
_PER_MEMBER: Final = all_of(target("host"), mode("per-member"))
_FOR_MANY: Final = all_of(target("host"), mode("for-many"))
_OWN_URL: Final = 'printf "https://fairway-webhook.%s.svc:443" $.Release.Namespace'
_PROMETHEUS: Final = "index $.Values.estimator.fromPrometheus $member"
_OTHER_PORT: Final = Written("{{ $.Values.estimator.external.port }}")
_OTHER_ADDRESS: Final = Written(
    '"--estimator={{ $member }}={{ $.Values.estimator.external.host }}'
    ':{{ $.Values.estimator.external.port }}"'
)


def host_files(root: Path) -> Iterator[TemplateFile]:
    """Their templates. Raises SourceError."""
    yield from _program("webhook", root, _webhook(root), 1)
    yield from _program("dispatcher", root, _dispatcher(root), 0)
    yield from _per_member(root)
    yield from _for_many(root)
    yield from _of_all_estimators(root)


def _webhook(root: Path) -> Source:
    source = the_object(root, "base/webhook/deployment.yaml")
    url = Written(f'"--url={{{{ $.Values.webhook.url | default ({_OWN_URL}) }}}}"')
    source = source.put(f"{CONTAINER}/args/[--url]", url)
    strictness = text_of("--failure-policy=", "webhook.failurePolicy")
    source = source.put(f"{CONTAINER}/args/[--failure-policy]", strictness)
    source = secret(source, "karmada", "webhook.kubeconfigSecret")
    source = _scoped(source)
    certificate = "components/webhook-certificate/deployment.yaml"
    source = patched(root, source, certificate, "$.Values.webhook.tlsSecret")
    return secret(source, "tls", "webhook.tlsSecret")


def _scoped(source: Source) -> Source:
    """With what waits in queues, the same for whoever holds and for whoever releases."""
    source = source.put(
        f"{CONTAINER}/args/[--hold-namespaces]", text_of("--hold-namespaces=", "scope.namespaces")
    )
    kinds = Each("$kind := $.Values.scope.kinds", Written('"--hold-kind={{ $kind }}"'))
    source = source.add(f"{CONTAINER}/args/-", kinds)
    return source.add(f"{CONTAINER}/args/-", When("$.Values.scope.observe", "--observe"))


def _dispatcher(root: Path) -> Source:
    source = the_object(root, "base/dispatcher/deployment.yaml")
    source = secret(source, "karmada", "dispatcher.kubeconfigSecret")
    source = _scoped(source)
    volcano = When("$.Values.dispatcher.volcanoQueues", "--volcano-queues=true")
    source = source.add(f"{CONTAINER}/args/-", volcano)
    source = patched(root, source, "components/ask-estimators/dispatcher.yaml", "$.Values.estimator.members")
    source = secret(source, "estimator-client", "dispatcher.estimatorClientSecret")
    source = patched(root, source, f"{_VISIBILITY}/deployment.yaml", _IS_VISIBLE)
    source = secret(source, "tls", "dispatcher.visibilityTlsSecret")
    addresses = {
        "per-member": each_member(additions_of(root, "overlays/estimator-per-member/dispatcher.yaml")[0][1]),
        "for-many": each_member(additions_of(root, f"{_MEMBER_FOLDER}/dispatcher.yaml")[0][1]),
        "external": _OTHER_ADDRESS,
    }
    for way, address in addresses.items():
        source = source.add(f"{CONTAINER}/args/-", When(mode(way), Each(EACH_MEMBER, address)))
    return source


def _program(name: str, root: Path, deployment: Source, metrics_rule: int) -> Iterator[TemplateFile]:
    policy = the_object(root, f"base/{name}/networkpolicy.yaml")
    policy = to_karmada(metrics_from(policy, metrics_rule), 1)
    if name == "dispatcher":
        port: Node = {"protocol": "TCP", "port": _OTHER_PORT}
        policy = policy.add("/spec/egress/2/ports/-", When(mode("external"), port))
        policy = patched(root, policy, f"{_VISIBILITY}/networkpolicy.yaml", _IS_VISIBLE)
    disruption = the_object(root, f"base/{name}/poddisruptionbudget.yaml")
    is_wanted = all_of(target("host"), f"$.Values.{name}.enabled")
    yield _file(f"{name}-deployment", pods(deployment, name), is_wanted)
    if name == "dispatcher":
        service = the_object(root, f"{_VISIBILITY}/service.yaml")
        yield _file(f"{name}-service", service, all_of(is_wanted, _IS_VISIBLE))
    else:
        yield _file(f"{name}-service", the_object(root, f"base/{name}/service.yaml"), is_wanted)
    yield _file(f"{name}-serviceaccount", the_object(root, f"base/{name}/serviceaccount.yaml"), is_wanted)
    yield _file(
        f"{name}-poddisruptionbudget",
        budget(disruption, name),
        all_of(is_wanted, f"$.Values.{name}.podDisruptionBudget.enabled"),
    )
    yield _file(f"{name}-networkpolicy", policy, all_of(is_wanted, _POLICIES))


def _per_member(root: Path) -> Iterator[TemplateFile]:
    deployment = the_object(root, "base/estimator-per-member/deployment.yaml")
    asked = Written(f'"--from-prometheus={{{{ {_PROMETHEUS} }}}}"')
    deployment = _estimator(deployment.add(f"{CONTAINER}/args/-", When(_PROMETHEUS, asked)))
    service = _service(the_object(root, "base/estimator-per-member/service.yaml"))
    disruption = the_object(root, "base/estimator-per-member/poddisruptionbudget.yaml")
    yield _file("estimator-per-member-deployment", deployment, _PER_MEMBER, EACH_MEMBER)
    yield _file("estimator-per-member-service", service, _PER_MEMBER, EACH_MEMBER)
    yield _file(
        "estimator-per-member-poddisruptionbudget",
        budget(disruption, "estimator"),
        all_of(_PER_MEMBER, "$.Values.estimator.podDisruptionBudget.enabled"),
        EACH_MEMBER,
    )


def _for_many(root: Path) -> Iterator[TemplateFile]:
    deployment = the_object(root, "base/estimator-for-many/deployment.yaml")
    for place, value in additions_of(root, f"{_MEMBER_FOLDER}/estimator.yaml"):
        deployment = deployment.add(place, Each(EACH_MEMBER, each_member(value)))
    asked = Written(f'"--from-prometheus={{{{ $member }}}}={{{{ {_PROMETHEUS} }}}}"')
    deployment = deployment.add(f"{CONTAINER}/args/-", Each(EACH_MEMBER, When(_PROMETHEUS, asked)))
    disruption = the_object(root, "base/estimator-for-many/poddisruptionbudget.yaml")
    service = _service(the_object(root, "base/estimator-for-many/service.yaml"))
    of_member = _service(the_object(root, f"{_MEMBER_FOLDER}/service.yaml"))
    yield _file("estimator-for-many-deployment", _estimator(deployment), _FOR_MANY)
    yield _file("estimator-for-many-service", service, _FOR_MANY)
    yield _file("estimator-for-many-member-service", of_member, _FOR_MANY, EACH_MEMBER)
    yield _file(
        "estimator-for-many-poddisruptionbudget",
        budget(disruption, "estimator"),
        all_of(_FOR_MANY, "$.Values.estimator.podDisruptionBudget.enabled"),
    )


def _of_all_estimators(root: Path) -> Iterator[TemplateFile]:
    runs_here = all_of(target("host"), any_of(mode("per-member"), mode("for-many")))
    policy = to_karmada(metrics_from(the_object(root, "base/estimator/networkpolicy.yaml"), 1), 1)
    policy = member_ports(policy, 2)
    port: Node = {"protocol": "TCP", "port": Written("{{ $port }}")}
    ports: Node = Each("$port := $.Values.networkPolicy.prometheusPorts", port)
    policy = policy.add("/spec/egress/-", When("$.Values.networkPolicy.prometheusPorts", {"ports": [ports]}))
    elsewhere = objects_of(root, "overlays/estimator-elsewhere/services.yaml")[0]
    elsewhere = elsewhere.put("/spec/externalName", text_of("", "estimator.external.host"))
    elsewhere = elsewhere.put("/spec/ports/0/targetPort", _OTHER_PORT)
    yield _file("estimator-serviceaccount", the_object(root, "base/estimator/serviceaccount.yaml"), runs_here)
    yield _file("estimator-networkpolicy", policy, all_of(runs_here, _POLICIES))
    is_elsewhere = all_of(target("karmada"), mode("external"))
    yield _file("karmada-estimator-services", elsewhere, is_elsewhere, EACH_MEMBER)


def _estimator(source: Source) -> Source:
    source = optional(source, f"{CONTAINER}/args/[--karmada-kubeconfig]", _TEMPLATES)
    source = optional(source, f"{CONTAINER}/volumeMounts/[karmada]", _TEMPLATES)
    source = secret(source, "karmada", "estimator.karmadaKubeconfigSecret")
    source = optional(source, f"{POD}/volumes/[karmada]", _TEMPLATES)
    source = secret(source, "pki", "estimator.certificates.secret")
    for index, entry in enumerate(("certificate", "key", "authority")):
        place = f"{POD}/volumes/[pki]/secret/items/{index}/key"
        source = source.put(place, text_of("", f"estimator.certificates.{entry}"))
    gates = Written('"--feature-gates={{ join "," $.Values.estimator.featureGates }}"')
    source = source.add(f"{CONTAINER}/args/-", When("$.Values.estimator.featureGates", gates))
    return pods(source, "estimator")


def _service(source: Source) -> Source:
    is_alone = Written("{{ eq (int $.Values.estimator.replicas) 1 }}")
    return source.put("/spec/publishNotReadyAddresses", is_alone)


def _file(name: str, source: Source, condition: str, clause: str = "") -> TemplateFile:
    body = each_member(source.body) if clause else source.body
    return TemplateFile(f"{name}.yaml", source.file, condition, [on_host(body)], clause)
