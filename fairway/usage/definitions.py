"""What idle, wrong-sized, throttled and failing mean: thresholds and sentences, each said once.

Everything that speaks of them (``fairway top``, the report, the agent, metrics, alerts) takes them from here.
"""

from dataclasses import dataclass
from enum import StrEnum


class Finding(StrEnum):
    """Something about a device that a pod holds, or about a pod, that somebody should know."""

    IDLE = "idle"
    HOLDS_MEMORY = "idle-with-memory"
    UNDER_USED = "under-used"
    OVERSIZED = "oversized"
    THROTTLED = "throttled"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where each finding begins. Percentages are of utilisation, of memory or of the window's time."""

    quiet_percent: int = 5
    """A device is quiet while the 95th percentile of its utilisation is below this."""
    idle_s: int = 3600
    """Idle is a device that has been quiet for so long."""
    held_memory_percent: int = 2
    """An idle device holds memory where more of it is in use than this, which a driver's context takes."""
    under_used_percent: int = 50
    """A pod is under-used when at most so many of its devices are not quiet."""
    oversized_memory_percent: int = 25
    oversized_busy_percent: int = 50
    """A device is too large where neither its memory nor its utilisation comes up to these."""
    throttled_percent: int = 10
    """Of the window, the time in which the clocks were held down."""
    stale_s: int = 600
    """What an agent wrote longer ago than this is not used."""


THRESHOLDS = Thresholds()


def sentences(limits: Thresholds = THRESHOLDS) -> dict[Finding, str]:
    """What each finding says, in a sentence for people."""
    return {
        Finding.IDLE: (
            f"A pod holds the device, and it has done nothing for {idle_time(limits)} or longer; in the "
            f"window the 95th percentile of its utilisation is below {limits.quiet_percent} %."
        ),
        Finding.HOLDS_MEMORY: (
            f"The device is idle, and more than {limits.held_memory_percent} % of its memory stays in use."
        ),
        Finding.UNDER_USED: (
            f"A pod holds several devices and uses at most {limits.under_used_percent} % of them: on the "
            f"others the 95th percentile of utilisation is below {limits.quiet_percent} %."
        ),
        Finding.OVERSIZED: (
            "A smaller device or a slice would do: the device is used, but at its peak less than "
            f"{limits.oversized_memory_percent} % of its memory, and less than "
            f"{limits.oversized_busy_percent} % of its time (95th percentile)."
        ),
        Finding.THROTTLED: (
            f"Heat or power held the clocks down for {limits.throttled_percent} % of the window or more; a "
            "power cap that the device was given does not count."
        ),
        Finding.FAILING: "The device is unhealthy or lost, and a pod still holds it.",
    }


def idle_time(limits: Thresholds = THRESHOLDS) -> str:
    """For how long a device does nothing before it is idle: ``an hour``."""
    return _time(limits.idle_s)


def _time(seconds: int) -> str:
    hours, minutes = seconds // 3600, seconds // 60
    if seconds % 3600 == 0:
        return "an hour" if hours == 1 else f"{hours} hours"
    return f"{minutes} minutes"
