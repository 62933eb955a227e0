"""The values of a header: a stated subset of YAML (store.md, "A memory file").

Pure: lines in, values out. Read: mappings, block and flow lists, block and flow mappings, plain and quoted scalars,
block scalars. Every scalar is text: dates, `no`, `on`, `null`, `01`, `1e3` stay as written. Anchors, aliases,
tags, tabs in indentation and repeated keys are errors that carry the line. A value is a str, a list or a dict.
"""
from __future__ import annotations

import json
import re
from collections import namedtuple

from engram.errors import MemoryFileError

Entry = namedtuple("Entry", "value first last comment")
KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#\-\[\]{},&*!|>'"%@`:?][^:]*+|-[^\s:][^:]*+)\s*+:(?=\s|$)""")
DEPTH = 20  # nesting that no header of a memory needs


def key_text(source):
    """Return the text of a key as it stands in the file, quoted or not."""
    if source[0] in "\"'":
        return _Flow(source, 0).scalar()
    return source.rstrip()


class Reader:
    """Reads header lines, the opening fence first; `top` yields (key, Entry). Other methods take a line index and give
    back a value and the next index."""

    def __init__(self, lines):
        self.lines = [line.rstrip("\r") for line in lines]

    def fail(self, index, message, kind="header"):
        raise MemoryFileError(message, kind=kind, line=index + 1)

    def top(self):
        index = 1
        while index < len(self.lines):
            if self.blank(index):
                index += 1
                continue
            if self.indent(index):
                self.fail(index, "this line is indented, but belongs to no key.")
            key, rest, comment_at = self.key(index)
            first = index
            value, index = self.value(index, rest, 0, 0)
            comment = self.comment(first, comment_at) if index == first + 1 else ""
            last = index - 1
            while last > first and self.blank(last):  # remarks and blank lines behind a value are not part of it
                last -= 1
            yield key, Entry(value, first, last, comment)

    def blank(self, index):
        text = self.lines[index].strip()
        return not text or text.startswith("#")

    def indent(self, index):
        line = self.lines[index]
        width = len(line) - len(line.lstrip(" "))
        if line[width:width + 1] == "\t":
            self.fail(index, "a tab stands in the indentation; use spaces.", "tab")
        return width

    def key(self, index):
        line = self.lines[index]
        found = KEY.match(line, self.indent(index))
        if not found:
            if re.match(r"(<{7}|={7}|>{7})( |$)", line):
                self.fail(index, "Git left a conflict here; resolve both sides first.", "conflict")
            if line.strip().startswith(("&", "*", "!", "<<", "%", "?")):
                self.fail(index, "anchors, aliases, tags and directives are not read.", "anchor")
            self.fail(index, "this is not a `key: value` line.")
        return key_text(found[1]), line[found.end():].strip(" \t"), found.end()

    def comment(self, index, start):
        rest = self.lines[index][start:]
        cut = _comment_at(rest)
        return rest[len(rest[:cut].rstrip()):] if cut is not None else ""

    def value(self, index, rest, indent, depth):
        """Read the value behind `key:` or `- ` whose text on its own line is `rest`; `indent` is the parent's."""
        if depth > DEPTH:
            self.fail(index, "values are nested too deeply.")
        cut = _comment_at(rest)
        bare = rest if cut is None else rest[:cut].rstrip()
        if bare[:1] in ("|", ">") and re.match(r"[|>][-+]?\d?[-+]?\Z", bare):
            return self.block_scalar(index, bare, indent)
        if not bare:
            return self.nested(index + 1, indent, depth)
        if bare[0] in "&*!":
            self.fail(index, "anchors, aliases and tags are not read; put the text in quotes.", "anchor")
        if bare[0] in "[{":
            return self.flow(index, rest)
        if bare[0] in "\"'":
            return self.flow(index, rest)
        if bare[0] in "%`":
            self.fail(index, f"a value can't begin with `{bare[0]}`; put it in quotes.")
        index += 1
        while index < len(self.lines) and not self.blank(index) and self.indent(index) > indent:
            more = self.lines[index].strip()  # a plain scalar may go on in deeper lines
            cut = _comment_at(more)
            bare += " " + (more if cut is None else more[:cut].rstrip())
            index += 1
        return bare, index

    def nested(self, index, indent, depth):
        start = index
        while index < len(self.lines) and self.blank(index):
            index += 1
        if index == len(self.lines):
            return "", start
        width = self.indent(index)
        item = self.lines[index][width:]
        is_list = item == "-" or item.startswith("- ")
        if width < indent or (width == indent and not (is_list and depth >= 0)) or (width == indent and not is_list):
            return "", start
        return self.items(index, width, depth) if is_list else self.mapping(index, width, depth)

    def items(self, index, width, depth):
        made = []
        while index < len(self.lines):
            if self.blank(index):
                index += 1
                continue
            at = self.indent(index)
            line = self.lines[index][at:]
            if at < width or (at == width and not (line == "-" or line.startswith("- "))):
                break
            if at > width:
                self.fail(index, "this line is indented more than the list item above.")
            rest = line[1:].strip(" \t")
            found = KEY.match(rest)
            if found and rest[0] not in "\"'[{":
                inner = width + (len(line) - len(line[1:].lstrip(" ")))
                self.lines[index] = " " * inner + rest  # `- key: value` opens a mapping at the key's column
                value, index = self.mapping(index, inner, depth + 1)
            else:
                value, index = self.value(index, rest, width, depth + 1)
            made.append(value)
        return made, index

    def mapping(self, index, width, depth):
        made = {}
        while index < len(self.lines):
            if self.blank(index):
                index += 1
                continue
            at = self.indent(index)
            if at < width:
                break
            if at > width:
                self.fail(index, "this line is indented more than the key above.")
            key, rest, _ = self.key(index)
            if key in made:
                self.fail(index, f"the key `{key}` stands twice.", "duplicate-key")
            made[key], index = self.value(index, rest, width, depth + 1)
        return made, index

    def block_scalar(self, index, marker, indent):
        lines, index = [], index + 1
        digits = re.sub(r"\D", "", marker)
        width = indent + int(digits) if digits else None
        while index < len(self.lines):
            line = self.lines[index]
            if line.strip():
                at = len(line) - len(line.lstrip(" "))
                width = at if width is None else width
                if at < width or at <= indent:
                    break
            lines.append(line[width or 0:])
            index += 1
        trailing = 0
        while lines and not lines[-1].strip():
            lines.pop()
            trailing += 1
        text = "\n".join(lines) if marker[0] == "|" else _folded(lines)
        if "-" not in marker:
            text += "\n" * (trailing + 1 if "+" in marker else 1) if lines else ""
        return text, index

    def flow(self, index, rest):
        """Read a quoted scalar, a flow list or a flow mapping, over several lines if need be."""
        last, step = index, 1
        while True:
            reader = _Flow(rest, 0)
            try:
                value = reader.value(0)
            except _Unfinished:
                more = self.continued(last + 1, step)
                if not more:
                    self.fail(index, "this value is never closed.")
                rest = "\n".join([rest, *more])
                last, step = last + len(more), step * 2  # line by line a long value would be read too many times
                continue
            except ValueError as error:
                self.fail(index + rest.count("\n", 0, reader.at), str(error), "anchor" if "anchor" in str(error) else "header")
            last = index + rest.count("\n", 0, reader.at)
            tail = rest[reader.at:].partition("\n")[0].strip()
            if tail and not tail.startswith("#"):
                self.fail(last, f"`{tail[:20]}` stands behind the end of the value.")
            return value, last + 1

    def continued(self, index, most):
        """Return the lines from `index` that can go on with a flow value, stripped, at most `most`."""
        made = []
        while len(made) < most and index < len(self.lines):
            line = self.lines[index]
            if line.strip() and not line.startswith((" ", "\t", "]", "}")):
                break
            made.append(line.strip())
            index += 1
        return made


class _Unfinished(Exception):
    """The value goes on in the next line."""


class _Flow:
    """Reads one flow value from `text` at `at`; raises ValueError with a reason."""

    def __init__(self, text, at):
        self.text = text
        self.at = at

    def space(self):
        while self.at < len(self.text):
            if self.text[self.at] in " \t\n":
                self.at += 1
            elif self.text[self.at] == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n"):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return
        raise _Unfinished

    def value(self, depth):
        if depth > DEPTH:
            raise ValueError("values are nested too deeply.")
        self.space()
        opening = self.text[self.at]
        if opening == "[":
            return self.sequence(depth)
        if opening == "{":
            return self.mapping(depth)
        if opening in "\"'":
            return self.scalar()
        if opening in "&*!":
            raise ValueError("anchors, aliases and tags are not read; put the text in quotes.")
        return self.plain(",]}" if depth else "")

    def sequence(self, depth):
        made = []
        self.at += 1
        while True:
            self.space()
            if self.text[self.at] == "]":
                self.at += 1
                return made
            if self.text[self.at] == ",":
                raise ValueError("a list item is empty.")
            made.append(self.value(depth + 1))
            self.separator("]")

    def mapping(self, depth):
        made = {}
        self.at += 1
        while True:
            self.space()
            if self.text[self.at] == "}":
                self.at += 1
                return made
            key = self.scalar() if self.text[self.at] in "\"'" else self.plain(":,}")
            self.space()
            if self.text[self.at] != ":":
                raise ValueError(f"`{key}` has no value.")
            if key in made:
                raise ValueError(f"the key `{key}` stands twice.")
            self.at += 1
            made[key] = self.value(depth + 1)
            self.separator("}")

    def separator(self, close):
        self.space()
        if self.text[self.at] == ",":
            self.at += 1
        elif self.text[self.at] != close:
            raise ValueError(f"a comma or `{close}` is missing before `{self.text[self.at:self.at + 12]}`.")

    def scalar(self):
        quote, start = self.text[self.at], self.at
        at = start + 1
        while at < len(self.text):
            if quote == '"' and self.text[at] == "\\":
                at += 2
            elif self.text[at] != quote:
                at += 1
            elif quote == "'" and self.text[at + 1:at + 2] == "'":
                at += 2
            else:
                self.at = at + 1
                inner = _one_line(self.text[start + 1:at])
                return inner.replace("''", "'") if quote == "'" else _unescape(inner)
        raise _Unfinished

    def plain(self, stops):
        start = self.at
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in stops and (character != ":" or self.text[self.at + 1:self.at + 2] in ("", " ", "\n")):
                break
            if character == "#" and self.text[self.at - 1:self.at] in (" ", "\n"):
                break
            self.at += 1
        return _one_line(self.text[start:self.at].strip())


def _one_line(text):
    return " ".join(text.split("\n")) if "\n" in text else text


def _unescape(inner):
    try:
        return json.loads(f'"{inner}"', strict=False)
    except ValueError:
        raise ValueError("a double-quoted value has an escape that is not known; use single quotes.") from None


def _comment_at(text):
    """Return where a ` #` comment begins in the rest of a line, or None; quotes and brackets are seen."""
    if "#" not in text:
        return None
    quote, at = None, 0
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\" and quote == '"':
                at += 1
            elif character == quote:
                quote = None
        elif character in "\"'" and (at == 0 or text[at - 1] in " [{,:"):
            quote = character
        elif character == "#" and (at == 0 or text[at - 1] in " \t"):
            return at
        at += 1
    return None


def _folded(lines):
    made = ""
    for line in lines:
        if not line.strip():
            made += "\n"
        elif made and not made.endswith("\n"):
            made += " " + line
        else:
            made += line
    return made
