"""Queues and the workloads in them as tables; a bar shows how much of a queue's quota is in use.

A workload is one line: its place, what it asks for, how long it has waited, and for what in one word. The
sentence behind the word is told of the head of each queue, and of each workload in the wide form.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice

from rich.console import Group, RenderableType
from rich.text import Text

from admin.printable import counted, short_key, since
from admin.tables import Column, Kind, numbers
from admin.terminal.console import Grid, grid, number, shown, title
from admin.terminal.histories import exhausted, histories, sharing_in_words
from admin.terminal.reservations import reservation_facts
from admin.terminal.starts import start_facts, starting
from fairway.resources import format_amount, is_extended
from fairway.visibility import LocalQueueView, QueueList, QueueView, Usage, WorkloadView

_BAR = 12
_NO_LIMIT = -1
_FEW = 3
_BEHIND_S = 5
MOST = 1000


@dataclass(frozen=True, slots=True)
class Look:
    """How to show it: as of ``now``, ``wide`` with every word, ``most`` workloads of each queue.

    ``namespaces``: what was asked about, if not everything.
    """

    now: datetime
    wide: bool = False
    most: int = MOST
    namespaces: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The namespaces in words, empty for all."""
        many = "s" * (len(self.namespaces) > 1)
        return f"namespace{many} {', '.join(self.namespaces)}" if self.namespaces else ""


def queue_tables(queues: QueueList, look: Look) -> Group:
    """All queues as a tree, each with its usage, and what waits without a queue."""
    parts: list[RenderableType] = []
    if not queues.is_leader:
        parts.append(shown("told by a replica that does not lead; it is a moment behind", style="dim"))
    if queues.queues:
        parts += [_tree(queues.queues, look), *_complaints(queues.queues)]
        parts += [line for queue in queues.queues for line in exhausted(queue)]
    else:
        taken = f"No queue takes workloads of {look.where}." if look.where else "There is no ClusterQueue."
        parts.append(shown(taken, 400))
    parts += [line for queue in queues.queues if not queue.parent for line in _late(queue, f"{queue.name}: ")]
    parts.append(
        shown(
            f"{queues.in_flight} released and being placed by Karmada, at most {queues.window} at once",
            200,
            "dim",
        )
    )
    if queues.unresolved:
        parts += [Text(), title(f"{counted(len(queues.unresolved), 'workload')} without a queue")]
        parts += _workloads(queues.unresolved, look, len(queues.unresolved))
    return Group(*parts, *_kept_back(queues))


def queue_page(queue: QueueView, look: Look) -> Group:
    """One queue: its quota by flavor and resource, what it holds, and the line of what waits."""
    parts: list[RenderableType] = [title(f"ClusterQueue {queue.name}")]
    parts.append(
        shown(
            f"parent {queue.parent or '-'}, {queue.strategy or 'holds no workloads'}, "
            f"weight {queue.weight_milli / 1000:g}, {queue.admitted} admitted, {queue.pending} pending, "
            f"share {queue.share_milli / 1000:g}",
            200,
        )
    )
    parts += [*_wrong(queue.stopped, queue.problems), Text(), _usage_table(queue.usage, look), *_late(queue)]
    parts += histories(queue)
    parts += starting(queue, wide=look.wide)
    return Group(*parts, *_line(queue.workloads, look, queue.pending, queue.other_pending))


def local_queue_page(queue: LocalQueueView, look: Look) -> Group:
    """One LocalQueue and the line of what waits in it."""
    parts: list[RenderableType] = [title(f"LocalQueue {queue.namespace}/{queue.name}")]
    holds = f"{queue.admitted} admitted, {queue.pending} pending"
    parts.append(shown(f"of ClusterQueue {queue.cluster_queue or '-'}, {holds}", 200))
    parts += [*sharing_in_words(queue.sharing), *_wrong(queue.stopped, queue.problems)]
    parts += starting(queue, wide=look.wide)
    return Group(*parts, *_line(queue.workloads, look, queue.pending))


def pending_tables(queues: QueueList, look: Look) -> Group:
    """Everything that waits, queue by queue."""
    parts: list[RenderableType] = []
    for queue in queues.queues:
        counts = sorted(queue.waiting.items(), key=lambda item: (-item[1], item[0]))
        said = ", ".join(f"{count} {kind}" for kind, count in counts)
        parts.append(title(f"{queue.name}: {queue.pending} pending" + (f": {said}" if said else "")))
        parts += [*_workloads(queue.workloads, look, queue.pending, queue.other_pending), Text()]
    if queues.unresolved:
        parts += [title("without a queue"), *_workloads(queues.unresolved, look, len(queues.unresolved))]
    nothing = shown(f"Nothing waits{' in ' * bool(look.where)}{look.where}.", 400)
    return Group(*(parts or [nothing]), *_kept_back(queues))


def workload_pages(workloads: Iterable[WorkloadView], look: Look) -> Group:
    """Workloads one by one: where they stand, what they wait for, and what would end the wait."""
    parts: list[RenderableType] = []
    for workload in workloads:
        parts += [title(f"{workload.kind} {workload.namespace}/{workload.name}: {workload.state}")]
        table = grid("", "")
        for name, value in _facts(workload, look):
            table.add_row(Text(name, style="dim"), shown(value, 500))
        parts += [table, Text()]
    return Group(*parts)


def bar(used: int, nominal: int) -> Text:
    """``####........``: used of nominal; where more is used, what is borrowed of it: ``########++++``."""
    whole = max(used, nominal)
    own = min(used, nominal) * _BAR // whole if whole else 0
    text = Text("#" * own, style="green" if used < nominal else "yellow")
    if used > nominal:
        text.append("+" * (_BAR - own), style="magenta")
    else:
        text.append("." * (_BAR - own), style="dim")
    return text


_BAR_COLUMN = Column("", drop=99)


def _tree(queues: Sequence[QueueView], look: Look) -> Grid:
    is_reserved = any(usage.reserved for queue in queues for usage in queue.usage)
    table = grid(
        Column("Queue", limit=70),
        Column("Flavor", drop=10),
        Column("Resource", drop=20),
        _BAR_COLUMN,
        numbers("Used"),
        numbers("Nominal"),
        numbers("Can take", 50),
        *((numbers("Reserved", 45),) if is_reserved else ()),
        numbers("Admitted", 40),
        numbers("Pending"),
        Column("Waits for", Kind.TEXT, 90),
    )
    names = _resource_names((usage for queue in queues for usage in queue.usage), look)
    depth: dict[str, int] = {}
    for queue in queues:
        depth[queue.name] = depth.get(queue.parent, -1) + 1 if queue.parent else 0
        name = shown("  " * depth[queue.name] + queue.name, 70, "bold" if not queue.parent else "")
        waits = ", ".join(f"{kind} {count}" for kind, count in sorted(queue.waiting.items()))
        counts = [number(queue.admitted), number(queue.pending, "bold yellow"), shown(waits, 120, "dim")]
        for first, usage in enumerate(queue.usage or [None]):
            amounts = _usage_cells(usage, names) if usage is not None else [Text()] * 6
            reserved = _amount(usage.resource, usage.reserved) if usage is not None else Text()
            own = (name if not first else Text(), *amounts, *([reserved] if is_reserved else []))
            table.add_row(*own, *(counts if not first else []))
    return table


def _complaints(queues: Iterable[QueueView]) -> Iterable[Text]:
    for queue in queues:
        if queue.stopped:
            yield shown(f"{queue.name}: admits nothing: {queue.stopped}", 400, "bold red")
        elif queue.problems:
            yield shown(f"{queue.name}: {queue.problems[0]}", 400, "red")


def _wrong(stopped: str, problems: Iterable[str]) -> Iterable[Text]:
    if stopped:
        yield shown(f"admits nothing: {stopped}", 400, "bold red")
    yield from (shown(problem, 400, "red") for problem in problems)


def _late(queue: QueueView, who: str = "") -> Iterable[Text]:
    """How much of what is charged does not run, where that is more than comes and goes."""
    is_behind = queue.behind_s >= _BEHIND_S
    for usage in queue.usage:
        least = usage.used // (10 if is_behind else 4)
        if usage.not_running > least:
            idle, used = (format_amount(usage.resource, n) for n in (usage.not_running, usage.used))
            amounts = f"{idle} of {used} {usage.resource} charged (flavor {usage.flavor})"
            behind = f" (Karmada is {queue.behind_s} s behind)" if is_behind else ""
            yield shown(f"{who}{amounts} are not running{behind}", 200, "yellow")


def _usage_table(usages: Sequence[Usage], look: Look) -> Grid:
    is_reserved = any(usage.reserved for usage in usages)
    table = grid(
        Column("Flavor"),
        Column("Resource", drop=10),
        _BAR_COLUMN,
        numbers("Used"),
        numbers("Nominal"),
        numbers("Can take", 20),
        *((numbers("Reserved", 25),) if is_reserved else ()),
        numbers("Borrowed", 30),
        numbers("May borrow", 50),
        numbers("Lends", 60),
    )
    names = _resource_names(usages, look)
    for usage in usages:
        table.add_row(
            *_usage_cells(usage, names),
            *((_amount(usage.resource, usage.reserved),) if is_reserved else ()),
            _amount(usage.resource, usage.borrowed),
            _limit(usage.resource, usage.borrowing_limit),
            _limit(usage.resource, usage.lending_limit),
        )
    return table


def _usage_cells(usage: Usage, names: dict[str, str]) -> list[Text]:
    return [
        shown(usage.flavor, 40),
        shown(names[usage.resource], 60),
        bar(usage.used, usage.nominal),
        _amount(usage.resource, usage.used),
        _amount(usage.resource, usage.nominal),
        _amount(usage.resource, usage.available),
    ]


def _resource_names(usages: Iterable[Usage], look: Look) -> dict[str, str]:
    """``gpu`` for ``nvidia.com/gpu``, unless two resources would be called the same."""
    names = {usage.resource for usage in usages}
    alike = Counter(short_key(name) for name in names)
    return {name: name if look.wide or alike[short_key(name)] > 1 else short_key(name) for name in names}


def _line(
    workloads: Sequence[WorkloadView], look: Look, pending: int, others: int = 0
) -> list[RenderableType]:
    if not pending:
        return [Text(), Text("Nothing waits.")]
    return [Text(), *_workloads(workloads, look, pending, others)]


def _workloads(
    workloads: Sequence[WorkloadView], look: Look, pending: int, others: int = 0
) -> list[RenderableType]:
    """What the first waits for, what is reserved for whom, the table, and how many it leaves out."""
    told = workloads[: look.most]
    parts: list[RenderableType] = []
    if told and told[0].waiting is not None and not look.wide:
        head = told[0].waiting
        parts.append(shown(f"{told[0].name}: {head.kind}: {head.text}", 400, "dim"))
    if not look.wide:
        held = ((each.name, each.reservation.text) for each in told if each.reservation is not None)
        parts += [shown(f"{name}: {text}", 500, "dim") for name, text in islice(held, _FEW)]
    if told:
        parts.append(_table(told, look))
    hidden = pending - others - len(told)
    if hidden > 0:
        parts.append(Text(f"and {counted(hidden, 'more workload')} (--limit)", style="dim"))
    if others:
        parts.append(Text(f"and {counted(others, 'workload')} of other namespaces", style="dim"))
    return parts


def _table(workloads: Sequence[WorkloadView], look: Look) -> Grid:
    """A line for each, or for several that are alike and next to each other; the wide form has a line for
    each of them, more columns, and the whole reason.
    """
    wide = look.wide
    table = grid(
        numbers("Pos"),
        Column("Namespace", drop=30),
        Column("Name"),
        Column("Kind", drop=60),
        Column("Class", drop=50),
        *((numbers("Priority"), Column("Since")) if wide else ()),
        Column("Asks for", drop=5),
        numbers("Age", 10),
        Column("Waits for"),
    )
    for each, alike in _runs(workloads, of_one=wide):
        first = each.position_in_cluster_queue
        table.add_row(
            number(first) if alike == 1 or not first else Text(f"{first}-{first + alike - 1}"),
            shown(each.namespace, 40),
            shown(each.name if alike == 1 else f"{each.name} x{alike}", 60),
            shown(each.kind, 40),
            shown(each.service_class or "-", 30),
            *((number(each.priority), shown(each.enqueued_at or "-")) if wide else ()),
            shown(_request(each.request) if wide else _devices(each.request), 200),
            since(each.enqueued_at, look.now),
            shown(_waits(each, wide=wide), 900),
        )
    return table


def _waits(each: WorkloadView, *, wide: bool) -> str:
    """For what it waits in a word, and whether it holds a reservation; ``wide``: both in sentences."""
    waits, held = each.waiting, each.reservation
    reason = waits.kind if waits else each.state
    if not wide:
        return reason if held is None else f"{held.stage}, {reason}"
    told = f"{reason}: {waits.text}" if waits else reason
    return told if held is None else f"{told}; {held.stage}: {held.text}"


def _runs(workloads: Sequence[WorkloadView], *, of_one: bool) -> Iterable[tuple[WorkloadView, int]]:
    """The first of each run of workloads that differ in nothing but name and age, and how many they are."""
    for _, run in groupby(workloads, key=_differing):
        found = list(run)
        if of_one or len(found) < _FEW:
            yield from ((each, 1) for each in found)
        else:
            yield found[0], len(found)


def _differing(each: WorkloadView) -> tuple[object, ...]:
    waits = each.waiting
    why = (waits.kind, waits.text) if waits else (each.state, "")
    request = tuple(sorted(each.request.items()))
    held = each.reservation.text if each.reservation is not None else ""
    return each.namespace, each.kind, each.service_class, each.priority, request, why, held, each.note


def _kept_back(queues: QueueList) -> list[RenderableType]:
    """How much there is that the reader may not see."""
    told = []
    if queues.other_queues:
        told.append(f"{counted(queues.other_queues, 'queue')} of other namespaces only")
    if queues.other_unresolved:
        told.append(f"{counted(queues.other_unresolved, 'workload')} of other namespaces without a queue")
    if queues.unreviewed_namespaces:
        told.append(
            f"{counted(queues.unreviewed_namespaces, 'namespace')} not looked at: name yours with --namespace"
        )
    return [Text(), *(Text(line, style="dim") for line in told)] if told else []


def _facts(workload: WorkloadView, look: Look) -> Iterable[tuple[str, str]]:
    if workload.local_queue or workload.cluster_queue:
        yield "queue", f"{workload.local_queue or '-'} of ClusterQueue {workload.cluster_queue or '-'}"
    if workload.position_in_cluster_queue:
        yield (
            "position",
            f"{workload.position_in_cluster_queue} in the ClusterQueue, "
            f"{workload.position_in_local_queue} in the LocalQueue"
            + (
                f"; {counted(workload.others_before, 'workload')} of other namespaces before it"
                if workload.others_before
                else ""
            ),
        )
    yield (
        "priority",
        f"{workload.priority}" + (f" (class {workload.service_class})" * bool(workload.service_class)),
    )
    if workload.request:
        yield "request", _request(workload.request)
    if workload.eta is not None:
        yield "eta", workload.eta.text
    for name, value in (("since", workload.enqueued_at), ("admitted", workload.admitted_at)):
        if value:
            yield name, f"{value} ({since(value, look.now)} ago)"
    if workload.flavors:
        yield "flavors", ", ".join(f"{key} from {value}" for key, value in sorted(workload.flavors.items()))
    if workload.clusters:
        yield "clusters", ", ".join(f"{key}: {value}" for key, value in sorted(workload.clusters.items()))
    yield from start_facts(workload)
    if workload.waiting is not None:
        yield "waits", f"{workload.waiting.kind}: {workload.waiting.text}"
        if workload.waiting.unblock:
            yield "until", workload.waiting.unblock
    yield from reservation_facts(workload.reservation)
    if workload.note:
        yield "note", workload.note


def _request(request: dict[str, int]) -> str:
    return (
        ", ".join(f"{format_amount(name, amount)} {name}" for name, amount in sorted(request.items())) or "-"
    )


def _devices(request: dict[str, int]) -> str:
    """``8 gpu``: what it asks for of devices, else of all."""
    devices = {short_key(name): amount for name, amount in request.items() if is_extended(name)}
    return _request(devices or request)


def _amount(resource: str, amount: int) -> Text:
    return Text(format_amount(resource, amount), style="" if amount else "dim")


def _limit(resource: str, limit: int) -> Text:
    return Text("any", style="dim") if limit == _NO_LIMIT else _amount(resource, limit)
