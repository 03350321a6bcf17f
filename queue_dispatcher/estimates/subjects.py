"""From a binding that is asked about to its question: about pods as they will be told to be. Pure.

Where pods are kept on the nodes of a flavor, that is asked about; so clusters that are in different flavors
may be asked something different.
"""

from dataclasses import replace

from queue_dispatcher.estimates.estimates import Subject
from queue_dispatcher.estimates.questions import (
    Question,
    StatedBinding,
    growth_question_of,
    question_of,
)
from queue_dispatcher.workloads.keeping import Told, told_at, with_told


def question_about(subject: Subject, source: bytes | StatedBinding) -> Question | None:
    """The question; None if there is nothing to ask. ``source``: as `question_of` takes it."""
    question = _as_told(subject, source, ())
    if question is None or not subject.keeps or isinstance(source, StatedBinding):
        return question
    by_told: dict[tuple[Told, ...], list[str]] = {}
    for cluster in question.clusters:
        by_told.setdefault(told_at(subject.keeps, subject.templates, cluster), []).append(cluster)
    elsewhere = {}
    for told, clusters in by_told.items():
        there = _as_told(subject, source, told) if told else None
        if there is not None:
            elsewhere.update(dict.fromkeys(clusters, there.gang))
    return replace(question, elsewhere=elsewhere)


def _as_told(subject: Subject, source: bytes | StatedBinding, told: tuple[Told, ...]) -> Question | None:
    if told and isinstance(source, bytes):
        source = with_told(source, told)
    ask = growth_question_of if subject.is_growth else question_of
    question = ask(subject.binding, subject.permitted, subject.copies, source)
    if question is None:
        return None
    if subject.most and question.adds_up:
        question = replace(question.with_copies(subject.most), in_one=subject.in_one)
    return replace(question, is_guided=subject.is_guided and question.clusters_needed == 1)
