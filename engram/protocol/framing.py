"""A byte stream cut into lines: bytes in, whole lines out.

Must not know what a line means. A line ends with LF; blank lines are dropped; a line past the limit
comes out as `TOO_LONG` and its bytes are not kept, so memory stays flat whatever a peer sends.
"""
from __future__ import annotations

# A client may send 16 MiB (mcp.md); twice that leaves room for escapes.
LIMIT = 32 * 1024 * 1024


class TooLong:
    """Stands for a line that was longer than the limit."""

    def __repr__(self):
        return "TOO_LONG"


TOO_LONG = TooLong()


class Lines:
    """Cut what is fed into lines; `feed` any amount, `end` once at the end of input."""

    __slots__ = ("_held", "_parts", "_skipping", "limit")

    def __init__(self, limit=LIMIT):
        self.limit = limit
        self._parts = []
        self._held = 0
        self._skipping = False

    def feed(self, data):
        """Take bytes and return the lines that they complete, without their line ends."""
        lines = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._hold(part)
            self._close(lines)
        self._hold(rest)
        return lines

    def end(self):
        """Return the last line, if the stream ended without a line end: [] or a list of one."""
        lines = []
        self._close(lines)
        return lines

    def _hold(self, part):
        if self._skipping or not part:
            return
        self._held += len(part)
        if self._held > self.limit:
            self._parts = []
            self._skipping = True
        else:
            self._parts.append(part)

    def _close(self, lines):
        if self._skipping:
            lines.append(TOO_LONG)
        else:
            line = b"".join(self._parts).strip(b" \t\r")
            if line:
                lines.append(line)
        self._parts, self._held, self._skipping = [], 0, False
