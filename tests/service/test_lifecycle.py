import asyncio
import asyncio.constants
import asyncio.sslproto
import gc
import os
import signal
import sys
from collections.abc import Iterator
from weakref import ref

import pytest

from fairway.service.lifecycle import (
    GC_THRESHOLDS,
    SAMPLE_INTERVAL_S,
    SWITCH_INTERVAL_S,
    TLS_BUFFER_BYTES,
    TLS_READ_AHEAD_KIB,
    YOUNG_TO_MIDDLE,
    StallMonitor,
    collect_young,
    freeze_long_lived,
    run,
    tune_interpreter,
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_the_program_to_stop(number: signal.Signals) -> None:
    finished = []

    async def main(stop: asyncio.Event) -> int:
        os.kill(os.getpid(), number)
        await stop.wait()
        finished.append("work in hand")
        return 7

    assert run(main) == 7
    assert finished == ["work in hand"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_exits_at_once(number: signal.Signals) -> None:
    exits: asyncio.Queue[int] = asyncio.Queue()

    async def main(stop: asyncio.Event) -> int:
        os.kill(os.getpid(), number)
        await stop.wait()
        os.kill(os.getpid(), number)
        return await asyncio.wait_for(exits.get(), timeout=20)

    assert run(main, exit_now=exits.put_nowait) == 128 + number


def test_signal_handlers_are_put_back() -> None:
    async def main(_: asyncio.Event) -> int:
        return 0

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    run(main)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_an_error_of_the_program_comes_out() -> None:
    async def main(_: asyncio.Event) -> int:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run(main)


@pytest.fixture
def _interpreter() -> Iterator[None]:
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    buffer_bytes = asyncio.sslproto.SSLProtocol.max_size
    read_ahead_kib = asyncio.constants.FLOW_CONTROL_HIGH_WATER_SSL_READ
    yield
    asyncio.constants.FLOW_CONTROL_HIGH_WATER_SSL_READ = read_ahead_kib  # type: ignore[misc]  # a constant to the type checker
    asyncio.sslproto.SSLProtocol.max_size = buffer_bytes
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_interpreter")
def test_tuning_takes_what_lives_out_of_later_collections() -> None:
    tune_interpreter()
    assert gc.get_threshold() == GC_THRESHOLDS
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    imported = gc.get_freeze_count()
    assert imported > 0

    mirror = [[number] for number in range(1000)]
    freeze_long_lived()
    assert gc.get_freeze_count() >= imported + len(mirror)


@pytest.mark.usefixtures("_interpreter")
def test_what_is_young_is_collected_each_time_and_seldom_more() -> None:
    class Knot:
        def __init__(self) -> None:
            self.itself = self

    # Nothing is collected by itself.
    gc.set_threshold(0)
    gc.collect(1)
    full = gc.get_count()[2]
    for _ in range(2 * (YOUNG_TO_MIDDLE + 1)):
        gone = ref(Knot())
        assert gone() is not None
        collect_young()
        assert gone() is None
    assert gc.get_count()[2] == full + 2


@pytest.mark.usefixtures("_interpreter")
def test_tuning_makes_the_buffer_of_a_tls_connection_no_larger_than_a_record() -> None:
    tune_interpreter()
    # What asyncio makes the buffers of each connection from.
    assert asyncio.sslproto.SSLProtocol.max_size == TLS_BUFFER_BYTES
    assert vars(asyncio.constants)["FLOW_CONTROL_HIGH_WATER_SSL_READ"] == TLS_READ_AHEAD_KIB


class Time:
    """A clock that only the monitor's sleeps move: each by its length and the next delay."""

    def __init__(self, *delays_s: float) -> None:
        self.now_s = 1000.0
        self.delays_s = list(delays_s)

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, duration_s: float) -> None:
        if not self.delays_s:
            raise asyncio.CancelledError
        self.now_s += duration_s + self.delays_s.pop(0)


def watched(time: Time) -> StallMonitor:
    monitor = StallMonitor(clock=time.clock, sleep=time.sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(monitor.run())
    return monitor


@pytest.mark.parametrize(
    ("delays_s", "stalls", "worst_s"),
    [
        ([], 0, 0.0),
        ([0.0, 0.001], 0, 0.001),
        ([0.019, 0.001], 0, 0.019),
        ([0.025, 0.5, 0.001], 2, 0.5),
        ([-0.001], 0, 0.0),
    ],
)
def test_delays_beyond_20_ms_are_stalls(delays_s: list[float], stalls: int, worst_s: float) -> None:
    reading = watched(Time(*delays_s)).reading()
    assert reading.stalls == stalls
    assert reading.worst_last_minute_s == pytest.approx(worst_s)


def test_the_worst_delay_is_forgotten_after_a_minute_but_the_stall_stays_counted() -> None:
    time = Time(0.4, 0.001)
    monitor = watched(time)
    time.now_s += 58
    assert monitor.reading().worst_last_minute_s == pytest.approx(0.4)
    time.now_s += 3
    assert monitor.reading().worst_last_minute_s == 0.0
    assert monitor.reading().stalls == 1


def test_a_long_quiet_time_keeps_no_more_than_a_minute() -> None:
    time = Time(*([0.3] + [0.0] * int(70 / SAMPLE_INTERVAL_S)))
    assert watched(time).reading().worst_last_minute_s == pytest.approx(0.0, abs=1e-9)


def test_on_a_real_loop_a_blocking_callback_is_noticed() -> None:
    async def scenario() -> int:
        monitor = StallMonitor()
        async with asyncio.timeout(20):
            task = asyncio.create_task(monitor.run())
            while not monitor.reading().stalls:
                await asyncio.sleep(0)
                deadline_s = asyncio.get_running_loop().time() + 0.05
                while asyncio.get_running_loop().time() < deadline_s:
                    pass
            task.cancel()
        return monitor.reading().stalls

    assert asyncio.run(scenario()) >= 1
