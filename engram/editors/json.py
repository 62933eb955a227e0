"""Edit JSON and JSONC in place, by position: every byte outside the inserted text stays (CASES.md, KEEP).

Must not know files or hosts. An edit inserts or cuts a piece and is then read again: the tokens must be the old ones
plus or minus ours, or nothing is returned.

`marks` is what an edit leaves for its undoing, a mapping that JSON can hold and that the caller keeps per file:
`made` lists the paths of objects and arrays that an edit added, `inner` what stood between the brackets of a
container that was empty, `blank` a text that held nothing at all. Without marks an undo is as right, only the white
space of a formerly empty container and an empty container that we made may differ.
"""
from __future__ import annotations

import json
from bisect import bisect_left

from engram.editors.json_reader import COMMENTS, JSONC, STRICT, Document, name_of
from engram.editors.json_style import Style, indent_of, line_indent, render
from engram.editors.source import BOM, Unreadable, unreadable

__all__ = ["COMMENTS", "JSONC", "STRICT", "Document", "append", "drop", "drop_items", "is_blank", "put", "replace", "value"]


def value(text, path, dialect):
    """Return the plain value at `path` (keys), None where there is none. Raises Unreadable.

    Only for looking: of keys that stand twice the last one counts. Strict JSON of any size is read in a moment.
    """
    try:
        found = json.loads(text.removeprefix(BOM))
        for key in path:
            found = found.get(key)
            if found is None:
                return None
        return found
    except (ValueError, AttributeError, RecursionError):  # not strict JSON, or no object on the way
        doc = Document(text, dialect)
        return doc.value(path) if doc.root else None


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
            raise unreadable(text, row.start, f"{name_of(path)} is there already")
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
        raise unreadable(text, node.start, f"{name_of(path)} is not an array")
    return _insert(doc, path, node, None, value, marks)


def replace(text, path, value, dialect):
    """Return `text` with another value at `path`, which must be there (keys; indexes for items of arrays).

    The value is written in the style of its surroundings; what it replaces is lost.
    """
    doc = Document(text, dialect)
    node, holder = doc.find(path), doc.find(path[:-1])
    inline = node.kind == "scalar" or "\n" not in text[node.start:node.end]
    made = render(value, None if inline else indent_of(doc, holder), Style(doc))
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


def _nest(path, value):
    for step in reversed(path):
        value = {step: value}
    return value


def _row(node, step):
    return node.rows[step] if isinstance(step, int) else next(row for row in node.rows if row.key == step)


def _start(doc, value):
    """Write a whole object into a text that has none, before what white space or after what comments it has."""
    text, style = doc.text, Style(doc)
    made = render(value, "", style)
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
    text, style = doc.text, Style(doc)
    last = node.rows[-1] if node.rows else None
    inside = text[last.value.end if last else node.start + 1:node.end - 1]
    at = node.start + 1 + len(text[node.start + 1:node.end - 1].rstrip(" \t\r\n"))
    blank = last is None and not inside.strip()
    spread = "\n" in inside or blank and _spread(doc, path)
    indent = indent_of(doc, node) if spread else None
    piece = render(value, indent, style)
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
            after = style.newline + line_indent(text, node.start)
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
