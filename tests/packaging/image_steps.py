"""``python -m tests.packaging.image_steps FOLDER``: the build steps of the Dockerfile, run in a folder.

Where no engine builds images this shows that the recipe works: the ``RUN`` steps of the build stage, in
order, in a copy of what the build would see, with ``/opt/fairway`` in the folder; then each program is asked
for help.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_SUBSHELL = "set -eu; "
_PYTHON = re.compile(r"(?<![/\w])python(?= -m)")


def main(folder: Path) -> int:
    """Run them; 0 when all programs answered."""
    context, target = folder / "src", folder / "opt" / "fairway"
    shutil.rmtree(folder, ignore_errors=True)
    for name in re.findall(r"^!(\S+)$", (_ROOT / ".dockerignore").read_text(), re.MULTILINE):
        source, copy = _ROOT / name, context / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    for step in _steps():
        moved = _PYTHON.sub(sys.executable, step).replace("/opt/fairway", str(target))
        print(f"$ {moved}", flush=True)
        subprocess.run(["sh", "-c", _SUBSHELL + moved], cwd=context, check=True)
    for program in sorted((target / "bin").glob("*fairway*")) + sorted((target / "bin").glob("karmada-*")):
        subprocess.run([program, "--help"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        print(f"{program.name} --help: ok")
    size = subprocess.run(["du", "-sm", target], check=True, capture_output=True, text=True).stdout.split()[0]
    print(f"{size} MiB beside Python itself")
    return 0


def _steps() -> list[str]:
    """The shell commands of the build stage."""
    text = (_ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    build = text.split(" AS build\n", 1)[1].split("\nFROM ", 1)[0]
    return re.findall(r"^RUN (.+)$", build, re.MULTILINE)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
