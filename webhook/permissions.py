"""What the webhook asks to be allowed on karmada-apiserver, and why."""

from typing import Final

from fairway.kube.permissions import Permission

_MANIFEST: Final = "manifests/karmada/rbac/webhook.yaml"

PERMISSIONS: Final[tuple[Permission, ...]] = (
    Permission(
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        ("get",),
        "this webhook is not registered by itself, nor is what is registered put right",
        _MANIFEST,
    ),
    Permission(
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        ("create",),
        "this webhook is not registered by itself",
        _MANIFEST,
    ),
    Permission(
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        ("patch",),
        "what is registered is not put right, so that a new authority or URL does not get there",
        _MANIFEST,
    ),
    Permission(
        "secrets",
        ("get",),
        "certificates cannot be shared: nothing is served until this is granted, or --tls-cert-file given",
        _MANIFEST,
    ),
    Permission(
        "secrets",
        ("create",),
        "certificates cannot be kept: nothing is served until this is granted, the Secret made, or "
        "--tls-cert-file given",
        _MANIFEST,
    ),
    Permission(
        "secrets",
        ("patch",),
        "certificates are not renewed; those that are stored serve until they expire",
        _MANIFEST,
    ),
)
