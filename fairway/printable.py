"""Text that anybody may have written, made fit for eyes: names, labels and messages may hold anything, also
what commands a terminal.

The one idea: whatever Python does not call printable (control characters, escapes, bidirectional overrides,
lone surrogates, line breaks) is shown as its escape, so that what one sees is what is there.
"""


def printable(text: str) -> str:
    """The text on one line, unprintable characters as escapes."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]
