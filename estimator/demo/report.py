"""What the demonstration shows: questions, answers and reasons, and what to try next."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from estimator.demo.asking import Reply
from estimator.demo.questions import Question
from fairway.names import DUMPED

_PLAIN_WIDTH = 120
_SHOWN_REASONS = 3
_MEANINGS = {
    "MaxAvailableReplicas": "how many more such pods fit, and why not more",
    "MaxAvailableComponentSets": "how many whole sets fit, and why not more",
    "GetUnschedulableReplicas": "how many pods of a workload have had no node for over 5 minutes",
}


def next_steps(python: str) -> str:
    """What to do after the demonstration; ``python`` is the interpreter to run."""
    return f"""\
Try it on a cluster of your own; nothing but this dump is read. Where Fairway's node agent runs,
add nodedevices to the list:

  kubectl get {DUMPED} -A -o json > member1.json
  {python} -m estimator --snapshot member1=member1.json

or on a live cluster, in place of karmada-scheduler-estimator, with the same flags:

  {python} -m estimator --cluster-name member1 --kubeconfig member1.kubeconfig

docs/estimator.md tells what the answers mean, and how to let Karmada ask."""


def output() -> Console:
    """Standard output, at a fixed width where it is no terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def answers_by_rpc(answers: Iterable[tuple[Question, Mapping[str, Reply]]]) -> Group:
    """One section for each RPC, one block for each question, one row for each cluster."""
    parts: list[RenderableType] = []
    for rpc, of_rpc in groupby(answers, key=lambda answer: answer[0].rpc):
        parts += [Text(f"{rpc}: {_MEANINGS[rpc]}", style="bold"), ""]
        for question, replies in of_rpc:
            parts += [
                Padding(Text(question.title, style="bold cyan"), (0, 0, 0, 2), expand=False),
                _rows(replies),
                "",
            ]
    return Group(*parts)


def _rows(replies: Mapping[str, Reply]) -> Padding:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=8)
    table.add_column(width=4, justify="right")
    table.add_column()
    for cluster, reply in replies.items():
        style = "bold green" if reply.value > 0 else "bold"
        table.add_row(cluster, Text(str(reply.value), style=style), Text(_reasons(reply)))
    return Padding(table, (0, 0, 0, 4), expand=False)


def _reasons(reply: Reply) -> str:
    shown = "; ".join(reply.reasons[:_SHOWN_REASONS])
    left = len(reply.reasons) - _SHOWN_REASONS
    return f"{shown}; and {left} more" if left > 0 else shown
