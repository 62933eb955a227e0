"""Read JSON and JSONC into nodes that know where they start and end. Must not know files, hosts or edits.

The scan does not recurse: nesting is limited by memory alone.
"""
from __future__ import annotations

import json
import re
from collections import namedtuple

from engram.editors.source import BOM, unreadable

Dialect = namedtuple("Dialect", "comments trailing")
STRICT = Dialect(False, False)
COMMENTS = Dialect(True, False)
JSONC = Dialect(True, True)

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERAL = re.compile("true|false|null")
_WORD = re.compile(r"[^\s\[\]{},:\"]+")


class Node:
    """A value: `kind` is object, array or scalar; the text is `[start:end]`; `rows` are the members or items."""

    __slots__ = ("end", "kind", "rows", "start")

    def __init__(self, kind, start):
        self.kind = kind
        self.start = start
        self.end = None
        self.rows = []


class Row:
    """A member (with `key`) or an item (without): it starts at `start`; `comma` is where its comma stands, or -1."""

    __slots__ = ("comma", "key", "start", "value")

    def __init__(self, key, start):
        self.key = key
        self.start = start
        self.value = None
        self.comma = -1


class Document:
    """A parsed text: `root` is None when there is nothing but white space and comments. Raises Unreadable."""

    def __init__(self, text, dialect):
        self.text = text
        self.dialect = dialect
        self.tokens = []  # (start, text) of all but commas, white space and comments
        self.root = None
        self.tight = False  # whether no space follows the colon of the first member
        self._scan()

    def find(self, path):
        """Return the node at `path` (keys, and indexes for arrays) or None. Raises Unreadable when a key on the way
        stands twice or a container on the way is none."""
        node = self.root
        for depth, step in enumerate(path):
            if node is None:
                return None
            row = self.step(node, step, path[:depth])
            node = row.value if row else None
        return node

    def plain(self, node):
        """Return the value of a node as Python values; a repeated key counts with its last value."""
        done = {}
        stack = [(node, False)]
        while stack:
            at, ready = stack.pop()
            if at.kind == "scalar":
                try:
                    done[id(at)] = json.loads(self.text[at.start:at.end])
                except ValueError:  # an integer longer than Python converts
                    done[id(at)] = self.text[at.start:at.end]
            elif ready and at.kind == "object":
                done[id(at)] = {row.key: done[id(row.value)] for row in at.rows}
            elif ready:
                done[id(at)] = [done[id(row.value)] for row in at.rows]
            else:
                stack.append((at, True))
                stack.extend((row.value, False) for row in at.rows)
        return done[id(node)]

    def value(self, path, default=None):
        """Return the plain value at `path`, `default` where there is none."""
        node = self.find(path)
        return default if node is None else self.plain(node)

    def step(self, node, step, path):
        if isinstance(step, int):
            if node.kind != "array":
                raise unreadable(self.text, node.start, f"{name_of(path)} is not an array")
            return node.rows[step] if step < len(node.rows) else None
        if node.kind != "object":
            raise unreadable(self.text, node.start, f"{name_of(path)} is not an object")
        rows = [row for row in node.rows if row.key == step]
        if len(rows) > 1:
            raise unreadable(self.text, rows[1].start, f'the key "{step}" stands there twice')
        return rows[0] if rows else None

    def _scan(self):
        text, size = self.text, len(self.text)
        at = 1 if text.startswith(BOM) else 0
        stack, expect = [], "value"  # value, item (or the end), key (or the end), comma (or the end), end
        while True:
            at = self._skip(at)
            if at >= size:
                break
            sign = text[at]
            if expect == "end":
                raise unreadable(text, at, "there is more text after the value")
            if expect == "comma":
                top = stack[-1]
                if sign == ",":
                    top.rows[-1].comma = at
                    expect, at = "key" if top.kind == "object" else "item", at + 1
                    continue
                if sign != ("}" if top.kind == "object" else "]"):
                    raise unreadable(text, at, f"a comma or {'`}`' if top.kind == 'object' else '`]`'} is missing here")
            elif expect == "key" and sign != "}":
                at = self._key(at, stack[-1])
                expect = "value"
                continue
            if sign in "}]" and expect in ("comma", "key", "item") and sign == ("}" if stack[-1].kind == "object" else "]"):
                node = stack.pop()
                if node.rows and node.rows[-1].comma >= 0 and not self.dialect.trailing:
                    raise unreadable(text, node.rows[-1].comma, f"there is a comma before `{sign}`")
                self.tokens.append((at, sign))
                at += 1
                node.end = at
                expect = "comma" if stack else "end"
                continue
            node = Node({"{": "object", "[": "array"}.get(sign, "scalar"), at)
            if not stack:
                self.root = node
            elif stack[-1].kind == "object":
                stack[-1].rows[-1].value = node
            else:
                stack[-1].rows.append(Row(None, at))
                stack[-1].rows[-1].value = node
            if node.kind == "scalar":
                at = node.end = self._scalar(at)
                expect = "comma" if stack else "end"
            else:
                stack.append(node)
                expect = "key" if sign == "{" else "item"
                at += 1
            self.tokens.append((node.start, text[node.start:at]))
        if stack:
            raise unreadable(text, stack[-1].start, f"the `{text[stack[-1].start]}` that starts here is never closed")

    def _key(self, at, node):
        found = _STRING.match(self.text, at)
        if not found:
            raise unreadable(self.text, at, _bad_string(self.text, at) or "a key in double quotes is missing here")
        node.rows.append(Row(json.loads(found[0]), at))
        self.tokens.append((at, found[0]))
        colon = self._skip(found.end())
        if self.text[colon:colon + 1] != ":":
            raise unreadable(self.text, min(colon, len(self.text) - 1), "a colon is missing after the key")
        if len(self.tokens) == 2:
            self.tight = self.text[colon + 1:colon + 2] not in (" ", "\t", "\n", "\r")
        after = self._skip(colon + 1)
        if after >= len(self.text) or self.text[after] in ",}]:":
            raise unreadable(self.text, min(after, len(self.text) - 1), "a value is missing after the colon")
        return after

    def _scalar(self, at):
        text = self.text
        if text[at] == '"':
            found = _STRING.match(text, at)
            if not found:
                raise unreadable(text, at, _bad_string(text, at))
            return found.end()
        word = _WORD.match(text, at)
        if not word:
            raise unreadable(text, at, f"`{text[at]}` is not expected here")
        for found in (_NUMBER.match(text, at), _LITERAL.match(text, at)):
            if found and found.end() == word.end():
                return found.end()
            if found and self.dialect.comments and text[found.end():found.end() + 1] == "/":
                return found.end()
        raise unreadable(text, at, f"`{word[0][:20]}` is not a JSON value")

    def _skip(self, at):
        """Return the first position from `at` on that is neither white space nor a comment."""
        text = self.text
        while True:
            at = _SPACE.match(text, at).end()
            if text[at:at + 1] != "/":
                return at
            if not self.dialect.comments:
                raise unreadable(text, at, "there is a comment, which this file can't have" if text[at:at + 2] in ("//", "/*")
                                 else "`/` is not expected here")
            if text.startswith("//", at):
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                if "\r" in text[at:end - 1]:  # some readers end the comment there and some don't
                    raise unreadable(text, at, "a carriage return stands inside a comment")
                at = end
            elif text.startswith("/*", at):
                end = text.find("*/", at + 2)
                if end < 0:
                    raise unreadable(text, at, "the comment that starts here is never closed")
                at = end + 2
            else:
                raise unreadable(text, at, "`/` is not expected here")


def name_of(path):
    """Return how an error names the container at `path`."""
    return f'"{path[-1]}"' if path else "the top level"


def _bad_string(text, at):
    if text[at] != '"':
        return None
    end = text.find("\n", at)
    return "the string that starts here is never closed" if '"' not in text[at + 1:end if end >= 0 else None] \
        else "this string holds a control character or a wrong escape"
