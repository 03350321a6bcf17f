"""Do the laws of the simulation see defects? ``python -m tests.simulation.mutants --count 40``.

A mutant is one module with one small change: a comparison turned, a condition negated, a number off by one, a
statement left out. It is killed by the first seed that breaks a law which nothing breaks there without it.
The mutants are drawn from a seed, as many of each room, by what they change: an edit elsewhere draws no
others. `EQUIVALENT` says of which no law could tell.
"""

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib.util
import logging
import multiprocessing
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Final, TypeVar

from tests.simulation.equivalent import EQUIVALENT

ROOMS: Final = ("turn", "cycle", "ledger", "cache")
PEOPLE: Final = frozenset({"turn.following", "turn.notices", "cycle.reasons"})
"""Modules that only say in words what is known."""
_TOLD: Final = ("notices.append", "problems.append")
"""Calls that do likewise."""
_WORDS: Final = ("told", "shown", "_problem", "_passing_by")
"""Functions that do likewise."""
_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_MOST_CPU_S: Final = 60
"""Of one seed; it takes less than one without a mutant."""
_MOST_BYTES: Final = 4 << 30
_SMALL: Final = 2
"""Larger numbers are tuned, and one more of them is as good."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """The ``number``-th change of a module. ``place``: module and function. ``before``, ``after``: the
    statement, or its first line. ``again``: how many like it come before it.
    """

    module: str
    number: int
    place: str
    before: str
    after: str
    again: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is known by, wherever it stands."""
        return (self.place + (f" ({self.again + 1})" if self.again else ""), self.before, self.after)

    def __str__(self) -> str:
        place, before, after = self.key
        return f"{place}: {before}  ->  {after}"


N = TypeVar("N", bound=ast.AST)


class _Mutating(ast.NodeTransformer):
    """Makes one change, that with the number ``at``, and counts them all."""

    def __init__(self, at: int = -1, spans: dict[int, range] | None = None) -> None:
        self.count = 0
        self.spans: dict[int, range] = {}
        """By line of each function: which changes are within. What was found before saves looking there."""
        self._known = spans or {}
        self.place: list[str] = []
        self.before = ""
        self.changed: ast.stmt | None = None
        self._at = at
        self._statements: list[ast.stmt] = []
        self._names: list[str] = []
        self._is_class = False

    def _is_due(self) -> bool:
        self.count += 1
        if self.count - 1 != self._at:
            return False
        self.changed = self._statements[-1]
        self.before = _first_line(self.changed)
        self.place = list(self._names)
        return True

    def _changed(self, node: N) -> N:
        return self.visit(node)  # type: ignore[return-value]  # of the same kind it stays

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.stmt):
            return super().visit(node)  # type: ignore[no-any-return]  # as `NodeVisitor` has it
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and _is_told(node)):
            return node
        self._statements.append(node)
        found = super().visit(node)
        self._statements.pop()
        return found  # type: ignore[no-any-return]  # likewise

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for number, operator in enumerate(node.ops):
            if self._is_due():
                node.ops[number] = _COMPARISONS[type(operator)]()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._is_due():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return node.operand if isinstance(node.op, ast.Not | ast.USub) and self._is_due() else node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Compare | ast.UnaryOp) and self._is_due():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Compare | ast.UnaryOp) and self._is_due():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = {ast.Add: ast.Sub, ast.Sub: ast.Add}.get(type(node.op))
        if other is not None and self._is_due():
            node.op = other()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool):
            if self._is_due():
                return ast.copy_location(ast.Constant(not node.value), node)
        elif isinstance(node.value, int) and abs(node.value) <= _SMALL and self._is_due():
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        # What is sorted, and how strictly what is zipped is counted, decides nothing.
        for keyword in node.keywords:
            if keyword.arg not in ("key", "strict"):
                self.visit(keyword)
        node.args = [self._changed(one) for one in node.args]
        node.func = self._changed(node.func)
        name = node.func
        if isinstance(name, ast.Name) and name.id in ("min", "max", "any", "all") and self._is_due():
            other = {"min": "max", "max": "min", "any": "all", "all": "any"}[name.id]
            node.func = ast.copy_location(ast.Name(other, ast.Load()), name)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant | ast.Yield):
            return node
        return self._left_out(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        return self._left_out(node)

    def _left_out(self, node: ast.Expr | ast.AugAssign) -> ast.AST:
        if self._is_due():
            # The statement is there still, and does nothing.
            self.changed = ast.copy_location(ast.Pass(), node)
            return self.changed
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        # Not within annotations, nor what a field of a class begins with.
        if node.value is not None and not (self._names and self._is_class):
            node.value = self._changed(node.value)
        return node

    def _within(self, node: ast.ClassDef | ast.FunctionDef, *, is_class: bool) -> ast.AST:
        names, was_class = self._names, self._is_class
        self._names, self._is_class = [*names, node.name], is_class
        if node.name not in _WORDS:
            node.body = [self._changed(one) for one in node.body]
        self._names, self._is_class = names, was_class
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._within(node, is_class=True)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # Not the decorators, and not what arguments are by default.
        known = self._known.get(node.lineno)
        if known is not None and self._at not in known:
            self.count += len(known)
            return node
        begins = self.count
        found = self._within(node, is_class=False)
        self.spans[node.lineno] = range(begins, self.count)
        return found

    def visit_Module(self, node: ast.Module) -> ast.AST:
        # What stands in none of these are names and tuned numbers.
        kinds = ast.ClassDef | ast.FunctionDef
        node.body = [self._changed(one) if isinstance(one, kinds) else one for one in node.body]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        # What people read is told well or badly, not rightly or wrongly.
        return node


def _is_told(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith(_TOLD)


def _first_line(node: ast.stmt) -> str:
    alone = copy.copy(node)
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        if isinstance(getattr(alone, name, None), list):
            setattr(alone, name, [])
    return ast.unparse(alone).partition("\n")[0]


def mutants(module: str) -> list[Mutant]:
    """All that there are of a module."""
    source = _path(module).read_text()
    counting = _Mutating()
    counting.visit(ast.parse(source))
    found: list[Mutant] = []
    alike = Counter[tuple[str, str, str]]()
    for number in range(counting.count):
        changing = _Mutating(number, counting.spans)
        changing.visit(ast.parse(source))
        assert changing.changed is not None
        place = ".".join((module.partition(".")[2], *changing.place))
        what = (place, changing.before, _first_line(changing.changed))
        found.append(Mutant(module, number, *what, alike[what]))
        alike[what] += 1
    return found


def mutated(mutant: Mutant) -> ast.Module:
    """The module with its change."""
    tree = ast.parse(_path(mutant.module).read_text())
    _Mutating(mutant.number).visit(tree)
    return ast.fix_missing_locations(tree)


def modules(room: str) -> list[str]:
    """The modules of a room in which something is decided."""
    names = sorted(path.stem for path in (_ROOT / "queue_dispatcher" / room).glob("[a-z]*.py"))
    return [f"queue_dispatcher.{room}.{name}" for name in names if f"{room}.{name}" not in PEOPLE]


def drawn(count: int, seed: int) -> list[Mutant]:
    """Mutants, as many of each room, none of which is known to change nothing."""
    found: list[Mutant] = []
    for number, room in enumerate(ROOMS):
        every = [mutant for module in modules(room) for mutant in mutants(module)]
        left = [mutant for mutant in every if mutant.key not in EQUIVALENT]
        left.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())
        found += left[: (count + number) // len(ROOMS)]
    return found


def stale() -> set[tuple[str, str, str]]:
    """What `EQUIVALENT` tells of although it is no mutant any more."""
    names = {"queue_dispatcher." + ".".join(place.split(".")[:2]) for place, _, _ in EQUIVALENT}
    return EQUIVALENT.keys() - {mutant.key for name in names for mutant in mutants(name)}


_ROOT: Final = Path(__file__).parents[2]


def _path(module: str) -> Path:
    return _ROOT / f"{module.replace('.', '/')}.py"


class _Finder(MetaPathFinder, Loader):
    """Imports the mutant in the place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self._mutant.module else None

    def create_module(self, spec: ModuleSpec) -> None:
        """As ever."""

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(mutated(self._mutant), str(_path(self._mutant.module)), "exec"), module.__dict__)


class _TooLong(Exception):
    """It does not come to an end."""


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLong(f"more than {_MOST_CPU_S} s of one seed")


def _broken(seed: int) -> dict[str, str]:
    """The laws that the seed breaks, each with whom it is about and what is told."""
    from tests.simulation.draw import draw
    from tests.simulation.play import play

    signal.setitimer(signal.ITIMER_PROF, _MOST_CPU_S)
    try:
        return {one.law: str(one) for one in play(draw(seed)).broken}
    except _TooLong as error:
        return {"it comes to an end": str(error)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _began() -> None:
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


def killer(mutant: Mutant, seeds: int) -> str:
    """What kills the mutant, empty for nothing; in a process that has imported nothing of it."""
    sys.meta_path.insert(0, _Finder(mutant))
    with contextlib.redirect_stderr(None):
        for seed in range(seeds):
            try:
                broken = _broken(seed)
            except Exception as error:  # noqa: BLE001 - it cannot even be imported
                return f"{type(error).__name__}: {error}"
            if new := broken.keys() - (_broken_without(seed) if broken else set()):
                return f"seed {seed}: {broken[min(new)]}"
    return ""


def _broken_without(seed: int) -> set[str]:
    """The laws that the seed breaks without any mutant, found out in a process of its own."""
    command = [sys.executable, "-m", "tests.simulation.mutants", "--laws", str(seed)]
    told = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
    return set(told.stdout.splitlines())


def _judged(mutant: Mutant, seeds: int) -> tuple[Mutant, str]:
    return mutant, killer(mutant, seeds)


def judged(found: Sequence[Mutant], seeds: int, processes: int) -> Iterator[tuple[Mutant, str]]:
    """Each with what kills it, as it becomes known."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _began, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(partial(_judged, seeds=seeds), found)


def main() -> int:
    """The exit code: 1 if fewer than nine in ten are killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say which are drawn")
    parser.add_argument("--only", default="", help="those that are told with these words")
    parser.add_argument("--laws", type=int, help="only name the laws that this seed breaks without a mutant")
    arguments = parser.parse_args()
    if arguments.laws is not None:
        _began()
        print("\n".join(_broken(arguments.laws)))
        return 0
    found = [one for one in drawn(arguments.count, arguments.seed) if arguments.only in str(one)]
    if arguments.list:
        print("\n".join(map(str, found)))
        return 0
    living = 0
    for mutant, by in judged(found, arguments.seeds, arguments.processes):
        living += not by
        print(f"{'killed' if by else 'LIVES '} {mutant}: {by[:160]}", flush=True)
    print(f"{len(found) - living} of {len(found)} mutants killed by {arguments.seeds} seeds")
    return 1 if living * 10 > len(found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
