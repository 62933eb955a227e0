"""The hashes file: which content of which memory file was approved.

Pure: bytes in, bytes out. A flat JSON object of path to SHA-256, as the earlier implementation has it
(upstream-format.md, a). With Git's conflict markers in it, or damaged, it is read as the union of the entries
that can be read (store.md, Integrity), each path with all hashes that stand for it.
"""
from __future__ import annotations

import json
import re
from bisect import bisect_left
from operator import le

FILE = "memory.hashes.json"
# A string that is never closed matches to the end of its line: a search that starts again at each quote of a
# prepared file would take hours.
STRING = r'"((?:[^"\\\n]|\\.)*)("?)'
DIGEST = r"[0-9a-f]{64}"

_last: dict = {}  # `raw` and `entries` of the last whole file


class Hashes:
    """Approved hashes by path. `whole` is False when the file had conflict markers or damage.

    `extra` holds, by path, further hashes that count as approved: the other side of a conflict, or what an
    unfinished commit is about to record.
    """

    __slots__ = ("entries", "extra", "whole")

    def __init__(self, entries=None, extra=None, whole=True):
        self.entries = {} if entries is None else entries
        self.extra = {} if extra is None else extra
        self.whole = whole

    def approves(self, rel, sha256):
        """Whether content of this hash was approved for the path."""
        return self.entries.get(rel) == sha256 or sha256 in self.extra.get(rel, ())

    def known(self, rel):
        """Whether any content was approved for the path."""
        return rel in self.entries or rel in self.extra

    def add(self, rel, sha256):
        """Count one more hash as approved for a path."""
        if self.entries.get(rel) != sha256:
            self.extra.setdefault(rel, set()).add(sha256)


def parse(raw):
    """Read the bytes of a hashes file; None and blank give an empty one. Never raises."""
    if not raw or not raw.strip():
        return Hashes()
    if raw == _last.get("raw"):  # a commit reads the file several times, and in a large store each costs milliseconds
        return Hashes(dict(_last["entries"]))
    text = raw.decode("utf-8-sig", "replace")
    try:
        found = json.loads(text)
        if isinstance(found, dict) and set(map(type, found.values())) <= {str}:
            _last.update(raw=raw, entries=found)
            return Hashes(dict(found))
    except (ValueError, RecursionError):
        pass
    made = Hashes(whole=False)
    for written, digest in _entries(text):
        try:
            path = json.loads(f'"{written}"')
        except ValueError:
            continue
        if path in made.entries:
            made.add(path, digest)
        else:
            made.entries[path] = digest
    return made


def _entries(text):
    """Yield (path as written, digest) of each `"path": "digest"` in damaged JSON."""
    before = None
    for found in re.finditer(STRING, text):
        if before and found[2] and re.fullmatch(DIGEST, found[1]) and text[before.end():found.start()].strip() == ":":
            yield before[1], found[1]
        before = found if found[1] and found[2] else None


def dump(entries):
    """Return the bytes of a hashes file: two-space indent, final newline, order as given."""
    if not entries:
        return b"{}\n"
    # separators instead of an indent: that way the encoder in C does it, five times as fast
    rows = json.dumps(entries, ensure_ascii=False, separators=(",\n  ", ": "))
    return ("{\n  " + rows[1:-1] + "\n}\n").encode("utf-8", "surrogatepass")


def rewritten(raw, entries, changes):
    """Return the bytes of a hashes file with changes applied to its entries (a None drops the path).

    Where `raw` has the layout of `dump`, only the lines that change are written anew: in a large store that is most of a commit.
    A new path goes where the order of the paths has it while they are in order, so that two branches that add memories seldom
    touch the same line; else last.
    """
    paths, lines = list(entries), _lines(raw or b"")
    if len(lines) != len(paths):  # a text holds no line end, so in our layout there is a line for each
        lines = _lines(dump(entries))
    for path in entries.keys() & changes.keys():
        at = paths.index(path)
        if changes[path] is None:
            del paths[at], lines[at]
        else:
            lines[at] = _line(path, changes[path])
    fresh = sorted(path for path, value in changes.items() if value is not None and path not in entries)
    rising = not fresh or all(map(le, paths, paths[1:]))
    for path in fresh:
        at = bisect_left(paths, path) if rising else len(paths)
        paths.insert(at, path)
        lines.insert(at, _line(path, changes[path]))
    return b"{\n" + b",\n".join(lines) + b"\n}\n" if lines else dump({})


def _lines(raw):
    """Return the lines of the entries in a file, without the commas between them; nothing of one in another layout."""
    return raw[2:-3].split(b",\n") if raw.startswith(b"{\n") and raw.endswith(b"\n}\n") else []


def _line(path, value):
    return _lines(dump({path: value}))[0]
