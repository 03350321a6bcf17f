"""What NodeDevices may hold at most, as data: the same bounds as in the schema of its definition.

The API server refuses an object whole for one field beyond them, so what is more is cut before it is sent.
"""

import re
from dataclasses import dataclass
from typing import Final

MOST_DEVICES: Final = 128
MOST_HOLDERS: Final = 128
MOST_PROBLEMS: Final = 16
MOST_OBJECT_BYTES: Final = 1_000_000
"""etcd takes 1.5 MB, and the server keeps who set which field beside what we send."""

MOST_INDEX: Final = 1023
MOST_ISLAND: Final = MOST_DEVICES - 1
MOST_SHARES: Final = 1024
MOST_PERCENT: Final = 100
MOST_BYTES: Final = 1 << 50
MOST_MILLIWATTS: Final = 10_000_000
MOST_CELSIUS: Final = 300


def measured(value: int | None, most: int) -> int | None:
    """The value, or None for one that nothing can have, such as what a driver says for "not available"."""
    return value if value is not None and 0 <= value <= most else None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most ``most`` characters that all of ``pattern`` matches, if there is one."""

    most: int
    pattern: str = ""

    def within(self, text: str) -> str:
        """As much of it as is allowed; empty where the pattern does not match that. What UTF-8 cannot say,
        such as a byte of a name that is no text, becomes a question mark.
        """
        cut = text[: self.most].encode("utf-8", "replace").decode()
        return cut if not self.pattern or re.fullmatch(self.pattern, cut) else ""


ID: Final = Text(128, r"[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?")
PRODUCT: Final = Text(128)
BUS_ID: Final = Text(32, r"[0-9A-Fa-f:.]+")
MIG_PROFILE: Final = Text(32, r"[A-Za-z0-9.+_-]+")
CLIQUE: Final = Text(128, r"[A-Za-z0-9._-]+")
VERSION: Final = Text(64, r"[A-Za-z0-9.+_-]+")
CODE: Final = Text(64, r"[A-Za-z][A-Za-z0-9]*")
MESSAGE: Final = Text(512)
NAME: Final = Text(253, r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
UID: Final = Text(64, r"[A-Za-z0-9-]+")
CONTAINER: Final = Text(63, r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
API_VERSION: Final = Text(317, r"[A-Za-z0-9./-]+")
KIND: Final = Text(63, r"[A-Za-z][A-Za-z0-9]*")
HOLDER_SOURCE: Final = Text(16, r"PodResources|Annotation|Cgroup")
WINDOW_SOURCE: Final = Text(8, r"NVML|GPM|DCGM")
