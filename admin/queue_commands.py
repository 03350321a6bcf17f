"""``fairway queues``, ``queue`` and ``pending``: what is admitted, who waits, where in the line and why."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from admin.cli import Failed, Unknown, WholeNumber, write
from admin.exits import Exit

if TYPE_CHECKING:
    from rich.console import RenderableType

    from admin.dispatcher import Connection, Dispatcher
    from admin.terminal.queues import Look
    from fairway.visibility import WorkloadView

Command = Callable[..., None]
T = TypeVar("T")

_FOR_PEOPLE = ("table", "wide")
_EXIT_CODES = """\b
Exit codes: 0 done; 1 bad usage, or the dispatcher could not be asked"""
_WAITING_STATES = ("Held", "Pending", "Growing")
_APART_STATES = ("Foreign", "NotGated")


def _asking(command: Command) -> Command:
    """The options that all commands share; the command gets ``dispatcher``, ``output`` and ``watch``."""

    @wraps(command)
    def call(
        dispatcher_url: str,
        ca_file: Path | None,
        token_file: Path | None,
        kubeconfig: Path | None,
        kube_context: str,
        **rest: object,
    ) -> None:
        from admin.dispatcher import Dispatcher
        from admin.tokens import Bearer

        bearer = Bearer(token_file, kubeconfig, kube_context)
        command(dispatcher=Dispatcher(dispatcher_url, ca_file, bearer), **rest)

    for decorate in reversed(
        (
            click.option(
                "--dispatcher",
                "dispatcher_url",
                envvar="FAIRWAY_DISPATCHER",
                default="http://127.0.0.1:8082",
                show_default=True,
                metavar="URL",
                help="Where the dispatcher's visibility API is; also $FAIRWAY_DISPATCHER.",
            ),
            click.option(
                "--ca-file", type=click.Path(path_type=Path), help="CA of its certificate, for https."
            ),
            click.option(
                "--kubeconfig",
                type=click.Path(path_type=Path),
                help="Kubeconfig of Karmada's API server, whose user's token is sent. Default: kubectl's.",
            ),
            click.option(
                "--context", "kube_context", default="", help="Its context. Default: the current one."
            ),
            click.option(
                "--token-file",
                type=click.Path(path_type=Path),
                help="File with the token to send instead; read anew for each question.",
            ),
            click.option(
                "-o",
                "--output",
                type=click.Choice(("table", "wide", "json", "yaml")),
                default="table",
                help="What to print; wide has every word, on lines of any length. Default: table.",
            ),
            click.option(
                "-w",
                "--watch",
                is_flag=True,
                help="Show it anew every second, until Ctrl-C; off a terminal, and as JSON (one document a "
                "line) or YAML, whenever it has changed.",
            ),
        )
    ):
        call = decorate(call)
    return call


_NAMESPACES = click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    help="Only what is in this namespace; may be repeated. Default: all that you may see.",
)
_LIMIT = click.option(
    "--limit",
    type=WholeNumber(1, 1000),
    default=20,
    show_default=True,
    help="Workloads to show of each queue, from the head of the line.",
)


@click.command(
    short_help="All queues: quota, usage, who waits.",
    epilog=f"""\b
Examples:
  fairway queues
  fairway queues --watch
  fairway queues -o json | jq '.queues[] | {{name, pending}}'

{_EXIT_CODES}
""",
)
@_NAMESPACES
@_asking
def queues(dispatcher: "Dispatcher", namespaces: tuple[str, ...], output: str, watch: bool) -> None:
    """Show the tree of ClusterQueues: usage bars by flavor and resource, and how many wait for what."""
    from admin.terminal.queues import MOST, queue_tables

    dispatcher = replace(dispatcher, namespaces=namespaces)
    _show(dispatcher, lambda connection: connection.queues(), queue_tables, output, watch, MOST)


@click.command(
    short_help="One queue and the line before it.",
    epilog=f"""\b
Examples:
  fairway queue research
  fairway queue team-a/default      a LocalQueue: NAMESPACE/NAME
  fairway queue research --watch --limit 50

{_EXIT_CODES}
""",
)
@click.argument("name")
@_NAMESPACES
@_LIMIT
@_asking
def queue(
    dispatcher: "Dispatcher", name: str, namespaces: tuple[str, ...], limit: int, output: str, watch: bool
) -> None:
    """Show a ClusterQueue, or a LocalQueue as NAMESPACE/NAME: quota, limits, and the workloads that wait."""
    from admin.terminal.queues import local_queue_page, queue_page

    dispatcher = replace(dispatcher, namespaces=namespaces)
    namespace, slash, local = name.partition("/")
    if not namespace or "/" in local or (slash and not local):
        raise Failed(f"queue {name!r}: expected NAME or NAMESPACE/NAME")
    if slash:
        _show(
            dispatcher,
            lambda connection: connection.local_queue(namespace, local, limit),
            local_queue_page,
            output,
            watch,
            limit,
        )
    else:
        _show(dispatcher, lambda connection: connection.queue(name, limit), queue_page, output, watch, limit)


@click.command(
    short_help="What waits, and why.",
    epilog=f"""\b
Examples:
  fairway pending
  fairway pending -n team-a train-llm
  fairway pending -n team-a -o wide     each with the whole reason

{_EXIT_CODES};
3 the workload waits; 4 it is in no queue: not there, without a binding, or left alone by Fairway. So 0 means
that it has been released.
""",
)
@click.argument("workload", required=False)
@click.option(
    "-n",
    "--namespace",
    default="default",
    help="Namespace of WORKLOAD, else default. Without WORKLOAD: only what waits there, else everywhere.",
)
@_LIMIT
@_asking
@click.pass_context
def pending(
    context: click.Context,
    dispatcher: "Dispatcher",
    workload: str | None,
    namespace: str,
    limit: int,
    output: str,
    watch: bool,
) -> None:
    """Show everything that waits, or one workload: its place in the line, why, and what would end that."""
    import msgspec

    from admin.absence import why_absent
    from admin.dispatcher import NoSuch, pending_queues
    from admin.terminal.queues import pending_tables, workload_pages
    from fairway.visibility import QueueList, WorkloadList

    if workload is not None:
        name = workload

        async def ask(connection: "Connection") -> WorkloadList:
            found = await connection.workloads(namespace, name)
            if not found.workloads and watch and output in _FOR_PEOPLE:
                raise NoSuch(_unknown(namespace, name, found.namespaces, dispatcher.url))
            return found

        found = _show(dispatcher, ask, lambda list, look: workload_pages(list.workloads, look), output, watch)
        if not found.workloads:
            unknown = _unknown(namespace, name, found.namespaces, dispatcher.url)
            kubeconfig, kube_context = dispatcher.kubeconfig
            why = asyncio.run(why_absent(kubeconfig, kube_context, namespace, name))
            raise Unknown(f"{unknown}; {why}" if why else unknown)
        context.exit(_exit_of(found.workloads))

    if context.get_parameter_source("namespace") is not ParameterSource.DEFAULT:
        dispatcher = replace(dispatcher, namespaces=(namespace,))

    async def all_pending(connection: "Connection") -> QueueList:
        every = await connection.queues()
        return msgspec.structs.replace(every, queues=await pending_queues(connection, every, limit))

    _show(dispatcher, all_pending, pending_tables, output, watch, limit)


def _exit_of(workloads: "Sequence[WorkloadView]") -> Exit:
    states = {each.state for each in workloads}
    if not states.isdisjoint(_WAITING_STATES):
        return Exit.NOWHERE
    return Exit.UNKNOWN if states.issubset(_APART_STATES) else Exit.OK


def _unknown(namespace: str, name: str, elsewhere: "Sequence[str]", url: str) -> str:
    there = (
        f"there is one in {', '.join(elsewhere)} (-n)"
        if elsewhere
        else "there is none in any other namespace that you may see"
    )
    return (
        f"no workload {name!r} in namespace {namespace}: the dispatcher at {url} neither holds one of that "
        f"name nor has released one; {there}"
    )


def _show(
    dispatcher: "Dispatcher",
    ask: "Callable[[Connection], Awaitable[T]]",
    draw: "Callable[[T, Look], RenderableType]",
    output: str,
    watch: bool,
    most: int = 1,
) -> T:
    """Ask and print, once or until interrupted; the last answer. Raises Failed.

    ``most``: workloads of each queue that an answer may hold.
    """
    from admin.dispatcher import DispatcherError
    from admin.terminal.console import output as standard_output
    from admin.terminal.queues import Look
    from admin.watching import shown_live, told_again

    def drawn(answer: T, most: int) -> "RenderableType":
        return draw(answer, Look(datetime.now(UTC), output == "wide", most, dispatcher.namespaces))

    def printed(answer: T) -> str:
        return _printed(answer, drawn(answer, most), output, lines=watch)

    async def once() -> T:
        async with dispatcher.connected() as connection:
            if not watch:
                return await ask(connection)
            console = standard_output()
            if output == "table" and console.file.isatty():
                return await shown_live(lambda: ask(connection), drawn, most, console=console)
            return await told_again(lambda: ask(connection), printed, _say, _complain)

    try:
        answer = asyncio.run(once())
    except DispatcherError as error:
        raise Failed(str(error)) from None
    text = "" if watch else printed(answer)
    if text.strip():
        _say(text)
    return answer


def _say(text: str) -> None:
    write(text, None)


def _complain(text: str) -> None:
    click.echo(text, err=True)


def _printed(answer: T, drawn: "RenderableType", output: str, *, lines: bool) -> str:
    """``lines``: one after the other, each to be told from the next."""
    import msgspec

    from admin.terminal.console import rendered
    from admin.yaml_text import yaml_text

    match output:
        case "json":
            made = msgspec.json.encode(answer)
            return (made if lines else msgspec.json.format(made, indent=2)).decode() + "\n"
        case "yaml":
            return "---\n" * lines + yaml_text(answer)
        case _:
            return rendered(drawn, to_terminal=True, wide=output == "wide") + "\n" * lines
