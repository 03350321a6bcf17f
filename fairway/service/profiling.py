"""What a running process is doing, over HTTP: tasks and threads now, and a profile of the loop over seconds.

The paths are those of Go's net/http/pprof, which `--enable-pprof` of the Karmada components serves; the
answers are text for people, since Go's profile format says nothing about Python.
"""

import asyncio
import cProfile
import io
import pstats
import sys
import threading
import traceback
from typing import Final

from aiohttp import web

MAX_PROFILE_S: Final = 60
DEFAULT_PROFILE_S: Final = 30

_INDEX = f"""/debug/pprof/

goroutine          asyncio tasks and thread stacks, now
profile?seconds=N  functions on the event loop's thread by time, over N seconds (1 to {MAX_PROFILE_S}, \
default {DEFAULT_PROFILE_S})
"""


def add_profiling_routes(app: web.Application) -> None:
    """Serve ``/debug/pprof/``, ``/debug/pprof/goroutine`` and ``/debug/pprof/profile``."""
    profiler = LoopProfiler()
    app.router.add_get("/debug/pprof/", _index)
    app.router.add_get("/debug/pprof/goroutine", _goroutine)
    app.router.add_get("/debug/pprof/profile", profiler.handle)


async def _index(_: web.Request) -> web.Response:
    return web.Response(text=_INDEX)


async def _goroutine(_: web.Request) -> web.Response:
    return web.Response(text=describe_tasks() + "\n" + describe_threads())


def describe_tasks() -> str:
    """Every task of the running loop: its name, what it awaits, and where."""
    tasks = sorted(asyncio.all_tasks(), key=asyncio.Task.get_name)
    out = io.StringIO()
    out.write(f"{len(tasks)} tasks\n")
    for task in tasks:
        out.write("\n")
        task.print_stack(file=out)
    return out.getvalue()


def describe_threads() -> str:
    """Every thread of the process: its name and its stack."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    out = [f"{len(frames)} threads\n"]
    for ident, frame in sorted(frames.items()):
        out.append(f"\nThread {names.get(ident, 'started outside Python')!r} ({ident}):\n")
        out += traceback.format_stack(frame)
    return "".join(out)


class LoopProfiler:
    """One profile at a time: the profiler hooks a whole thread, and two would measure each other."""

    def __init__(self) -> None:
        self._running = False

    async def handle(self, request: web.Request) -> web.Response:
        """Answer 200 with the profile, 400 for a bad ``seconds``, 409 while another one runs."""
        text = request.query.get("seconds", str(DEFAULT_PROFILE_S))
        if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MAX_PROFILE_S):
            problem = f"seconds={text}: expected a whole number from 1 to {MAX_PROFILE_S}\n"
            return web.Response(status=400, text=problem)
        if self._running:
            return web.Response(status=409, text="another profile is being taken, try again later\n")
        return web.Response(text=await self.profile(int(text)))

    async def profile(self, seconds: float) -> str:
        """Profile the calling loop's thread for ``seconds``; functions by own and cumulated time, as text."""
        profile = cProfile.Profile()
        self._running = True
        try:
            with profile:
                await asyncio.sleep(seconds)
        finally:
            self._running = False
        out = io.StringIO()
        pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(80)
        return out.getvalue()
