"""Write JSON values in the style of the text they go into. Must not know where they go."""
from __future__ import annotations

import json

from engram.editors.source import BOM, newline_of


class Style:
    """How the text writes things: its line end, one step of its indentation, the space after `:` and `,`."""

    def __init__(self, doc):
        self.newline = newline_of(doc.text)
        self.unit = unit_of(doc)
        self.space = "" if doc.tight else " "


def line_indent(text, at):
    """Return the indentation of the line that `at` is on."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at].lstrip(BOM)
    return line[:len(line) - len(line.lstrip(" \t"))]


def _own_line(text, at):
    """Return the white space before `at` when nothing else stands before it on its line, else None."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return None if begin == 0 or line.strip(" \t") else line


def indent_of(doc, node):
    """Return the indentation that members of `node` have, or would have."""
    for row in reversed(node.rows):
        found = _own_line(doc.text, row.start)
        if found is not None:
            return found
    return line_indent(doc.text, node.start) + unit_of(doc)


def unit_of(doc):
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


def render(value, indent, style):
    """Write a value: objects over lines at `indent`, arrays of scalars on one; all on one line when it is None."""
    if isinstance(value, dict) and value:
        inner = None if indent is None else indent + style.unit
        rows = [f"{json.dumps(key, ensure_ascii=False)}:{style.space}{render(item, inner, style)}" for key, item in value.items()]
    elif isinstance(value, list) and value:
        flat = indent is None or not any(isinstance(item, dict | list) for item in value)
        inner = None if flat else indent + style.unit
        rows = [render(item, inner, style) for item in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if inner is None:
        return opening + ("," + style.space).join(rows) + closing
    lead = style.newline + inner
    return opening + lead + ("," + lead).join(rows) + style.newline + indent + closing
