"""Lines out of arbitrarily cut chunks: a watch is one JSON document per line, of any length."""


class LineTooLong(ValueError):
    """A line exceeded the limit; nothing after it can be trusted."""


class LineSplitter:
    """Collects the pieces of a line until its newline arrives; linear in the bytes fed."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._pieces: list[bytes] = []
        self.pending_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, without newlines and without empty ones.

        Raises LineTooLong as soon as one line, complete or not, is longer than the limit.
        """
        first, *others = chunk.split(b"\n")
        self._pieces.append(first)
        self.pending_bytes += len(first)
        self._check(self.pending_bytes)
        if not others:
            return []
        *complete, rest = others
        lines = [b"".join(self._pieces), *complete]
        self._pieces = [rest]
        self.pending_bytes = len(rest)
        self._check(max(map(len, others)))
        return [line for line in lines if line]

    def _check(self, length_bytes: int) -> None:
        if length_bytes > self._limit_bytes:
            raise LineTooLong(f"a line of more than {self._limit_bytes} bytes")
