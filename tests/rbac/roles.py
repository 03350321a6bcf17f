"""The roles of the manifests, as they are shipped."""

from importlib.resources import files

import yaml

from sandbox.fakeapi.authorization import Authorization
from sandbox.fakeapi.store import Obj

WEBHOOK, DISPATCHER, ESTIMATOR, NOTIFY = (
    f"system:serviceaccount:fairway-system:fairway-{name}"
    for name in ("webhook", "dispatcher", "estimator", "notify")
)
KARMADA_FILES = ("webhook", "dispatcher", "visibility", "estimator", "templates", "users")


def karmada_objects() -> list[Obj]:
    """Everything of ``manifests/karmada/rbac``."""
    return [obj for name in KARMADA_FILES for obj in _objects(f"karmada/rbac/{name}.yaml")]


def member_objects() -> list[Obj]:
    """Everything of ``manifests/member/rbac.yaml``."""
    return _objects("member/rbac.yaml")


def karmada() -> Authorization:
    """What the programs may do on Karmada's API server."""
    return Authorization(karmada_objects())


def member() -> Authorization:
    """What the estimators may do in a member cluster."""
    return Authorization(member_objects())


def notify(side: str) -> Authorization:
    """What `fairway notify` may do in a ``member`` or on ``karmada``."""
    return Authorization(_objects(f"{side}/notify/rbac.yaml"))


def _objects(file: str) -> list[Obj]:
    return list(yaml.safe_load_all(files("manifests").joinpath(file).read_text("utf-8")))
