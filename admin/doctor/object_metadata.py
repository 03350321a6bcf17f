"""The metadata of an object as every API server judges it, which no CustomResourceDefinition states.

Mirrors ObjectMeta of k8s.io/apimachinery, and its validation.
"""

from typing import Final

import msgspec

from admin.doctor.structural_schema import Schema

_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = f"({_SUBDOMAIN}/)?{_NAME}"
_DATE, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"


def _text(title: str, pattern: str, most: int, least: int = 0) -> dict[str, object]:
    return {
        "type": "string",
        "title": title,
        "pattern": f"^{pattern}$",
        "maxLength": most,
        "minLength": least,
    }


def _each(names: str, schema: object) -> dict[str, object]:
    return dict.fromkeys(names.split(), schema)


_KEY: Final = "a key such as team or example.com/team"
_MOMENT: Final = _text(
    "a moment such as 2026-01-31T12:00:00Z", f"{_DATE}T{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})", 64
)
_OWNER: Final = {
    "type": "object",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        **_each("apiVersion kind name uid", {"type": "string", "minLength": 1}),
        **_each("controller blockOwnerDeletion", {"type": "boolean"}),
    },
}

METADATA: Final = msgspec.convert(
    {
        "type": "object",
        "required": ["name"],
        "default": {},
        "properties": {
            "name": _text("a name of lower case letters, digits, - and .", _SUBDOMAIN, 253, 1),
            "namespace": _text("a name of lower case letters, digits and -", f"({_LABEL})?", 63),
            "labels": {
                "type": "object",
                "propertyNames": _text(_KEY, _QUALIFIED, 317),
                "additionalProperties": _text(
                    "a label's value of letters, digits, -, _ and .", f"({_NAME})?", 63
                ),
            },
            "annotations": {
                "type": "object",
                "propertyNames": _text(_KEY, f"(?i:{_QUALIFIED})", 317),
                "additionalProperties": {"type": "string"},
            },
            "finalizers": {"type": "array", "items": _text(_KEY, _QUALIFIED, 317)},
            "ownerReferences": {"type": "array", "items": _OWNER},
            "managedFields": {"type": "array"},
            **_each("generateName uid resourceVersion selfLink", {"type": "string"}),
            **_each("creationTimestamp deletionTimestamp", _MOMENT),
            **_each("generation deletionGracePeriodSeconds", {"type": "integer"}),
        },
    },
    Schema,
)
"""A name has to be there: kubectl applies nothing without."""
