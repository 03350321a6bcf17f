"""Plans, steps and what is left, for people, for scripts, and as manifests to apply otherwise."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from admin.install.installing import Done
from admin.install.performing import Change, Verdict
from admin.install.removing import Removed
from admin.install.step import Apply, CopyCertificates, IssueKubeconfig, Protect, Remove, Replace, Step
from admin.install.uninstalling import Gone
from admin.printable import counted
from admin.terminal.console import shown
from admin.yaml_text import yaml_text

_MARKS: Final = {Verdict.CREATE: "+ ", Verdict.CHANGE: "~ ", Verdict.KEEP: "  ", Verdict.REMOVE: "- "}
_STYLES: Final = {
    Verdict.CREATE: "green",
    Verdict.CHANGE: "yellow",
    Verdict.KEEP: "dim",
    Verdict.REMOVE: "red",
}
_MOST: Final = 400


def step_line(done: Done) -> RenderableType:
    """One step that is done, in a line, and what it found in its way."""
    changed = [each for each in done.changes if each.verdict is not Verdict.KEEP]
    line = Text(f"{done.step.plane:10} {done.step.name:24} ", style="bold")
    line.append(_count(done.changes, is_done=True), style="" if changed else "dim")
    notes = [_note(each) for each in done.changes if each.note]
    return Group(line, *notes) if notes else line


def plan_text(done: Sequence[Done], notes: Iterable[str]) -> RenderableType:
    """What is worth knowing, then every step with what it would change, how it is checked and undone."""
    parts = notes_text(notes)
    for number, each in enumerate(done, 1):
        parts += _step_text(number, each)
    changes = [change for each in done for change in each.changes]
    parts.append(Text(f"{counted(len(done), 'step')}: {_count(changes)}", style="bold"))
    return Group(*parts)


def ending(done: Sequence[Done], notes: Iterable[str]) -> RenderableType:
    """What a whole installation came to, and what to do next."""
    changes = [change for each in done for change in each.changes]
    is_new = any(each.verdict is not Verdict.KEEP for each in changes)
    told = f"done: {_count(changes, is_done=True)}" if is_new else "nothing to change: all is as it should be"
    return Group(Text(told, style="bold"), *notes_text(notes))


def notes_text(notes: Iterable[str]) -> list[RenderableType]:
    """What is worth knowing."""
    return [Text("note: ", style="yellow").append_text(shown(note, _MOST)) for note in notes]


def removed_text(removed: Removed) -> Text:
    """An object that is gone."""
    return Text(f"{removed.plane:10} - {removed.object}")


def gone_text(gone: Gone, *, dry_run: bool) -> RenderableType:
    """What became of the held workloads and the estimators, and what is left."""
    given = gone.given_back
    word = "would be " if dry_run else ""
    parts: list[RenderableType] = [
        Text(f"{counted(len(given.released), 'held binding')} {word}given back to Karmada", style="bold")
    ]
    if given.cleared:
        parts.append(Text(f"records {word}removed from {counted(given.cleared, 'other binding')}"))
    parts += [Text(f"{word}given back: {name}") for name in gone.estimators]
    parts += [Text("left: ", style="yellow").append_text(shown(left, _MOST)) for left in gone.left]
    return Group(*parts)


def plan_document(done: Iterable[Done], notes: Iterable[str]) -> dict[str, object]:
    """The same as `plan_text`, for scripts."""
    return {"steps": [_step_document(each) for each in done], "notes": list(notes)}


def gone_document(gone: Gone, removed: Iterable[Removed]) -> dict[str, object]:
    """What an uninstallation did, for scripts."""
    return {
        "removed": [{"plane": each.plane, "object": each.object} for each in removed],
        "givenBack": gone.given_back.released,
        "recordsRemoved": gone.given_back.cleared,
        "estimators": list(gone.estimators),
        "left": list(gone.left),
    }


def manifests_text(steps: Iterable[Step]) -> str:
    """All manifests, step by step, each under the API server that it is for; credentials are described."""
    return "".join(_manifests_of(steps))


def _manifests_of(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        yield f"# {step.plane}: {step.name}: {step.does}\n"
        for action in step.actions:
            match action:
                case Apply():
                    yield _yaml(action.manifest.body)
                case Protect():
                    yield f"# Over the pods of {action.deployment}, by the selector that it really has.\n"
                    yield _yaml(action.manifest.body)
                case Remove():
                    yield f"# {action.manifest}: deleted, where it is there\n"
                case Replace():
                    yield "# In the place of the one that is there, if there is one.\n"
                    yield _yaml(action.manifest.body)
                case IssueKubeconfig():
                    yield f"# {action.manifest}: {action.entry}: a kubeconfig for {action.server}, with the\n"
                    yield f"#   token in {action.token} on {action.plane}\n"
                case CopyCertificates():
                    yield f"# {action.manifest}: filled with {', '.join(action.files.entries)}\n"
                    yield f"#   of {action.source}\n"


def _yaml(body: object) -> str:
    return f"---\n{yaml_text(body)}"


def _step_text(number: int, done: Done) -> Iterator[RenderableType]:
    step = done.step
    title = Text(f"{number:2} {step.plane:10} {step.name}", style="bold")
    yield title.append(f"  {step.does}", style="not bold")
    for change in done.changes:
        yield from _change_text(change)
    yield Text(f"   done when: {step.checked}", style="dim")
    yield Text(f"   undone: {step.undone}", style="dim")


def _change_text(change: Change) -> Iterator[RenderableType]:
    line = Text(f"   {_MARKS[change.verdict]}{change.manifest}", style=_STYLES[change.verdict])
    if change.note:
        line.append(f"  ({change.note})", style="dim")
    yield line
    for each in change.differences:
        yield Text("       ").append_text(
            shown(f"{each.field}: {each.before or 'nothing'} -> {each.after or 'nothing'}", _MOST)
        )


def _note(change: Change) -> Text:
    return Text(f"           {change.manifest}: {change.note}", style="dim")


def _count(changes: Sequence[Change], *, is_done: bool = False) -> str:
    created = sum(each.verdict is Verdict.CREATE for each in changes)
    changed = sum(each.verdict is Verdict.CHANGE for each in changes)
    removed = sum(each.verdict is Verdict.REMOVE for each in changes)
    if not created and not changed and not removed:
        return "nothing to change"
    kept = len(changes) - created - changed - removed
    words = ("created", "changed", "removed") if is_done else ("to create", "to change", "to remove")
    told = [f"{created} {words[0]}", f"{changed} {words[1]}", f"{kept} as they should be"]
    return ", ".join([*told[:2], *([f"{removed} {words[2]}"] if removed else []), told[2]])


def _step_document(done: Done) -> dict[str, object]:
    step = done.step
    return {
        "name": step.name,
        "plane": step.plane,
        "does": step.does,
        "checked": step.checked,
        "undone": step.undone,
        "objects": [
            {
                "object": str(each.manifest),
                "verdict": str(each.verdict),
                "note": each.note,
                "differences": [msgspec.to_builtins(difference) for difference in each.differences],
            }
            for each in done.changes
        ],
    }
