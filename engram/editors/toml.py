"""Edit TOML in place, by position: a table is added as a block at the end and taken out again (CASES.md, B).

Must not know files or hosts. `tomllib` says what a text means, before an edit and after it: the result must mean
the old text plus or minus ours, or nothing is returned. A small scanner over the (then known to be valid)
text says where the statements are, in all spellings: headers, dotted and quoted keys, inline tables.

How a block goes in makes it possible to take it out exactly, without notes: one empty line before it, and a line end
after it only where the text had one at its end.
"""
from __future__ import annotations

import json
import re
import tomllib
from collections import namedtuple

from engram.editors.source import BOM, Unreadable, newline_of, unreadable

# kind: table, array or pair; path: from the root; the statement is text[start:end] with its line end;
# value: (start, end) of a pair's value; members: what an inline table holds
Statement = namedtuple("Statement", "kind path start end value members")
# path: from the root; start: of its key; value: as above; comma: position of the comma after it, or -1
Member = namedtuple("Member", "path start value comma members")

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_EMPTY = re.compile(r"(?:\r?\n)?")
_LINE = re.compile(r"[^\n]*\n?")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_BARE = re.compile(r"[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?")  # a date and its time may stand apart
_QUOTED = re.compile(r'''
    """(?:[^"\\]|\\[\s\S]|"(?!""))*"{3,5}
    | \'{3}(?:[^\']|\'(?!\'\'))*\'{3,5}
    | "(?:[^"\\\n]|\\.)*"
    | \'[^\'\n]*\'
''', re.VERBOSE)
_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse(text):
    """Return what the text means, as nested dicts and lists. Raises Unreadable with line and reason."""
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except tomllib.TOMLDecodeError as error:
        where = _WHERE.search(str(error))
        reason = _WHERE.sub("", str(error))
        line = int(where[1]) if where and where[1] else text.rstrip("\n").count("\n") + 1
        raise Unreadable(f"not TOML: {reason[:1].lower()}{reason[1:]}.", line=line,
                         column=int(where[2]) if where and where[2] else None) from None
    except RecursionError:
        raise Unreadable("the file is nested too deeply.", line=1) from None


def value(text, path, default=None):
    """Return the value at `path` (keys from the root), or `default`. Raises Unreadable."""
    found = parse(text)
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return default
        found = found[key]
    return found


def add_table(text, path, values, *, remark=None):
    """Return `text` with the new table `path`: a block at the end, or a member where its parent is an inline table.

    `values` may hold dicts, which become tables of their own. `remark` is a comment line above the block. Raises
    Unreadable when something is at `path` already or stands in the way.
    """
    whole = parse(text)
    wanted = _with(whole, path, values, text)
    item = _holder(text, _scan(text), path)
    if item:
        return _checked(text, _inline(text, item, path, values), wanted)
    newline = newline_of(text)
    lines = ([f"# {remark}"] if remark else []) + _lines(path, values)
    body = text.removeprefix(BOM)
    ended = not body or body.endswith("\n")
    before = "" if not body else newline if ended else newline * 2
    return _checked(text, text + before + newline.join(lines) + (newline if ended else ""), wanted)


def drop_table(text, path, *, remarks=()):
    """Return `text` without the table `path` and all below it, in whatever spelling; unchanged when there is none.

    Comment lines that are one of `remarks` and stand right above go too.
    """
    whole = parse(text)
    if value(text, path) is None:
        return text
    wanted = _without(whole, path)
    ours = lambda item: item.path[:len(path)] == path
    cuts = []
    rows = _scan(text)
    within = False
    for row in rows:
        if row.kind != "pair":
            within = ours(row)
            if within:
                cuts.append([_above(text, row.start, remarks), row.end])
        elif within:
            cuts[-1][1] = row.end
        elif ours(row):
            cuts.append([row.start, row.end])
        else:
            cuts += _member_cuts(row, ours)
    new = text
    for start, end in reversed(_joined(cuts)):
        if end == len(text) and not text.endswith("\n"):  # the text before had no line end at its end: nor had the block
            start -= len(_line_end_before(text, start))
        elif not text[:start].strip(BOM):  # at the top the empty line that parted it from the rest goes too
            end += len(_EMPTY.match(text, end)[0])
        new = new[:start] + new[end:]
    return _checked(text, new, wanted)


def set_value(text, path, value):
    """Return `text` with `value` (a string, list or boolean) at `path`, whose table must be there, in whatever spelling."""
    wanted = _with(parse(text), path, value, None)
    rows = _scan(text)
    written = _render(value)
    for item in _all(rows):
        if item.path == path and item.value:
            return _checked(text, text[:item.value[0]] + written + text[item.value[1]:], wanted)
    table, newline = path[:-1], newline_of(text)
    at = None
    for row in rows:
        if row.kind == "table" and row.path == table:
            at = row
        elif row.kind != "pair" and at:
            break
        elif at:
            at = row
    if at:  # after the last pair of the table's own section
        lead = "" if text[:at.end].endswith("\n") else newline
        after = newline if not lead else ""
        return _checked(text, text[:at.end] + lead + f"{_name(path[-1])} = {written}" + after + text[at.end:], wanted)
    item = _holder(text, rows, path)
    if item:
        return _checked(text, _inline(text, item, path, value), wanted)
    dotted = [row for row in rows if row.kind == "pair" and row.path[:len(table)] == table]
    if dotted:
        return _checked(text, _dotted(text, dotted[-1], path, written), wanted)
    raise unreadable(text, 0, f"the table {'.'.join(table)} can't be edited in this spelling")


def add_subtable(text, path, values):
    """Return `text` with the new table `path` right below the tables of its parent, or in it where that is inline."""
    wanted = _with(parse(text), path, values, text)
    rows = _scan(text)
    item = _holder(text, rows, path)
    if item:
        return _checked(text, _inline(text, item, path, values), wanted)
    end, within = None, False
    for row in rows:
        if row.kind != "pair":
            within = row.path[:2] == path[:2]
        if within:
            end = row.end
    if end is None:  # its parent has no header: a dotted key, or another table's pair
        return add_table(text, path, values)
    newline = newline_of(text)
    lead = newline if text[:end].endswith("\n") else newline * 2
    block = newline.join(_lines(path, values)) + (newline if text[:end].endswith("\n") else "")
    return _checked(text, text[:end] + lead + block + text[end:], wanted)


def _dotted(text, row, path, written):
    """Add a pair below `row`, whose dotted key is below the same table: the new key is spelled as that one is."""
    head = text[row.start:row.value[0]]
    keys = list(_KEY.finditer(head))
    below = len(row.path) - (len(path) - 1)  # how many words of that key stand for what is below the table
    pair = f"{head[:keys[-below].start()]}{_name(path[-1])} = {written}"
    newline = newline_of(text)
    return text[:row.end] + pair + newline + text[row.end:] if text[:row.end].endswith("\n") else text + newline + pair


def _with(whole, path, value, text):
    """Return a copy of `whole` with `value` at `path`; with a `text` (for errors) the place must be empty."""
    made = dict(whole)
    at = made
    for depth, key in enumerate(path[:-1]):
        at[key] = dict(at[key]) if isinstance(at.get(key), dict) else at.get(key, {})
        at = at[key]
        if not isinstance(at, dict):
            raise unreadable(text or "", _place(text, path[:depth + 1]), f"`{'.'.join(path[:depth + 1])}` is not a table")
    if text is not None and path[-1] in at:
        raise unreadable(text, _place(text, path), f"`{'.'.join(path)}` is there already")
    at[path[-1]] = value
    return made


def _without(whole, path):
    made = dict(whole)
    at = made
    for key in path[:-1]:
        at[key] = dict(at[key])
        at = at[key]
    del at[path[-1]]
    return made


def _place(text, path):
    return next((item.start for item in _all(_scan(text or "")) if item.path[:len(path)] == path), 0)


def _checked(text, new, wanted):
    """Return `new` if it means `wanted`; a table that our entry alone brought about may be there empty or not at all."""
    try:
        found = parse(new)
    except Unreadable:
        found = None
    if found is None or _frozen(found) != _frozen(wanted):
        raise unreadable(text, 0, "the file is written in a way that can't be edited without harm; please do it by hand")
    return new


def _frozen(value, depth=0):
    if isinstance(value, dict):
        rows = {key: _frozen(item, depth + 1) for key, item in value.items()}
        return {key: item for key, item in rows.items() if item != {} or depth > 0}
    if isinstance(value, list):
        return [_frozen(item, depth + 1) for item in value]
    return (type(value), repr(value))  # a NaN is not equal to itself, 1 is to True


def _holder(text, rows, path):
    """Return the innermost pair or member on the way to `path` whose value is an inline table, or None."""
    held = [item for item in _all(rows) if item.value and item.path == path[:len(item.path)] and text[item.value[0]] == "{"]
    return max(held, key=lambda item: len(item.path), default=None)


def _inline(text, item, path, values):
    """Insert the rest of `path` with `values` into the inline table of `item`, last."""
    start, end = item.value
    rest = path[len(item.path):]
    piece = f"{'.'.join(map(_name, rest))} = {_render(values)}"
    inside = text[start + 1:end - 1]
    at = start + 1 + len(inside.rstrip(" \t"))
    if inside.strip():
        piece = ", " + piece
    else:
        piece, at = inside + piece, start + 1
    return text[:at] + piece + text[at:]


def _member_cuts(item, ours):
    cuts = []
    members = item.members
    mine = [index for index, member in enumerate(members) if ours(member)]
    for index in mine:
        member = members[index]
        if index + 1 < len(members):
            cuts.append([member.start, members[index + 1].start])
        else:
            before = [other for other in range(index) if other not in mine]
            cuts.append([members[before[-1]].value[1] if before else item.value[0] + 1, member.value[1]])
    for member in members:
        if not ours(member):
            cuts += _member_cuts(member, ours)
    return cuts


def _joined(cuts):
    joined = []
    for start, end in sorted(cuts):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([start, end])
    return joined


def _above(text, start, remarks):
    """Return where a block that starts at `start` begins: with our remark and one empty line above it."""
    first = 1 if text.startswith(BOM) else 0
    while start > first:
        line = max(text.rfind("\n", 0, start - 1) + 1, first)
        if text[line:start].rstrip() not in [f"# {remark}" for remark in remarks]:
            break
        start = line
    return start - len(_line_end_before(text, start)) if _empty_line_before(text, start) else start


def _empty_line_before(text, start):
    end = _line_end_before(text, start)
    return bool(end) and (start == len(end) or text[:start - len(end)].endswith("\n") or text[:start - len(end)] == BOM)


def _line_end_before(text, start):
    return "\r\n" if text[:start].endswith("\r\n") else "\n" if text[:start].endswith("\n") else ""


def _all(rows):
    for row in rows:
        yield row
        yield from _all(row.members)


def _scan(text):
    """Return the statements of a valid text, in order."""
    rows, at, prefix = [], 1 if text.startswith(BOM) else 0, ()
    while at < len(text):
        start = at
        at = _BLANK.match(text, at).end()
        if at >= len(text) or text[at] in "#\r\n":
            at = _LINE.match(text, at).end()
            continue
        if text[at] == "[":
            kind = "array" if text.startswith("[[", at) else "table"
            prefix, at = _keys(text, at + (2 if kind == "array" else 1))
            at = _LINE.match(text, at).end()
            rows.append(Statement(kind, prefix, start, at, None, ()))
            continue
        keys, at = _keys(text, at)
        first = _BLANK.match(text, at + 1).end()
        end, members = _value(text, first, prefix + keys)
        at = _LINE.match(text, end).end()
        rows.append(Statement("pair", prefix + keys, start, at, (first, end), members))
    return rows


def _keys(text, at):
    """Return (keys, position) of a dotted key at `at`; the position is that of what follows it."""
    keys = []
    while True:
        found = _KEY.match(text, _BLANK.match(text, at).end())
        raw = found[0]
        keys.append(tomllib.loads(f"k={raw}")["k"] if raw[0] in "\"'" else raw)
        at = _BLANK.match(text, found.end()).end()
        if text[at:at + 1] != ".":
            return tuple(keys), at
        at += 1


def _value(text, at, path):
    """Return (end, members) of the value at `at`."""
    sign = text[at]
    if sign in "\"'":
        return _QUOTED.match(text, at).end(), ()
    if sign == "[":
        at = _SPACE.match(text, at + 1).end()
        while text[at] != "]":
            at = _SPACE.match(text, _value(text, at, path)[0]).end()
            if text[at] == ",":
                at = _SPACE.match(text, at + 1).end()
        return at + 1, ()
    if sign != "{":
        return _BARE.match(text, at).end(), ()
    members = []
    at = _SPACE.match(text, at + 1).end()
    while text[at] != "}":
        start = at
        keys, at = _keys(text, at)
        first = _SPACE.match(text, at + 1).end()
        end, inner = _value(text, first, path + keys)
        at = _SPACE.match(text, end).end()
        comma = at if text[at] == "," else -1
        members.append(Member(path + keys, start, (first, end), comma, inner))
        if comma >= 0:
            at = _SPACE.match(text, at + 1).end()
    return at + 1, tuple(members)


def _lines(path, values):
    """Return the lines of a table and of the tables in it."""
    lines = ["[" + ".".join(map(_name, path)) + "]"]
    lines += [f"{_name(key)} = {_render(item)}" for key, item in values.items() if not isinstance(item, dict)]
    for key, item in values.items():
        if isinstance(item, dict):
            inner = _lines((*path, key), item)
            # a table that only holds tables needs no header of its own
            lines += ["", *inner] if any(not isinstance(one, dict) for one in item.values()) else inner[1:]
    return lines


def _name(key):
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _string(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _render(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_name(key)} = {_render(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_render, value)) + "]"
    return _string(value) if isinstance(value, str) else json.dumps(value)
