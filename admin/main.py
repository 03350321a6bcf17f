"""The command ``fairway``: capacity reports, reasons and what-if questions over any number of clusters.

Commands import what they need when they run, so that ``--help`` and completion answer at once.
"""

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence

import click

from admin.cli import Unknown
from admin.completion_command import completion
from admin.doctor_command import doctor
from admin.exits import Exit
from admin.explain_command import explain
from admin.hours_command import hours
from admin.install_command import install
from admin.notify_command import notify
from admin.queue_commands import pending, queue, queues
from admin.report_command import report
from admin.top_command import top
from admin.uninstall_command import uninstall
from admin.what_if_command import what_if
from fairway.service.lifecycle import GC_THRESHOLDS
from fairway.service.version import release

_INTERRUPTED = 130
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""What writing to standard output fails with; a broken pipe is click's to end in silence."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(release(), prog_name="fairway")
def cli() -> None:
    """See where accelerators are free, why a job does not fit, and who waits for them in which queue.

    \b
    A cluster is given as
      [NAME=]KUBECONFIG[@CONTEXT]   a live cluster: nodes, pods and quotas are read once
      [NAME=]DUMP.json|yaml|gz      what kubectl get -A -o json writes of
                                    nodes,pods,namespaces,resourcequotas,limitranges,runtimeclasses,
                                    deployments,replicasets,pv,pvc,storageclasses,csinodes
                                    and, where Fairway's node agent runs, nodedevices
      [NAME=]grpc://HOST:PORT       a Fairway estimator, and all clusters that it serves
    Without any, the cluster is the one that kubectl would talk to.

    \b
    Exit codes: 0 done, or it fits somewhere; 1 bad usage, or nothing could be read;
    2 some clusters could not be read or are in doubt; 3 it fits nowhere, or waits;
    4 there is no such workload in any queue.
    """


for command in (
    report,
    top,
    hours,
    notify,
    explain,
    what_if,
    queues,
    queue,
    pending,
    doctor,
    install,
    uninstall,
    completion,
):
    cli.add_command(command)


def run(args: Sequence[str]) -> int:
    """Run the command with these arguments and answer its exit code."""
    try:
        code: object = cli.main(args, prog_name="fairway", standalone_mode=False)
    except Unknown as error:
        error.show()
        return Exit.UNKNOWN
    except click.ClickException as error:
        error.show()
        # Not click's own codes for bad usage: 2 and 3 are answers here.
        return Exit.FAILED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        # What it still holds would fail again, with a traceback, when the interpreter ends.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        click.echo(f"Error: standard output: {error.strerror}; expected one that can be written", err=True)
        return Exit.FAILED
    except click.Abort:
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    return code if isinstance(code, int) else Exit.OK


def main() -> int:
    """The entry point: the exit code of the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What an encoding cannot show is shown as an escape.
            stream.reconfigure(errors="backslashreplace")
    # Of the time that a large dump takes to be read, Python's own thresholds spend a third on collections.
    gc.set_threshold(*GC_THRESHOLDS)
    # The core of gRPC writes what is no error, too.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
