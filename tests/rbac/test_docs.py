"""docs/permissions.md says what the programs say."""

from pathlib import Path

import pytest

from admin.notify.permissions import KARMADA as NOTIFY_KARMADA
from admin.notify.permissions import MEMBER as NOTIFY_MEMBER
from estimator.permissions import KARMADA, MEMBER
from fairway.kube.permissions import ANY_RESOURCE, Permission
from node_agent.permissions import PERMISSIONS as NODE_AGENT
from queue_dispatcher.permissions import PERMISSIONS as DISPATCHER
from tests.rbac import roles
from webhook.permissions import PERMISSIONS as WEBHOOK

PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text("utf-8")


def row(permission: Permission) -> str:
    any_kind = permission.resource == ANY_RESOURCE
    resource = "every other kind of workload" if any_kind else f"`{permission.resource}`"
    return f"| {resource} | {', '.join(permission.verbs)} | {permission.lost} |"


@pytest.mark.parametrize(
    "permissions", [DISPATCHER, WEBHOOK, MEMBER, KARMADA, NODE_AGENT, NOTIFY_MEMBER, NOTIFY_KARMADA]
)
def test_every_permission_has_its_row(permissions: tuple[Permission, ...]) -> None:
    rows = "\n".join(row(one) for one in permissions)
    assert rows in PAGE


def test_every_role_for_people_is_told() -> None:
    bound = {obj["roleRef"]["name"] for obj in roles.karmada_objects() if obj["kind"].endswith("RoleBinding")}
    for obj in roles.karmada_objects():
        name = obj["metadata"]["name"]
        if obj["kind"] == "ClusterRole" and name not in bound:
            assert f"`{name}`" in PAGE
