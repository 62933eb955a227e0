"""Edit JSON and JSONC in place, by position: every byte outside the inserted text stays (CASES.md, KEEP).

Must not know files or hosts. A text is scanned without recursion into nodes that know where they start and
end; an edit inserts or cuts a piece and is then read again: the tokens must be the old ones plus or minus
ours, or nothing is returned.

`marks` is what an edit leaves for its undoing, a mapping that JSON can hold and that the caller keeps per file:
`made` lists the paths of objects and arrays that an edit added, `inner` what stood between the brackets of a
container that was empty, `blank` a text that held nothing at all. Without marks an undo is as right, only the white
space of a formerly empty container and an empty container that we made may differ.
"""
from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import namedtuple

from engram.hosts.source import BOM, Unreadable, newline_of, unreadable

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
                raise unreadable(self.text, node.start, f"{_name(path)} is not an array")
            return node.rows[step] if step < len(node.rows) else None
        if node.kind != "object":
            raise unreadable(self.text, node.start, f"{_name(path)} is not an object")
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


def put(text, path, value, dialect, marks):
    """Return `text` with the new member `path[-1]: value`, objects on the way made where there are none.

    `text` may be empty. The member goes last, in the style found there. Raises Unreadable, also when the
    member is there already (that is for `replace`).
    """
    path = list(path)
    doc = Document(text, dialect)
    if doc.root is None:
        marks["blank"] = text.lstrip(BOM)
        marks["made"], marks["inner"] = [path[:end] for end in range(len(path))], []
        return _start(doc, _nest(path, value))
    depth, node = 0, doc.root
    while True:
        row = doc.step(node, path[depth], path[:depth])
        if row is None:
            break
        node, depth = row.value, depth + 1
        if depth == len(path):
            raise unreadable(text, row.start, f"{_name(path)} is there already")
    made = [path[:end] for end in range(depth + 1, len(path))]
    new = _insert(doc, path[:depth], node, path[depth], _nest(path[depth + 1:], value), marks)
    marks["made"] = [one for one in marks.get("made", []) if one not in made] + made
    return new


def append(text, path, value, dialect, marks):
    """Return `text` with `value` as the new last item of the array at `path`, which is made where there is none."""
    path = list(path)
    doc = Document(text, dialect)
    node = doc.find(path) if doc.root else None
    if node is None:
        new = put(text, path, [value], dialect, marks)
        marks["made"] = [*marks["made"], path]
        return new
    if node.kind != "array":
        raise unreadable(text, node.start, f"{_name(path)} is not an array")
    return _insert(doc, path, node, None, value, marks)


def replace(text, path, value, dialect):
    """Return `text` with another value at `path`, which must be there (keys; indexes for items of arrays).

    The value is written in the style of its surroundings; what it replaces is lost.
    """
    doc = Document(text, dialect)
    node, holder = doc.find(path), doc.find(path[:-1])
    inline = node.kind == "scalar" or "\n" not in text[node.start:node.end]
    made = _render(value, None if inline else _indent(doc, holder), _Style(doc))
    gone = [pair for pair in doc.tokens if node.start <= pair[0] < node.end]
    return _checked(doc, text[:node.start] + made + text[node.end:], node.start, gone, _tokens(made))


def drop(text, path, dialect, marks):
    """Return `text` without the member or item at `path`; unchanged when there is none. Raises Unreadable.

    Containers on the way that are empty then and stand in `marks` as made go too.
    """
    path = list(path)
    doc = Document(text, dialect)
    if doc.root is None or doc.find(path) is None:
        return text
    while True:
        holder = doc.find(path[:-1])
        doc = Document(_cut(doc, holder, _row(holder, path.pop())), dialect)
        holder = doc.find(path)
        if holder.rows:
            return doc.text
        if path not in marks.get("made", []):
            return _restore(doc, path, holder, marks)
        marks["made"] = [one for one in marks["made"] if one != path]
        if not path:
            return _unstart(doc, marks)


def drop_items(text, path, matches, dialect, marks):
    """Return `text` without the items of the array at `path` whose plain value `matches`; see `drop`."""
    doc = Document(text, dialect)
    node = doc.find(path) if doc.root else None
    if node is None or node.kind != "array":
        return text
    for index in reversed(range(len(node.rows))):
        if matches(doc.plain(node.rows[index].value)):
            text = drop(text, [*path, index], dialect, marks)
    return text


def is_blank(text, dialect, ignored=()):
    """Return whether the text says nothing: it is empty, or an object with no other keys than `ignored` and no comment."""
    doc = Document(text, dialect)
    if doc.root is None:
        return not text.lstrip(BOM).strip()
    if doc.root.kind != "object" or any(row.key not in ignored for row in doc.root.rows):
        return False
    before, after = text[:doc.root.start].lstrip(BOM), text[doc.root.end:]
    return not before.strip() and not after.strip() and (doc.root.rows != [] or not text[doc.root.start + 1:doc.root.end - 1].strip())


class _Style:
    """How the text writes things: its line end, one step of its indentation, the space after `:` and `,`."""

    def __init__(self, doc):
        self.newline = newline_of(doc.text)
        self.unit = _unit(doc)
        self.space = "" if doc.tight else " "


def _nest(path, value):
    for step in reversed(path):
        value = {step: value}
    return value


def _name(path):
    return f'"{path[-1]}"' if path else "the top level"


def _row(node, step):
    return node.rows[step] if isinstance(step, int) else next(row for row in node.rows if row.key == step)


def _bad_string(text, at):
    if text[at] != '"':
        return None
    end = text.find("\n", at)
    return "the string that starts here is never closed" if '"' not in text[at + 1:end if end >= 0 else None] \
        else "this string holds a control character or a wrong escape"


def _start(doc, value):
    """Write a whole object into a text that has none, before what white space or after what comments it has."""
    text, style = doc.text, _Style(doc)
    made = _render(value, "", style)
    bom = BOM if text.startswith(BOM) else ""
    rest = text[len(bom):]
    new = bom + made + (rest or style.newline) if not rest.strip() else \
        text + ("" if text.endswith("\n") else style.newline) + made + style.newline
    return _checked(doc, new, len(text), [], _tokens(made))


def _unstart(doc, marks):
    """Undo `_start`: the object is empty again, and what was there before it comes back if nobody added anything."""
    bom = BOM if doc.text.startswith(BOM) else ""
    before = marks.pop("blank", "")
    around = doc.text[len(bom):doc.root.start] + doc.text[doc.root.end:]
    return bom + before if around.split() == before.split() else doc.text


def _insert(doc, path, node, key, value, marks):
    """Insert a member or item at the end of the container `node`."""
    text, style = doc.text, _Style(doc)
    last = node.rows[-1] if node.rows else None
    inside = text[last.value.end if last else node.start + 1:node.end - 1]
    at = node.start + 1 + len(text[node.start + 1:node.end - 1].rstrip(" \t\r\n"))
    blank = last is None and not inside.strip()
    spread = "\n" in inside or blank and _spread(doc, path)
    indent = _indent(doc, node) if spread else None
    piece = _render(value, indent, style)
    added = _tokens(piece)
    if key is not None:
        name = json.dumps(key, ensure_ascii=False)
        piece, added = f"{name}:{style.space}{piece}", [name, *added]
    before = style.newline + indent if spread else style.space if last else text[node.start + 1:node.end - 1] if blank else " "
    comma = "," if last and last.comma < 0 else ""
    after = "," if last and last.comma >= 0 else ""
    if last is None:
        # what the marks say of a container that is empty now can't be true any more
        marks["made"] = [one for one in marks.get("made", []) if one != path]
        marks["inner"] = [pair for pair in marks.get("inner", []) if pair[0] != path]
    if blank and spread:
        if "\n" not in inside:
            after = style.newline + _line_indent(text, node.start)
        if inside:
            marks["inner"].append([path, inside])
    new = text[:at] + before + piece + after + text[at:]
    if comma:
        new = new[:last.value.end] + comma + new[last.value.end:]
    return _checked(doc, new, at, [], added)


def _cut(doc, node, row):
    """Return the text without `row` of the container `node`, its comma, and the white space before it."""
    text = doc.text
    index = node.rows.index(row)
    end = row.value.end
    cuts = []
    if row.comma >= 0:
        if text[end:row.comma].strip():  # a comment stands between: it stays
            cuts.append((row.comma, row.comma + 1))
        else:
            end = row.comma + 1
    elif index:
        cuts.append((node.rows[index - 1].comma, node.rows[index - 1].comma + 1))
    start = len(text[:row.start].rstrip(" \t\r\n"))
    gone = [pair for pair in doc.tokens if row.start <= pair[0] < row.value.end]
    for begin in (start, row.start):  # the second where that white space ends a comment
        new = text
        for cut in sorted([*cuts, (begin, end)], reverse=True):
            new = new[:cut[0]] + new[cut[1]:]
        if _reads(doc, new, row.start, gone, []):
            return new
    raise unreadable(text, row.start, "what Engram put here can't be taken out without harm; please do it by hand")


def _restore(doc, path, node, marks):
    """Give a container that is empty again what stood between its brackets."""
    text = doc.text
    inside = text[node.start + 1:node.end - 1]
    pairs = marks.get("inner", [])
    known = [pair[1] for pair in pairs if pair[0] == path]
    marks["inner"] = [pair for pair in pairs if pair[0] != path]
    if inside.strip():
        return text
    return text[:node.start + 1] + (known[0] if known else "" if "\n" in inside else inside) + text[node.end - 1:]


def _tokens(text):
    return [token for _, token in Document(text, STRICT).tokens]


def _reads(doc, new, at, gone, added):
    """Return whether `new` reads as the old text without the tokens `gone` and with `added` at the old position `at`."""
    before = bisect_left(doc.tokens, (at,))
    expected = [pair[1] for pair in doc.tokens]
    expected[before:before + len(gone)] = added
    try:
        return [token for _, token in Document(new, doc.dialect).tokens] == expected
    except Unreadable:
        return False


def _checked(doc, new, at, gone, added):
    if not _reads(doc, new, at, gone, added):
        raise unreadable(doc.text, min(at, len(doc.text)), "this place can't be edited without harm; please do it by hand")
    return new


def _spread(doc, path):
    """Return whether what goes into the empty container at `path` gets lines of its own: as its parent's members have."""
    if not path:
        return True
    holder = doc.find(path[:-1])
    return "\n" in doc.text[holder.rows[-1].value.end:holder.end]


def _line_indent(text, at):
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at].lstrip(BOM)
    return line[:len(line) - len(line.lstrip(" \t"))]


def _own_line(text, at):
    """Return the white space before `at` when nothing else stands before it on its line, else None."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return None if begin == 0 or line.strip(" \t") else line


def _indent(doc, node):
    """Return the indentation that members of `node` have, or would have."""
    for row in reversed(node.rows):
        found = _own_line(doc.text, row.start)
        if found is not None:
            return found
    return _line_indent(doc.text, node.start) + _unit(doc)


def _unit(doc):
    """Return one step of indentation, as the outermost indented member shows it; two spaces where none does."""
    level, depth = [doc.root] if doc.root else [], 1
    while level and depth < 8:
        for node in level:
            for row in node.rows:
                found = _own_line(doc.text, row.start)
                if found and len(found) % depth == 0:
                    return found[:len(found) // depth]
        level, depth = [row.value for node in level for row in node.rows if row.value.rows], depth + 1
    return "  "


def _render(value, indent, style):
    """Write a value: objects over lines at `indent`, arrays of scalars on one; all on one line when it is None."""
    if isinstance(value, dict) and value:
        inner = None if indent is None else indent + style.unit
        rows = [f"{json.dumps(key, ensure_ascii=False)}:{style.space}{_render(item, inner, style)}" for key, item in value.items()]
    elif isinstance(value, list) and value:
        flat = indent is None or not any(isinstance(item, dict | list) for item in value)
        inner = None if flat else indent + style.unit
        rows = [_render(item, inner, style) for item in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if inner is None:
        return opening + ("," + style.space).join(rows) + closing
    lead = style.newline + inner
    return opening + lead + ("," + lead).join(rows) + style.newline + indent + closing
