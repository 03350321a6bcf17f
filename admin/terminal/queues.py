"""Queues and the workloads in them as tables; a bar shows how much of a queue's quota is in use."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from admin.printable import counted
from admin.terminal.console import grid, number, shown, title
from fairway.resources import format_amount
from fairway.visibility import LocalQueueView, QueueList, QueueView, Usage, WorkloadView

_BAR = 20
_SHOWN_WAITS = 60
_NO_LIMIT = -1


def queue_tables(queues: QueueList) -> Group:
    """All queues as a tree, each with its usage, and what waits without a queue."""
    parts: list[RenderableType] = []
    if not queues.is_leader:
        parts.append(shown("told by a replica that does not lead; it is a moment behind", style="dim"))
    parts.append(_tree(queues.queues))
    parts.append(
        shown(f"{queues.in_flight} of {queues.window} releases are being placed by Karmada", style="dim")
    )
    if queues.unresolved:
        heading = f"{counted(len(queues.unresolved), 'workload')} without a queue"
        parts += [Text(), title(heading), workload_table(queues.unresolved)]
    return Group(*parts, *_kept_back(queues))


def queue_page(queue: QueueView) -> Group:
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
    if queue.stopped:
        parts.append(shown(f"admits nothing: {queue.stopped}", 400, "bold red"))
    parts += [shown(problem, 400, "red") for problem in queue.problems]
    parts += [Text(), _usage_table(queue.usage)]
    return Group(*parts, *_line(queue.workloads, queue.pending, queue.other_pending))


def local_queue_page(queue: LocalQueueView) -> Group:
    """One LocalQueue and the line of what waits in it."""
    parts: list[RenderableType] = [title(f"LocalQueue {queue.namespace}/{queue.name}")]
    holds = f"{queue.admitted} admitted, {queue.pending} pending"
    parts.append(shown(f"of ClusterQueue {queue.cluster_queue or '-'}, {holds}", 200))
    if queue.stopped:
        parts.append(shown(f"admits nothing: {queue.stopped}", 400, "bold red"))
    parts += [shown(problem, 400, "red") for problem in queue.problems]
    return Group(*parts, *_line(queue.workloads, queue.pending))


def pending_tables(queues: QueueList) -> Group:
    """Everything that waits, queue by queue."""
    parts: list[RenderableType] = []
    for queue in queues.queues:
        parts += [title(f"{queue.name}: {queue.pending} pending"), *_reasons(queue)]
        parts += [*_workloads(queue.workloads, queue.pending, queue.other_pending), Text()]
    if queues.unresolved:
        parts += [title("without a queue"), workload_table(queues.unresolved)]
    return Group(*(parts or [Text("Nothing waits.")]), *_kept_back(queues))


def workload_pages(workloads: Iterable[WorkloadView]) -> Group:
    """Workloads one by one: where they stand, what they wait for, and what would end the wait."""
    parts: list[RenderableType] = []
    for workload in workloads:
        parts += [title(f"{workload.kind} {workload.namespace}/{workload.name}: {workload.state}")]
        table = grid("", "")
        for name, value in _facts(workload):
            table.add_row(Text(name, style="dim"), shown(value, 500))
        parts += [table, Text()]
    return Group(*parts)


def workload_table(workloads: Iterable[WorkloadView]) -> RenderableType:
    """A line for each workload."""
    table = grid("POS>", "NAMESPACE", "WORKLOAD", "CLASS", "PRIORITY>", "REQUEST", "SINCE", "WAITS FOR")
    for workload in workloads:
        waits = workload.waiting
        table.add_row(
            number(workload.position_in_cluster_queue),
            shown(workload.namespace, 40),
            shown(f"{workload.kind} {workload.name}", 60),
            shown(workload.service_class or "-", 30),
            number(workload.priority),
            shown(_request(workload.request), 60),
            shown(_moment(workload.enqueued_at)),
            shown(f"{waits.kind}: {waits.text}", _SHOWN_WAITS * 3) if waits else shown(workload.state),
        )
    return table


def bar(used: int, nominal: int) -> Text:
    """``[######....]``: used of nominal; what is borrowed beyond goes on as ``+``."""
    whole = max(nominal, 1)
    own = min(used, nominal) * _BAR // whole if nominal else 0
    text = Text("[")
    text.append("#" * own, style="green" if used < nominal else "yellow")
    text.append("." * (_BAR - own), style="dim")
    text.append("]")
    if used > nominal:
        beyond = min(_BAR, -(-(used - nominal) * _BAR // whole)) if nominal else _BAR // 2
        text.append("+" * max(1, beyond), style="magenta")
    return text


def _tree(queues: Sequence[QueueView]) -> RenderableType:
    table = grid(
        "QUEUE", "FLAVOR", "RESOURCE", "", "USED>", "NOMINAL>", "CAN TAKE>", "ADMITTED>", "PENDING>", ""
    )
    depth: dict[str, int] = {}
    for queue in queues:
        depth[queue.name] = depth.get(queue.parent, -1) + 1 if queue.parent else 0
        name = shown("  " * depth[queue.name] + queue.name, 70, "bold" if not queue.parent else "")
        notes = _notes(queue)
        for first, usage in enumerate(queue.usage or [None]):
            amounts = _usage_cells(usage) if usage is not None else [Text()] * 6
            counts = (
                [number(queue.admitted), number(queue.pending, "bold yellow")]
                if not first
                else [Text(), Text()]
            )
            table.add_row(name if not first else Text(), *amounts, *counts, notes if not first else Text())
    return table


def _notes(queue: QueueView) -> Text:
    if queue.stopped:
        return shown(f"admits nothing: {queue.stopped}", 120, "bold red")
    if queue.problems:
        return shown(queue.problems[0], 120, "red")
    return shown(", ".join(f"{kind} {count}" for kind, count in sorted(queue.waiting.items())), 120, "dim")


def _usage_table(usages: Iterable[Usage]) -> RenderableType:
    table = grid(
        "FLAVOR", "RESOURCE", "", "USED>", "NOMINAL>", "CAN TAKE>", "BORROWED>", "MAY BORROW>", "LENDS>"
    )
    for usage in usages:
        table.add_row(
            *_usage_cells(usage),
            _amount(usage.resource, usage.borrowed),
            _limit(usage.resource, usage.borrowing_limit),
            _limit(usage.resource, usage.lending_limit),
        )
    return table


def _usage_cells(usage: Usage) -> list[Text]:
    return [
        shown(usage.flavor, 40),
        shown(usage.resource, 60),
        bar(usage.used, usage.nominal),
        _amount(usage.resource, usage.used),
        _amount(usage.resource, usage.nominal),
        _amount(usage.resource, usage.available),
    ]


def _line(workloads: Sequence[WorkloadView], pending: int, others: int = 0) -> list[RenderableType]:
    if not pending:
        return [Text(), Text("Nothing waits.")]
    return [Text(), *_workloads(workloads, pending, others)]


def _workloads(workloads: Sequence[WorkloadView], pending: int, others: int) -> list[RenderableType]:
    """The table, and how many it leaves out."""
    parts = [workload_table(workloads)] if workloads else []
    hidden = pending - others - len(workloads)
    if hidden > 0:
        parts.append(Text(f"and {counted(hidden, 'more workload')} (--limit)", style="dim"))
    if others:
        parts.append(Text(f"and {counted(others, 'workload')} of other namespaces", style="dim"))
    return parts


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


def _reasons(queue: QueueView) -> list[RenderableType]:
    counts = sorted(queue.waiting.items(), key=lambda item: (-item[1], item[0]))
    return [shown(", ".join(f"{count} {kind}" for kind, count in counts), 200, "dim")] if counts else []


def _facts(workload: WorkloadView) -> Iterable[tuple[str, str]]:
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
    for name, value in (("since", workload.enqueued_at), ("admitted", workload.admitted_at)):
        if value:
            yield name, _moment(value)
    if workload.flavors:
        yield "flavors", ", ".join(f"{key} from {value}" for key, value in sorted(workload.flavors.items()))
    if workload.clusters:
        yield "clusters", ", ".join(f"{key}: {value}" for key, value in sorted(workload.clusters.items()))
    if workload.waiting is not None:
        yield "waits", f"{workload.waiting.kind}: {workload.waiting.text}"
        if workload.waiting.unblock:
            yield "until", workload.waiting.unblock
    if workload.note:
        yield "note", workload.note


def _request(request: dict[str, int]) -> str:
    return (
        " ".join(f"{format_amount(name, amount)} {name}" for name, amount in sorted(request.items())) or "-"
    )


def _amount(resource: str, amount: int) -> Text:
    return Text(format_amount(resource, amount), style="" if amount else "dim")


def _limit(resource: str, limit: int) -> Text:
    return Text("any", style="dim") if limit == _NO_LIMIT else _amount(resource, limit)


def _moment(iso: str) -> str:
    return f"{iso[:10]} {iso[11:19]}" if len(iso) >= 19 else iso or "-"
