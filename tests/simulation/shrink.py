"""A story that breaks a law, made as short and small as it can be and still break it."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from sandbox.simulation.story import ClusterLine, Line, QueueLine, Story

_MOST_TRIES = 400


class _Judge:
    """Whether a story still breaks the law; asks no more than so often."""

    def __init__(self, breaks: Callable[[Story], bool]) -> None:
        self._breaks = breaks
        self.left = _MOST_TRIES

    def breaks(self, story: Story) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        try:
            return self._breaks(story)
        except (KeyError, StopIteration):
            # Lines about what was cut away.
            return False


def shrink(story: Story, breaks: Callable[[Story], bool]) -> Story:
    """The smallest story found that breaks what it breaks: fewer lines first, then smaller numbers."""
    judge = _Judge(breaks)
    story = _fewer(story, judge)
    while judge.left > 0:
        smaller = next((one for one in _simpler(story) if judge.breaks(one)), None)
        if smaller is None:
            break
        story = smaller
    return _fewer(story, judge)


def _fewer(story: Story, judge: _Judge) -> Story:
    """Delta debugging over the lines: large pieces first."""
    size = max(1, len(story.lines) // 2)
    while size:
        start = 0
        while start < len(story.lines):
            lines = story.lines[:start] + story.lines[start + size :]
            shorter = replace(story, lines=lines)
            if _makes_sense(shorter) and judge.breaks(shorter):
                story = shorter
            else:
                start += size
        size //= 2
    return story


def _makes_sense(story: Story) -> bool:
    return bool(story.of(ClusterLine) and story.of(QueueLine))


def _simpler(story: Story) -> Iterator[Story]:
    """Stories with one number less, the boldest first."""
    for number, line in enumerate(story.lines):
        for simpler in _simpler_lines(line):
            yield replace(story, lines=(*story.lines[:number], simpler, *story.lines[number + 1 :]))
    for until_s in (10, story.until_s // 2):
        if 0 < until_s < story.until_s:
            yield replace(story, until_s=until_s)


def _simpler_lines(line: Line) -> Iterator[Line]:
    for one in fields(line):
        value = getattr(line, one.name)
        if one.name in ("name", "kind", "queue", "group_size", "nodes") or value == one.default:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value is None:
            yield replace(line, **{one.name: one.default})  # type: ignore[arg-type]  # of the field's type
            continue
        if one.default is None:
            yield replace(line, **{one.name: None})  # type: ignore[arg-type]  # which it may be
        if one.name != "amount" or value > 1:
            least = 0 if one.name in ("at_s", "for_s", "priority") else 1
            for smaller in dict.fromkeys((least, value // 2, value - 1)):
                if least <= smaller < value:
                    yield replace(line, **{one.name: smaller})
