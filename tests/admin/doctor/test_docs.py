"""What the pages say of the doctor is what there is."""

import re
from pathlib import Path

from admin.doctor.catalogue import CHECKS

_ROOT = Path(__file__).resolve().parents[3]


def test_pages_name_checks_that_there_are() -> None:
    pages = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
    named = {name for page in pages for name in re.findall(r"--check\s+([a-z][a-z-]+)", page.read_text())}
    assert named
    assert named <= {check.name for check in CHECKS}
