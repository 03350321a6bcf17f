"""Run a module as ``python -m`` does, in a process that the kernel ends when its parent is gone.

The parent ends its children itself; this is for when it is killed and can end nobody.
"""

import ctypes
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
