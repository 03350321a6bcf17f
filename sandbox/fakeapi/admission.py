"""Calls the webhooks of the MutatingWebhookConfigurations that are stored here, as a real server does.

Those of one write are called one after the other, by name of their configuration, each with what the one
before made of the object. Reinvocation, and webhooks named by a Service, are left out. Mirrors
k8s.io/apiserver/pkg/admission/plugin/webhook (mutating/dispatcher.go, errors/statuserror.go) of 1.36.
"""

import asyncio
import base64
import ssl
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from sandbox.fakeapi.conditions import ConditionFailed, holds
from sandbox.fakeapi.patching import PatchFailed, json_patch
from sandbox.fakeapi.seen import Seen
from sandbox.fakeapi.selection import label_selector_matches
from sandbox.fakeapi.store import ApiFault, Draft, Obj, Store, untype
from sandbox.fakeapi.targets import Target

_CONFIGURATIONS = "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "apply": "UPDATE"}
_SAFE_IN_DRY_RUNS = ("None", "NoneOnDryRun")


class _CallFailed(Exception):
    """The webhook gave no usable answer."""


@dataclass(frozen=True, slots=True)
class _Webhook:
    """One entry of a configuration, and the TLS context of its caBundle."""

    configuration: str
    spec: Obj
    tls: ssl.SSLContext | None

    @property
    def name(self) -> str:
        name: str = self.spec["name"]
        return name


@dataclass(frozen=True, slots=True)
class _Question:
    """One write as webhooks are asked about it; ``object`` and ``old`` carry kind and apiVersion."""

    seen: Seen
    target: Target
    operation: str
    draft: Draft
    old: Obj | None

    def request(self, uid: str, obj: Obj) -> Obj:
        """The request of an AdmissionReview."""
        collection = self.target.collection
        group, _, version = collection.api_version.rpartition("/")
        kind = {"group": group, "version": version, "kind": collection.kind}
        resource = {"group": group, "version": version, "resource": collection.name}
        options = {"kind": f"{self.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
        request: Obj = {
            "uid": uid,
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.draft.key[1],
            "operation": self.operation,
            "userInfo": {"username": self.seen.user or "admin", "groups": ["system:authenticated"]},
            "object": obj,
            "oldObject": self.old,
            "dryRun": self.seen.is_dry_run,
            "options": options,
        }
        if self.draft.key[0]:
            request["namespace"] = self.draft.key[0]
        if self.target.part:
            request |= {"subResource": self.target.part, "requestSubResource": self.target.part}
        return request


class Admission:
    """Asks webhooks about drafts; ``calls`` lists the requests of all AdmissionReviews so far.

    ``has_conditions``: their matchConditions are evaluated, which needs a CEL engine; otherwise a webhook is
    asked whatever they say, and has to decide by itself.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None
        self._known: tuple[int, list[_Webhook]] = (-1, [])
        self.calls: list[Obj] = []
        self.has_conditions = True

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def admitted(self, seen: Seen, target: Target, draft: Draft) -> Draft:
        """The draft with what the webhooks changed; raises ApiFault if one refuses it, or must be heard."""
        webhooks = self._webhooks()
        if not webhooks or seen.verb not in _OPERATIONS:
            return draft
        operation = "CREATE" if draft.old is None else _OPERATIONS[seen.verb]
        obj = _typed(target, draft.after)
        old = None if draft.old is None else _typed(target, draft.before)
        question = _Question(seen, target, operation, draft, old)
        for webhook in webhooks:
            obj = await self._asked(webhook, question, obj)
        after = dict(obj)
        untype(after)
        return Draft(draft.collection, draft.key, draft.old, draft.before, after)

    def _webhooks(self) -> list[_Webhook]:
        collection = self._store.collections.get(_CONFIGURATIONS)
        if collection is None or not collection.records:
            return []
        version = max(record.version for record in collection.records.values())
        stamp = version * 1000 + len(collection.records)
        if self._known[0] != stamp:
            records = sorted(collection.records.items())
            self._known = stamp, [each for _, record in records for each in _entries(record.decode())]
        return self._known[1]

    async def _asked(self, webhook: _Webhook, question: _Question, obj: Obj) -> Obj:
        """What this webhook makes of the object."""
        spec = webhook.spec
        if not self._concerns(spec, question, obj):
            return obj
        request = question.request(str(uuid.uuid4()), obj)
        try:
            variables = {"object": obj, "oldObject": question.old, "request": request}
            conditions = [entry["expression"] for entry in spec.get("matchConditions") or ()]
            if self.has_conditions and not all(holds(expression, variables) for expression in conditions):
                return obj
            if question.seen.is_dry_run and spec.get("sideEffects") not in _SAFE_IN_DRY_RUNS:
                raise ApiFault(
                    400, "BadRequest", f'admission webhook "{webhook.name}" does not support dry run'
                )
            self.calls.append(request)
            return _answered(webhook.name, obj, request["uid"], await self._called(webhook, request))
        except (_CallFailed, ConditionFailed) as error:
            if spec.get("failurePolicy") == "Ignore":
                return obj
            text = f'Internal error occurred: failed calling webhook "{webhook.name}": {error}'
            raise ApiFault(500, "InternalError", text) from error

    def _concerns(self, spec: Obj, question: _Question, obj: Obj) -> bool:
        if not any(_rule_matches(rule, question) for rule in spec.get("rules") or ()):
            return False
        labels = [each["metadata"].get("labels") or {} for each in (obj, question.old) if each is not None]
        selector = spec.get("objectSelector") or {}
        if not any(label_selector_matches(selector, each) for each in labels):
            return False
        namespace = question.draft.key[0]
        return not namespace or label_selector_matches(
            spec.get("namespaceSelector") or {}, self._namespace_labels(namespace)
        )

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        record = self._store.collection("v1", "namespaces").records.get(("", name))
        return {"kubernetes.io/metadata.name": name, **(record.labels if record is not None else {})}

    async def _called(self, webhook: _Webhook, request: Obj) -> Obj:
        """The answered AdmissionReview."""
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        timeout_s = webhook.spec.get("timeoutSeconds") or 10
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.post(
                    webhook.spec["clientConfig"]["url"],
                    params={"timeout": f"{timeout_s}s"},
                    data=msgspec.json.encode(review),
                    headers={"Content-Type": "application/json", "Accept": "application/json"},
                    ssl=webhook.tls or True,
                ) as response,
            ):
                body = await response.read()
                if response.status != 200:
                    raise _CallFailed(f"the server answered {response.status}")
            answer: Obj = msgspec.json.decode(body)
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise _CallFailed(str(error) or type(error).__name__) from error
        return answer


def _entries(configuration: Obj) -> Iterator[_Webhook]:
    for spec in configuration.get("webhooks") or ():
        bundle = spec["clientConfig"].get("caBundle")
        tls = ssl.create_default_context(cadata=base64.b64decode(bundle).decode()) if bundle else None
        yield _Webhook(configuration["metadata"]["name"], spec, tls)


def _rule_matches(rule: Obj, question: _Question) -> bool:
    group, _, version = question.target.collection.api_version.rpartition("/")
    resource, _, part = question.target.resource.partition("/")
    scope = rule.get("scope", "*")
    return (
        _listed(rule["operations"], question.operation)
        and _listed(rule["apiGroups"], group)
        and _listed(rule["apiVersions"], version)
        and (scope == "*" or (scope == "Namespaced") == bool(question.draft.key[0]))
        and any(
            name in ("*", resource) and sub in ("*", part)
            for name, _, sub in (wanted.partition("/") for wanted in rule["resources"])
        )
    )


def _listed(wanted: list[str], value: str) -> bool:
    return "*" in wanted or value in wanted


def _answered(name: str, obj: Obj, uid: str, review: Any) -> Obj:  # noqa: ANN401 (whatever a webhook sends)
    """The object after the webhook's answer; raises ApiFault for a no, _CallFailed for no answer at all."""
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict) or response.get("uid") != uid:
        raise _CallFailed("expected a response with the uid of the request")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != "admission.k8s.io/v1":
        raise _CallFailed("expected an AdmissionReview of admission.k8s.io/v1")
    if not response.get("allowed"):
        result = response.get("status") or {}
        code = max(400, result.get("code") or 0)
        message = result.get("message") or result.get("reason") or "without explanation"
        text = f'admission webhook "{name}" denied the request: {message}'
        raise ApiFault(code, result.get("reason") or "BadRequest", text)
    patch = response.get("patch")
    if not patch:
        return obj
    if response.get("patchType") != "JSONPatch":
        raise _CallFailed(f"patchType {response.get('patchType')!r}: expected JSONPatch")
    try:
        operations = msgspec.json.decode(base64.b64decode(patch, validate=True))
    except (msgspec.DecodeError, ValueError) as error:
        raise _CallFailed(f"the patch is no JSON in base64: {error}") from error
    try:
        patched: Obj = json_patch(obj, operations)
    except PatchFailed as error:
        # Whatever the failurePolicy says.
        raise ApiFault(500, "InternalError", f"Internal error occurred: {error}") from error
    return patched


def _typed(target: Target, obj: Obj) -> Obj:
    return {"apiVersion": target.collection.api_version, "kind": target.collection.kind, **obj}
