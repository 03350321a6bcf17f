"""What the workloads' own objects say, for every kind that bindings are about.

One watch a kind, reduced at the door; a binding never costs a request of its own. Kinds come up as bindings
do. Until a kind has been read, and while it cannot be, its workloads are not there, and why is told.
"""

import hashlib
from collections.abc import Callable, Collection
from dataclasses import replace

import msgspec

from fairway.kube.objects import object_key
from fairway.kube.templates import PodTemplate, TemplateMeta
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_workload
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.objects import TemplateObject
from queue_dispatcher.cycle.reasons import Reason, unreadable
from queue_dispatcher.workloads.gang_minimum import gang_minimums
from queue_dispatcher.workloads.pod_template import pod_templates
from queue_dispatcher.workloads.template import TemplateFacts, read_template

Kind = tuple[str, str]
"""API group and kind."""


class _Whole(msgspec.Struct, frozen=True, rename="camel"):
    """A template as `read_template` takes it: objects in lists do not say what they are."""

    api_version: str
    kind: str
    metadata: object
    spec: msgspec.Raw


class TemplateKind:
    """The templates of one kind; the reflector's sink for them. With ``digests`` those are kept as well;
    with ``guides`` also what guidance has to know of their templates.
    """

    def __init__(
        self,
        api_version: str,
        kind: str,
        changed: Callable[[Kind, str], None],
        *,
        digests: bool,
        guides: bool,
    ) -> None:
        self.api_version = api_version
        self.kind = kind
        self.trouble = ""
        """Why the kind cannot be read; empty while it can."""
        self._changed = changed
        self._facts: dict[str, TemplateFacts | Reason] = {}
        # Most templates of a kind say the same: one object for all of them.
        self._same: dict[TemplateFacts | Reason, TemplateFacts | Reason] = {}
        self._questions: dict[str, str] | None = {} if digests else None
        self._tells = guides and digests

    @property
    def name(self) -> Kind:
        """API group and kind."""
        return (self.api_version.rpartition("/")[0], self.kind)

    def keys(self) -> Collection[str]:
        """Keys of all templates known."""
        return self._facts.keys()

    def upsert(self, obj: TemplateObject) -> None:
        """A template appeared or changed."""
        key = object_key(obj.metadata)
        whole = _Whole(self.api_version, self.kind, obj.metadata, obj.spec)
        raw = msgspec.json.encode(whole)
        facts, question = read_template(raw), ""
        gang = read_workload(raw)
        if isinstance(gang, Gang):
            if self._questions is not None:
                question = _question(gang)
            if isinstance(facts, TemplateFacts):
                pods = pod_templates(self.name[0], raw, gang) if self._tells and facts.is_guided else ()
                # What is guided is asked about otherwise.
                question += "+" if pods else ""
                facts = replace(
                    facts,
                    gang_pods=_gang_pods(gang),
                    pods=pods,
                    pod_sets=len(gang.pod_sets) if pods else 0,
                    minimums=gang_minimums(self.name[0], raw, gang, pods),
                    is_near=_is_near(gang),
                )
        facts = self._same.setdefault(facts, facts)
        is_new = self._facts.get(key) is not facts
        if self._questions is not None:
            is_new = is_new or self._questions.get(key) != question
            self._questions[key] = question
        if is_new:
            self._facts[key] = facts
            self._changed(self.name, key)

    def delete(self, key: str) -> None:
        """A template is gone."""
        if self._questions is not None:
            self._questions.pop(key, None)
        if self._facts.pop(key, None) is not None:
            self._changed(self.name, key)

    def facts(self, key: str) -> TemplateFacts | Reason | None:
        """What the template says; None where it is not there."""
        known = self._facts.get(key)
        if known is None and self.trouble:
            return unreadable(self.trouble)
        return known

    def question(self, key: str) -> str:
        """A digest of what the template says of its pods beyond their number; empty where none is kept."""
        return self._questions.get(key, "") if self._questions is not None else ""


class Templates:
    """The templates of all kinds. ``changed`` is told kind and key of each that says something new.

    ``appeared`` is told of each kind when it first comes up. With ``digests`` those of `question` are kept.
    """

    def __init__(
        self, changed: Callable[[Kind, str], None], *, digests: bool = False, guides: bool = False
    ) -> None:
        self.kinds: dict[Kind, TemplateKind] = {}
        self.appeared: Callable[[TemplateKind], None] = lambda kind: None
        self._changed = changed
        self._digests, self._guides = digests, guides

    def kind_of(self, workload: WorkloadReference) -> TemplateKind:
        """The kind of a workload, from now on to be read if it was not before."""
        name = (workload.group, workload.kind)
        kind = self.kinds.get(name)
        if kind is None:
            kind = TemplateKind(
                workload.api_version,
                workload.kind,
                self._changed,
                digests=self._digests,
                guides=self._guides,
            )
            self.kinds[name] = kind
            self.appeared(kind)
        return kind

    def facts(self, workload: WorkloadReference) -> TemplateFacts | Reason | None:
        """What the workload's template says; None where it is not there, or not known yet."""
        return self.kind_of(workload).facts(template_key(workload))

    def question(self, workload: WorkloadReference) -> str:
        """See `TemplateKind.question`."""
        return self.kind_of(workload).question(template_key(workload))


def template_key(workload: WorkloadReference) -> str:
    """The `object_key` of a workload."""
    return f"{workload.namespace}/{workload.name}" if workload.namespace else workload.name


def _gang_pods(gang: Gang) -> int:
    """How many pods of it, of all copies, are nothing one without the other; 0 where they are independent."""
    return gang.copies * sum(pod_set.minimum for pod_set in gang.pod_sets) if gang.is_gang else 0


def _is_near(gang: Gang) -> bool:
    """Whether it matters which of its pods lie where."""
    alike = len(gang.pod_sets) == 1 and gang.copies == 1
    requests = (gang.topology, *(one.topology for one in gang.pod_sets))
    return not alike or any(one is not None for one in requests)


def _question(gang: Gang) -> str:
    # Names, and labels that controllers put there, differ between workloads that ask for the same.
    pod_sets = tuple(
        replace(
            one,
            template=PodTemplate(TemplateMeta(None, one.template.metadata.annotations), one.template.spec),
        )
        for one in gang.pod_sets
    )
    alike = replace(gang, namespace="", name="", pod_sets=pod_sets, problems=())
    return hashlib.sha256(msgspec.json.encode(alike, order="deterministic")).hexdigest()[:32]
