"""Edits: one change of one file, both ways. Pure: text in, text out; must not read or write anything.

A plan is a list of edits. Several edits of one file are done one after the other on the same text and share its
`marks`, a mapping that JSON can hold and that is kept per file until everything of ours is gone from it
(`editors/json.py` says what the JSON editor keeps there).
"""
from __future__ import annotations

from engram.editors import json
from engram.editors.source import Foreign, newline_of
from engram.errors import EngramError
from engram.files import sha256

STAMP = "engram link "


class Edit:
    """What link adds to the file `path`, and how unlink takes it out again.

    `part` is mcp, hooks or instructions: what `--no-…` leaves out. `add(text, marks) -> text` puts ours in or brings it
    up to date (`text` is None where there is no file) and returns the text unchanged when it is right already;
    `drop(text, marks) -> text` takes ours out and returns the text unchanged when there is none; `blank(text)`
    says whether what is left says nothing, so that a file which link made can go. Both raise `Unreadable` for a
    text that they can't edit, and `Foreign` for something of our name that is not ours; `optional` edits are
    then left out with a notice instead of failing the whole link. `exact` texts are config (UTF-8 and nothing else);
    others (Markdown) may hold any bytes. `leaves` says what a blank rest is when nobody knows who made the file: True
    to leave it there, False to remove it. Hosts may share what stands in a file: `there(text)` says whether anything
    of Engram's is in it, `holds(text, marks)` whether that is this edit's; left out, `drop` tells both.
    """

    __slots__ = ("add", "blank", "drop", "exact", "holds", "leaves", "optional", "part", "path", "there")

    def __init__(self, path, part, add, drop, blank, *, there=None, holds=None, optional=False, exact=True, leaves=True):
        self.path = path
        self.part = part
        self.add = add
        self.drop = drop
        self.blank = blank
        self.optional = optional
        self.exact = exact
        self.leaves = leaves
        self.there = there or self._changes
        self.holds = holds or (lambda text, marks: self.there(text))

    def _changes(self, text):
        try:
            return self.drop(text, {}) != text
        except EngramError:
            return False


def config(path, part, dialect, add, drop, *, ignored=()):
    """Make an edit of a JSON file from `add(text, marks)` and `drop(text, marks)` over `editors/json.py`.

    `add` gets "" where there is no file. `ignored` are top-level keys that a host adds by itself.
    """
    return Edit(path, part, lambda text, marks: add(text or "", marks), drop, lambda text: json.is_blank(text, dialect, ignored))


def whole(path, part, content, *, comment=("<!-- ", " -->"), ours=None):
    """Make an edit of a file that is ours alone: `content` ends with its line end, and gets a stamp line after it.

    The stamp holds a hash of what stands above it: a file whose stamp fits is ours and unedited, whoever wrote
    it and whatever version, and is replaced and removed; any other is left alone. `comment` are the words around
    the stamp; None for a format without comments, where `ours(text)` decides.
    """
    wanted = content if comment is None else stamped(content, comment)
    known = ours or is_stamped

    def add(text, marks):
        if text is None or text == wanted:
            return wanted
        if not known(text):
            raise Foreign("the file is not as Engram wrote it; it stays as it is.", hint="Remove it to get ours again.")
        return wanted if newline_of(text) == "\n" or text.replace("\r\n", "\n") != wanted else text

    def drop(text, marks):
        if not known(text):
            raise Foreign("the file is not as Engram wrote it; it stays as it is.", hint="Remove it if you don't need it.")
        return ""

    return Edit(path, part, add, drop, lambda text: not text.strip(), optional=True, exact=False, leaves=False)


def shared(edit, owner, *, strict=False):
    """Make an edit of what several hosts share out of the one that carries it: it goes when its last owner takes it out.

    `strict`: only take out what `owner` is known to have put in, since the file is first of all another host's.
    """
    def add(text, marks):
        done = edit.add(text, marks)
        if owner not in marks.get("owners", []):
            marks["owners"] = sorted([*marks.get("owners", []), owner])
        return done

    def drop(text, marks):
        owners = marks.get("owners", [])
        if strict and owner not in owners:
            return text
        marks["owners"] = [one for one in owners if one != owner]
        return text if marks["owners"] else edit.drop(text, marks)

    def holds(text, marks):
        owners = marks.get("owners")
        return edit.there(text) and (owner in owners if owners else not strict)

    return Edit(edit.path, edit.part, add, drop, edit.blank, there=edit.there, holds=holds, optional=edit.optional, exact=edit.exact,
                leaves=edit.leaves)


def stamped(content, comment=("<!-- ", " -->")):
    """Return `content` with a last line that holds its hash."""
    return f"{content}{comment[0]}{STAMP}{sha256(content.encode())[:16]}{comment[1]}\n"


def is_stamped(text):
    """Return whether the text ends with a stamp that fits what stands above it; line ends don't count."""
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    above = "\n".join(lines[:-1]) + "\n"
    return f"{STAMP}{sha256(above.encode('utf-8', 'surrogateescape'))[:16]}" in lines[-1]
