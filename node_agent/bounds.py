"""What NodeDevices may hold at most: texts, the whole object, numbers as in `fairway.kube.device_bounds`.

The API server refuses an object whole for one field beyond them, so what is more is cut before it is sent.
"""

import re
from dataclasses import dataclass
from typing import Final

from fairway.kube.device_bounds import MOST_BYTES as MOST_BYTES
from fairway.kube.device_bounds import MOST_CELSIUS as MOST_CELSIUS
from fairway.kube.device_bounds import MOST_DEVICES as MOST_DEVICES
from fairway.kube.device_bounds import MOST_GPU_INSTANCE as MOST_GPU_INSTANCE
from fairway.kube.device_bounds import MOST_HOLDERS as MOST_HOLDERS
from fairway.kube.device_bounds import MOST_INDEX as MOST_INDEX
from fairway.kube.device_bounds import MOST_ISLAND as MOST_ISLAND
from fairway.kube.device_bounds import MOST_MILLIJOULES as MOST_MILLIJOULES
from fairway.kube.device_bounds import MOST_MILLIWATTS as MOST_MILLIWATTS
from fairway.kube.device_bounds import MOST_PERCENT as MOST_PERCENT
from fairway.kube.device_bounds import MOST_PROBLEMS as MOST_PROBLEMS
from fairway.kube.device_bounds import MOST_SHARES as MOST_SHARES

MOST_OBJECT_BYTES: Final = 1_000_000
"""etcd takes 1.5 MB, and the server keeps who set which field beside what we send."""


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
BOOT_ID: Final = UID
CONTAINER: Final = Text(63, r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
API_VERSION: Final = Text(317, r"[A-Za-z0-9./-]+")
KIND: Final = Text(63, r"[A-Za-z][A-Za-z0-9]*")
HOLDER_SOURCE: Final = Text(16, r"PodResources|Annotation|Cgroup")
WINDOW_SOURCE: Final = Text(8, r"NVML|GPM|DCGM")
