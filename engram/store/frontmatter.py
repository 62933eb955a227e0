"""Frontmatter: the header of a file with where each key stands, edited in place, and how values are written.

Must not know which keys a memory has. The subset of YAML that is read is in `header_values`. Positions are lines of
the file, from 0 inside this module and from 1 in errors.
"""
from __future__ import annotations

import json
import re

from engram.errors import MemoryFileError
from engram.store.header_values import KEY, Reader, key_text

FENCE = "---"
# For writing; compiled at their first use, which a start that only reads has none of.
BARE_KEY = r"[A-Za-z_][A-Za-z0-9_.-]*"
BARE = r"[A-Za-z0-9_./@+:-]+"
NUMBER = r"[-+]?(\d|\.\d)[\d_]*(\.\d*)?([eE][-+]?\d+)?"


class Document:
    """A file split into its header and its body, with where each key stands.

    `lines` are the raw lines of the whole file without "\\n" (a "\\r" stays), `close` the index of the closing
    fence, `entries` a mapping of top-level keys to Entry(value, first, last, comment) in file order, `values`
    the plain mapping, `body` the text after the closing fence's line.
    """

    __slots__ = ("bom", "close", "entries", "lines", "newline")

    def __init__(self, text):
        self.bom = "\ufeff" if text.startswith("\ufeff") else ""
        self.lines = text[len(self.bom):].split("\n")
        self.newline = "\r\n" if self.lines[0].endswith("\r") else "\n"
        if self.lines[0].rstrip() != FENCE:
            raise MemoryFileError("the file does not begin with a `---` line, so it has no header.", kind="no-header", line=1)
        for index in range(1, len(self.lines)):
            if self.lines[index].startswith(FENCE) and self.lines[index].rstrip() == FENCE:
                self.close = index
                break
        else:
            raise MemoryFileError("the header that begins in line 1 is never closed by a `---` line.", kind="open-header", line=1)
        self.entries = {}
        for key, entry in Reader(self.lines[:self.close]).top():
            if key in self.entries:
                raise MemoryFileError(f"the key `{key}` stands twice (first in line {self.entries[key].first + 1}).",
                                      kind="duplicate-key", line=entry.first + 1)
            self.entries[key] = entry

    @property
    def values(self):
        """The header as a mapping of key to str, list or dict."""
        return {key: entry.value for key, entry in self.entries.items()}

    @property
    def body(self):
        """The text after the header, line ends as in the file."""
        return "\n".join(self.lines[self.close + 1:])

    def edited(self, changes):
        """Return the whole file's text with header keys set (or removed, for a None) and nothing else changed.

        A key that is there keeps its place, and its comment when it fits one line; a new key goes where the
        order of the keys has it, or last. A value equal to the one there leaves its bytes alone.
        """
        lines = list(self.lines)
        carriage = self.newline[:-1]
        for key in sorted((k for k in changes if k in self.entries), key=lambda k: -self.entries[k].first):
            entry, value = self.entries[key], changes[key]
            if value is None:
                del lines[entry.first:entry.last + 1]
            elif _plain(value) != entry.value:
                lines[entry.first:entry.last + 1] = [render_entry(key, value) + entry.comment + carriage]
        added = [key for key in changes if key not in self.entries and changes[key] is not None]
        present = [key for key in self.entries if changes.get(key, "") is not None]
        for key in added:
            line = render_entry(key, changes[key]) + carriage
            lines.insert(self._place_for(key, present, lines), line)
        return self.bom + "\n".join(lines)

    def _place_for(self, key, present, lines):
        close = next(i for i in range(1, len(lines)) if lines[i].startswith(FENCE) and lines[i].rstrip() == FENCE)
        if present == sorted(present):
            after = [k for k in present if k > key]
            for index in range(1, close):
                found = KEY.match(lines[index])
                if found and after and key_text(found[1]) == after[0]:
                    present.insert(present.index(after[0]), key)
                    return index
        present.append(key)
        return close


def render_entry(key, value):
    """Return `key: value` on one line, as the earlier implementation writes it (upstream-format.md, b)."""
    return f"{key if re.fullmatch(BARE_KEY, key) else _quote(key)}: {render(value)}"


def render(value):
    """Return a value in the flow form: bare where that reads back as the same text, else quoted as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(render(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k if re.fullmatch(BARE_KEY, k) else _quote(k)}: {render(v)}" for k, v in value.items()) + "}"
    text = str(value)
    if re.fullmatch(BARE, text) and not text.startswith("-") and not re.fullmatch(NUMBER, text) and not text.endswith(":") \
            and text.lower() not in ("null", "true", "false"):
        return text
    return _quote(text)


def _quote(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f").replace("\u2028", "\\u2028") \
        .replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def _plain(value):
    """The value as reading would give it: every scalar as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return str(value)
