"""Write the openb trace as dumps of member clusters: ``python -m benchmarks.openb --out DIR``.

One file for each GPU model (g2.json, t4.json, ...) and one for the nodes without GPUs (cpu.json), as
``kubectl get nodes,pods -A -o json`` would write them. The same arguments give the same bytes.
"""

import argparse
import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.openb.hami import HAMI
from benchmarks.openb.kai import KAI
from benchmarks.openb.members import arriving, dump, members
from benchmarks.openb.placement import Placement, place
from benchmarks.openb.schemes import WHOLE
from benchmarks.openb.trace import TraceError, read_machines, read_tasks, trace_folder

SCHEMES = {sharing.name: sharing for sharing in (HAMI, KAI, WHOLE)}

_EXAMPLES = """examples:
  python -m benchmarks.openb --out dumps
  python -m benchmarks.openb --out dumps --load 90 --scheme kai --gzip
  python -m benchmarks.openb --out dumps --load 60 --pods gpuspec33 --seed 7
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Convert. 0, or 2 when a file cannot be read or written, or an argument is wrong."""
    options = _options(sys.argv[1:] if argv is None else argv)
    sharing = SCHEMES[options.scheme]
    try:
        _say(f"reading {options.data}")
        machines = read_machines(options.data)
        tasks = arriving(read_tasks(options.data, options.pods), sharing)
        _say(f"placing {len(tasks):,} tasks on {len(machines):,} nodes up to {options.load} % of the GPUs")
        placement = place(machines, tasks, options.load, options.seed)
        _say(_outcome(placement, options.load))
        options.out.mkdir(parents=True, exist_ok=True)
        for member in members(placement):
            data = dump(member, sharing)
            file = options.out / f"{member.name}.json{'.gz' if options.gzip else ''}"
            file.write_bytes(gzip.compress(data, mtime=0) if options.gzip else data)
            _say(f"{file}: {member}")
    except TraceError as error:
        _say(str(error))
        return 2
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}; --out needs a folder that can be written to")
        return 2
    return 0


def _outcome(placement: Placement, load: int) -> str:
    total = placement.total_milli
    reached = 100 * placement.allocated_milli / total if total else 0.0
    text = f"placed {len(placement.bound):,} pods, {reached:.1f} % of {total // 1000:,} GPUs"
    if placement.left_out:
        text += f"; {placement.left_out:,} tasks found no place"
    if placement.allocated_milli * 100 < load * total:
        text += f"; no more fit, so {load} % is not reached"
    return text


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.openb",
        description="write the openb trace as dumps of member clusters, one for each GPU model",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the dumps; files in it are replaced"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=trace_folder(),
        help="folder of the trace's CSV files (default %(default)s)",
    )
    parser.add_argument(
        "--load", type=_percent, default=60, help="percent of all GPUs that pods take (default 60)"
    )
    parser.add_argument(
        "--scheme", choices=SCHEMES, default="hami", help="how GPUs are shared (default hami)"
    )
    parser.add_argument(
        "--pods", default="default", help="which pod list: default, gpuspec33, multigpu50, ..."
    )
    parser.add_argument("--seed", type=int, help="place at random with this seed instead of by best fit")
    parser.add_argument("--gzip", action="store_true", help="compress the dumps")
    return parser.parse_args(argv)


def _percent(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 100):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 100, found {text[:20]!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
