"""One spelling of a product: drivers, exporters and labels differ in what stands between words."""

import re
from functools import lru_cache

_NO_WORD = re.compile(r"[^A-Za-z0-9.]+")


@lru_cache(maxsize=4096)
def spelled(product: str) -> str:
    """As labels of nodes spell it: ``NVIDIA-H100-80GB-HBM3`` for ``NVIDIA H100 80GB HBM3``."""
    return _NO_WORD.sub("-", product).strip("-.")


def holds(product: str, text: str) -> bool:
    """Whether the product's name holds the text, in whichever spelling of either; case is ignored."""
    return text.casefold() in product.casefold() or bool(
        spelled(text) and spelled(text).casefold() in spelled(product).casefold()
    )
