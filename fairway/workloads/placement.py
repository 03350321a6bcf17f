"""Where the pods of a workload have to be with respect to each other, by everything that says so.

Fairway's own annotations silence all others. Without them the kind's own fields come first, then Kueue, KAI,
Volcano and TPU slices; where two say different things, the one that is not looked at is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fairway.workloads.fields import Problems
from fairway.workloads.gang import TopologyMode, TopologyRequest
from fairway.workloads.kai import kai_topology
from fairway.workloads.kueue import KueueWords, kueue_words
from fairway.workloads.network_topology import annotated_network_topology
from fairway.workloads.outline import ANNOTATIONS, Binding, Outline
from fairway.workloads.own import own_topology
from fairway.workloads.tpu import tpu_slices


@dataclass(frozen=True, slots=True)
class Placement:
    """The topology of the whole gang and that of each pod set.

    ``is_asked``: something says that the pods are to be placed together, be it anywhere.
    """

    whole: TopologyRequest | None
    by_set: tuple[TopologyRequest | None, ...]
    is_asked: bool


def placement(outline: Outline, problems: Problems) -> Placement:
    """What the kind and all annotations together ask for."""
    return _own(outline, problems) or _others(outline, problems)


def _own(outline: Outline, problems: Problems) -> Placement | None:
    """What Fairway's own annotations say, or None where they are silent."""
    is_single = len(outline.pod_sets) == 1
    whole = own_topology(outline.annotations, ANNOTATIONS, problems, slices=is_single)
    by_set = [own_topology(notes, where, problems) for _, notes, where in outline.by_set()]
    if whole is None and not any(by_set):
        return None
    return _placed(whole, outline, by_set, problems, is_asked=True)


def _others(outline: Outline, problems: Problems) -> Placement:
    """What the kind's own fields and the annotations of other schedulers say."""
    words = [kueue_words(notes, where, problems) for _, notes, where in outline.by_set()]
    is_single = len(words) == 1
    kai = kai_topology(outline.annotations, ANNOTATIONS, problems, segments=is_single)
    if outline.binding is Binding.ONE_BY_ONE:
        if kai or any(word.placed for word in words):
            problems.append(
                f"{ANNOTATIONS}: Kueue and KAI place the pods of this kind one by one, so that their "
                "topology annotations bind nothing; use those of fairway.dev"
            )
        words, kai = [KueueWords()] * len(words), None
    shared = _shared_by_group(words, outline, problems)
    whole = _first(
        problems,
        (outline.topology, "the kind's own fields"),
        (shared, "Kueue's annotations"),
        (kai, "KAI's annotations"),
    )
    by_set: list[TopologyRequest | None] = []
    for (pod_set, notes, where), field, word in zip(outline.by_set(), outline.fields, words, strict=True):
        name = field or "the pod"
        segment = None if outline.binding is Binding.ONE_BY_ONE else kai_topology(notes, where, problems)
        by_set.append(
            _first(
                problems,
                (pod_set.topology, f"{name}: the kind's own fields"),
                (word.sliced or (None if shared else word.whole), f"{name}: Kueue's annotations"),
                (segment, f"{name}: KAI's annotations"),
                (annotated_network_topology(notes, where, problems), f"{name}: Volcano's annotations"),
                (tpu_slices(pod_set.template, where, problems), f"{name}: the TPU slice"),
            )
        )
    if is_single and whole is None and words[0].sliced:
        whole = words[0].whole  # slices within one larger domain
    is_asked = whole is not None or any(by_set) or any(word.placed for word in words)
    return _placed(whole, outline, by_set, problems, is_asked=is_asked)


def _shared_by_group(
    words: Sequence[KueueWords], outline: Outline, problems: Problems
) -> TopologyRequest | None:
    """The topology that all pod sets share because Kueue takes them as one group, or None."""
    groups = {word.group for word in words if word.group}
    if not groups or len(words) < 2:
        return None
    if len({(word.group, word.whole) for word in words}) == 1:
        return words[0].whole
    _, _, field = next(outline.by_set())
    problems.append(
        f"{field}: pod sets of one Kueue group are looked at together only "
        "where all pod sets are in it and ask for the same; each is read as if it stood alone"
    )
    return None


def _first(problems: Problems, *said: tuple[TopologyRequest | None, str]) -> TopologyRequest | None:
    """The first request; another one that says something else is told."""
    found: TopologyRequest | None = None
    for request, source in said:
        if found is None:
            found = request
        elif request is not None and request != found:
            problems.append(f"{source} ask for {_shown(request)}, not looked at beside {_shown(found)}")
    return found


def _placed(
    whole: TopologyRequest | None,
    outline: Outline,
    by_set: Sequence[TopologyRequest | None],
    problems: Problems,
    *,
    is_asked: bool,
) -> Placement:
    """The same, with slices where they belong: at the only pod set there is."""
    if whole is not None and whole.slice_size and len(by_set) == 1:
        by_set = [_first(problems, (whole, "the workload's annotations"), (by_set[0], "those of its pods"))]
        whole = None
    counts = [pod_set.count for pod_set in outline.pod_sets]
    pieces = [_in_one_piece(asked, count) for asked, count in zip(by_set, counts, strict=True)]
    return Placement(whole, tuple(pieces), is_asked)


def _in_one_piece(asked: TopologyRequest | None, count: int) -> TopologyRequest | None:
    """A slice of all pods is no slice."""
    if asked is None or not 0 < count <= asked.slice_size:
        return asked
    mode = TopologyMode.REQUIRED if asked.mode is TopologyMode.SLICED else asked.mode
    return TopologyRequest(mode, asked.level)


def _shown(request: TopologyRequest) -> str:
    slices = f" in slices of {request.slice_size}" if request.slice_size else ""
    return f"{request.mode} {request.level}{slices}"
