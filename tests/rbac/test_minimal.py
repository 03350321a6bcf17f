"""The roles give what the programs need, and nothing else: every verb on every resource is used."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from admin.notify import permissions as notify_permissions
from estimator import permissions as estimator_permissions
from fairway.kube.permissions import Permission, permission_for
from queue_dispatcher import permissions as dispatcher_permissions
from sandbox.fakeapi.authorization import Attributes, Authorization, Rule
from tests.rbac import recorded, roles
from tests.rbac.recorded import Requests
from tests.rbac.roles import DISPATCHER, ESTIMATOR, NOTIFY, WEBHOOK
from webhook import permissions as webhook_permissions


def atoms(authorization: Authorization) -> list[Rule]:
    """One verb on one resource each, of every role that a program has."""
    found = [atom for rules in authorization.rules.values() for rule in rules for atom in rule.atoms()]
    return list(dict.fromkeys(found))


def name(atom: Rule) -> str:
    (verb,), (group,), (resource,) = atom.verbs, atom.groups, atom.resources
    return f"{atom.source.replace(' ', '-')}-{verb}-{resource}.{group}"


def unmet(requests: Mapping[str, Requests], authorization: Authorization) -> list[tuple[str, Attributes]]:
    return [(user, one) for user, of in requests.items() for one in of if not authorization.allows(user, one)]


def without(authorization: Authorization, atom: Rule) -> Authorization:
    for user in tuple(authorization.rules):
        if atom in [each for rule in authorization.rules[user] for each in rule.atoms()]:
            authorization.without(user, atom)
    return authorization


def test_the_roles_suffice() -> None:
    assert unmet(recorded.karmada(), roles.karmada()) == []
    assert unmet({ESTIMATOR: recorded.member()}, roles.member()) == []
    for side in ("member", "karmada"):
        assert unmet({NOTIFY: recorded.notify(side)}, roles.notify(side)) == []


def test_nothing_can_be_taken_away() -> None:
    karmada, member = recorded.karmada(), {ESTIMATOR: recorded.member()}
    unused = [a for a in atoms(roles.karmada()) if not unmet(karmada, without(roles.karmada(), a))]
    unused += [a for a in atoms(roles.member()) if not unmet(member, without(roles.member(), a))]
    for side in ("member", "karmada"):
        requests = {NOTIFY: recorded.notify(side)}
        unused += [
            a for a in atoms(roles.notify(side)) if not unmet(requests, without(roles.notify(side), a))
        ]
    assert list(map(name, unused)) == []


def test_what_has_a_name_is_allowed_under_that_name_only() -> None:
    authorization = roles.karmada()
    named = [rule for rules in authorization.rules.values() for rule in rules if rule.names]
    assert {rule.resources for rule in named} == {
        ("mutatingwebhookconfigurations",),
        ("secrets",),
        ("leases",),
    }
    for user, requests in recorded.karmada().items():
        for one in requests:
            if (one.resource,) in {rule.resources for rule in named} and one.name:
                assert not authorization.allows(user, replace(one, name="another"))
                if one.namespace:
                    assert not authorization.allows(user, replace(one, namespace="karmada-system"))
    for side in ("member", "karmada"):
        records = [one for one in recorded.notify(side) if one.resource == "configmaps" and one.name]
        assert {one.verb for one in records} == {"get", "update"}
        for one in records:
            assert not roles.notify(side).allows(NOTIFY, replace(one, name="another"))
            assert not roles.notify(side).allows(NOTIFY, replace(one, namespace="team"))


@pytest.mark.parametrize(
    ("user", "authorization", "permissions"),
    [
        (WEBHOOK, roles.karmada(), webhook_permissions.PERMISSIONS),
        (DISPATCHER, roles.karmada(), dispatcher_permissions.PERMISSIONS),
        (ESTIMATOR, roles.karmada(), estimator_permissions.KARMADA),
        (ESTIMATOR, roles.member(), estimator_permissions.MEMBER),
        (NOTIFY, roles.notify("karmada"), notify_permissions.KARMADA),
        (NOTIFY, roles.notify("member"), notify_permissions.MEMBER),
    ],
    ids=[
        "webhook",
        "dispatcher",
        "estimator on karmada",
        "estimator in members",
        "notify on karmada",
        "notify in members",
    ],
)
def test_each_program_knows_what_it_loses_without(
    user: str, authorization: Authorization, permissions: tuple[Permission, ...]
) -> None:
    """Its table and its roles say the same, down to the file."""
    used = set()
    for rule in authorization.rules[user]:
        for atom in rule.atoms():
            (verb,), (group,), (resource,) = atom.verbs, atom.groups, atom.resources
            plural, slash, part = resource.partition("/")
            known = permission_for(permissions, verb, f"{plural}.{group}{slash}{part}" if group else resource)
            if verb == "get" and user == ESTIMATOR:
                # In the role that it shares with the dispatcher.
                assert atom.source == "ClusterRole fairway-template-reader"
                continue
            assert known is not None, (verb, resource)
            assert _grants(known.manifest, rule), (known.manifest, verb, resource)
            used.add((known, verb))
    assert used == {(one, verb) for one in permissions for verb in one.verbs}


def _grants(manifest: str, rule: Rule) -> bool:
    names = {
        "manifests/karmada/rbac/webhook.yaml": "fairway-webhook",
        "manifests/karmada/rbac/dispatcher.yaml": "fairway-dispatcher",
        "manifests/karmada/rbac/visibility.yaml": "fairway-dispatcher-visibility",
        "manifests/karmada/rbac/estimator.yaml": "fairway-estimator",
        "manifests/karmada/rbac/templates.yaml": "fairway-template-reader",
        "manifests/member/rbac.yaml": "fairway-estimator",
        "manifests/karmada/notify/rbac.yaml": "fairway-notify",
        "manifests/member/notify/rbac.yaml": "fairway-notify",
    }
    return rule.source.partition(" ")[2] == names[manifest]
