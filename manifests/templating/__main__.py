"""Writes the chart's templates; with ``--check`` only says which are not up to date, and then exits 1."""

import sys
from pathlib import Path
from typing import Final

from manifests.templating.host import host_files
from manifests.templating.notify import notify_files
from manifests.templating.planes import plane_files

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "chart/fairway/templates"
BY_HAND: Final = frozenset({"NOTES.txt", "checks.yaml"})


def templates(root: Path) -> dict[str, str]:
    """Every generated template by its file's name. Raises SourceError."""
    return {file.name: file.text for file in (*host_files(root), *plane_files(root), *notify_files(root))}


def outdated(root: Path) -> list[str]:
    """Names of templates that are missing, not up to date or no longer made. Raises SourceError."""
    made, folder = templates(root), root / FOLDER
    present = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name not in BY_HAND}
    return sorted(name for name in made.keys() | present.keys() if made.get(name) != present.get(name))


def write(root: Path) -> None:
    """Bring all templates up to date. Raises SourceError."""
    made = templates(root)
    for name in outdated(root):
        file = root / FOLDER / name
        if name in made:
            file.write_text(made[name], "utf-8")
        else:
            file.unlink()


def main(arguments: list[str]) -> int:
    """Do what the arguments say; the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"{' '.join(arguments)}: expected --check or nothing\n")
        return 2
    if not arguments:
        write(ROOT)
        return 0
    for name in (stale := outdated(ROOT)):
        sys.stderr.write(f"manifests/{FOLDER}/{name}: not up to date: run 'make manifests'\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
